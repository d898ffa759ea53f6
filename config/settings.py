"""Django's settings, all of them derived from the environment of `config.env`."""

import logging
import os
import socket
import ssl
from typing import Any
from urllib.parse import unquote, urlsplit

from cryptography.fernet import Fernet
from django.core.management.utils import get_random_secret_key
from django.templatetags.static import static
from django.urls import reverse_lazy

from config import env, production_checks
from config.database import connections
from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import Postgres, Valkey
from system.monitoring import logs, metric_files

ENVIRONMENT = env.current()
production_checks.refuse_unsafe_settings(ENVIRONMENT)
DATA_FOLDER = DataFolder(ENVIRONMENT.data_dir)
if not (ENVIRONMENT.database_url and ENVIRONMENT.redis_url and ENVIRONMENT.secret_key and ENVIRONMENT.secret_keys):
    DATA_FOLDER.prepare()

PROCESS_TYPE = os.environ.get("SVC_PROCESS", "command")  # set by the supervisor: web, worker or beat
BASE_DIR = env.ROOT
VERSION = "0.1.0"

DEBUG = ENVIRONMENT.debug
SECRET_KEY = ENVIRONMENT.secret_key or DATA_FOLDER.secret("secret_key", get_random_secret_key)
# Arguments of system.outbound.Policy for calls to URLs that an administrator entered.
OUTBOUND_POLICY = {
    "allow_http": ENVIRONMENT.allows_http_idp,
    "allow_private": ENVIRONMENT.private_idp,
    "ca_bundle": ENVIRONMENT.ca_bundle,
}
# The same for webhooks.
WEBHOOK_POLICY: dict[str, Any] = {"allow_private": ENVIRONMENT.private_webhooks, "ca_bundle": ENVIRONMENT.ca_bundle}
# The same for web pages that collections load. Private networks must be listed.
WEB_PAGE_POLICY: dict[str, Any] = {
    "allow_private": False, "private_networks": ENVIRONMENT.private_web_pages, "ca_bundle": ENVIRONMENT.ca_bundle
}  # fmt: skip
# Folders on the server whose subfolders collections can watch.
WATCH_DIRS = ENVIRONMENT.watch_dirs
# The embedding provider of document collections; read only by collections_app.embed.
EMBEDDING = {
    "provider": ENVIRONMENT.embedding_provider,
    "model": ENVIRONMENT.embedding_model,
    "dimensions": ENVIRONMENT.embedding_dimensions,
    "batch": ENVIRONMENT.embedding_batch,
    "concurrency": ENVIRONMENT.embedding_concurrency,
    "base_url": ENVIRONMENT.openai_base_url,
    "api_key": ENVIRONMENT.openai_api_key,
    "ca_bundle": ENVIRONMENT.ca_bundle,
}
# The provider that sorts passages again; read only by collections_app.search.reranking.
RERANKING: dict[str, Any] = {
    "url": ENVIRONMENT.rerank_url,
    "model": ENVIRONMENT.rerank_model,
    "api_key": ENVIRONMENT.rerank_api_key,
    "ca_bundle": ENVIRONMENT.ca_bundle,
}
# Read by the local model's tokenizer: its own threads doubled the time on two cores, and do not survive a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
SECRET_ENCRYPTION_KEYS = ENVIRONMENT.secret_keys or (
    DATA_FOLDER.secret("encryption_key", lambda: Fernet.generate_key().decode()),
)
for key in SECRET_ENCRYPTION_KEYS:
    try:
        Fernet(key)
    except ValueError:
        raise env.ConfigurationError(
            "SVC_SECRET_KEYS must be a comma-separated list of Fernet keys, each 32 bytes in URL-safe base64."
        ) from None
BASE_URL = ENVIRONMENT.base_url
TRUSTED_PROXIES = ENVIRONMENT.trusted_proxies


def default_allowed_hosts() -> list[str]:
    """The host names that are accepted if ALLOWED_HOSTS is not set."""
    names = [urlsplit(BASE_URL).hostname or ""] if BASE_URL else []
    if ENVIRONMENT.host not in ("0.0.0.0", "::"):
        names.append(f"[{ENVIRONMENT.host}]" if ":" in ENVIRONMENT.host else ENVIRONMENT.host)
    if not ENVIRONMENT.is_production:
        names += ["localhost", "127.0.0.1", "[::1]", socket.gethostname()]
    return names


ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts) or default_allowed_hosts()
CSRF_TRUSTED_ORIGINS = [BASE_URL] if BASE_URL else []

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # its default config would replace our admin site
    "unfold.contrib.filters",
    "unfold.contrib.simple_history",
    "config.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "django_htmx",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_beat",
    "simple_history",
    "django_structlog",
    "django_prometheus",
    "system",
    "accounts",
    "sso",
    "tableapi",
    "collections_app",
    "workspace",
    "config.apps.ConfigConfig",
]

MIDDLEWARE = [
    "system.http.middleware.RequestSteps",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "system.http.middleware.HostNames",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "system.http.middleware.ActingUser",
    "django.contrib.messages.middleware.MessageMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {"default": connections.database_entry(ENVIRONMENT.database_url or Postgres(DATA_FOLDER).url, PROCESS_TYPE)}
if ENVIRONMENT.database_replica_url:
    DATABASES["replica"] = connections.database_entry(
        ENVIRONMENT.database_replica_url, PROCESS_TYPE, "DATABASE_REPLICA_URL"
    )
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = ENVIRONMENT.redis_url or Valkey(DATA_FOLDER).url
# No cache: the theme would pickle search results and show them for five minutes, even after the user loses a role.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.authentication.PasswordBackend", "sso.backends.OidcBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "accounts.authentication.passwords.UserSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "accounts.authentication.passwords.MaximumLengthValidator"},
]
LOGIN_URL = reverse_lazy("login")

SESSION_ENGINE = "accounts.models.sessions"
SESSION_COOKIE_NAME = "servicebase_session"
SESSION_COOKIE_AGE = 60 * 60 * 12
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ENVIRONMENT.is_https
CSRF_COOKIE_NAME = "servicebase_csrf"
CSRF_FAILURE_VIEW = "system.http.error_responses.csrf_failure"
SECURE_HSTS_SECONDS = 60 * 60 * 24 * 365 if ENVIRONMENT.is_https else 0

LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "templates" / "static"]
WHITENOISE_USE_FINDERS = True  # no collectstatic step: files are served from where they are installed
WHITENOISE_AUTOREFRESH = False
WHITENOISE_MAX_AGE = 3600

# Limits of all requests except uploads, which have their own.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000
MAX_QUERY_STRING = 16 * 1024
BODY_DEADLINE_S = 60.0

# Path prefixes of the endpoints for programs, which accept no sessions and return errors as JSON.
STATELESS_PATHS = (
    "/rest/",
    "/v1/",
    "/api/now/",
    "/oauth_token.do",
    "/mcp",
    "/load_document_to_collection",
    "/load_text_to_collection",
    "/get_relevant_documents",
    "/get_content_by_tag",
    "/get_list_of_documents_names",
    "/get_list_of_collection",
    "/delete_document_from_collection",
    "/delete_collection",
)

_SMTP = urlsplit(ENVIRONMENT.smtp_url or "")
EMAIL_HOST = _SMTP.hostname or ""  # empty: no email is sent
EMAIL_PORT = _SMTP.port or (465 if _SMTP.scheme == "smtps" else 587)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_SMTP.username or ""), unquote(_SMTP.password or "")
EMAIL_USE_TLS, EMAIL_USE_SSL = _SMTP.scheme == "smtp", _SMTP.scheme == "smtps"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = ENVIRONMENT.email_from

ATTACHMENT_LIMIT = ENVIRONMENT.attachment_limit_mb * 1024 * 1024
IMPORT_LIMIT = ENVIRONMENT.import_limit_mb * 1024 * 1024
# The limits of document collections, sizes in bytes.
COLLECTIONS = {
    "file_limit": ENVIRONMENT.file_limit_mb * 1024 * 1024,
    "text_limit": ENVIRONMENT.text_limit_mb * 1024 * 1024,
    "wait_limit": ENVIRONMENT.wait_limit_mb * 1024 * 1024,
    "waiting_limit": ENVIRONMENT.waiting_limit,
    "max_pages": ENVIRONMENT.max_pages,
    "max_cells": ENVIRONMENT.max_cells,
    "max_characters": ENVIRONMENT.max_characters,
    "ocr_max_pages": ENVIRONMENT.ocr_max_pages,
    "metadata_limit": ENVIRONMENT.metadata_limit_kb * 1024,
}
OCR_LANGUAGES = ENVIRONMENT.ocr_languages

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.authentication.schemes.BearerAuthentication",
        "accounts.authentication.schemes.BasicAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["system.http.request_body.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "system.openapi.ServiceSchema",
    "EXCEPTION_HANDLER": "system.http.error_responses.exception_handler",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "system.http.error_responses.JsonOnlyNegotiation",
    "NON_FIELD_ERRORS_KEY": "",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Servicebase",
    "DESCRIPTION": (
        "The Servicebase API for records, document collections and your credentials.\n\n"
        "**To try an operation, create a key first**, or press *Authorize* and enter an access key or your login and "
        "password. Of these operations, only `/api/me` and `/api/collections` accept your browser session."
    ),
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/(rest/v1|api)",
    # The general part comes first, in the order of the README; the tables that the caller can see follow.
    "TAGS": [{"name": name} for name in ("Credentials", "Table API", "Document collections", "Collection management")],
    # The document has the tables that a signed-in caller can see; anonymous callers get the general part.
    "SERVE_AUTHENTICATION": [
        "accounts.authentication.schemes.BearerAuthentication",
        "accounts.authentication.schemes.BasicAuthentication",
        "accounts.authentication.schemes.BrowserSessionAuthentication",
    ],
    "SORT_OPERATIONS": False,  # in the order of the URL patterns
    "PREPROCESSING_HOOKS": ["system.openapi.strip_trailing_slashes", "tableapi.openapi.hooks.remove_table_views"],
    "POSTPROCESSING_HOOKS": ["tableapi.openapi.hooks.add_tables", "system.openapi.add_error_responses"],
}

if REDIS_URL.startswith("rediss://"):
    CELERY_BROKER_USE_SSL = {"ssl_cert_reqs": ssl.CERT_REQUIRED}  # the default would accept any certificate
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)

# Must run before any app creates a metric.
metric_files.install()
SIMPLE_HISTORY_REVERT_DISABLED = True
DJANGO_STRUCTLOG_CELERY_ENABLED = True
# Tasks log their results themselves.
DJANGO_STRUCTLOG_CELERY_TASK_START_LOG_LEVEL = logging.DEBUG
DJANGO_STRUCTLOG_CELERY_TASK_SUCCESS_LOG_LEVEL = logging.DEBUG
SILENCED_SYSTEM_CHECKS = [
    "auth.W004",  # login is unique by an index whose name the Table API reports
]

LOGGING = logs.logging_config(as_json=ENVIRONMENT.is_production)
logs.configure(as_json=ENVIRONMENT.is_production)

UNFOLD = {
    "SITE_TITLE": "Servicebase",
    "SITE_HEADER": "Servicebase",
    "SITE_SUBHEADER": "Administration",
    "SITE_ICON": lambda request: static("servicebase/logo.svg"),
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("servicebase/logo.svg")}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "DASHBOARD_CALLBACK": "system.admin_site.dashboard.add_tiles",
    "STYLES": [
        lambda request: static("servicebase/shared.css"),
        lambda request: static("servicebase/admin.css"),
    ],
    "SCRIPTS": [
        lambda request: static("servicebase/shared.js"),
        lambda request: static("servicebase/admin.js"),
        lambda request: static("servicebase/workspace/palette.js"),
    ],
    "THEME": "system.admin_site.site.theme_of_reader",
    # Those of shared.css.
    "COLORS": {
        "base": {
            "50": "#f5f7f7", "100": "#edf1f0", "200": "#d9e1e0", "300": "#c3cfcd", "400": "#9db0ae",
            "500": "#5f7371", "600": "#566967", "700": "#3d4b49", "800": "#2e3b39", "900": "#18211f", "950": "#101716",
        },
        "primary": {
            "50": "#effaf8", "100": "#d7f2ed", "200": "#b1e4dc", "300": "#80cfc5", "400": "#4db3a8",
            "500": "#4db3a8", "600": "#20706a", "700": "#185853", "800": "#1d4f4b", "900": "#1b423f", "950": "#0a2725",
        }
    },
    "SIDEBAR": {"navigation": "system.admin_site.dashboard.sidebar"},
}  # fmt: skip

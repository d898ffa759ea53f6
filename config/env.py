"""The environment: every variable the product reads, with its type and default. The settings page describes them.

Standard library only, because the supervisor reads it before anything else is loaded.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from config import env_parsers as parsers
from config.env_parsers import Network

ROOT = Path(__file__).resolve().parent.parent


class ConfigurationError(Exception):
    """A variable is missing or invalid; the message says what to do."""


def variable(name: str, default: Any = None, parse: Callable[[str], Any] = str, *, is_secret: bool = False) -> Any:
    """Define a variable. A secret can also be read from a file whose path is in NAME_FILE."""
    return field(default=default, repr=not is_secret, metadata={"name": name, "parse": parse, "is_secret": is_secret})


@dataclass(frozen=True)
class Environment:
    """See docs/reference/settings.md for the meaning of each variable."""

    env: str = variable("SVC_ENV", "development", parsers.one_of("development", "production"))
    host: str = variable("SVC_HOST", "127.0.0.1")
    port: int = variable("SVC_PORT", 8000, parsers.integer(1, 65535))
    base_url: str | None = variable("SVC_BASE_URL", parse=parsers.base_url)
    tls_cert: Path | None = variable("SVC_TLS_CERT", parse=parsers.existing_file)
    tls_key: Path | None = variable("SVC_TLS_KEY", parse=parsers.existing_file)
    trusted_proxies: tuple[Network, ...] = variable("SVC_TRUSTED_PROXIES", (), parsers.networks)
    data_dir: Path = variable("SVC_DATA_DIR", ROOT / "var", parsers.folder)
    web_processes: int = variable("SVC_WEB_PROCESSES", 2, parsers.integer(1, 64))
    admin_login: str = variable("SVC_ADMIN_LOGIN", "admin")
    admin_password: str | None = variable("SVC_ADMIN_PASSWORD", is_secret=True)
    demo: bool | None = variable("SVC_DEMO", parse=parsers.boolean)
    allow_embedded: bool = variable("SVC_ALLOW_EMBEDDED", False, parsers.boolean)
    # Fernet keys, newest first.
    secret_keys: tuple[str, ...] = variable("SVC_SECRET_KEYS", (), parsers.word_list, is_secret=True)
    allow_http_idp: bool | None = variable("SVC_ALLOW_HTTP_IDP", parse=parsers.boolean)
    private_idp: bool = variable("SVC_PRIVATE_IDP", True, parsers.boolean)
    private_webhooks: bool = variable("SVC_PRIVATE_WEBHOOKS", False, parsers.boolean)
    private_web_pages: tuple[Network, ...] = variable("SVC_PRIVATE_WEB_PAGES", (), parsers.networks)
    ca_bundle: Path | None = variable("SVC_CA_BUNDLE", parse=parsers.existing_file)
    secret_key: str | None = variable("SECRET_KEY", is_secret=True)
    debug: bool = variable("DEBUG", False, parsers.boolean)
    allowed_hosts: tuple[str, ...] = variable("ALLOWED_HOSTS", (), parsers.word_list)
    database_url: str | None = variable("DATABASE_URL", parse=parsers.postgres_url, is_secret=True)
    postgres_sizes: tuple[str, ...] = variable("SVC_POSTGRES_SIZES", (), parsers.postgres_sizes)
    database_replica_url: str | None = variable("DATABASE_REPLICA_URL", parse=parsers.postgres_url, is_secret=True)
    redis_url: str | None = variable("REDIS_URL", parse=parsers.redis_url, is_secret=True)
    file_limit_mb: int = variable("SVC_FILE_LIMIT_MB", 32, parsers.integer(1, 1024))
    smtp_url: str | None = variable("SVC_SMTP_URL", parse=parsers.smtp_url, is_secret=True)
    email_from: str = variable("SVC_EMAIL_FROM", "servicebase@localhost")
    attachment_limit_mb: int = variable("SVC_ATTACHMENT_LIMIT_MB", 50, parsers.integer(1, 1024))
    import_limit_mb: int = variable("SVC_IMPORT_LIMIT_MB", 200, parsers.integer(1, 4096))
    text_limit_mb: int = variable("SVC_TEXT_LIMIT_MB", 10, parsers.integer(1, 100))
    wait_limit_mb: int = variable("SVC_WAIT_LIMIT_MB", 2, parsers.integer(0, 100))
    waiting_limit: int = variable("SVC_WAITING_LIMIT", 10_000, parsers.integer(1, 1_000_000))
    max_pages: int = variable("SVC_MAX_PAGES", 5_000, parsers.integer(1, 100_000))
    max_cells: int = variable("SVC_MAX_CELLS", 500_000, parsers.integer(1, 10_000_000))
    max_characters: int = variable("SVC_MAX_CHARACTERS", 20_000_000, parsers.integer(1_000, 100_000_000))
    ocr_languages: tuple[str, ...] = variable("SVC_OCR_LANGUAGES", (), parsers.ocr_languages)
    ocr_max_pages: int = variable("SVC_OCR_MAX_PAGES", 200, parsers.integer(0, 100_000))
    metadata_limit_kb: int = variable("SVC_METADATA_LIMIT_KB", 16, parsers.integer(1, 1024))
    watch_dirs: tuple[Path, ...] = variable("SVC_WATCH_DIRS", (), parsers.folders)
    openai_api_key: str | None = variable("OPENAI_API_KEY", is_secret=True)
    openai_base_url: str | None = variable("OPENAI_BASE_URL", parse=parsers.provider_url)
    embedding_provider: str = variable("SVC_EMBEDDING_PROVIDER", "local", parsers.one_of("local", "openai"))
    embedding_model: str | None = variable("SVC_EMBEDDING_MODEL")
    # A vector must fit into one database page.
    embedding_dimensions: int | None = variable("SVC_EMBEDDING_DIMENSIONS", parse=parsers.integer(1, 3900))
    embedding_batch: int = variable("SVC_EMBEDDING_BATCH", 64, parsers.integer(1, 2048))
    embedding_concurrency: int = variable("SVC_EMBEDDING_CONCURRENCY", 4, parsers.integer(1, 64))

    rerank_url: str | None = variable("SVC_RERANK_URL", parse=parsers.provider_url)
    rerank_model: str | None = variable("SVC_RERANK_MODEL")
    rerank_api_key: str | None = variable("SVC_RERANK_API_KEY", is_secret=True)

    @property
    def is_production(self) -> bool:
        return self.env == "production"

    @property
    def wants_demo(self) -> bool:
        return not self.is_production if self.demo is None else self.demo

    @property
    def allows_http_idp(self) -> bool:
        """By default only on this machine, so that `./run demo-idp` needs no setting.

        >>> [Environment(**values).allows_http_idp for values in ({}, {"host": "0.0.0.0"}, {"env": "production"})]
        [True, False, False]
        """
        if self.allow_http_idp is not None:
            return self.allow_http_idp
        is_own_machine = self.host in ("127.0.0.1", "::1", "localhost")
        return is_own_machine and not (self.is_production or self.base_url or self.trusted_proxies)

    @property
    def is_https(self) -> bool:
        return self.base_url.startswith("https://") if self.base_url else self.tls_cert is not None

    @property
    def local_url(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        host = f"[{host}]" if ":" in host else host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"


def read(environ: Mapping[str, str]) -> Environment:
    """Read all variables. An error names the first invalid one, with its value unless it is a secret.

    >>> read({"SVC_PORT": "9000"}).port
    9000
    >>> read({"SVC_PORT": "many"})
    Traceback (most recent call last):
    config.env.ConfigurationError: SVC_PORT must be a whole number from 1 to 65535, but it is 'many'.
    """
    values: dict[str, Any] = {}
    for row in fields(Environment):
        name, is_secret = row.metadata["name"], row.metadata["is_secret"]
        value = read_value(environ, name, is_secret=is_secret)
        if value is None:
            continue
        try:
            values[row.name] = row.metadata["parse"](value)
        except ValueError as error:
            actual = "" if is_secret else f", but it is {value!r}"
            raise ConfigurationError(f"{name} {error}{actual}.") from None
    environment = Environment(**values)
    if (environment.tls_cert is None) != (environment.tls_key is None):
        raise ConfigurationError("Set SVC_TLS_CERT and SVC_TLS_KEY together.")
    urls = {
        ("OPENAI_BASE_URL", "OPENAI_API_KEY"): environment.openai_base_url,
        ("SVC_RERANK_URL", "SVC_RERANK_API_KEY"): environment.rerank_url,
    }
    for (name, key), url in urls.items():
        if "@" in urlsplit(url or "").netloc:  # a parser's error would repeat the value
            raise ConfigurationError(f"{name} must not contain a login or password. Set the key in {key}.")
    if environment.embedding_provider == "openai":
        if environment.embedding_model is None:
            raise ConfigurationError("SVC_EMBEDDING_PROVIDER=openai requires SVC_EMBEDDING_MODEL.")
        if environment.openai_base_url is None and environment.openai_api_key is None:
            raise ConfigurationError("SVC_EMBEDDING_PROVIDER=openai requires OPENAI_BASE_URL or OPENAI_API_KEY.")
    return environment


def read_value(environ: Mapping[str, str], name: str, *, is_secret: bool) -> str | None:
    """The text of a variable, or of the file whose path is in NAME_FILE; empty means not set."""
    value = environ.get(name, "").strip()
    path = environ.get(f"{name}_FILE", "").strip() if is_secret else ""
    if value and path:
        raise ConfigurationError(f"Set either {name} or {name}_FILE, not both.")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            raise ConfigurationError(f"The file set in {name}_FILE cannot be read: {path}") from None
    return value or None


def read_dotenv(path: Path) -> dict[str, str]:
    """The NAME=value lines of a .env file. Quotes around a value are removed; # starts a comment line."""
    if not path.is_file():
        return {}
    variables: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.strip().isidentifier():
            raise ConfigurationError(f"Line {number} of {path.name} is not of the form NAME=value.")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        variables[name.strip()] = value
    return variables


def secret_names() -> list[str]:
    """The names of secret variables, and of the variables with the paths of secret files."""
    names = [row.metadata["name"] for row in fields(Environment) if row.metadata["is_secret"]]
    return [*names, *(f"{name}_FILE" for name in names)]


def current() -> Environment:
    """The environment of this process, completed by the .env file."""
    return read({**read_dotenv(ROOT / ".env"), **os.environ})

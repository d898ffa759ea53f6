"""The environment: every variable the product reads, with its type, default and description.

Standard library only, because the supervisor reads it before anything else is loaded.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from config import env_parsers as parsers
from config.env_files import ConfigurationError as ConfigurationError
from config.env_files import read_dotenv, read_value
from config.env_parsers import Network

ROOT = Path(__file__).resolve().parent.parent


def variable(
    name: str, description: str, default: Any = None, parse: Callable[[str], Any] = str, *, is_secret: bool = False
) -> Any:
    """Define a variable. A secret can also be read from a file whose path is in NAME_FILE."""
    metadata = {"name": name, "parse": parse, "description": description, "is_secret": is_secret}
    return field(default=default, repr=not is_secret, metadata=metadata)


@dataclass(frozen=True)
class Environment:
    env: str = variable(
        "SVC_ENV", "`development` or `production`.", "development", parsers.one_of("development", "production")
    )
    host: str = variable(
        "SVC_HOST", "IP address that the web server listens on. Use 0.0.0.0 for all interfaces.", "127.0.0.1"
    )
    port: int = variable("SVC_PORT", "Port that the web server listens on.", 8000, parsers.integer(1, 65535))
    base_url: str | None = variable(
        "SVC_BASE_URL",
        "Public URL of the service, such as https://service.example.com. Used in links and in the "
        "`Location` header. If it begins with https, cookies are `Secure`. Default: the host of the request.",
        parse=parsers.base_url,
    )
    tls_cert: Path | None = variable(
        "SVC_TLS_CERT", "Certificate file. If set, the web server uses https.", parse=parsers.existing_file
    )
    tls_key: Path | None = variable("SVC_TLS_KEY", "Private key file for SVC_TLS_CERT.", parse=parsers.existing_file)
    trusted_proxies: tuple[Network, ...] = variable(
        "SVC_TRUSTED_PROXIES",
        "IP addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted.",
        (),
        parsers.networks,
    )
    data_dir: Path = variable(
        "SVC_DATA_DIR", "Folder for generated secrets and data of the embedded servers.", ROOT / "var", parsers.folder
    )
    web_processes: int = variable(
        "SVC_WEB_PROCESSES", "Number of web server processes. Each has four threads.", 2, parsers.integer(1, 64)
    )
    admin_login: str = variable("SVC_ADMIN_LOGIN", "Login of the administrator that the first start creates.", "admin")
    admin_password: str | None = variable(
        "SVC_ADMIN_PASSWORD",
        "Initial password of the administrator. Later changes have no effect. Default: a random one, which is printed.",
        is_secret=True,
    )
    demo: bool | None = variable(
        "SVC_DEMO", "1 adds demo users and data. Default: 0 in production, otherwise 1.", parse=parsers.boolean
    )
    allow_embedded: bool = variable(
        "SVC_ALLOW_EMBEDDED", "1 allows the embedded PostgreSQL and Valkey in production.", False, parsers.boolean
    )
    secret_keys: tuple[str, ...] = variable(
        "SVC_SECRET_KEYS",
        "Comma-separated Fernet keys that encrypt stored secrets, newest first. In development, a key is generated and "
        "stored in the data folder.",
        (),
        parsers.word_list,
        is_secret=True,
    )
    allow_http_idp: bool | None = variable(
        "SVC_ALLOW_HTTP_IDP",
        "For development: 1 allows identity providers that use http or a loopback address. Refused in production. "
        "Default: 1 in development, if the service listens on a loopback address and SVC_BASE_URL and "
        "SVC_TRUSTED_PROXIES are not set. Otherwise 0.",
        parse=parsers.boolean,
    )
    private_idp: bool = variable(
        "SVC_PRIVATE_IDP",
        "0 refuses identity providers in private networks, such as 10.0.0.0/8.",
        True,
        parsers.boolean,
    )
    ca_bundle: Path | None = variable(
        "SVC_CA_BUNDLE", "PEM file with extra certificate authorities for outbound calls.", parse=parsers.existing_file
    )
    secret_key: str | None = variable(
        "SECRET_KEY",
        "Key that signs sessions and links. In development, one is generated and stored in the data folder.",
        is_secret=True,
    )
    debug: bool = variable("DEBUG", "1 shows Django's debug pages. Refused in production.", False, parsers.boolean)
    allowed_hosts: tuple[str, ...] = variable(
        "ALLOWED_HOSTS",
        "Comma-separated host names under which the service accepts requests. Default: the host of SVC_BASE_URL, "
        "SVC_HOST and, in development, the names of this machine.",
        (),
        parsers.word_list,
    )
    database_url: str | None = variable(
        "DATABASE_URL",
        "URL of a PostgreSQL server to use instead of the embedded one: version 17 or newer, with pgvector.",
        parse=parsers.postgres_url,
        is_secret=True,
    )
    postgres_sizes: tuple[str, ...] = variable(
        "SVC_POSTGRES_SIZES",
        "Memory and disk settings of the embedded PostgreSQL, such as shared_buffers=2GB,work_mem=64MB. Default: "
        "sizes that fit the memory and the disk of the machine.",
        (),
        parsers.postgres_sizes,
    )
    database_replica_url: str | None = variable(
        "DATABASE_REPLICA_URL",
        "URL of a read replica. It is used only for reads that request it.",
        parse=parsers.postgres_url,
        is_secret=True,
    )
    redis_url: str | None = variable(
        "REDIS_URL",
        "URL of a Valkey or Redis server to use instead of the embedded one.",
        parse=parsers.redis_url,
        is_secret=True,
    )
    file_limit_mb: int = variable(
        "SVC_FILE_LIMIT_MB", "Maximum size of a document, in MB.", 32, parsers.integer(1, 1024)
    )
    smtp_url: str | None = variable(
        "SVC_SMTP_URL",
        "Mail server for notifications: smtp://user:password@host:587 (STARTTLS), smtps://… (TLS) or "
        "smtp+plain://… (unencrypted). Without it, no email is sent.",
        parse=parsers.smtp_url,
        is_secret=True,
    )
    email_from: str = variable("SVC_EMAIL_FROM", "Sender address of notification emails.", "servicebase@localhost")
    attachment_limit_mb: int = variable(
        "SVC_ATTACHMENT_LIMIT_MB", "Maximum size of an attachment of a record, in MB.", 50, parsers.integer(1, 1024)
    )
    import_limit_mb: int = variable(
        "SVC_IMPORT_LIMIT_MB", "Maximum size of a file to import, in MB.", 200, parsers.integer(1, 4096)
    )
    text_limit_mb: int = variable(
        "SVC_TEXT_LIMIT_MB", "Maximum size of a text that is loaded without a file, in MB.", 10, parsers.integer(1, 100)
    )
    wait_limit_mb: int = variable(
        "SVC_WAIT_LIMIT_MB",
        "Maximum size, in MB, of documents processed before the load returns. The worker processes larger ones.",
        2,
        parsers.integer(0, 100),
    )
    waiting_limit: int = variable(
        "SVC_WAITING_LIMIT",
        "Maximum number of queued documents per caller. Further loads return 429.",
        10_000,
        parsers.integer(1, 1_000_000),
    )
    max_pages: int = variable(
        "SVC_MAX_PAGES", "Maximum number of pages in a document.", 5_000, parsers.integer(1, 100_000)
    )
    max_cells: int = variable(
        "SVC_MAX_CELLS", "Maximum number of cells in a spreadsheet.", 500_000, parsers.integer(1, 10_000_000)
    )
    max_characters: int = variable(
        "SVC_MAX_CHARACTERS",
        "Maximum number of characters in a document.",
        20_000_000,
        parsers.integer(1_000, 100_000_000),
    )
    metadata_limit_kb: int = variable(
        "SVC_METADATA_LIMIT_KB",
        "Maximum size of the metadata of a document, in KB of JSON.",
        16,
        parsers.integer(1, 1024),
    )
    openai_api_key: str | None = variable(
        "OPENAI_API_KEY", "API key of an embedding provider with an OpenAI-compatible API.", is_secret=True
    )
    openai_base_url: str | None = variable(
        "OPENAI_BASE_URL", "URL of the embedding API, such as http://127.0.0.1:11434/v1.", parse=parsers.provider_url
    )
    embedding_provider: str = variable(
        "SVC_EMBEDDING_PROVIDER",
        "Embedding provider of new document collections: `local`, a model included in the product, or `openai`, "
        "a provider with an OpenAI-compatible API.",
        "local",
        parsers.one_of("local", "openai"),
    )
    embedding_model: str | None = variable(
        "SVC_EMBEDDING_MODEL", "Name of the embedding model. Required with `openai`. `local` has a default."
    )
    embedding_dimensions: int | None = variable(
        "SVC_EMBEDDING_DIMENSIONS",
        "Number of dimensions requested from an `openai` provider, 1 to 3900. Default: that of the model.",
        parse=parsers.integer(1, 3900),  # a vector must fit into one database page
    )
    embedding_batch: int = variable(
        "SVC_EMBEDDING_BATCH",
        "Maximum number of texts per request to an `openai` provider, 1 to 2048.",
        64,
        parsers.integer(1, 2048),
    )
    embedding_concurrency: int = variable(
        "SVC_EMBEDDING_CONCURRENCY",
        "Maximum number of concurrent requests per process that embed documents with an `openai` provider.",
        4,
        parsers.integer(1, 64),
    )

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
    config.env_files.ConfigurationError: SVC_PORT must be a whole number from 1 to 65535, but it is 'many'.
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
    if "@" in urlsplit(environment.openai_base_url or "").netloc:  # a parser's error would repeat the value
        raise ConfigurationError("OPENAI_BASE_URL must not contain a login or password. Set the key in OPENAI_API_KEY.")
    if environment.embedding_provider == "openai":
        if environment.embedding_model is None:
            raise ConfigurationError("SVC_EMBEDDING_PROVIDER=openai requires SVC_EMBEDDING_MODEL.")
        if environment.openai_base_url is None and environment.openai_api_key is None:
            raise ConfigurationError("SVC_EMBEDDING_PROVIDER=openai requires OPENAI_BASE_URL or OPENAI_API_KEY.")
    return environment


def secret_names() -> list[str]:
    """The names of secret variables, and of the variables with the paths of secret files."""
    names = [row.metadata["name"] for row in fields(Environment) if row.metadata["is_secret"]]
    return [*names, *(f"{name}_FILE" for name in names)]


def current() -> Environment:
    """The environment of this process, completed by the .env file."""
    return read({**read_dotenv(ROOT / ".env"), **os.environ})

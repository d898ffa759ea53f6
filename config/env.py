"""The environment: every variable the product reads, with its type, default and description.

Standard library only, because the supervisor reads it before anything else is loaded.
"""

import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ConfigurationError(Exception):
    """A variable is missing or wrong; the text is one sentence that says what to do."""


def text(value: str) -> str:
    return value


def boolean(value: str) -> bool:
    """
    >>> boolean("1"), boolean("false")
    (True, False)
    """
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if value.lower() not in words:
        raise ValueError("must be 1 or 0")
    return words[value.lower()]


def port(value: str) -> int:
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= 65535:
        raise ValueError("must be a whole number from 1 to 65535")
    return int(value)


def count(value: str) -> int:
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= 64:
        raise ValueError("must be a whole number from 1 to 64")
    return int(value)


def whole(least: int, most: int) -> Callable[[str], int]:
    """
    >>> whole(1, 1024)("32")
    32
    """

    def reading(value: str) -> int:
        if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    return reading


def batch(value: str) -> int:
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= 2048:
        raise ValueError("must be a whole number from 1 to 2048")
    return int(value)


def dimensions(value: str) -> int:
    # A vector lies beside its row, in one page of the database.
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= 3900:
        raise ValueError("must be a whole number from 1 to 3900")
    return int(value)


def embedding_provider(value: str) -> str:
    if value not in ("local", "openai"):
        raise ValueError("must be local or openai")
    return value


def provider_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be an address such as http://127.0.0.1:11434/v1")
    return value.rstrip("/")


def folder(value: str) -> Path:
    return Path(value).expanduser().absolute()


def existing_file(value: str) -> Path:
    path = folder(value)
    if not path.is_file():
        raise ValueError("must name a file that exists")
    return path


def words(value: str) -> tuple[str, ...]:
    """
    >>> words("a, b,")
    ('a', 'b')
    """
    return tuple(word.strip() for word in value.split(",") if word.strip())


def networks(value: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(word, strict=False) for word in words(value))
    except ValueError:
        raise ValueError("must be addresses or networks such as 10.0.0.0/8, separated by commas") from None


def environment_name(value: str) -> str:
    if value not in ("development", "production"):
        raise ValueError("must be development or production")
    return value


def base_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
        raise ValueError("must be an address without a path, such as https://service.example.com")
    return value.rstrip("/")


def postgres_url(value: str) -> str:
    # Not taken apart here: what urlsplit says about a wrong one can quote the password.
    if not value.startswith(("postgres://", "postgresql://")):
        raise ValueError("must begin with postgresql://, such as postgresql://user:password@host:5432/servicebase")
    return value


def redis_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_right = parts.scheme == "unix" or (
            parts.scheme in ("redis", "rediss")
            and parts.port != 0  # reading it raises ValueError when it is no number
            and (parts.path.strip("/") or "0").isdigit()
        )
    except ValueError:  # its text can quote the password
        is_right = False
    if not is_right:
        raise ValueError("must be redis://host:6379/0, rediss://… or unix:///path")
    return value


def variable(name: str, read: Callable[[str], Any], default: Any, about: str, *, secret: bool = False) -> Any:
    """One row of the table below; a secret may also come from the file that NAME_FILE names."""
    return field(
        default=default, repr=not secret, metadata={"name": name, "read": read, "about": about, "secret": secret}
    )


@dataclass(frozen=True)
class Environment:
    """Every variable, as typed values."""

    env: str = variable("SVC_ENV", environment_name, "development", "`development` or `production`.")
    host: str = variable(
        "SVC_HOST", text, "127.0.0.1", "Address the web server listens on; 0.0.0.0 for all interfaces."
    )
    port: int = variable("SVC_PORT", port, 8000, "Port the web server listens on.")
    base_url: str | None = variable(
        "SVC_BASE_URL",
        base_url,
        None,
        "Public address of the service, such as https://service.example.com. Used for links and `Location`; with "
        "https, cookies are Secure. Default: the host of the request.",
    )
    tls_cert: Path | None = variable(
        "SVC_TLS_CERT", existing_file, None, "Certificate file; makes the web server use https."
    )
    tls_key: Path | None = variable("SVC_TLS_KEY", existing_file, None, "Private key file for SVC_TLS_CERT.")
    trusted_proxies: tuple[Network, ...] = variable(
        "SVC_TRUSTED_PROXIES",
        networks,
        (),
        "Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted.",
    )
    data_dir: Path = variable(
        "SVC_DATA_DIR", folder, ROOT / "var", "Data folder, with all data of the embedded servers."
    )
    web_processes: int = variable(
        "SVC_WEB_PROCESSES", count, 2, "Number of web server processes; each has four threads."
    )
    admin_login: str = variable(
        "SVC_ADMIN_LOGIN", text, "admin", "Login of the administrator that the first start creates."
    )
    admin_password: str | None = variable(
        "SVC_ADMIN_PASSWORD",
        text,
        None,
        "Password of that administrator, used only to create the account. Default: a random one, which is printed.",
        secret=True,
    )
    demo: bool | None = variable("SVC_DEMO", boolean, None, "1 adds demo users and data. Default: 1, in production 0.")
    allow_embedded: bool = variable(
        "SVC_ALLOW_EMBEDDED", boolean, False, "1 allows the embedded PostgreSQL and Valkey in production."
    )
    secret_keys: tuple[str, ...] = variable(
        "SVC_SECRET_KEYS",
        words,
        (),
        "Fernet keys that encrypt stored secrets, newest first, separated by commas. In development one is generated "
        "and kept in the data folder.",
        secret=True,
    )
    allow_http_idp: bool | None = variable(
        "SVC_ALLOW_HTTP_IDP",
        boolean,
        None,
        "1 allows identity providers over http and on loopback addresses, for development; refused in production. "
        "Default: 1 if the service is not in production, listens on a loopback address, and neither SVC_BASE_URL nor "
        "SVC_TRUSTED_PROXIES is set; otherwise 0.",
    )
    private_idp: bool = variable(
        "SVC_PRIVATE_IDP", boolean, True, "0 refuses identity providers in private networks (10.0.0.0/8 and others)."
    )
    ca_bundle: Path | None = variable(
        "SVC_CA_BUNDLE", existing_file, None, "File of additional certificate authorities for outbound calls."
    )
    secret_key: str | None = variable(
        "SECRET_KEY",
        text,
        None,
        "Signs sessions and links. In development one is generated and kept in the data folder.",
        secret=True,
    )
    debug: bool = variable("DEBUG", boolean, False, "1 shows Django's own error pages. Refused in production.")
    allowed_hosts: tuple[str, ...] = variable(
        "ALLOWED_HOSTS",
        words,
        (),
        "Host names the service answers to, separated by commas. Default: the host of SVC_BASE_URL, SVC_HOST and, in "
        "development, this machine's own names.",
    )
    database_url: str | None = variable(
        "DATABASE_URL",
        postgres_url,
        None,
        "PostgreSQL 17 or newer with pgvector, instead of the embedded one.",
        secret=True,
    )
    database_replica_url: str | None = variable(
        "DATABASE_REPLICA_URL", postgres_url, None, "A replica for reads that request it.", secret=True
    )
    redis_url: str | None = variable(
        "REDIS_URL", redis_url, None, "Valkey or Redis, instead of the embedded one.", secret=True
    )
    file_limit_mb: int = variable("SVC_FILE_LIMIT_MB", whole(1, 1024), 32, "Maximum size of a file, in MB.")
    text_limit_mb: int = variable(
        "SVC_TEXT_LIMIT_MB", whole(1, 100), 10, "Maximum size of a text that is loaded without a file, in MB."
    )
    wait_limit_mb: int = variable(
        "SVC_WAIT_LIMIT_MB",
        whole(0, 100),
        2,
        "Documents up to this size, in MB, are searchable when the load returns; larger ones go to the worker.",
    )
    waiting_limit: int = variable(
        "SVC_WAITING_LIMIT",
        whole(1, 1_000_000),
        10_000,
        "Maximum number of queued documents per caller; further loads return 429.",
    )
    max_pages: int = variable("SVC_MAX_PAGES", whole(1, 100_000), 5_000, "Maximum number of pages in a document.")
    max_cells: int = variable(
        "SVC_MAX_CELLS", whole(1, 10_000_000), 500_000, "Maximum number of cells in a spreadsheet."
    )
    max_characters: int = variable(
        "SVC_MAX_CHARACTERS",
        whole(1_000, 100_000_000),
        20_000_000,
        "Maximum number of characters in a document.",
    )
    metadata_limit_kb: int = variable(
        "SVC_METADATA_LIMIT_KB", whole(1, 1024), 16, "Maximum size of the metadata of a document, in KB of JSON."
    )
    openai_api_key: str | None = variable(
        "OPENAI_API_KEY", text, None, "API key of an embedding provider with an OpenAI-compatible API.", secret=True
    )
    openai_base_url: str | None = variable(
        "OPENAI_BASE_URL",
        provider_url,
        None,
        "Address of that provider, such as http://127.0.0.1:11434/v1.",
    )
    embedding_provider: str = variable(
        "SVC_EMBEDDING_PROVIDER",
        embedding_provider,
        "local",
        "Embedding provider of new document collections: `local`, a model that comes with the product, or `openai`, "
        "a provider with an OpenAI-compatible API.",
    )
    embedding_model: str | None = variable(
        "SVC_EMBEDDING_MODEL", text, None, "Name of the embedding model. Required with `openai`; `local` has a default."
    )
    embedding_dimensions: int | None = variable(
        "SVC_EMBEDDING_DIMENSIONS",
        dimensions,
        None,
        "Dimensions requested from an `openai` provider, 1 to 3900. Default: those of the model.",
    )
    embedding_batch: int = variable(
        "SVC_EMBEDDING_BATCH", batch, 64, "Texts per request to an `openai` provider, 1 to 2048."
    )
    embedding_concurrency: int = variable(
        "SVC_EMBEDDING_CONCURRENCY", count, 4, "Concurrent requests of one process to that provider."
    )

    @property
    def is_production(self) -> bool:
        return self.env == "production"

    @property
    def wants_demo(self) -> bool:
        return not self.is_production if self.demo is None else self.demo

    @property
    def lets_http_idp(self) -> bool:
        """A first look with `./run demo-idp` needs nothing set; whoever lets others in has left this default.

        >>> [Environment(**given).lets_http_idp for given in ({}, {"host": "0.0.0.0"}, {"env": "production"})]
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
        """Where a person on this machine opens the service."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        host = f"[{host}]" if ":" in host else host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"


def read_value(environ: Mapping[str, str], name: str, *, secret: bool) -> str | None:
    """The text of a variable, or of the file that NAME_FILE names; an empty one counts as not set."""
    given = environ.get(name, "").strip()
    path = environ.get(f"{name}_FILE", "").strip() if secret else ""
    if given and path:
        raise ConfigurationError(f"Set either {name} or {name}_FILE, not both.")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            raise ConfigurationError(f"{name}_FILE names a file that cannot be read: {path}") from None
    return given or None


def read(environ: Mapping[str, str]) -> Environment:
    """All variables as typed values; the first wrong one is named, its value only when it is no secret.

    >>> read({"SVC_PORT": "9000"}).port
    9000
    >>> read({"SVC_PORT": "many"})
    Traceback (most recent call last):
    config.env.ConfigurationError: SVC_PORT must be a whole number from 1 to 65535, but it is 'many'.
    """
    values: dict[str, Any] = {}
    for row in fields(Environment):
        name, secret = row.metadata["name"], row.metadata["secret"]
        given = read_value(environ, name, secret=secret)
        if given is None:
            continue
        try:
            values[row.name] = row.metadata["read"](given)
        except ValueError as error:
            seen = "" if secret else f", but it is {given!r}"
            raise ConfigurationError(f"{name} {error}{seen}.") from None
    found = Environment(**values)
    if (found.tls_cert is None) != (found.tls_key is None):
        raise ConfigurationError("Set SVC_TLS_CERT and SVC_TLS_KEY together.")
    if "@" in urlsplit(found.openai_base_url or "").netloc:  # said here, where the value is not repeated
        raise ConfigurationError("OPENAI_BASE_URL must hold no login and password; the key goes into OPENAI_API_KEY.")
    if found.embedding_provider == "openai":
        if found.embedding_model is None:
            raise ConfigurationError("SVC_EMBEDDING_PROVIDER=openai needs the name of a model in SVC_EMBEDDING_MODEL.")
        if found.openai_base_url is None and found.openai_api_key is None:
            raise ConfigurationError("SVC_EMBEDDING_PROVIDER=openai needs OPENAI_BASE_URL or OPENAI_API_KEY.")
    return found


def secret_names() -> list[str]:
    """Names of the variables that hold secrets, and of those that name their files."""
    names = [row.metadata["name"] for row in fields(Environment) if row.metadata["secret"]]
    return [*names, *(f"{name}_FILE" for name in names)]


def read_dotenv(path: Path) -> dict[str, str]:
    """NAME=value lines of a .env file; quotes around a value are taken off, # begins a comment line."""
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().isidentifier():
            raise ConfigurationError(f"Line {number} of {path.name} is not of the form NAME=value.")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name.strip()] = value
    return found


def current() -> Environment:
    """The environment of this process; the .env file fills in what the process was not given."""
    return read({**read_dotenv(ROOT / ".env"), **os.environ})


EXAMPLE_SECRETS = ("change-me", "changeme", "secret", "insecure", "example")


def is_weak(secret: str) -> bool:
    """
    >>> is_weak("change-me-please-this-is-long-enough"), is_weak("T8vYp2_qLr5xWn9cZk3mJd7hBf4gQs6aEu1oRi0t")
    (True, False)
    """
    lowered = secret.lower()
    return len(secret) < 32 or len(set(secret)) < 8 or any(word in lowered for word in EXAMPLE_SECRETS)


def refuse_unsafe_production(found: Environment) -> None:
    """Say what production must not be started with."""
    if not found.is_production:
        return
    reasons = {
        "DEBUG must be 0 in production.": found.debug,
        "SVC_ALLOW_HTTP_IDP is for development; take it out in production.": bool(found.allow_http_idp),
        "ALLOWED_HOSTS must name hosts in production, not *.": any("*" in host for host in found.allowed_hosts),
        "SVC_BASE_URL (or ALLOWED_HOSTS) must be set in production; without a name the service would answer nobody.": (
            not (found.base_url or found.allowed_hosts) and found.host in ("0.0.0.0", "::")
        ),
        "SECRET_KEY must be set to at least 32 random characters in production.": found.secret_key is None
        or is_weak(found.secret_key),
        "SVC_SECRET_KEYS must be set in production; make one with: "
        "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'": (
            not found.secret_keys
        ),
        "SVC_ADMIN_PASSWORD is one that everybody knows; choose another or leave it out.": (
            found.admin_password is not None and len(found.admin_password) < 10
        ),
        "DATABASE_URL and REDIS_URL must be set in production, or SVC_ALLOW_EMBEDDED=1.": not found.allow_embedded
        and (found.database_url is None or found.redis_url is None),
    }
    for sentence, holds in reasons.items():
        if holds:
            raise ConfigurationError(sentence)

"""Reads variables from the environment, secret files and the .env file. Standard library only."""

from collections.abc import Mapping
from pathlib import Path


class ConfigurationError(Exception):
    """A variable is missing or invalid; the message says what to do."""


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

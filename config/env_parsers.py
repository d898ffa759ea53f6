"""Parsers of environment variables. Each raises ValueError with a text such as "must be 1 or 0".

Standard library only.
"""

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# The settings of the embedded PostgreSQL that an administrator can choose.
SIZES = ("shared_buffers", "effective_cache_size", "work_mem", "maintenance_work_mem", "max_wal_size", "min_wal_size")
OCR_LANGUAGE_PATTERN = re.compile("[A-Za-z_]{1,30}")
POSTGRES_SIZE_PATTERN = re.compile(rf"({'|'.join(SIZES)})=[1-9][0-9]{{0,8}}(kB|MB|GB)")


def boolean(value: str) -> bool:
    """
    >>> boolean("1"), boolean("false")
    (True, False)
    """
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if value.lower() not in words:
        raise ValueError("must be 1 or 0")
    return words[value.lower()]


def integer(minimum: int, maximum: int) -> Callable[[str], int]:
    """A parser of whole numbers within these bounds.

    >>> integer(1, 1024)("32")
    32
    """

    def parse(value: str) -> int:
        if not value.isascii() or not value.isdigit() or not minimum <= int(value) <= maximum:
            raise ValueError(f"must be a whole number from {minimum} to {maximum}")
        return int(value)

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in words:
            raise ValueError(f"must be {' or '.join(words)}")
        return value

    return parse


def provider_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a URL such as http://127.0.0.1:11434/v1")
    return value.rstrip("/")


def folder(value: str) -> Path:
    return Path(value).expanduser().absolute()


def folders(value: str) -> tuple[Path, ...]:
    """
    >>> [str(path) for path in folders("/srv/handbooks, /mnt/share")]
    ['/srv/handbooks', '/mnt/share']
    """
    words = word_list(value)
    if not all(word.startswith("/") and ".." not in Path(word).parts for word in words):
        raise ValueError("must be absolute paths of folders, separated by commas")
    return tuple(Path(word) for word in words)


def existing_file(value: str) -> Path:
    path = folder(value)
    if not path.is_file():
        raise ValueError("must be the path of an existing file")
    return path


def word_list(value: str) -> tuple[str, ...]:
    """
    >>> word_list("a, b,")
    ('a', 'b')
    """
    return tuple(word.strip() for word in value.split(",") if word.strip())


def ocr_languages(value: str) -> tuple[str, ...]:
    """
    >>> ocr_languages("eng, chi_sim")
    ('eng', 'chi_sim')
    """
    words = word_list(value)
    if not all(OCR_LANGUAGE_PATTERN.fullmatch(word) for word in words):
        raise ValueError("must be languages of Tesseract, such as eng or chi_sim, separated by commas")
    return words


def postgres_sizes(value: str) -> tuple[str, ...]:
    """
    >>> postgres_sizes("shared_buffers=2GB, work_mem=64MB")
    ('shared_buffers=2GB', 'work_mem=64MB')
    """
    words = word_list(value)
    if not all(POSTGRES_SIZE_PATTERN.fullmatch(word) for word in words):
        raise ValueError(
            f"must be sizes such as work_mem=64MB, separated by commas, for the settings {', '.join(SIZES)}"
        )
    return words


def networks(value: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(word, strict=False) for word in word_list(value))
    except ValueError:
        raise ValueError("must be IP addresses or networks such as 10.0.0.0/8, separated by commas") from None


def base_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
        raise ValueError("must be a URL without a path, such as https://service.example.com")
    return value.rstrip("/")


def postgres_url(value: str) -> str:
    # Not parsed with urlsplit, because its error message can contain the password.
    if not value.startswith(("postgres://", "postgresql://")):
        raise ValueError("must begin with postgresql://, such as postgresql://user:password@host:5432/servicebase")
    return value


def smtp_url(value: str) -> str:
    with suppress(ValueError):  # the message can contain the password
        parts = urlsplit(value)
        if parts.scheme in ("smtp", "smtps", "smtp+plain") and parts.hostname and parts.port != 0:
            return value
    raise ValueError("must be smtp://user:password@host:587, smtps://… or smtp+plain://…")


def redis_url(value: str) -> str:
    with suppress(ValueError):  # the message can contain the password
        parts = urlsplit(value)
        if parts.scheme == "unix" or (
            parts.scheme in ("redis", "rediss")
            and parts.port != 0  # raises ValueError if it is not a number
            and (parts.path.strip("/") or "0").isdigit()
        ):
            return value
    raise ValueError("must be redis://host:6379/0, rediss://… or unix:///path")

"""System properties: their definitions, types and defaults; read by name."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import url_has_allowed_host_and_scheme

from system.process_cache import WeightedCache

# A change is in force everywhere within this time; in the process that made it, at once.
FRESH_FOR_S = 1.0
CACHE_BYTES = 4 * 1024 * 1024
PER_PROPERTY = 400


def as_text(value: str) -> str:
    return value


def as_boolean(value: str) -> bool:
    """
    >>> as_boolean("true"), as_boolean("0")
    (True, False)
    """
    if value.lower() not in ("true", "false", "1", "0"):
        raise ValueError("Enter true or false.")
    return value.lower() in ("true", "1")


def as_integer(value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise ValueError("Enter a whole number.")
    return int(value)


def as_list(value: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(",") if word.strip())


READERS: dict[str, Callable[[str], Any]] = {
    "string": as_text,
    "boolean": as_boolean,
    "integer": as_integer,
    "list": as_list,
}


def own_address(value: str) -> None:
    """A path of this service, or a full address of it: never another site's.

    An administrator of the sign-in connection must not be able to send visitors elsewhere.
    """
    base, parts = urlsplit(settings.BASE_URL or ""), urlsplit(value)
    is_own = parts.netloc == base.netloc if base.netloc else is_own_host(parts.hostname or "")
    own = {parts.netloc} if is_own else set()
    if not url_has_allowed_host_and_scheme(value, allowed_hosts=own, require_https=base.scheme == "https"):
        raise ValueError("Enter a path such as /account/, or an address of this service.")
    if not parts.netloc and not value.startswith("/"):
        raise ValueError("A path begins with a slash.")


def welcome_page(value: str) -> None:
    if any(character.isspace() or not character.isprintable() for character in value):
        raise ValueError("An address has no spaces in it; write %20 for one.")
    own_address(value)


def is_own_host(name: str) -> bool:
    return name in settings.ALLOWED_HOSTS or f"[{name}]" in settings.ALLOWED_HOSTS


@dataclass(frozen=True)
class Definition:
    """One property; `check` raises ValueError with a sentence for the administrator."""

    name: str
    type: str
    default: str
    description: str
    check: Callable[[str], None] = field(default=lambda value: None)

    def read(self, stored: str) -> Any:
        """The typed value; an empty or unreadable one gives the default."""
        reader = READERS[self.type]
        try:
            return reader(stored) if stored else reader(self.default)
        except ValueError:
            return reader(self.default)

    def normalise(self, given: str) -> str:
        """The text to store; ValueError says what is wrong with it."""
        given = given.strip()
        if given:
            READERS[self.type](given)
            self.check(given)
        return given


KNOWN: dict[str, Definition] = {}


def define(definition: Definition) -> Definition:
    """Make a property known; its row is made after the next migrate."""
    KNOWN[definition.name] = definition
    return definition


WELCOME_PAGE = define(
    Definition(
        "svc.welcome_page.url",
        "string",
        "",
        "Where an anonymous visitor of / is sent. Empty: to the sign-in page. An active single sign-on connection "
        "sets it to its Redirect URI.",
        welcome_page,
    )
)
CASE_SENSITIVE = define(
    Definition(
        "svc.login.username.sensitivity.enabled",
        "boolean",
        "true",
        "Whether the case of a login counts at sign-in: by password, by API and by single sign-on.",
    )
)
WYSIWYG_COLUMNS = define(
    Definition(
        "wysiwyg.columns.rest_api_json_mode",
        "list",
        "",
        "Ids of converted text columns that the Table API returns as HTML, separated by commas.",
    )
)

_read: WeightedCache[str, tuple[float, str]] = WeightedCache(
    "properties", limit=CACHE_BYTES, weigh=lambda name, entry: PER_PROPERTY + len(entry[1])
)


def get(definition: Definition) -> Any:
    """The typed value in force."""
    now = time.monotonic()
    entry = _read.get(definition.name)
    if entry is None or now - entry[0] > FRESH_FOR_S:
        entry = (now, stored(definition))
        _read.put(definition.name, entry)
    return definition.read(entry[1])


def stored(definition: Definition) -> str:
    """The text as it stands in the database now, for who is about to change it."""
    from system.models import Property  # its checks need the definitions above

    return Property.objects.filter(name=definition.name).values_list("value", flat=True).first() or ""


def put(definition: Definition, value: str) -> None:
    """Set a property, with its history; part of the caller's transaction."""
    from system.models import Property

    row = Property.objects.select_for_update().get(name=definition.name)
    row.value = definition.normalise(value)
    row.save()


def forget() -> None:
    """Read anew at the next `get`."""
    _read.clear()


def make_rows() -> None:
    """After a migrate: one row for each property, with today's description and default; values stay."""
    from system.models import Property

    for definition in KNOWN.values():
        row = Property.objects.filter(name=definition.name).first() or Property(name=definition.name)
        described = (definition.type, definition.description, definition.default)
        if row.is_new or (row.type, row.description, row.default_value) != described:
            row.type, row.description, row.default_value = described
            row.save()

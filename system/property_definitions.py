"""The definitions of system properties: types, defaults, checks, and the values cached in this process."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import url_has_allowed_host_and_scheme

from system.process_cache import WeightedCache

CACHE_LIMIT_BYTES = 4 * 1024 * 1024
PROPERTY_OVERHEAD_BYTES = 400
MAX_DAYS = 36_500
MAX_EXPORT_RECORDS = 999_999_999


def parse_boolean(value: str) -> bool:
    """
    >>> parse_boolean("true"), parse_boolean("0")
    (True, False)
    """
    if value.lower() not in ("true", "false", "1", "0"):
        raise ValueError("Enter true or false.")
    return value.lower() in ("true", "1")


def parse_integer(value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise ValueError("Enter a whole number.")
    return int(value)


def parse_list(value: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(",") if word.strip())


PARSERS: dict[str, Callable[[str], Any]] = {
    "string": str, "boolean": parse_boolean, "integer": parse_integer, "list": parse_list,
}  # fmt: skip


def check_own_url(value: str) -> None:
    """Refuse values that are neither a path nor a URL of this service.

    An administrator of the sign-in connection must not be able to redirect visitors to another site.
    """
    base, parts = urlsplit(settings.BASE_URL or ""), urlsplit(value)
    host_names = {parts.hostname or "", f"[{parts.hostname}]"}
    is_own_host = parts.netloc == base.netloc if base.netloc else not host_names.isdisjoint(settings.ALLOWED_HOSTS)
    allowed_hosts = {parts.netloc} if is_own_host else set()
    if not url_has_allowed_host_and_scheme(value, allowed_hosts=allowed_hosts, require_https=base.scheme == "https"):
        raise ValueError("Enter a path such as /account/, or a URL of this service.")
    if not parts.netloc and not value.startswith("/"):
        raise ValueError("The path must begin with a slash.")


def check_welcome_page(value: str) -> None:
    if any(character.isspace() or not character.isprintable() for character in value):
        raise ValueError("A URL cannot contain spaces or invisible characters. Write a space as %20.")
    check_own_url(value)


def check_export_records(value: str) -> None:
    if not 1 <= int(value) <= MAX_EXPORT_RECORDS:
        raise ValueError(f"Enter a number from 1 to {MAX_EXPORT_RECORDS:,}.")


def check_days(value: str) -> None:
    if int(value) > MAX_DAYS:
        raise ValueError(f"Enter a number from 0 to {MAX_DAYS:,}.")


def check_table_names(value: str) -> None:
    for pair in parse_list(value):
        if not re.fullmatch("[a-z][a-z0-9_]*=[a-z][a-z0-9_]*", pair):
            raise ValueError(f"Enter pairs such as sc_task=task instead of {pair[:80]}.")


def check_invalid_query(value: str) -> None:
    if value not in ("ignore", "no_rows", "error"):
        raise ValueError("Enter ignore, no_rows or error.")


@dataclass(frozen=True)
class PropertyDefinition:
    """A property; `check` raises ValueError with a message for the administrator."""

    name: str
    description: str
    type: str = "string"
    default: str = ""
    check: Callable[[str], None] = field(default=lambda value: None)

    def read(self, stored_text: str) -> Any:
        """The typed value; the default if the stored text is empty or invalid."""
        parse = PARSERS[self.type]
        try:
            return parse(stored_text) if stored_text else parse(self.default)
        except ValueError:
            return parse(self.default)

    def normalize(self, text: str) -> str:
        """The text to store; raises ValueError with the reason if it is invalid."""
        text = text.strip()
        if text:
            PARSERS[self.type](text)
            self.check(text)
        return text


WELCOME_PAGE = PropertyDefinition(
    "svc.welcome_page.url",
    "URL to which anonymous visitors to / are redirected. If empty, they are redirected to the "
    "sign-in page. Saving an active single sign-on connection sets this to its Redirect URI.",
    check=check_welcome_page,
)
CASE_SENSITIVE = PropertyDefinition(
    "svc.login.username.sensitivity.enabled",
    "Whether logins are case-sensitive at sign-in with a password, through the API or through single sign-on.",
    "boolean",
    "true",
)
WYSIWYG_COLUMNS = PropertyDefinition(
    "wysiwyg.columns.rest_api_json_mode",
    "Comma-separated IDs of converted text columns that the Table API returns as HTML.",
    "list",
)
CHANGE_HISTORY_DAYS = PropertyDefinition(
    "svc.change.history_days",
    "Number of days for which the history of records is kept. 0 means forever.",
    "integer",
    "0",
    check_days,
)
CHANGE_FEED_DAYS = PropertyDefinition(
    "svc.change.feed_days",
    "Number of days for which a cursor of the change feed is valid.",
    "integer",
    "30",
    check_days,
)
ATTACHMENT_TYPES = PropertyDefinition(
    "svc.attachment.types",
    "Comma-separated media types that attachments may have, such as image/png,application/pdf. The type is detected "
    "from the content and the file name. If empty, any type is allowed.",
    "list",
)
ASSIGNMENT_COLUMNS = PropertyDefinition(
    "svc.notification.assignment_columns",
    "Comma-separated names of columns. A user who is entered in one of them is notified of the assignment.",
    "list",
    "assigned_user,assigned_to",
)
EXPORT_RECORDS = PropertyDefinition(
    "svc.export.max_records",
    "Maximum number of records in an export as CSV or JSON Lines.",
    "integer",
    "1000000",
    check_export_records,
)
FIRST_STEPS = PropertyDefinition(
    "svc.dashboard.first_steps",
    "Whether the dashboard shows the first steps until all of them are done.",
    "boolean",
    "true",
)
SERVICENOW_ENABLED = PropertyDefinition(
    "svc.now_api.enabled",
    "Whether clients of ServiceNow can use the addresses below /api/now/.",
    "boolean",
    "true",
)
SERVICENOW_TABLES = PropertyDefinition(
    "svc.now_api.tables",
    "Comma-separated names of tables as clients of ServiceNow call them, each with the table that is meant, such as "
    "sc_task=task. They are added to the names that the service knows.",
    "list",
    check=check_table_names,
)
SERVICENOW_INVALID_QUERY = PropertyDefinition(
    "svc.now_api.invalid_query",
    "What happens to a query of a client of ServiceNow with a condition that is invalid: ignore (the condition is left "
    "out), no_rows (the result is empty) or error.",
    default="ignore",
    check=check_invalid_query,
)
SERVICENOW_LONG_IDS = PropertyDefinition(
    "svc.now_api.guid_ids",
    "Whether records that clients of ServiceNow create get IDs of 32 digits, as in ServiceNow.",
    "boolean",
    "false",
)
_DEFINITIONS = (
    WELCOME_PAGE, CASE_SENSITIVE, WYSIWYG_COLUMNS, CHANGE_HISTORY_DAYS, CHANGE_FEED_DAYS, ATTACHMENT_TYPES,
    ASSIGNMENT_COLUMNS, EXPORT_RECORDS, FIRST_STEPS, SERVICENOW_ENABLED, SERVICENOW_TABLES, SERVICENOW_INVALID_QUERY,
    SERVICENOW_LONG_IDS,
)  # fmt: skip
# The row of a new property is created after the next migration.
DEFINITIONS = {definition.name: definition for definition in _DEFINITIONS}

# The stored text of each property, with the time when it was read.
VALUE_CACHE: WeightedCache[str, tuple[float, str]] = WeightedCache(
    "properties", max_weight=CACHE_LIMIT_BYTES, weigh=lambda name, entry: PROPERTY_OVERHEAD_BYTES + len(entry[1])
)

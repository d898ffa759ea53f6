"""Reads the value of a column from a JSON body, with one function per type. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from system.encoded_query import QueryError, read_instant

from . import html

if TYPE_CHECKING:
    from .definitions import Column

MAX_INTEGER = 2**63 - 1
# PostgreSQL accepts 131,072 digits, far more than clients can use.
MAX_DIGITS = 1_000
MAX_REFERENCES = 1_000
MAX_CHOICES_LISTED = 20
MAX_EMAIL_LENGTH = 254
MAX_LOCAL_PART_LENGTH = 64
ID_EXPECTED_MESSAGE = "Expected the ID of a record. To send display values instead, set sysparm_input_display_value=1."

# PostgreSQL stores neither NUL characters nor lone surrogates.
UNSTORABLE_CHARACTER = re.compile("[\x00\ud800-\udfff]")

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_ID = re.compile(r"[0-9a-z]{1,32}")
_BOOLEANS = MappingProxyType({"true": True, "1": True, "false": False, "0": False})
# The characters of RFC 3986, and non-ASCII letters, which browsers encode.
_URL = re.compile(r"[\w\-.~:/?#\[\]@!$&'()*+,;=%]+")
_LOCAL_PART = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_DOMAIN_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


class InvalidValue(ValueError):
    """The message is shown to the caller and does not name the column."""


def read_text(column: Column, value: Any) -> str:
    return _check_length(column, _as_text(value))


def _as_text(value: Any) -> str:
    """Accept numbers as text, because clients send them, but no booleans, lists or objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        raise InvalidValue("Expected a string.")
    return str(value)


def _check_length(column: Column, value: str) -> str:
    if column.max_length is not None and len(value) > column.max_length:
        raise InvalidValue(f"Expected a string of at most {column.max_length} characters.")
    return value


def read_formatted_text(column: Column, value: Any) -> str:
    try:
        markup = html.sanitize_html(_as_text(value))
    except html.HtmlTooComplex as error:
        raise InvalidValue(str(error)) from None
    _check_length(column, html.extract_plain_text(markup))
    return markup


def read_url(column: Column, value: Any) -> str:
    """
    >>> from tableapi.catalogue.definitions import Column
    >>> read_url(Column("it", "url", "", "it"), "https://example.com/a?b=c#d")
    'https://example.com/a?b=c#d'
    """
    try:
        parts = urlsplit(value) if isinstance(value, str) and _URL.fullmatch(value) else None
        # Reading `port` raises ValueError if it is not a number up to 65,535.
        is_url = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise InvalidValue("Expected a valid URL that starts with http:// or https://.")
    return _check_length(column, value)


def read_email(column: Column, value: Any) -> str:
    """
    >>> from tableapi.catalogue.definitions import Column
    >>> read_email(Column("it", "email", "", "it"), "jane.doe@example.com")
    'jane.doe@example.com'
    """
    local_part, _, domain = value.rpartition("@") if isinstance(value, str) else ("", "", "")
    is_short = len(local_part) <= MAX_LOCAL_PART_LENGTH and len(local_part) + 1 + len(domain) <= MAX_EMAIL_LENGTH
    is_email = is_short and _LOCAL_PART.fullmatch(local_part) and all(map(_DOMAIN_LABEL.fullmatch, domain.split(".")))
    if not is_email:
        raise InvalidValue("Expected an email address such as name@example.com.")
    return _check_length(column, value)


def read_choice(column: Column, value: Any) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or text not in dict(column.choices):
        raise InvalidValue(invalid_choice_message([f"{value} ({label})" for value, label in column.choices]))
    return text


def invalid_choice_message(choices: Sequence[str]) -> str:
    more = ", …" if len(choices) > MAX_CHOICES_LISTED else ""
    names = ", ".join(choices[:MAX_CHOICES_LISTED])
    return f"Not a valid choice. Expected one of: {names}{more}." if choices else "The column has no choices."


def read_integer(column: Column, value: Any) -> int:
    is_number = isinstance(value, int | Decimal) or (isinstance(value, float) and math.isfinite(value))
    if isinstance(value, bool) or not (is_number or (isinstance(value, str) and _INTEGER.fullmatch(value))):
        raise InvalidValue("Expected a whole number.")
    number = int(value)
    if not isinstance(value, str) and number != value:
        raise InvalidValue("Expected a whole number.")
    if not -MAX_INTEGER - 1 <= number <= MAX_INTEGER:
        raise InvalidValue(f"Expected a whole number from {-MAX_INTEGER - 1} to {MAX_INTEGER}.")
    return number


def read_duration(column: Column, value: Any) -> int:
    seconds = read_integer(column, value)
    if seconds < 0:
        raise InvalidValue("Expected a number of seconds, 0 or more.")
    return seconds


def read_decimal(column: Column, value: Any) -> Decimal:
    # The shortest text of a float is what the client wrote; its exact value would be 0.1000000000000000055….
    text = value if isinstance(value, str) else str(value)
    is_number = isinstance(value, str | int | float | Decimal) and not isinstance(value, bool)
    if not is_number or not _DECIMAL.fullmatch(text):
        raise InvalidValue("Expected a number.")
    number = Decimal(text) if len(text) <= 2 * MAX_DIGITS else None
    if number is None or _digit_count(number) > MAX_DIGITS:
        raise InvalidValue(f"Expected a number with at most {MAX_DIGITS} digits.")
    return number


def _digit_count(number: Decimal) -> int:
    """The number of digits when written without an exponent."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # a finite number
    return max(len(digits) + exponent, len(digits), -exponent)


def read_percent(column: Column, value: Any) -> Decimal:
    number = read_decimal(column, value)
    if not 0 <= number <= 100:
        raise InvalidValue("Expected a number from 0 to 100.")
    return number


def read_boolean(column: Column, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value) if isinstance(value, int) else value
    if not isinstance(text, str) or text not in _BOOLEANS:
        raise InvalidValue("Expected true or false.")
    return _BOOLEANS[text]


def read_time(column: Column, value: Any) -> datetime:
    try:
        if isinstance(value, str):
            # Store whole seconds, as responses show them, so clients can send back the values that they read.
            return read_instant(value).replace(microsecond=0)
    except QueryError:
        pass
    raise InvalidValue("Expected a date and time such as 2024-05-19 13:45:00.")


def read_date(column: Column, value: Any) -> date:
    try:
        return read_time(column, value).date()
    except InvalidValue:
        raise InvalidValue("Expected a date such as 2024-05-19.") from None


def read_reference(column: Column, value: Any) -> str | None:
    """Read an id, or a reference in the form of responses: `{value, link}`."""
    if isinstance(value, dict):
        if "value" not in value or not value.keys() <= {"value", "link", "display_value"}:
            raise InvalidValue('Expected an ID, or an object such as {"value": "<id>"}.')
        value = value["value"]
        if value is None or value == "":
            return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _ID.fullmatch(text):
        raise InvalidValue(ID_EXPECTED_MESSAGE)
    return text


def read_references(column: Column, value: Any) -> list[str]:
    """Read references in order, without duplicates."""
    items = [item.strip(" ") for item in value.split(",")] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise InvalidValue("Expected a list of IDs.")
    ids = dict.fromkeys(read_reference(column, item) for item in items)
    if len(ids) > MAX_REFERENCES:
        raise InvalidValue(f"Expected at most {MAX_REFERENCES} references.")
    if None in ids:
        raise InvalidValue(ID_EXPECTED_MESSAGE)
    return [sys_id for sys_id in ids if sys_id is not None]


def read_json_value(column: Column, value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except TypeError:  # the body parser returns a decimal where a float would lose digits
        raise InvalidValue("A number has more digits than a JSON column can store. Send it as a string.") from None
    except ValueError:
        raise InvalidValue("JSON does not allow NaN or infinite numbers.") from None
    return value


def read_secret(column: Column, value: Any) -> str:
    # Reject an empty string: a form field that was left empty must not silently remove a password.
    if not isinstance(value, str) or not value:
        raise InvalidValue("Expected a non-empty string, or null to clear the value.")
    return _check_length(column, value)

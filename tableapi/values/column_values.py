"""In charge of the values of columns: what a body gives, what the database takes, and whether the two are the same."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from django.contrib.auth.hashers import make_password
from psycopg.types.json import Jsonb

from system import encryption
from system.encoded_query import QueryError, read_instant
from system.errors import Invalid
from system.http.request_body import InvalidJson, parse_json, refuse_unstorable
from tableapi.catalogue.definitions import WRITE_ONLY_TYPES, Column
from tableapi.values import html as wysiwyg
from tableapi.values.display_values import not_among

BIGGEST = 2**63 - 1
# PostgreSQL takes 131,072 digits; nobody reads an answer with that many.
MOST_DIGITS = 1_000
MOST_REFERENCES = 1_000
NO_ID = "The id of a record is expected; what people read in its place is taken with sysparm_input_display_value=1."

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_ID = re.compile(r"[0-9a-z]{1,32}")
_BOOLEANS = MappingProxyType({"true": True, "1": True, "false": False, "0": False})
# Clients of this family send empty text to clear a column; only in a text it is a value of its own.
_EMPTY_TEXT_CLEARS = frozenset({"integer", "decimal", "boolean", "date", "datetime", "choice", "reference", "list"})


class _Refused(Exception):
    """A sentence on what is wrong; `read` adds the column."""


def read(column: Column, given: Any) -> Any:
    """The value, as psycopg takes it, of what a JSON body gives for a column."""
    if given is None or (given == "" and column.type in _EMPTY_TEXT_CLEARS):
        return None
    try:
        refuse_unstorable(given)
        return _READERS[column.type](column, given)
    except (_Refused, InvalidJson) as refused:
        raise Invalid(str(refused), field=column.name) from None


def _text(column: Column, given: Any) -> str:
    return _fitting(column, _as_text(given))


def _as_text(given: Any) -> str:
    """Chosen: a number is kept as its text, as clients send them; true, a list or an object is a mistake."""
    if isinstance(given, str):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal) or not math.isfinite(given):
        raise _Refused("A text is expected.")
    return str(given)


def _fitting(column: Column, text: str) -> str:
    if column.max_length is not None and len(text) > column.max_length:
        raise _Refused(f"At most {column.max_length} characters are expected.")
    return text


def _wysiwyg(column: Column, given: Any) -> str:
    text = _as_text(given)
    try:
        html = wysiwyg.sanitised(text)
    except wysiwyg.TooTangled as tangled:
        raise _Refused(str(tangled)) from None
    _fitting(column, wysiwyg.plain_text(html))
    return html


def _choice(column: Column, given: Any) -> str:
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(text, str) or text not in dict(column.choices):
        raise _Refused(not_among([f"{value} ({label})" for value, label in column.choices]))
    return text


def _integer(column: Column, given: Any) -> int:
    is_number = isinstance(given, int | Decimal) or (isinstance(given, float) and math.isfinite(given))
    if isinstance(given, bool) or not (is_number or (isinstance(given, str) and _WHOLE.fullmatch(given))):
        raise _Refused("A whole number is expected.")
    number = int(given)
    if not isinstance(given, str) and number != given:
        raise _Refused("A whole number is expected.")
    if not -BIGGEST - 1 <= number <= BIGGEST:
        raise _Refused(f"A whole number from {-BIGGEST - 1} to {BIGGEST} is expected.")
    return number


def _decimal(column: Column, given: Any) -> Decimal:
    # The shortest text of a float is what the client wrote; its exact value would be 0.1000000000000000055….
    text = given if isinstance(given, str) else str(given)
    is_number = isinstance(given, str | int | float | Decimal) and not isinstance(given, bool)
    if not is_number or not _DECIMAL.fullmatch(text):
        raise _Refused("A number is expected.")
    number = Decimal(text) if len(text) <= 2 * MOST_DIGITS else None
    if number is None or _written_out(number) > MOST_DIGITS:
        raise _Refused(f"A number of at most {MOST_DIGITS} digits is expected.")
    return number


def _written_out(number: Decimal) -> int:
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # a finite number
    return max(len(digits) + exponent, len(digits), -exponent)


def _boolean(column: Column, given: Any) -> bool:
    if isinstance(given, bool):
        return given
    text = str(given) if isinstance(given, int) else given
    if not isinstance(text, str) or text not in _BOOLEANS:
        raise _Refused("true or false is expected.")
    return _BOOLEANS[text]


def _instant(column: Column, given: Any) -> datetime:
    try:
        if isinstance(given, str):
            # Shown to the second, so kept to the second: what was read can be sent back.
            return read_instant(given).replace(microsecond=0)
    except QueryError:
        pass
    raise _Refused("A date and time like 2024-05-19 13:45:00 is expected.")


def _date(column: Column, given: Any) -> date:
    try:
        return _instant(column, given).date()
    except _Refused:
        raise _Refused("A date like 2024-05-19 is expected.") from None


def _reference(column: Column, given: Any) -> str | None:
    """An id, or a reference as answers show it: `{value, link}`."""
    if isinstance(given, dict):
        if "value" not in given or not given.keys() <= {"value", "link", "display_value"}:
            raise _Refused("A reference is an id or an object with value.")
        given = given["value"]
        if given is None or given == "":
            return None
    return _id(given)


def _id(given: Any) -> str:
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(text, str) or not _ID.fullmatch(text):
        raise _Refused(NO_ID)
    return text


def _list(column: Column, given: Any) -> list[str]:
    """References in their order, each once."""
    pieces = [piece.strip(" ") for piece in given.split(",")] if isinstance(given, str) else given
    if not isinstance(pieces, list):
        raise _Refused("A list of ids is expected.")
    found = dict.fromkeys(_reference(column, piece) for piece in pieces)
    if len(found) > MOST_REFERENCES:
        raise _Refused(f"At most {MOST_REFERENCES} references are expected.")
    if None in found:
        raise _Refused(NO_ID)
    return [sys_id for sys_id in found if sys_id is not None]


def _json(column: Column, given: Any) -> Jsonb:
    try:
        json.dumps(given)
    except TypeError:  # the body's reader keeps as a decimal what no float holds
        raise _Refused("A number has more digits than a JSON column keeps; send it as text.") from None
    return Jsonb(given)


def _secret_text(column: Column, given: Any) -> str:
    # Chosen: an empty one is refused; a form that was left empty must not take a password away unnoticed.
    if not isinstance(given, str) or not given:
        raise _Refused("A text that is not empty is expected, or null to clear it.")
    return _fitting(column, given)


_READERS: Mapping[str, Callable[[Column, Any], Any]] = MappingProxyType(
    {
        "string": _text,
        "text": _text,
        "wysiwyg": _wysiwyg,
        "choice": _choice,
        "integer": _integer,
        "decimal": _decimal,
        "boolean": _boolean,
        "datetime": _instant,
        "date": _date,
        "reference": _reference,
        "list": _list,
        "json": _json,
        "password": lambda column, given: make_password(_secret_text(column, given)),
        "secret": lambda column, given: encryption.encrypt(_secret_text(column, given)),
    }
)


def plain_of(column: Column, value: str | None) -> str | None:
    """The plain text that is stored beside the HTML of a wysiwyg column."""
    return None if value is None else wysiwyg.plain_text(value)


def default(column: Column) -> Any:
    """The value of a column that a new record does not name."""
    if not column.default or column.type in WRITE_ONLY_TYPES:
        return None
    try:
        return default_of(column)
    except (Invalid, InvalidJson):
        # The designer checks it; one that a later change made wrong is not this caller's mistake.
        return None


def default_of(column: Column) -> Any:
    """The same, where it must be one: read as if a caller had sent it."""
    return read(column, parse_json(column.default.encode()) if column.type == "json" else column.default)


def check_mandatory(column: Column, value: Any) -> None:
    """`value` is what is going to be stored."""
    if column.mandatory and (value is None or (isinstance(value, str | list) and not value)):
        raise Invalid("A value is needed.", code="mandatory", field=column.name)


def is_same(column: Column, stored: Any, new: Any) -> bool:
    """Whether writing `new` leaves what is stored as it is; both as psycopg gives or takes them.

    A password cannot be compared and an encrypted secret differs each time: they are the same only when both are empty.
    """
    if stored is None or new is None or column.type in WRITE_ONLY_TYPES:
        return stored is None and new is None
    if column.type == "json":
        return _is_same_json(_bare(stored), _bare(new))
    if column.type == "datetime":
        return _to_the_second(stored) == _to_the_second(new)
    return bool(stored == new)


def _bare(value: Any) -> Any:
    return value.obj if isinstance(value, Jsonb) else value


def _to_the_second(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(microsecond=0)


def _is_same_json(one: Any, other: Any) -> bool:
    """As JSON sees it: 1 and 1.0 are one number, 1 and true are not the same."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_json, one, other))
    return bool(one == other)


def merged(stored: Any, patch: Any) -> Any:
    """RFC 7396: an object changes the members that it names, null takes one away, all else takes the value's place.

    >>> merged({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 4}})
    {'b': {'c': 4, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    found = dict(stored) if isinstance(stored, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def for_log(column: Column, value: Any) -> Any:
    """The value as JSON takes it, for the deletion log; secrets never."""
    if value is None or column.type in WRITE_ONLY_TYPES:
        return None
    if column.type == "json":
        return _bare(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value

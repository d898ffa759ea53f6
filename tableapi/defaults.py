"""In charge of whether a column's default is a value of its type."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def _is_integer(text: str) -> bool:
    return SMALLEST <= int(text) <= LARGEST


def _is_decimal(text: str) -> bool:
    return Decimal(text).is_finite()


def _is_boolean(text: str) -> bool:
    return text in ("true", "false")


def _is_datetime(text: str) -> bool:
    return bool(datetime.fromisoformat(text))


def _is_date(text: str) -> bool:
    return bool(date.fromisoformat(text))


def _is_json(text: str) -> bool:
    json.loads(text, parse_constant=_refuse)
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)


VALID: dict[str, tuple[Callable[[str], bool], str]] = {
    "integer": (_is_integer, "This is no whole number."),
    "decimal": (_is_decimal, "This is no number."),
    "boolean": (_is_boolean, "Write true or false."),
    "datetime": (_is_datetime, "Write it as 2030-12-31 23:59:59, in UTC."),
    "date": (_is_date, "Write it as 2030-12-31."),
    "json": (_is_json, "This is no JSON."),
}
NONE = frozenset({"reference", "list", "password", "secret"})


def problem(type_name: str, text: str, max_length: int | None, choices: Collection[str] | None) -> str:
    """What is wrong with a default, or nothing.

    >>> problem("integer", "12", None, None), problem("integer", "twelve", None, None)
    ('', 'This is no whole number.')
    >>> problem("choice", "4", None, {"1", "2"})
    'This is none of the choices.'
    """
    if type_name in NONE:
        return "A column of this type has no default."
    if type_name == "choice" and choices is not None and text not in choices:
        return "This is none of the choices."
    if max_length is not None and len(text) > max_length:
        return f"This is longer than {max_length}."
    if type_name in VALID:
        is_valid, sentence = VALID[type_name]
        try:
            return "" if is_valid(text) else sentence
        except (ValueError, InvalidOperation, RecursionError):
            return sentence
    return ""

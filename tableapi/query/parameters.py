"""Reads the parameters of a request into values; refuses what it cannot understand. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from system.encoded_query import QueryError
from system.errors import BadRequest
from tableapi.sql.output_fields import BOTH, DISPLAY, VALUE

from .parsed_query import ParsedQuery, parse_query_text

DEFAULT_LIMIT = 20
MOST_RECORDS = 10_000
# Deeper pages cost more and more; a cursor costs the same at any depth.
DEEPEST_RECORD = 1_000_000
MOST_FIELDS = 500
MOST_TOLD = 20

# What each kind of request listens to; any other parameter is ignored, and `X-Ignored-Parameters` says so.
OF_RECORDS = frozenset({"sysparm_display_value", "sysparm_exclude_reference_link", "sysparm_fields", "sysparm_view"})
OF_LISTS = OF_RECORDS | {
    "sysparm_query",
    "sysparm_limit",
    "sysparm_page",
    "sysparm_cursor",
    "sysparm_count",
    "sysparm_query_category",
}
OF_WRITES = OF_RECORDS | {"sysparm_input_display_value"}

SWITCH = {"1": True, "true": True, "0": False, "false": False, "": False}


class RawParameters(Protocol):
    """The query string, as Django reads it."""

    def getlist(self, key: str) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What an answer shows of each record."""

    fields: tuple[str, ...] = ()
    view: str = ""
    display: str = VALUE
    with_links: bool = True


@dataclass(frozen=True, slots=True)
class ListRequest:
    shown: OutputOptions
    text: str
    query: ParsedQuery
    limit: int = DEFAULT_LIMIT
    page: int = 1
    cursor: str = ""
    count: str = ""
    replica: bool = False


def parse_list(given: RawParameters) -> ListRequest:
    text = _one(given, "sysparm_query")
    limit = _number(given, "sysparm_limit", DEFAULT_LIMIT, most=MOST_RECORDS)
    page = _number(given, "sysparm_page", 1, most=DEEPEST_RECORD)
    cursor = _one(given, "sysparm_cursor")
    if limit * page > DEEPEST_RECORD:
        raise _refused(
            "sysparm_page", f"Pages end at record {DEEPEST_RECORD}; follow sysparm_cursor from Link instead."
        )
    if cursor and page != 1:
        raise _refused("sysparm_cursor", "Send sysparm_cursor or sysparm_page, not both.")
    return ListRequest(
        shown=parse_shown(given),
        text=text,
        query=parse_query(text),
        limit=limit,
        page=page,
        cursor=cursor,
        count=_choice(given, "sysparm_count", ("", "exact", "estimated")),
        replica=_choice(given, "sysparm_query_category", None) == "replica",
    )


def parse_shown(given: RawParameters) -> OutputOptions:
    display = _one(given, "sysparm_display_value")
    if display.lower() == BOTH:
        display = BOTH
    else:
        display = DISPLAY if _switch("sysparm_display_value", display, "0, 1 or all") else VALUE
    excluded = _switch("sysparm_exclude_reference_link", _one(given, "sysparm_exclude_reference_link"))
    fields = tuple(name for each in _one(given, "sysparm_fields").split(",") if (name := each.strip()))
    if len(fields) > MOST_FIELDS:
        raise _refused("sysparm_fields", f"At most {MOST_FIELDS} fields can be asked for.")
    return OutputOptions(fields, _one(given, "sysparm_view"), display, not excluded)


def parse_input_display(given: RawParameters) -> bool:
    return _switch("sysparm_input_display_value", _one(given, "sysparm_input_display_value"))


def parse_query(text: str) -> ParsedQuery:
    try:
        return parse_query_text(text)
    except QueryError as error:
        raise invalid_query(error) from None


def invalid_query(error: QueryError) -> BadRequest:
    return BadRequest(
        f"The query cannot be understood: {error}.",
        code="invalid_query",
        field="sysparm_query",
        position=error.position,
    )


def ignored_header(names: Iterable[str]) -> str:
    """The value of X-Ignored-Fields: only names that can be names, so that a header stays a header."""
    return _told(names, r"[a-z0-9_.]{1,255}")


def ignored_parameters(given: Iterable[str], listened_to: frozenset[str]) -> str:
    """The value of X-Ignored-Parameters: a misspelled one, or one of another interface, silently had no effect.

    >>> ignored_parameters(["sysparm_limit", "offset", "a b", "Lang"], OF_LISTS)
    'offset,Lang'
    """
    return _told((name for name in given if name not in listened_to), r"[A-Za-z0-9_.]{1,255}")


def _told(names: Iterable[str], can_be: str) -> str:
    return ",".join(islice((name for name in names if re.fullmatch(can_be, name)), MOST_TOLD))


def _one(given: RawParameters, name: str) -> str:
    values = given.getlist(name)
    if len(values) > 1:
        raise _refused(name, f"{name} stands more than once.")
    value = values[0] if values else ""
    if "\x00" in value or any("\ud800" <= each <= "\udfff" for each in value):
        raise _refused(name, f"{name} holds a character that cannot be stored.")
    return value


def _switch(name: str, value: str, allowed: str = "1 or 0") -> bool:
    if value.lower() not in SWITCH:
        raise _refused(name, f"{name} is {allowed}.")
    return SWITCH[value.lower()]


def _number(given: RawParameters, name: str, default: int, most: int) -> int:
    text = _one(given, name)
    if not given.getlist(name):
        return default
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise _refused(name, f"{name} is a whole number from 1 to {most:,}.")
    return int(text)


def _choice(given: RawParameters, name: str, allowed: tuple[str, ...] | None) -> str:
    value = _one(given, name)
    if allowed is not None and value not in allowed:
        raise _refused(name, f"{name} is one of {', '.join(filter(None, allowed))}.")
    return value


def _refused(name: str, message: str) -> BadRequest:
    return BadRequest(message, code="invalid_parameter", field=name)

"""Parses the parameters of a request into frozen values. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from system.encoded_query import QueryError
from system.errors import BadRequest, InvalidParameter
from tableapi.catalogue.value_readers import UNSTORABLE_CHARACTER

from .names import Names
from .parsed_query import ParsedQuery, parse_query_text

DEFAULT_LIMIT = 20
MAX_RECORDS = 10_000
MAX_CHANGES = 1_000
# Each deeper page costs more; a cursor costs the same at any depth.
MAX_PAGED_RECORDS = 1_000_000
MAX_FIELDS = 500
MAX_IGNORED_NAMES = 20

IMPORT, INPUT_DISPLAY = "sysparm_import", "sysparm_input_display_value"
SWITCH_VALUES = {"1": True, "true": True, "0": False, "false": False, "": False}


class RawParameters(Protocol):
    """The query string, such as Django's QueryDict."""

    def __contains__(self, key: object) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def getlist(self, key: str) -> list[str]: ...


class DisplayMode(StrEnum):
    """`sysparm_display_value`: stored values, display values, or both."""

    VALUE = "0"
    DISPLAY = "1"
    BOTH = "all"


class OutputOptions(NamedTuple):
    """What a response contains of each record."""

    fields: tuple[str, ...] = ()
    view: str = ""
    display_mode: DisplayMode = DisplayMode.VALUE
    with_links: bool = True
    # The names of another dialect, whose form the values then have too.
    names: Names | None = None


@dataclass(frozen=True, slots=True)
class ListRequest:
    output: OutputOptions
    query: ParsedQuery
    limit: int = DEFAULT_LIMIT
    page: int = 1
    offset: int | None = None
    cursor: str = ""
    count: str = ""
    allows_replica: bool = False


def parse_list(raw: RawParameters) -> ListRequest:
    """Parse the parameters of a list. Raises BadRequest, or QueryError for an invalid query."""
    limit = parse_number(raw, "sysparm_limit", DEFAULT_LIMIT, maximum=MAX_RECORDS)
    page = parse_number(raw, "sysparm_page", 1, maximum=MAX_PAGED_RECORDS)
    cursor = parse_text(raw, "sysparm_cursor")
    if limit * page > MAX_PAGED_RECORDS:
        message = f"Page numbers reach only the first {MAX_PAGED_RECORDS:,} records. To read more, use the cursor."
        raise InvalidParameter(message, field="sysparm_page")
    if cursor and page != 1:
        raise InvalidParameter("Send sysparm_cursor or sysparm_page, not both.", field="sysparm_cursor")
    return ListRequest(
        output=parse_output(raw),
        query=parse_query_text(parse_text(raw, "sysparm_query")),
        limit=limit,
        page=page,
        cursor=cursor,
        count=parse_choice(raw, "sysparm_count", ("", "exact", "estimated")),
        allows_replica=parse_text(raw, "sysparm_query_category") == "replica",
    )


class ExportRequest(NamedTuple):
    """A request for the whole result of a list. `is_limited` tells whether the client set the limit."""

    output: OutputOptions
    query: ParsedQuery
    limit: int
    is_limited: bool
    escapes_formulas: bool


def parse_export(raw: RawParameters, maximum: int) -> ExportRequest:
    for name in ("sysparm_page", "sysparm_cursor", "sysparm_count"):
        if parse_text(raw, name):
            raise InvalidParameter(f"An export is not paginated. Omit {name}.", field=name)
    return ExportRequest(
        output=parse_output(raw),
        query=parse_query_text(parse_text(raw, "sysparm_query")),
        limit=parse_number(raw, "sysparm_limit", maximum, maximum=maximum),
        is_limited="sysparm_limit" in raw,
        escapes_formulas=not parse_switch(raw, "sysparm_keep_formulas"),
    )


def parse_page(raw: RawParameters, cursor_name: str) -> tuple[int, str]:
    """The number of entries to return, and the cursor after which they start."""
    return parse_number(raw, "sysparm_limit", DEFAULT_LIMIT, maximum=MAX_CHANGES), parse_text(raw, cursor_name)


def parse_output(raw: RawParameters) -> OutputOptions:
    fields = parse_names(raw, "sysparm_fields", MAX_FIELDS)
    excludes_links = parse_switch(raw, "sysparm_exclude_reference_link")
    return OutputOptions(fields, parse_text(raw, "sysparm_view"), parse_display_mode(raw), not excludes_links)


def parse_display_mode(raw: RawParameters) -> DisplayMode:
    value = parse_text(raw, "sysparm_display_value")
    if value.lower() == DisplayMode.BOTH:
        return DisplayMode.BOTH
    return DisplayMode.DISPLAY if _read_switch("sysparm_display_value", value, "0, 1 or all") else DisplayMode.VALUE


def invalid_query(error: QueryError) -> BadRequest:
    """Return the error for a query that cannot be parsed, planned or bound."""
    return BadRequest(
        f"The query is invalid: {error}.",
        code="invalid_query",
        field="sysparm_query",
        position=error.position,
    )


def parse_text(raw: RawParameters, name: str) -> str:
    if name not in raw:
        return ""
    values = raw.getlist(name)
    if len(values) > 1:
        raise InvalidParameter(f"{name} was given more than once.", field=name)
    (value,) = values
    if UNSTORABLE_CHARACTER.search(value):
        raise InvalidParameter(f"{name} contains a character that cannot be stored.", field=name)
    return value


def parse_names(raw: RawParameters, parameter: str, maximum: int) -> tuple[str, ...]:
    names = [name for part in parse_text(raw, parameter).split(",") if (name := part.strip())]
    if len(names) > maximum:
        raise InvalidParameter(f"{parameter} can contain at most {maximum} names.", field=parameter)
    return tuple(dict.fromkeys(names))


def parse_switch(raw: RawParameters, name: str) -> bool:
    return _read_switch(name, parse_text(raw, name))


def _read_switch(name: str, value: str, expected: str = "1 or 0") -> bool:
    if value.lower() not in SWITCH_VALUES:
        raise InvalidParameter(f"{name} must be {expected}.", field=name)
    return SWITCH_VALUES[value.lower()]


def parse_number(raw: RawParameters, name: str, default: int, maximum: int) -> int:
    text = parse_text(raw, name)
    if not raw.getlist(name):
        return default
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= maximum:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {maximum:,}.", field=name)
    return int(text)


def parse_choice(raw: RawParameters, name: str, choices: tuple[str, ...]) -> str:
    value = parse_text(raw, name)
    if value not in choices:
        raise InvalidParameter(f"{name} must be one of {', '.join(filter(None, choices))}.", field=name)
    return value

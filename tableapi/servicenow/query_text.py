"""Translates an encoded query as ServiceNow's clients write it. Pure.

The text is split at `^` (`^^` stands for the character itself), and each part is one condition, sort key or separator.
Parentheses are text. Each condition becomes a condition of this service's language, with its value in braces. The
query of a JOIN ends where the next JOIN, sort key or `^NQ` begins, as PySNC writes it.
Parts that this service cannot understand are returned apart, and the caller decides what happens to them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from system.encoded_query import (
    ALIASES,
    OPERATORS,
    RECORDS,
    REFUSED_OPERATORS,
    Condition,
    Group,
    OrderBy,
    Query,
    QueryError,
    RelatedQuery,
    SubQuery,
    Term,
    ValueKind,
)

from .queried_table import QueriedTable

# Native operators by the spellings that only ServiceNow has.
SPELLINGS = {
    "<>": "!=", "*": "LIKE", "!*": "NOTLIKE", "DOES NOT CONTAIN": "NOTLIKE", "DOESNOTCONTAIN": "NOTLIKE",
    "%": "ENDSWITH", "NOT EQUAL": "!=", "EQUALS": "=", "LE_OR_EQUALS_FIELD": "LT_OR_EQUALS_FIELD",
    "NOT ON": "NOTON",
}  # fmt: skip
# They compare with a former state, which a stored record does not have, or search with patterns.
MATCHES_NOTHING = {*REFUSED_OPERATORS, "MATCH_RGX", "MATCH_PAT"}
DATE_PARTS = "DATEPART"
_LONGEST_FIRST = sorted([*OPERATORS, *ALIASES, *SPELLINGS, *MATCHES_NOTHING, DATE_PARTS], key=len, reverse=True)
_CONDITION = re.compile(
    rf"([a-z][a-z0-9_]*+(?:\.[a-z][a-z0-9_]*+)*+) *+({'|'.join(map(re.escape, _LONGEST_FIRST))})(.*+)", re.DOTALL
)
_SORT = re.compile(r"ORDERBY(DESC)?+([a-z][a-z0-9_.]*+)")
_TEXT_QUERY = "123TEXTQUERY321="
_GENERATED_DATE = re.compile(
    r"javascript:gs\.dateGenerate\('([0-9-]{10})(?: ([0-9:]{8}))?'(?:, ?'([0-9:]{8}|start|end)')?\)"
)
_DATE_PART = re.compile(r"[^@]*+@javascript:gs\.datePart\('(\w+)','([^']*+)','EE'\)")
_TIMES = {None: "00:00:00", "start": "00:00:00", "end": "23:59:59"}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# The conditions that every instance ships as filter options, by their ids.
_DYNAMIC_IDS = {"90d1921e5f510100a9ad2572f2b477fe": "me", "d6435e965f510100a9ad2572f2b47744": "my_groups"}

# Related records: "JOIN" with a column of each table and a query of the other one, "RLQUERY" with a number of records.
_JOIN = re.compile(r"JOIN(\w++)\.([a-z0-9_.]++)=(\w++)\.(\w++)!(.*+)", re.DOTALL)
_RELATED_LIST = re.compile(r"RLQUERY(\w++)\.(\w++),(>=|<=|!=|=|>|<)(\d{1,6})(?:,m2m)?+(?:\^(.*+))?+", re.DOTALL)
_RELATED_LIST_END = "ENDRLQUERY"
_STARTS_AFTER_JOIN = ("JOIN", "RLQUERY", "ORDERBY", "GROUPBY", "NQ")
MAX_NAME_WORDS = 10
# Stands for `^^` while the text is split. Clients cannot send it.
_ESCAPED = "\0"


@dataclass
class Translation:
    """The native query, and the parts that were left out."""

    query: Query = field(default_factory=Query)
    invalid_parts: list[str] = field(default_factory=list)


def translate(text: str, table: QueriedTable) -> Translation:
    groups: list[list[list[Condition | SubQuery]]] = [[]]
    order: list[OrderBy] = []
    invalid_parts: list[str] = []
    for separator, part in _parts(text):
        if separator == "SORT":
            if match := _SORT.fullmatch(part):
                order += table.sort_keys(match[2], is_descending=match[1] is not None)
            continue
        if separator == "NQ":
            groups.append([])
        if separator != "OR" or not groups[-1]:
            groups[-1].append([])
        factor = _related_factor(part, table, invalid_parts) or _condition_factor(part, table)
        if factor is None:
            invalid_parts.append(part)
        else:
            groups[-1][-1].append(factor)
    terms = [[Term(tuple(factors)) for factors in group if factors] for group in groups]
    return Translation(Query(tuple(Group(tuple(group)) for group in terms if group), tuple(order)), invalid_parts)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The parts of the query, each with the separator before it: `OR`, `NQ`, `SORT` or nothing."""
    pieces = text.replace("^^", _ESCAPED).split("^")
    while pieces:
        piece = pieces.pop(0)
        if piece == "EQ":
            return
        if piece.startswith(("ORDERBY", "GROUPBY")):
            yield "SORT", piece
            continue
        separator, part = (piece[:2], piece[2:]) if piece.startswith(("OR", "NQ")) else ("", piece)
        if part.startswith(("JOIN", "RLQUERY")):
            yield separator, "^".join((part, *_inner_pieces(part, pieces)))
        elif part:
            yield separator, part.replace(_ESCAPED, "^")


def _inner_pieces(part: str, pieces: list[str]) -> Iterator[str]:
    """Take the pieces of the query of related records."""
    is_join = part.startswith("JOIN")
    while pieces and not (is_join and (pieces[0] == "EQ" or pieces[0].startswith(_STARTS_AFTER_JOIN))):
        piece = pieces.pop(0)
        if piece == _RELATED_LIST_END:
            return
        yield piece


def _related_factor(part: str, table: QueriedTable, invalid_parts: list[str]) -> RelatedQuery | None:
    if (match := _JOIN.fullmatch(part)) and table.is_named(match[1]):
        own_name, name, column, text = match.groups()[1:]
        comparison, count = ">=", "1"
    elif match := _RELATED_LIST.fullmatch(part):
        name, column, comparison, count, text = match.groups()
        own_name = "sys_id"
    else:
        return None
    related = table.related(name)
    paths, columns = table.paths(own_name), related.paths(column) if related else ()
    if related is None or len(paths) != 1 or len(columns) != 1 or not table.can_relate(paths[0], related, columns[0]):
        return None
    inner = translate(text or "", related)
    invalid_parts += inner.invalid_parts
    comparison = "<>" if comparison == "!=" else comparison
    return RelatedQuery(inner.query.groups, 0, paths[0], related.table.name, columns[0], comparison, int(count))


def _condition_factor(part: str, table: QueriedTable) -> Condition | SubQuery | None:
    if part.startswith(_TEXT_QUERY):
        return table.condition(f"sys_idARE{braces(part.removeprefix(_TEXT_QUERY))}")
    match = _CONDITION.fullmatch(part)
    paths = table.paths(match[1]) if match else ()
    if match is None or not paths:
        return None
    spelling, value = match[2], match[3]
    if len(paths) > 1:
        return _joined_condition([".".join(path) for path in paths], spelling, value, table)
    text = _native_condition(".".join(paths[0]), spelling, value, table)
    return table.condition(text) if text else None


def _joined_condition(paths: list[str], spelling: str, value: str, table: QueriedTable) -> SubQuery | None:
    """A condition on a name whose value is that of two columns, joined by a space."""
    operator = SPELLINGS.get(spelling, spelling)
    operator = ALIASES.get(operator, operator)
    words = value.split(" ")
    if operator == "=" and len(words) <= MAX_NAME_WORDS:
        halves = [(" ".join(words[:number]), " ".join(words[number:])) for number in range(len(words) + 1)]
        pairs = [zip(paths, pair, strict=True) for pair in halves]
        text = "^NQ".join("^".join(f"{path}={braces(half)}" for path, half in pair) for pair in pairs)
    elif operator in ("LIKE", "STARTSWITH", "ENDSWITH"):
        text = "^OR".join(f"{path}{operator}{braces(value)}" for path in paths)
    elif operator in ("ISEMPTY", "ISNOTEMPTY"):
        text = ("^" if operator == "ISEMPTY" else "^OR").join(f"{path}{operator}" for path in paths)
    else:
        return None
    query = table.query(text)
    return SubQuery(query.groups) if query else None


def _native_condition(path: str, spelling: str, value: str, table: QueriedTable) -> str | None:
    if spelling in MATCHES_NOTHING:
        return f"{path}NOTHING"
    if spelling == DATE_PARTS:
        return _date_part(path, value)
    operator = SPELLINGS.get(spelling, spelling)
    operator = ALIASES.get(operator, operator)
    if value == "NULL" and operator in ("=", "!="):
        return f"{path}ISEMPTY" if operator == "=" else f"{path}ISNOTEMPTY"
    value = _GENERATED_DATE.sub(lambda date: f"{date[1]} {date[2] or _TIMES.get(date[3], date[3])}", value)
    match OPERATORS[operator].kind:
        case ValueKind.NONE:
            return f"{path}{operator}"
        case ValueKind.PATH:
            other = table.only_path(value)
            return other and f"{path}{operator}{other}"
        case ValueKind.DISTANCE:
            other_name, *distance = value.split("@", 1)
            other = table.only_path(other_name)
            return other and "@".join((f"{path}{operator}{other}", *distance))
        case ValueKind.LIST:
            # An empty value is that of an empty column.
            items = [item for item in value.split(",") if item]
            if len(items) > RECORDS.max_list_values:
                raise QueryError(f"more than {RECORDS.max_list_values} values")
            if not items:
                return f"{path}ISNOTEMPTY" if "NOT" in operator else f"{path}ISEMPTY"
            value = ",".join(items)
        case ValueKind.DYNAMIC:
            value = _DYNAMIC_IDS.get(value, value)
        case ValueKind.TABLE:
            path = "sys_id"
    return f"{path}{operator}{braces(value)}"


def braces(value: str) -> str:
    return f"{{{value.replace('}', '}}')}}}"


def _date_part(path: str, value: str) -> str | None:
    """
    >>> _date_part("opened_at", "Monday@javascript:gs.datePart('dayofweek','monday','EE')")
    'opened_atDAY_OF_WEEK_IS1'
    """
    match = _DATE_PART.fullmatch(value)
    if match is None:
        return None
    part, text = match[1], match[2].lower()
    if part == "dayofweek" and text in _WEEKDAYS:
        return f"{path}DAY_OF_WEEK_IS{_WEEKDAYS.index(text) + 1}"
    if part == "month" and text[:3] in _MONTHS:
        return f"{path}MONTH_IS{_MONTHS.index(text[:3]) + 1}"
    if part == "hour" and (hour := re.search(r"([0-9]{1,2}):[0-9]{2}:[0-9]{2}$", text)):
        return f"{path}HOUR_IS{int(hour[1])}"
    return f"{path}{part.upper()}_IS{text}" if part in ("year", "quarter", "week") and text.isdigit() else None

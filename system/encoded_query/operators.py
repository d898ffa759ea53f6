"""The operators of the query language, one row each; `sql` compiles them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum


class ValueKind(Enum):
    """The kind of value that an operator takes; `values` has one reader for each kind."""

    NONE = "none"
    TEXT = "text"
    LIST = "a,b,c"
    RANGE = "a@b"
    PATH = "path"
    DAY = "date or label@start@end"
    DATE_PART = "whole number"
    RELATIVE = "@unit@ago|ahead@n"
    DISTANCE = "path@unit@before|after@n"
    DYNAMIC = "me, my_groups, my_roles"
    WORDS = "words"
    TABLE = "table"


class ComparisonKind(StrEnum):
    """How the values of a column are compared; decides which operators fit."""

    TEXT = "text"  # ignoring case
    CHOICE = "choice"  # exactly, as text
    ID = "id"  # exactly; text operators also fit
    REFERENCE = "reference"  # exactly, as an id
    LIST = "list"  # ids in their order
    INTEGER = "integer"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    JSON = "json"  # only whether it has a value
    NEVER = "never"  # "password, secret none": not even whether there is a value


_TEXTS = frozenset({ComparisonKind.TEXT, ComparisonKind.ID})
_NUMBERS = frozenset({ComparisonKind.INTEGER, ComparisonKind.DECIMAL})
_DATES = frozenset({ComparisonKind.DATE, ComparisonKind.DATETIME})
_CHOICE = frozenset({ComparisonKind.CHOICE})
_REFERENCE = frozenset({ComparisonKind.REFERENCE})
_LIST = frozenset({ComparisonKind.LIST})
_VISIBLE = frozenset(ComparisonKind) - {ComparisonKind.NEVER}
# "json only the empty ones and ANYTHING/NOTHING".
_COMPARABLE = _VISIBLE - {ComparisonKind.JSON}
_ORDERED = _TEXTS | _NUMBERS | _DATES
_RECORD_ID = ("sys_id",)


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator; `complement` is the operator that matches exactly the other records.

    `only_path` is the only path that it can be used with; `numbers` is the range of a date part.
    """

    name: str
    kind: ValueKind
    description: str
    column_kinds: frozenset[ComparisonKind] = frozenset()
    complement: str | None = None
    # The operator that this one negates.
    negates: str | None = None
    only_path: tuple[str, ...] | None = None
    aliases: tuple[str, ...] = ()
    numbers: range = range(0)

    def fits(self, kind: ComparisonKind, path: tuple[str, ...]) -> bool:
        """Whether the operator can be used on a column that is compared in this way.

        >>> OPERATORS["LIKE"].fits(ComparisonKind.CHOICE, ("state",))
        True
        >>> OPERATORS["="].fits(ComparisonKind.NEVER, ("token",))
        False
        """
        return kind in self.column_kinds if self.only_path is None else path == self.only_path


def _pair(
    names: tuple[str, str],
    kind: ValueKind,
    descriptions: tuple[str, str],
    kinds: frozenset[ComparisonKind],
    aliases: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    negation: int = 1,
) -> list[Operator]:
    """Two complements, exactly one of which matches an empty column; `negation` is the index of the negation."""
    return [
        Operator(
            names[side],
            kind,
            descriptions[side],
            kinds,
            complement=names[1 - side],
            negates=names[1 - side] if side == negation else None,
            aliases=aliases[side],
        )
        for side in (0, 1)
    ]


def _date_part(name: str, description: str, numbers: range) -> Operator:
    return Operator(name, ValueKind.DATE_PART, description, _DATES, numbers=numbers)


def _on_record(name: str, kind: ValueKind, description: str) -> Operator:
    return Operator(name, kind, description, only_path=_RECORD_ID)


_FIELD_KINDS = _NUMBERS | _DATES

_ROWS: tuple[Operator, ...] = (
    *_pair(("=", "!="), ValueKind.TEXT, ("equal to", "not equal to"), _COMPARABLE),
    Operator(">", ValueKind.TEXT, "greater than; for dates, later than", _ORDERED),
    Operator("<", ValueKind.TEXT, "less than; for dates, earlier than", _ORDERED),
    Operator(">=", ValueKind.TEXT, "greater than or equal to; for dates, not earlier than", _ORDERED),
    Operator("<=", ValueKind.TEXT, "less than or equal to; for dates, not later than", _ORDERED),
    *_pair(("IN", "NOT IN"), ValueKind.LIST, ("one of", "none of"), _ORDERED | _CHOICE | _REFERENCE),
    *_pair(
        ("LIKE", "NOTLIKE"),
        ValueKind.TEXT,
        ("contains, ignoring case", "does not contain"),
        _TEXTS | _CHOICE,
        aliases=(("CONTAINS",), ("NOT LIKE",)),
    ),
    Operator("STARTSWITH", ValueKind.TEXT, "begins with, ignoring case", _TEXTS | _CHOICE),
    Operator("ENDSWITH", ValueKind.TEXT, "ends with, ignoring case", _TEXTS | _CHOICE),
    *_pair(("ISEMPTY", "ISNOTEMPTY"), ValueKind.NONE, ("has no value", "has a value"), _VISIBLE, negation=0),
    Operator("EMPTYSTRING", ValueKind.NONE, "is an empty string", _TEXTS),
    *_pair(("ANYTHING", "NOTHING"), ValueKind.NONE, ("every record", "no record"), _VISIBLE),
    Operator("BETWEEN", ValueKind.RANGE, "between the two values, inclusive", _ORDERED | _CHOICE),
    *_pair(
        ("SAMEAS", "NSAMEAS"),
        ValueKind.PATH,
        ("equal to another column", "different from another column"),
        _COMPARABLE,
    ),
    Operator("GT_FIELD", ValueKind.PATH, "greater than another column", _FIELD_KINDS),
    Operator("LT_FIELD", ValueKind.PATH, "less than another column", _FIELD_KINDS),
    Operator("GT_OR_EQUALS_FIELD", ValueKind.PATH, "greater than or equal to another column", _FIELD_KINDS),
    Operator("LT_OR_EQUALS_FIELD", ValueKind.PATH, "less than or equal to another column", _FIELD_KINDS),
    *_pair(("ON", "NOTON"), ValueKind.DAY, ("on that day or in that period", "outside that day or period"), _DATES),
    _date_part("YEAR_IS", "in that year", range(1, 10_000)),
    _date_part("QUARTER_IS", "in that quarter of any year", range(1, 5)),
    _date_part("MONTH_IS", "in that month of any year", range(1, 13)),
    _date_part("WEEK_IS", "in that ISO week of any year", range(1, 54)),
    _date_part("DAY_IS", "on that day of any month", range(1, 32)),
    _date_part("DAY_OF_WEEK_IS", "on that day of the week (1 is Monday)", range(1, 8)),
    _date_part("HOUR_IS", "in that hour of any day", range(24)),
    Operator("RELATIVEGT", ValueKind.RELATIVE, "after a time relative to now", _DATES),
    Operator("RELATIVEGE", ValueKind.RELATIVE, "at or after a time relative to now", _DATES),
    Operator("RELATIVELT", ValueKind.RELATIVE, "before a time relative to now", _DATES),
    Operator("RELATIVELE", ValueKind.RELATIVE, "at or before a time relative to now", _DATES),
    Operator(
        "RELATIVEEE",
        ValueKind.RELATIVE,
        "in the same minute, day or other unit as a time relative to now",
        _DATES,
    ),
    Operator("MORETHAN", ValueKind.DISTANCE, "more than n units before or after another date column", _DATES),
    Operator("LESSTHAN", ValueKind.DISTANCE, "less than n units before or after another date column", _DATES),
    *_pair(
        ("DYNAMIC", "ISNOT_DYNAMIC"),
        ValueKind.DYNAMIC,
        ("is the caller's ID, group or role", "is not the caller's ID, group or role"),
        _REFERENCE,
    ),
    *_pair(("HAS", "HASNOT"), ValueKind.LIST, ("the list contains the ID", "the list does not contain the ID"), _LIST),
    *_pair(
        ("CONTAINS_DYNAMIC", "DOESNOTCONTAIN_DYNAMIC"),
        ValueKind.DYNAMIC,
        (
            "the list contains the caller's ID, group or role",
            "the list does not contain the caller's ID, group or role",
        ),
        _LIST,
    ),
    _on_record("ARE", ValueKind.WORDS, "each word occurs in a searchable column"),
    _on_record("INSTANCEOF", ValueKind.TABLE, "the record belongs to this table or to one that extends it"),
)

OPERATORS: Mapping[str, Operator] = {row.name: row for row in _ROWS}

ALIASES: Mapping[str, str] = {alias: row.name for row in _ROWS for alias in row.aliases}
"""The operator of each alternative spelling."""

# They compare a record with its previous state, which a stored record does not contain.
REFUSED_OPERATORS = frozenset({"VALCHANGES", "CHANGESFROM", "CHANGESTO", "IS_CALCULATED"})


_LONGEST_FIRST = sorted([*OPERATORS, *ALIASES, *REFUSED_OPERATORS], key=len, reverse=True)
_OPERATOR_PATTERN = re.compile("|".join(map(re.escape, _LONGEST_FIRST)))


def match_operator(text: str, position: int = 0) -> str | None:
    """The longest operator spelling at this position, including refused ones: "INSTANCEOF before IN".

    >>> match_operator("numberINC1", 6), match_operator("sys_idINSTANCEOFtask", 6), match_operator("nameIS", 4)
    ('IN', 'INSTANCEOF', None)
    """
    match = _OPERATOR_PATTERN.match(text, position)
    return match.group() if match else None

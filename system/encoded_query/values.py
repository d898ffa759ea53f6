"""Reads the text after an operator into a typed value; one reader for each kind of value."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .dialect import RECORDS, Dialect, read_whole_path
from .errors import QueryError
from .functions import Operand, read_operand
from .operators import ValueKind
from .time_values import Distance, Period, RelativeTime, read_date_part, read_distance, read_period, read_relative_time
from .tree import Condition

DYNAMIC_VALUES = frozenset({"me", "my_groups", "my_roles"})

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_TABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class Range:
    """The value of BETWEEN: from `low` to `high`, both included."""

    low: Operand
    high: Operand


ConditionValue = None | Operand | tuple[Operand, ...] | Range | Period | RelativeTime | Distance | int


def read_list(text: str, position: int = 0, dialect: Dialect = RECORDS) -> tuple[Operand, ...]:
    """The values of IN, NOT IN, HAS and HASNOT, exactly as written between the commas.

    >>> read_list("1,2,javascript:gs.getUserID()")
    ('1', '2', ValueFunction(name='getUserID', count=0))
    """
    if text.count(",") >= dialect.max_list_values:
        raise QueryError(f"more than {dialect.max_list_values} values", position, text)
    operands = []
    for piece in text.split(","):
        # Chosen: an empty value is a mistake of the client. Ignoring it would make NOT IN match more than intended.
        if not piece:
            raise QueryError("a list cannot contain an empty value", position)
        operands.append(read_operand(piece, position))
        position += len(piece) + 1
    return tuple(operands)


def read_range(text: str, position: int = 0) -> Range:
    """The two ends of BETWEEN.

    >>> read_range("1@5")
    Range(low='1', high='5')
    """
    low, separator, high = text.partition("@")
    if not (low and high) or "@" in high:
        raise QueryError("two values separated by one @ are expected", position, text)
    return Range(read_operand(low, position), read_operand(high, position + len(low) + len(separator)))


def read_dynamic(text: str, position: int = 0) -> str:
    """The value of DYNAMIC and its variants.

    >>> read_dynamic("my_groups")
    'my_groups'
    """
    if text not in DYNAMIC_VALUES:
        raise QueryError(f"one of {', '.join(sorted(DYNAMIC_VALUES))} is expected", position, text)
    return text


def read_words(text: str, position: int = 0) -> tuple[str, ...]:
    """The words of ARE, without duplicates. Punctuation alone is not a word, because it is not indexed.

    >>> read_words(" printer  on - fire ")
    ('printer', 'on', 'fire')
    """
    read_operand(text, position)
    words = tuple(word for word in dict.fromkeys(text.split()) if any(map(str.isalnum, word)))
    if not words:
        raise QueryError("at least one word is expected", position, text)
    return words


def read_boolean(text: str, position: int = 0) -> bool:
    """A boolean, ignoring case: Python clients send `True`.

    >>> read_boolean("True"), read_boolean("0")
    (True, False)
    """
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise QueryError("true or false is expected", position, text)
    return value


def read_table_name(text: str, position: int = 0) -> str:
    """The table of INSTANCEOF.

    >>> read_table_name("task")
    'task'
    """
    if not _TABLE_NAME.fullmatch(text):
        raise QueryError("a table name is expected", position, text)
    return text


def _refuse_value(condition: Condition, _: Dialect) -> None:
    if condition.value:
        raise QueryError(f"{condition.operator} takes no value", condition.value_position, condition.value)


_READERS: Mapping[ValueKind, Callable[[Condition, Dialect], ConditionValue]] = {
    ValueKind.NONE: _refuse_value,
    ValueKind.TEXT: lambda condition, _: read_operand(condition.value, condition.value_position),
    ValueKind.LIST: lambda condition, dialect: read_list(condition.value, condition.value_position, dialect),
    ValueKind.RANGE: lambda condition, _: read_range(condition.value, condition.value_position),
    ValueKind.PATH: lambda condition, dialect: read_whole_path(condition.value, dialect, condition.value_position),
    ValueKind.DAY: lambda condition, _: read_period(condition.value, condition.value_position),
    ValueKind.DATE_PART: lambda condition, _: read_date_part(
        condition.value, condition.row.numbers, condition.value_position
    ),
    ValueKind.RELATIVE: lambda condition, _: read_relative_time(condition.value, condition.value_position),
    ValueKind.DISTANCE: lambda condition, dialect: read_distance(condition.value, condition.value_position, dialect),
    ValueKind.DYNAMIC: lambda condition, _: read_dynamic(condition.value, condition.value_position),
    ValueKind.WORDS: lambda condition, _: read_words(condition.value, condition.value_position),
    ValueKind.TABLE: lambda condition, _: read_table_name(condition.value, condition.value_position),
}


def read_value(condition: Condition, dialect: Dialect = RECORDS) -> ConditionValue:
    """The typed value of a condition, by the value kind of its operator. `parse` has already checked it.

    >>> read_value(Condition(("state",), "IN", "1,2"))
    ('1', '2')
    """
    if not condition.value and condition.row.kind is not ValueKind.NONE:
        raise QueryError(f"{condition.operator} needs a value", condition.value_position)
    return _READERS[condition.row.kind](condition, dialect)

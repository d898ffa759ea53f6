"""In charge of whether a column's default is a value of its type: it is read as a value that a caller sends."""

from __future__ import annotations

from system.errors import Invalid
from system.http.request_body import InvalidJson
from tableapi.catalogue.definitions import Column

from . import column_values

NONE = frozenset({"reference", "list", "password", "secret"})


def problem(column: Column) -> str:
    """What is wrong with a default, or nothing.

    >>> [problem(Column("it", "integer", "", "it", default=each)) for each in ("12", "1_000")]
    ['', 'A whole number is expected.']
    """
    if column.type in NONE:
        return "A column of this type has no default."
    try:
        column_values.default_of(column)
    except (Invalid, InvalidJson) as error:
        return error.message
    return ""

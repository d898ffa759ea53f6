"""Defines what makes up a column type: storage, parsing, comparison, display and JSON Schema. Pure."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from system.encoded_query import ComparisonKind

from .display_formats import DisplayFormat

if TYPE_CHECKING:
    from .definitions import Column

JsonSchema = Mapping[str, Any]


class StorageFormat(Enum):
    """How the database stores a value; `values.column_values` and `tableapi.write` convert it."""

    PLAIN = "the value"
    JSON = "the value as jsonb"
    HTML = "sanitized HTML, with its plain text in a second column"
    HASHED = "a one-way hash"
    ENCRYPTED = "the encrypted text"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnType:
    """A column type. `read` converts a value from a JSON body to a Python value, or raises `InvalidValue`."""

    name: str
    label: str
    sql_type: str
    column_sql: str = ""  # the type with its collation, if it has one
    storage: StorageFormat = StorageFormat.PLAIN
    # Whether a value refers to one record of another table, or to a list of records.
    is_reference: bool = False
    is_list: bool = False
    read: Callable[[Column, Any], Any]
    empty_text_clears: bool = True
    compare_as: ComparisonKind
    is_same: Callable[[Any, Any], bool] = operator.eq
    is_sortable: bool = True
    # SQL for the value in a response, for that value as JSON text, and for its display value.
    value_sql: str = "{}"
    json_sql: str = "to_json({})::text"
    display_format: DisplayFormat | None = None
    # JSON Schema of the value in a response, and in a body where that differs.
    schema: JsonSchema
    request_schema: JsonSchema | None = None
    # A value for the API docs; None for types whose values depend on the column.
    example: Any = None
    # A B-tree index rejects writes of values over 2,704 bytes, so types with longer values do not have one.
    has_main_index: bool = True
    can_be_unique: bool = True
    # The maximum length of an indexed, unique or display column: the default, and the highest allowed. None if columns
    # of the type have no maximum length.
    length_limits: tuple[int, int] | None = None
    has_default: bool = True
    has_choices: bool = False
    # The types that a column can be changed to, because the database stores them in the same way.
    convertible_types: frozenset[str] = frozenset()
    # The fields of Django models that are shown as this type.
    model_fields: tuple[str, ...] = ()

    @property
    def definition(self) -> str:
        """The column definition in CREATE TABLE."""
        return self.column_sql or self.sql_type

    @property
    def is_text(self) -> bool:
        """Whether values are compared case-insensitively; indexed columns are also searched by word."""
        return self.compare_as is ComparisonKind.TEXT

    @property
    def is_json(self) -> bool:
        return self.storage is StorageFormat.JSON

    @property
    def is_html(self) -> bool:
        return self.storage is StorageFormat.HTML

    @property
    def can_be_watched(self) -> bool:
        """Whether a set-on-change rule can use the column: SQL compares its values with `=`."""
        return self.storage is StorageFormat.PLAIN and not self.is_list

    @property
    def is_write_only(self) -> bool:
        """ "write-only for everybody: never returned, filtered, sorted"."""
        return self.compare_as is ComparisonKind.NEVER

    @property
    def has_target(self) -> bool:
        return self.is_reference or self.is_list

    @property
    def has_max_length(self) -> bool:
        return self.length_limits is not None

    @property
    def can_be_indexed(self) -> bool:
        return self.has_main_index or self.is_text

    @property
    def can_be_display(self) -> bool:
        return self.has_main_index and not self.is_list

"""The tables, columns, views and rules as one frozen value, which does not change during a request. Pure."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from system.encoded_query import ComparisonKind, Query, parse
from system.process_cache import WeightedCache

from .column_type import ColumnType
from .column_types import COLUMN_TYPES

USER_TABLE = "user"
# Product tables to which administrators can add columns.
EXTENSIBLE_TABLES = frozenset({USER_TABLE, "sys_group", "company"})
TABLE_TABLE = "sys_db_table"
# These tables are listed only for their rules: their records are read through the records that they belong to.
HIDDEN_TABLES = frozenset({"sys_comment"})

READ, CREATE, WRITE, DELETE = "read", "create", "write", "delete"
OPERATIONS = (CREATE, READ, WRITE, DELETE)

# Columns that only the server writes, with their type, the table that a reference points to, and their label.
SYS_COLUMNS: Mapping[str, tuple[str, str | None, str]] = {
    "sys_id": ("string", None, "ID"),
    "sys_created_at": ("datetime", None, "Created"),
    "sys_created_by": ("reference", USER_TABLE, "Created by"),
    "sys_updated_at": ("datetime", None, "Updated"),
    "sys_updated_by": ("reference", USER_TABLE, "Updated by"),
    "sys_version": ("integer", None, "Version"),
}
# Designed tables also have this column: the record's own table, which may extend the table in the URL.
OWN_TABLE_COLUMN = "sys_db_table_id"
NUMBER_COLUMN = "number"
DISPLAY_NAME_COLUMN = "display_name"
ViewEntries = tuple[tuple[str, str], ...]

# Bytes per process: a few thousand typical plans and statements, or a few hundred with 500 fields each.
STATEMENT_CACHE_BYTES = 32 * 1024 * 1024
VIEW_CACHE_BYTES = 64 * 1024 * 1024


def plain_text_column_name(column_id: str) -> str:
    """The database column for the plain text of HTML. Column names are lower case, so it conflicts with none."""
    return f"P{column_id}"


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column; `owner` is the table that defines it, `database_name` its name in the database."""

    name: str
    type: str
    owner: str
    database_name: str
    id: str = ""
    label: str = ""
    reference: str | None = None
    mandatory: bool = False
    is_unique: bool = False
    read_only: bool = False
    default: str = ""
    max_length: int | None = None
    is_display: bool = False
    is_indexed: bool = False
    converted_from_text: bool = False
    # Added to a product table by an administrator; its values are stored in a separate table.
    is_custom: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    column_type: ColumnType = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "column_type", COLUMN_TYPES[self.type])

    @property
    def compare_as(self) -> ComparisonKind:
        """
        >>> [Column(name, "string", "task", name).compare_as.value for name in ("sys_id", "notes")]
        ['id', 'text']
        """
        return ComparisonKind.ID if self.name == "sys_id" else self.column_type.compare_as

    @property
    def is_sys(self) -> bool:
        """Whether this is a `sys_` column that every table has and only the server writes."""
        return self.name in SYS_COLUMNS or self.name == OWN_TABLE_COLUMN

    @property
    def is_readable(self) -> bool:
        return not self.column_type.is_write_only

    @property
    def storage_key(self) -> str:
        """A key for the database table that stores the column."""
        return f"custom {self.owner}" if self.is_custom else self.owner

    @property
    def plain_text_name(self) -> str:
        return plain_text_column_name(self.id)


@dataclass(frozen=True)
class Rule:
    """An access rule. `roles` contains names. An invalid rule is `is_broken` and never matches."""

    id: str
    operation: str
    table: str | None
    column: str
    roles: frozenset[str]
    condition: str = ""
    admin_overrides: bool = True
    is_broken: bool = False

    @cached_property
    def query(self) -> Query:
        """The parsed condition, cached in the catalogue; raises QueryError if it is invalid."""
        return parse(self.condition)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One table with all columns of its records, including those of its parents."""

    id: str
    name: str
    label: str
    columns: Mapping[str, Column]
    parent: str | None = None
    is_system: bool = False
    number_prefix: str = ""
    # The id of the table that defines the prefix and has the number sequence: this table or a parent.
    number_table_id: str = ""
    deferred_create: bool = False
    # `lineage`: this table, then its parents upwards. `family`: this table and all that extend it, even indirectly.
    lineage: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    set_on_change_rules: "tuple[SetOnChangeRule, ...]" = ()

    @property
    def schema(self) -> str:
        return "public" if self.is_system else "records"

    @property
    def display_column(self) -> Column | None:
        """The column whose value names a record of this table."""
        display_column = next((column for column in self.columns.values() if column.is_display), None)
        return display_column or self.columns.get("name") or self.columns.get(NUMBER_COLUMN)

    @property
    def custom_columns(self) -> list[Column]:
        return [column for column in self.columns.values() if column.is_custom]

    def is_record_number(self, column: Column) -> bool:
        """Whether the column holds the record numbers."""
        return column.name == NUMBER_COLUMN and bool(self.number_prefix)

    def is_server_managed(self, column: Column) -> bool:
        """Whether clients can never write the column."""
        return column.is_sys or column.read_only or self.is_record_number(column) or self.is_set_on_change(column)

    def is_set_on_change(self, column: Column) -> bool:
        return any(rule.column is column for rule in self.set_on_change_rules)


@dataclass(frozen=True, slots=True, eq=False)
class SetOnChangeRule:
    """Sets `column` when `watched` changes to `value`, or to any value if `value` is empty."""

    column: Column
    watched: Column
    value: str
    # A copy of `column` whose default is the value to set.
    column_with_default: Column
    clears: bool


class DerivedCaches:
    """Caches of caller views, plans and statements, freed together with the catalogue they derive from."""

    def __init__(self) -> None:
        self.caller_views: WeightedCache[frozenset[str], Any] = WeightedCache(max_weight=VIEW_CACHE_BYTES, weigh=_weigh)
        self.statements: WeightedCache[Hashable, Any] = WeightedCache(max_weight=STATEMENT_CACHE_BYTES, weigh=_weigh)


def _weigh(key: Hashable, item: Any) -> int:
    return _weight(item) + len(repr(key))


def _weight(item: Any) -> int:
    """The approximate size of an item in bytes; views, plans and statements estimate their own."""
    if isinstance(item, tuple):
        return sum(map(_weight, item))
    weight = getattr(item, "weight", None)
    return weight if isinstance(weight, int) else len(repr(item))


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The tables, rules and form views of one catalogue version."""

    version: int
    tables: Mapping[str, Table]
    rules: tuple[Rule, ...] = ()
    # (table, view name) → paths in order, each with its section.
    views: Mapping[tuple[str, str], ViewEntries] = field(default_factory=dict)
    caches: DerivedCaches = field(default_factory=DerivedCaches, init=False, repr=False)

    @cached_property
    def rules_by_level(self) -> Mapping[tuple[str, str | None, str], tuple[Rule, ...]]:
        """(operation, table or None, column) → the rules of that level."""
        levels: dict[tuple[str, str | None, str], tuple[Rule, ...]] = {}
        for rule in self.rules:
            key = (rule.operation, rule.table, rule.column)
            levels[key] = (*levels.get(key, ()), rule)
        return levels

    @cached_property
    def tables_by_id(self) -> Mapping[str, Table]:
        return {table.id: table for table in self.tables.values()}

    @cached_property
    def column_count(self) -> int:
        return sum(len(table.columns) for table in self.tables.values())

    def view(self, table: Table, name: str) -> tuple[str, ...] | None:
        """The paths of a form view; a table without that view uses its parent's."""
        entries = self.form_view(table, name)
        return None if entries is None else tuple(path for path, _ in entries)

    def form_view(self, table: Table, *names: str) -> ViewEntries | None:
        """The paths of the first of these views that the table or a parent has, each with its section."""
        keys = ((owner, name) for name in names for owner in table.lineage)
        return next((self.views[key] for key in keys if key in self.views), None)

    def referring_columns(self, table: Table) -> Iterator[Column]:
        """Every column that may hold the id of a record of this table."""
        for other in self.tables.values():
            for column in other.columns.values():
                if column.owner == other.name and column.reference in table.lineage and not column.is_sys:
                    yield column

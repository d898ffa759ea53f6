"""Builds SQL text with numbered parameters: values are never in the text, names come from the catalogue. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import cached_property
from itertools import count
from typing import Any

from system.encoded_query import Condition, Moment
from tableapi.catalogue.definitions import Column, Table


@dataclass(frozen=True)
class StatementInputs:
    """The values of a request that a statement binds when it runs."""

    moment: Moment
    version: int = 0
    role_names: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    api_url: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    time_zone: tzinfo = UTC

    @cached_property
    def query_moment(self) -> Moment:
        """The moment for conditions of the caller; conditions of rules use UTC."""
        return self.moment if self.time_zone is UTC else replace(self.moment, time_zone=self.time_zone)

    @cached_property
    def date_moment(self) -> Moment:
        return self.query_moment.on_wall_clock()


Parameter = Callable[[StatementInputs], Any]


def quote(name: str) -> str:
    """
    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote text from the code or the catalogue as an SQL constant."""
    return "'" + text.replace("'", "''") + "'"


def table_identifier(table: Table) -> str:
    return f"{table.schema}.{quote(table.name)}"


def custom_identifier(table: str) -> str:
    """Return the table with the custom columns of a product table."""
    return f"records.{quote(table)}"


class StatementBuilder:
    """The parameters and aliases of one statement."""

    def __init__(self) -> None:
        self.parameters: list[Parameter] = []
        self._shared: dict[str, str] = {}
        self.table_count = 0
        self._aliases = count(1)

    def alias(self) -> str:
        return f"t{next(self._aliases)}"

    def table_alias(self) -> str:
        self.table_count += 1
        return self.alias()

    def parameter(self, value: Parameter, sql_type: str) -> str:
        self.parameters.append(value)
        return f"${len(self.parameters)}::{sql_type}"

    def shared_parameter(self, name: str, value: Parameter, sql_type: str) -> str:
        """Return a parameter that a statement may use more than once."""
        if name not in self._shared:
            self._shared[name] = self.parameter(value, sql_type)
        return self._shared[name]

    def input(self, name: str, sql_type: str) -> str:
        """Return a parameter for a value of `StatementInputs.values`."""
        return self.shared_parameter(name, lambda inputs: inputs.values[name], sql_type)

    def time_zone_parameter(self) -> str:
        return self.shared_parameter("time zone", lambda inputs: str(inputs.time_zone), "text")


class TableAlias:
    """A table in a FROM clause. The tables of its parents and of its custom columns are joined when their columns are
    used."""

    def __init__(self, builder: StatementBuilder, table: Table) -> None:
        self.table = table
        self._builder = builder
        self._aliases: dict[str, str] = {table.name: builder.table_alias()}

    @property
    def name(self) -> str:
        return self._aliases[self.table.name]

    def sys_id(self) -> str:
        return f"{self.name}.sys_id"

    def column(self, column: Column, *, is_plain: bool = True) -> str:
        """Return the stored value; for a wysiwyg column its plain text, unless `is_plain` is false."""
        if column.name == "sys_id":
            return self.sys_id()
        stored_value = self.database_column(column, column.database_name)
        if not column.column_type.is_html or not is_plain:
            return stored_value
        plain_text = self.database_column(column, column.plain_text_name)
        # Old values in a column that was converted from text have no separate plain text.
        return f"coalesce({plain_text}, {stored_value})" if column.converted_from_text else plain_text

    def is_html(self, column: Column) -> str:
        return f"{self.database_column(column, column.plain_text_name)} IS NOT NULL"

    def database_column(self, column: Column, name: str) -> str:
        return f"{self._alias(column.storage_key)}.{quote(name)}"

    def _alias(self, source: str) -> str:
        if source not in self._aliases:
            self._aliases[source] = self._builder.table_alias()
        return self._aliases[source]

    def row_aliases(self) -> list[str]:
        """Return the aliases of the record's rows in this table and its parents."""
        return [self._alias(name) for name in self.table.lineage]

    def from_sql(self, source: str = "") -> str:
        """Return the SQL for FROM; call it after all columns are used. `source` replaces the table."""
        sql = f"{source or table_identifier(self.table)} {self.name}"
        for name, alias in self._aliases.items():
            if name != self.table.name:
                join = "LEFT JOIN" if self.table.is_system else "JOIN"  # a row of custom columns may be missing
                joined = custom_identifier(self.table.name) if self.table.is_system else f"records.{quote(name)}"
                sql += f" {join} {joined} {alias} ON {alias}.sys_id = {self.sys_id()}"
        return sql

    def join_sql(self) -> str:
        """Return the SQL for JOIN. PostgreSQL allows parentheses around a join, but not around a single table."""
        from_sql = self.from_sql()
        return f"({from_sql})" if len(self._aliases) > 1 else from_sql

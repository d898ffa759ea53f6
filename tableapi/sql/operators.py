"""Compiles conditions on typed columns for the Table API. Pure."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, ClassVar

from system.encoded_query import ComparisonKind, Condition, Moment, read_list, read_value
from system.encoded_query.sql import (
    COMPARISONS,
    FOLD_ARRAY_SQL,
    FOLD_SQL,
    Comparison,
    ConditionCompiler,
    ValueReader,
)
from tableapi.catalogue.definitions import Column
from tableapi.values.comparison import SQL_TYPES, comparable_value

from .statement_builder import StatementBuilder

SECOND_SQL = "interval '1 second'"
# Times are displayed to the second, so a time in a condition means the whole second.
INSTANT_COMPARISONS = {">": ">= {v} + " + SECOND_SQL, ">=": ">= {v}", "<": "< {v}", "<=": "< {v} + " + SECOND_SQL}

# Read from the primary only, because group membership decides what a caller may read.
MEMBERS_TABLE = "public.sys_user_group"
DYNAMIC_VALUE_TESTS = {
    "me": "= {me}",
    "my_groups": f"IN (SELECT group_id FROM {MEMBERS_TABLE} WHERE user_id = {{me}})",
    "my_roles": "IN (SELECT sys_id FROM public.sys_role WHERE name = ANY ({roles}))",
}
DYNAMIC_VALUE_ARRAYS = {
    "me": "ARRAY[{me}]",
    "my_groups": f"ARRAY(SELECT group_id FROM {MEMBERS_TABLE} WHERE user_id = {{me}})",
    "my_roles": "ARRAY(SELECT sys_id FROM public.sys_role WHERE name = ANY ({roles}))",
}
# Operators that can use an index.
INDEXED_OPERATORS = frozenset({"=", "IN", ">", ">=", "<", "<=", "BETWEEN"})


def comparison_key(kind: ComparisonKind, sql: str) -> str:
    """Return the SQL that a column is compared and sorted by; an empty text counts as no value.

    >>> comparison_key(ComparisonKind.TEXT, "t.subject")
    'nullif(lower(t.subject COLLATE "pg_c_utf8"), \\'\\')'
    """
    if kind is ComparisonKind.TEXT:
        return f"nullif({FOLD_SQL.format(sql)}, '')"
    return f'{sql} COLLATE "C"' if kind is ComparisonKind.CHOICE else sql


class ColumnSubject:
    """A column in a condition: its raw SQL, and how it is compared."""

    def __init__(self, column: Column, raw: str) -> None:
        self.column = column
        self.raw = raw
        self.kind = column.compare_as

    @property
    def comparison_key(self) -> str:
        return comparison_key(self.kind, self.raw)

    @property
    def instant(self) -> str:
        """The value as a timestamp; a date counts as its midnight in UTC."""
        return f"({self.raw})::timestamp AT TIME ZONE 'UTC'" if self.kind is ComparisonKind.DATE else self.raw

    @property
    def whole_second(self) -> str:
        """The value truncated to the second, as times are displayed."""
        is_time = self.kind in (ComparisonKind.DATE, ComparisonKind.DATETIME)
        return f"date_trunc('second', {self.instant})" if is_time else self.comparison_key

    def compare(self, operator: str, other: "ColumnSubject") -> str:
        return f"{self.whole_second} {operator} {other.whole_second}"


_TEXT_COLUMN = Column("", "string", "", "")


def _read_ids(condition: Condition, moment: Moment) -> list[str]:
    operands = read_list(condition.value, condition.value_position)
    return [str(comparable_value(_TEXT_COLUMN, operand, moment, condition)) for operand in operands]


class ColumnConditionCompiler(ConditionCompiler[ColumnSubject]):
    """Compiles a condition. Values are bound as functions of the request, so that other requests can reuse the SQL.

    `slot` is the number of the condition in the request; None for a condition of a rule, which has its own values.
    """

    def __init__(
        self,
        builder: StatementBuilder,
        condition: Condition,
        slot: int | None,
        subject: ColumnSubject,
        other: ColumnSubject | None,
    ) -> None:
        super().__init__(condition, subject, other)
        self.builder = builder
        self.slot = slot

    def bind(self, reader: ValueReader, sql_type: str) -> str:
        slot, condition = self.slot, self.condition
        if slot is None:
            return self.builder.parameter(lambda inputs: reader(condition, inputs.moment), sql_type)
        if self.subject.kind is ComparisonKind.DATE:
            return self.builder.parameter(lambda inputs: reader(inputs.conditions[slot], inputs.date_moment), sql_type)
        return self.builder.parameter(lambda inputs: reader(inputs.conditions[slot], inputs.query_moment), sql_type)

    def time_zone(self) -> str:
        is_local = self.slot is not None and self.subject.kind is ComparisonKind.DATETIME
        return self.builder.time_zone_parameter() if is_local else super().time_zone()

    def sql(self) -> str:
        sql = super().sql()
        if self.subject.column.is_custom and self.condition.operator in INDEXED_OPERATORS:
            # Tells PostgreSQL that there is a row of custom columns, so that it can start with an index of their table.
            return f"({sql} AND {self.subject.raw} IS NOT NULL)"
        return sql

    def _bind_value(self, operand_of: Callable[[Any], Any] = lambda value: value) -> str:
        column = self.subject.column

        def reader(condition: Condition, moment: Moment) -> Any:
            return comparable_value(column, operand_of(read_value(condition)), moment, condition)

        placeholder = self.bind(reader, SQL_TYPES[self.subject.kind])
        return FOLD_SQL.format(placeholder) if self.subject.kind is ComparisonKind.TEXT else placeholder

    def any_value(self, test: str) -> str:
        return test

    def read_text(self, condition: Condition, moment: Moment) -> Any:
        return comparable_value(_TEXT_COLUMN, read_value(condition), moment, condition)  # type: ignore[arg-type]  # a value of TEXT kind

    def equal(self) -> str:
        subject = self.subject
        if subject.kind is ComparisonKind.LIST:
            return f"{subject.raw} = {self.bind(_read_ids, 'varchar[]')}"
        value = self._bind_value()
        if subject.kind is ComparisonKind.DATETIME:
            return f"({subject.comparison_key} >= {value} AND {subject.comparison_key} < {value} + {SECOND_SQL})"
        return f"{subject.comparison_key} = {value}"

    def compare_order(self, operator: str) -> str:
        value = self._bind_value()
        if self.subject.kind is ComparisonKind.DATETIME:
            return f"{self.subject.comparison_key} {INSTANT_COMPARISONS[operator].format(v=value)}"
        return f"{self.subject.comparison_key} {operator} {value}"

    def one_of(self) -> str:
        subject = self.subject
        column = subject.column

        def items(condition: Condition, moment: Moment) -> list[Any]:
            return [comparable_value(column, operand, moment, condition) for operand in read_value(condition)]  # type: ignore[union-attr]

        values = self.bind(items, SQL_TYPES[subject.kind] + "[]")
        if subject.kind is ComparisonKind.TEXT:
            return f"{subject.comparison_key} = ANY ({FOLD_ARRAY_SQL.format(values)})"
        key = subject.whole_second if subject.kind is ComparisonKind.DATETIME else subject.comparison_key
        return f"{key} = ANY ({values})"

    def between(self) -> str:
        subject = self.subject
        low, high = self._bind_value(attrgetter("low")), self._bind_value(attrgetter("high"))
        if subject.kind is ComparisonKind.DATETIME:
            return f"({subject.comparison_key} >= {low} AND {subject.comparison_key} < {high} + {SECOND_SQL})"
        return f"{subject.comparison_key} BETWEEN {low} AND {high}"

    def has(self) -> str:
        return f"{self.subject.raw} && {self.bind(_read_ids, 'varchar[]')}"

    def not_empty(self) -> str:
        subject = self.subject
        if subject.kind is ComparisonKind.LIST:
            return f"cardinality({subject.raw}) > 0"
        return f"{subject.comparison_key} IS NOT NULL"

    def same_as(self) -> str:
        if self.subject.kind is ComparisonKind.LIST:
            return f"nullif({self.subject.raw}, '{{}}') IS NOT DISTINCT FROM nullif({self.other.raw}, '{{}}')"
        return f"{self.subject.whole_second} IS NOT DISTINCT FROM {self.other.whole_second}"

    def dynamic_sql(self, templates: Mapping[str, str]) -> str:
        template = templates[self.condition.value]
        # Bound only if used, because PostgreSQL refuses parameters that the text does not contain.
        if "{roles}" in template:
            roles = self.builder.shared_parameter("roles", lambda inputs: list(inputs.role_names), "varchar[]")
            return template.format(roles=roles)
        return template.format(me=self.builder.shared_parameter("me", lambda inputs: inputs.moment.user_id, "varchar"))

    comparisons: ClassVar[Mapping[str, Comparison]] = {
        **COMPARISONS,
        "DYNAMIC": lambda it: f"{it.subject.comparison_key} {it.dynamic_sql(DYNAMIC_VALUE_TESTS)}",
        "CONTAINS_DYNAMIC": lambda it: f"{it.subject.raw} && {it.dynamic_sql(DYNAMIC_VALUE_ARRAYS)}::varchar[]",
    }

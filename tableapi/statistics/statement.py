"""Compiles the statement for statistics: readable records, their groups, and the JSON of each group. Pure."""

import json
from itertools import count, groupby
from operator import attrgetter

from system.encoded_query import ComparisonKind
from tableapi.query.expressions import ResolvedPath
from tableapi.query.parameters import DisplayMode
from tableapi.query.read_plan import OutputField
from tableapi.sql import output_fields, predicates
from tableapi.sql.operators import comparison_key
from tableapi.sql.select import FromClause, Statement
from tableapi.sql.statement_builder import StatementBuilder, literal

from .parameters import COUNT, Aggregate, GroupKey, SortKey
from .plan import StatisticsPlan


class StatisticsCompiler:
    def __init__(self, plan: StatisticsPlan) -> None:
        self.plan = plan
        self.shape = plan.shape
        self.builder = StatementBuilder()
        self.from_clause = FromClause(self.builder, plan.read)
        # The SQL alias of each aggregate.
        self.aliases = {aggregate: f"a{number}" for number, aggregate in enumerate(self.shape.all_aggregates)}

    def statement(self) -> Statement:
        """Return the catalogue version and the JSON of all groups."""
        body = (
            f"SELECT string_agg({self._json_sql()}, ',' ORDER BY g.place) FROM ({self._groups_sql()}) g "
            f"WHERE g.place <= {self.shape.limit}"
        )
        return Statement(f"SELECT s.version, ({body}) FROM public.tableapi_state s", self.builder.parameters)

    def _records_sql(self) -> str:
        """Select the values of groups and aggregates for each record; hidden values are NULL."""
        where = self.from_clause.conditions(self.plan.read)
        for path in dict.fromkeys(self.plan.deciding_paths):
            where += self._visible_conditions(path)
        values = [f"{self._group_value(key, field.path)} AS g{number}" for number, (key, field) in self._group_items()]
        values += [f"{self._value(path)} AS v{self.aliases[aggregate]}" for aggregate, path in self.plan.paths.items()]
        where_sql = f" WHERE {' AND '.join(where)}" if where else ""
        return f"SELECT {', '.join(values)} FROM {self.from_clause.sql()}{where_sql}"

    def _group_items(self) -> list[tuple[int, tuple[GroupKey, OutputField]]]:
        return list(enumerate(zip(self.shape.group_keys, self.plan.group_fields, strict=True)))

    def _visible_conditions(self, path: ResolvedPath) -> list[str]:
        """Require a visible value. Empty references are visible; references to unreadable records are not."""
        conditions = []
        for number, step in enumerate(path.steps):
            alias = self.from_clause.alias_at(path.steps[:number])
            conditions += predicates.decision_conditions(self.builder, step.guard, alias)
            target = self.from_clause.alias_at(path.steps[: number + 1])
            conditions.append(f"({target.sys_id()} IS NOT NULL OR coalesce({alias.column(step.column)}, '') = '')")
        alias = self.from_clause.alias_at(path.steps)
        for guard in predicates.decision_conditions(self.builder, path.guard, alias):
            conditions.append(f"({alias.sys_id()} IS NULL OR {guard})" if path.steps else guard)
        return conditions

    def _value(self, path: ResolvedPath) -> str:
        value = self.from_clause.value(path)
        return f"nullif({value}, '')" if path.column.column_type.is_reference else value

    def _group_value(self, key: GroupKey, path: ResolvedPath) -> str:
        value = self._value(path)
        if not key.period:
            return value
        if path.column.compare_as is ComparisonKind.DATETIME:
            value = f"({value}) AT TIME ZONE {self.builder.time_zone_parameter()}"
        return f"date_trunc({literal(key.period)}, ({value})::timestamp)::date"

    def _groups_sql(self) -> str:
        keys = []
        for number, (key, field) in self._group_items():
            is_text = field.path.column.compare_as is ComparisonKind.TEXT and not key.period
            keys.append(comparison_key(ComparisonKind.TEXT, f"r.g{number}") if is_text else f"r.g{number}")
        # Texts that differ only in case are one group, which has the first of them as its value.
        values = [f"min(r.g{number}) AS g{number}" if key != f"r.g{number}" else f"r.g{number}"
                  for number, key in enumerate(keys)]  # fmt: skip
        values += [f"{self._aggregate_sql(aggregate)} AS {name}" for aggregate, name in self.aliases.items()]
        order = [self._order_sql(sort, keys) for sort in self.shape.order] + keys
        place = f"row_number() OVER ({'ORDER BY ' + ', '.join(order) if order else ''}) AS place"
        group_by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*values, place])} FROM ({self._records_sql()}) r{group_by}{self._having_sql()}"

    def _aggregate_sql(self, aggregate: Aggregate) -> str:
        if aggregate.function == COUNT:
            return "count(*)"
        value = f"r.v{self.aliases[aggregate]}"
        if aggregate.function == "count_distinct":
            return f"count(DISTINCT {comparison_key(self.plan.paths[aggregate].column.compare_as, value)})"
        return f"{aggregate.function}({value})"

    def _order_sql(self, sort: SortKey, keys: list[str]) -> str:
        sql = keys[sort.target] if isinstance(sort.target, int) else self._aggregate_sql(sort.target)
        return f"{sql} DESC NULLS LAST" if sort.is_descending else sql

    def _having_sql(self) -> str:
        numbers, terms = count(), []
        for alternatives in self.shape.having:
            values = [self.builder.input(f"having{next(numbers)}", "numeric") for _ in alternatives]
            pairs = zip(alternatives, values, strict=True)
            terms.append(
                " OR ".join(f"{self._aggregate_sql(it.aggregate)} {it.operator} {value}" for it, value in pairs)
            )
        return f" HAVING ({') AND ('.join(terms)})" if terms else ""

    def _json_sql(self) -> str:
        members = []
        if self.shape.group_keys:
            groups = [(key.text, self._group_json(number, key, field)) for number, (key, field) in self._group_items()]
            members.append(("group", _object_sql(groups)))
        for function, aggregates in groupby(self.shape.aggregates, attrgetter("function")):
            if function == COUNT:
                members.append((COUNT, f"g.{self.aliases[Aggregate(COUNT)]}::text"))
            else:
                values = [(".".join(aggregate.path), self._aggregate_json(aggregate)) for aggregate in aggregates]
                members.append((function, _object_sql(values)))
        return _object_sql(members)

    def _aggregate_json(self, aggregate: Aggregate) -> str:
        value = f"g.{self.aliases[aggregate]}"
        if aggregate.function in ("min", "max"):
            return output_fields.value_json_sql(self.plan.paths[aggregate].column, value)
        return f"coalesce(to_json({value})::text, 'null')"

    def _group_json(self, number: int, key: GroupKey, field: OutputField) -> str:
        """Return the JSON of a group key, without links as in lists with `sysparm_exclude_reference_link`."""
        column, value = field.path.column, f"g.g{number}"
        stored_value = f"coalesce(to_json({value})::text, 'null')"
        if not key.period and not column.column_type.has_target:
            stored_value = output_fields.value_json_sql(column, value)
        if self.shape.display_mode == DisplayMode.VALUE:
            return stored_value
        if key.period:
            display = f"{value}::text"
        elif column.column_type.has_target:
            display = output_fields.reference_display_sql(self.builder, field.display_path, value)
        else:
            display = output_fields.display_value_sql(column, value)
        display = f"coalesce(to_json({display})::text, 'null')"
        if self.shape.display_mode == DisplayMode.DISPLAY:
            return display
        return _object_sql([("value", stored_value), ("display_value", display)])


def _object_sql(members: list[tuple[str, str]]) -> str:
    """Build a JSON object as text from values that are JSON text."""
    pieces: list[str] = []
    for name, value in members:
        pieces += [literal(f"{',' if pieces else '{'}{json.dumps(name, ensure_ascii=False)}:"), value]
    return f"concat({', '.join([*pieces, literal('}')])})"

"""Plans statistics: resolves names to columns with the caller's guards, and checks their types. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from system.encoded_query import ComparisonKind
from system.errors import BadRequest, InvalidParameter
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Table
from tableapi.query import read_plan
from tableapi.query.expressions import ResolvedPath
from tableapi.query.path_resolver import required_path, resolve_query
from tableapi.query.read_plan import OutputField, ReadPlan

from .parameters import COUNT, Aggregate, GroupKey, StatisticsRequest, StatisticsShape

NUMBER_KINDS = frozenset({ComparisonKind.INTEGER, ComparisonKind.DECIMAL})
TIME_KINDS = frozenset({ComparisonKind.DATE, ComparisonKind.DATETIME})
EXACT_KINDS = frozenset({ComparisonKind.CHOICE, ComparisonKind.ID, ComparisonKind.REFERENCE, ComparisonKind.BOOLEAN})
DISTINCT_KINDS = NUMBER_KINDS | TIME_KINDS | EXACT_KINDS | {ComparisonKind.TEXT}
KINDS_BY_FUNCTION: Mapping[str, frozenset[ComparisonKind]] = {
    "sum": NUMBER_KINDS,
    "avg": NUMBER_KINDS,
    "min": NUMBER_KINDS | TIME_KINDS,
    "max": NUMBER_KINDS | TIME_KINDS,
    "count_distinct": DISTINCT_KINDS,
}


@dataclass(frozen=True, slots=True)
class StatisticsPlan:
    shape: StatisticsShape
    # Reads the records; its fields are the columns of the groups and aggregates.
    read: ReadPlan
    group_fields: tuple[OutputField, ...]
    paths: Mapping[Aggregate, ResolvedPath]

    @property
    def deciding_paths(self) -> list[ResolvedPath]:
        """Paths whose values decide the group of a record, or whether and where the group is returned. A record is left
        out if the caller cannot read one of them, because the result would reveal the value."""
        aggregates = [aggregate for aggregate in self.shape.deciding_aggregates if aggregate.path]
        return [field.path for field in self.group_fields] + [self.paths[aggregate] for aggregate in aggregates]


def plan_statistics(view: CallerView, table: Table, request: StatisticsRequest) -> StatisticsPlan:
    """Plan statistics. Raises BadRequest or QueryError for columns that do not exist or have an unsuitable type."""
    shape, query = request.shape, request.query.shape.query
    where = resolve_query(view, table, query, with_slots=True)
    group_fields = tuple(_group_field(view, table, key) for key in shape.group_keys)
    aggregates = [aggregate for aggregate in shape.all_aggregates if aggregate.function != COUNT]
    paths = {aggregate: _aggregate_path(view, table, aggregate) for aggregate in aggregates}
    _refuse_times(shape, paths)
    fields = (*group_fields, *(OutputField(".".join(aggregate.path), path) for aggregate, path in paths.items()))
    plan = ReadPlan(table, view.record_decision(table), fields, where)
    read_plan.refuse_too_many_joins(plan, query, "sysparm_group_by")
    return StatisticsPlan(shape, plan, group_fields, paths)


def _group_field(view: CallerView, table: Table, key: GroupKey) -> OutputField:
    path = required_path(view, table, key.path)
    kind = path.column.compare_as
    if kind not in (TIME_KINDS if key.period else DISTINCT_KINDS):
        raise _type_error("sysparm_group_by", f"Records cannot be grouped by {key.text}", path)
    return OutputField(".".join(key.path), path, read_plan.display_path(view, path.column))


def _aggregate_path(view: CallerView, table: Table, aggregate: Aggregate) -> ResolvedPath:
    path = required_path(view, table, aggregate.path)
    if path.column.compare_as not in KINDS_BY_FUNCTION[aggregate.function]:
        message = f"{aggregate.function} cannot be used with {'.'.join(aggregate.path)}"
        raise _type_error(f"sysparm_{aggregate.function}_fields", message, path)
    return path


def _refuse_times(shape: StatisticsShape, paths: Mapping[Aggregate, ResolvedPath]) -> None:
    for aggregate in (condition.aggregate for alternatives in shape.having for condition in alternatives):
        if aggregate.function in ("min", "max") and paths[aggregate].column.compare_as in TIME_KINDS:
            name = f"{aggregate.function}({'.'.join(aggregate.path)})"
            raise _type_error("sysparm_having", f"{name} cannot be compared with a number", paths[aggregate])


def _type_error(parameter: str, message: str, path: ResolvedPath) -> BadRequest:
    return InvalidParameter(f"{message}, because its type is {path.column.type}.", field=parameter)

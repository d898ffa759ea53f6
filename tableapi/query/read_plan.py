"""Plans a read: resolves names to columns with the caller's guards. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from system.encoded_query import (
    Condition,
    Distance,
    Group,
    Query,
    QueryError,
    RelatedQuery,
    SubQuery,
    ValueKind,
    read_value,
)
from system.errors import BadRequest, InvalidParameter
from tableapi.catalogue.definitions import Column, Table

from .expressions import ALWAYS, NEVER, Decision, Expression, PathStep, ResolvedPath
from .names import Names
from .path_resolver import ReadScope, required_path, resolve_path, resolve_query

MAX_JOINS = 12
DEFAULT_VIEW_NAMES = ("Default", "default")
BYTES_PER_FIELD = 500


@dataclass(frozen=True, slots=True)
class OutputField:
    """One field of a response: its key as requested, its path, and the path to the display value of a reference."""

    key: str
    path: ResolvedPath
    display_path: ResolvedPath | None = None
    # The values of these columns follow, joined by a space.
    joined_paths: tuple[ResolvedPath, ...] = ()
    # The column is a secret, and its value is not shown.
    is_masked: bool = False


@dataclass(frozen=True, slots=True)
class SortKey:
    path: ResolvedPath
    is_descending: bool


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Everything that a statement needs. It depends on the shape of the request, not on its values."""

    table: Table
    records: Decision
    fields: tuple[OutputField, ...]
    where: Expression | None = None
    order: tuple[SortKey, ...] = ()
    ignored: tuple[str, ...] = ()
    # The record's version for the ETag, if the caller can read it.
    version: ResolvedPath | None = None

    @property
    def weight(self) -> int:
        """The approximate size in a cache, in bytes."""
        return BYTES_PER_FIELD * len(self.fields)


def plan_read(
    scope: ReadScope,
    table: Table,
    *,
    query: Query | None = None,
    fields: tuple[str, ...] = (),
    view: str = "",
    names: Names | None = None,
) -> ReadPlan:
    """Plan a read. Raises BadRequest or QueryError for names that do not exist or cannot be used there."""
    query = query or Query()
    where = resolve_query(scope, table, query, with_slots=True)
    sort_keys = _sort_keys(scope, table, query)
    outputs, ignored = (
        (_named_fields(scope, table, fields, view, names), tuple[str, ...]())
        if names
        else _output_fields(scope, table, fields, _view_paths(scope, table, view) if view else None)
    )
    version = resolve_path(scope, table, ("sys_version",))
    plan = ReadPlan(table, scope.record_decision(table), outputs, where, sort_keys, ignored, version)
    refuse_too_many_joins(plan, query, "sysparm_fields" if fields else "sysparm_view")
    return plan


def plan_filter(scope: ReadScope, table: Table, query: Query) -> ReadPlan:
    """Plan to select the matching records, with their ids if the caller can read them."""
    sys_id = _output_field(scope, table, "sys_id")
    where = resolve_query(scope, table, query, with_slots=True)
    plan = ReadPlan(table, scope.record_decision(table), (sys_id,) if sys_id else (), where)
    refuse_too_many_joins(plan, query, "sysparm_query")
    return plan


def _sort_keys(scope: ReadScope, table: Table, query: Query) -> tuple[SortKey, ...]:
    sort_keys = []
    for sort in query.order:
        path = required_path(scope, table, sort.path, sort.position)
        if not path.column.column_type.is_sortable:
            raise QueryError(f"{path.column.type} columns cannot be sorted", sort.position, ".".join(sort.path))
        sort_keys.append(SortKey(path, sort.is_descending))
    return tuple(sort_keys)


def _view_paths(scope: ReadScope, table: Table, view: str) -> tuple[str, ...] | None:
    """Return the paths of a view; None for all columns, if ServiceNow clients send `Default` without such a view."""
    is_default = view in DEFAULT_VIEW_NAMES
    names = dict.fromkeys((view, *DEFAULT_VIEW_NAMES)) if is_default else (view,)
    views = (scope.catalogue.view(table, name) for name in names)
    paths = next((paths for paths in views if paths is not None), None)
    if paths is None and not is_default:
        raise InvalidParameter(f'There is no view named "{view[:80]}".', field="sysparm_view")
    return paths


def _output_fields(
    scope: ReadScope, table: Table, fields: tuple[str, ...], view: tuple[str, ...] | None
) -> tuple[tuple[OutputField, ...], tuple[str, ...]]:
    """Return the fields of the response, and the requested names that do not exist."""
    names: Iterable[str] = fields or (table.columns if view is None else view)
    outputs, ignored = {}, []
    for name in dict.fromkeys(names):
        output = _output_field(scope, table, name)
        if output is None:
            ignored.append(name)
        elif view is None or name in view:
            outputs[name] = output
    if not outputs and (fields or view is not None):
        # "the view is not returned": do not return all columns instead.
        raise no_fields_error()
    return tuple(outputs.values()), tuple(ignored) if fields else ()


def _named_fields(
    scope: ReadScope, table: Table, fields: tuple[str, ...], view: str, names: Names
) -> tuple[OutputField, ...]:
    """Return the fields of a dialect that leaves out what it cannot find."""
    view_paths = scope.catalogue.view(table, view) if view and not fields else None
    keys = fields or [key for path in view_paths or table.columns for key in names.keys(table, path)]
    outputs = []
    for key in dict.fromkeys(keys):
        paths = names.paths(scope.catalogue, table, key)
        visible = [found for path in paths if (found := resolve_path(scope, table, path)) is not None]
        if visible:
            path, *joined = visible
            outputs.append(OutputField(key, path, display_path(scope, path.column), tuple(joined)))
        elif names.is_masked(table, key) and (sys_id := resolve_path(scope, table, ("sys_id",))):
            outputs.append(OutputField(key, sys_id, is_masked=True))
    return tuple(outputs)


def no_fields_error() -> BadRequest:
    """Return the same error for missing fields and for fields of a record that the caller cannot read."""
    return BadRequest("None of the requested fields can be returned.", code="no_fields", field="sysparm_fields")


def _output_field(scope: ReadScope, table: Table, name: str) -> OutputField | None:
    path = resolve_path(scope, table, tuple(name.split(".")))
    return None if path is None else OutputField(name, path, display_path(scope, path.column))


def display_path(scope: ReadScope, column: Column) -> ResolvedPath | None:
    """Return the path to the display value of the referenced record, or None if the caller cannot read it."""
    target = scope.catalogue.tables.get(column.reference or "")
    display_column = target.display_column if target else None
    if target is None or display_column is None or (records := scope.record_decision(target)) == NEVER:
        return None
    column_and_guard = scope.column(target, display_column.name)
    return ResolvedPath((PathStep(column, ALWAYS, target, records),), *column_and_guard) if column_and_guard else None


def refuse_too_many_joins(plan: ReadPlan, query: Query, output_parameter: str) -> None:
    """Raise an error that names the parameter with too many references: the query, or the one for the fields."""
    query_joins = _reference_paths(_query_paths(query))
    message = f"The paths follow more than {MAX_JOINS} references. Use fewer paths."
    if len(query_joins) > MAX_JOINS:
        raise BadRequest(message, code="invalid_query", field="sysparm_query")
    output_joins = _reference_paths(output.path.names for output in plan.fields)
    if len(query_joins | output_joins) > MAX_JOINS:
        raise InvalidParameter(message, field=output_parameter)


def _reference_paths(paths: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return the references that the paths follow."""
    return {path[:length] for path in paths for length in range(1, len(path))}


def _query_paths(query: Query) -> Iterator[tuple[str, ...]]:
    """Yield every path of the query, including those that are values of conditions."""
    yield from (sort.path for sort in query.order)
    yield from _paths_in_groups(query.groups)


def _paths_in_groups(groups: tuple[Group, ...]) -> Iterator[tuple[str, ...]]:
    for factor in (factor for group in groups for term in group.terms for factor in term.factors):
        if isinstance(factor, RelatedQuery):
            yield factor.path
            # The other table is a reference that only this factor follows.
            start = str(id(factor))
            yield from ((start, *path) for path in (factor.column, *_paths_in_groups(factor.groups)))
        elif isinstance(factor, SubQuery):
            yield from _paths_in_groups(factor.groups)
        else:
            yield from _condition_paths(factor)


def _condition_paths(condition: Condition) -> Iterator[tuple[str, ...]]:
    yield condition.path
    if condition.row.kind in (ValueKind.PATH, ValueKind.DISTANCE):
        value = read_value(condition)
        yield value.path if isinstance(value, Distance) else value  # type: ignore[misc]  # by its kind

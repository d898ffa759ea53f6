"""Turns what was asked into a plan: names become columns with the caller's guards. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from system.encoded_query import Distance, Query, QueryError, ValueKind
from system.encoded_query import read as value_of
from system.errors import BadRequest
from tableapi.catalogue.definitions import Column, Table

from .expressions import ALWAYS, NEVER, Decision, Expression, PathStep, ResolvedPath
from .path_resolver import ReadScope, expression, resolve_path, unknown

MOST_JOINS = 12
DEFAULT_VIEWS = ("Default", "default")
UNSORTABLE = frozenset({"list", "json"})


@dataclass(frozen=True, slots=True)
class OutputField:
    """One field of an answer: its key as sent, and what people call the record that it refers to."""

    key: str
    leaf: ResolvedPath
    display: ResolvedPath | None = None


@dataclass(frozen=True, slots=True)
class Sort:
    leaf: ResolvedPath
    descending: bool


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Everything a statement needs; it depends on the shape of the request, not on its values."""

    table: Table
    records: Decision
    fields: tuple[OutputField, ...]
    where: Expression | None = None
    order: tuple[Sort, ...] = ()
    ignored: tuple[str, ...] = ()
    # The record's version, as far as the caller may read it: an ETag tells it.
    version: ResolvedPath | None = None


def plan_read(
    eyes: ReadScope, table: Table, *, query: Query | None = None, fields: tuple[str, ...] = (), view: str = ""
) -> ReadPlan:
    """The plan of a read, or the 400 for what is not there."""
    query = query or Query()
    where = expression(eyes, table, query, with_slots=True)
    order = _order(eyes, table, query)
    wanted = _view_paths(eyes, table, view) if view else None
    outputs, ignored = _outputs(eyes, table, fields, wanted)
    found = ReadPlan(
        table, eyes.records(table), outputs, where, order, ignored, resolve_path(eyes, table, ("sys_version",))
    )
    _refuse_too_many_joins(found, query, "sysparm_fields" if fields else "sysparm_view")
    return found


def _order(eyes: ReadScope, table: Table, query: Query) -> tuple[Sort, ...]:
    found = []
    for by in query.order:
        seen = resolve_path(eyes, table, by.path)
        if seen is None:
            raise unknown(by.path, by.position)
        if seen.column.type in UNSORTABLE:
            raise QueryError(f"a column of type {seen.column.type} has no order", by.position, ".".join(by.path))
        found.append(Sort(seen, by.descending))
    return tuple(found)


def _view_paths(eyes: ReadScope, table: Table, view: str) -> tuple[str, ...] | None:
    """None when every column is shown. ServiceNow clients ask for `Default` whether or not a table has such a view."""
    is_default = view in DEFAULT_VIEWS
    names = dict.fromkeys((view, *DEFAULT_VIEWS)) if is_default else (view,)
    found = (eyes.catalogue.view(table, name) for name in names)
    paths = next((each for each in found if each is not None), None)
    if paths is None and not is_default:
        raise BadRequest("There is no view of this name.", code="invalid_parameter", field="sysparm_view")
    return paths


def _outputs(
    eyes: ReadScope, table: Table, fields: tuple[str, ...], view: tuple[str, ...] | None
) -> tuple[tuple[OutputField, ...], tuple[str, ...]]:
    """The fields of the answer, and the names that were asked for in vain."""
    if fields:
        names: Iterable[str] = fields
    else:
        names = view if view is not None else [column.name for column in table.columns.values()]
    found, ignored = {}, []
    for name in dict.fromkeys(names):
        output = _output(eyes, table, name)
        if output is None:
            ignored.append(name)
        elif view is None or name in view:
            found[name] = output
    if not found and (fields or view is not None):
        # "the view is not returned"; and never all columns in its place.
        raise BadRequest("None of the fields asked for is there.", code="no_fields", field="sysparm_fields")
    return tuple(found.values()), tuple(ignored) if fields else ()


def _output(eyes: ReadScope, table: Table, name: str) -> OutputField | None:
    path = tuple(name.split("."))
    found = resolve_path(eyes, table, path)
    if found is None:
        return None
    return OutputField(name, found, display_leaf(eyes, found.column))


def display_leaf(eyes: ReadScope, column: Column) -> ResolvedPath | None:
    """What a record is called that this column refers to, as far as these eyes may read it."""
    target = eyes.catalogue.tables.get(column.reference or "")
    shown = target.display_column if target else None
    if target is None or shown is None or (records := eyes.records(target)) == NEVER:
        return None
    seen = eyes.column(target, shown.name)
    return ResolvedPath((PathStep(column, ALWAYS, target, records),), *seen) if seen else None


def _refuse_too_many_joins(found: ReadPlan, query: Query, shown_by: str) -> None:
    """Says which parameter leads too far: the query, or what the answer shows beside it."""
    asked = _ways(sort.leaf for sort in found.order)
    asked |= {path[: length + 1] for path in _asked(query) for length in range(len(path) - 1)}
    said = f"The paths lead through more than {MOST_JOINS} references."
    if len(asked) > MOST_JOINS:
        raise BadRequest(said, code="invalid_query", field="sysparm_query")
    if len(asked | _ways(output.leaf for output in found.fields)) > MOST_JOINS:
        raise BadRequest(said, code="invalid_parameter", field=shown_by)


def _ways(leaves: Iterable[ResolvedPath]) -> set[tuple[str, ...]]:
    return {leaf.way[: length + 1] for leaf in leaves for length in range(len(leaf.hops))}


def _asked(query: Query) -> Iterator[tuple[str, ...]]:
    """Every path in the conditions, those that stand as values too."""
    for condition in query.conditions():
        yield condition.path
        if condition.row.kind in (ValueKind.PATH, ValueKind.DISTANCE):
            value = value_of(condition)
            yield value.path if isinstance(value, Distance) else value  # type: ignore[misc]  # by its kind

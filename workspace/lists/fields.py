"""The columns that a condition can use, with the operators that fit. Pure."""

from typing import Any

from django.urls import reverse

from system.encoded_query import OPERATORS, RECORDS, ComparisonKind
from system.errors import NotFound
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Column, Table
from tableapi.query.path_resolver import resolve_path
from tableapi.read.context import ReadContext

from .operator_labels import LABELS, operator_label


def read_fields(context: ReadContext, table: Table, path: tuple[str, ...]) -> dict[str, Any]:
    """The columns that the caller can see, after following the references of the path, and the operators of each kind.

    A path that is hidden, missing or leads to no readable table raises one and the same 404.
    """
    view, target = context.view, _table_at(context.view, table, path)
    if target is None:
        raise NotFound("There is no such field.")
    columns = [found[0] for name in target.columns if (found := view.column(target, name))]
    columns.sort(key=lambda column: ((column.label or column.name).casefold(), column.name))
    kinds = {_operator_key(column, path): (column.compare_as, (*path, column.name)) for column in columns}
    return {
        "fields": [_field(view, target, column, path) for column in columns],
        "operators": {key: _operators(*kind_and_path) for key, kind_and_path in kinds.items()},
    }


def _table_at(view: CallerView, table: Table, path: tuple[str, ...]) -> Table | None:
    if not path:
        return table
    resolved = resolve_path(view, table, path)
    if resolved is None or len(path) > RECORDS.max_hops or not resolved.column.column_type.is_reference:
        return None
    target = view.catalogue.tables.get(resolved.column.reference or "")
    return target if target is not None and view.can_read(target) else None


def _field(view: CallerView, table: Table, column: Column, path: tuple[str, ...]) -> dict[str, Any]:
    reference = view.table(column.reference) if column.reference else None
    return {
        "name": column.name,
        "label": column.label or column.name,
        "kind": column.compare_as,
        "operators": _operator_key(column, path),
        "choices": column.choices,
        "reference": reference.name if reference else None,
        "optionsUrl": reverse("record-options", args=[reference.name]) if reference else None,
        "isWalkable": len(path) < RECORDS.max_hops and _table_at(view, table, (column.name,)) is not None,
    }


def _operator_key(column: Column, path: tuple[str, ...]) -> str:
    """A few operators are only for `sys_id` itself."""
    return "record" if (*path, column.name) == ("sys_id",) else column.compare_as


def _operators(kind: ComparisonKind, path: tuple[str, ...]) -> list[dict[str, str]]:
    rows = (OPERATORS[name] for name in LABELS if OPERATORS[name].fits(kind, path))
    return [{"name": row.name, "label": operator_label(row.name, kind), "value": row.kind.name.lower()} for row in rows]

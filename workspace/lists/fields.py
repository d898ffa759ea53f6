"""The columns that a condition can use, with the operators that fit in words: "Due date", "is before". Pure."""

from typing import Any

from django.urls import reverse

from system.encoded_query import OPERATORS, RECORDS, ComparisonKind
from system.errors import NotFound
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Column, Table
from tableapi.query.path_resolver import resolve_path
from tableapi.read.context import ReadContext

# In the order in which the condition builder offers them.
LABELS = {
    "=": "is", "!=": "is not", "IN": "is one of", "NOT IN": "is none of",
    "DYNAMIC": "is", "ISNOT_DYNAMIC": "is not",
    "LIKE": "contains", "NOTLIKE": "does not contain", "STARTSWITH": "starts with", "ENDSWITH": "ends with",
    "HAS": "includes", "HASNOT": "does not include",
    "CONTAINS_DYNAMIC": "includes", "DOESNOTCONTAIN_DYNAMIC": "does not include",
    "ON": "is", "NOTON": "is not", "RELATIVELT": "is before", "RELATIVEGT": "is after",
    "<": "is less than", ">": "is greater than", "<=": "is at most", ">=": "is at least", "BETWEEN": "is between",
    "ISEMPTY": "is empty", "ISNOTEMPTY": "is not empty",
    "ARE": "contains the words", "INSTANCEOF": "belongs to the table",
    "RELATIVELE": "is at or before", "RELATIVEGE": "is at or after",
    "RELATIVEEE": "is in the same unit of time as",
    "YEAR_IS": "is in the year", "QUARTER_IS": "is in quarter", "MONTH_IS": "is in month", "WEEK_IS": "is in week",
    "DAY_IS": "is on day of the month", "DAY_OF_WEEK_IS": "is on day of the week", "HOUR_IS": "is in hour",
    "SAMEAS": "is the same as", "NSAMEAS": "is different from",
    "GT_FIELD": "is greater than", "LT_FIELD": "is less than",
    "GT_OR_EQUALS_FIELD": "is at least", "LT_OR_EQUALS_FIELD": "is at most",
    "MORETHAN": "is more than", "LESSTHAN": "is less than",
    "EMPTYSTRING": "is an empty text", "ANYTHING": "is anything", "NOTHING": "matches no record",
}  # fmt: skip
_DATE_LABELS = {
    "=": "is exactly", "!=": "is not exactly",
    "<": "is before", ">": "is after", "<=": "is at or before", ">=": "is at or after",
    "GT_FIELD": "is after", "LT_FIELD": "is before",
    "GT_OR_EQUALS_FIELD": "is at or after", "LT_OR_EQUALS_FIELD": "is at or before",
}  # fmt: skip


def operator_label(name: str, kind: ComparisonKind) -> str:
    """
    >>> operator_label("<", ComparisonKind.DATE), operator_label("<", ComparisonKind.INTEGER)
    ('is before', 'is less than')
    """
    is_date = kind in (ComparisonKind.DATE, ComparisonKind.DATETIME)
    return (is_date and _DATE_LABELS.get(name)) or LABELS[name]


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

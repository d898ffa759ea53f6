"""Reads records as another user can, limited to what the viewer, an administrator, can read too.

Rules can hide records and values from administrators. So that these learn nothing from this page, a record is hidden
unless the viewer can read it and each condition that lets the user read it, and the query must be on values that the
viewer can always read. The viewer learns how many records are hidden, but not where in the order they are.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from system.encoded_query import parse
from system.errors import InvalidParameter
from tableapi.access.caller_view import CallerView, Item, record_not_found
from tableapi.access.decision_trace import (
    DecisionTrace,
    Reason,
    is_decision_visible,
    is_expression_visible,
    is_path_visible,
)
from tableapi.catalogue.definitions import DELETE, READ, WRITE, Column, Table
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.expressions import ALWAYS, NEVER, Decision, ResolvedPath
from tableapi.query.parameters import DisplayMode, OutputOptions, RawParameters, parse_list
from tableapi.query.path_resolver import required_path, resolve_query
from tableapi.read import pipeline
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID
from tableapi.write import permission_queries

RECORD_OPERATIONS = (READ, WRITE, DELETE)


class KeyedView(CallerView):
    """A view in which ids can be read, because they connect what two callers can read. They are not shown."""

    def column(self, table: Table, name: str) -> tuple[Column, Decision] | None:
        return (table.columns[name], ALWAYS) if name == "sys_id" else super().column(table, name)

    def cached(self, key: Hashable, make: Callable[[], Item]) -> Item:
        return super().cached(("keyed", key), make)


@dataclass(frozen=True)
class Cell:
    """One column of a record. `field` is as the Table API returns it, limited to what the viewer can read too."""

    column: Column
    reason: Reason
    field: Any = None
    is_hidden: bool = False
    write_reason: Reason | None = None


@dataclass(frozen=True)
class PreviewRecord:
    sys_id: str
    reasons: Mapping[str, Reason]
    cells: Sequence[Cell]


@dataclass
class UserView:
    """What `user` can read in a table, for `viewer`."""

    viewer: ReadContext
    user: ReadContext
    table: Table
    columns: Sequence[Column]
    hidden_count: int = 0
    next_page: Mapping[str, str] = field(default_factory=dict)

    def read_page(self, raw: RawParameters) -> list[PreviewRecord]:
        """A page of the records that the user can read; `raw` tells which, as for a list of the Table API."""
        request = replace(parse_list(raw), output=_output())
        self.check_query(request.query.text)
        if not self.user.view.can_read(self.table):
            statement_runner.check_version(self.user.inputs())
            return []
        result = pipeline.fetch_list(keyed(self.user), self.table.name, request)
        self.next_page = result.next_page
        ids = [record["sys_id"]["value"] for record in result.records()]
        records = [record for record in self.explain(ids) if record.reasons[READ].is_allowed]
        self.hidden_count = len(ids) - len(records)
        return records

    def read_record(self, sys_id: str) -> PreviewRecord:
        """One record, also if the user cannot read it. Raises 404 if the viewer cannot read it."""
        if not RECORD_ID.fullmatch(sys_id) or not (records := self.explain([sys_id], has_writes=True)):
            raise record_not_found()
        return records[0]

    def check_query(self, text: str) -> None:
        """Refuse a query that could tell the viewer something about hidden records and values."""
        query, scope, view = parse(text), self.viewer.view, self.user.view
        if text and self.hides_records:
            message = "You cannot filter or sort this list, because rules may hide some of its records from you."
            raise InvalidParameter(message, field="sysparm_query")
        condition = resolve_query(view, self.table, query)
        orders = [required_path(view, self.table, sort.path, sort.position) for sort in query.order]
        is_visible = all(is_path_visible(scope, self.table, path) for path in orders)
        if not is_visible or (condition and not is_expression_visible(scope, self.table, condition)):
            message = "You cannot filter or sort by a column that rules hide from you."
            raise InvalidParameter(message, field="sysparm_query")

    @cached_property
    def hides_records(self) -> bool:
        """Whether the viewer may be unable to read a record that the user can read, or why the user can."""
        scope = self.viewer.view
        decision = self.user.view.record_decision(self.table)
        return scope.record_decision(self.table) != ALWAYS or not is_decision_visible(scope, self.table, decision)

    def explain(self, ids: Sequence[str], *, has_writes: bool = False) -> list[PreviewRecord]:
        """Those of the records that the viewer can read, in their order."""
        scope, names = self.viewer.view, [column.name for column in self.columns]
        readable = _fields(self.viewer, self.table, [], ids)
        shown = [sys_id for sys_id in ids if sys_id in readable]
        fields = _fields(self.user, self.table, names, shown)
        trace = DecisionTrace(self.user.view.permissions, self.table, scope)
        trace.add(READ, self.columns)
        trace.add(DELETE)
        writable = [column for column in self.columns if has_writes and not self.table.is_server_managed(column)]
        trace.add(WRITE, writable)
        results = _results(self.user, self.table, list(trace.decisions.values()), shown)
        guards = [found[1] if (found := scope.column(self.table, name)) else NEVER for name in names]
        visible = _results(self.viewer, self.table, guards, shown)
        records = []
        for sys_id in shown:
            if sys_id not in results or sys_id not in visible:
                continue  # it was deleted since
            holds, values = dict(zip(trace.decisions, results[sys_id], strict=True)), fields.get(sys_id, {})
            cells = []
            for column, is_visible in zip(self.columns, visible[sys_id], strict=True):
                reason = trace.column_reason(READ, column, holds)
                is_hidden = reason.is_allowed is None or (bool(reason.is_allowed) and not is_visible)
                value = values.get(column.name) if reason.is_allowed and not is_hidden else None
                cells.append(
                    Cell(
                        column,
                        reason,
                        value if self._shows_names(column) else _without_names(value),
                        is_hidden,
                        trace.column_reason(WRITE, column, holds) if column in writable else None,
                    )
                )
            reasons = {operation: trace.record_reason(operation, holds) for operation in RECORD_OPERATIONS}
            records.append(PreviewRecord(sys_id, reasons, cells))
        return records  # fmt: skip

    def _shows_names(self, column: Column) -> bool:
        """Whether the viewer can read the names of all referenced records, and what guards them from the user."""
        path, scope = read_plan.display_path(self.user.view, column), self.viewer.view
        if path is None:
            return True
        target, records = path.steps[0].target, path.steps[0].records
        is_known = scope.record_decision(target) == ALWAYS and is_decision_visible(scope, target, records)
        return is_known and is_path_visible(scope, target, ResolvedPath((), path.column, path.guard))


def keyed(context: ReadContext) -> ReadContext:
    return ReadContext(context.caller, KeyedView(context.view.catalogue, context.view.role_names))


def _output(*names: str) -> OutputOptions:
    return OutputOptions(tuple(dict.fromkeys(["sys_id", *names])), "", DisplayMode.BOTH, with_links=False)


def _fields(context: ReadContext, table: Table, names: Iterable[str], ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The fields of those records that the caller can read, by id."""
    records = pipeline.fetch_records(keyed(context), table, ids, _output(*names))
    return {sys_id: json.loads(record.body) for sys_id, record in records.items()}


def _results(
    context: ReadContext, table: Table, decisions: Sequence[Decision], ids: Sequence[str]
) -> dict[str, Sequence[bool]]:
    """Which of the decisions hold for each record."""
    statement = permission_queries.decisions_statement(table, decisions, has_many=True)
    return {sys_id: values for sys_id, values in context.fetch(statement, sys_ids=list(ids)) if sys_id}


def _without_names(value: Any) -> Any:
    """A field with only the ids of the referenced records.

    >>> _without_names([{"value": "1", "display_value": "Ann"}])
    [{'value': '1', 'display_value': None}]
    """
    if isinstance(value, list):
        return [_without_names(item) for item in value]
    return value | {"display_value": None} if isinstance(value, dict) else value


def summary(context: ReadContext, table: Table, operation: str) -> Reason:
    """What decides about an operation before any record is known; `is_allowed` is None if it depends on the record."""
    verdict = context.view.permissions.record_verdict(operation, table)
    is_allowed = verdict.outcome == ALWAYS if verdict.outcome in (ALWAYS, ()) else None
    return Reason(is_allowed, verdict.basis, verdict.rules)

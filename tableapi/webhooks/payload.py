"""Builds the body of a delivery from what the webhook's user may read now."""

import json
from datetime import UTC

from system.encoded_query import Group, Query, SubQuery, Term
from system.errors import ServiceError
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.changes import feed_statement, logged_values
from tableapi.changes.feed_statement import PastRecord
from tableapi.database import statement_runner
from tableapi.models import Webhook, WebhookDelivery
from tableapi.query import read_plan
from tableapi.query.expressions import ResolvedPath
from tableapi.query.parameters import ListRequest, OutputOptions
from tableapi.query.parsed_query import ParsedQuery, QueryShape, parse_query_text
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.sql import predicates, select
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder, literal

TEST_OPERATION = "test"


class Skipped(Exception):
    """The change is not sent; the text is the reason for the log."""


def build(delivery: WebhookDelivery) -> bytes:
    """Return the body. Raises Skipped."""
    webhook = delivery.webhook
    operation = "update" if delivery.operation == "clear" else delivery.operation
    data = {"table": webhook.table.name, "operation": operation}
    if operation == TEST_OPERATION:
        return _body(delivery, "webhook.test", data)
    try:
        record = _read(webhook, delivery)
    except ServiceError as error:
        if error.status >= 500:
            raise
        raise Skipped(error.message) from None
    return _body(delivery, f"record.{operation}d", {**data, "sys_id": delivery.record_id}, record)


def _body(delivery: WebhookDelivery, event: str, data: dict[str, str], record: bytes = b"") -> bytes:
    """The JSON of the record is included as the database formatted it."""
    timestamp = delivery.created_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = json.dumps({"type": event, "timestamp": timestamp, "data": data}, separators=(",", ":")).encode()
    return body.removesuffix(b"}}") + b',"record":' + record + b"}}" if record else body


@on_current_catalogue
def _read(catalogue: Catalogue, webhook: Webhook, delivery: WebhookDelivery) -> bytes:
    """Return the record as it is now, or nothing if it was deleted. Raises Skipped."""
    context = Caller.of(webhook.user).context(catalogue)
    table = context.view.open_table(webhook.table.name)
    if delivery.operation in ("delete", "clear"):
        _check_past(context, table, webhook.condition, delivery)
    if delivery.operation == "delete":
        return b""
    if record := _fetch(context, table, webhook, delivery.record_id, webhook.condition):
        return record
    is_readable = _fetch(context, table, webhook, delivery.record_id, "")
    reason = "The record does not match the condition."
    raise Skipped(reason if is_readable else "The user may not read the record, or it was deleted later.")


def _fetch(context: ReadContext, table: Table, webhook: Webhook, record_id: str, condition: str) -> bytes:
    output = OutputOptions(tuple(webhook.columns), with_links=False)
    result = pipeline.fetch_list(context, table.name, ListRequest(output, _query(record_id, condition), limit=1))
    return result.blocks[0] if result.blocks else b""


def _query(record_id: str, condition: str) -> ParsedQuery:
    """The condition on one record. It is not joined as text, in which ")" may be part of a value."""
    by_id, parsed = parse_query_text(f"sys_id={record_id}"), parse_query_text(condition)
    if not parsed.conditions:
        return by_id
    terms = (*by_id.shape.query.groups[0].terms, Term((SubQuery(parsed.shape.query.groups),)))
    return ParsedQuery(condition, QueryShape(Query((Group(terms),))), by_id.conditions + parsed.conditions)


def _check_past(context: ReadContext, table: Table, condition: str, delivery: WebhookDelivery) -> None:
    """Check a deletion and a cleared reference with the log, as the change feed does."""
    parsed = parse_query_text(condition)
    key = ("webhook past", table.name, parsed.shape)
    statement = context.view.cached(key, lambda: _past_statement(context.view, table, parsed.shape.query))
    inputs = context.inputs(parsed.conditions, id=delivery.change_id, record_id=delivery.record_id)
    rows = statement_runner.strip_version(statement_runner.fetch(statement, inputs), context.view.catalogue)
    is_visible, was_readable, did_match = rows[0]
    if is_visible is None:
        raise Skipped("The change is no longer in the change log.")
    if not is_visible:
        raise Skipped("The user may not read the changed reference in every record.")
    if delivery.operation == "delete" and not was_readable:
        raise Skipped("The user could not read the deleted record, or this is unknown.")
    if delivery.operation == "delete" and not did_match:
        raise Skipped("The deleted record did not match the condition, or this is unknown.")


def _past_statement(view: CallerView, table: Table, query: Query) -> Statement:
    """Selects for a logged change whether the user may know of it, and whether the user could read the deleted record
    and it matched the query. All are false if the log does not tell."""
    builder = StatementBuilder()
    visible = feed_statement.is_visible_sql(view, table, "c")
    removed, joins = feed_statement.removed_sql(builder, view, table)
    matched = _past_match_sql(builder, view, table, query)
    where = f"c.id = {builder.input('id', 'bigint')} AND c.record_id = {builder.input('record_id', 'varchar')}"
    keys = ", ".join(map(literal, logged_values.family_keys(view.catalogue, table)))
    row = f"SELECT {visible} AS visible, ({removed}) IS TRUE AS removed, {matched} AS matched FROM public.sys_change c"
    rows = f"{row}{joins} WHERE {where} AND c.table_key IN ({keys})"
    return select.versioned_statement(builder, "r.visible, r.removed, r.matched", rows)


def _past_match_sql(builder: StatementBuilder, view: CallerView, table: Table, query: Query) -> str:
    where = read_plan.plan_filter(view, table, query).where
    if where is None:
        return "TRUE"

    def condition_sql(builder: StatementBuilder) -> str:
        record = PastRecord(table, "c", lambda column: "c.old_values")

        def value_of(path: ResolvedPath) -> str:
            if path.steps:
                builder.table_alias()  # another record
                return "NULL"
            return predicates.guarded_value(builder, path.guard, record, record.column(path.column))

        condition = predicates.expression_sql(builder, where, record, value_of)
        return " AND ".join([f"(({condition}) IS TRUE)", *record.known_conditions])

    trial = StatementBuilder()
    condition_sql(trial)
    # The log does not tell what other records were at that time.
    return "FALSE" if trial.table_count else condition_sql(builder)

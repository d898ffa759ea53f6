"""Tools that read and write records, through the same pipelines as the Table API."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

from django.http import JsonResponse, QueryDict
from pydantic import Field

from agents.tools.registry import NO_NAMES, Agent, tool
from agents.tools.tables import TableName, view_of
from system.errors import ServiceError, combine_errors
from system.strict_json import parse_exact_number
from tableapi.access.caller_view import CallerView
from tableapi.attached.comments import create_comment, read_comments
from tableapi.catalogue.definitions import NUMBER_COLUMN, Table
from tableapi.http.idempotency import respond_once_to_key
from tableapi.query.parameters import DisplayMode, OutputOptions
from tableapi.read import pipeline
from tableapi.statistics.pipeline import read_statistics
from tableapi.write import create, update
from tableapi.write.write_request import WriteInput, WriteResult, write

DEFAULT_RECORDS, MAX_QUERIED_RECORDS = 20, 100
DEFAULT_QUERIED_GROUPS, MAX_QUERIED_GROUPS = 50, 500
SHOWN_COMMENTS = 10
# Longer texts in lists are cut.
MAX_LISTED_TEXT = 500

QUERY_LANGUAGE = """\
A query is conditions joined by ^ (and), ^OR (or, with the condition before it only; binds tighter than ^) or ^NQ (or, \
between whole queries), for example active=true^priorityIN1,2^ORDERBYDESCopened_at
A condition is column, operator and value, with nothing between them: short_descriptionLIKEprinter
Operators: =value !=value >value <value >=value <=value INa,b NOT INa,b LIKEtext NOTLIKEtext STARTSWITHtext \
ENDSWITHtext ISEMPTY ISNOTEMPTY BETWEENa@b SAMEAScolumn; dates: ON2024-05-19 RELATIVEGE@day@ago@7; references: \
DYNAMICme (is you); lists: HASsys_id. sys_idAREprinter basement finds words in all texts of a record.
Dots follow references: caller.login=alice. Choices are compared by value, not by label: state=1. Braces quote a value \
that contains ^: nameLIKE{a^b}. LIKE and = ignore case.
Times are in UTC: opened_at>=2024-05-19 13:45:00. Sort with ^ORDERBYcolumn or ^ORDERBYDESCcolumn. An empty query \
matches all records."""

RecordId = Annotated[str, Field(description="The sys_id of a record.")]
Query = Annotated[str, Field(description="Which records, in the query language. Empty: all that you can read.")]
Values = Annotated[dict[str, Any], Field(description="Columns with values, such as {'state': '2', 'caller': sys_id}.")]
Paths = list[Annotated[str, Field(description="A column, or a path such as caller.login.")]]


@tool(description=f"Finds records of a table, and returns a few columns of each.\n{QUERY_LANGUAGE}")
def query_records(
    agent: Agent,
    table: TableName,
    query: Query = "",
    fields: Annotated[Paths, Field(description="What to return besides sys_id, number and display value.")] = NO_NAMES,
    limit: Annotated[int, Field(ge=1, le=MAX_QUERIED_RECORDS)] = DEFAULT_RECORDS,
    cursor: Annotated[str, Field(description="The next_cursor of the previous page; repeat the other arguments.")] = "",
) -> dict[str, Any]:
    view = view_of(agent)
    position = {"page" if cursor.isdecimal() else "cursor": cursor}
    names = short_fields(view, view.open_table(table), fields)
    raw = parameters(query=query, fields=names, limit=limit, **position)
    result = pipeline.read_list(agent.caller, table, raw)
    return {
        "records": read_json(b",".join(result.blocks), MAX_LISTED_TEXT),
        "unknown_fields": result.ignored or None,
        # The number of the page if a cursor would be too long.
        "next_cursor": next(iter(result.next_page.values()), None),
    }


@tool()
def read_record(
    agent: Agent,
    table: TableName,
    sys_id: RecordId,
    fields: Annotated[Paths, Field(description="Only these columns. Empty: all that have a value.")] = NO_NAMES,
    comments: Annotated[bool, Field(description="Whether to add the newest comments.")] = False,
) -> dict[str, Any]:
    """Reads one record in full. Its sys_version is for expected_version of update_record."""
    result = pipeline.read_record(agent.caller, table, sys_id, parameters(fields=fields))
    (record,) = read_json(result.body)
    page = read_comments(agent.caller, table, sys_id, parameters(limit=SHOWN_COMMENTS)) if comments else None
    return {
        "record": {name: value for name, value in record.items() if fields or value is not None},
        "unknown_fields": result.ignored or None,
        "comments": page.entries if page else None,
        "has_older_comments": page.has_more if page else None,
    }


@tool()
def record_statistics(
    agent: Agent,
    table: TableName,
    query: Query = "",
    group_by: Annotated[
        Paths, Field(description="Up to three columns; dates with a period, such as opened_at:month.")
    ] = NO_NAMES,
    sum: Annotated[Paths, Field(description="Number columns to add up.")] = NO_NAMES,
    avg: Annotated[Paths, Field(description="Number columns to average.")] = NO_NAMES,
    min: Annotated[Paths, Field(description="Number or date columns.")] = NO_NAMES,
    max: Annotated[Paths, Field(description="Number or date columns.")] = NO_NAMES,
    count_distinct: Annotated[Paths, Field(description="Columns whose different values to count.")] = NO_NAMES,
    having: Annotated[str, Field(description="Conditions on groups, such as count>5^sum(quantity)>=100")] = "",
    order_by: Annotated[Paths, Field(description="Names in group_by, count or sum(column); - reverses.")] = NO_NAMES,
    limit: Annotated[int, Field(ge=1, le=MAX_QUERIED_GROUPS)] = DEFAULT_QUERIED_GROUPS,
) -> dict[str, Any]:
    """Counts records, in groups if you want, and adds up, averages or compares their values: how many there are, and
    which have the most. The query language is that of query_records."""
    functions = {"sum": sum, "avg": avg, "min": min, "max": max, "count_distinct": count_distinct}
    fields = {f"{name}_fields": paths for name, paths in functions.items()}
    raw = parameters(
        count="true", query=query, group_by=group_by, having=having, order_by=order_by, limit=limit, **fields
    )
    return {"groups": read_json(read_statistics(agent.caller, table, raw) or b"")}


@tool(writes=True)
def create_record(
    agent: Agent,
    table: TableName,
    values: Values,
    idempotency_key: Annotated[
        str, Field(description="A text of your choice: a second call with it and the same arguments creates nothing.")
    ] = "",
) -> dict[str, Any]:
    """Creates a record. describe_table shows the columns that you can set, and which are mandatory."""
    change = _write_input(agent, table, values, is_idempotent=bool(idempotency_key))

    def respond() -> JsonResponse:
        return JsonResponse(_written(write(agent.caller, table, change, create.create)))

    content = json.dumps([table, values], sort_keys=True, default=str).encode(), ()
    once = partial(respond_once_to_key, idempotency_key, agent.user, "POST", "/mcp", content)
    response = once(respond) if idempotency_key else respond()
    answer: dict[str, Any] = json.loads(response.content)
    if response.status_code >= 400:
        raise combine_errors([ServiceError(item.pop("message"), **item) for item in answer["errors"]])
    return answer


@tool(writes=True)
def update_record(
    agent: Agent,
    table: TableName,
    sys_id: RecordId,
    values: Values,
    expected_version: Annotated[
        int | None, Field(description="The sys_version that you read: refuses the update if it has changed since.")
    ] = None,
) -> dict[str, Any]:
    """Changes columns of a record; others keep their values. null empties a column."""
    is_current = (lambda version: version == expected_version) if expected_version is not None else None
    change = _write_input(agent, table, values, is_current=is_current)
    return _written(write(agent.caller, table, change, partial(update.update, sys_id=sys_id, replaces=False)))


@tool(writes=True)
def add_comment(
    agent: Agent, table: TableName, sys_id: RecordId, text: Annotated[str, Field(description="@login notifies a user.")]
) -> dict[str, Any]:
    """Adds a comment to a record, which everyone who can read the record sees."""
    return {"comment": create_comment(agent.caller, table, sys_id, {"text": text})}


def _write_input(agent: Agent, table_name: str, values: dict[str, Any], **options: Any) -> WriteInput:
    """Returns the columns that name the record, and those that are sent."""
    view = view_of(agent)
    table = view.open_table(table_name)
    names = short_fields(view, table, [name for name in ("sys_version", *values) if view.column(table, name)])
    fields = tuple(names) if view.can_read(table) else ()
    return WriteInput(values, OutputOptions(fields, "", DisplayMode.BOTH, with_links=False), **options)


def _written(result: WriteResult) -> dict[str, Any]:
    """Without a record if the caller can write, but not read it."""
    (record,) = read_json(result.record.body) if result.record else (None,)
    return {"sys_id": result.sys_id, "record": record}


def parameters(**values: Any) -> QueryDict:
    """The parameters of the Table API, without empty ones."""
    raw = QueryDict("sysparm_display_value=all&sysparm_exclude_reference_link=1", mutable=True)
    for name, value in values.items():
        if text := ",".join(value) if isinstance(value, list) else str(value):
            raw[f"sysparm_{name}"] = text
    return raw


def short_fields(view: CallerView, table: Table, fields: Iterable[str]) -> list[str]:
    """The id, number and display value, as far as the caller can see them, and these fields."""
    display = table.display_column
    names = ("sys_id", NUMBER_COLUMN, display.name if display else "")
    return list(dict.fromkeys([*(name for name in names if view.column(table, name)), *fields]))


def read_json(body: bytes, max_length: int | None = None) -> list[dict[str, Any]]:
    """Records or groups, with the display value only of what is stored as text and differs from it."""
    return [_compact(item, max_length) for item in json.loads(b"[%s]" % body, parse_float=parse_exact_number)]


def _compact(value: Any, max_length: int | None) -> Any:
    if isinstance(value, list):
        return [_compact(item, max_length) for item in value]
    if isinstance(value, str) and max_length and len(value) > max_length:
        return f"{value[:max_length]}…"
    if not isinstance(value, dict):
        return value
    if value.keys() == {"value", "display_value"}:
        stored, displayed = value.values()
        has_label = isinstance(stored, str) and displayed not in (None, stored)
        return value if has_label else _compact(stored, max_length)
    return {name: _compact(item, max_length) for name, item in value.items()}

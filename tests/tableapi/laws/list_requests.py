"""Generates requests and sends them as a caller of the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from unittest.mock import patch

from django.http import QueryDict
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from system.encoded_query import Query
from system.errors import BadRequest, NotFound
from tableapi.access.caller_view import view_for
from tableapi.database import statement_runner
from tableapi.read import context, list_page, pipeline
from tests.support.query_printer import to_text
from tests.tableapi.laws.storage import store_groups
from tests.tableapi.oracle import Caller, QueryRefused, World, select_ids
from tests.tableapi.oracle.alphabets import make_moment
from tests.tableapi.oracle.column_types import NOW
from tests.tableapi.oracle.queries import query_strategy
from tests.tableapi.oracle.worlds import caller_strategy, world_strategy

# Few callers, so that prepared statements are reused as in a running service.
CALLER_COUNT, REQUEST_COUNT = 2, 10
REFUSED_RESULT = "refused"
BLOCK_OF_ONE = 1
LINK_PREFIX = "http://testserver/rest/v1/table/"


def fuzz_settings(example_count: int) -> settings:
    """Hypothesis settings; runs of fewer than 1,000 examples are deterministic."""
    return settings(
        deadline=None,
        max_examples=example_count,
        database=None,
        derandomize=example_count < 1_000,
        # No shrinking: it took five minutes, and the failure report contains the request.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@dataclass(frozen=True)
class ListRequest:
    caller: Caller
    table: str
    query: Query

    @property
    def text(self) -> str:
        return to_text(self.query)


class RequestSeries:
    """Several requests to one world, as storing a world takes longer than querying it."""

    # Not a dataclass, as Hypothesis would print all of it; `failure_report` has the relevant parts.
    def __init__(self, world: World, requests: list[ListRequest]) -> None:
        self.world, self.requests = world, requests

    def __repr__(self) -> str:
        return f"{len(self.requests)} requests"


def failure_report(world: World, request: ListRequest) -> str:
    """The request, its caller, and the tables and rules of the world."""
    tables = []
    for table in world.catalogue.tables.values():
        column_names = ", ".join(column.name for column in table.columns.values() if not column.is_sys)
        tables.append(f"{table.name} < {table.parent}: {column_names}")
    rules = [
        f"{rule.operation} {rule.table}.{rule.column} roles={sorted(rule.roles)} if {rule.condition!r}"
        f"{' broken' * rule.is_broken}{' not admin' * (not rule.admin_overrides)}"
        for rule in world.catalogue.rules
    ]
    return "\n".join([f"{request.table}: {request.text}", str(request.caller), *tables, *rules])


@st.composite
def request_series_strategy(draw: DrawFn) -> RequestSeries:
    world = draw(world_strategy())
    callers = [draw(caller_strategy()) for _ in range(CALLER_COUNT)]
    requests = []
    for _ in range(REQUEST_COUNT):
        table = draw(st.sampled_from(list(world.catalogue.tables)))
        requests.append(
            ListRequest(
                draw(st.sampled_from(callers)), table, draw(query_strategy(world, world.catalogue.tables[table]))
            )
        )
    # Sorted by caller, so that the stored groups change less often.
    return RequestSeries(world, sorted(requests, key=lambda request: callers.index(request.caller)))


@dataclass(frozen=True)
class ListResponse:
    """`ids` contains the ids of all listed records, even if the caller may not read their sys_id."""

    ids: list[str]
    bodies: list[Any]
    next_cursor: str
    total: int | None
    ignored_fields: tuple[str, ...]


@contextmanager
def record_read_ids() -> Iterator[list[list[str]]]:
    """Record the row ids of each page, as responses may omit them.

    Uses blocks of one record; `test_blocks` compares larger blocks.
    """
    read_ids: list[list[str]] = []
    original_fetch = statement_runner.fetch_bytes

    def read_and_record(*args: Any, **kwargs: Any) -> list[statement_runner.ByteRow]:
        rows = original_fetch(*args, **kwargs)
        if rows and len(rows[0]) > 2:
            read_ids.append([row[-2].decode() for row in rows if row[1] is not None and row[-2] is not None])
        return rows

    with (
        patch.object(statement_runner, "fetch_bytes", read_and_record),
        patch.object(list_page, "BLOCK_SIZE", BLOCK_OF_ONE),
    ):
        yield read_ids


def send_query(world: World, caller: Caller, table: str, text: str = "", **parameters: Any) -> ListResponse | str:
    """The list that the product returns, or `REFUSED_RESULT` for a 400."""
    api_caller = context.Caller(caller.id, caller.role_names, LINK_PREFIX, NOW)
    query = QueryDict(mutable=True)
    query.update({"sysparm_query": text, **{f"sysparm_{name}": str(value) for name, value in parameters.items()}})
    query.setdefault("sysparm_limit", "10000")
    try:
        with record_read_ids() as page_ids:
            page = pipeline.read_list(api_caller, table, query)
    except NotFound:
        return ListResponse([], [], "", 0, ())
    except BadRequest:
        return REFUSED_RESULT
    bodies = json.loads(b"[" + b",".join(page.blocks) + b"]", parse_float=Decimal)
    return ListResponse(
        page_ids[0][: int(str(query["sysparm_limit"]))] if page_ids else [],
        bodies,
        page.next_page.get("sysparm_cursor", ""),
        page.total,
        page.ignored,
    )


def expected_ids(world: World, request: ListRequest) -> list[str] | str:
    """The ids that the oracle expects, or `REFUSED_RESULT`."""
    try:
        return select_ids(world, request.caller, request.table, request.text, make_moment(request.caller.id))
    except QueryRefused:
        return REFUSED_RESULT


def is_never_readable(world: World, caller: Caller, table: str) -> bool:
    """Whether the caller can never read a record of the table, so that every list is empty."""
    return not view_for(world.catalogue, caller.role_names).can_read(world.catalogue.tables[table])


def iterate_requests(series: RequestSeries) -> Iterator[ListRequest]:
    """Yield each request after storing the groups of its caller."""
    current_caller = None
    for request in series.requests:
        if request.caller != current_caller:
            store_groups(request.caller)
            current_caller = request.caller
        yield request

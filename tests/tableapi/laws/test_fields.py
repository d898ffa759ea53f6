"""A response contains the fields of a record that the caller may read, also through dot-walking."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from system.encoded_query import Path, Query
from tableapi.catalogue.definitions import Column
from tests.tableapi.laws.list_requests import (
    REFUSED_RESULT,
    ListRequest,
    RequestSeries,
    failure_report,
    fuzz_settings,
    is_never_readable,
    iterate_requests,
    send_query,
)
from tests.tableapi.laws.storage import stored_world
from tests.tableapi.oracle import QueryRefused, World, field_value, visible_rows
from tests.tableapi.oracle.alphabets import make_moment
from tests.tableapi.oracle.queries import path_strategy
from tests.tableapi.oracle.world import is_empty
from tests.tableapi.oracle.worlds import caller_strategy, world_strategy

MISSING_PATH = ("nosuch",)


class FieldListRequest(ListRequest):
    """A request for some fields of all records."""

    paths: list[tuple[Path, Column | None]]


@st.composite
def field_list_strategy(draw: DrawFn) -> RequestSeries:
    world, caller = draw(world_strategy()), draw(caller_strategy())
    requests: list[ListRequest] = []
    for _ in range(5):
        table = draw(st.sampled_from(list(world.catalogue.tables)))
        drawn_paths: list[tuple[Path, Column | None]] = draw(
            st.lists(path_strategy(world, world.catalogue.tables[table], max_hops=2), min_size=1, max_size=5)
        )
        request = FieldListRequest(caller, table, Query())
        object.__setattr__(request, "paths", [*drawn_paths, *([(MISSING_PATH, None)] if draw(st.booleans()) else [])])
        requests.append(request)
    return RequestSeries(world, requests)


def json_value(value: Any, column: Column) -> Any:
    """A stored value as it appears in JSON."""
    if is_empty(value, column):
        return None
    if column.type == "datetime":
        assert isinstance(value, datetime)
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return value.isoformat() if column.type == "date" else value


def check_fields(series: RequestSeries) -> None:
    with stored_world(series.world) as world:
        for request in iterate_requests(series):
            assert isinstance(request, FieldListRequest)
            if not is_never_readable(world, request.caller, request.table):
                fields = ",".join(".".join(path) for path, _ in request.paths)
                response = send_query(world, request.caller, request.table, fields=fields, exclude_reference_link=1)
                actual = (
                    response
                    if isinstance(response, str)
                    else (dict(zip(response.ids, response.bodies, strict=True)), response.ignored_fields)
                )
                assert actual == expected_values(world, request), f"{fields}\n{failure_report(world, request)}"


def expected_values(world: World, request: FieldListRequest) -> Any:
    """The visible records by id and the ignored names, or `REFUSED_RESULT` if no field is readable."""
    now = make_moment(request.caller.id)
    rows = visible_rows(world, request.caller, request.table, now)
    records: dict[str, dict[str, Any]] = {row["sys_id"]: {} for row in rows}
    has_readable_path, ignored_names = False, []
    for path, column in dict(request.paths).items():
        try:
            # Whether a name is known does not depend on the records.
            field_value(world, request.caller, request.table, empty_row(world, request.table), path, now)
        except QueryRefused:
            ignored_names.append(".".join(path))
            continue
        has_readable_path = True
        for row in rows:
            assert column is not None
            value = field_value(world, request.caller, request.table, row, path, now)
            records[row["sys_id"]][".".join(path)] = json_value(value, column)
    return (records, tuple(ignored_names)) if has_readable_path else REFUSED_RESULT


def empty_row(world: World, table: str) -> dict[str, Any]:
    """A record of the table in which every column is empty."""
    table_definition = world.catalogue.tables[table]
    return {**dict.fromkeys(table_definition.columns), "sys_id": "0", "sys_db_table_id": table_definition.id}


def test_fields_of_a_response_match_the_oracle() -> None:
    fuzz_settings(40)(given(field_list_strategy())(check_fields))()


@pytest.mark.nightly
def test_fields_of_many_responses_match_the_oracle() -> None:
    fuzz_settings(2_000)(given(field_list_strategy())(check_fields))()

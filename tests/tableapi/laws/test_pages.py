"""The pages of a list add up to the list: no record is repeated or missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from system.encoded_query import OrderBy, Query
from tests.tableapi.laws.list_requests import (
    ListRequest,
    ListResponse,
    RequestSeries,
    failure_report,
    fuzz_settings,
    is_never_readable,
    iterate_requests,
    send_query,
)
from tests.tableapi.laws.storage import stored_world
from tests.tableapi.oracle import World
from tests.tableapi.oracle.queries import SORTABLE_TYPES, path_strategy
from tests.tableapi.oracle.worlds import caller_strategy, world_strategy

# Without this limit, a bug that repeats a page would cause an endless loop.
MAX_PAGES = 40


@st.composite
def sorted_list_strategy(draw: DrawFn) -> RequestSeries:
    """Lists of all records by up to three sort keys, with many equal and empty values."""
    world, caller = draw(world_strategy()), draw(caller_strategy())
    requests = []
    for _ in range(4):
        table = draw(st.sampled_from(list(world.catalogue.tables)))
        sort_paths = path_strategy(world, world.catalogue.tables[table], max_hops=1).filter(
            lambda path: path[1].type in SORTABLE_TYPES
        )
        order = draw(st.lists(st.builds(OrderBy, sort_paths.map(lambda path: path[0]), st.booleans()), max_size=3))
        requests.append(ListRequest(caller, table, Query((), tuple(order))))
    return RequestSeries(world, requests)


def ids_by_page(world: World, request: ListRequest, limit: int) -> list[str]:
    ids: list[str] = []
    for page in range(1, MAX_PAGES):
        response = send_query(world, request.caller, request.table, request.text, limit=limit, page=page)
        assert isinstance(response, ListResponse)
        ids += response.ids
        if not response.ids:
            break
    return ids


def ids_by_cursor(world: World, request: ListRequest, limit: int) -> list[str]:
    ids: list[str] = []
    cursor_parameter: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        response = send_query(world, request.caller, request.table, request.text, limit=limit, **cursor_parameter)
        assert isinstance(response, ListResponse)
        assert len(response.ids) == limit or not response.next_cursor
        ids += response.ids
        if not response.next_cursor:
            break
        cursor_parameter = {"cursor": response.next_cursor}
    return ids


def check_pages(series: RequestSeries) -> None:
    with stored_world(series.world) as world:
        for number, request in enumerate(iterate_requests(series)):
            whole_list = send_query(world, request.caller, request.table, request.text)
            if is_never_readable(world, request.caller, request.table) or not isinstance(whole_list, ListResponse):
                continue
            assert len(set(whole_list.ids)) == len(whole_list.ids)
            for collect_ids in (ids_by_page, ids_by_cursor):
                assert collect_ids(world, request, 1 + number % 3) == whole_list.ids, failure_report(world, request)


def test_concatenated_pages_equal_the_list() -> None:
    fuzz_settings(40)(given(sorted_list_strategy())(check_pages))()


@pytest.mark.nightly
def test_many_concatenated_pages_equal_the_list() -> None:
    fuzz_settings(2_000)(given(sorted_list_strategy())(check_pages))()

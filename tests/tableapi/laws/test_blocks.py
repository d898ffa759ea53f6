"""Pages that the database builds in blocks are identical, byte for byte, to pages built row by row."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from django.http import QueryDict
from hypothesis import given

from system.errors import ServiceError
from tableapi.read import context, list_page, pipeline
from tests.tableapi.laws.list_requests import (
    BLOCK_OF_ONE,
    LINK_PREFIX,
    ListRequest,
    RequestSeries,
    failure_report,
    fuzz_settings,
    iterate_requests,
    request_series_strategy,
)
from tests.tableapi.laws.storage import stored_world
from tests.tableapi.laws.test_pages import MAX_PAGES, sorted_list_strategy
from tests.tableapi.oracle.column_types import NOW

Page = tuple[bytes, dict[str, str], int | None, tuple[str, ...]] | str


def read_page(request: ListRequest, block_size: int, **parameters: str) -> Page:
    api_caller = context.Caller(request.caller.id, request.caller.role_names, LINK_PREFIX, NOW)
    query = QueryDict(mutable=True)
    query.update({"sysparm_query": request.text, "sysparm_count": "exact", **parameters})
    try:
        with patch.object(list_page, "BLOCK_SIZE", block_size):
            page = pipeline.read_list(api_caller, request.table, query)
    except ServiceError as error:
        return str(error)
    return b",".join(page.blocks), dict(page.next_page), page.total, page.ignored


def read_pages(request: ListRequest, block_size: int, limit: int, paging: str) -> Iterator[Page]:
    parameters = {"sysparm_limit": str(limit)}
    for number in range(2, MAX_PAGES):
        page = read_page(request, block_size, **parameters)
        yield page
        if isinstance(page, str) or not page[1]:
            return
        parameters |= page[1] if paging == "cursor" else {"sysparm_page": str(number)}


def check_block_size(series: RequestSeries) -> None:
    with stored_world(series.world) as world:
        for number, request in enumerate(iterate_requests(series)):
            paging = ("cursor", "page")[number % 2]
            # Pages with and without a partial block, and a page that is not full.
            for block_size, limit in ((2, 3), (2, 4), (3, 4), (3, 10_000)):
                row_pages = list(read_pages(request, BLOCK_OF_ONE, limit, paging))
                assert list(read_pages(request, block_size, limit, paging)) == row_pages, failure_report(world, request)


def test_pages_are_the_same_with_any_block_size() -> None:
    fuzz_settings(30)(given(request_series_strategy())(check_block_size))()


def test_pages_of_sorted_lists_are_the_same_with_any_block_size() -> None:
    fuzz_settings(30)(given(sorted_list_strategy())(check_block_size))()


@pytest.mark.nightly
def test_many_pages_are_the_same_with_any_block_size() -> None:
    fuzz_settings(2_000)(given(request_series_strategy())(check_block_size))()
    fuzz_settings(2_000)(given(sorted_list_strategy())(check_block_size))()

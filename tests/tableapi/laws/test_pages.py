"""The pages of a list together are the list: nothing twice, nothing missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from system.encoded_query import OrderBy, Query
from tests.tableapi.laws.questions import (
    ListResponse,
    Question,
    QuestionSeries,
    account,
    fuzz_settings,
    is_closed,
    questions_in_turn,
    send_query,
)
from tests.tableapi.laws.storage import stored_world
from tests.tableapi.oracle import World
from tests.tableapi.oracle.queries import SORTABLE_TYPES, path_strategy
from tests.tableapi.oracle.worlds import caller_strategy, world_strategy

# With it a fault that repeats a page would page for ever.
MAX_PAGES = 40


@st.composite
def sorted_lists(draw: DrawFn) -> QuestionSeries:
    """Every record, by up to three keys; the values are few, so many are alike and many empty."""
    world, caller = draw(world_strategy()), draw(caller_strategy())
    generated = []
    for _ in range(4):
        table = draw(st.sampled_from(list(world.catalogue.tables)))
        keys = path_strategy(world, world.catalogue.tables[table], max_hops=1).filter(
            lambda path: path[1].type in SORTABLE_TYPES
        )
        order = draw(st.lists(st.builds(OrderBy, keys.map(lambda path: path[0]), st.booleans()), max_size=3))
        generated.append(Question(caller, table, Query((), tuple(order))))
    return QuestionSeries(world, generated)


def ids_by_page(world: World, question: Question, limit: int) -> list[str]:
    results: list[str] = []
    for page in range(1, MAX_PAGES):
        response = send_query(world, question.caller, question.table, question.text, limit=limit, page=page)
        assert isinstance(response, ListResponse)
        results += response.ids
        if not response.ids:
            break
    return results


def ids_by_cursor(world: World, question: Question, limit: int) -> list[str]:
    results: list[str] = []
    values: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        response = send_query(world, question.caller, question.table, question.text, limit=limit, **values)
        assert isinstance(response, ListResponse)
        assert len(response.ids) == limit or not response.next_cursor
        results += response.ids
        if not response.next_cursor:
            break
        values = {"cursor": response.next_cursor}
    return results


def check_pages(interview: QuestionSeries) -> None:
    with stored_world(interview.world) as world:
        for number, (question, _) in enumerate(questions_in_turn(world, interview)):
            whole_list = send_query(world, question.caller, question.table, question.text)
            if is_closed(world, question.caller, question.table) or not isinstance(whole_list, ListResponse):
                continue
            assert len(set(whole_list.ids)) == len(whole_list.ids)
            for read_pages in (ids_by_page, ids_by_cursor):
                assert read_pages(world, question, 1 + number % 3) == whole_list.ids, account(world, question)


def test_concatenated_pages_equal_the_list() -> None:
    fuzz_settings(40)(given(sorted_lists())(check_pages))()


@pytest.mark.nightly
def test_many_concatenated_pages_equal_the_list() -> None:
    fuzz_settings(2_000)(given(sorted_lists())(check_pages))()

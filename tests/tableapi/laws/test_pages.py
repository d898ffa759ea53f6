"""The pages of a list together are the list: nothing twice, nothing missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from system.encoded_query import OrderBy, Query
from tests.tableapi.laws.questions import Answer, Interview, Question, account, ask, chance, in_turn, is_closed
from tests.tableapi.laws.storage import stored_world
from tests.tableapi.oracle import World
from tests.tableapi.oracle.queries import SORTABLE, paths
from tests.tableapi.oracle.worlds import callers, worlds

# With it a fault that repeats a page would page for ever.
MAX_PAGES = 40


@st.composite
def sorted_lists(draw: DrawFn) -> Interview:
    """Every record, by up to three keys; the values are few, so many are alike and many empty."""
    world, caller = draw(worlds()), draw(callers())
    found = []
    for _ in range(4):
        table = draw(st.sampled_from(list(world.catalogue.tables)))
        keys = paths(world, world.catalogue.tables[table], hops=1).filter(lambda found: found[1].type in SORTABLE)
        order = draw(st.lists(st.builds(OrderBy, keys.map(lambda found: found[0]), st.booleans()), max_size=3))
        found.append(Question(caller, table, Query((), tuple(order))))
    return Interview(world, found)


def by_page(world: World, question: Question, limit: int) -> list[str]:
    results: list[str] = []
    for page in range(1, MAX_PAGES):
        response = ask(world, question.caller, question.table, question.text, limit=limit, page=page)
        assert isinstance(response, Answer)
        results += response.ids
        if not response.ids:
            break
    return results


def by_cursor(world: World, question: Question, limit: int) -> list[str]:
    results: list[str] = []
    values: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        response = ask(world, question.caller, question.table, question.text, limit=limit, **values)
        assert isinstance(response, Answer)
        assert len(response.ids) == limit or not response.next_cursor
        results += response.ids
        if not response.next_cursor:
            break
        values = {"cursor": response.next_cursor}
    return results


def pages_are_the_list(interview: Interview) -> None:
    with stored_world(interview.world) as world:
        for number, (question, _) in enumerate(in_turn(world, interview)):
            whole = ask(world, question.caller, question.table, question.text)
            if is_closed(world, question.caller, question.table) or not isinstance(whole, Answer):
                continue
            assert len(set(whole.ids)) == len(whole.ids)
            for way in (by_page, by_cursor):
                assert way(world, question, 1 + number % 3) == whole.ids, account(world, question)


def test_concatenated_pages_equal_the_list() -> None:
    chance(40)(given(sorted_lists())(pages_are_the_list))()


@pytest.mark.nightly
def test_many_concatenated_pages_equal_the_list() -> None:
    chance(2_000)(given(sorted_lists())(pages_are_the_list))()

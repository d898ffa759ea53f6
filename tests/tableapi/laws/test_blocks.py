"""A page that the database joins in blocks is, byte for byte, the page of single rows."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from django.http import QueryDict
from hypothesis import given

from system.errors import ServiceError
from tableapi.read import context, list_page, pipeline
from tests.tableapi.laws.questions import (
    LINK_PREFIX,
    SINGLE_RECORD,
    Question,
    QuestionSeries,
    account,
    fuzz_settings,
    question_series,
    questions_in_turn,
)
from tests.tableapi.laws.storage import stored_world
from tests.tableapi.laws.test_pages import MAX_PAGES, sorted_lists
from tests.tableapi.oracle.column_types import NOW

Page = tuple[bytes, dict[str, str], int | None, tuple[str, ...]] | str


def read_page(question: Question, block_size: int, **values: str) -> Page:
    reader = context.Caller(question.caller.id, question.caller.role_names, LINK_PREFIX, NOW)
    query = QueryDict(mutable=True)
    query.update({"sysparm_query": question.text, "sysparm_count": "exact", **values})
    try:
        with patch.object(list_page, "BLOCK_SIZE", block_size):
            result = pipeline.read_list(reader, question.table, query)
    except ServiceError as error:
        return str(error)
    return b",".join(result.blocks), dict(result.next_page), result.total, result.ignored


def read_pages(question: Question, block_size: int, limit: int, paging: str) -> Iterator[Page]:
    values = {"sysparm_limit": str(limit)}
    for number in range(2, MAX_PAGES):
        page = read_page(question, block_size, **values)
        yield page
        if isinstance(page, str) or not page[1]:
            return
        values |= page[1] if paging == "cursor" else {"sysparm_page": str(number)}


def check_blocks(interview: QuestionSeries) -> None:
    with stored_world(interview.world) as world:
        for number, (question, _) in enumerate(questions_in_turn(world, interview)):
            paging = ("cursor", "page")[number % 2]
            # A page of one block, of a short first block and others, and one that is not full.
            for block_size, limit in ((2, 3), (2, 4), (3, 4), (3, 10_000)):
                rows, blocks = (list(read_pages(question, size, limit, paging)) for size in (SINGLE_RECORD, block_size))
                assert rows == blocks, account(world, question)


def test_blocks_equal_rows() -> None:
    fuzz_settings(30)(given(question_series())(check_blocks))()


def test_blocks_of_sorted_lists_equal_rows() -> None:
    fuzz_settings(30)(given(sorted_lists())(check_blocks))()


@pytest.mark.nightly
def test_many_blocks_equal_rows() -> None:
    fuzz_settings(2_000)(given(question_series())(check_blocks))()
    fuzz_settings(2_000)(given(sorted_lists())(check_blocks))()

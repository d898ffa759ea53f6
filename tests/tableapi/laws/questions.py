"""Generates requests, and sends them as a caller of the oracle."""

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
from tableapi.catalogue.definitions import Table
from tableapi.database import statement_runner
from tableapi.read import context, list_page, pipeline
from tests.support.query_printer import to_text
from tests.tableapi.laws.storage import store_groups
from tests.tableapi.oracle import Caller, QueryRefused, World, select_ids, visible
from tests.tableapi.oracle.alphabets import moment
from tests.tableapi.oracle.column_types import NOW
from tests.tableapi.oracle.queries import query_strategy
from tests.tableapi.oracle.worlds import caller_strategy, world_strategy

# A caller is one of few, so that statements are used again, as they are in a running service.
CALLER_COUNT, QUESTION_COUNT = 2, 10
REFUSED_RESULT = "refused"
SINGLE_RECORD = 1
LINK_PREFIX = "http://testserver/rest/v1/table/"


def fuzz_settings(examples: int) -> settings:
    """Many examples of one law; the same ones each time, so that a run tells of the change and not of luck."""
    return settings(
        deadline=None,
        max_examples=examples,
        database=None,
        derandomize=examples < 1_000,
        # Chosen: the account of a failure names the question; to make its world smaller took five minutes.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@dataclass(frozen=True)
class Question:
    caller: Caller
    table: str
    query: Query

    @property
    def text(self) -> str:
        return to_text(self.query)


class QuestionSeries:
    """A world, and much that is asked of it: to set it up takes longer than to answer."""

    # No dataclass: Hypothesis would write all of it out, and `account` says what matters.
    def __init__(self, world: World, questions: list[Question]) -> None:
        self.world, self.questions = world, questions

    def __repr__(self) -> str:
        return f"{len(self.questions)} questions"


def account(world: World, question: Question) -> str:
    """What somebody needs to know who looks into a failure."""
    tables = []
    for table in world.catalogue.tables.values():
        names = ", ".join(column.name for column in table.columns.values() if not column.is_sys)
        tables.append(f"{table.name} < {table.parent}: {names}")
    rules = [
        f"{rule.operation} {rule.table}.{rule.column} roles={sorted(rule.roles)} if {rule.condition!r}"
        f"{' broken' * rule.is_broken}{' not admin' * (not rule.admin_overrides)}"
        for rule in world.catalogue.rules
    ]
    return "\n".join([f"{question.table}: {question.text}", str(question.caller), *tables, *rules])


@st.composite
def question_series(draw: DrawFn) -> QuestionSeries:
    world = draw(world_strategy())
    known_callers = [draw(caller_strategy()) for _ in range(CALLER_COUNT)]
    results = []
    for _ in range(QUESTION_COUNT):
        table = draw(st.sampled_from(list(world.catalogue.tables)))
        results.append(
            Question(
                draw(st.sampled_from(known_callers)), table, draw(query_strategy(world, world.catalogue.tables[table]))
            )
        )
    # Those of one caller together: the groups change less often.
    return QuestionSeries(world, sorted(results, key=lambda question: known_callers.index(question.caller)))


@dataclass(frozen=True)
class ListResponse:
    """`ids` are of the records, whether or not the caller may read their sys_id."""

    ids: list[str]
    bodies: list[Any]
    next_cursor: str
    total: int | None
    ignored: tuple[str, ...]


@contextmanager
def record_seen_ids() -> Iterator[list[list[str]]]:
    """The last key of each row that a page is made of: the id, which answers hide where a rule says so. Each record is
    a block here; `test_blocks` compares with pages in blocks."""
    results: list[list[str]] = []
    fetch = statement_runner.fetch_bytes

    def read_and_record(*positional: Any, **named: Any) -> list[statement_runner.ByteRow]:
        rows = fetch(*positional, **named)
        if rows and len(rows[0]) > 2:
            results.append([row[-2].decode() for row in rows if row[1] is not None and row[-2] is not None])
        return rows

    with (
        patch.object(statement_runner, "fetch_bytes", read_and_record),
        patch.object(list_page, "BLOCK_SIZE", SINGLE_RECORD),
    ):
        yield results


def send_query(world: World, caller: Caller, table: str, text: str = "", **parameters: Any) -> ListResponse | str:
    """A list as the product answers it, on stage; REFUSED_RESULT for its 400."""
    reader = context.Caller(caller.id, caller.role_names, LINK_PREFIX, NOW)
    query = QueryDict(mutable=True)
    query.update({"sysparm_query": text, **{f"sysparm_{name}": str(value) for name, value in parameters.items()}})
    query.setdefault("sysparm_limit", "10000")
    try:
        with record_seen_ids() as ids:
            result = pipeline.read_list(reader, table, query)
    except NotFound:
        return ListResponse([], [], "", 0, ())
    except BadRequest:
        return REFUSED_RESULT
    bodies = json.loads(b"[" + b",".join(result.blocks) + b"]", parse_float=Decimal)
    return ListResponse(
        ids[0][: int(str(query["sysparm_limit"]))] if ids else [],
        bodies,
        result.next_page.get("sysparm_cursor", ""),
        result.total,
        result.ignored,
    )


def expected_ids(world: World, question: Question) -> list[str] | str:
    """What the oracle says to the same."""
    try:
        return select_ids(world, question.caller, question.table, question.text, moment(question.caller.id))
    except QueryRefused:
        return REFUSED_RESULT


def is_closed(world: World, caller: Caller, table: str) -> bool:
    """Whether no record of the table can ever be read: a list is empty whatever is asked of it."""
    return not view_for(world.catalogue, caller.role_names).can_read(world.catalogue.tables[table])


def visible_rows(world: World, caller: Caller, table: str) -> list[str]:
    return sorted(row["sys_id"] for row in visible(world, caller, table, moment(caller.id)))


def questions_in_turn(world: World, interview: QuestionSeries) -> Iterator[tuple[Question, Table]]:
    """Each question, its caller seated."""
    current_caller = None
    for question in interview.questions:
        if question.caller != current_caller:
            store_groups(question.caller)
            current_caller = question.caller
        yield question, world.catalogue.tables[question.table]

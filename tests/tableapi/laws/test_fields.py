"""A response shows of a record what the caller may see of it, also through dot-walking."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from system.encoded_query import Path, Query
from tableapi.catalogue.definitions import Column
from tests.tableapi.laws.questions import (
    REFUSED_RESULT,
    Question,
    QuestionSeries,
    account,
    fuzz_settings,
    is_closed,
    questions_in_turn,
    send_query,
)
from tests.tableapi.laws.storage import stored_world
from tests.tableapi.oracle import QueryRefused, World, field_value, visible_rows
from tests.tableapi.oracle.alphabets import moment
from tests.tableapi.oracle.queries import path_strategy
from tests.tableapi.oracle.world import is_empty
from tests.tableapi.oracle.worlds import caller_strategy, world_strategy

MISSING_PATH = ("nosuch",)


class FieldQuestion(Question):
    """A list of some fields, of all records."""

    paths: list[tuple[Path, Column | None]]


@st.composite
def field_lists(draw: DrawFn) -> QuestionSeries:
    world, caller = draw(world_strategy()), draw(caller_strategy())
    questions: list[Question] = []
    for _ in range(5):
        table = draw(st.sampled_from(list(world.catalogue.tables)))
        drawn_paths: list[tuple[Path, Column | None]] = draw(
            st.lists(path_strategy(world, world.catalogue.tables[table], max_hops=2), min_size=1, max_size=5)
        )
        field_question = FieldQuestion(caller, table, Query())
        object.__setattr__(
            field_question, "paths", [*drawn_paths, *([(MISSING_PATH, None)] if draw(st.booleans()) else [])]
        )
        questions.append(field_question)
    return QuestionSeries(world, questions)


def shown_value(value: Any, column: Column) -> Any:
    """A stored value as JSON has it."""
    if is_empty(value, column):
        return None
    if column.type == "datetime":
        assert isinstance(value, datetime)
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return value.isoformat() if column.type == "date" else value


def check_fields(interview: QuestionSeries) -> None:
    with stored_world(interview.world) as world:
        for question, _ in questions_in_turn(world, interview):
            assert isinstance(question, FieldQuestion)
            if not is_closed(world, question.caller, question.table):
                names = ",".join(".".join(path) for path, _ in question.paths)
                result = send_query(world, question.caller, question.table, fields=names, exclude_reference_link=1)
                actual = (
                    result
                    if isinstance(result, str)
                    else (dict(zip(result.ids, result.bodies, strict=True)), result.ignored)
                )
                assert actual == expected_values(world, question), f"{names}\n{account(world, question)}"


def expected_values(world: World, question: FieldQuestion) -> Any:
    """Each visible record by its id, and the names that are left out; or that nothing is left."""
    now = moment(question.caller.id)
    rows = visible_rows(world, question.caller, question.table, now)
    records: dict[str, dict[str, Any]] = {row["sys_id"]: {} for row in rows}
    readable_paths, ignored_names = False, []
    for path, column in dict(question.paths).items():
        try:
            # Whether a name is known does not depend on there being a record.
            field_value(world, question.caller, question.table, any_path(world, question.table), path, now)
        except QueryRefused:
            ignored_names.append(".".join(path))
            continue
        readable_paths = True
        for row in rows:
            assert column is not None
            value = field_value(world, question.caller, question.table, row, path, now)
            records[row["sys_id"]][".".join(path)] = shown_value(value, column)
    return (records, tuple(ignored_names)) if readable_paths else REFUSED_RESULT


def any_path(world: World, table: str) -> dict[str, Any]:
    """A record of the table that has nothing."""
    result = world.catalogue.tables[table]
    return {**dict.fromkeys(result.columns), "sys_id": "0", "sys_db_table_id": result.id}


def test_fields_of_a_response_match_the_oracle() -> None:
    fuzz_settings(40)(given(field_lists())(check_fields))()


@pytest.mark.nightly
def test_fields_of_many_responses_match_the_oracle() -> None:
    fuzz_settings(2_000)(given(field_lists())(check_fields))()

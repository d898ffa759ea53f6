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
from tests.tableapi.laws.questions import REFUSED, Interview, Question, account, ask, chance, in_turn, is_closed
from tests.tableapi.laws.storage import stored_world
from tests.tableapi.oracle import Refused, World, field, visible
from tests.tableapi.oracle.alphabets import moment
from tests.tableapi.oracle.queries import paths
from tests.tableapi.oracle.world import is_empty
from tests.tableapi.oracle.worlds import callers, worlds

MISSING = ("nosuch",)


class Asked(Question):
    """A list of some fields, of all records."""

    paths: list[tuple[Path, Column | None]]


@st.composite
def field_lists(draw: DrawFn) -> Interview:
    world, caller = draw(worlds()), draw(callers())
    questions: list[Question] = []
    for _ in range(5):
        table = draw(st.sampled_from(list(world.catalogue.tables)))
        drawn: list[tuple[Path, Column | None]] = draw(
            st.lists(paths(world, world.catalogue.tables[table], hops=2), min_size=1, max_size=5)
        )
        asked = Asked(caller, table, Query())
        object.__setattr__(asked, "paths", [*drawn, *([(MISSING, None)] if draw(st.booleans()) else [])])
        questions.append(asked)
    return Interview(world, questions)


def as_shown(value: Any, column: Column) -> Any:
    """A stored value as JSON has it."""
    if is_empty(value, column):
        return None
    if column.type == "datetime":
        assert isinstance(value, datetime)
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return value.isoformat() if column.type == "date" else value


def fields_are_what_may_be_seen(interview: Interview) -> None:
    with stored_world(interview.world) as world:
        for question, _ in in_turn(world, interview):
            assert isinstance(question, Asked)
            if not is_closed(world, question.caller, question.table):
                names = ",".join(".".join(path) for path, _ in question.paths)
                result = ask(world, question.caller, question.table, fields=names, exclude_reference_link=1)
                actual = (
                    result
                    if isinstance(result, str)
                    else (dict(zip(result.ids, result.bodies, strict=True)), result.ignored)
                )
                assert actual == wanted(world, question), f"{names}\n{account(world, question)}"


def wanted(world: World, question: Asked) -> Any:
    """Each visible record by its id, and the names that are left out; or that nothing is left."""
    now = moment(question.caller.id)
    rows = visible(world, question.caller, question.table, now)
    records: dict[str, dict[str, Any]] = {row["sys_id"]: {} for row in rows}
    readable, ignored = False, []
    for path, column in dict(question.paths).items():
        try:
            # Whether a name is known does not depend on there being a record.
            field(world, question.caller, question.table, anything(world, question.table), path, now)
        except Refused:
            ignored.append(".".join(path))
            continue
        readable = True
        for row in rows:
            assert column is not None
            value = field(world, question.caller, question.table, row, path, now)
            records[row["sys_id"]][".".join(path)] = as_shown(value, column)
    return (records, tuple(ignored)) if readable else REFUSED


def anything(world: World, table: str) -> dict[str, Any]:
    """A record of the table that has nothing."""
    result = world.catalogue.tables[table]
    return {**dict.fromkeys(result.columns), "sys_id": "0", "sys_db_table_id": result.id}


def test_fields_of_a_response_match_the_oracle() -> None:
    chance(40)(given(field_lists())(fields_are_what_may_be_seen))()


@pytest.mark.nightly
def test_fields_of_many_responses_match_the_oracle() -> None:
    chance(2_000)(given(field_lists())(fields_are_what_may_be_seen))()

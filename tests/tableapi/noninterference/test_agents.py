"""What the caller of a tool may not read changes no answer, no error and no hint."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from accounts.models import AccessKey, User
from agents.http.view import McpView
from system.http.json_view import JsonRequest
from tests.agents.agent_calls import tool_call
from tests.support.nightly import scaled_count
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import ProgramGenerator
from tests.tableapi.noninterference.runner import REQUEST_FACTORY, insert_world, stored_tables
from tests.tableapi.oracle import World

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 30, 2_000
RECORDS_PER_PAIR = 8
Call = tuple[str, dict[str, Any]]


def random_calls(random: Random, pair: Pair) -> list[Call]:
    """Reads, and then writes that would show what is stored."""
    generator = ProgramGenerator(random, pair)
    calls: list[Call] = [("list_tables", {})]
    names = [*pair.first.rows, "missing"]
    for name in names:
        table = pair.catalogue.tables.get(name) or next(iter(pair.catalogue.tables.values()))
        query, paths = generator.random_query(table), [generator.random_field_path(table) for _ in range(3)]
        target = {"table": name}
        calls += [
            ("describe_table", target),
            ("query_records", {**target, "query": query, "fields": paths, "limit": random.choice([1, 3, 20])}),
            ("query_records", {**target, "query": f"{paths[0]}LIKEa^ORDERBY{paths[1]}"}),
            ("record_statistics", {**target, "query": query}),
            ("record_statistics", {**target, "group_by": paths[:1], "count_distinct": paths[1:2]}),
        ]
    ids = sorted({(name, sys_id) for name in pair.first.rows for sys_id in ids_of(pair, name)})
    for name, sys_id in random.sample(ids, min(len(ids), RECORDS_PER_PAIR)):
        record = {"table": name, "sys_id": sys_id}
        column = random.choice([*pair.catalogue.tables[name].columns])
        calls += [
            ("read_record", record),
            ("read_record", {**record, "comments": True}),
            ("update_record", {**record, "values": {column: None}}),
            ("add_comment", {**record, "text": "a"}),
            ("create_record", {"table": name, "values": {column: sys_id}}),
        ]
    return calls


def ids_of(pair: Pair, name: str) -> set[str]:
    return {*pair.first.rows[name], *pair.second.rows[name]}


def answers(pair: Pair, world: World, calls: list[Call], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    user = User(sys_id=pair.caller.id, login="somebody")
    user.role_names = pair.caller.role_names
    user.access_key = AccessKey(sys_id="1" * 18, user=user, mcp_writes=True)
    monkeypatch.setattr(JsonRequest, "user", user, raising=False)
    results = []
    with rollback_afterwards(), active_catalogue(pair.catalogue):
        insert_world(world)
        for name, arguments in calls:
            body = json.dumps(tool_call(name, **arguments))
            response: Any = McpView.as_view()(REQUEST_FACTORY.generic("POST", "/mcp", body, "application/json"))
            assert response.status_code == 200, response.content
            result = json.loads(response.content)["result"]
            results.append((json.loads(result["content"][0]["text"]), result["isError"]))
    return results


def check_pair(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compares both databases, and returns the number of calls that succeeded."""
    random = Random(seed)
    pair = pairs.make_pair(random, may_write=True)
    calls = random_calls(random, pair)
    with stored_tables(pair):
        if not User.objects.filter(pk=pair.caller.id).exists():
            User.objects.bulk_create([User(sys_id=pair.caller.id, login=f"u{pair.caller.id}")])
        first, second = (answers(pair, world, calls, monkeypatch) for world in (pair.first, pair.second))
    for call, one, other in zip(calls, first, second, strict=True):
        assert without_times(one) == without_times(other), f"seed {seed}: {call}"
    return sum(not is_error for _, is_error in first)


def without_times(answer: Any) -> Any:
    body, is_error = answer
    for entry in (*body.get("comments", ()), body.get("comment", {})):
        entry.pop("sys_created_at", None), entry.pop("sys_updated_at", None), entry.pop("sys_id", None)
    return body, is_error


def test_hidden_records_and_values_change_no_answer(monkeypatch: pytest.MonkeyPatch):
    assert sum(check_pair(seed, monkeypatch) for seed in range(PAIR_COUNT)) > 10 * PAIR_COUNT


@pytest.mark.nightly
def test_hidden_records_and_values_change_no_answer_in_many_pairs(monkeypatch: pytest.MonkeyPatch):
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        check_pair(seed, monkeypatch)

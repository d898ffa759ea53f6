"""Writes need a key that has `mcp_writes` and is not read-only; `mcp_writes` counts at `/mcp` only."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from system.models import Change
from tests.agents.agent_calls import Agent, error_codes, make_key, with_client
from tests.tableapi.designs import query_rows

pytestmark = pytest.mark.django_db
WRITES = {"create_record", "update_record", "add_comment"}


def offered(key: str) -> set[str]:
    async def talk(client: Any) -> Any:
        return {tool.name for tool in (await client.list_tools()).tools}

    tools: set[str] = with_client(key, talk)
    return tools


@pytest.fixture
def task_id(desk: User) -> str:
    return str(query_rows("SELECT sys_id FROM records.task ORDER BY number LIMIT 1")[0][0])


@pytest.mark.parametrize("limits", [{}, {"read_only": True}, {"read_only": True, "mcp_writes": True}])
def test_key_without_the_right_cannot_write(desk: User, task_id: str, limits: dict[str, bool]):
    agent, change_count = Agent(desk, **limits), Change.objects.count()
    answers = [
        agent.create_record(table="task", values={"short_description": "New"}),
        agent.update_record(table="task", sys_id=task_id, values={"priority": "4"}),
        agent.add_comment(table="task", sys_id=task_id, text="A comment"),
        agent.create_record(),
    ]

    assert [error_codes(answer) for answer in answers] == [["mcp_writes_off"]] * 4
    assert "account page" in answers[0]["errors"][0]["message"]
    assert not WRITES & offered(agent.key) and Change.objects.count() == change_count


def test_key_with_the_right_writes(agent: Agent, desk: User, task_id: str):
    assert offered(agent.key) >= WRITES

    created = agent.create_record(table="task", values={"short_description": "New", "caller": desk.pk})
    assert created["record"]["short_description"] == "New" and created["record"]["number"].startswith("TSK")
    assert created["record"]["caller"]["display_value"] == "demo.agent"
    updated = agent.update_record(table="task", sys_id=task_id, values={"priority": "4"})
    assert updated["record"]["priority"]["value"] == "4"
    comment = agent.add_comment(table="task", sys_id=task_id, text="Seen by @demo.user")["comment"]
    assert comment["sys_created_by"] == desk.pk and len(comment["mentions"]) <= 1
    changes = set(Change.objects.values_list("record_id", "changed_by"))
    assert changes >= {(created["sys_id"], desk.pk), (task_id, desk.pk)}


def test_rules_decide_as_in_the_api(requester: User, task_id: str):
    agent = Agent(requester, mcp_writes=True)

    own = agent.create_record(table="task", values={"short_description": "Help", "caller": requester.pk})
    assert own["record"]["short_description"] == "Help"
    foreign = agent.create_record(table="task", values={"short_description": "Help"})
    assert error_codes(foreign) == ["access_denied"]
    assert error_codes(agent.update_record(table="task", sys_id=own["sys_id"], values={"priority": "1"})) == [
        "access_denied"
    ]
    hidden_column = agent.create_record(table="task", values={"work_notes": "a", "caller": requester.pk})
    assert error_codes(hidden_column) == ["unknown_field"] and "short_description" in hidden_column["hint"]


def test_key_is_limited_to_its_roles(desk: User, task_id: str):
    role_id = query_rows("SELECT sys_id FROM public.sys_role WHERE name = 'monitoring'")[0][0]
    agent = Agent(desk, mcp_writes=True, scope=[role_id])

    assert error_codes(agent.update_record(table="task", sys_id=task_id, values={"priority": "1"}))[0] in (
        "access_denied", "record_not_found",
    )  # fmt: skip


def test_all_errors_of_a_record_are_reported(agent: Agent):
    answer = agent.create_record(table="task", values={"priority": "9", "caller": "nobody", "number": "TSK1"})

    assert {error["field"] for error in answer["errors"]} <= {"priority", "caller", "number"}
    assert answer["errors"]


def test_outdated_update_is_refused(agent: Agent, task_id: str):
    version = agent.read_record(table="task", sys_id=task_id, fields=["sys_version"])["record"]["sys_version"]
    agent.update_record(table="task", sys_id=task_id, values={"priority": "4"})

    assert version == 0
    arguments: dict[str, Any] = {"table": "task", "sys_id": task_id, "values": {"priority": "1"}}
    stale = agent.update_record(**arguments, expected_version=version)
    assert error_codes(stale) == ["stale"] and "read_record" in stale["hint"]
    current = agent.read_record(table="task", sys_id=task_id, fields=["sys_version"])["record"]["sys_version"]
    assert agent.update_record(**arguments, expected_version=current)["record"]["priority"]["value"] == "1"


def test_repeated_creation_with_a_key_creates_once(agent: Agent):
    values = {"short_description": "Once"}
    first = agent.create_record(table="task", values=values, idempotency_key="a")

    assert agent.create_record(table="task", values=values, idempotency_key="a") == first
    other = agent.create_record(table="task", values={"short_description": "Twice"}, idempotency_key="a")
    assert error_codes(other) == ["idempotency_mismatch"]
    assert agent.create_record(table="task", values=values, idempotency_key="b")["sys_id"] != first["sys_id"]


def test_repeated_refusal_with_a_key_is_the_same(agent: Agent):
    refusals = [agent.create_record(table="task", values={"priority": "9"}, idempotency_key="a") for _ in range(2)]

    assert refusals[0] == refusals[1] and refusals[0]["errors"][0]["field"] == "priority"


def test_right_changes_nothing_outside_mcp(desk: User):
    """A key with it writes no more elsewhere, and one without it no less."""
    statuses = {}
    for name, limits in {
        "plain": {},
        "mcp": {"mcp_writes": True},
        "both": {"mcp_writes": True, "read_only": True},
    }.items():
        headers = {"Authorization": f"Bearer {make_key(desk, **limits)}"}
        response = Client().post("/rest/v1/table/task", {"short_description": "a"}, "application/json", headers=headers)
        statuses[name] = response.status_code
    assert statuses == {"plain": 201, "mcp": 201, "both": 403}


def test_errors_name_what_tools_have(agent: Agent, desk: User):
    def first_error(answer: Any) -> Any:
        return answer["errors"][0]

    named = first_error(agent.create_record(table="task", values={"caller": "demo.user"}))
    assert named["message"] == "Expected the ID of a record. query_records finds it."
    unreadable = first_error(agent.create_record(table="task", values={"caller": "1" * 18}))
    assert unreadable["message"].endswith("that you can read. query_records finds it.")
    key = first_error(agent.create_record(table="task", values={}, idempotency_key="a\n"))
    assert key["field"] == "idempotency_key" and "Idempotency-Key" not in key["message"]
    assert first_error(agent.search_documents(query="a", collections=["nothing"]))["field"] == "collections"

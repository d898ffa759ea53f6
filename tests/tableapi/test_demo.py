"""The demo records, created once."""

import json
from base64 import b64encode
from typing import Any

import pytest
from django.test import Client

from accounts import demo as demo_people
from tableapi.database import catalogue_loader
from tableapi.design import saving
from tableapi.models import Rule, Table, View
from tableapi.setup import demo_records
from tests.support.users import PASSWORD
from tests.tableapi.designs import ask

pytestmark = pytest.mark.django_db


def make() -> None:
    demo_people.create_demo_users(lambda: PASSWORD)
    demo_records.create_demo_records()


def call(login: str, method: str, path: str, body: Any = None, **query: str) -> Any:
    pair = b64encode(f"{login}:{PASSWORD}".encode()).decode()
    response = Client().generic(
        method,
        f"/rest/v1/table/{path}",
        json.dumps(body) if body is not None else "",
        content_type="application/json",
        query_params=query,
        headers={"Authorization": f"Basic {pair}"},
    )
    return response


def listed(login: str, **query: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = call(login, "GET", "task", sysparm_limit="100", **query).json()["data"]
    return result


def test_agent_reads_every_task_and_user_only_own_tasks():
    make()

    assert len(listed("demo.agent")) == len(demo_records.TASKS)
    own = listed("demo.user", sysparm_fields="caller.login")
    assert len(own) == sum(task.caller == "user" for task in demo_records.TASKS)
    assert {task["caller.login"] for task in own} == {"demo.user"}


def test_work_notes_are_for_the_agent_only():
    make()

    assert {task.get("work_notes") for task in listed("demo.agent")} == {None, demo_records.WORK_NOTES}
    assert all("work_notes" not in task for task in listed("demo.user"))


def test_user_creates_only_own_tasks_and_changes_none():
    make()
    ids = {user["login"]: user["sys_id"] for user in call("demo.user", "GET", "user").json()["data"]}

    mine = call("demo.user", "POST", "task", {"short_description": "Lamp", "caller": ids["demo.user"]})
    assert mine.status_code == 201
    place = f"task/{mine.json()['data'][0]['sys_id']}"
    assert call("demo.user", "POST", "task", {"caller": ids["demo.agent"]}).status_code == 403
    assert call("demo.user", "PATCH", place, {"state": "2"}).status_code == 403
    assert call("demo.agent", "PATCH", place, {"state": "2"}).status_code == 200


def test_only_administrators_delete(alice: Any):
    make()
    place = f"task/{listed('demo.agent')[0]['sys_id']}"

    assert call("demo.agent", "DELETE", place).status_code == 403
    assert call("alice", "DELETE", place).status_code == 200


def test_view_shows_caller_and_assignee():
    make()

    first = listed("demo.user", sysparm_view=demo_records.VIEW_NAME)[0]
    assert tuple(first) == demo_records.VIEW_PATHS
    assert first["number"].startswith("TSK") and first["assigned_user.login"] == "demo.agent"


def test_second_start_adds_nothing():
    make()
    make()

    assert len(listed("demo.agent")) == len(demo_records.TASKS)
    assert View.objects.filter(table__name="task").count() == 1


def test_removed_demo_data_is_not_created_again():
    make()
    for rule in Rule.objects.filter(table__name="task"):
        rule.delete()
    ask("DELETE FROM records.task")
    View.objects.filter(name=demo_records.VIEW_NAME).delete()
    catalogue_loader.clear_cache()
    make()

    assert (
        not Rule.objects.filter(table__name="task").exists()
        and not View.objects.filter(name=demo_records.VIEW_NAME).exists()
    )
    assert ask("SELECT count(*) FROM records.task") == [(0,)]


def test_existing_rules_are_kept():
    demo_people.create_demo_users(lambda: PASSWORD)
    saving.save_rule(Rule(table=Table.objects.get(name="task"), operation="read", description="Ours"))
    demo_records.create_demo_records()

    assert [rule.description for rule in Rule.objects.filter(table__name="task")] == ["Ours"]


def test_no_demo_data_without_demo_users():
    demo_records.create_demo_records()

    assert not Rule.objects.filter(table__name="task").exists()

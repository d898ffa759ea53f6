"""Demo records are created only once, with rules for an agent and a user."""

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
from tests.tableapi.designs import query_rows

pytestmark = pytest.mark.django_db


def create_demo_data() -> None:
    demo_people.create_demo_users(lambda: PASSWORD)
    demo_records.create_demo_records()


def call_api(login: str, method: str, path: str, body: Any = None, **params: str) -> Any:
    credentials = b64encode(f"{login}:{PASSWORD}".encode()).decode()
    return Client().generic(
        method,
        f"/rest/v1/table/{path}",
        json.dumps(body) if body is not None else "",
        content_type="application/json",
        query_params=params,
        headers={"Authorization": f"Basic {credentials}"},
    )


def list_tasks(login: str, **params: str) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = call_api(login, "GET", "task", sysparm_limit="100", **params).json()["data"]
    return tasks


def test_agent_reads_every_task_and_user_only_own_tasks():
    create_demo_data()

    assert len(list_tasks("demo.agent")) == len(demo_records.TASKS)
    own_tasks = list_tasks("demo.user", sysparm_fields="caller.login")
    assert len(own_tasks) == sum(task.caller == "user" for task in demo_records.TASKS)
    assert {task["caller.login"] for task in own_tasks} == {"demo.user"}


def test_work_notes_are_for_the_agent_only():
    create_demo_data()

    assert {task.get("work_notes") for task in list_tasks("demo.agent")} == {None, demo_records.WORK_NOTES}
    assert all("work_notes" not in task for task in list_tasks("demo.user"))


def test_user_creates_only_own_tasks_and_changes_none():
    create_demo_data()
    user_ids = {user["login"]: user["sys_id"] for user in call_api("demo.user", "GET", "user").json()["data"]}

    response = call_api("demo.user", "POST", "task", {"short_description": "Lamp", "caller": user_ids["demo.user"]})
    assert response.status_code == 201
    path = f"task/{response.json()['data'][0]['sys_id']}"
    assert call_api("demo.user", "POST", "task", {"caller": user_ids["demo.agent"]}).status_code == 403
    assert call_api("demo.user", "PATCH", path, {"state": "2"}).status_code == 403
    assert call_api("demo.agent", "PATCH", path, {"state": "2"}).status_code == 200


def test_only_administrators_delete_tasks(alice: Any):
    create_demo_data()
    path = f"task/{list_tasks('demo.agent')[0]['sys_id']}"

    assert call_api("demo.agent", "DELETE", path).status_code == 403
    assert call_api("alice", "DELETE", path).status_code == 200


def test_view_shows_caller_and_assignee():
    create_demo_data()

    first_task = list_tasks("demo.user", sysparm_view=demo_records.VIEW_NAME)[0]
    assert tuple(first_task) == demo_records.VIEW_PATHS
    assert first_task["number"].startswith("TSK") and first_task["assigned_user.login"] == "demo.agent"


def test_second_start_adds_nothing():
    create_demo_data()
    create_demo_data()

    assert len(list_tasks("demo.agent")) == len(demo_records.TASKS)
    assert View.objects.filter(table__name="task").count() == 2


def test_removed_demo_data_is_not_created_again():
    create_demo_data()
    for rule in Rule.objects.filter(table__name="task"):
        rule.delete()
    query_rows("DELETE FROM records.task")
    View.objects.filter(name=demo_records.VIEW_NAME).delete()
    catalogue_loader.clear_cache()
    create_demo_data()

    assert (
        not Rule.objects.filter(table__name="task").exists()
        and not View.objects.filter(name=demo_records.VIEW_NAME).exists()
    )
    assert query_rows("SELECT count(*) FROM records.task") == [(0,)]


def test_existing_rules_are_kept():
    demo_people.create_demo_users(lambda: PASSWORD)
    saving.save_rule(Rule(table=Table.objects.get(name="task"), operation="read", description="Ours"))
    demo_records.create_demo_records()

    assert [rule.description for rule in Rule.objects.filter(table__name="task")] == ["Ours"]


def test_no_demo_data_without_demo_users():
    demo_records.create_demo_records()

    assert not Rule.objects.filter(table__name="task").exists()

"""Records in the ServiceNow dialect: forms of answers, names, pages, queries, writes and errors."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from accounts.models import Role, User
from system import properties
from system.property_definitions import (
    SERVICENOW_ENABLED,
    SERVICENOW_INVALID_QUERY,
    SERVICENOW_LONG_IDS,
    SERVICENOW_TABLES,
)
from tableapi.design import saving
from tableapi.models import Rule, Table
from tests.accounts.callers import basic_auth
from tests.support.users import make_user
from tests.tableapi.designs import make_column, make_table

pytestmark = pytest.mark.django_db
TASKS = "/api/now/table/task"
NO_RECORD = {
    "error": {"message": "No Record found", "detail": "Record doesn't exist or ACL restricts the record retrieval"},
    "status": "failure",
}


def make_rule(operation: str, table: Table, *roles: str, column_name: str = "") -> None:
    ids = [Role.objects.get(name=role).pk for role in roles]
    saving.save_rule(Rule(operation=operation, table=table, column_name=column_name, roles=ids))


def send(user: User | None, method: str, path: str, body: Any = None, **parameters: str) -> Any:
    return Client().generic(
        method,
        f"{path}?{urlencode(parameters)}" if parameters else path,
        b"" if body is None else json.dumps(body).encode(),
        content_type="application/json",
        headers=basic_auth(user.login) if user else {},
    )


def read(user: User, path: str = TASKS, **parameters: str) -> Any:
    response = send(user, "GET", path, **{f"sysparm_{name}": value for name, value in parameters.items()})
    assert response.status_code == 200, response.content
    return response.json()["result"]


def make_task(user: User, **values: Any) -> Any:
    response = send(user, "POST", TASKS, values)
    assert response.status_code == 201, response.content
    return response.json()["result"]


def error_of(response: Any) -> tuple[int, str]:
    assert response.json()["status"] == "failure"
    return response.status_code, response.json()["error"]["message"]


def test_every_value_is_text(alice: User):
    task = make_task(alice, short_description="Printer", priority="3", active="true")

    assert task["priority"] == "3" and task["closed_at"] == "" and task["number"].startswith("TSK")
    assert task["sys_created_on"][:2] == "20" and len(task["sys_created_on"]) == 19
    assert {type(value) for value in task.values()} <= {str, dict}
    assert task["sys_created_by"]["value"] == alice.pk
    assert task["sys_created_by"]["link"] == f"http://testserver/api/now/table/sys_user/{alice.pk}"


def test_display_values_and_links(alice: User):
    make_task(alice, assigned_user=alice.pk, state="1")
    link = f"http://testserver/api/now/table/sys_user/{alice.pk}"

    (record,) = read(alice, fields="state,assigned_user,closed_by", display_value="true")
    assert record == {"state": "New", "assigned_user": {"display_value": "alice", "link": link}, "closed_by": ""}
    (record,) = read(alice, fields="state,assigned_user,closed_by", display_value="all")
    assert record["state"] == {"display_value": "New", "value": "1"}
    assert record["closed_by"] == {"display_value": "", "value": ""}
    assert record["assigned_user"] == {"display_value": "alice", "value": alice.pk, "link": link}
    (record,) = read(alice, fields="assigned_user", exclude_reference_link="true")
    assert record == {"assigned_user": alice.pk}
    (record,) = read(alice, fields="assigned_user,state", exclude_reference_link="true", display_value="true")
    assert record == {"assigned_user": "alice", "state": "New"}


def test_names_of_the_platform_lead_to_ours(alice: User, bob: User):
    bob.first_name, bob.last_name = "Bob", "Builder"
    bob.save()
    make_task(alice, assigned_user=bob.pk)

    users = read(alice, "/api/now/table/sys_user", query="user_name=bob", fields="user_name,name,sys_mod_count")
    assert users == [{"user_name": "bob", "name": "Bob Builder", "sys_mod_count": "1"}]
    (task,) = read(alice, fields="assigned_user.user_name,assigned_user.name,sys_class_name")
    assert task == {"assigned_user.user_name": "bob", "assigned_user.name": "Bob Builder", "sys_class_name": "task"}
    columns = read(alice, "/api/now/table/sys_dictionary", query="name=task^element=state", fields="name,element")
    assert columns == [{"name": "task", "element": "state"}]
    assert read(alice, "/api/now/v1/table/sys_user_group") == []


def test_a_designed_table_with_a_name_of_the_platform_is_meant_itself(alice: User):
    table = make_table("core_company")
    make_column(table, "colour")
    assert send(alice, "POST", "/api/now/table/core_company", {"colour": "red"}).status_code == 201
    assert read(alice, "/api/now/table/core_company", fields="colour") == [{"colour": "red"}]


def test_a_designed_table_that_is_hidden_does_not_exist(alice: User):
    dora, path = make_user("dora"), "/api/now/table/core_company"
    assert read(dora, path) == []
    make_rule("read", make_table("core_company"), "admin")
    assert read(dora, path) == []


def test_administrators_add_names_of_tables(alice: User):
    assert error_of(send(alice, "GET", "/api/now/table/sc_task")) == (400, "Invalid table sc_task")
    properties.put(SERVICENOW_TABLES, "sc_task=task, incident=task")
    assert read(alice, "/api/now/table/sc_task") == []


def test_pages_and_their_headers(alice: User):
    for number in range(5):
        make_task(alice, short_description=f"Task {number}")
    response = send(alice, "GET", TASKS, sysparm_limit="2", sysparm_offset="2", sysparm_query="ORDERBYDESCnumber")

    assert [record["short_description"] for record in response.json()["result"]] == ["Task 2", "Task 1"]
    assert response["X-Total-Count"] == "5"
    links = dict(part.split(";")[::-1] for part in response["Link"].split(","))
    offsets = {name.removeprefix('rel="').strip('"'): url.rpartition("=")[2].strip(">") for name, url in links.items()}
    assert offsets == {"first": "0", "prev": "0", "next": "4", "last": "4"}
    long_query = "^OR".join(["numberISNOTEMPTY"] * 60)
    response = send(alice, "GET", TASKS, sysparm_limit="2", sysparm_query=long_query)
    assert response["Link"].endswith('sysparm_offset=2>;rel="next"') and response["Link"].count("rel=") == 1
    quiet = send(alice, "GET", TASKS, sysparm_no_count="true", sysparm_suppress_pagination_header="true")
    assert "X-Total-Count" not in quiet and "Link" not in quiet and len(quiet.json()["result"]) == 5


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("short_descriptionLIKEprint", {"Printer"}),
        ("short_description*print", {"Printer"}),
        ("short_descriptionDOES NOT CONTAINprint", {"Screen", "Key^board"}),
        ("short_description=Key^^board", {"Key^board"}),
        ("short_description=Printer^ORshort_description=Screen^priority=1", {"Printer"}),
        ("priority=1^NQpriority=2", {"Printer", "Screen"}),
        ("priorityIN1,2^EQ", {"Printer", "Screen"}),
        ("priority!=NULL", {"Printer", "Screen", "Key^board"}),
        ("nothing=1", {"Printer", "Screen", "Key^board"}),
        ("nothing=1^priority=1", {"Printer"}),
        ("(priority=1)", {"Printer", "Screen", "Key^board"}),
        ("stateVALCHANGES", set()),
        ("sys_created_on>javascript:gs.dateGenerate('2016-02-01','00:00:00')^priority=1", {"Printer"}),
        ("sys_created_onONToday@javascript:gs.beginningOfToday()@javascript:gs.endOfToday()^priority=2", {"Screen"}),
        ("assigned_user.user_name=alice", {"Printer"}),
        ("assigned_userDYNAMIC90d1921e5f510100a9ad2572f2b477fe", {"Printer"}),
        ("short_description=Key^^^ORpriority=2", {"Screen"}),
        ("short_description=Key^^board^priority=3", {"Key^board"}),
        ("active=perhaps^priority=1", {"Printer"}),
        ("sys_created_on>javascript:gs.dateGenerate('2016-99-01','start')^priority=1", {"Printer"}),
        ("sys_created_onMORETHANsys_updated_on@hour@before@3^^priority=1", {"Printer", "Screen", "Key^board"}),
        ("priorityIN1,,2,", {"Printer", "Screen"}),
        ("priorityIN", set()),
        ("priorityNOT IN", {"Printer", "Screen", "Key^board"}),
    ],
)
def test_queries_of_the_platform(alice: User, query: str, expected: set[str]):
    make_task(alice, short_description="Printer", priority="1", assigned_user=alice.pk)
    make_task(alice, short_description="Screen", priority="2")
    make_task(alice, short_description="Key^board", priority="3")
    assert {record["short_description"] for record in read(alice, query=query)} == expected


def test_sort_keys_that_cannot_be_used_are_left_out(alice: User):
    make_column(make_table("device"), "data", "json")
    assert read(alice, "/api/now/table/device", query="ORDERBYdata^ORDERBYnothing^ORDERBYDESCsys_id") == []


def test_invalid_conditions_can_be_refused(alice: User):
    make_task(alice, short_description="Printer")
    assert send(alice, "GET", TASKS, active="perhaps").status_code == 200
    properties.put(SERVICENOW_INVALID_QUERY, "no_rows")
    assert read(alice, query="nothing=1") == []
    properties.put(SERVICENOW_INVALID_QUERY, "error")
    assert error_of(send(alice, "GET", TASKS, sysparm_query="nothing=1")) == (400, "Invalid query: nothing=1")


def test_other_parameters_are_filters_if_the_column_exists(alice: User):
    make_task(alice, short_description="Printer")
    make_task(alice, short_description="Screen")
    parameters = {"short_description": "Screen", "b'sysparm_display_value": "1"}
    (record,) = send(alice, "GET", TASKS, **parameters).json()["result"]
    assert record["short_description"] == "Screen"


def test_writes_ignore_what_cannot_be_written(alice: User):
    table = make_table("device")
    make_column(table, "colour")
    make_column(table, "price", "integer")
    for operation in ("create", "read", "write"):
        make_rule(operation, table)
    make_rule("write", table, "admin", column_name="price")
    make_rule("create", table, "admin", column_name="price")
    user = make_user("dora")
    body = {"colour": "red", "price": "3", "sys_created_on": "2020-01-01 00:00:00", "unknown": "x"}
    created = send(user, "POST", "/api/now/table/device", body)
    assert created.status_code == 201 and created["X-Ignored-Fields"] == "price"
    record = created.json()["result"]
    assert (record["colour"], record["price"]) == ("red", "")
    assert created["Location"] == f"http://testserver/api/now/table/device/{record['sys_id']}"
    path = f"/api/now/table/device/{record['sys_id']}"
    for method in ("PUT", "PATCH"):
        changed = send(user, method, path, {"colour": method, "price": "4"})
        assert changed.json()["result"]["colour"] == method and changed["X-Ignored-Fields"] == "price"


def test_columns_that_a_record_does_not_let_write_are_ignored(alice: User):
    table = make_table("device")
    make_column(table, "colour")
    make_column(table, "price", "integer")
    for operation in ("create", "read", "write"):
        make_rule(operation, table)
    saving.save_rule(Rule(operation="write", table=table, column_name="price", roles=[], condition="colour=red"))
    user = make_user("dora")
    record = send(user, "POST", "/api/now/table/device", {"colour": "red"}).json()["result"]
    path = f"/api/now/table/device/{record['sys_id']}"
    assert send(user, "PATCH", path, {"price": "1"}).json()["result"]["price"] == "1"
    changed = send(user, "PATCH", path, {"colour": "blue"})
    assert "X-Ignored-Fields" not in changed
    changed = send(user, "PATCH", path, {"colour": "green", "price": "2"})
    assert changed.status_code == 200 and changed["X-Ignored-Fields"] == "price"
    assert (changed.json()["result"]["colour"], changed.json()["result"]["price"]) == ("green", "1")


def test_passwords_are_written(alice: User):
    body = {"user_name": "zoe", "user_password": "a long password of zoe", "name": "Zoe"}
    created = send(alice, "POST", "/api/now/table/sys_user", body)
    assert created.status_code == 201, created.content
    headers = basic_auth("zoe", "a long password of zoe")
    assert Client().get("/api/me", headers=headers).json()["login"] == "zoe"


def test_references_and_display_values_are_written(alice: User, bob: User):
    task = make_task(alice, assigned_user={"link": "x", "value": bob.pk})
    assert task["assigned_user"]["value"] == bob.pk
    path = f"{TASKS}/{task['sys_id']}"
    changed = send(alice, "PATCH", path, {"assigned_user": "alice"}, sysparm_input_display_value="true")
    assert changed.json()["result"]["assigned_user"]["value"] == alice.pk
    emptied = send(alice, "PATCH", path, {"assigned_user": ""}).json()["result"]
    assert emptied["assigned_user"] == ""


def test_records_are_deleted(alice: User):
    path = f"{TASKS}/{make_task(alice)['sys_id']}"
    deleted = send(alice, "DELETE", path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert send(alice, "DELETE", path).json() == send(alice, "GET", path).json() == NO_RECORD
    assert send(alice, "GET", path).status_code == send(alice, "PATCH", path, {}).status_code == 404


def test_an_empty_body_creates_an_empty_record(alice: User):
    assert send(alice, "POST", TASKS).status_code == 201


def test_errors_have_the_form_of_the_platform(alice: User, bob: User):
    assert error_of(send(None, "GET", TASKS)) == (401, "User Not Authenticated")
    assert error_of(send(alice, "GET", "/api/now/table/nope")) == (400, "Invalid table nope")
    for method, path in (("POST", "nope"), ("PATCH", "nope/1"), ("DELETE", "nope/1")):
        assert error_of(send(alice, method, f"/api/now/table/{path}", {})) == (400, "Invalid table nope")
    assert error_of(send(alice, "GET", TASKS, sysparm_limit="x")) == (400, "Invalid sysparm_limit: x")
    assert error_of(send(alice, "POST", TASKS, [1]))[0] == 400
    assert error_of(send(alice, "POST", "/api/now/table/task/1", {}))[0] == 405
    response = send(bob, "GET", "/api/now/table/device")
    assert response.json() == send(bob, "GET", "/api/now/table/nope").json() | {
        "error": {"message": "Invalid table device", "detail": ""}
    }


def test_the_dialect_can_be_switched_off(alice: User):
    properties.put(SERVICENOW_ENABLED, "false")
    assert send(alice, "GET", TASKS).status_code == 404


def test_ids_of_the_platform_are_kept(alice: User):
    sent_id = "0123456789ABCDEF0123456789abcdef"
    assert make_task(alice, sys_id=sent_id, short_description="Printer")["sys_id"] == sent_id
    path = f"{TASKS}/{sent_id}"
    assert read(alice, path)["sys_id"] == sent_id.lower()
    taken = send(alice, "POST", TASKS, {"sys_id": sent_id.lower()})
    assert send(alice, "DELETE", path).status_code == 204
    deleted = send(alice, "POST", TASKS, {"sys_id": sent_id})
    assert taken.status_code == deleted.status_code == 409 and taken.content == deleted.content
    assert len(make_task(alice, sys_id="")["sys_id"]) == 18
    properties.put(SERVICENOW_LONG_IDS, "true")
    assert len(make_task(alice)["sys_id"]) == 32


def test_ids_of_deleted_records_are_not_revealed(alice: User):
    table = make_table("device")
    make_column(table, "price", "integer")
    make_rule("read", table)
    make_rule("create", table, "admin")
    path, deleted_id, free_id = "/api/now/table/device", "a" * 32, "b" * 32
    assert send(alice, "POST", path, {"sys_id": deleted_id}).status_code == 201
    assert send(alice, "DELETE", f"{path}/{deleted_id}").status_code == 204
    for user, price, status in ((make_user("dora"), "1", 403), (alice, "x", 422)):
        deleted, free = (send(user, "POST", path, {"sys_id": name, "price": price}) for name in (deleted_id, free_id))
        assert deleted.status_code == status and deleted.content == free.content


def test_secrets_are_masked(alice: User, bob: User):
    users = "/api/now/table/sys_user"
    (user,) = read(alice, users, query="user_name=bob")
    assert user["user_password"] == "********" and "password" not in user
    (user,) = read(alice, users, query="user_name=bob", fields="user_password", display_value="all")
    assert user == {"user_password": {"display_value": "********", "value": "********"}}
    assert {user["user_name"] for user in read(alice, users, query="user_passwordSTARTSWITHp")} == {"alice", "bob"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name=Bob Builder", {"bob"}),
        ("name=Bob", set()),
        ("name=Zoe", {"zoe"}),
        ("nameLIKEo", {"bob", "zoe"}),
        ("nameSTARTSWITHBu^ORnameISEMPTY", {"alice", "bob"}),
        ("nameISNOTEMPTY^ORDERBYname", {"bob", "zoe"}),
        ("name>A", {"alice", "bob", "zoe"}),
    ],
)
def test_conditions_on_names_of_users(alice: User, bob: User, query: str, expected: set[str]):
    bob.first_name, bob.last_name = "Bob", "Builder"
    bob.save()
    zoe = make_user("zoe")
    zoe.first_name = "Zoe"
    zoe.save()
    users = read(alice, "/api/now/table/sys_user", query=query)
    assert {user["user_name"] for user in users} == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("JOINsys_user.sys_id=task.assigned_user!", {"alice", "bob"}),
        ("JOINsys_user.sys_id=task.assigned_user!priority=1^active=true", {"alice"}),
        ("JOINsys_user.sys_id=task.assigned_user!priority=1^NQuser_name=zoe", {"alice", "zoe"}),
        ("user_name=bob^JOINuser.sys_id=task.assigned_user!nothing=1", {"bob"}),
        ("RLQUERYtask.assigned_user,>=2^ENDRLQUERY", {"alice"}),
        ("RLQUERYtask.assigned_user,=0^priority=1^ENDRLQUERY^user_name!=zoe", {"bob"}),
        ("RLQUERYtask.assigned_user,>=1,m2m^ENDRLQUERY^ORuser_name=zoe", {"alice", "bob", "zoe"}),
        ("RLQUERYtask.assigned_user,!=1^ENDRLQUERY", {"alice", "zoe"}),
        ("RLQUERYtask.assigned_user.company.name,>=1^ENDRLQUERY", {"alice", "bob", "zoe"}),
        ("RLQUERYtask.priority,>=1^ENDRLQUERY", {"alice", "bob", "zoe"}),
        ("JOINtask.sys_id=task.assigned_user!", {"alice", "bob", "zoe"}),
        ("RLQUERYtask.assigned_user,>=1^assigned_user.user_name=bob^RLQUERYtask.parent,>=1^ENDRLQUERY", {"bob"}),
    ],
)
def test_related_records(alice: User, bob: User, query: str, expected: set[str]):
    make_user("zoe")
    make_task(alice, assigned_user=alice.pk, priority="1")
    make_task(alice, assigned_user=alice.pk, priority="2")
    make_task(alice, assigned_user=bob.pk, priority="2")
    users = read(alice, "/api/now/table/sys_user", query=query)
    assert {user["user_name"] for user in users} == expected


def test_related_records_count_as_joins(alice: User):
    query = "^".join(["RLQUERYtask.assigned_user,>=0^ENDRLQUERY"] * 13)
    assert error_of(send(alice, "GET", "/api/now/table/sys_user", sysparm_query=query))[0] == 400


def test_names_that_lead_to_another_table_count_as_joins(alice: User):
    table = make_table("device")
    make_column(table, "above", "reference", reference_table=table)
    starts = ["above." * number for number in range(5)]
    names = [f"{start}{end}" for start in starts for end in ("sys_created_by.user_name", "sys_class_name")]
    for last, status in ((None, 400), (-2, 200)):
        response = send(alice, "GET", "/api/now/table/device", sysparm_fields=",".join(names[:last]))
        assert response.status_code == status


def test_too_much_is_refused(alice: User):
    assert error_of(send(alice, "GET", TASKS, sysparm_query="^".join(["priority=1"] * 201)))[0] == 400
    assert error_of(send(alice, "GET", TASKS, sysparm_query="numberIN" + ",".join("x" * 1_001)))[0] == 400
    assert error_of(send(alice, "GET", TASKS, sysparm_offset="1000001"))[0] == 400
    for response in (
        send(alice, "GET", TASKS, sysparm_query="x" * 20_000),
        send(alice, "GET", f"/api/now/table/{'x' * 20_000}"),
    ):
        assert response.status_code == 414 and response["Content-Type"] == "text/html"
        assert response.content.startswith(b"<html>")

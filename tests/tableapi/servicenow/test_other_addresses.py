"""Statistics, attachments and batches in the ServiceNow dialect."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import User
from tableapi.design import saving
from tableapi.models import Rule, Table
from tableapi.servicenow import attachments
from tests.accounts.callers import basic_auth
from tests.tableapi.designs import make_column, make_table
from tests.tableapi.servicenow.test_tables import NO_RECORD, error_of, make_task, send

pytestmark = pytest.mark.django_db
STATS = "/api/now/stats/task"
FILES = "/api/now/attachment"


@pytest.fixture
def tasks(alice: User) -> list[Any]:
    values = (("1", "1"), ("1", "2"), ("2", "3"))
    return [make_task(alice, state=state, priority=priority, reassignment_count=priority) for state, priority in values]


def statistics(user: User, **parameters: str) -> Any:
    response = send(user, "GET", STATS, **{f"sysparm_{name}": value for name, value in parameters.items()})
    assert response.status_code == 200, response.content
    return response.json()["result"]


def test_statistics_of_all_records(alice: User, tasks: list[Any]):
    assert statistics(alice, count="true") == {"stats": {"count": "3"}}
    assert statistics(alice, count="true", query="state=1^nothing=1") == {"stats": {"count": "2"}}
    assert statistics(alice) == {"stats": {}}
    latest = max(task["sys_created_on"] for task in tasks)
    assert statistics(alice, max_fields="sys_created_on,nothing") == {"stats": {"max": {"sys_created_on": latest}}}


def test_statistics_of_groups(alice: User, tasks: list[Any]):
    groups = statistics(alice, count="true", group_by="state,nothing", orderby="COUNT^DESC")
    assert groups == [
        {"stats": {"count": "2"}, "groupby_fields": [{"field": "state", "value": "1"}]},
        {"stats": {"count": "1"}, "groupby_fields": [{"field": "state", "value": "2"}]},
    ]
    (group,) = statistics(alice, count="true", group_by="state", having="count^state^>^1", display_value="all")
    assert group["groupby_fields"] == [{"field": "state", "value": "1", "display_value": "New"}]
    (group,) = statistics(alice, count="true", group_by="state", having="count^state^>^1", display_value="true")
    assert group["groupby_fields"] == [{"field": "state", "value": "New"}]


def test_statistics_of_numbers(alice: User):
    table = make_table("device")
    make_column(table, "colour")
    make_column(table, "price", "integer")
    for colour, price in (("red", "1"), ("red", "2"), ("blue", "10"), ("green", "0")):
        body = {"colour": colour, "price": price}
        assert send(alice, "POST", "/api/now/table/device", body).status_code == 201

    def sums(**parameters: str) -> list[tuple[str, str]]:
        sent = {"sum_fields": "price", "group_by": "colour", "having": "SUM^price^>^0", **parameters}
        response = send(alice, "GET", "/api/now/stats/device", **{f"sysparm_{name}": sent[name] for name in sent})
        assert response.status_code == 200, response.content
        groups = response.json()["result"]
        return [(group["groupby_fields"][0]["value"], group["stats"]["sum"]["price"]) for group in groups]

    assert sums(orderby="SUM^price^DESC") == [("blue", "10"), ("red", "3")]
    assert sums(orderby="sum^price") == [("red", "3"), ("blue", "10")]
    assert sums(orderby="colour^DESC", having="sum^price^>^0,count^price^<^2") == [("blue", "10")]
    response = send(alice, "GET", "/api/now/stats/device", sysparm_avg_fields="price", sysparm_max_fields="price")
    stats = response.json()["result"]["stats"]
    assert float(stats["avg"]["price"]) == 3.25 and stats["max"] == {"price": "10"}


@pytest.mark.parametrize("parameters", [{"having": "count>1"}, {"having": "sum^nothing^>^1"}, {"orderby": "nothing"}])
def test_invalid_parameters_of_statistics(alice: User, parameters: dict[str, str]):
    parameters = {f"sysparm_{name}": value for name, value in parameters.items()}
    response = send(alice, "GET", STATS, sysparm_count="true", sysparm_group_by="state", **parameters)
    assert error_of(response)[0] == 400


def upload(user: User, content: bytes, **parameters: str) -> Any:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return Client().generic(
        "POST", f"{FILES}/file?{query}", content, content_type="text/plain", headers=basic_auth(user.login)
    )


def test_attachments(alice: User, bob: User, tasks: list[Any]):
    sys_id = tasks[0]["sys_id"]
    created = upload(alice, b"Some text", table_name="task", table_sys_id=sys_id, file_name="notes.txt")
    assert created.status_code == 201, created.content
    entry = created.json()["result"]
    assert (entry["file_name"], entry["size_bytes"], entry["table_name"]) == ("notes.txt", "9", "task")
    path = f"{FILES}/{entry['sys_id']}"
    assert created["Location"] == f"http://testserver{path}"

    listed = send(alice, "GET", FILES, sysparm_query=f"table_name=task^table_sys_id={sys_id}")
    assert listed.json()["result"] == [entry] and listed["X-Total-Count"] == "1"
    assert send(alice, "GET", path).json()["result"] == entry
    content = send(alice, "GET", f"{path}/file")
    assert b"".join(content.streaming_content if content.streaming else [content.content]) == b"Some text"

    for hidden in (send(bob, "GET", path), send(bob, "GET", f"{path}/file"), send(bob, "DELETE", path)):
        assert (hidden.status_code, hidden.json()) == (404, NO_RECORD)
    assert send(bob, "GET", FILES, sysparm_query=f"table_name=task^table_sys_id={sys_id}").json()["result"] == []
    assert send(alice, "DELETE", path).status_code == 204
    assert send(alice, "GET", path).json() == NO_RECORD


@pytest.mark.parametrize("field", ["uploadFile", "file"])
def test_attachments_are_sent_in_a_form(alice: User, tasks: list[Any], field: str):
    form = {"table_name": "task", "table_sys_id": tasks[0]["sys_id"], field: SimpleUploadedFile("notes.txt", b"Text")}
    created = Client().post(f"{FILES}/upload", form, headers=basic_auth(alice.login))
    assert created.status_code == 201, created.content
    assert created.json()["result"]["file_name"] == "notes.txt"


def test_lists_of_attachments_end(alice: User, tasks: list[Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attachments, "MAX_RECORDS", 2)
    for task in tasks:
        assert upload(alice, b"x", table_name="task", table_sys_id=task["sys_id"], file_name="a").status_code == 201
    listed = send(alice, "GET", FILES)
    assert [entry["table_sys_id"] for entry in listed.json()["result"]] == [task["sys_id"] for task in tasks[:2]]
    assert listed["X-Total-Count"] == "2"


def test_hidden_attachments_do_not_shorten_lists(alice: User, bob: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attachments, "MAX_RECORDS", 2)
    monkeypatch.setattr(attachments, "ROWS_PER_STATEMENT", 1)
    task_table = Table.objects.get(name="task")
    saving.save_rule(Rule(operation="read", table=task_table, roles=[], condition="priority=1"))
    tasks = [make_task(alice, priority=priority) for priority in ("2", "2", "2", "1", "1")]
    for task in tasks:
        assert upload(alice, b"x", table_name="task", table_sys_id=task["sys_id"], file_name="a").status_code == 201
    for parameters in ({}, {"sysparm_query": "table_name=task"}):
        listed = send(bob, "GET", FILES, **parameters).json()["result"]
        assert [entry["table_sys_id"] for entry in listed] == [task["sys_id"] for task in tasks[3:]]


def test_attachments_need_a_record(alice: User):
    assert error_of(upload(alice, b"x", file_name="a.txt"))[0] == 400
    for file_name in ("a.txt", ""):  # the record is looked for before the file is read
        missing = upload(alice, b"x", file_name=file_name, table_name="task", table_sys_id="1")
        assert (missing.status_code, missing.json()) == (404, NO_RECORD)


def batch(user: User, *requests: Any, decoded: bool = True) -> Any:
    response = send(user, "POST", "/api/now/v1/batch", {"batch_request_id": 7, "rest_requests": list(requests)})
    assert response.status_code == 200, response.content
    body = response.json()
    assert body["batch_request_id"] == "7" and body["unserviced_requests"] == []
    return [
        (item["id"], item["status_code"], json.loads(base64.b64decode(item["body"]) or b"null") if decoded else None)
        for item in body["serviced_requests"]
    ]


def encoded(body: Any) -> str:
    return base64.b64encode(json.dumps(body).encode()).decode()


def test_each_request_of_a_batch_is_answered(alice: User):
    headers = [{"name": "Content-Type", "value": "application/json"}, {"name": "Authorization", "value": "Basic x"}]
    responses = batch(
        alice,
        {"id": "1", "method": "POST", "url": "/api/now/table/task", "headers": headers,
         "body": encoded({"short_description": "Printer"})},
        {"id": "2", "method": "GET", "url": "/api/now/table/task?sysparm_fields=short_description", "headers": []},
        {"id": "3", "method": "GET", "url": "/api/now/table/nope", "headers": []},
        {"id": "4", "method": "GET", "url": "/rest/v1/table/task", "headers": []},
        {"id": "5", "method": "POST", "url": "/api/now/table/task", "headers": headers, "body": "?"},
        {"id": "6", "method": "POST", "url": "/api/now/v1/batch", "headers": headers, "body": encoded({})},
        5,
        {"id": "8", "method": "GET", "url": "/api/now/attachment/1/file#x"},
        {"id": "9", "method": "POST", "url": "/api/now/attachment/file#x", "body": encoded({})},
    )  # fmt: skip
    assert [(name, status) for name, status, _ in responses] == [
        ("1", 201), ("2", 200), ("3", 400), ("4", 400), ("5", 400), ("6", 400), ("", 400),
        ("8", 400), ("9", 400),
    ]  # fmt: skip
    assert responses[1][2] == {"result": [{"short_description": "Printer"}]}
    assert responses[2][2]["error"]["message"] == "Invalid table nope"


def test_each_error_of_a_batch_has_the_form_of_the_platform(alice: User):
    path = "/api/now/table/task"
    responses = batch(
        alice,
        {"id": "1", "method": "BREW", "url": path},
        {"id": "2", "method": "POST", "url": path, "headers": [{"name": "Content-Type", "value": "text/plain"}]},
        {"id": "3", "method": "GET", "url": "/api/now/attachment/%66ile"},
    )
    assert [(status, body["status"]) for _, status, body in responses] == [
        (400, "failure"), (415, "failure"), (400, "failure"),
    ]  # fmt: skip


def test_queries_in_a_batch_can_be_long(alice: User):
    make_task(alice, short_description="Printer")
    make_task(alice, short_description="Screen")
    query = "^".join([*(["AAAA=BBBB"] * 2_300), "short_description=Screen"])
    url = f"/api/now/table/task?sysparm_fields=short_description&sysparm_query={quote(query)}"
    ((_, status, body),) = batch(alice, {"id": "1", "method": "GET", "url": url})
    assert (status, body) == (200, {"result": [{"short_description": "Screen"}]})
    ((_, status, _),) = batch(alice, {"id": "1", "method": "GET", "url": f"{url}{'x' * 65_536}"}, decoded=False)
    assert status == 414


def test_a_batch_has_a_limit(alice: User):
    item = {"id": "1", "method": "GET", "url": "/api/now/table/task"}
    assert error_of(send(alice, "POST", "/api/now/batch", {"rest_requests": [item] * 151}))[0] == 400
    assert error_of(send(alice, "POST", "/api/now/batch", {}))[0] == 400

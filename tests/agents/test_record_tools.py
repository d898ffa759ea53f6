"""The tools for tables and records: answers, pages, and errors from which an agent learns."""

import json
from typing import Any

import pytest

from accounts.models import Role, User
from agents.tools import records, tables
from tableapi.design import saving
from tableapi.models import Comment, Rule
from tableapi.models import Table as DesignedTable
from tests.agents.agent_calls import Agent, error_codes
from tests.tableapi.designs import insert_row, make_column, make_table

pytestmark = pytest.mark.django_db
SWITCH = "short_descriptionSTARTSWITHSwitch in room 114"


def names_of(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in entries]


def test_tables_are_those_of_the_caller(agent: Agent, requester: User):
    listed = {table["name"]: table["you_may"] for table in agent.list_tables()["tables"]}
    own, read_only = (
        {table["name"]: table["you_may"] for table in Agent(requester, mcp_writes=may_write).list_tables()["tables"]}
        for may_write in (True, False)
    )

    assert listed["task"] == ["read", "create", "update"] and own["task"] == ["read", "create"]
    assert read_only["task"] == ["read"]
    assert "sys_acl" not in listed


def test_tables_have_pages(alice: User, monkeypatch: pytest.MonkeyPatch):
    agent = Agent(alice)
    names = names_of(agent.list_tables()["tables"])
    monkeypatch.setattr(tables, "TABLES_PER_PAGE", 4)

    first = agent.list_tables()
    second = agent.list_tables(cursor=first["next_cursor"])
    assert names_of(first["tables"]) + names_of(second["tables"]) == names[:8]
    assert "next_cursor" not in agent.list_tables(cursor=names[-5])
    assert error_codes(agent.list_tables(cursor="nothing")) == ["invalid_parameter"]


def test_description_shows_what_the_caller_can_see_and_set(agent: Agent, requester: User):
    columns = {column["name"]: column for column in agent.describe_table(table="task")["columns"]}

    assert columns["state"]["choices"]["1"] == "New" and columns["caller"]["references"] == "user"
    assert columns["short_description"]["can_set"] == ["create", "update"] and "can_set" not in columns["number"]
    own, read_only = (
        {
            column["name"]: column
            for column in Agent(requester, mcp_writes=may_write).describe_table(table="task")["columns"]
        }
        for may_write in (True, False)
    )
    assert "work_notes" not in own and own["short_description"]["can_set"] == ["create"]
    assert "can_set" not in read_only["short_description"]
    assert error_codes(agent.describe_table(table="sys_acl")) == error_codes(agent.describe_table(table="nothing"))


def test_lists_are_short_by_default(agent: Agent):
    answer = agent.query_records(table="task", query="priority=1^ORDERBYnumber")

    assert [record.keys() for record in answer["records"]] == [{"sys_id", "number"}] * 2
    assert "next_cursor" not in answer


def test_asked_fields_have_value_and_display_value(agent: Agent):
    fields = ["state", "caller.login", "active", "due_date", "nothing"]
    answer = agent.query_records(table="task", query=SWITCH, fields=fields)

    (record,) = answer["records"]
    assert record["state"]["value"] == "2" and record["state"]["display_value"] != "2"
    assert record["caller.login"] == "demo.agent" and record["active"] is True
    assert answer["unknown_fields"] == ["nothing"]


def test_list_has_pages(agent: Agent):
    query = {"table": "task", "query": "ORDERBYnumber", "limit": 8}
    pages = [agent.query_records(**query)]
    while cursor := pages[-1].get("next_cursor"):
        pages.append(agent.query_records(**query, cursor=cursor))

    assert [len(page["records"]) for page in pages] == [8, 8, 4]
    assert len({record["sys_id"] for page in pages for record in page["records"]}) == 20
    other_list = agent.query_records(table="task", query="active=true", cursor=pages[0]["next_cursor"])
    assert error_codes(other_list) == ["invalid_parameter"]


def test_list_without_a_cursor_that_fits_has_page_numbers(alice: User):
    table = make_table("story")
    make_column(table, "body", "text")
    for number in range(3):
        insert_row("story", body=f"{'ä' * 4000}{number}")
    agent = Agent(alice)
    query = {"table": "story", "query": "ORDERBYbody", "fields": ["body"], "limit": 1}

    first = agent.query_records(**query)
    second = agent.query_records(**query, cursor=first["next_cursor"])
    assert first["next_cursor"] == "2" and second["next_cursor"] == "3"
    assert first["records"][0]["body"] == "ä" * records.MAX_LISTED_TEXT + "…"
    assert len(agent.read_record(table="story", sys_id=second["records"][0]["sys_id"])["record"]["body"]) == 4001


def test_record_is_read_in_full_and_without_empty_columns(agent: Agent, desk: User):
    sys_id = agent.query_records(table="task", query=SWITCH)["records"][0]["sys_id"]
    Comment.objects.create(table_key=DesignedTable.objects.get(name="task").pk, record_id=sys_id, text="On my way.")

    record = agent.read_record(table="task", sys_id=sys_id)["record"]
    assert record["description"] == "Twelve desks have no network." and "sys_version" in record
    assert record["caller"] == {"value": desk.pk, "display_value": "demo.agent"} and None not in record.values()
    answer = agent.read_record(table="task", sys_id=sys_id, fields=["number", "closed_at"], comments=True)
    assert answer["record"]["closed_at"] is None and answer["comments"][0]["text"] == "On my way."


def test_statistics_are_grouped_filtered_and_sorted(agent: Agent):
    answer = agent.record_statistics(
        table="task", query="active=true", group_by=["priority"], max=["opened_at"], order_by=["-count"], limit=1
    )

    (group,) = answer["groups"]
    assert group["count"] >= 5 and group["group"]["priority"].keys() == {"value", "display_value"}
    assert group["max"].keys() == {"opened_at"}
    assert agent.record_statistics(table="task")["groups"] == [{"count": 20}]
    assert agent.record_statistics(table="task", query="number=none", group_by=["state"]) == {"groups": []}
    assert error_codes(agent.record_statistics(table="task", having="count>x")) == ["invalid_parameter"]
    (error,) = agent.record_statistics(table="task", sum=["state"])["errors"]
    assert error["field"] == "sum" and "_fields" not in error["message"]


def test_requester_sees_only_own_records(requester: User):
    agent = Agent(requester)

    counts = agent.record_statistics(table="task", group_by=["caller.login"])["groups"]
    assert [group["group"]["caller.login"] for group in counts] == ["demo.user"]
    hidden = agent.read_record(table="task", sys_id=insert_row("task"))
    missing = agent.read_record(table="task", sys_id="0" * 18)
    assert hidden == missing and error_codes(hidden) == ["record_not_found"] and "query_records" in hidden["hint"]


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("shortISNOTHINGx", "unknown operator"),
        ("nothing=1", "nothing"),
        ("priority<=2", "cannot be used with choice columns"),
        ("active=maybe", "true or false"),
        ("work_notesLIKEa", "work_notes"),
        ("(active=true", "unclosed ("),
    ],
)
def test_wrong_query_teaches_operators_and_visible_columns(requester: User, query: str, part: str):
    answer = Agent(requester).query_records(table="task", query=query)

    (error,) = answer["errors"]
    assert error["field"] in ("query", "nothing", "work_notes") and part in error["message"]
    assert "sysparm" not in json.dumps(answer)
    assert "short_description" in answer["hint"] and "work_notes" not in answer["hint"].partition("Columns of")[2]


def test_hidden_column_is_like_a_missing_one(requester: User):
    agent = Agent(requester)
    hidden = agent.query_records(table="task", query="work_notes=1")
    missing = agent.query_records(table="task", query="workxnotes=1")

    assert json.dumps(hidden).replace("work_notes", "NAME") == json.dumps(missing).replace("workxnotes", "NAME")


def test_numbers_keep_their_digits(alice: User):
    table = make_table("invoice")
    make_column(table, "amount", "decimal")
    agent = Agent(alice, mcp_writes=True)
    insert_row("invoice", amount="123456789012345678.90")
    insert_row("invoice", amount="0.5")

    found = agent.query_records(table="invoice", query="ORDERBYamount", fields=["amount"])["records"]
    assert [record["amount"] for record in found] == [0.5, "123456789012345678.90"]


def test_table_that_can_only_be_created_in_shows_no_record(bob: User, alice: User):
    table = make_table("request")
    make_column(table, "title")
    saving.save_rule(Rule(table=table, operation=Rule.Operation.CREATE, roles=[Role.objects.get(name="itil").pk]))
    saving.save_rule(Rule(table=table, operation=Rule.Operation.CREATE))
    agent = Agent(bob, mcp_writes=True)

    answer = agent.create_record(table="request", values={"title": "a"})
    assert answer.keys() == {"sys_id"}
    assert agent.query_records(table="request") == {"records": []}


def test_values_are_compact() -> None:
    def compact(value: Any) -> Any:
        return records.read_json(json.dumps({"a": value}).encode())[0]["a"]

    assert compact({"value": "1", "display_value": "New"}) == {"value": "1", "display_value": "New"}
    assert compact({"value": "1", "display_value": None}) == "1"
    assert compact({"value": None, "display_value": None}) is None
    assert compact([{"value": "1", "display_value": "1"}]) == ["1"]
    assert compact({"value": {"b": 1}, "display_value": {"b": 1}}) == {"b": 1}

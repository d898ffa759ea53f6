"""Columns that an administrator adds to product tables: stored separately, used like any other column."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from system.models import Change, DeletionLogEntry
from system.records import custom_columns
from tableapi.database import catalogue_loader
from tableapi.models import Column, Table
from tableapi.query import read_plan
from tableapi.query.parsed_query import parse_query_text
from tableapi.read.context import Caller
from tableapi.setup import product_tables
from tableapi.sql import select
from tests.tableapi.designs import indexes_of, query_rows
from tests.tableapi.world import (
    api,
    column_values,
    data_of,
    error_of,
    errors_of,
    field,
    grant,
    open_table,
    record,
    rule,
    table,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def badge() -> Column:
    return field("user", "x_badge", is_unique=True)


def last_change(sys_id: str) -> tuple[Any, ...]:
    return query_rows(
        "SELECT operation, version, old_values, new_values FROM sys_change WHERE record_id = %s "
        "ORDER BY id DESC LIMIT 1",
        sys_id,
    )[0]


def test_administrator_adds_and_uses_a_column_through_the_api(alice: User, bob: User):
    user_table = Table.objects.get(name="user")
    body = {"table": user_table.pk, "name": "x_floor", "label": "Floor", "type": "integer", "is_indexed": True}
    assert api(alice).post("sys_db_column", body).status_code == 201

    assert data_of(api(alice).patch(f"user/{bob.pk}", {"x_floor": 3, "x_badge": "B7"}))[0]["x_floor"] == 3

    assert data_of(api(alice).get("user", query="x_floor>2^x_badge=b7", fields="login,x_floor")) == [
        {"login": "bob", "x_floor": 3}
    ]
    assert "bob" not in column_values(api(alice).get("user", query="x_floorISEMPTY"), "login")
    assert column_values(api(alice).get("user", query="ORDERBYDESCx_floor", fields="login"), "login").index("bob") > 0
    assert data_of(api(alice).get("/rest/v1/stats/user?sysparm_sum_fields=x_floor"))[0]["sum"] == {"x_floor": 3}


def test_paths_and_rules_of_a_designed_table_can_use_the_column(alice: User, bob: User, carl: User):
    table("task_x")
    field("task_x", "owner", target="user")
    rule("read", "task_x", condition="owner.x_badge=7")
    rule("read", "user", "x_badge")
    task, _ = record("task_x", owner=bob.pk), record("task_x", owner=carl.pk)
    api(alice).patch(f"user/{bob.pk}", {"x_badge": "7"})

    assert data_of(api(carl).get("task_x", fields="sys_id,owner.x_badge")) == [{"sys_id": task, "owner.x_badge": "7"}]


def test_change_is_logged_in_one_row_and_increments_the_version(alice: User, bob: User, badge: Column):
    version_before = bob.refreshed().sys_version
    api(alice).patch(f"user/{bob.pk}", {"x_badge": "B7", "phone": "1"})
    operation, logged_version, old_values, new_values = last_change(bob.pk)

    assert (operation, logged_version) == ("update", version_before + 1)
    assert '"B7"' in str(new_values).replace("'", '"') and badge.pk in new_values and badge.pk not in old_values
    (entry,) = data_of(api(alice).get(f"/rest/v1/table/user/{bob.pk}/history"))[:1]
    assert entry["fields"] == {"x_badge": {"old": None, "new": "B7"}, "phone": {"old": None, "new": "1"}}

    api(alice).patch(f"user/{bob.pk}", {"x_badge": "B7"})
    assert bob.refreshed().sys_version == version_before + 1, "an equal value changes nothing"


def test_writing_the_column_requires_a_rule_for_it(alice: User, bob: User, carl: User):
    for operation in ("read", "write", "create"):
        rule(operation, "user", roles=["desk"])
        rule(operation, "user", "*", roles=["desk"])
    grant(bob, "desk")
    assert api(bob).patch(f"user/{carl.pk}", {"phone": "1"}).status_code == 200
    assert error_of(api(bob).patch(f"user/{carl.pk}", {"x_badge": "1"})) == (403, "access_denied", "x_badge")
    assert error_of(api(bob).post("user", {"login": "new", "x_badge": "1"})) == (403, "access_denied", "x_badge")
    assert data_of(api(bob).put(f"user/{carl.pk}", {"login": "carl"}))[0]["x_badge"] is None

    rule("write", "user", "x_badge", roles=["desk"])
    assert data_of(api(bob).patch(f"user/{carl.pk}", {"x_badge": "1"}))[0]["x_badge"] == "1"
    assert error_of(api(bob).post("user", {"login": "new", "x_badge": "2"})) == (403, "access_denied", "x_badge")


def test_column_rule_hides_values(alice: User, bob: User):
    rule("read", "user", "x_badge", condition="login=bob")
    api(alice).patch(f"user/{alice.pk}", {"x_badge": "A"})
    api(alice).patch(f"user/{bob.pk}", {"x_badge": "B"})

    rows = data_of(api(bob).get("user", query="x_badgeISNOTEMPTY", fields="login,x_badge"))
    assert rows == [{"login": "bob", "x_badge": "B"}]


PATHS_THAT_USE_THE_COLUMN = (
    "/rest/v1/table/user?sysparm_fields=login,x_badge&sysparm_query=ORDERBYx_badge",
    "/rest/v1/table/user?sysparm_fields=login&sysparm_query=x_badge=17",
    "/rest/v1/table/user?sysparm_fields=login&sysparm_query=x_badgeNOT IN17^ORDERBYlogin",
    "/rest/v1/table/user?sysparm_count=exact&sysparm_limit=1&sysparm_query=x_badge>1",
    "/rest/v1/stats/user?sysparm_count=true&sysparm_group_by=x_badge",
    "/rest/v1/stats/user?sysparm_count_distinct_fields=x_badge",
    "/rest/v1/table/held?sysparm_fields=owner.x_badge,owner&sysparm_query=ORDERBYowner.x_badge",
    "/rest/v1/table/held?sysparm_query=owner.x_badge=17",
)


def test_hidden_values_change_no_response(alice: User, bob: User, carl: User):
    rule("read", "user", "x_badge", condition="login=bob")
    open_table(table("held"))
    field("held", "owner", target="user")
    for owner in (alice, bob, carl):
        record("held", owner=owner.pk)
        api(alice).patch(f"user/{owner.pk}", {"x_badge": owner.login})

    def responses() -> list[Any]:
        return [(response.status_code, response.content) for response in map(api(bob).get, PATHS_THAT_USE_THE_COLUMN)]

    responses_before = responses()
    assert [body for status, body in responses_before if status != 200] == [] and b"alice" in responses_before[0][1]
    query_rows("UPDATE records.\"user\" SET x_badge = '17' WHERE sys_id = %s", carl.pk)
    query_rows('UPDATE records."user" SET x_badge = NULL WHERE sys_id = %s', alice.pk)
    assert responses() == responses_before
    query_rows("UPDATE records.\"user\" SET x_badge = 'other' WHERE sys_id = %s", bob.pk)
    assert responses() != responses_before


def test_unique_column_refuses_duplicates_and_can_be_an_upsert_key(alice: User, bob: User, carl: User):
    api(alice).patch(f"user/{bob.pk}", {"x_badge": "B7"})
    assert error_of(api(alice).patch(f"user/{carl.pk}", {"x_badge": "b7"})) == (409, "duplicate", "x_badge")

    path = "/rest/v1/upsert/user?sysparm_key=x_badge"
    assert data_of(api(alice).post(path, {"x_badge": "b7", "phone": "9"}))[0]["sys_id"] == bob.pk
    response = api(alice).post(path, {"x_badge": "N1", "login": "new"})
    assert response.status_code == 201 and data_of(response)[0]["x_badge"] == "N1"


def test_values_are_deleted_and_restored_with_the_record(alice: User, bob: User):
    field("user", "x_boss", target="user")
    field("user", "x_skills", "list", target="company")
    field("user", "x_data", "json")
    company_id = data_of(api(alice).post("company", {"name": "One"}))[0]["sys_id"]
    values = {"x_badge": "B7", "x_boss": alice.pk, "x_skills": [company_id], "x_data": {"a": 1}}
    created_user = data_of(api(alice).post("user", {"login": "gone", **values}))[0]
    assert api(alice).delete(f"user/{created_user['sys_id']}").status_code == 200
    assert query_rows('SELECT count(*) FROM records."user" WHERE x_badge = %s', "B7") == [(0,)]
    assert api(alice).delete(f"company/{company_id}").status_code == 200

    entry = DeletionLogEntry.objects.get(record_id=created_user["sys_id"])
    assert entry.payload["x_badge"] == "B7"
    restoration = data_of(api(alice).post(f"/rest/v1/restore/{entry.pk}"))[0]

    assert restoration["lost_references"] == ["x_skills"]
    user = data_of(api(alice).get(f"user/{created_user['sys_id']}"))[0]
    assert (user["x_badge"], user["x_boss"]["value"], user["x_data"]) == ("B7", alice.pk, {"a": 1})


def test_records_that_are_deleted_together_keep_their_references_in_the_log(alice: User, bob: User, carl: User):
    boss = field("user", "x_boss", target="user")
    for user, boss_id in ((bob, carl.pk), (carl, bob.pk), (alice, bob.pk)):
        api(alice).patch(f"user/{user.pk}", {"x_boss": boss_id})

    User.objects.filter(login__in=("bob", "carl")).delete()

    payloads = {entry.record_id: entry.payload for entry in DeletionLogEntry.objects.filter(table="user")}
    assert {sys_id: payload["x_boss"] for sys_id, payload in payloads.items()} == {bob.pk: carl.pk, carl.pk: bob.pk}
    clears = Change.objects.filter(operation="clear", record_id__in=(alice.pk, bob.pk, carl.pk))
    assert [(change.record_id, change.old_values) for change in clears] == [(alice.pk, {boss.pk: bob.pk})]


def test_references_are_emptied_when_their_target_is_deleted(alice: User, bob: User):
    field("user", "x_firm", target="company")
    field("user", "x_firms", "list", target="company")
    company_id = data_of(api(alice).post("company", {"name": "One"}))[0]["sys_id"]
    api(alice).patch(f"user/{bob.pk}", {"x_firm": company_id, "x_firms": [company_id]})

    assert api(alice).delete(f"company/{company_id}").status_code == 200

    assert DeletionLogEntry.objects.get(record_id=company_id).emptied_references == 2
    user_after = data_of(api(alice).get(f"user/{bob.pk}"))[0]
    assert (user_after["x_firm"], user_after["x_firms"]) == (None, None)


@pytest.mark.parametrize(
    ("table_name", "values", "field_name"),
    [
        ("user", {"name": "floor"}, "name"),
        ("user", {"type": "secret"}, "type"),
        ("user", {"type": "wysiwyg"}, "type"),
        ("user", {"mandatory": True}, "mandatory"),
        ("user", {"default_value": "1"}, "default_value"),
        ("user", {"is_display": True}, "is_display"),
        ("sys_role", {}, "__all__"),
        ("oidc_setting", {}, "__all__"),
    ],
)
def test_unsupported_options_are_refused(table_name: str, values: dict[str, Any], field_name: str):
    options = {"name": "x_floor", "type": "string", **values}
    with pytest.raises(ValidationError) as exc_info:
        field(table_name, options.pop("name"), options.pop("type"), **options)
    assert field_name in exc_info.value.message_dict


def test_product_columns_cannot_be_changed(alice: User):
    login_column = Column.objects.get(table__name="user", name="login")
    assert errors_of(api(alice).patch(f"sys_db_column/{login_column.pk}", {"max_length": 5}))[0][0] == 422
    assert api(alice).delete(f"sys_db_column/{login_column.pk}").status_code in (409, 422)


def test_upgrade_keeps_the_column_and_deletion_drops_it(alice: User, badge: Column):
    product_tables.update_product_tables()
    assert Column.objects.filter(pk=badge.pk).exists() and f"U{badge.pk}" in indexes_of("user")

    assert api(alice).delete(f"sys_db_column/{badge.pk}").status_code == 200
    assert f"U{badge.pk}" not in indexes_of("user")
    catalogue_loader.reload_if_changed()  # an error would abort the transaction of the test
    assert error_of(api(alice).get("user", query="x_badge=1"))[:2] == (400, "unknown_field")


def test_column_can_have_choices(alice: User, bob: User):
    field("user", "x_shift", choices={"d": "Day", "n": "Night"})
    assert error_of(api(alice).patch(f"user/{bob.pk}", {"x_shift": "x"}))[0] == 422
    updated_user = data_of(api(alice).patch(f"user/{bob.pk}", {"x_shift": "n"}, display_value="true"))[0]
    assert updated_user["x_shift"] == "Night"


def test_bulk_changes_can_filter_by_the_column(alice: User, bob: User, carl: User):
    for user, value in ((bob, "1"), (carl, "2")):
        api(alice).patch(f"user/{user.pk}", {"x_badge": value})
    body = {"sysparm_query": "x_badgeISNOTEMPTY", "expected": 2, "values": {"phone": "5"}}
    assert [row["status"] for row in data_of(api(alice).patch("/rest/v1/bulk/user", body))] == [200, 200]


def test_sign_in_stores_valid_values_and_reports_the_others(bob: User, carl: User, badge: Column):
    field("user", "x_floor", "integer")
    field("user", "x_boss", target="user")
    custom_columns.save(carl, {"x_badge": "taken"})
    version_before = bob.refreshed().sys_version

    messages = custom_columns.save(
        bob, {"x_badge": "TAKEN", "x_floor": "3", "x_boss": "nobody", "x_unknown": 1, "phone": "1"}
    )

    assert [message.split()[0] for message in messages] == ["x_boss", "x_badge"]
    assert query_rows('SELECT x_floor, x_badge FROM records."user" WHERE sys_id = %s', bob.pk) == [(3, None)]
    assert bob.refreshed().sys_version == version_before + 1 and bob.refreshed().phone == ""
    assert custom_columns.save(bob, {"x_floor": 3}) == [] and bob.refreshed().sys_version == version_before + 1


def test_sign_in_with_an_empty_list_or_text_clears_the_value(bob: User):
    field("user", "x_firms", "list", target="company")
    custom_columns.save(bob, {"x_badge": "1"})
    assert custom_columns.save(bob, {"x_firms": "", "x_badge": ""}) == []
    assert custom_columns.save(bob, {"x_firms": []}) == []
    assert query_rows('SELECT x_badge, x_firms FROM records."user" WHERE sys_id = %s', bob.pk) == [(None, None)]


def test_condition_on_the_column_needs_no_outer_join(alice: User, badge: Column):
    catalogue = catalogue_loader.reload_if_changed()
    for query in ("x_badge=7", "x_badgeIN7,8", "x_badge>7^phone=1"):
        plan = read_plan.plan_read(
            Caller.of(alice).context(catalogue).view,
            catalogue.tables["user"],
            query=parse_query_text(query).shape.query,
            fields=("login",),
        )
        statement = select.count_statement(plan)
        values = statement.values(Caller.of(alice).context(catalogue).inputs(parse_query_text(query).conditions))
        query_rows(f"PREPARE counted AS {statement.sql}")
        query_rows("SET LOCAL plan_cache_mode = force_generic_plan")
        literals = ", ".join("NULL" for _ in values)
        query_plan = "\n".join(row[0] for row in query_rows(f"EXPLAIN EXECUTE counted ({literals})"))
        query_rows("DEALLOCATE counted")
        assert "Left Join" not in query_plan, query_plan


def test_change_beyond_the_logged_part_of_a_value_is_in_the_history(alice: User, bob: User):
    field("user", "x_note", "text")
    for last_character in ("1", "2"):
        api(alice).patch(f"user/{bob.pk}", {"x_note": "é" * 1_500 + last_character})
    (entry,) = data_of(api(alice).get(f"user/{bob.pk}/history"))[:1]
    assert entry["fields"]["x_note"]["is_cut"] is True and set(entry["fields"]) == {"x_note"}


def test_other_tables_do_not_get_the_column(alice: User):
    open_table(table("plain"))
    assert data_of(api(alice).post("plain", {}))[0].keys().isdisjoint({"x_badge"})

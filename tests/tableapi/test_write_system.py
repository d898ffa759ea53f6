"""Writes to the product's own tables: the rules of their models apply, and refusals are 409 or 422."""

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.test import Client

from accounts.models import AccessKey, Company, Group, Role, Session, User, UserGroup, UserRole
from system import properties
from system.models import DeletionLogEntry, Property
from tableapi.models import Column, Rule, Table
from tests.support.users import PASSWORD
from tests.tableapi.designs import column_types_of, query_rows
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
    role,
    rule,
    table,
)

pytestmark = pytest.mark.django_db

ADMIN_ONLY_TABLES = (
    "sys_role", "sys_user_role", "sys_acl", "sys_property", "sys_db_table", "sys_db_column", "sys_choice",
    "sys_ui_view", "sys_ui_view_column",
)  # fmt: skip


def record_path(record: Any) -> str:
    return f"{record._meta.db_table}/{record.pk}"


class TestUserRecords:
    def test_user_can_be_created_changed_and_deleted(self, alice: User):
        acme = Company.objects.create(name="Acme")
        body = {"login": "dora", "password": "a long one 42", "email": "d@example.com", "company": acme.pk}
        response = api(alice).post("user", body)
        assert response.status_code == 201
        (record,) = data_of(response)
        assert (record["login"], record["active"], record["phone"]) == ("dora", True, None)
        assert record["company"]["value"] == acme.pk
        assert record["sys_created_by"]["value"] == alice.pk
        assert "password" not in record and b"a long one" not in response.content
        dora = User.objects.get(login="dora")
        assert authenticate(None, username="dora", password="a long one 42") == dora

        (record_after,) = data_of(api(alice).patch(f"user/{dora.pk}", {"first_name": "Dora"}))
        assert (record_after["first_name"], record_after["sys_version"]) == ("Dora", 1)
        assert dora.history.count() == 2
        assert api(alice).delete(f"user/{dora.pk}").status_code == 200
        assert not User.objects.filter(login="dora").exists()

    def test_user_round_trips(self, alice: User, bob: User):
        for send in (api(alice).put, api(alice).patch):
            (stored_record,) = data_of(api(alice).get(f"user/{bob.pk}"))
            assert data_of(send(f"user/{bob.pk}", stored_record)) == [stored_record]
        assert bob.refreshed().has_usable_password(), "an omitted password is kept"

    def test_put_clears_omitted_columns(self, alice: User, bob: User):
        (record_after,) = data_of(api(alice).put(f"user/{bob.pk}", {"login": "bob", "active": False}))
        assert (record_after["email"], record_after["active"]) == (None, False)
        assert data_of(api(alice).put(f"user/{bob.pk}", {"login": "bob"}))[0]["active"] is True
        assert error_of(api(alice).put(f"user/{bob.pk}", {"email": "x@example.com"})) == (422, "mandatory", "login")

    def test_used_login_is_a_conflict(self, alice: User, bob: User):  # B17
        assert error_of(api(alice).post("user", {"login": "bob"})) == (409, "duplicate", "login")
        assert error_of(api(alice).patch(record_path(bob), {"login": "alice"})) == (409, "duplicate", "login")
        assert api(alice).post("user", {"login": "Bob"}).status_code == 201, "logins are case-sensitive"

    @pytest.mark.parametrize(
        ("body", "expected_error"),
        [
            ({}, (422, "mandatory", "login")),
            ({"login": ""}, (422, "mandatory", "login")),
            ({"login": "a:b"}, (422, "invalid_value", "login")),
            ({"login": "x" * 151}, (422, "invalid_value", "login")),
            ({"login": "d", "email": "no address"}, (422, "invalid_value", "email")),
            ({"login": "d", "active": "perhaps"}, (422, "invalid_value", "active")),
            ({"login": "d", "active": None}, (422, "invalid_value", "active")),
            ({"login": "d", "company": "1"}, (422, "invalid_value", "company")),
            ({"login": "d", "password": "short"}, (422, "invalid_value", "password")),
            ({"login": "d", "password": 12345678901}, (422, "invalid_value", "password")),
            ({"login": "d", "password": {"a": 1}}, (422, "invalid_value", "password")),
            ({"login": "d", "password": ["a long one 42"]}, (422, "invalid_value", "password")),
            ({"login": "d", "password": ""}, (422, "invalid_value", "password")),
            ({"login": "d", "is_superuser": True}, (400, "unknown_field", "is_superuser")),
            ({"login": "d", "is_staff": "true"}, (400, "unknown_field", "is_staff")),
        ],
        ids=str,
    )
    def test_model_errors_are_reported(self, alice: User, body: Any, expected_error: Any):  # B27
        count_before = User.objects.count()
        response = api(alice).post("user", body)
        assert error_of(response) == expected_error, response.content
        assert User.objects.count() == count_before

    def test_new_password_ends_sessions(self, alice: User, bob: User):
        from tests.accounts.callers import bearer_auth, request_api_key

        browser = Client()
        browser.force_login(bob)
        api_key = request_api_key("bob").json()["data"]["auth_key"]
        assert (
            browser.get("/api/me").status_code
            == Client().get("/api/me", headers=bearer_auth(api_key)).status_code
            == 200
        )
        assert api(alice).patch(record_path(bob), {"password": "another one 42"}).status_code == 200
        assert browser.get("/api/me").status_code == 401
        assert Client().get("/api/me", headers=bearer_auth(api_key)).status_code == 401
        assert api(bob).get("user").status_code == 401
        assert authenticate(None, username="bob", password="another one 42") == bob

    def test_null_removes_the_password(self, alice: User, bob: User):
        assert api(alice).patch(record_path(bob), {"password": None}).status_code == 200
        assert not bob.refreshed().has_usable_password()
        (record,) = data_of(api(alice).post("user", {"login": "dora"}))
        assert not User.objects.get(pk=record["sys_id"]).has_usable_password()

    def test_deactivation_stops_the_next_request(self, alice: User, bob: User):  # B64
        caller = api(bob, credential="key")
        assert caller.get("user").status_code == 200
        data_of(api(alice).patch(record_path(bob), {"active": False}))
        assert caller.get("user").status_code == 401

    def test_rules_can_grant_writes(self, alice: User, bob: User):
        rule("write", "user", condition="sys_id=javascript:gs.getUserID()")
        rule("write", "user", "*", roles=["admin"])
        rule("write", "user", "first_name")
        assert data_of(api(bob).patch(record_path(bob), {"first_name": "Bob"}))[0]["first_name"] == "Bob"
        assert error_of(api(bob).patch(record_path(bob), {"active": False})) == (403, "access_denied", "active")
        status, _, name = error_of(api(bob).patch(record_path(bob), {"password": "a long one 42"}))
        assert status in (400, 403) and name == "password"
        assert bob.refreshed().check_password(PASSWORD)


class TestLastAdministrator:
    def test_last_administrator_cannot_be_removed(self, alice: User):
        admin_grant = UserRole.objects.get(user=alice)
        admin_role = Role.objects.get(name="admin")
        for response in (
            api(alice).patch(record_path(alice), {"active": False}), api(alice).delete(record_path(alice)),
            api(alice).delete(record_path(admin_grant)),
            api(alice).patch(record_path(admin_grant), {"role": role("x").pk}),
        ):  # fmt: skip
            assert error_of(response) == (409, "last_admin", None)
        assert error_of(api(alice).delete(record_path(admin_role))) == (409, "conflict", None)
        assert api(alice).get("sys_acl").status_code == 200 and column_values(api(alice).get("sys_user_role"), "sys_id")
        assert alice.refreshed().active and not DeletionLogEntry.objects.exists()

    def test_administrator_can_be_removed_if_there_is_another(self, alice: User, bob: User):
        data_of(api(alice).post("sys_user_role", {"user": bob.pk, "role": Role.objects.get(name="admin").pk}))
        assert api(alice).delete(record_path(alice)).status_code == 200
        assert api(bob).get("sys_acl").status_code == 200


class TestRoles:
    def test_grants_apply_immediately(self, alice: User, bob: User):
        editor_role = data_of(api(alice).post("sys_role", {"name": "editor"}))[0]
        assert editor_role["contains"] is None and editor_role["grantable_by_sign_in"] is True
        rule("read", table("device"), roles=["editor"])
        assert api(bob).get("device").status_code == 404
        (user_role,) = data_of(api(alice).post("sys_user_role", {"user": bob.pk, "role": editor_role["sys_id"]}))
        assert user_role["source"] == "manual"
        assert api(bob).get("device").status_code == 200
        assert error_of(api(alice).post("sys_user_role", {"user": bob.pk, "role": editor_role["sys_id"]}))[:2] == (
            409,
            "duplicate",
        )
        assert error_of(api(alice).post("sys_user_role", {"user": bob.pk}))[:2] == (422, "mandatory")
        assert error_of(api(alice).post("sys_user_role", {"user": bob.pk, "role": "1"})) == (
            422,
            "invalid_value",
            "role",
        )

    def test_role_round_trips_with_put(self, alice: User):
        new_role = role("editor", contains=["reader"])
        (stored_record,) = data_of(api(alice).get(record_path(new_role)))
        assert data_of(api(alice).put(record_path(new_role), stored_record)) == [stored_record]
        (record_after,) = data_of(api(alice).put(record_path(new_role), {"name": "editor"}))
        assert record_after["contains"] is None and new_role.refreshed().contains == []
        (record_after,) = data_of(api(alice).patch(record_path(new_role), {"contains": [role("reader").pk]}))
        assert [contained_role["value"] for contained_role in record_after["contains"]] == [role("reader").pk]
        assert new_role.refreshed().contains == [role("reader").pk]

    def test_cycles_and_shipped_roles_are_refused(self, alice: User):
        outer_role, inner_role = role("outer", contains=["inner"]), role("inner")
        for role_id in (outer_role.pk, inner_role.pk, "1"):
            response = api(alice).patch(record_path(inner_role), {"contains": [role_id]})
            assert error_of(response) == (422, "invalid_value", "contains")
        admin_role = Role.objects.get(name="admin")
        assert error_of(api(alice).patch(record_path(admin_role), {"name": "root"})) == (422, "invalid_value", "name")
        assert error_of(api(alice).delete(record_path(Role.objects.get(name="itil")))) == (409, "conflict", None)
        assert error_of(api(alice).post("sys_role", {"name": "inner"})) == (409, "duplicate", "name")


class TestProperties:
    def test_value_is_validated_and_applies_immediately(self, alice: User):
        path = record_path(Property.objects.get(name="svc.login.username.sensitivity.enabled"))
        assert data_of(api(alice).patch(path, {"value": "false"}))[0]["value"] == "false"
        assert properties.get(properties.CASE_SENSITIVE) is False
        assert error_of(api(alice).patch(path, {"value": "perhaps"})) == (422, "invalid_value", "value")
        assert error_of(api(alice).patch(path, {"name": "x"})) == (400, "read_only", "name")
        (stored_record,) = data_of(api(alice).get(path))
        assert data_of(api(alice).put(path, stored_record)) == [stored_record]

    def test_unknown_properties_cannot_be_created(self, alice: User):
        assert error_of(api(alice).post("sys_property", {"name": "own"})) == (400, "read_only", "name")
        assert error_of(api(alice).post("sys_property", {"value": "own"})) == (422, "invalid_value", "name")


class TestDesign:
    def test_table_can_be_created_used_and_dropped(self, alice: User, bob: User):
        admin = api(alice)
        (device,) = data_of(admin.post("sys_db_table", {"name": "device", "label": "Device", "number_prefix": "DEV"}))
        body = {"table": device["sys_id"], "label": "x"}
        data_of(admin.post("sys_db_column", body | {"name": "name", "type": "string", "is_unique": True}))
        (state_column,) = data_of(admin.post("sys_db_column", body | {"name": "state", "type": "choice"}))
        data_of(admin.post("sys_choice", {"column": state_column["sys_id"], "value": "1", "label": "New"}))
        data_of(
            admin.post(
                "sys_db_column", body | {"name": "owner", "type": "reference", "reference_table": table_id("user")}
            )
        )
        for operation in ("create", "read", "write", "delete"):
            data_of(admin.post("sys_acl", {"operation": operation, "table": device["sys_id"]}))
        assert column_types_of("device")["owner"] == "character varying(32)"

        (record,) = data_of(api(bob).post("device", {"name": "Lamp", "state": "1", "owner": bob.pk}))
        assert (record["number"], record["state"]) == ("DEV0000001", "1")
        assert error_of(admin.delete(f"sys_db_table/{device['sys_id']}")) == (409, "conflict", None), "it has a record"
        assert api(bob).delete(f"device/{record['sys_id']}").status_code == 200
        assert admin.delete(f"sys_db_column/{state_column['sys_id']}").status_code == 200
        assert "state" not in column_types_of("device")
        assert error_of(api(bob).post("device", {"state": "1"})) == (400, "unknown_field", "state")
        assert admin.delete(f"sys_db_table/{device['sys_id']}").status_code == 200
        assert column_types_of("device") == {} and api(bob).post("device", {}).status_code == 404

    def test_views_and_rules_apply_immediately(self, alice: User, bob: User):
        device = table("device")
        field(device, "name")
        rule("read", device)
        record("device", name="Lamp")
        (short_view,) = data_of(api(alice).post("sys_ui_view", {"table": device.pk, "name": "short"}))
        data_of(api(alice).post("sys_ui_view_column", {"view": short_view["sys_id"], "path": "name", "position": 1}))
        assert data_of(api(bob).get("device", view="short")) == [{"name": "Lamp"}]
        (denying_rule,) = data_of(
            api(alice).post("sys_acl", {"operation": "read", "table": device.pk, "condition": "name!=Lamp"})
        )
        assert len(data_of(api(bob).get("device"))) == 1, "one matching rule is enough"
        Rule.objects.get(table=device, condition="").delete()
        assert data_of(api(bob).get("device")) == []
        assert api(alice).delete(f"sys_acl/{denying_rule['sys_id']}").status_code == 200
        assert api(bob).get("device").status_code == 404

    def test_rule_can_be_changed(self, alice: User, bob: User):
        """This includes a rule for any table, which refers to no table."""
        device, general_rule = table("device"), rule("create", None)
        read_rule = rule("read", device)
        assert api(bob).get("device").status_code == 200
        for rule_record in (read_rule, general_rule):
            (stored_record,) = data_of(api(alice).get(record_path(rule_record)))
            assert data_of(api(alice).put(record_path(rule_record), stored_record)) == [stored_record]
            (record_after,) = data_of(api(alice).patch(record_path(rule_record), {"active": False}))
            assert (record_after["active"], record_after["sys_version"]) == (False, 1)
        assert api(bob).get("device").status_code == 404

    @pytest.mark.parametrize(
        ("table_name", "body"),
        [
            ("sys_db_table", {"name": "Bad Name", "label": "x"}),
            ("sys_db_table", {"name": "sys_own", "label": "x"}),
            ("sys_db_table", {"label": "x"}),
            ("sys_db_table", {"name": "a", "label": "x", "parent": "user"}),
            ("sys_db_table", {"name": "a", "label": "x", "number_prefix": "lower"}),
            ("sys_db_table", {"name": "device", "label": "x"}),
            ("sys_db_column", {"table": "device", "name": "name", "label": "x", "type": "string"}),
            ("sys_db_column", {"table": "device", "name": "sys_id", "label": "x", "type": "string"}),
            ("sys_db_column", {"table": "device", "name": "b", "label": "x", "type": "no such"}),
            ("sys_db_column", {"table": "device", "name": "b", "label": "x", "type": "reference"}),
            ("sys_db_column", {"table": "device", "name": "b", "label": "x", "type": "json", "is_unique": True}),
            ("sys_db_column", {"table": "device", "name": "b", "label": "x", "type": "string", "max_length": -1}),
            ("sys_db_column", {"table": "device", "name": "b", "label": "x", "type": "string", "max_length": 2**31}),
            ("sys_db_column", {"table": "device", "name": "b", "label": "x", "type": "integer", "default_value": "x"}),
            ("sys_db_column", {"table": "user", "name": "b", "label": "x", "type": "string"}),
            ("sys_choice", {"column": "device.name", "value": "1", "label": "x"}),
            ("sys_choice", {"column": "device.name", "value": "1", "label": "x", "position": 2**40}),
            ("sys_acl", {"operation": "none", "table": "device"}),
            ("sys_acl", {"table": "device"}),
            ("sys_acl", {"operation": "read", "table": "device", "condition": "nothing=1"}),
            ("sys_acl", {"operation": "read", "table": "device", "condition": "name^^=("}),
            ("sys_acl", {"operation": "read", "table": "device", "roles": ["1"]}),
            ("sys_acl", {"operation": "read", "table": "device", "column_name": "nothing"}),
            ("sys_ui_view_column", {"view": "1", "path": "name"}),
            ("sys_ui_view", {"name": "x"}),
        ],
        ids=str,
    )
    def test_refused_design_leaves_nothing(self, alice: User, table_name: str, body: Any):
        field(table("device"), "name")
        for key, value in body.items():
            if key in ("table", "parent"):
                body = body | {key: table_id(value)}
            elif key == "column":
                body = body | {key: Column.objects.get(table__name="device", name="name").pk}
        counts_before = (Table.objects.count(), Column.objects.count(), Rule.objects.count())
        for status, code, _ in errors_of(api(alice).post(table_name, body)):
            assert (status, code) in ((422, "invalid_value"), (422, "mandatory"), (409, "duplicate"))
        assert (Table.objects.count(), Column.objects.count(), Rule.objects.count()) == counts_before

    def test_fixed_attributes_cannot_be_changed(self, alice: User):
        device = table("device")
        name_column = field(device, "name")
        for path, body in (
            (record_path(device), {"name": "gadget"}),
            (record_path(device), {"parent": table("other").pk}),
            (record_path(name_column), {"type": "integer"}),
            (record_path(name_column), {"name": "title"}),
            (f"sys_db_table/{table_id('user')}", {"number_prefix": "USR"}),
            (f"sys_db_column/{Column.objects.get(table__name='user', name='email').pk}", {"mandatory": True}),
        ):
            field_name = next(iter(body)) if body.keys() & {"name", "parent", "type"} else None
            assert error_of(api(alice).patch(path, body)) == (422, "invalid_value", field_name), body
        for path in (f"sys_db_table/{table_id('user')}",
                     f"sys_db_column/{Column.objects.get(table__name='user', name='email').pk}"):  # fmt: skip
            assert error_of(api(alice).delete(path)) == (409, "conflict", None)
        for design_record in (device, name_column, Table.objects.get(name="user")):
            (stored_record,) = data_of(api(alice).get(record_path(design_record)))
            assert data_of(api(alice).put(record_path(design_record), stored_record)) == [stored_record]

    def test_error_names_a_column_that_was_not_sent(self, alice: User):
        body = {"table": table("device").pk, "name": "it", "label": "x"}
        for type_name in ("reference", "list"):
            response = api(alice).post("sys_db_column", body | {"type": type_name})
            assert error_of(response) == (422, "invalid_value", "reference_table")

    @pytest.mark.parametrize(("length", "type_name"), [(-5, "string"), (0, "string"), (0, "text"), (5, "integer")])
    def test_invalid_length_is_refused_with_one_message(self, alice: User, length: int, type_name: str):
        body = {"table": table("device").pk, "name": "it", "label": "x"}
        response = api(alice).post("sys_db_column", body | {"type": type_name, "max_length": length})
        assert error_of(response) == (422, "invalid_value", "max_length")
        assert response.json()["errors"][0]["message"] == "Only text can have a maximum length. It must be at least 1."

    def test_last_sent_column_of_a_unique_set_is_named(self, alice: User, bob: User):
        state_column = field(table("device"), "state", choices={"1": "New", "2": "Old"})
        expected_error = (409, "duplicate", "value")
        response = api(alice).post("sys_choice", {"column": state_column.pk, "value": "1", "label": "x"})
        assert error_of(response) == expected_error
        second_choice = state_column.choices.get(value="2")
        assert error_of(api(alice).patch(record_path(second_choice), {"value": "1"})) == expected_error
        body = {"user": bob.pk, "role": role("reader").pk}
        data_of(api(alice).post("sys_user_role", body))
        assert error_of(api(alice).post("sys_user_role", body)) == (409, "duplicate", "role")

    def test_unknown_column_is_not_named(self, bob: User):
        for operation in ("create", "read"):
            rule(operation, "user")
        Rule.objects.filter(table__name="user", column_name="login").delete()
        rule("read", "user", "login", roles=["auditor"])
        assert error_of(api(bob).post("user", {})) == (422, "mandatory", None)

    def test_choice_with_a_comma_is_refused(self, alice: User):
        state_column = field(table("device"), "state", choices={"1": "New", "2": "Old"})
        body = {"column": state_column.pk, "value": "a,b", "label": "x"}
        assert error_of(api(alice).post("sys_choice", body)) == (422, "invalid_value", "value")
        first_choice, second_choice = state_column.choices.all()
        assert error_of(api(alice).patch(record_path(first_choice), {"value": "1,2"})) == (
            422,
            "invalid_value",
            "value",
        )
        query_rows("UPDATE sys_choice SET value = 'a,b' WHERE sys_id = %s", second_choice.pk)
        assert data_of(api(alice).patch(record_path(second_choice), {"label": "x"}))[0]["value"] == "a,b", (
            "the stored value is unchanged"
        )
        assert (
            data_of(api(alice).patch(record_path(second_choice), {"value": "2", "label": "A, b"}))[0]["label"] == "A, b"
        )

    def test_blocked_deletion_is_a_conflict(self, alice: User):
        ticket = table("ticket", number_prefix="TCK")
        table("incident", parent="ticket")
        state_column = field(ticket, "state", choices={"1": "New"})
        assert api(alice).patch(record_path(state_column), {"default_value": "1"}).status_code == 200
        for kept_record, message in (
            (ticket, "the parent of other tables"),
            (Column.objects.get(table=ticket, name="number"), "holds the record numbers"),
            (state_column.choices.get(), "is the default value of"),
            (Property.objects.first(), "Clear the value instead"),
        ):
            response = api(alice).delete(record_path(kept_record))
            assert error_of(response) == (409, "conflict", None) and message in response.json()["errors"][0]["message"]

    def test_put_of_a_column_keeps_its_name_type_and_table(self, alice: User):
        name_column = field(table("device"), "name", "text")
        (stored_record,) = data_of(api(alice).get(record_path(name_column)))
        (record_after,) = data_of(
            api(alice).put(record_path(name_column), stored_record | {"label": "Title", "mandatory": True})
        )
        assert (record_after["label"], record_after["mandatory"], record_after["type"]) == ("Title", True, "text")
        assert (422, "mandatory", "name") in errors_of(api(alice).put(record_path(name_column), {"label": "x"}))

    def test_duplicate_values_prevent_unique(self, alice: User):
        name_column = field(table("device"), "name")
        for _ in range(2):
            record("device", name="same")
        response = api(alice).patch(record_path(name_column), {"is_unique": True})
        assert error_of(response) == (422, "invalid_value", "is_unique")
        assert not name_column.refreshed().is_unique


def table_id(name: str) -> str:
    return str(Table.objects.get(name=name).pk)


class TestPermissions:
    @pytest.mark.parametrize("table_name", ADMIN_ONLY_TABLES)
    def test_rules_cannot_grant_writes_to_permission_tables(self, table_name: str, bob: User, sonja: User):  # B27
        grant(bob, "itil")
        for operation in ("create", "read", "write", "delete"):
            rule(operation, table_name)
        stored_rows = query_rows(f"SELECT sys_id FROM {table_name} LIMIT 1")
        for user in (bob, sonja):
            status, code, _ = error_of(api(user).post(table_name, {}))
            assert (status, code) == (403, "access_denied"), table_name
            for (sys_id,) in stored_rows:
                for send in (api(user).patch, api(user).put):
                    assert error_of(send(f"{table_name}/{sys_id}", {}))[:2] == (403, "access_denied")
                assert error_of(api(user).delete(f"{table_name}/{sys_id}"))[:2] == (403, "access_denied")

    @pytest.mark.parametrize("role_name", ["admin", "collection_admin", "auditor", "holder of auditor"])
    def test_rules_cannot_grant_writes_to_accounts_with_more_rights(self, role_name: str, bob: User):  # B27
        Role.objects.create(name="auditor", grantable_by_sign_in=False)
        role("holder of auditor", contains=["auditor"])
        privileged_user = grant(User.objects.create_user("boss", PASSWORD), role_name)
        plain_user, path = User.objects.create_user("plain", PASSWORD), record_path(privileged_user)
        for operation in ("create", "read", "write", "delete"):
            rule(operation, "user")
        for operation in ("read", "write"):
            rule(operation, "user", "*")
        for body in ({"login": "mine"}, {"email": "m@example.com"}, {"password": "a long one 42"}, {"active": False}):
            assert error_of(api(bob).patch(path, body))[:2] == (403, "access_denied"), body
            data_of(api(bob).patch(record_path(plain_user), body | {"active": True}))
        assert error_of(api(bob).put(path, {"login": "mine"}))[:2] == (403, "access_denied")
        assert error_of(api(bob).delete(path))[:2] == (403, "access_denied")
        assert privileged_user.refreshed().check_password(PASSWORD)
        # Columns without security relevance can be changed, and unchanged values are no change.
        (record_after,) = data_of(api(bob).patch(path, {"phone": "5", "login": "boss", "active": True}))
        assert record_after["phone"] == "5"

    def test_values_of_privileged_accounts_cannot_be_guessed(self, alice: User, bob: User):
        """A caller may write the column but not read it: a right guess is refused like a wrong one."""
        for operation in ("read", "write"):
            rule(operation, "user")
        rule("read", "user", "email", condition="login=bob")
        rule("write", "user", "email")
        for guess in (alice.email, "x@example.com"):
            assert error_of(api(bob).patch(record_path(alice), {"email": guess}))[:2] == (403, "access_denied")

    def test_scoped_key_cannot_change_accounts_with_more_rights(self, alice: User, bob: User):
        role("helpdesk")
        for operation in ("read", "write"):
            rule(operation, "user", roles=["helpdesk"])
            rule(operation, "user", "*", roles=["helpdesk"])
        scoped_caller = api(alice, scope=["helpdesk"])
        assert error_of(scoped_caller.patch(record_path(alice), {"password": "a long one 42"}))[:2] == (
            403,
            "access_denied",
        )
        assert alice.refreshed().check_password(PASSWORD)
        data_of(scoped_caller.patch(record_path(bob), {"login": "robert"}))

    def test_deletion_log_cannot_be_written(self, alice: User, bob: User):  # B73
        open_table("sys_deletion_log")
        entry = DeletionLogEntry.objects.create(table="device", record_id="1", payload={"a": 1})
        for user in (alice, bob):
            assert error_of(api(user).post("sys_deletion_log", {}))[0] == 403
            assert error_of(api(user).patch(record_path(entry), {}))[0] == 403
            assert error_of(api(user).delete(record_path(entry)))[0] == 403
        assert data_of(api(alice).get(record_path(entry)))[0]["payload"] == {"a": 1}
        assert "payload" not in data_of(api(bob).get(record_path(entry)))[0]

    def test_internal_tables_are_404(self, alice: User):  # B27
        for name in ("access_key", "session", "tableapi_state", "tableapi_deferred_record", "django_session",
                     "sys_access_key", "auth_user", "pg_class", "historicaluser"):  # fmt: skip
            for response in (api(alice).post(name, {}), api(alice).get(name), api(alice).patch(f"{name}/1", {})):
                assert error_of(response) == (404, "table_not_found", None)


class TestReferencedDeletion:
    def test_deleting_a_company_clears_it_from_users(self, alice: User, bob: User):
        acme = Company.objects.create(name="Acme")
        User.objects.filter(pk=bob.pk).update(company=acme)
        assert api(alice).delete(record_path(acme)).status_code == 200
        assert bob.refreshed().company is None

    def test_deleting_a_user_deletes_keys_roles_and_sessions(self, alice: User, bob: User):
        grant(bob, "editor")
        UserGroup.objects.create(user=bob, group=Group.objects.create(name="g"))
        caller = api(bob, credential="key")
        Client().force_login(bob)
        assert AccessKey.objects.exists() and Session.objects.exists()
        assert api(alice).delete(record_path(bob)).status_code == 200
        assert caller.get("user").status_code == api(bob).get("user").status_code == 401
        assert not AccessKey.objects.exists() and not Session.objects.exists() and not UserGroup.objects.exists()
        assert not UserRole.objects.filter(user=bob.pk).exists()
        logged_deletions = set(DeletionLogEntry.objects.values_list("table", "deleted_by"))
        assert {("user", alice.pk), ("sys_user_role", alice.pk), ("sys_user_group", alice.pk)} <= logged_deletions
        payload = DeletionLogEntry.objects.get(table="user").payload
        assert payload["login"] == "bob" and "password" not in payload

    def test_references_in_designed_tables_are_cleared(self, alice: User, bob: User):
        device = table("device")
        field(device, "owner", target="user")
        field(device, "users", "list", target="user")
        record_id = record("device", owner=bob.pk, users=[bob.pk, alice.pk])
        assert api(alice).delete(record_path(bob)).status_code == 200
        assert query_rows("SELECT owner, users FROM records.device WHERE sys_id = %s", record_id) == [
            (None, [alice.pk])
        ]

    @pytest.mark.parametrize("type_name", ["reference", "list"])
    def test_mandatory_reference_prevents_deletion(self, type_name: str, alice: User, bob: User, as_alice: Client):
        """Both through the API and in the administration."""
        device = table("device")
        field(device, "owner", type_name, target="user", mandatory=True)
        record_id = record("device", owner=[bob.pk] if type_name == "list" else bob.pk)
        response = api(alice).delete(record_path(bob))
        assert (
            error_of(response) == (409, "referenced", None)
            and b"reference this record in mandatory columns: device.owner." in response.content
        )
        rule("delete", "user")
        response = api(bob).delete(record_path(bob))
        assert error_of(response) == (409, "referenced", None)
        assert b"device" not in response.content and b"owner" not in response.content
        path = f"/admin/accounts/user/{bob.pk}/delete/"
        response = as_alice.post(path, {"post": "yes"}, headers={"Accept": "text/html"})
        assert response.status_code in (302, 409)
        assert User.objects.filter(pk=bob.pk).exists() and not DeletionLogEntry.objects.exists()
        query_rows("DELETE FROM records.device WHERE sys_id = %s", record_id)
        assert as_alice.post(path, {"post": "yes"}).status_code == 302
        assert not User.objects.filter(pk=bob.pk).exists()

    def test_deletion_in_the_administration_clears_lists(self, alice: User, as_alice: Client):
        group, other_group = Group.objects.create(name="g"), Group.objects.create(name="h")
        field(table("device"), "groups", "list", target="sys_group")
        record("device", groups=[group.pk, other_group.pk])
        assert as_alice.post(f"/admin/accounts/group/{group.pk}/delete/", {"post": "yes"}).status_code == 302
        assert query_rows("SELECT groups FROM records.device") == [([other_group.pk],)]

    def test_if_match_applies(self, alice: User):
        acme = Company.objects.create(name="Acme")
        tag = api(alice).get(record_path(acme))["ETag"]
        data_of(api(alice).patch(record_path(acme), {"name": "Acme & Co"}))
        assert error_of(api(alice).delete(record_path(acme), headers={"If-Match": tag})) == (412, "stale", None)
        assert error_of(api(alice).patch(record_path(acme), {"name": "x"}, headers={"If-Match": tag})) == (
            412,
            "stale",
            None,
        )
        tag = api(alice).get(record_path(acme))["ETag"]
        assert api(alice).delete(record_path(acme), headers={"If-Match": tag}).status_code == 200

    def test_missing_record_is_404(self, alice: User):
        for name in ("user", "sys_role", "company", "sys_db_table"):
            for sys_id in ("1", "A", "x" * 40):
                assert error_of(api(alice).delete(f"{name}/{sys_id}")) == (404, "record_not_found", None)
                assert error_of(api(alice).patch(f"{name}/{sys_id}", {})) == (404, "record_not_found", None)

"""The product's own tables: what the shipped rules let users read, and what is never readable."""

from typing import Any

import pytest

from accounts.authentication import access_keys
from accounts.models import Company, Group, User
from tableapi.models import Rule
from tests.tableapi.world import api, column_values, data_of, error_of, field, grant, open_table, record, rule, table

pytestmark = pytest.mark.django_db


class TestUsers:
    def test_everybody_reads_login_and_name(self, alice: User, bob: User):
        (record,) = data_of(api(bob).get("user", query="login=alice"))
        assert record == {"sys_id": alice.pk, "login": "alice", "first_name": None, "last_name": None, "active": True}
        assert data_of(api(bob).get(f"user/{alice.pk}")) == [record]

    @pytest.mark.parametrize("name", ["email", "phone", "company", "sys_created_at", "sys_updated_by", "sys_version"])
    def test_other_columns_require_administrators(self, alice: User, bob: User, name: str):  # B01
        assert error_of(api(bob).get("user", query=f"{name}ISNOTEMPTY")) == (400, "unknown_field", name)
        assert error_of(api(bob).get("user", fields=name)) == (400, "no_fields", "sysparm_fields")
        assert list(data_of(api(alice).get("user", fields=name))[0]) == [name]

    def test_added_rule_grants_more(self, alice: User, bob: User):
        rule("read", "user", "email", condition="sys_idANYTHING^sys_id=javascript:gs.getUserID()")
        assert column_values(api(bob).get("user", fields="login,email", query="ORDERBYlogin"), "email") == [
            None,
            "bob@example.com",
        ]
        assert column_values(api(bob).get("user", query="emailSTARTSWITHalice", fields="login"), "login") == []

    @pytest.mark.parametrize("name", ["password", "is_staff", "is_superuser", "is_active", "digest"])
    def test_secrets_and_framework_columns_are_never_exposed(self, alice: User, name: str):  # B28
        caller = api(alice)
        (record,) = data_of(caller.get(f"user/{alice.pk}"))
        assert name not in record and alice.password not in str(record)
        for query in (f"{name}=1", f"{name}ISEMPTY", f"{name}ISNOTEMPTY", f"{name}STARTSWITHmd5", f"loginSAMEAS{name}",
                      f"ORDERBY{name}", f"sys_created_by.{name}=1", f"ORDERBYDESCsys_updated_by.{name}"):  # fmt: skip
            response = caller.get("user", query=query)
            assert error_of(response)[:2] == (400, "unknown_field"), query
            unknown_response = caller.get("user", query=query.replace(name, "x" * len(name)))
            assert response.content.replace(name.encode(), b"x" * len(name)) == unknown_response.content
        response = caller.get("user", fields=f"login,{name},sys_created_by.{name}")
        assert list(data_of(response)[0]) == ["login"]

    def test_password_cannot_be_searched(self, alice: User):  # B28
        assert error_of(api(alice).get("user", query=f"sys_idARE{alice.password[:10]}"))[:2] == (400, "invalid_query")

    def test_paths_through_users_have_the_same_limits(self, alice: User, bob: User):  # B04
        table("device")
        field("device", "owner", target="user")
        open_table("device")
        record("device", owner=alice.pk)
        assert data_of(api(bob).get("device", fields="owner.login,owner.email,owner.password")) == [
            {"owner.login": "alice"}
        ]
        assert error_of(api(bob).get("device", query="owner.email=alice@example.com"))[:2] == (400, "unknown_field")
        assert data_of(api(alice).get("device", query="owner.email=ALICE@example.com", fields="owner.email")) == [
            {"owner.email": "alice@example.com"}
        ]
        assert error_of(api(alice).get("device", query="owner.passwordISNOTEMPTY"))[:2] == (400, "unknown_field")
        records = data_of(api(bob).get("device", fields="owner", display_value=1, exclude_reference_link=1))
        assert records == [{"owner": "alice"}]


class TestReadableNames:
    def test_everybody_reads_names_of_groups_companies_and_services(self, bob: User, alice: User):
        Group.objects.create(name="Helpers")
        Company.objects.create(name="Acme")
        record("service", name="Mail")
        for name, expected_name in (("sys_group", "Helpers"), ("company", "Acme"), ("service", "Mail")):
            (row,) = data_of(api(bob).get(name))
            assert row == {"sys_id": row["sys_id"], "name": expected_name}
            assert error_of(api(bob).get(name, query="sys_created_atISNOTEMPTY"))[:2] == (400, "unknown_field")
            assert "sys_created_at" in data_of(api(alice).get(name))[0]


ADMIN_TABLES = (
    "sys_acl", "sys_db_table", "sys_db_column", "sys_choice", "sys_ui_view", "sys_ui_view_column", "sys_role",
    "sys_user_role", "sys_user_group", "sys_property", "sys_deletion_log", "task", "sys_schedule", "sys_indication",
)  # fmt: skip


def test_all_other_tables_require_administrators(alice: User, bob: User):  # B27 B75
    missing_response = api(bob).get("nothing")
    for name in ADMIN_TABLES:
        hidden_response = api(bob).get(name)
        assert (hidden_response.status_code, hidden_response.content) == (
            missing_response.status_code,
            missing_response.content,
        ), name
        assert api(alice).get(name, limit=1, count="exact").status_code == 200, name


def test_other_database_tables_are_not_exposed(alice: User):  # B37 B62
    for name in (
        "accounts_access_key",
        "access_key",
        "django_session",
        "auth_user",
        "django_admin_log",
        "tableapi_state",
        "historicaluser",
        "accounts_historicaluser",
        "oidc_setting_secret",
        "django_migrations",
    ):
        assert error_of(api(alice).get(name)) == (404, "table_not_found", None), name


def test_catalogue_tables_are_readable(alice: User):
    records = data_of(
        api(alice).get("sys_db_column", query="table.name=user^name=email", fields="name,table.name,type,is_unique")
    )
    assert records == [{"name": "email", "table.name": "user", "type": "string", "is_unique": False}]
    table_names = column_values(api(alice).get("sys_db_table", fields="name", limit=100), "name")
    assert set(ADMIN_TABLES) | {"user", "company", "service"} <= set(table_names)
    (company_rule,) = data_of(
        api(alice).get(
            "sys_acl", query="table.name=company^column_name=*", fields="operation,roles", exclude_reference_link=1
        )
    )
    assert company_rule["operation"] == "read" and len(company_rule["roles"]) == 1


class TestDeletionLog:
    @pytest.fixture
    def deleted_device(self, alice: User, bob: User) -> None:
        table("device")
        field("device", "name", is_display=True)
        field("device", "token", "secret")
        open_table("device")
        record_id = data_of(api(alice).post("device", {"name": "Lamp", "token": "plaintext-token"}))[0]["sys_id"]
        data_of(api(alice).delete(f"device/{record_id}"))
        grant(bob, "auditor")
        rule("read", "sys_deletion_log", roles=["auditor"])

    def test_deletion_log_is_for_administrators(self, deleted_device: None, alice: User, bob: User):  # B73
        (record,) = data_of(api(alice).get("sys_deletion_log", query="table=device"))
        assert record["payload"]["name"] == "Lamp" and record["deleted_by"]["value"] == alice.pk
        assert "plaintext-token" not in str(record)
        (record,) = data_of(api(bob).get("sys_deletion_log", query="table=device"))
        assert record["display_value"] == "Lamp" and "payload" not in record

    def test_no_rule_grants_the_deletion_log(self, deleted_device: None, bob: User):  # B73
        rule("read", "sys_deletion_log", "payload", roles=["auditor"])
        rule("read", "sys_deletion_log", "*")
        caller = api(bob)
        assert "payload" not in data_of(caller.get("sys_deletion_log"))[0]
        assert error_of(caller.get("sys_deletion_log", fields="payload")) == (400, "no_fields", "sysparm_fields")
        hidden_response, missing_response = (
            caller.get("sys_deletion_log", query=f"{name}ISNOTEMPTY") for name in ("payload", "nothing")
        )
        assert error_of(hidden_response) == (400, "unknown_field", "payload")
        assert hidden_response.content.replace(b"payload", b"") == missing_response.content.replace(b"nothing", b"")

    def test_scoped_key_of_an_administrator_has_no_access(self, deleted_device: None, alice: User):  # B65
        scoped_caller = api(alice, scope=["auditor"])
        assert "payload" not in data_of(scoped_caller.get("sys_deletion_log"))[0]
        assert "payload" in data_of(api(alice, credential="key").get("sys_deletion_log"))[0]


def test_access_keys_are_never_returned(alice: User):  # B62 B63
    access_key = access_keys.create_key(alice, "mine", expires_at=None)
    for name in ("user", "sys_deletion_log", "sys_property", "sys_user_role"):
        for display_value in (0, 1, "all"):
            assert access_key.encode() not in api(alice).get(name, display_value=display_value, limit=1000).content


def test_empty_text_of_product_tables_is_null(alice: User, bob: User):
    (record,) = data_of(api(alice).get(f"user/{bob.pk}", fields="phone,first_name,company,email"))
    assert record == {"phone": None, "first_name": None, "company": None, "email": "bob@example.com"}
    assert column_values(api(alice).get("user", query="first_nameISEMPTY^loginINbob", fields="login"), "login") == [
        "bob"
    ]
    assert data_of(api(alice).get("user", query="first_nameISNOTEMPTY")) == []


def test_hidden_user_columns_stay_hidden_in_references(alice: User, bob: User, db: Any):  # B10
    table("device")
    field("device", "owner", target="user")
    open_table("device")
    record("device", owner=alice.pk)
    rule("read", "user", "login", roles=["other"], active=False)
    params = {"fields": "owner", "display_value": 1, "exclude_reference_link": 1}
    assert data_of(api(bob).get("device", **params)) == [{"owner": "alice"}]
    for read_rule in Rule.objects.filter(table__name="user", column_name="login", active=True):
        read_rule.delete()
    assert data_of(api(bob).get("device", **params)) == [{"owner": None}]

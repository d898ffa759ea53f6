"""The product's own tables in the catalogue: exactly what their models declare."""

from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from accounts.models import Company, Role, User
from system.models import Property
from system.records.record import Record
from tableapi.design import saving
from tableapi.models import Choice, Column, State, Table
from tableapi.setup import product_tables
from tests.tableapi.designs import query_rows

pytestmark = pytest.mark.django_db


def column_options(table: str, *option_names: str) -> dict[str, tuple[Any, ...]]:
    rows = Column.objects.filter(table__name=table).values_list("name", *option_names)
    return {name: tuple(values) for name, *values in rows}


def catalogue_version() -> int:
    return State.objects.get().version


def test_every_exposed_table_is_in_the_catalogue():
    models = [model for model in apps.get_models() if issubclass(model, Record) and model.table_columns]
    exposed_tables = {model._meta.db_table for model in models}

    assert {"user", "sys_role", "company", "sys_property", "sys_db_table", "sys_acl"} <= exposed_tables
    assert set(Table.objects.filter(is_system=True).values_list("name", flat=True)) == exposed_tables


def test_catalogue_columns_match_the_models():
    for table in Table.objects.filter(is_system=True):
        model: Any = next(candidate for candidate in apps.get_models() if candidate._meta.db_table == table.name)
        columns = table.columns.all()
        assert {column.name for column in columns} == set(model.table_columns)
        with connection.cursor() as cursor:
            database_columns = {
                column.name for column in connection.introspection.get_table_description(cursor, table.name)
            }
        assert {column.database_name for column in columns} <= database_columns


def test_types_and_options_match_the_model():
    assert column_options("user", "type", "mandatory", "is_unique", "is_display", "physical_name") == {
        "login": ("string", True, True, True, "login"),
        "email": ("string", False, False, False, "email"),
        "password": ("password", False, False, False, "password"),
        "first_name": ("string", False, False, False, "first_name"),
        "last_name": ("string", False, False, False, "last_name"),
        "phone": ("string", False, False, False, "phone"),
        "company": ("reference", False, False, False, "company_id"),
        "time_zone": ("string", False, False, False, "time_zone"),
        "active": ("boolean", False, False, False, "active"),
        "last_login": ("datetime", False, False, False, "last_login"),
    }
    assert column_options("sys_role", "type", "reference_table__name")["contains"] == ("list", "sys_role")
    assert column_options("sys_acl", "type", "reference_table__name")["roles"] == ("list", "sys_role")
    assert column_options("sys_deletion_log", "type", "read_only")["payload"] == ("json", True)
    assert column_options("sys_deletion_log", "reference_table__name")["deleted_by"] == ("user",)
    assert column_options("sys_property", "type", "read_only", "max_length")["name"] == ("string", True, 255)
    assert column_options("user", "default_value", "max_length")["active"] == ("true", None)


def test_choices_are_included():
    rows = Choice.objects.filter(column__table__name="sys_user_role").values_list("value", "label")

    assert list(rows) == [("manual", "granted here"), ("provider", "granted by the identity provider")]


def test_secrets_are_not_exposed():
    columns = set(Column.objects.filter(table__is_system=True).values_list("table__name", "name", "type"))

    assert ("user", "password", "password") in columns
    assert {table for table, _, _ in columns} & {"accounts_session", "sys_session", "sys_access_key"} == set()
    secret_words = ("hash", "token", "secret", "session", "staff", "superuser", "key")
    endpoint_columns = {("oidc_setting", name, "string") for name in ("token_endpoint", "end_session_endpoint")}
    # `table_key` names the table that a comment belongs to.
    allowed_columns = {*endpoint_columns, ("sys_comment", "table_key", "string")}
    readable_columns = {column for column in columns if column[2] != "secret"}
    suspicious_columns = {column for column in readable_columns if any(word in column[1] for word in secret_words)}
    assert suspicious_columns == allowed_columns, "endpoints are not secret"


def test_second_run_writes_nothing():
    version_before = catalogue_version()
    rows_before = sorted(query_rows("SELECT sys_id, sys_version, sys_updated_at FROM sys_db_column"))
    product_tables.update_product_tables()

    assert catalogue_version() == version_before
    assert sorted(query_rows("SELECT sys_id, sys_version, sys_updated_at FROM sys_db_column")) == rows_before


def test_model_changes_are_applied(monkeypatch: Any):
    column_ids = dict(Column.objects.filter(table__name="company").values_list("name", "sys_id"))
    version_before = catalogue_version()
    monkeypatch.setattr(Company, "table_columns", ("name",))
    monkeypatch.setattr(User, "table_columns", (*User.table_columns, "date_joined"), raising=False)
    monkeypatch.setattr(User, "table_columns", User.table_columns[:-1])
    monkeypatch.setattr(Company._meta.get_field("name"), "max_length", 100)
    product_tables.update_product_tables()

    assert column_options("company", "max_length") == {"name": (100,)}
    assert Column.objects.get(table__name="company").pk == column_ids["name"], "the column keeps its id"
    assert catalogue_version() > version_before
    monkeypatch.undo()
    product_tables.update_product_tables()
    assert column_options("company", "max_length") == {"name": (200,), "active": (None,)}


def test_table_no_longer_exposed_is_removed(monkeypatch: Any):
    monkeypatch.setattr(Property, "table_columns", ())
    product_tables.update_product_tables()

    assert not Table.objects.filter(name="sys_property").exists()
    assert query_rows("SELECT count(*) > 0 FROM sys_property") == [(True,)], "its records are kept"


def test_choices_are_updated(monkeypatch: Any):
    field = apps.get_model("accounts", "UserRole")._meta.get_field("source")
    monkeypatch.setattr(field, "choices", [("manual", "by hand")])
    product_tables.update_product_tables()

    rows = Choice.objects.filter(column__table__name="sys_user_role").values_list("value", "label")
    assert list(rows) == [("manual", "by hand")]


def test_changed_label_is_kept():
    table = Table.objects.get(name="user")
    table.label = "Person"
    saving.save_table(table)
    column = Column.objects.get(table=table, name="email")
    column.label = "Mail"
    saving.save_column(column)
    product_tables.update_product_tables()

    assert (table.refreshed().label, column.refreshed().label) == ("Person", "Mail")


def test_unsupported_field_type_raises(monkeypatch: Any):
    monkeypatch.setattr(Role, "references", {})
    with pytest.raises(TypeError, match=r"Role\.contains"):
        product_tables.update_product_tables()

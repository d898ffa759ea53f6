"""Designing tables and columns: the database matches the catalogue."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, connections, transaction

from accounts.models import Company, Role
from system.errors import Unavailable
from system.models import DeletionLogEntry
from system.records import savers
from tableapi.ddl import schema_editor
from tableapi.design import saving
from tableapi.models import Choice, Column, Rule, State, Table, View, ViewColumn
from tests.support.users import make_user
from tests.tableapi.column_types import EXAMPLES
from tests.tableapi.designs import column_types_of, indexes_of, insert_row, make_column, make_table, query_rows

pytestmark = pytest.mark.django_db

SYSTEM_COLUMN_TYPES = {
    "sys_id": "character varying(32)",
    "sys_created_at": "timestamp with time zone",
    "sys_created_by": "character varying(32)",
    "sys_updated_at": "timestamp with time zone",
    "sys_updated_by": "character varying(32)",
    "sys_version": "integer",
    "sys_db_table_id": "character varying(32)",
}


@pytest.fixture
def device(db: Any) -> Table:
    return make_table("device")


def refusal_of(action: Callable[[], Any]) -> str:
    with pytest.raises(ValidationError) as exc_info, transaction.atomic():
        action()
    return " ".join(exc_info.value.messages)


def catalogue_version() -> int:
    return State.objects.get().version


def change_record(record: Any, **values: Any) -> Any:
    for name, value in values.items():
        setattr(record, name, value)
    savers.saver_of(type(record)).save(record)
    return record


class TestTables:
    def test_new_table_has_the_system_columns(self, device: Table):
        assert column_types_of("device") == SYSTEM_COLUMN_TYPES
        sys_id = insert_row("device")
        assert query_rows("SELECT sys_version, sys_db_table_id, sys_created_by FROM records.device") == [
            (0, device.pk, None)
        ]
        assert len(sys_id) == 18
        assert indexes_of("device").keys() == {"device_pkey", f"C{device.pk}", f"D{device.pk}"}

    @pytest.mark.parametrize("sys_id", ["A", "", "a b", "é"])
    def test_record_id_allows_only_lowercase_letters_and_digits(self, device: Table, sys_id: str):
        with pytest.raises(IntegrityError), transaction.atomic():
            insert_row("device", sys_id=sys_id)

    def test_child_record_has_the_id_of_its_parent_row(self, device: Table):
        make_table("laptop", parent=device)
        make_table("tablet", parent=Table.objects.get(name="laptop"))

        assert column_types_of("laptop") == column_types_of("tablet") == {"sys_id": "character varying(32)"}
        sys_id = insert_row("device")
        insert_row("laptop", sys_id=sys_id)
        insert_row("tablet", sys_id=sys_id)
        query_rows("DELETE FROM records.device")
        assert query_rows("SELECT 1 FROM records.tablet") == []
        assert indexes_of("device")[f"I{device.pk}"] == "btree (sys_db_table_id, sys_id)"

    def test_child_row_requires_a_parent_row(self, device: Table):
        make_table("laptop", parent=device)
        with pytest.raises(IntegrityError), transaction.atomic():
            insert_row("laptop", sys_id="1")

    @pytest.mark.parametrize(
        "name",
        ["", "Device", "1st", "_x", "a-b", "a b", 'a"b', "a;--", "a.b", "é", "a\n", "x" * 64, "a\x00", "pg_catalog.x"],
    )
    def test_table_name_is_validated(self, name: str):  # B37
        count_before = Table.objects.count()
        refusal_of(lambda: make_table(name))
        assert Table.objects.count() == count_before

    @pytest.mark.parametrize("name", ["order", "select", "table", "user_", "x" * 63])
    def test_sql_keywords_are_valid_names(self, name: str):  # B38
        column = make_column(make_table(name), name, is_unique=True, is_indexed=True)

        assert column_types_of(name)[name] == "text"
        column.delete()
        Table.objects.get(name=name).delete()
        assert column_types_of(name) == {}

    @pytest.mark.parametrize("name", ["sys_own", "svc_own"])
    def test_reserved_names_are_refused(self, name: str, device: Table):
        assert "are reserved" in refusal_of(lambda: make_table(name))
        assert "are reserved" in refusal_of(lambda: make_column(device, name))

    def test_table_names_are_unique(self, device: Table):
        assert "already exists" in refusal_of(lambda: make_table("device"))
        assert "already exists" in refusal_of(lambda: make_table("user")), "a product table"

    def test_fixed_attributes_cannot_be_changed(self, device: Table):
        laptop = make_table("laptop", parent=device)

        for record, values in (
            (device, {"name": "gadget"}),
            (device, {"parent": laptop}),  # a cycle
            (laptop, {"parent": None}),
        ):
            assert "cannot be changed" in refusal_of(partial(change_record, record, **values))
            record.refresh_from_db()
        assert column_types_of("device") and not column_types_of("gadget")

    def test_only_the_label_of_a_product_table_can_be_changed(self):
        user_table = Table.objects.get(name="user")

        assert "cannot be extended" in refusal_of(lambda: make_table("person", parent=user_table))
        assert "product table" in refusal_of(lambda: change_record(user_table, number_prefix="USR"))
        assert "Product tables cannot" in refusal_of(user_table.delete)
        assert "Product tables cannot" in refusal_of(lambda: Table.objects.filter(name="sys_property").delete())
        assert "product table" in refusal_of(lambda: make_table("fake", is_system=True))
        assert "product table" in refusal_of(lambda: make_column(user_table, "shoe_size"))
        assert change_record(Table.objects.get(name="user"), label="Person").refreshed().label == "Person"

    def test_only_labels_of_product_columns_can_be_changed(self):
        column = Column.objects.get(table__name="user", name="email")

        for values in ({"mandatory": True}, {"type": "text"}, {"is_indexed": True}, {"name": "mail"}):
            message = refusal_of(partial(change_record, column, **values))
            assert ("cannot be changed" if "name" in values else "only its label can be changed") in message
            column.refresh_from_db()
        assert "product table" in refusal_of(column.delete)
        assert "product table" in refusal_of(lambda: Column.objects.filter(pk=column.pk).delete())
        assert change_record(column, label="Mail").refreshed().label == "Mail"
        source_choice = Choice.objects.filter(column__table__name="sys_user_role").first()
        assert source_choice is not None
        assert "choices cannot be changed" in refusal_of(source_choice.delete)
        assert "choices cannot be changed" in refusal_of(lambda: change_record(source_choice, label="x"))

    def test_prefix_adds_a_number_column(self):
        ticket = make_table("ticket", number_prefix="TCK")
        number_column = ticket.columns.get()

        assert (number_column.name, number_column.read_only, number_column.is_unique, number_column.is_display) == (
            "number",
            True,
            True,
            True,
        )
        assert query_rows(f"SELECT nextval('records.\"N{ticket.pk}\"')") == [(1,)]
        assert "record numbers" in refusal_of(number_column.delete)
        # A child table uses the number column of its parent.
        make_table("complaint", parent=ticket, number_prefix="CMP")
        assert not Column.objects.filter(table__name="complaint").exists()
        Table.objects.get(name="complaint").delete()
        ticket.delete()
        assert query_rows("SELECT 1 FROM pg_class WHERE relname = %s", f"N{ticket.pk}") == []

    def test_prefix_can_be_added_later(self, device: Table):
        change_record(device, number_prefix="DEV")
        change_record(device, label="Thing")

        assert column_types_of("device")["number"] == "text"
        assert query_rows(f"SELECT nextval('records.\"N{device.pk}\"')") == [(1,)]

    @pytest.mark.parametrize("prefix", ["tck", "T1", "ABCDEFGHIJK", "T'", "Ä"])
    def test_prefix_allows_only_uppercase_letters(self, prefix: str):
        refusal_of(lambda: make_table("ticket", number_prefix=prefix))

    def test_table_in_use_cannot_be_deleted(self, device: Table):
        laptop = make_table("laptop", parent=device)
        assert "parent of other tables" in refusal_of(device.delete)
        make_column(make_table("desk"), "stands_on_it", "reference", reference_table=laptop)
        assert "desk.stands_on_it refers" in refusal_of(laptop.delete)
        insert_row("desk")
        desk = Table.objects.get(name="desk")
        assert "has records" in refusal_of(desk.delete)
        assert "has records" in refusal_of(lambda: Table.objects.filter(name="desk").delete())
        assert column_types_of("desk") and Table.objects.filter(name="desk").exists()

    def test_self_referencing_table_can_be_deleted(self, device: Table):
        make_column(device, "part_of", "reference", reference_table=device)
        device.delete()

        assert column_types_of("device") == {} and not Column.objects.filter(name="part_of").exists()
        logged_deletions = set(DeletionLogEntry.objects.values_list("table", "display_value"))
        assert {("sys_db_table", "device"), ("sys_db_column", "device.part_of")} <= logged_deletions

    def test_bulk_deletion_drops_tables(self, device: Table):
        make_column(device, "colour")
        make_table("desk")
        Column.objects.filter(name="colour").delete()
        assert column_types_of("device") == SYSTEM_COLUMN_TYPES
        Table.objects.filter(name__in=["device", "desk"]).delete()
        assert column_types_of("device") == column_types_of("desk") == {}


def target_options(type_name: str) -> dict[str, Any]:
    return {"reference_table": Table.objects.get(name="user")} if type_name in ("reference", "list") else {}


class TestColumns:
    @pytest.mark.parametrize("type_name", EXAMPLES)
    def test_each_column_type_has_its_database_type(self, device: Table, type_name: str):
        column = make_column(device, "it", type_name, **target_options(type_name))

        plain_columns = {f"P{column.pk}": "text"} if type_name == "wysiwyg" else {}
        assert (
            column_types_of("device") == SYSTEM_COLUMN_TYPES | {"it": EXAMPLES[type_name].database_type} | plain_columns
        )
        column.delete()
        assert column_types_of("device") == SYSTEM_COLUMN_TYPES

    @pytest.mark.parametrize(
        ("type_name", "definitions"),
        [
            ("string", {"I": "btree (NULLIF(lower((it COLLATE pg_c_utf8)), ''::text), sys_id)",
                        "W": "gin (to_tsvector('simple'::regconfig, it))"}),
            ("text", {"W": "gin (to_tsvector('simple'::regconfig, it))"}),
            ("wysiwyg", {"W": "gin (to_tsvector('simple'::regconfig, \"P{id}\"))"}),
            ("integer", {"I": "btree (it, sys_id)"}),
            ("choice", {"I": "btree (it, sys_id)"}),
            ("datetime", {"I": "btree (it, sys_id)"}),
            ("reference", {"I": "btree (it, sys_id)"}),
            ("list", {"I": "gin (it)"}),
        ],
    )  # fmt: skip
    def test_empty_table_gets_its_indexes_immediately(self, device: Table, type_name: str, definitions: dict[str, str]):
        column = make_column(device, "it", type_name, is_indexed=True, **target_options(type_name))

        indexes = {name: text for name, text in indexes_of("device").items() if name.endswith(column.pk)}
        assert indexes == {
            f"{letter}{column.pk}": text.replace("{id}", column.pk) for letter, text in definitions.items()
        }

    def test_reference_is_indexed_and_cleared_with_its_target(self, device: Table, bob: Any):
        column = make_column(device, "owner", "reference", **target_options("reference"))
        assert f"I{column.pk}" in indexes_of("device")
        insert_row("device", owner=bob.pk)
        with pytest.raises(IntegrityError), transaction.atomic():
            insert_row("device", owner="nobody")
        bob.delete()

        assert query_rows("SELECT owner FROM records.device") == [(None,)]

    def test_reference_can_be_dropped_in_the_transaction_of_its_target(self, device: Table):
        column = make_column(device, "owner", "reference", **target_options("reference"))
        make_user(
            "dora", company=Company.objects.create(name="One")
        )  # the foreign key to the company is checked at commit
        column.delete()

        assert column_types_of("device") == SYSTEM_COLUMN_TYPES

    def test_unique_ignores_case_and_empty_values(self, device: Table):
        make_column(device, "serial", is_unique=True)
        for value in ("Ä1", "", "", None, None):
            insert_row("device", serial=value)

        with pytest.raises(IntegrityError), transaction.atomic():
            insert_row("device", serial="ä1")

    def test_column_with_duplicates_cannot_become_unique(self, device: Table):
        column = make_column(device, "serial")
        insert_row("device", serial="a")
        insert_row("device", serial="A")

        assert "share a value" in refusal_of(lambda: change_record(column, is_unique=True))
        assert not column.refreshed().is_unique
        query_rows("DELETE FROM records.device")
        assert f"U{change_record(column, is_unique=True).pk}" in indexes_of("device")
        assert f"U{change_record(column, is_unique=False).pk}" not in indexes_of("device")

    @pytest.mark.parametrize(
        "name",
        ["sys_id", "sys_db_table_id", "xmin", "ctid", "tableoid", "A", "a-b", 'a"', "a;--", "é", "x" * 64, "a\x00", ""],
    )
    def test_invalid_column_names_are_refused(self, device: Table, name: str):  # B38
        refusal_of(lambda: make_column(device, name))
        with schema_editor.allow_product_changes():
            refusal_of(lambda: make_column(device, name))
        assert column_types_of("device") == SYSTEM_COLUMN_TYPES

    def test_column_names_are_unique_in_a_table_family(self, device: Table):
        laptop = make_table("laptop", parent=device)
        tablet = make_table("tablet", parent=laptop)
        phone = make_table("phone", parent=device)
        make_column(laptop, "colour")

        for table in (device, laptop, tablet):
            refusal_of(partial(make_column, table, "colour"))
        make_column(phone, "colour")  # a sibling table may use the name

    @pytest.mark.parametrize(
        ("type_name", "options"),
        [
            ("reference", {}),
            ("list", {}),
            ("string", {"reference_table": "user"}),
            ("nonsense", {}),
            *((name, {"is_unique": True}) for name in ("wysiwyg", "text", "json", "boolean", "password", "secret")),
            *((name, {"is_indexed": True}) for name in ("json", "password", "secret")),
            *((name, {"is_display": True}) for name in ("json", "wysiwyg", "text", "password")),
            ("integer", {"max_length": 5}),
            ("string", {"max_length": 0}),
            ("string", {"max_length": 601, "is_indexed": True}),
            ("string", {"converted_from_text": True}),
            ("string", {"label": "\x00"}),
            ("integer", {"default_value": "12.5"}),
            ("integer", {"default_value": "9223372036854775808"}),
            ("decimal", {"default_value": "NaN"}),
            ("decimal", {"default_value": "x"}),
            ("boolean", {"default_value": "yes"}),
            ("datetime", {"default_value": "2030-13-01 00:00:00"}),
            ("date", {"default_value": "tomorrow"}),
            ("json", {"default_value": "{"}),
            ("json", {"default_value": "NaN"}),
            ("json", {"default_value": "[" * 100_000}),
            ("password", {"default_value": "x"}),
            ("string", {"max_length": 3, "default_value": "four"}),
            # Defaults have the same grammar as values in requests.
            ("integer", {"default_value": "1_000"}),
            ("integer", {"default_value": " 1"}),
            ("decimal", {"default_value": "1_0.5"}),
            ("decimal", {"default_value": "\u0661"}),
            ("date", {"default_value": "20300101"}),
            ("date", {"default_value": "2030-W01-1"}),
            ("datetime", {"default_value": "20300101T000000"}),
            ("json", {"default_value": '{"a": 1, "a": 2}'}),
        ],
    )
    def test_invalid_column_options_are_refused(self, device: Table, type_name: str, options: dict[str, Any]):
        if "reference_table" in options:
            options = options | {"reference_table": Table.objects.get(name="user")}
        refusal_of(lambda: make_column(device, "it", type_name, **options))
        assert column_types_of("device") == SYSTEM_COLUMN_TYPES

    @pytest.mark.parametrize(
        ("type_name", "value"),
        [
            ("integer", "-5"),
            ("decimal", "1.50"),
            ("boolean", "false"),
            ("datetime", "2030-12-31 23:59:59"),
            ("date", "2030-12-31"),
            ("json", '{"a": 1}'),
            ("string", "x"),
        ],
    )
    def test_default_is_validated_by_type(self, device: Table, type_name: str, value: str):
        assert make_column(device, "it", type_name, default_value=value).refreshed().default_value == value

    def test_default_of_a_choice_column_must_be_a_choice(self, device: Table):
        column = make_column(device, "colour", "choice")
        saving.save_choice(Choice(column=column, value="r", label="Red"))

        assert "Not a valid choice" in refusal_of(lambda: change_record(column, default_value="b"))
        assert change_record(column, default_value="r").refreshed().default_value == "r"
        other_column = make_column(device, "weight", "integer")
        assert "can have choices" in refusal_of(
            lambda: saving.save_choice(Choice(column=other_column, value="1", label="One"))
        )

    def test_default_choice_cannot_be_deleted(self, device: Table):
        column = make_column(device, "colour", "choice", default_value="r")
        red_choice, blue_choice = (Choice(column=column, value=value, label=value) for value in "rb")
        saving.save_choice(red_choice)
        saving.save_choice(blue_choice)

        for action in (
            red_choice.delete,
            lambda: Choice.objects.filter(value="r").delete(),
            lambda: change_record(red_choice, value="x"),
        ):
            assert "“r” is the default value of device.colour" in refusal_of(action)
        red_choice.refresh_from_db()
        change_record(red_choice, label="Red")
        change_record(column, default_value="b")
        red_choice.delete()
        column.delete()  # also deletes its choices, including the default
        assert not Choice.objects.filter(pk=blue_choice.pk).exists()

    def test_table_has_one_display_column(self, device: Table):
        first_column = make_column(device, "title", is_display=True)
        make_column(device, "colour", is_display=True)

        assert not first_column.refreshed().is_display

    def test_fixed_attributes_cannot_be_changed(self, device: Table):
        column = make_column(device, "owner", "reference", **target_options("reference"))

        for values in (
            {"name": "holder"},
            {"table": make_table("desk")},
            {"reference_table": Table.objects.get(name="company")},
        ):
            assert "cannot be changed" in refusal_of(partial(change_record, column, **values))
            column.refresh_from_db()

    def test_text_can_be_converted_to_formatted_text(self, device: Table):
        column = make_column(device, "about", is_indexed=True)
        insert_row("device", about="x")
        change_record(column, type="text", max_length=None)
        insert_row("device", about="y" * 5000)
        change_record(column, type="wysiwyg")

        assert column.refreshed().converted_from_text
        assert column_types_of("device")[f"P{column.pk}"] == "text"
        assert query_rows(f'SELECT about, "P{column.pk}" FROM records.device ORDER BY about LIMIT 1') == [("x", None)]
        assert [name for name in indexes_of("device") if name.endswith(column.pk)] == [], "they would index the HTML"

    @pytest.mark.parametrize(
        ("old_type", "new_type"),
        [("string", "integer"), ("integer", "decimal"), ("choice", "string"), ("string", "choice"),
         ("wysiwyg", "text"), ("date", "datetime"), ("string", "password"), ("password", "string")],
    )  # fmt: skip
    def test_other_type_changes_are_refused_with_advice(self, device: Table, old_type: str, new_type: str):
        column = make_column(device, "it", old_type)

        assert "Create a column of the new type" in refusal_of(lambda: change_record(column, type=new_type))
        assert column_types_of("device")["it"] == EXAMPLES[old_type].database_type

    def test_deletion_ignores_an_unsaved_name(self, device: Table):
        make_column(device, "colour")
        column = make_column(device, "weight")
        column.name = "colour"
        column.delete()

        assert column_types_of("device").keys() - SYSTEM_COLUMN_TYPES.keys() == {"colour"}

    def test_too_many_columns_are_reported(self, device: Table):
        add_clauses = ", ".join(f"ADD COLUMN c{number} int" for number in range(1593))
        query_rows(f"ALTER TABLE records.device {add_clauses}")
        assert "too many columns" in refusal_of(lambda: make_column(device, "one_more"))


class TestRules:
    @pytest.mark.parametrize(
        "options",
        [
            {"operation": "look"},
            {"column_name": "nonsense"},
            {"roles": ["nobody"]},
            {"condition": "loginISNT1"},
            {"condition": "nonsense=1"},
        ],
    )
    def test_invalid_rule_is_refused(self, options: dict[str, Any]):  # B74
        user_table = Table.objects.get(name="user")
        refusal_of(lambda: saving.save_rule(Rule(**{"operation": "read", "table": user_table} | options)))

    def test_rules_can_be_added_to_product_tables(self, device: Table):
        make_column(device, "colour")
        laptop = make_table("laptop", parent=device)
        role_id = Role.objects.get(name="itil").pk
        saving.save_rule(
            Rule(operation="read", table=Table.objects.get(name="user"), column_name="email", condition="active=true")
        )
        for name in ("colour", "sys_created_by", "sys_db_table_id", "*", ""):
            saving.save_rule(
                Rule(operation="read", table=laptop, column_name=name, roles=[role_id, role_id], condition="colour=red")
            )

        assert Rule.objects.filter(roles=[role_id]).count() == 5

    def test_deleting_a_table_deletes_rules_and_views(self, device: Table):
        saving.save_rule(Rule(operation="read", table=device))
        view = View(table=device, name="small")
        saving.save_view(view)
        saving.save_view_column(ViewColumn(view=view, path="sys_id"))
        device.delete()

        assert not View.objects.exists() and not ViewColumn.objects.exists()
        assert not Rule.objects.filter(table__isnull=True).exists()


class TestCatalogueVersion:
    def test_every_change_raises_the_version(self, device: Table):
        column = make_column(device, "colour", "choice")
        choice = Choice(column=column, value="r", label="Red")
        view = View(table=device, name="small")
        rule = Rule(operation="read", table=device)
        role = Role(name="desk")
        view_column = ViewColumn(path="colour")
        for record in (column, choice, view, view_column, rule, role, device):
            view_column.view = view
            version_before = catalogue_version()
            savers.saver_of(type(record)).save(record)
            assert catalogue_version() > version_before, record
        for record in (role, rule, view_column, view, choice, column, device):
            version_before = catalogue_version()
            record.delete()
            assert catalogue_version() > version_before, record

    def test_rolled_back_version_is_never_reused(self, device: Table):
        versions = set()
        for _ in range(3):
            with transaction.atomic():
                make_column(device, "colour")
                versions.add(catalogue_version())
                transaction.set_rollback(True)
        assert len(versions) == 3


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    def test_rolled_back_design_leaves_nothing(self):
        version_before = catalogue_version()
        with transaction.atomic():
            make_column(make_table("device", number_prefix="DEV"), "colour")
            transaction.set_rollback(True)

        assert column_types_of("device") == {} and not Table.objects.filter(name="device").exists()
        assert (
            query_rows(
                "SELECT 1 FROM pg_sequences WHERE schemaname = 'records' AND sequencename <> %s", task_sequence_name()
            )
            == []
        )
        assert catalogue_version() == version_before

    def test_failed_column_leaves_no_row(self, monkeypatch: Any):
        device = make_table("device")
        monkeypatch.setattr(schema_editor, "wake_worker", lambda task: None)
        insert_row("device")
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE records.device ADD COLUMN taken text")
        with pytest.raises(Exception, match="already exists"):
            make_column(device, "taken")

        assert not Column.objects.filter(name="taken").exists()

    def test_concurrent_designs_are_serialised(self):
        device = make_table("device")
        failures: list[Exception] = []

        def make_numbered_column(number: int) -> None:
            try:
                make_column(device, "shared" if number % 2 else f"own_{number}", is_indexed=True)
            except ValidationError as error:
                failures.append(error)
            finally:
                connections.close_all()

        threads = [threading.Thread(target=make_numbered_column, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(failures) == 2 and "this name" in str(failures)
        assert column_types_of("device").keys() - SYSTEM_COLUMN_TYPES.keys() == {"own_0", "own_2", "own_4", "shared"}

    def test_busy_table_is_retried_then_refused(self, monkeypatch: Any):
        device = make_table("device")
        monkeypatch.setattr(schema_editor, "LOCK_TIMEOUT_MS", 50)
        pauses_s: list[float] = []
        monkeypatch.setattr(time, "sleep", pauses_s.append)
        with connect_separately() as reader:
            reader.execute("SELECT FROM records.device")  # its transaction keeps a lock
            with pytest.raises(Unavailable):
                make_column(device, "colour")
            assert pauses_s == sorted(pauses_s) and len(pauses_s) == schema_editor.MAX_ATTEMPTS - 1
            assert not Column.objects.filter(name="colour").exists() and "colour" not in column_types_of("device")

            monkeypatch.setattr(time, "sleep", lambda _: reader.rollback())
            make_column(device, "colour")
        assert column_types_of("device")["colour"] == "text"
        assert query_rows("SHOW lock_timeout") == [("0",)], "the previous timeout is restored"

    def test_concurrent_record_prevents_dropping_its_table(self, monkeypatch: Any):
        device = make_table("device")
        monkeypatch.setattr(schema_editor, "LOCK_TIMEOUT_MS", 50)
        with connect_separately() as writer:
            writer.execute("INSERT INTO records.device DEFAULT VALUES")
            monkeypatch.setattr(time, "sleep", lambda _: writer.commit())
            assert "has records" in refusal_of(device.delete)
        assert column_types_of("device") and Table.objects.filter(name="device").exists()

    def test_readers_continue_while_a_designer_waits(self, monkeypatch: Any):  # B55
        device = make_table("device")
        monkeypatch.setattr(schema_editor, "LOCK_TIMEOUT_MS", 100)
        waits_s: list[float] = []

        def read_concurrently(_: float) -> None:
            with connect_separately() as reader:
                started_at_s = time.monotonic()
                reader.execute("SELECT FROM records.device")
                waits_s.append(time.monotonic() - started_at_s)

        monkeypatch.setattr(time, "sleep", read_concurrently)
        with connect_separately() as writer:
            writer.execute("INSERT INTO records.device DEFAULT VALUES")
            with pytest.raises(Unavailable):
                make_column(device, "colour")
        assert len(waits_s) == schema_editor.MAX_ATTEMPTS - 1


def connect_separately() -> Any:
    """Open a connection like another client."""
    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context"):
        parameters.pop(name, None)
    return psycopg.connect(**parameters)


def task_sequence_name() -> str:
    return f"N{Table.objects.get(name='task').pk}"

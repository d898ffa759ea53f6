"""Changes to the catalogue and to rules take effect without errors in the next request to any process.

The tests simulate another process by restoring the catalogue from before the change.
"""

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from tableapi.database import catalogue_loader
from tableapi.design import saving
from tableapi.models import Choice, Column, Rule, Table, View
from tests.tableapi.world import ApiClient, api, column_values, data_of, error_of, field, record, rule, table, view

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lamp(transactional_db: Any) -> str:
    table("device")
    field("device", "name", is_display=True)
    field("device", "price", "integer")
    rule("read", "device")
    return record("device", name="Lamp", price=5)


@pytest.fixture
def change_in_other_process(lamp: str, bob: User) -> Callable[..., Any]:
    """Make a change as another process would: this process keeps the previous catalogue."""
    caller = api(bob)

    def change_and_keep_catalogue(change: Callable[[], Any], *paths: str) -> ApiClient:
        for path in ("device", f"device/{lamp}", *paths):
            caller.get(path)
        catalogue_before = catalogue_loader.cached_catalogue()
        change()
        catalogue_loader._cache.catalogue = catalogue_before
        return caller

    return change_and_keep_catalogue


def drop_column(table: str, name: str) -> None:
    Column.objects.get(table__name=table, name=name).delete()


def test_new_column_is_readable(change_in_other_process: Any, lamp: str):  # B55
    path = f"device/{lamp}?sysparm_fields=colour"
    caller = change_in_other_process(lambda: field("device", "colour"), path)
    assert data_of(caller.get(path)) == [{"colour": None}]
    caller = change_in_other_process(lambda: field("device", "weight", "integer"))
    assert "weight" in data_of(caller.get("device"))[0]
    caller = change_in_other_process(lambda: field("device", "height", "integer"))
    assert data_of(caller.get("device", query="heightISEMPTY^ORDERBYheight", fields="height")) == [{"height": None}]


RESPONSES_AFTER_DROP: dict[str, Any] = {
    "device?sysparm_fields=name,price": [{"name": "Lamp"}],
    "device?sysparm_fields=name&sysparm_query=name=Lamp": [{"name": "Lamp"}],
    "device?sysparm_query=price=5": (400, "unknown_field", "price"),
    "device?sysparm_query=ORDERBYprice": (400, "unknown_field", "price"),
    "device?sysparm_fields=price": (400, "no_fields", "sysparm_fields"),
    "device?sysparm_count=exact&sysparm_fields=name": [{"name": "Lamp"}],
}


def test_dropped_column_is_unknown(change_in_other_process: Any):  # B55
    for path, expected in RESPONSES_AFTER_DROP.items():
        response = change_in_other_process(lambda: drop_column("device", "price"), *RESPONSES_AFTER_DROP).get(path)
        assert (error_of(response) if isinstance(expected, tuple) else data_of(response)) == expected, path
        field("device", "price", "integer")


def column_recreation(table: str, name: str, type_name: str) -> Callable[[], None]:
    def drop_and_create() -> None:
        drop_column(table, name)
        field(table, name, type_name, **({"target": "user"} if type_name == "list" else {}))

    return drop_and_create


def test_column_can_be_recreated_with_another_type(change_in_other_process: Any, lamp: str, bob: User):  # B55
    paths = ["device", "device?sysparm_query=price=5", "device?sysparm_query=priceISNOTEMPTY^ORDERBYprice",
             "device?sysparm_query=priceIN5,6", f"device/{lamp}"]  # fmt: skip
    for type_name in ("decimal", "datetime", "list", "json", "boolean", "integer"):
        for path in paths:
            column_recreation("device", "price", "integer")()
            response = change_in_other_process(column_recreation("device", "price", type_name), *paths).get(path)
            catalogue_loader.clear_cache()
            fresh_response = api(bob).get(path)
            assert fresh_response.status_code in (200, 400)
            assert (response.status_code, response.content) == (fresh_response.status_code, fresh_response.content), (
                path,
                type_name,
            )


@pytest.mark.parametrize("type_name", ["boolean", "datetime", "integer", "list"])
def test_recreated_text_column_is_empty(change_in_other_process: Any, lamp: str, type_name: str):  # B55
    for path in ("device", f"device/{lamp}"):
        column_recreation("device", "name", "string")()
        assert (
            data_of(change_in_other_process(column_recreation("device", "name", type_name), path).get(path))[0]["name"]
            is None
        )


def test_new_table_is_readable_and_dropped_table_is_unknown(change_in_other_process: Any):  # B55
    def create_desk() -> None:
        table("desk")
        field("desk", "name")
        rule("read", "desk")

    caller = change_in_other_process(create_desk, "desk")
    assert data_of(caller.get("desk")) == []
    caller = change_in_other_process(lambda: Table.objects.get(name="desk").delete(), "desk")
    assert error_of(caller.get("desk")) == (404, "table_not_found", None)


def test_path_through_a_dropped_column_is_omitted(change_in_other_process: Any, lamp: str):  # B55
    table("holder")
    field("holder", "at", target="device")
    rule("read", "holder")
    record("holder", at=lamp)
    path = "holder?sysparm_fields=at,at.name&sysparm_display_value=1&sysparm_exclude_reference_link=1"
    assert data_of(change_in_other_process(lambda: None, path).get(path)) == [{"at": "Lamp", "at.name": "Lamp"}]
    assert data_of(change_in_other_process(lambda: drop_column("device", "name"), path).get(path)) == [{"at": None}]


def test_changed_rule_applies(change_in_other_process: Any, lamp: str):  # B56
    read_rule = Rule.objects.get(table__name="device")

    def rule_change(**values: Any) -> Callable[[], None]:
        def apply_change() -> None:
            for name, value in values.items():
                setattr(read_rule, name, value)
            saving.save_rule(read_rule)

        return apply_change

    assert data_of(change_in_other_process(rule_change(condition="price>5")).get("device")) == []
    assert error_of(change_in_other_process(rule_change(condition="price>5")).get(f"device/{lamp}"))[:2] == (
        404,
        "record_not_found",
    )
    assert len(data_of(change_in_other_process(rule_change(condition=""), f"device/{lamp}").get("device"))) == 1
    assert error_of(change_in_other_process(rule_change(active=False)).get("device")) == (404, "table_not_found", None)
    assert len(data_of(change_in_other_process(rule_change(active=True)).get(f"device/{lamp}"))) == 1
    assert error_of(change_in_other_process(lambda: read_rule.delete()).get(f"device/{lamp}"))[:2] == (
        404,
        "table_not_found",
    )


def test_new_rule_grants_access(change_in_other_process: Any, lamp: str):  # B56
    Rule.objects.all().filter(table__name="device").delete()
    rule("create", "device")
    caller = change_in_other_process(lambda: rule("read", "device"))
    assert column_values(caller.get("device"), "name") == ["Lamp"]


def test_changed_column_rule_applies(change_in_other_process: Any, lamp: str):  # B56
    caller = change_in_other_process(
        lambda: rule("read", "device", "price", roles=["other"]), "device?sysparm_query=price=5"
    )
    assert error_of(caller.get("device", query="price=5")) == (400, "unknown_field", "price")
    caller = change_in_other_process(
        lambda: Rule.objects.filter(column_name="price").delete(), "device?sysparm_query=price=5"
    )
    assert column_values(caller.get("device", query="price=5"), "price") == [5]


def test_rule_of_a_dropped_column_matches_nothing(change_in_other_process: Any, lamp: str):  # B74
    field("device", "is_open", "boolean")
    Rule.objects.filter(table__name="device").delete()
    rule("read", "device", condition="is_open=true^ORnameANYTHING")
    assert column_values(change_in_other_process(lambda: None).get("device"), "name") == ["Lamp"]
    caller = change_in_other_process(lambda: drop_column("device", "is_open"))
    assert error_of(caller.get("device")) == (404, "table_not_found", None)


def test_cursor_survives_a_catalogue_change(change_in_other_process: Any, lamp: str):  # B55
    for price in (6, 7):
        record("device", name="More", price=price)
    caller = change_in_other_process(lambda: None)
    path = f"device?{caller.get('device', query='ORDERBYprice', limit=1)['Link'].partition('?')[2].partition('>')[0]}"
    assert column_values(change_in_other_process(lambda: field("device", "colour")).get(path), "price") == [6]

    def change_type() -> None:
        drop_column("device", "price")
        field("device", "price", "datetime")

    assert change_in_other_process(change_type).get(path).status_code in (200, 400)
    assert change_in_other_process(lambda: drop_column("device", "price")).get(path).status_code == 400


def test_changed_views_and_choices_apply(change_in_other_process: Any, lamp: str):
    caller = change_in_other_process(lambda: view("device", "short", "name"), "device?sysparm_view=short")
    assert data_of(caller.get("device", view="short")) == [{"name": "Lamp"}]
    caller = change_in_other_process(lambda: View.objects.get(name="short").delete())
    assert error_of(caller.get("device", view="short")) == (400, "invalid_parameter", "sysparm_view")

    state_column = field("device", "state", choices={"1": "New"})
    record_id = record("device", state="1")
    caller = change_in_other_process(
        lambda: Choice.objects.get(column=state_column).delete(), f"device/{record_id}?sysparm_display_value=1"
    )
    assert data_of(caller.get(f"device/{record_id}", fields="state", display_value=1)) == [{"state": "1"}]


def test_rolled_back_change_does_not_apply(change_in_other_process: Any, lamp: str):
    from django.db import transaction

    def change_and_roll_back() -> None:
        with transaction.atomic():
            rule("read", "device", "price", roles=["other"])
            drop_column("device", "name")
            transaction.set_rollback(True)

    assert data_of(change_in_other_process(change_and_roll_back).get("device", fields="name,price")) == [
        {"name": "Lamp", "price": 5}
    ]


def test_table_can_be_added_while_the_catalogue_is_loaded(lamp: str, monkeypatch: pytest.MonkeyPatch):
    original_load, new_names = catalogue_loader._load_columns, iter(["room"])

    def load_columns_after_a_change(*args: Any) -> Any:
        for name in new_names:
            table(name)
            field(name, "floor")
            rule("read", name)
        return original_load(*args)

    monkeypatch.setattr(catalogue_loader, "_load_columns", load_columns_after_a_change)
    catalogue = catalogue_loader.load()
    assert "floor" in catalogue.tables["room"].columns and "room" in {rule.table for rule in catalogue.rules}

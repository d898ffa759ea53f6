"""The control of each column type, and the value of its text: a text that nobody changed has the same value."""

import json
from typing import Any

import pytest
from django.template.loader import render_to_string

from accounts.models import User
from system.errors import InvalidInput
from tableapi.catalogue.definitions import Table
from tableapi.database import catalogue_loader
from tableapi.models import Rule
from tableapi.read.context import Caller, ReadContext
from tests.tableapi import world
from tests.tableapi.column_types import EXAMPLE_IDS, EXAMPLES
from workspace.forms import controls

READABLE_TYPES = [name for name in EXAMPLES if name not in ("password", "secret")]


@pytest.fixture
def device(db: Any) -> None:
    world.table("maker")
    world.field("maker", "name", is_display=True)
    world.table("device")
    for name, example in EXAMPLES.items():
        attributes: dict[str, Any] = (
            {"target": "maker"} if example.values[0] in (EXAMPLE_IDS[0], [EXAMPLE_IDS[0]]) else {}
        )
        attributes |= {"choices": {"1": "New", "2": "Done"}} if name == "choice" else {}
        world.field("device", f"a_{name}", name, **attributes)
    for sys_id, name in zip(EXAMPLE_IDS, ("Acme", "Zeta"), strict=True):
        world.record("maker", sys_id=sys_id, name=name)
    world.open_table("maker")
    world.open_table("device")


def context_of(user: User) -> ReadContext:
    return Caller.of(user).context(catalogue_loader.reload_if_changed())


def device_table(context: ReadContext) -> Table:
    return context.view.open_table("device")


def rendered(context: ReadContext, name: str, text: str) -> str:
    column = device_table(context).columns[name]
    control = controls.control_of_text(context, column, text)
    return " ".join(render_to_string("workspace/control.html", {"control": control}).split())


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("type_name", READABLE_TYPES)
def test_the_text_of_a_stored_value_is_read_as_the_same_value(
    device: None, bob: User, type_name: str, number: int
) -> None:
    bob.time_zone = "Europe/Berlin"
    bob.save()
    name, value = f"a_{type_name}", EXAMPLES[type_name].values[number]
    ((created),) = world.data_of(world.api(bob).post("device", {name: value}))
    ((before),) = world.data_of(world.api(bob).get(f"device/{created['sys_id']}", display_value="all"))
    context = context_of(bob)
    column = device_table(context).columns[name]

    text = controls.form_text(column, before[name], context.caller.time_zone)
    parsed = controls.parse_control(context, column, text)

    assert text
    ((after),) = world.data_of(world.api(bob).put(f"device/{created['sys_id']}", {name: parsed}, display_value="all"))
    assert after == before  # the same version, too


def test_an_empty_control_has_no_value(device: None, bob: User) -> None:
    context = context_of(bob)
    values = [controls.parse_control(context, column, "") for column in device_table(context).columns.values()]
    assert set(values) == {None}


@pytest.mark.parametrize("text", [EXAMPLE_IDS[1], "Zeta", " Zeta "])
def test_a_reference_is_an_id_or_a_display_value(device: None, bob: User, text: str) -> None:
    context = context_of(bob)
    column = device_table(context).columns["a_reference"]
    assert controls.parse_control(context, column, text) == EXAMPLE_IDS[1]


def test_a_list_takes_ids_and_display_values_in_order(device: None, bob: User) -> None:
    context = context_of(bob)
    column = device_table(context).columns["a_list"]
    assert controls.parse_control(context, column, f"Zeta, {EXAMPLE_IDS[0]}") == [EXAMPLE_IDS[1], EXAMPLE_IDS[0]]


@pytest.mark.parametrize("text", ["Nobody", "171000000000000009"])
def test_a_missing_reference_is_reported_for_its_column(device: None, bob: User, text: str) -> None:
    context = context_of(bob)
    with pytest.raises(InvalidInput) as raised:
        controls.parse_control(context, device_table(context).columns["a_reference"], text)
    assert raised.value.as_item() == {
        "message": "Expected the display value of exactly one record that you can read.",
        "code": "invalid_value",
        "field": "a_reference",
    }


def test_a_record_that_the_caller_cannot_read_is_like_a_missing_one(device: None, bob: User) -> None:
    Rule.objects.filter(table__name="maker", operation="read").delete()
    world.rule("read", "maker", condition="name=Acme")
    context = context_of(bob)
    column = device_table(context).columns["a_reference"]
    assert controls.parse_control(context, column, "Acme") == EXAMPLE_IDS[0]
    for text in ("Zeta", EXAMPLE_IDS[1]):
        with pytest.raises(InvalidInput):
            controls.parse_control(context, column, text)
        assert 'data-items="[]"' in rendered(context, "a_reference", text)


def test_malformed_json_is_reported_for_its_column(device: None, bob: User) -> None:
    context = context_of(bob)
    with pytest.raises(InvalidInput) as raised:
        controls.parse_control(context, device_table(context).columns["a_json"], "{")
    assert raised.value.field == "a_json"


def test_a_picker_contains_the_chosen_record_and_works_without_scripts(device: None, bob: User) -> None:
    html = rendered(context_of(bob), "a_reference", EXAMPLE_IDS[0])
    assert 'value="Acme"' in html and 'data-picker="/tables/maker/options/"' in html
    assert json.dumps([{"id": EXAMPLE_IDS[0], "label": "Acme"}]).replace('"', "&quot;") in html


def test_a_select_has_an_empty_option_and_keeps_a_value_that_is_no_longer_a_choice(device: None, bob: User) -> None:
    html = rendered(context_of(bob), "a_choice", "9")
    assert '<option value=""></option>' in html
    assert '<option value="9" selected>9</option>' in html and '<option value="1">New</option>' in html


def test_a_text_keeps_a_line_break_at_its_start(device: None, bob: User) -> None:
    context = context_of(bob)
    control = controls.control_of_text(context, device_table(context).columns["a_text"], "\nsecond line")
    assert ">\n\nsecond line</textarea>" in render_to_string("workspace/control.html", {"control": control})

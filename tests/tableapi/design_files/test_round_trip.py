"""A design that is exported, and applied to an installation without it, is exported identically."""

from typing import Any

import pytest

from accounts.models import User
from tableapi.models import Column, Table
from tests.tableapi.world import ApiClient, api, field, open_table, role, rule, table, view

from .designs import EMPTY, apply, export, plan, random_design, steps_of

pytestmark = pytest.mark.django_db

GENERATED_TABLES = Table.objects.filter(name__regex="^t[0-9]+$")


@pytest.fixture
def designer(alice: User) -> ApiClient:
    return api(alice, credential="key")


@pytest.mark.parametrize(
    ("seed", "table_count"), [(1, 8), *(pytest.param(seed, 50, marks=pytest.mark.nightly) for seed in range(2, 5))]
)
def test_design_is_exported_identically_after_it_was_applied(designer: ApiClient, seed: int, table_count: int):
    shipped = export(designer)
    steps_of(apply(designer, random_design(seed, table_count), prune=1))
    first_export = export(designer)
    assert GENERATED_TABLES.all().count() == table_count
    assert steps_of(plan(designer, first_export, prune=1)) == []
    steps_of(apply(designer, EMPTY, prune=1))
    assert not GENERATED_TABLES.all().exists()
    steps_of(apply(designer, first_export))
    assert export(designer) == first_export
    steps_of(apply(designer, shipped, prune=1))
    assert export(designer) == shipped


def test_shipped_design_needs_no_steps(designer: ApiClient):
    text = export(designer)
    assert steps_of(plan(designer, text, prune=1)) == []
    assert "name: task" in text and "name: itil" in text and "set_on_change" in text


def test_design_of_the_administration_is_exported_by_name(designer: ApiClient):
    table("maker", number_prefix="MK")
    table("device", deferred_create=True)
    field("device", "state", choices={"2": "Old", "1": "New"}, default_value="1")
    field("device", "made_by", label="No", target="maker")
    field("maker", "best", target="device")
    field("user", "x_size", "integer")
    role("agent", contains=["itil"])
    rule("read", "device", "state", roles=["agent"], condition="state=1", description="Agents")
    open_table("device")
    view("device", "short", "made_by.number", "state")
    text = export(designer)
    assert "reference_table: maker" in text and "- agent" in text and "- path: made_by.number" in text
    assert "label: 'No'" in text and text.index("value: '2'") < text.index("label: New")
    steps_of(apply(designer, EMPTY, prune=1))
    assert not Column.objects.filter(name="x_size").exists()
    steps_of(apply(designer, text))
    assert export(designer) == text
    assert steps_of(apply(designer, text)) == []


def test_file_may_contain_only_a_part(designer: ApiClient):
    table("device", number_prefix="DEV")
    open_table("device")
    part: dict[str, Any] = {"tables": [{"name": "device", "columns": [{"name": "x", "label": "X", "type": "string"}]}]}
    assert steps_of(apply(designer, part, prune=1)) == [("create", "column device.x")]
    device = Table.objects.get(name="device")
    assert (device.number_prefix, device.rules.count(), device.columns.count()) == ("DEV", 4, 2)

"""What the deletion of a column changes besides the column."""

from typing import Any

import pytest

from tableapi.design import change_costs, saving
from tableapi.models import Rule, Table, View, ViewColumn
from tests.tableapi.designs import make_column, make_table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db: Any) -> Table:
    return make_table("device")


def test_deleting_a_column_names_its_rules_and_views(device: Table):  # B74
    model_column = make_column(device, "model", is_indexed=True)
    make_column(device, "label")
    ticket = make_table("ticket")
    make_column(ticket, "device", "reference", reference_table=device)
    make_column(ticket, "models")
    for table, values in (
        (device, {"condition": "sys_version=1^ORmodel=x"}),
        (device, {"column_name": "model"}),
        (ticket, {"condition": "device.modelISEMPTY"}),
        (ticket, {"condition": "modelsISEMPTY"}),  # only has a similar name
        (None, {"condition": "modelISNOTEMPTY"}),
        (None, {"column_name": "model"}),
        (device, {"condition": "sys_idAREfox"}),
        (ticket, {"column_name": "models", "condition": "device.model=x"}),
        (device, {"condition": "labelSAMEASmodel"}),
        (None, {"condition": "sys_versionISNOTEMPTY"}),
    ):
        saving.save_rule(Rule(operation="read", table=table, **values))
    for name, path in (("asking", "device.model"), ("other", "models")):
        view = View(table=ticket, name=name)
        saving.save_view(view)
        saving.save_view_column(ViewColumn(view=view, path=path, position=1))

    costs = list(change_costs.costs_of_deletion(model_column))
    message = "” stays, whose condition uses this column and will no longer match any record."
    assert costs[0].endswith("is deleted.")
    assert costs[1].startswith("The access rule “read device.model” is deleted with “")
    assert sorted(costs[2:-1]) == [
        "The access rule “read any table where modelISNOTEMPTY" + message,
        "The access rule “read any table.model” stays, which applies to this column.",
        "The access rule “read device where labelSAMEASmodel" + message,
        "The access rule “read device where sys_idAREfox” stays, whose word search will no longer cover this column.",
        "The access rule “read device where sys_version=1^ORmodel=x" + message,
        "The access rule “read ticket where device.modelISEMPTY" + message,
        "The access rule “read ticket.models where device.model=x" + message,
    ]
    assert costs[-1].startswith("The view “asking” of ticket no longer shows “")


def test_rule_with_a_relative_value_is_named(device: Table):  # B74
    due_column = make_column(device, "due", "datetime")
    saving.save_rule(Rule(operation="read", table=device, condition="sys_created_atMORETHANdue@day@after@1"))
    costs = " ".join(change_costs.costs_of_deletion(due_column))
    assert "MORETHANdue@day@after@1” stays, whose condition uses this column" in costs

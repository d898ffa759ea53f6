"""Fixtures of the import tests."""

from typing import Any

import pytest

from tableapi.models import Table
from tests.tableapi.world import field, open_table, table


@pytest.fixture
def closed_part(db: Any) -> Table:
    """Parts with a column of each kind, which only administrators may access."""
    table("shop")
    field("shop", "name", is_display=True)
    field("shop", "code", is_unique=True)
    part = table("part", number_prefix="PRT")
    field("part", "name", mandatory=True)
    field("part", "code", is_unique=True)
    field("part", "quantity", "integer", default_value="1")
    field("part", "price", "decimal")
    field("part", "state", choices={"1": "New", "2": "In use"})
    field("part", "is_spare", "boolean")
    field("part", "bought_on", "date")
    field("part", "checked_at", "datetime")
    field("part", "shop", target="shop")
    field("part", "shops", "list", target="shop")
    field("part", "parent", target="part")
    field("part", "data", "json")
    return part


@pytest.fixture
def part(closed_part: Table) -> Table:
    open_table("shop")
    open_table("part")
    return closed_part

"""Stores all callers of the oracle."""

from typing import Any

import pytest

from tests.tableapi.laws import storage


@pytest.fixture(autouse=True)
def known_callers(db: Any) -> None:
    storage.create_callers()

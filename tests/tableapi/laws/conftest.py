"""Creates the users, groups and roles of the oracle for each test."""

from typing import Any

import pytest

from tests.tableapi.laws import storage


@pytest.fixture(autouse=True)
def stored_callers(db: Any) -> None:
    storage.create_callers()

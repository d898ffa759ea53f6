"""Stores all callers of the oracle, and stops the clock of the database."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from tests.tableapi.laws import storage
from tests.tableapi.noninterference import runner


@pytest.fixture(autouse=True)
def stored_callers(db: Any) -> Iterator[None]:
    storage.create_callers()
    runner.stop_database_clock()
    yield
    # A connection keeps memory for each of the thousands of dropped tables.
    connection.close()

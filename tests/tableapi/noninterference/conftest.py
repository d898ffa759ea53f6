"""All callers that the oracle knows exist, and the clock is stopped."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from tests.tableapi.laws import storage
from tests.tableapi.noninterference import running


@pytest.fixture(autouse=True)
def known_callers(db: Any) -> Iterator[None]:
    storage.create_callers()
    running.fix_database_clock()
    yield
    # PostgreSQL keeps something for each of thousands of tables that came and went, until the connection ends.
    connection.close()

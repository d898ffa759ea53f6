"""All callers that the oracle knows exist, and the clock is stopped."""

from typing import Any

import pytest

from tests.tableapi.laws import storage
from tests.tableapi.noninterference import running


@pytest.fixture(autouse=True)
def cast(db: Any) -> None:
    storage.create_callers()
    running.stop_the_clock()

"""Routes that exist only in tests."""

from typing import Any

import pytest


@pytest.fixture
def own_routes(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.system.routes"

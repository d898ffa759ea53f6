"""Routes that exist only in tests."""

from typing import Any

import pytest


@pytest.fixture
def routes_of_tests(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.system.routes"

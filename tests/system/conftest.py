"""Routes that exist only for tests of what every route shares."""

from typing import Any

import pytest


@pytest.fixture
def own_routes(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.system.routes"

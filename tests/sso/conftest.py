"""A hostile provider, permission to call it, and the browser of the single sign-on administrator."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests.providers.hostile import HostileProvider


@pytest.fixture
def allow_http(settings: Any) -> None:
    """Allows http and loopback providers, as in development."""
    settings.OUTBOUND_POLICY = {**settings.OUTBOUND_POLICY, "allow_http": True}


@pytest.fixture
def provider(allow_http: None) -> Iterator[HostileProvider]:
    with HostileProvider() as provider:
        yield provider


@pytest.fixture
def as_sonja(sonja: User) -> Client:
    client = Client()
    client.force_login(sonja)
    return client

"""Callers of document collections."""

import pytest

from accounts.models import User
from tests.collections_app.http.calls import Caller, by_key


@pytest.fixture
def as_admin(alice: User) -> Caller:
    return by_key(alice)


@pytest.fixture
def manager(carl: User) -> Caller:
    """Carl, who makes collections."""
    return by_key(carl)


@pytest.fixture
def stranger(bob: User) -> Caller:
    """Bob, who has no role."""
    return by_key(bob)

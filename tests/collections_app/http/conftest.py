"""Callers of document collections."""

import pytest

from accounts.models import User
from tests.collections_app.http.calls import KeyCaller, make_key_caller


@pytest.fixture
def as_admin(alice: User) -> KeyCaller:
    return make_key_caller(alice)


@pytest.fixture
def manager(carl: User) -> KeyCaller:
    """Carl, who has the role collection_admin."""
    return make_key_caller(carl)


@pytest.fixture
def stranger(bob: User) -> KeyCaller:
    """Bob, who has no role."""
    return make_key_caller(bob)

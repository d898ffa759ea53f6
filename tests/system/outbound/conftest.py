"""A policy that allows calls to loopback, and a resolver that returns the loopback address for every name."""

import pytest

from system.outbound import Policy

from .hostile import FakeResolver


@pytest.fixture
def loopback_resolver() -> FakeResolver:
    return FakeResolver(["127.0.0.1"])


@pytest.fixture
def policy(loopback_resolver: FakeResolver) -> Policy:
    return Policy(allow_http=True, resolve=loopback_resolver)


@pytest.fixture
def deadline_policy(loopback_resolver: FakeResolver) -> Policy:
    """Deadlines that are short enough for tests, and long enough for calls that do not stall."""
    return Policy(allow_http=True, resolve=loopback_resolver, connect_s=0.4, total_s=0.5)

"""Knows on whose behalf the running code works: who a record's `sys_created_by` and the history name."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_actor: ContextVar[str | None] = ContextVar("actor", default=None)


def current() -> str | None:
    """The `sys_id` of the user that acts, or None for the system itself."""
    return _actor.get()


def become(sys_id: str | None) -> None:
    """From here on this user acts in the running request; the request's middleware ends it."""
    _actor.set(sys_id)


@contextmanager
def acting_as(sys_id: str | None) -> Iterator[None]:
    token = _actor.set(sys_id)
    try:
        yield
    finally:
        _actor.reset(token)

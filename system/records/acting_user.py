"""Knows on whose behalf the running code works: who a record's `sys_created_by` and the history name."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_actor: ContextVar[str | None] = ContextVar("actor", default=None)
_roles: ContextVar[frozenset[str] | None] = ContextVar("roles", default=None)


def current() -> str | None:
    """The `sys_id` of the user that acts, or None for the system itself."""
    return _actor.get()


def role_names() -> frozenset[str] | None:
    """The roles that the credentials give, which may be fewer than the user's; None: all that the user holds."""
    return _roles.get()


def become(sys_id: str | None, roles: frozenset[str] | None = None) -> None:
    """From here on this user acts in the running request; the request's middleware ends it."""
    _actor.set(sys_id)
    _roles.set(roles)


@contextmanager
def acting_as(sys_id: str | None) -> Iterator[None]:
    before, roles = _actor.set(sys_id), _roles.set(None)
    try:
        yield
    finally:
        _actor.reset(before)
        _roles.reset(roles)

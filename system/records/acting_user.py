"""The user on whose behalf the code runs, as stored in `sys_created_by` and the history."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_acting_user: ContextVar[str | None] = ContextVar("actor", default=None)
_roles: ContextVar[frozenset[str] | None] = ContextVar("roles", default=None)


def current() -> str | None:
    """The `sys_id` of the acting user, or None for the system."""
    return _acting_user.get()


def role_names() -> frozenset[str] | None:
    """The roles of the credentials, which can be a subset of the user's; None for all roles of the user."""
    return _roles.get()


def set_current(sys_id: str | None, roles: frozenset[str] | None = None) -> None:
    """Set the acting user for the rest of the request; the middleware resets it."""
    _acting_user.set(sys_id)
    _roles.set(roles)


@contextmanager
def acting_as(sys_id: str | None) -> Iterator[None]:
    user_token, roles_token = _acting_user.set(sys_id), _roles.set(None)
    try:
        yield
    finally:
        _acting_user.reset(user_token)
        _roles.reset(roles_token)

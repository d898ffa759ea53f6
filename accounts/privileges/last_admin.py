"""Keeps at least one active user with the role admin."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from accounts import roles
from accounts.models import Role, User
from system.errors import Conflict


class NoAdminLeft(Conflict):
    code = "last_admin"
    message = "At least one active user must have the role admin."


@contextmanager
def ensure_admin_remains(had_admin: bool | None = None) -> Iterator[None]:
    """Rolls back a change that removes the last active holder of `admin`; does nothing if there was none before.

    Pass `had_admin` when the change started earlier: whether there was an administrator at that time.
    """
    with transaction.atomic():
        had_admin = has_admin() if had_admin is None else had_admin
        yield
        # Serialized: two concurrent changes would each rely on the administrator that the other removes.
        Role.objects.select_for_update(no_key=True).get(name=roles.ADMIN)
        if had_admin and not has_admin():
            raise NoAdminLeft


def has_admin() -> bool:
    admin = Role.objects.get(name=roles.ADMIN)
    return User.objects.filter(active=True, grants__role__in=roles.containing_ids(admin.pk)).exists()

"""The rule that somebody must be able to administer: an active user who holds the role admin."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from accounts import roles
from accounts.models import Role, User
from system.errors import Conflict


class NoAdminLeft(Conflict):
    code = "last_admin"
    message = "Nobody could administer any more: at least one active user must hold the role admin."


@contextmanager
def keeping_an_admin() -> Iterator[None]:
    """Undo a change after which no active user holds `admin`."""
    with transaction.atomic():
        yield
        # One after the other: two changes at once would each count on the administrator that the other takes away.
        admin = Role.objects.select_for_update(no_key=True).get(name=roles.ADMIN)
        if not User.objects.filter(active=True, grants__role__in=roles.ids_that_give(admin.pk)).exists():
            raise NoAdminLeft

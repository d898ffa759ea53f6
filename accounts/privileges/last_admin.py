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
def keeping_an_admin(was_there: bool | None = None) -> Iterator[None]:
    """Undo a change that takes the last active holder of `admin` away; where there was none, nothing is taken.

    `was_there` is for a change that has begun before: whether there was one until then.
    """
    with transaction.atomic():
        was_there = is_there() if was_there is None else was_there
        yield
        # One after the other: two changes at once would each count on the administrator that the other takes away.
        Role.objects.select_for_update(no_key=True).get(name=roles.ADMIN)
        if was_there and not is_there():
            raise NoAdminLeft


def is_there() -> bool:
    admin = Role.objects.get(name=roles.ADMIN)
    return User.objects.filter(active=True, grants__role__in=roles.ids_that_give(admin.pk)).exists()

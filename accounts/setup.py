"""Makes the administrator of a new installation."""

from collections.abc import Callable

from django.db import transaction

from accounts import roles
from accounts.models import Role, User, UserRole


def create_administrator(login: str, password: Callable[[], str]) -> None:
    """Once: while nobody holds the role `admin`, directly or through another role."""
    admin = Role.objects.get(name=roles.ADMIN)
    if UserRole.objects.filter(role__in=roles.ids_that_give(admin.pk)).exists():
        return
    with transaction.atomic():
        user = User.objects.spelled(login) or User.objects.create_user(login, password())
        UserRole.objects.create(user=user, role=admin)

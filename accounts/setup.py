"""Creates the administrator of a new installation."""

from collections.abc import Callable

from django.db import transaction

from accounts import roles
from accounts.models import Role, User, UserRole


def create_administrator(login: str, create_password: Callable[[], str]) -> None:
    """Does nothing if a user has the role `admin`, directly or through another role."""
    admin = Role.objects.get(name=roles.ADMIN)
    if UserRole.objects.filter(role__in=roles.containing_ids(admin.pk)).exists():
        return
    with transaction.atomic():
        user = User.objects.find_by_exact_login(login) or User.objects.create_user(login, create_password())
        UserRole.objects.create(user=user, role=admin)

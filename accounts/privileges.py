"""Protects privileged accounts, and creates and keeps at least one active user with the role admin.

Protected roles are those that no sign-in may grant; an account that holds one is privileged. Only the system itself and
administrators may change how a user signs in to one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts import roles
from accounts.models import Role, User, UserRole
from system.errors import Conflict
from system.records import acting_user


def acts_as_admin() -> bool:
    """Whether an administrator or the system itself acts; a key that is limited to other roles does not count."""
    user_id, role_names = acting_user.current(), acting_user.role_names()
    if user_id is None:
        return True
    if role_names is not None:
        return roles.ADMIN in role_names
    user = User.objects.filter(pk=user_id).first()
    return user is not None and user.has_role(roles.ADMIN)


def protected_roles() -> QuerySet[Role]:
    return Role.objects.filter(Q(grantable_by_sign_in=False) | Q(name=roles.ADMIN))


def protected_role_of(user: User) -> Role | None:
    return protected_roles().filter(name__in=user.role_names).order_by("name").first()


def may_change_account(user: User) -> bool:
    """Whether the acting user may change the credentials, email or state of this account."""
    return acts_as_admin() or protected_role_of(user) is None


class NoAdminLeft(Conflict):
    code = "last_admin"
    message = "At least one active user must have the role admin."


@contextmanager
def ensure_admin_remains(had_admin: bool | None = None) -> Iterator[None]:
    """Rolls back a change that removes the last active holder of `admin`; does nothing if there was none before.

    If the change started earlier, pass whether there was an administrator at that time.
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


def create_administrator(login: str, create_password: Callable[[], str]) -> None:
    """Does nothing if a user has the role `admin`, directly or through another role."""
    admin = Role.objects.get(name=roles.ADMIN)
    if UserRole.objects.filter(role__in=roles.containing_ids(admin.pk)).exists():
        return
    with transaction.atomic():
        user = User.objects.find_by_exact_login(login) or User.objects.create_user(login, create_password())
        UserRole.objects.create(user=user, role=admin)

"""Protects privileged accounts: only the system itself and holders of admin may change how somebody signs in to one.

Protected roles are those that no sign-in may grant; an account that holds one is privileged.
"""

from django.db.models import Q, QuerySet

from accounts import roles
from accounts.models import Role, User
from system.records import acting_user


def is_trusted() -> bool:
    """Whether the request acts as an administrator; a key that is limited to other roles does not."""
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
    return is_trusted() or protected_role_of(user) is None

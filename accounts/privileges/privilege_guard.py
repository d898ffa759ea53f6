"""In charge of who is believed without a second look where a change could open an account with more rights: the system
itself, and holders of admin. Guarded roles are those that no sign-in may grant; their holders are such accounts."""

from django.db.models import Q, QuerySet

from accounts import roles
from accounts.models import Role, User
from system.records import acting_user


def is_trusted() -> bool:
    """By the credentials of the request: a key that is scoped to other roles makes nobody an administrator."""
    acting, given = acting_user.current(), acting_user.role_names()
    if acting is None:
        return True
    if given is not None:
        return roles.ADMIN in given
    found = User.objects.filter(pk=acting).first()
    return found is not None and found.has_role(roles.ADMIN)


def guarded_roles() -> QuerySet[Role]:
    return Role.objects.filter(Q(grantable_by_sign_in=False) | Q(name=roles.ADMIN))


def guarded_role_of(user: User) -> Role | None:
    return guarded_roles().filter(name__in=user.role_names).order_by("name").first()


def may_change_account(user: User) -> bool:
    """Whether who acts may change by what, and whether, somebody comes into this account."""
    return is_trusted() or guarded_role_of(user) is None

"""In charge of whom a change of sign-on is believed without a second look: the system itself, and holders of admin."""

from accounts import roles
from accounts.models import User
from system import actor


def is_trusted() -> bool:
    """By the credentials of the request: a key that is scoped to other roles makes nobody an administrator."""
    acting, given = actor.current(), actor.role_names()
    if acting is None:
        return True
    if given is not None:
        return roles.ADMIN in given
    found = User.objects.filter(pk=acting).first()
    return found is not None and found.has_role(roles.ADMIN)

"""What single sign-on adds to the admin pages of users."""

from collections.abc import Iterable

from accounts.admin import users as people
from accounts.models import User
from sso.models import IdentityLink, OidcSetting
from system.admin_site.name_lists import first_of

COME_BACK = (
    "The connection “{name}” makes an account for whoever has none (Enable user creation): at their next sign-in {who} "
    "would get a new one. To keep somebody out, clear Active instead of deleting."
)


@people.warns_before_deletion
def come_back(users: Iterable[User]) -> Iterable[str]:
    """Whom the active connection signs in, it would let in again."""
    setting = OidcSetting.active_one()
    if setting is None or not setting.enable_user_creation:
        return
    tied = IdentityLink.objects.filter(user__in=[user.pk for user in users], issuer=setting.issuer)
    named = tied.order_by("user__login").values_list("user__login", flat=True)[: people.MOST_NAMED + 1]
    if logins := list(named):
        yield COME_BACK.format(name=setting.name, who=first_of(logins, people.MOST_NAMED))

"""Warnings that single sign-on adds to the admin pages of users and properties."""

from collections.abc import Iterable

from accounts.admin import users as user_pages
from accounts.models import User
from sso.models import IdentityLink, OidcSetting
from system import admin, properties
from system.admin_site.name_lists import summarize_names
from system.models import Property


@user_pages.DELETION_WARNINGS.register
def warn_about_recreation(users: Iterable[User]) -> Iterable[str]:
    setting = OidcSetting.get_active()
    if setting is None or not setting.enable_user_creation:
        return
    links = IdentityLink.objects.filter(user__in=[user.pk for user in users], issuer=setting.issuer)
    logins = list(links.order_by("user__login").values_list("user__login", flat=True)[: user_pages.MAX_NAMES + 1])
    if logins:
        yield (
            f"The connection “{setting.name}” creates missing accounts (Enable user creation). The next sign-in of "
            f"{summarize_names(logins, user_pages.MAX_NAMES)} would create a new account. To block a user, clear "
            "Active instead of deleting the user."
        )


@admin.PROPERTY_WARNINGS.register
def warn_about_welcome_page(saved_property: Property) -> Iterable[str]:
    setting = OidcSetting.get_active() if saved_property.name == properties.WELCOME_PAGE.name else None
    if setting is not None and saved_property.value != setting.redirect_uri:
        yield (
            f"The active connection “{setting.name}” set this property to its Redirect URI, {setting.redirect_uri}. "
            "Visitors to / no longer go to the provider. Saving the connection sets the property again."
        )

"""What single sign-on adds to the admin page of a property: the active connection sets the welcome page."""

from collections.abc import Iterable

from sso.models import OidcSetting
from system import admin, properties
from system.models import Property

NOT_LED = (
    "The connection “{name}” is active and had set this to its Redirect URI, {redirect_uri}: visitors of / are not led "
    "to the provider any more. The next save of the connection sets it again."
)


@admin.told_on_saving
def leads_past_the_provider(changed: Property) -> Iterable[str]:
    setting = OidcSetting.active_one() if changed.name == properties.WELCOME_PAGE.name else None
    if setting is not None and changed.value != setting.redirect_uri:
        yield NOT_LED.format(name=setting.name, redirect_uri=setting.redirect_uri)

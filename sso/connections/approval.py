"""In charge of which changes of a connection an administrator has to look at before guarded roles come in by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.privileges import privilege_guard

if TYPE_CHECKING:
    from sso.models import OidcSetting

# What decides who may come in: changed by somebody without the role admin, an administrator has to look at it.
DECISIVE = (
    "url_idp", "realm", "client_id", "user_field", "script", "role_claim", "enable_user_creation", "ignore_case",
    "enable_role_mapping", "update_data_when_login", "authorization_type", "response_type",
)  # fmt: skip


def is_due(before: OidcSetting | None, setting: OidcSetting) -> bool:
    """Whether the connection awaits an approval once whoever acts now has saved it like this.

    What others changed before stays to be approved: who saves one column has not looked at the others.
    """
    return setting.needs_approval or (decides_anew(before, setting) and not privilege_guard.is_trusted())


def decides_anew(before: OidcSetting | None, setting: OidcSetting) -> bool:
    if before is None or any(getattr(before, name) != getattr(setting, name) for name in DECISIVE):
        return True
    return setting.active and not before.active

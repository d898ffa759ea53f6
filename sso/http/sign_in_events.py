"""Records the outcome of a sign-in in the sign-in log and in the server log."""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import structlog
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from accounts.models import User
from sso.models import OidcSetting, SignIn
from system import process_cache
from system.monitoring.logs import clean

logger = structlog.get_logger(__name__)

# Anyone can send responses that belong to no attempt.
MAX_STRAY_ENTRIES = 30
STRAY_WINDOW_S = 60.0


@dataclass
class SignInEvent:
    """A response of the provider, as the sign-in log records it."""

    address: str
    started_at: float = field(default_factory=time.monotonic)
    setting: OidcSetting | None = None
    is_stray: bool = True
    """True until the response has been matched to an attempt."""
    login: str = ""
    user: User | None = None

    @classmethod
    def from_request(cls, request: HttpRequest) -> Self:
        return cls(request.META.get("REMOTE_ADDR", ""))

    def set_login(self, claims: Mapping[str, Any]) -> None:
        """Set the login to the provider's name for the user."""
        name = next((claims[name] for name in ("preferred_username", "email", "sub") if claims.get(name)), "")
        self.login = str(name)

    def record(self, outcome: str, detail: str = "", *, is_visit: bool = False) -> None:
        """`is_visit`: somebody opened the URL without signing in, which only the server log records."""
        is_ok = outcome == SignIn.OK
        log = logger.info if is_ok or is_visit else logger.warning
        name = self.setting.name if self.setting else ""
        log("sign_in" if is_ok else "sign_in_refused", outcome=outcome, connection=name, detail=detail)
        if is_visit:
            return
        try:
            with transaction.atomic():
                self._write(self._build_entry(name, outcome, detail, user=self.user, setting=self.setting))
        except IntegrityError:  # the connection or the account was deleted during the sign-in
            with transaction.atomic():
                self._write(self._build_entry(name, outcome, detail))

    def _write(self, entry: SignIn) -> None:
        """Anyone can cause refusals, so equal ones share an entry and those that belong to no attempt are limited."""
        is_merged = entry.outcome != SignIn.OK and entry.merge_into_existing()
        if not is_merged and (not self.is_stray or reserve_stray_entry()):
            entry.save()

    def _build_entry(self, name: str, outcome: str, detail: str, **references: Any) -> SignIn:
        return SignIn(
            **references,
            setting_name=name[:200],
            login=str(clean(self.login))[:255],
            outcome=outcome,
            detail=str(clean(detail))[:1000],
            address=self.address[:45],
            duration_ms=int((time.monotonic() - self.started_at) * 1000),
        )


# The times of the last entries that belong to no attempt. The limit keeps strangers from filling the table.
STRAY_ENTRY_TIMES: deque[float] = deque(maxlen=MAX_STRAY_ENTRIES)
process_cache.register("stray log entries", STRAY_ENTRY_TIMES.clear)


def reserve_stray_entry() -> bool:
    now = time.monotonic()
    if len(STRAY_ENTRY_TIMES) == MAX_STRAY_ENTRIES and now - STRAY_ENTRY_TIMES[0] < STRAY_WINDOW_S:
        return False
    STRAY_ENTRY_TIMES.append(now)
    return True

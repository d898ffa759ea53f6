"""In charge of what is written about a return from the provider: its entry in the sign-in log and its log line."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import IntegrityError, transaction

from accounts.models import User
from sso.models import OidcSetting, SignIn
from system import process_cache
from system.monitoring.logs import clean

logger = structlog.get_logger(__name__)

# Returns that no attempt of ours led to can be made by anybody, as many as they like.
MOST_STRAY_ENTRIES = 30
STRAY_WITHIN_S = 60.0


@dataclass
class SignInEvent:
    """One return from the provider, as the log tells it."""

    address: str
    began: float = field(default_factory=time.monotonic)
    setting: OidcSetting | None = None
    is_stray: bool = True
    """Until an attempt of ours is found that it answers."""
    login: str = ""
    user: User | None = None

    def names(self, claims: Mapping[str, Any]) -> None:
        """What the provider called somebody."""
        said = next((claims[name] for name in ("preferred_username", "email", "sub") if claims.get(name)), "")
        self.login = str(said)

    def note(self, outcome: str, detail: str = "") -> None:
        is_ok = outcome == SignIn.OK
        log = logger.info if is_ok else logger.warning
        name = self.setting.name if self.setting else ""
        log("sign_in" if is_ok else "sign_in_refused", outcome=outcome, connection=name, detail=detail)
        try:
            with transaction.atomic():
                self._write(self._entry(name, outcome, detail, user=self.user, setting=self.setting))
        except IntegrityError:  # the connection or the account was deleted meanwhile
            with transaction.atomic():
                self._write(self._entry(name, outcome, detail))

    def _write(self, entry: SignIn) -> None:
        """Refusals can be made by anybody: equal ones are one entry, and those that answer no attempt are few."""
        is_there = entry.outcome != SignIn.OK and entry.fold()
        if not is_there and (not self.is_stray or STRAY.may_write()):
            entry.save()

    def _entry(self, name: str, outcome: str, detail: str, **of: Any) -> SignIn:
        return SignIn(
            **of,
            setting_name=name[:200],
            login=str(clean(self.login))[:255],
            outcome=outcome,
            detail=str(clean(detail))[:1000],
            address=self.address[:45],
            duration_ms=int((time.monotonic() - self.began) * 1000),
        )


class Stray:
    """Counts log entries that belong to no attempt, so that nobody can fill the table."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def may_write(self) -> bool:
        now = time.monotonic()
        self.times = [at for at in self.times if now - at < STRAY_WITHIN_S]
        if len(self.times) >= MOST_STRAY_ENTRIES:
            return False
        self.times.append(now)
        return True


STRAY = Stray()
process_cache.register("stray log entries", lambda: STRAY.times.clear())

"""In charge of access keys: 256 random bits shown once, stored as a hash, with name, expiry, last use, role scope."""

import threading
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from accounts.models.access_keys import PREFIX, AccessKey, digest

if TYPE_CHECKING:
    from accounts.models import User

FROM_LOGIN_FOR = timedelta(hours=12)
MOST_FROM_LOGIN = 20
# Where nobody says otherwise.
VALID_FOR = timedelta(days=90)
# A look-up is remembered this long in each process: a revoked key works no longer than that.
REMEMBERED_FOR_S = 1.0
MOST_REMEMBERED = 10_000
LAST_USE_EVERY = timedelta(minutes=1)


def make(user: "User", name: str, *, expires_at: datetime | None, scope: list[str] | None = None) -> str:
    """A new named key; returns its secret, which is never readable again."""
    key = AccessKey(user=user, name=name, expires_at=expires_at, scope=scope or [])
    secret = key.arm()
    key.save()
    return secret


def make_from_login(user: "User") -> str:
    """A key for a client that signed in by the API; the oldest beyond twenty go."""
    with transaction.atomic():
        type(user)._base_manager.select_for_update().get(pk=user.pk)
        own = AccessKey.objects.filter(user=user, kind=AccessKey.LOGIN)
        kept = own.order_by("-sys_id").values_list("sys_id", flat=True)[: MOST_FROM_LOGIN - 1]
        own.exclude(sys_id__in=list(kept)).delete()
        key = AccessKey(user=user, name="sign-in by API", kind=AccessKey.LOGIN)
        key.expires_at = timezone.now() + FROM_LOGIN_FOR
        secret = key.arm()
        key.save()
    return secret


class Remembered:
    """Recent look-ups of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: dict[str, tuple[float, User]] = {}

    def get(self, hashed: str) -> "User | None":
        entry = self.found.get(hashed)
        return entry[1] if entry and time.monotonic() - entry[0] < REMEMBERED_FOR_S else None

    def put(self, hashed: str, user: "User", asked_at: float) -> None:
        with self.lock:
            if len(self.found) >= MOST_REMEMBERED:
                self.found.clear()
            self.found[hashed] = (asked_at, user)

    def forget(self) -> None:
        with self.lock:
            self.found.clear()


REMEMBERED = Remembered()


def owner(secret: str) -> "User | None":
    """The active user of a valid key, narrowed to the key's scope; None for every other reason alike."""
    if not secret.startswith(PREFIX) or len(secret) > 100:
        return None
    hashed = digest(secret)
    # The time before the question: an answer is never older than it says.
    asked_at = time.monotonic()
    return REMEMBERED.get(hashed) or look_up(hashed, asked_at)


def look_up(hashed: str, asked_at: float) -> "User | None":
    key = AccessKey.objects.select_related("user").filter(digest=hashed).first()
    if key is None or key.is_expired or not key.user.is_active:
        return None
    if key.scope:
        key.user.narrow_to(key.scope)
    key.user.role_names  # noqa: B018  (read now, so that a remembered user needs no query)
    note_use(key)
    REMEMBERED.put(hashed, key.user, asked_at)
    return key.user


def note_use(key: AccessKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > LAST_USE_EVERY:
        AccessKey.objects.filter(pk=key.pk).update(last_used_at=now)

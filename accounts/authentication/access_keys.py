"""Creates and looks up access keys. A key is 256 random bits, shown once and stored as a hash."""

import time
from datetime import datetime, timedelta

from django.db import OperationalError, transaction
from django.db.models import Case, Q, When
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import AccessKey, User
from accounts.models.access_keys import PREFIX, digest
from system.error_details import is_disk_full
from system.process_cache import WeightedCache

FROM_LOGIN_FOR = timedelta(hours=12)
MAX_KEYS_FROM_LOGIN = 20
# Default lifetime of a named key.
VALID_FOR = timedelta(days=90)
# Each process caches a look-up for this long, so a revoked key stops working within that time.
REMEMBERED_FOR_S = 1.0
REMEMBERED_BYTES = 16 * 1024 * 1024
PER_USER = 4_000
PER_ROLE = 120
LAST_USE_EVERY = timedelta(minutes=1)


def create(user: User, name: str, *, expires_at: datetime | None, scope: list[str] | None = None) -> str:
    """Creates a named key and returns its secret, which cannot be read again."""
    key = AccessKey(user=user, name=name, expires_at=expires_at, scope=scope or [])
    secret = key.arm()
    key.save()
    return secret


def create_for_login(user: User) -> str:
    """Creates a key for a client that signed in by API; deletes the oldest beyond twenty."""
    with transaction.atomic():
        type(user)._base_manager.select_for_update().get(pk=user.pk)
        own = AccessKey.objects.filter(user=user, kind=AccessKey.LOGIN)
        # Keys from before the clock was set back count as the oldest, though their ids are the largest.
        is_older = Case(When(expires_at__gt=Now() + FROM_LOGIN_FOR, then=1), default=0)
        newest = own.order_by(is_older, "-sys_id").values_list("sys_id", flat=True)[: MAX_KEYS_FROM_LOGIN - 1]
        own.exclude(sys_id__in=list(newest)).delete()
        key = AccessKey(user=user, name="sign-in by API", kind=AccessKey.LOGIN)
        key.expires_at = Now() + FROM_LOGIN_FOR
        secret = key.arm()
        key.save()
    return secret


# Recent look-ups of this process: a digest, when it was looked up, and whose it is.
REMEMBERED: WeightedCache[str, tuple[float, User]] = WeightedCache(
    "access keys", limit=REMEMBERED_BYTES, weigh=lambda _, entry: PER_USER + PER_ROLE * len(entry[1].role_names)
)


def owner(secret: str) -> User | None:
    """Returns the active user of a valid key, limited to the key's scope; None in every other case."""
    if not secret.startswith(PREFIX) or len(secret) > 100:
        return None
    hashed = digest(secret)
    # Taken before the query, so that an entry is never older than it claims.
    asked_at = time.monotonic()
    entry = REMEMBERED.get(hashed)
    return entry[1] if entry and asked_at - entry[0] < REMEMBERED_FOR_S else look_up(hashed, asked_at)


def look_up(hashed: str, asked_at: float) -> User | None:
    # The database's clock decides, because host clocks may differ.
    is_valid = Q(expires_at=None) | Q(expires_at__gt=Now())
    key = AccessKey.objects.select_related("user").filter(is_valid, digest=hashed).first()
    if key is None or not key.user.is_active:
        return None
    if key.scope:
        key.user.narrow_to(key.scope)
    key.user.role_names  # noqa: B018  (evaluated now, so that a cached user needs no query)
    note_use(key)
    REMEMBERED.put(hashed, (asked_at, key.user))
    return key.user


def note_use(key: AccessKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > LAST_USE_EVERY:
        try:
            AccessKey.objects.filter(pk=key.pk).update(last_used_at=now)
        except OperationalError as error:
            if not is_disk_full(error):  # on a full disk the key still works
                raise

"""Creates, looks up and shows access keys. A key is 256 random bits, shown once and stored as a hash."""

import time
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import Case, Q, When
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import AccessKey, Session, User
from accounts.models.access_keys import KEY_PREFIX, hash_key
from accounts.models.sessions import stored_session_key
from system import encryption
from system.error_details import is_disk_full
from system.process_cache import WeightedCache

LOGIN_KEY_LIFETIME = timedelta(hours=12)
MAX_LOGIN_KEYS = 20
DOCS_KEY_LIFETIME = timedelta(minutes=15)
# For each session.
MAX_DOCS_KEYS = 5
TOKEN_LIFETIME = timedelta(minutes=30)
REFRESH_TOKEN_LIFETIME = timedelta(hours=24)
# For each key, of each kind.
MAX_TOKENS = 100
# Default lifetime of a named key.
DEFAULT_LIFETIME = timedelta(days=90)
# Each process caches a lookup for this long, so a revoked key stops working within that time.
CACHE_TTL_S = 1.0
MAX_CACHE_BYTES = 16 * 1024 * 1024
CACHED_USER_BYTES = 4_000
CACHED_ROLE_BYTES = 120
LAST_USE_INTERVAL = timedelta(minutes=1)
NEW_KEY_ENTRY = "new_key"


def create_key(user: User, name: str, *, expires_at: datetime | None, **limits: Any) -> str:
    """Creates a named key and returns its secret, which cannot be read again."""
    key = AccessKey(user=user, name=name, expires_at=expires_at, **limits)
    secret = key.generate_secret()
    key.save()
    return secret


def create_login_key(user: User) -> str:
    """Creates a key for an API sign-in and keeps only the twenty newest."""
    key = AccessKey(user=user, name="API sign-in", kind=AccessKey.KIND_LOGIN)
    return _save_temporary_key(key, LOGIN_KEY_LIFETIME, MAX_LOGIN_KEYS)


def create_docs_key(user: User, session: Any, *, read_only: bool) -> str:
    """Creates a key for the API docs that ends with the session, and keeps only the five newest of the session."""
    session_key = stored_session_key(session)
    key = AccessKey(user=user, name="API docs", kind=AccessKey.KIND_DOCS, session=session_key, read_only=read_only)
    return _save_temporary_key(key, DOCS_KEY_LIFETIME, MAX_DOCS_KEYS)


def create_tokens(key: AccessKey) -> tuple[str, str]:
    """Creates an access token and a refresh token with the limits of the key, and keeps only its hundred newest."""
    lifetimes = {AccessKey.KIND_TOKEN: TOKEN_LIFETIME, AccessKey.KIND_REFRESH: REFRESH_TOKEN_LIFETIME}
    access_token, refresh_token = (
        _save_temporary_key(
            AccessKey(user=key.user, name=key.name, kind=kind, parent=key, scope=key.scope, read_only=key.read_only),
            lifetime,
            MAX_TOKENS,
        )
        for kind, lifetime in lifetimes.items()
    )
    return access_token, refresh_token


def use_refresh_token(key: AccessKey, secret: str) -> bool:
    """Deletes a refresh token of the key; returns whether it was valid."""
    tokens = AccessKey.objects.filter(kind=AccessKey.KIND_REFRESH, parent=key, expires_at__gt=Now())
    count, _ = tokens.filter(digest=hash_key(secret)).delete()
    return count == 1


def find_named_key(key_id: str, secret: str) -> AccessKey | None:
    """Returns the valid key with this secret, if its id or the beginning of its secret is `key_id`."""
    keys = AccessKey.objects.select_related("user").filter(is_valid(), kind=AccessKey.KIND_NAMED)
    key = keys.filter(digest=hash_key(secret)).first()
    return key if key is not None and key.user.is_active and key_id in (key.pk, key.prefix) else None


def _save_temporary_key(key: AccessKey, lifetime: timedelta, max_count: int) -> str:
    with transaction.atomic():
        User._base_manager.select_for_update().get(pk=key.user.pk)
        similar_keys = AccessKey.objects.filter(user=key.user, kind=key.kind, session=key.session, parent=key.parent)
        # Keys from before the clock was set back count as the oldest, though their ids are the largest.
        is_older = Case(When(expires_at__gt=Now() + lifetime, then=1), default=0)
        newest_ids = similar_keys.order_by(is_older, "-sys_id").values_list("sys_id", flat=True)[: max_count - 1]
        similar_keys.exclude(sys_id__in=list(newest_ids)).delete()
        key.expires_at = Now() + lifetime
        secret = key.generate_secret()
        key.save()
    return secret


# Recent lookups of this process: the hash of a key, the time of the lookup, and the owner.
KEY_CACHE: WeightedCache[str, tuple[float, User]] = WeightedCache(
    "access keys",
    max_weight=MAX_CACHE_BYTES,
    weigh=lambda _, entry: CACHED_USER_BYTES + CACHED_ROLE_BYTES * len(entry[1].role_names),
)


def find_owner(secret: str) -> User | None:
    """Returns the active user of a valid key, limited to the key's scope; None in every other case."""
    if not secret.startswith(KEY_PREFIX) or len(secret) > 100:
        return None
    key_hash = hash_key(secret)
    # Taken before the query, so that a cached result is never older than its entry says.
    looked_up_at = time.monotonic()
    entry = KEY_CACHE.get(key_hash)
    return entry[1] if entry and looked_up_at - entry[0] < CACHE_TTL_S else query_owner(key_hash, looked_up_at)


def is_valid(prefix: str = "") -> Q:
    """The condition that a key has not expired. The database's clock decides, because host clocks may differ."""
    return Q(**{f"{prefix}expires_at": None}) | Q(**{f"{prefix}expires_at__gt": Now()})


def query_owner(key_hash: str, looked_up_at: float) -> User | None:
    keys = AccessKey.objects.select_related("user").exclude(kind=AccessKey.KIND_REFRESH)
    key = keys.filter(is_valid(), is_valid("parent__"), digest=key_hash).first()
    if key is None or not key.user.is_active or (key.session and not has_session(key)):
        return None
    if key.scope:
        key.user.limit_to_roles(key.scope)
    key.user.role_names  # noqa: B018  (evaluated now, so that a cached user needs no query)
    key.user.access_key = key
    record_use(key)
    KEY_CACHE.put(key_hash, (looked_up_at, key.user))
    return key.user


def has_session(key: AccessKey) -> bool:
    return Session.objects.filter(session_key=key.session, user=key.user, expire_date__gt=Now()).exists()


def record_use(key: AccessKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > LAST_USE_INTERVAL:
        try:
            # The use of a token is also a use of its key.
            AccessKey.objects.filter(pk__in=(key.pk, key.parent_id)).update(last_used_at=now)
        except OperationalError as error:
            if not is_disk_full(error):  # on a full disk the key still works
                raise


def store_new_key(session: Any, page: str, name: str, secret: str) -> None:
    """Stores a new key for the page that shows it once, so that a reload does not create another key."""
    # Encrypted, because sessions are stored in the database.
    session[NEW_KEY_ENTRY] = [page, name, encryption.encrypt(secret)]


def take_new_key(session: Any, page: str) -> tuple[str, str] | None:
    """Returns name and secret and removes them from the session."""
    if session.get(NEW_KEY_ENTRY, [None])[0] != page:
        return None
    _, name, encrypted_secret = session.pop(NEW_KEY_ENTRY)
    try:
        return name, encryption.decrypt(encrypted_secret)
    except encryption.DecryptionFailed:  # the encryption key was removed in between
        return None

"""Access keys: hashed, with a name, an expiry date, the time of the last use, and limits to roles and to reads."""

import hashlib
import secrets

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from system.records.record import Record

KEY_PREFIX = "sb_"
STORED_PREFIX_LENGTH = len(KEY_PREFIX) + 6


def hash_key(key: str) -> str:
    # A fast hash is enough: nobody can guess 256 random bits.
    return hashlib.sha256(key.encode()).hexdigest()


class AccessKey(Record):
    KIND_NAMED = "named"
    KIND_LOGIN = "login"
    KIND_DOCS = "docs"
    KIND_TOKEN = "token"
    KIND_REFRESH = "refresh"
    # They expire soon, and are deleted then.
    TEMPORARY_KINDS = (KIND_LOGIN, KIND_DOCS, KIND_TOKEN, KIND_REFRESH)
    # They end when the user's password changes or the sessions are ended.
    SESSION_KINDS = (KIND_LOGIN, KIND_TOKEN, KIND_REFRESH)

    secret_columns = frozenset({"digest", "session"})

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_keys")
    name = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=10,
        choices=[
            (KIND_NAMED, "created by a user"),
            (KIND_LOGIN, "created by an API sign-in"),
            (KIND_DOCS, "created by the API docs"),
            (KIND_TOKEN, "access token of a key"),
            (KIND_REFRESH, "refresh token of a key"),
        ],
        default=KIND_NAMED,
    )
    prefix = models.CharField(max_length=STORED_PREFIX_LENGTH, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    scope = ArrayField(
        models.CharField(max_length=32, db_collation="C"),
        default=list,
        blank=True,
        help_text="Roles that the key is limited to. Leave empty for all roles of its user.",
    )
    read_only = models.BooleanField(
        "read-only", default=False, db_default=False, help_text="If checked, the key can read, but not change anything."
    )
    # The key that a token was created with, and ends with.
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, editable=False, related_name="tokens")
    mcp_writes = models.BooleanField(
        "may write through MCP",
        default=False,
        db_default=False,
        help_text="If checked, an agent that connects to /mcp with the key can write, unless the key is read-only.",
    )
    # The stored key of the session that a key of the API docs ends with.
    session = models.CharField(max_length=40, blank=True, default="", db_default="", editable=False)

    class Meta(Record.Meta):
        db_table = "accounts_access_key"
        ordering = ["-sys_id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def leaves_deletion_log_entry(self) -> bool:
        return self.kind == self.KIND_NAMED

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    def generate_secret(self) -> str:
        """Generates the secret of this unsaved key; only its hash is stored."""
        secret = KEY_PREFIX + secrets.token_urlsafe(32)
        self.prefix = secret[:STORED_PREFIX_LENGTH]
        self.digest = hash_key(secret)
        return secret

"""The columns of a connection that identify its provider, and those with what was discovered about it."""

import json
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models, transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.privileges import privilege_guard
from sso.provider import discovery
from sso.provider.discovery import Endpoints
from system import encryption
from system.records.record import Record

# Column of the record, name in `Endpoints`.
ENDPOINTS = {
    "issuer": "issuer",
    "authorization_endpoint": "authorization",
    "token_endpoint": "token",
    "userinfo_endpoint": "userinfo",
    "jwks_uri": "jwks",
    "end_session_endpoint": "end_session",
    "algorithms": "algorithms",
    "token_auth_methods": "token_auth_methods",
    "iss_in_response": "iss_in_response",
}
# Set by the product, not by users: saving an old copy of the record leaves them as they are stored.
OWN_COLUMNS = frozenset(
    {*ENDPOINTS, "resolved_at", "resolve_tried_at", "resolve_error", "last_claims", "needs_approval"}
)

REALM = RegexValidator(
    r"\A(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,64}\Z", "A realm has 1 to 64 letters, digits, dots, hyphens and underscores."
)


def discovered_address() -> Any:
    return models.CharField(max_length=2000, blank=True, default="", editable=False)


class ProviderRecord(Record):
    """URL IdP and Realm are entered by an administrator; the other columns cannot be edited."""

    url_idp = models.CharField("URL IdP", max_length=500, db_collation="C")
    realm = models.CharField(max_length=64, db_collation="C", validators=[REALM])

    issuer = models.CharField(max_length=700, blank=True, default="", editable=False)
    authorization_endpoint = discovered_address()
    token_endpoint = discovered_address()
    userinfo_endpoint = discovered_address()
    jwks_uri = models.CharField("JWKS URI", max_length=2000, blank=True, default="", editable=False)
    end_session_endpoint = discovered_address()
    algorithms = ArrayField(models.CharField(max_length=50), default=list, blank=True, editable=False)
    token_auth_methods = ArrayField(models.CharField(max_length=50), default=list, blank=True, editable=False)
    iss_in_response = models.BooleanField(default=False, editable=False)
    resolved_at = models.DateTimeField(null=True, blank=True, editable=False)
    resolve_tried_at = models.DateTimeField(null=True, blank=True, editable=False)
    resolve_error = models.CharField(max_length=1000, blank=True, default="", editable=False)
    last_claims = models.TextField(blank=True, default="", editable=False)

    needs_approval = models.BooleanField(default=False, editable=False)

    class Meta(Record.Meta):
        abstract = True

    @property
    def pair(self) -> tuple[str, str]:
        """URL IdP and Realm, to which certificates belong."""
        return self.url_idp, self.realm

    @property
    def endpoints(self) -> Endpoints | None:
        if not self.issuer:
            return None
        values = {name: getattr(self, column) for column, name in ENDPOINTS.items()}
        lists = {name: tuple(values[name]) for name in ("algorithms", "token_auth_methods")}
        return Endpoints(**values | lists)

    @property
    def known_claims(self) -> dict[str, Any] | None:
        """The claims of the last sign-in, to try the script with."""
        try:
            claims = json.loads(encryption.decrypt(self.last_claims)) if self.last_claims else None
        except encryption.DecryptionFailed:
            return None
        return claims if isinstance(claims, dict) else None

    # Writes by the product itself: only the given columns, without the rules of `save`.

    def store(self, **columns: Any) -> None:
        """Store these values with a new version and a history entry."""
        for name, value in columns.items():
            setattr(self, name, value)
        super().save(update_fields=list(columns))

    def store_in_last_entry(self, **columns: Any) -> None:
        """Store these values as part of the last save: in its version and history entry."""
        self.note(**columns)
        history: Any = type(self).history  # type: ignore[attr-defined]  # each real model has one
        history.filter(pk=history.filter(sys_id=self.pk).latest().pk).update(**columns)

    def note(self, **columns: Any) -> None:
        """Store these values without a new version or history entry."""
        for name, value in columns.items():
            setattr(self, name, value)
        type(self)._base_manager.filter(pk=self.pk).update(**columns)

    def note_of_pair(self, **columns: Any) -> None:
        """The same, unless the stored record has another pair by now."""
        for name, value in columns.items():
            setattr(self, name, value)
        type(self)._base_manager.filter(pk=self.pk, url_idp=self.url_idp, realm=self.realm).update(**columns)

    def remember_claims(self, claims: dict[str, Any]) -> None:
        self.note_of_pair(last_claims=encryption.encrypt(json.dumps(claims)))

    def claim_lookup(self) -> bool:
        """Whether this caller may look up the provider: one caller in 30 s, across all processes."""
        # By the database's clock; one in the future is from before that was set back.
        recently = (Now() - discovery.AGAIN_AFTER, Now() + discovery.AGAIN_AFTER)
        due = type(self)._base_manager.filter(pk=self.pk, issuer="").exclude(resolve_tried_at__range=recently)
        is_ours = bool(due.update(resolve_tried_at=Now()))
        if not is_ours:
            self.refresh_from_db(fields=[*OWN_COLUMNS])
        return is_ours

    def store_endpoints(self, endpoints: Endpoints, *, completes_entry: bool = False) -> bool:
        """Store what was discovered for this pair; False if the record was deleted or has another pair by now.

        With `completes_entry` it becomes part of the last save's history entry, because it belongs to that save. This
        object gets the new version, unless another user changed the record since it was read.
        """
        with transaction.atomic():
            stored = type(self)._base_manager.select_for_update().filter(pk=self.pk).first()
            if stored is None or stored.pair != self.pair:
                return False
            known, is_as_read = stored.endpoints, stored.sys_version == self.sys_version
            stored.note(resolved_at=timezone.now(), resolve_tried_at=timezone.now(), resolve_error="")
            if known != endpoints:
                values = {column: getattr(endpoints, name) for column, name in ENDPOINTS.items()}
                lists = {name: list(values[name]) for name in ("algorithms", "token_auth_methods")}
                is_decisive = known is not None and endpoints.moved_from(known) and not privilege_guard.is_trusted()
                approval = {"needs_approval": True} if is_decisive else {}
                if completes_entry and is_as_read:
                    stored.store_in_last_entry(**values | lists | approval)
                else:
                    stored.store(**values | lists | approval)
            version = ["sys_version", "sys_updated_at", "sys_updated_by"] if is_as_read else []
            self.refresh_from_db(fields=[*OWN_COLUMNS, *version])
        return True

"""In charge of which provider a connection leads to, and of what the product found out about it."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models, transaction
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
# The product's own: a form that was opened before must not put old values back, so a save leaves them as they stand.
OWN_COLUMNS = frozenset(
    {*ENDPOINTS, "resolved_at", "resolve_tried_at", "resolve_error", "last_claims", "needs_approval"}
)

REALM = RegexValidator(
    r"\A(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,64}\Z", "A realm has 1 to 64 letters, digits, dots, dashes and underscores."
)


def found_address() -> Any:
    return models.CharField(max_length=2000, blank=True, default="", editable=False)


class ProviderRecord(Record):
    """URL IdP and Realm are typed; the columns after them no form changes."""

    url_idp = models.CharField("URL IdP", max_length=500, db_collation="C")
    realm = models.CharField(max_length=64, db_collation="C", validators=[REALM])

    issuer = models.CharField(max_length=700, blank=True, default="", editable=False)
    authorization_endpoint = found_address()
    token_endpoint = found_address()
    userinfo_endpoint = found_address()
    jwks_uri = models.CharField("JWKS URI", max_length=2000, blank=True, default="", editable=False)
    end_session_endpoint = found_address()
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
        """URL IdP and Realm: what certificates belong to."""
        return self.url_idp, self.realm

    @property
    def endpoints(self) -> Endpoints | None:
        if not self.issuer:
            return None
        found = {name: getattr(self, column) for column, name in ENDPOINTS.items()}
        lists = {name: tuple(found[name]) for name in ("algorithms", "token_auth_methods")}
        return Endpoints(**found | lists)

    @property
    def known_claims(self) -> dict[str, Any] | None:
        """The claims of the last sign-in, to try the script with."""
        try:
            found = json.loads(encryption.decrypt(self.last_claims)) if self.last_claims else None
        except encryption.Undecipherable:
            return None
        return found if isinstance(found, dict) else None

    # What the product writes, each time only that: no hooks, and what an administrator changes meanwhile stays.

    def store(self, **columns: Any) -> None:
        """Keep these values, with version and history."""
        for name, value in columns.items():
            setattr(self, name, value)
        super().save(update_fields=list(columns))

    def store_in_last_entry(self, **columns: Any) -> None:
        """Keep these values as a part of what was saved last: told by its entry, in its version."""
        self.note(**columns)
        history: Any = type(self).history  # type: ignore[attr-defined]  # each real model has one
        history.filter(pk=history.filter(sys_id=self.pk).latest().pk).update(**columns)

    def note(self, **columns: Any) -> None:
        """Keep these values, which are no change of the record."""
        for name, value in columns.items():
            setattr(self, name, value)
        type(self)._base_manager.filter(pk=self.pk).update(**columns)

    def note_of_pair(self, **columns: Any) -> None:
        """The same about this pair: nothing of it is kept when the record has another one by now."""
        for name, value in columns.items():
            setattr(self, name, value)
        type(self)._base_manager.filter(pk=self.pk, url_idp=self.url_idp, realm=self.realm).update(**columns)

    def remember_claims(self, claims: dict[str, Any]) -> None:
        self.note_of_pair(last_claims=encryption.encrypt(json.dumps(claims)))

    def claim_look(self) -> bool:
        """Whether it is this caller's turn to look for the provider; one caller's in 30 s, across all processes."""
        now = timezone.now()
        is_due = models.Q(resolve_tried_at=None) | models.Q(resolve_tried_at__lt=now - discovery.AGAIN_AFTER)
        own = type(self)._base_manager.filter(pk=self.pk)
        is_ours = bool(own.filter(is_due, issuer="").update(resolve_tried_at=now))
        if not is_ours:
            self.refresh_from_db(fields=[*OWN_COLUMNS])
        return is_ours

    def store_endpoints(self, found: Endpoints, *, completes_entry: bool = False) -> bool:
        """Keep what was found for this pair; False when the record has another pair, or is gone, by now.

        With `completes_entry` the history's last one tells it: it is part of what the save did that comes just before.
        The version of this object goes along, unless somebody changed the record since it was read.
        """
        with transaction.atomic():
            stands = type(self)._base_manager.select_for_update().filter(pk=self.pk).first()
            if stands is None or stands.pair != self.pair:
                return False
            known, is_as_read = stands.endpoints, stands.sys_version == self.sys_version
            stands.note(resolved_at=timezone.now(), resolve_tried_at=timezone.now(), resolve_error="")
            if known != found:
                values = {column: getattr(found, name) for column, name in ENDPOINTS.items()}
                lists = {name: list(values[name]) for name in ("algorithms", "token_auth_methods")}
                is_decisive = known is not None and found.moved_from(known) and not privilege_guard.is_trusted()
                awaits = {"needs_approval": True} if is_decisive else {}
                if completes_entry and is_as_read:
                    stands.store_in_last_entry(**values | lists | awaits)
                else:
                    stands.store(**values | lists | awaits)
            version = ["sys_version", "sys_updated_at", "sys_updated_by"] if is_as_read else []
            self.refresh_from_db(fields=[*OWN_COLUMNS, *version])
        return True

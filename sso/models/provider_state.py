"""The columns of a connection that identify its provider and store the results of discovery."""

import json
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models, transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts import privileges
from sso.provider import discovery
from sso.provider.discovery import Endpoints
from system import encryption
from system.records.record import Record

ENDPOINT_COLUMNS = tuple(Endpoints.__dataclass_fields__)
# Set by the product, not by users. Saving an outdated copy of the record does not overwrite them.
INTERNAL_COLUMNS = frozenset(
    {*ENDPOINT_COLUMNS, "resolved_at", "resolve_tried_at", "resolve_error", "last_claims", "needs_approval"}
)

REALM_VALIDATOR = RegexValidator(
    r"\A(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,64}\Z", "A realm has 1 to 64 letters, digits, dots, hyphens and underscores."
)


def _url_column() -> Any:
    return models.CharField(max_length=2000, blank=True, default="", editable=False)


class ProviderRecord(Record):
    """Administrators enter the provider URL and Realm; the other columns cannot be edited."""

    url_idp = models.CharField("provider URL", max_length=500, db_collation="C")
    realm = models.CharField(max_length=64, db_collation="C", validators=[REALM_VALIDATOR])

    issuer = models.CharField(max_length=700, blank=True, default="", editable=False)
    authorization_endpoint = _url_column()
    token_endpoint = _url_column()
    userinfo_endpoint = _url_column()
    jwks_uri = models.CharField("JWKS URI", max_length=2000, blank=True, default="", editable=False)
    end_session_endpoint = _url_column()
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
        """Provider URL and Realm, to which certificates belong."""
        return self.url_idp, self.realm

    @property
    def endpoints(self) -> Endpoints | None:
        if not self.issuer:
            return None
        values = {name: getattr(self, name) for name in ENDPOINT_COLUMNS}
        lists = {name: tuple(values[name]) for name in ("algorithms", "token_auth_methods")}
        return Endpoints(**values | lists)

    @property
    def last_sign_in_claims(self) -> dict[str, Any] | None:
        """The claims of the last sign-in, which Try the script uses."""
        try:
            claims = json.loads(encryption.decrypt(self.last_claims)) if self.last_claims else None
        except encryption.DecryptionFailed:
            return None
        return claims if isinstance(claims, dict) else None

    # Writes by the product: only these columns, without the rules of `save`.

    def store_columns(self, **columns: Any) -> None:
        """Store these values with a new version and a history entry."""
        for name, value in columns.items():
            setattr(self, name, value)
        super().save(update_fields=list(columns))

    def amend_last_entry(self, **columns: Any) -> None:
        """Store these values as part of the last save: in its version and history entry."""
        for name, value in columns.items():
            setattr(self, name, value)
        type(self)._base_manager.filter(pk=self.pk).update(**columns)
        history: Any = type(self).history  # type: ignore[attr-defined]  # each concrete model has one
        history.filter(pk=history.filter(sys_id=self.pk).latest().pk).update(**columns)

    def update_unversioned(self, **columns: Any) -> None:
        """Store these values without a new version or history entry, unless the record now has another pair."""
        for name, value in columns.items():
            setattr(self, name, value)
        type(self)._base_manager.filter(pk=self.pk, url_idp=self.url_idp, realm=self.realm).update(**columns)

    def store_claims(self, claims: dict[str, Any]) -> None:
        self.update_unversioned(last_claims=encryption.encrypt(json.dumps(claims)))

    def reserve_discovery(self) -> bool:
        """Whether this caller may run discovery: one caller per 30 s, across all processes."""
        # By the database's clock. A time in the future dates from before the clock was set back.
        recent_range = (Now() - discovery.RETRY_INTERVAL, Now() + discovery.RETRY_INTERVAL)
        due_rows = type(self)._base_manager.filter(pk=self.pk, issuer="").exclude(resolve_tried_at__range=recent_range)
        is_reserved = bool(due_rows.update(resolve_tried_at=Now()))
        if not is_reserved:
            self.refresh_from_db(fields=[*INTERNAL_COLUMNS])
        return is_reserved

    def store_endpoints(self, endpoints: Endpoints, *, amends_last_entry: bool = False) -> bool:
        """Store the discovered endpoints; return False if the record was deleted or now has another pair.

        With `amends_last_entry`, the change becomes part of the last save's history entry. This object gets the new
        version, unless another user has changed the record since it was read.
        """
        with transaction.atomic():
            record = type(self)._base_manager.select_for_update().filter(pk=self.pk).first()
            if record is None or record.pair != self.pair:
                return False
            known_endpoints, is_current = record.endpoints, record.sys_version == self.sys_version
            record.update_unversioned(resolved_at=timezone.now(), resolve_tried_at=timezone.now(), resolve_error="")
            if known_endpoints != endpoints:
                values = {name: getattr(endpoints, name) for name in ENDPOINT_COLUMNS}
                if endpoints.risky_change_since(known_endpoints) and not privileges.acts_as_admin():
                    values["needs_approval"] = True
                store = record.amend_last_entry if amends_last_entry and is_current else record.store_columns
                store(**values)
            version_columns = ["sys_version", "sys_updated_at", "sys_updated_by"] if is_current else []
            self.refresh_from_db(fields=[*INTERNAL_COLUMNS, *version_columns])
        return True

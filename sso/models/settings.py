"""The connections to identity providers: what an administrator sets up, and what was found out about the provider."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models, transaction
from django.utils import timezone

from sso import activation, approval, endpoints, mapping_script, trust
from sso.endpoints import Endpoints
from sso.models import checks
from sso.models.certificates import drop_keys
from sso.models.script_runs import ScriptRuns
from system import encryption
from system.errors import AccessDenied, Conflict
from system.history import tracked
from system.record import Record

VISIBLE = RegexValidator(r"\A[^\x00-\x1f\x7f]*\Z", "This has no line breaks or control characters.")
PLAIN = RegexValidator(r"\A[\x20-\x7e]*\Z", "This has ASCII characters only.")
REALM = RegexValidator(
    r"\A(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,64}\Z", "A realm has 1 to 64 letters, digits, dots, dashes and underscores."
)

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
# The product's own: a form that was opened before must not put old values back, so `save` leaves them as they stand.
FOUND_OUT = frozenset({*ENDPOINTS, "resolved_at", "resolve_tried_at", "resolve_error", "last_claims", "needs_approval"})


def found_address() -> Any:
    return models.CharField(max_length=2000, blank=True, default="", editable=False)


def default_script() -> str:
    return mapping_script.DEFAULT


class OidcSetting(Record):
    """One connection. Saving and deleting it, by whichever way, keeps the rules of `sso.activation`."""

    table_columns = (
        "name", "url_idp", "realm", "authorization_type", "client_id", "client_secret", "user_field", "redirect_uri",
        "scope", "active", "enable_user_creation", "ignore_case", "enable_role_mapping", "update_data_when_login",
        "script", "response_type", "role_claim",
        "issuer", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint",
    )  # fmt: skip
    secret_columns = encrypted_columns = frozenset({"client_secret", "last_claims"})
    ahead_columns = frozenset({"script", "active"})

    class AuthorizationType(models.TextChoices):
        CODE = "code", "Authorization Code Flow"
        PKCE = "pkce", "Proof Key for Code Exchange (PKCE)"

    class UserField(models.TextChoices):
        EMAIL = "email", "Email"
        LOGIN = "login", "Login"

    class ResponseType(models.TextChoices):
        CODE = "code", "code"
        ID_TOKEN = "id_token", "id_token"
        ID_TOKEN_TOKEN = "id_token token", "id_token token"

    name = models.CharField(max_length=200, validators=[VISIBLE])
    url_idp = models.CharField("URL IdP", max_length=500, db_collation="C")
    realm = models.CharField(max_length=64, db_collation="C", validators=[REALM])
    authorization_type = models.CharField(
        max_length=10, choices=AuthorizationType.choices, default=AuthorizationType.CODE
    )
    client_id = models.CharField("client ID", max_length=255, validators=[PLAIN])
    client_secret = models.TextField(blank=True, default="")
    user_field = models.CharField(max_length=10, choices=UserField.choices, default=UserField.EMAIL)
    redirect_uri = models.CharField("redirect URI", max_length=500)
    scope = models.CharField(max_length=500, default="openid")
    active = models.BooleanField(default=False)
    enable_user_creation = models.BooleanField(default=False)
    ignore_case = models.BooleanField("ignore case sensitivity", default=False)
    enable_role_mapping = models.BooleanField(default=False)
    update_data_when_login = models.BooleanField(default=False)
    script = models.TextField(default=default_script)
    response_type = models.CharField(max_length=20, choices=ResponseType.choices, default=ResponseType.CODE)
    role_claim = models.CharField(max_length=255, blank=True, default="", validators=[VISIBLE])

    # What was found out; see FOUND_OUT.
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
    history = tracked(without=("client_secret", "last_claims", "resolved_at", "resolve_tried_at", "resolve_error"))

    class Meta(Record.Meta):
        db_table = "oidc_setting"
        verbose_name = "OIDC setting"
        ordering: ClassVar[list[str]] = ["name", "sys_id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["active"], condition=models.Q(active=True), name="oidc_setting_one_active")
        ]

    def __str__(self) -> str:
        return self.name

    # What others ask.

    @classmethod
    def active_one(cls) -> OidcSetting | None:
        return cls.objects.filter(active=True).first()

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
    def secret(self) -> str:
        """The client secret in clear; `encryption.Undecipherable` when its key is gone."""
        return encryption.decrypt(self.client_secret) if self.client_secret else ""

    def set_secret(self, text: str) -> None:
        self.client_secret = encryption.encrypt(text) if text else ""

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

    def note(self, **columns: Any) -> None:
        """Keep these values, which are no change of the record."""
        for name, value in columns.items():
            setattr(self, name, value)
        type(self).objects.filter(pk=self.pk).update(**columns)

    def note_of_pair(self, **columns: Any) -> None:
        """The same about this pair: nothing of it is kept when the record has another one by now."""
        for name, value in columns.items():
            setattr(self, name, value)
        type(self).objects.filter(pk=self.pk, url_idp=self.url_idp, realm=self.realm).update(**columns)

    def remember_claims(self, claims: dict[str, Any]) -> None:
        self.note(last_claims=encryption.encrypt(json.dumps(claims)))

    def claim_look(self) -> bool:
        """Whether it is this caller's turn to look for the provider; one caller's in 30 s, across all processes."""
        now = timezone.now()
        is_due = models.Q(resolve_tried_at=None) | models.Q(resolve_tried_at__lt=now - endpoints.AGAIN_AFTER)
        own = type(self).objects.filter(pk=self.pk)
        is_ours = bool(own.filter(is_due, issuer="").update(resolve_tried_at=now))
        if not is_ours:
            self.refresh_from_db(fields=[*FOUND_OUT])
        return is_ours

    def store_endpoints(self, found: Endpoints) -> bool:
        """Keep what was found for this pair; False when the record has another pair, or is gone, by now.

        The version of this object goes along, unless somebody changed the record since it was read.
        """
        with transaction.atomic():
            stands = type(self).objects.select_for_update().filter(pk=self.pk).first()
            if stands is None or stands.pair != self.pair:
                return False
            known, is_as_read = stands.endpoints, stands.sys_version == self.sys_version
            stands.note(resolved_at=timezone.now(), resolve_tried_at=timezone.now(), resolve_error="")
            if known != found:
                values = {column: getattr(found, name) for column, name in ENDPOINTS.items()}
                lists = {name: list(values[name]) for name in ("algorithms", "token_auth_methods")}
                is_decisive = known is not None and found.moved_from(known) and not trust.is_trusted()
                awaits = {"needs_approval": True} if is_decisive else {}
                stands.store(**values | lists | awaits)
            version = ["sys_version", "sys_updated_at", "sys_updated_by"] if is_as_read else []
            self.refresh_from_db(fields=[*FOUND_OUT, *version])
        return True

    def approve(self, *, as_seen: str) -> None:
        """An administrator has looked at this version of it: administrators may sign in through it too."""
        if not trust.is_trusted():
            raise AccessDenied("Only an administrator approves a connection.")
        with transaction.atomic():
            stands = self._stored(is_locked=True)
            if stands is None or str(stands.sys_version) != as_seen:
                raise Conflict(
                    "The connection was changed after this page was opened: open it anew and look at it again."
                )
            if stands.needs_approval:
                stands.store(needs_approval=False)
            self.refresh_from_db()  # as this made it: what somebody changes after it was not seen

    # Saving and deleting.

    @classmethod
    def look_ahead(cls, sys_id: str, wanted: Mapping[str, Any]) -> ScriptRuns:
        runs, stored = ScriptRuns(), cls.objects.filter(pk=sys_id).first()
        if stored is not None:
            runs.look_ahead(stored, wanted)
        return runs

    @classmethod
    def take_turn(cls) -> None:
        activation.take_turn()

    @property
    def script_runs(self) -> ScriptRuns:
        found: ScriptRuns = self.found_ahead or ScriptRuns()
        self.found_ahead = found
        return found

    def validate_constraints(self, exclude: Any = None) -> None:
        """The one constraint is kept by deactivating the others, not by refusing this one."""

    def clean(self) -> None:
        super().clean()
        before = self._stored()
        # What stands may be out of date by the operator's settings; switching it off must stay possible.
        is_set_off = before is None or (self.active and not before.active)
        for name, check in {**checks.CHECKS, "script": self.script_runs.check}.items():
            if is_set_off or getattr(before, name) != getattr(self, name) or (self.active and name == "redirect_uri"):
                try:
                    setattr(self, name, check(getattr(self, name)))
                except ValueError as error:
                    raise ValidationError({name: str(error)}) from None

    def save(self, *positional: Any, **options: Any) -> None:
        """With the rules about the active one, the welcome page and the certificates, in one transaction."""
        named = options.pop("update_fields", None)
        changing = {name: getattr(self, name) for name in self.ahead_columns if named is None or name in named}
        self.script_runs.look_ahead(self._stored(), changing)
        with transaction.atomic():
            self.take_turn()
            before = self._stored(is_locked=True)
            self._take_over(before, named)
            self.full_clean(exclude={"sys_id"})
            self._follow(before)
            activation.deactivate_others(self)
            super().save(*positional, **options)
            activation.follow(before, self)
            if before is not None and before.pair != self.pair:
                before.let_go_of_keys()
            if not self.issuer:
                transaction.on_commit(lambda: endpoints.look_after_save(self), robust=True)

    def let_go_of_keys(self) -> None:
        """ "When … no other record has the same URL IdP and Realm, its certificates are removed." """
        if not type(self).objects.filter(url_idp=self.url_idp, realm=self.realm).exists():
            drop_keys(*self.pair)

    def _stored(self, *, is_locked: bool = False) -> OidcSetting | None:
        if self.is_new:
            return None
        found = type(self).objects.filter(pk=self.pk)
        stored = (found.select_for_update() if is_locked else found).first()
        if stored is None and is_locked:
            raise ValidationError("Somebody deleted this connection meanwhile.")
        return stored

    def _take_over(self, before: OidcSetting | None, named: Any) -> None:
        """What is not being changed stands as it is stored, not as it was when this object was read."""
        if before is None:
            return
        for field in self._meta.concrete_fields:
            is_kept = field.name in FOUND_OUT or (named is not None and field.name not in named)
            if is_kept and field.name != "sys_id":
                setattr(self, field.attname, getattr(before, field.attname))

    def _follow(self, before: OidcSetting | None) -> None:
        """What a change of some columns means for others."""
        self.needs_approval = approval.is_due(before, self)
        if before is not None and before.pair != self.pair:
            self._forget_provider(before)

    def _forget_provider(self, before: OidcSetting) -> None:
        for name in FOUND_OUT - {"needs_approval"}:
            field: Any = self._meta.get_field(name)
            setattr(self, name, field.get_default())
        # Whoever may change the record, but not read the secret, must not have it sent to a server of their own.
        if self.client_secret == before.client_secret:
            self.client_secret = ""

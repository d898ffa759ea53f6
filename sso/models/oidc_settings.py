"""The connections to identity providers, as an administrator sets them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models, transaction

from accounts.privileges import privilege_guard
from sso.connections import approval
from sso.connections.script_check import ScriptRuns
from sso.models import activation, connection_validators
from sso.models.certificates import drop_keys
from sso.models.provider_state import OWN_COLUMNS, ProviderRecord
from sso.provider import discovery
from sso.scripts import mapping_script
from system import encryption
from system.errors import AccessDenied, Conflict
from system.records.history import tracked

VISIBLE = RegexValidator(r"\A[^\x00-\x1f\x7f]*\Z", "This has no line breaks or control characters.")
PLAIN = RegexValidator(r"\A[\x20-\x7e]*\Z", "This has ASCII characters only.")


def default_script() -> str:
    return mapping_script.DEFAULT


class OidcSetting(ProviderRecord):
    """One connection. Saving and deleting it, by whichever way, keeps the rules of `sso.models.activation`."""

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

    history = tracked(without=("client_secret", "last_claims", "resolved_at", "resolve_tried_at", "resolve_error"))

    class Meta(ProviderRecord.Meta):
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
    def secret(self) -> str:
        """The client secret in clear; `encryption.Undecipherable` when its key is gone."""
        return encryption.decrypt(self.client_secret) if self.client_secret else ""

    def set_secret(self, text: str) -> None:
        self.client_secret = encryption.encrypt(text) if text else ""

    def approve(self, *, as_seen: str) -> None:
        """An administrator has looked at this version of it: administrators may sign in through it too."""
        if not privilege_guard.is_trusted():
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
        wrong: dict[str, str] = {}
        # What stands may be out of date by the operator's settings; switching it off must stay possible.
        is_set_off = before is None or (self.active and not before.active)
        for name, check in {**connection_validators.CHECKS, "script": self.script_runs.check}.items():
            if not getattr(self, name):  # which the field itself judges
                continue
            if is_set_off or getattr(before, name) != getattr(self, name) or (self.active and name == "redirect_uri"):
                try:
                    setattr(self, name, check(getattr(self, name)))
                except ValueError as error:
                    wrong[name] = str(error)
        if wrong:
            raise ValidationError(wrong)

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
            self.unkept_change = self._about_secret(before)
            try:
                super().save(*positional, **options)
            finally:
                self.unkept_change = ""
            has_entry = self.has_entry
            activation.follow(before, self)
            if before is not None and before.pair != self.pair:
                before.let_go_of_keys()
            if not self.issuer:
                transaction.on_commit(lambda: discovery.look_after_save(self, completes_entry=has_entry), robust=True)

    def let_go_of_keys(self) -> None:
        """ "When … no other record has the same URL IdP and Realm, its certificates are removed." """
        if not type(self).objects.filter(url_idp=self.url_idp, realm=self.realm).exists():
            drop_keys(*self.pair)

    def _about_secret(self, before: OidcSetting | None) -> str:
        """What the history says about the one column that it does not keep."""
        if before is None or before.client_secret == self.client_secret:
            return ""
        return f"The client secret was {'entered' if self.client_secret else 'removed'}."

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
            is_kept = field.name in OWN_COLUMNS or (named is not None and field.name not in named)
            if is_kept and field.name != "sys_id":
                setattr(self, field.attname, getattr(before, field.attname))

    def _follow(self, before: OidcSetting | None) -> None:
        """What a change of some columns means for others."""
        self.needs_approval = approval.is_due(before, self)
        if before is not None and before.pair != self.pair:
            self._forget_provider(before)

    def _forget_provider(self, before: OidcSetting) -> None:
        for name in OWN_COLUMNS - {"needs_approval"}:
            field: Any = self._meta.get_field(name)
            setattr(self, name, field.get_default())
        # Whoever may change the record, but not read the secret, must not have it sent to a server of their own.
        if self.client_secret == before.client_secret:
            self.client_secret = ""

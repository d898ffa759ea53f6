"""Connections to identity providers, as administrators configure them."""

from collections.abc import Collection
from typing import Any, Self

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models, transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from accounts import privileges
from sso.models import advisory_locks, connection_validators
from sso.models.certificates import CertificatePair, IdpCertificate
from sso.models.provider_state import INTERNAL_COLUMNS, ProviderRecord
from sso.scripts import mapping_script
from system import encryption, properties
from system.errors import AccessDenied, Conflict
from system.records.history import history_field

NO_CONTROL_CHARACTERS = RegexValidator(r"\A[^\x00-\x1f\x7f]*\Z", "Line breaks and control characters are not allowed.")
ASCII_ONLY = RegexValidator(r"\A[\x20-\x7e]*\Z", "Only ASCII characters are allowed.")


def default_script() -> str:
    return mapping_script.DEFAULT_SCRIPT


class OidcSetting(ProviderRecord):
    """A connection. At most one is active, and its Redirect URI becomes the welcome page."""

    table_columns = (
        "name", "url_idp", "realm", "authorization_type", "client_id", "client_secret", "user_field", "redirect_uri",
        "scope", "active", "enable_user_creation", "ignore_case", "enable_role_mapping", "update_data_when_login",
        "script", "response_type", "role_claim", "group_claim",
        "issuer", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint",
    )  # fmt: skip
    secret_columns = encrypted_columns = frozenset({"client_secret", "last_claims"})

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

    name = models.CharField(max_length=200, validators=[NO_CONTROL_CHARACTERS])
    authorization_type = models.CharField(
        max_length=10, choices=AuthorizationType.choices, default=AuthorizationType.CODE
    )
    client_id = models.CharField("client ID", max_length=255, validators=[ASCII_ONLY])
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
    role_claim = models.CharField(max_length=255, blank=True, default="", validators=[NO_CONTROL_CHARACTERS])
    group_claim = models.CharField(max_length=255, blank=True, default="", validators=[NO_CONTROL_CHARACTERS])

    history = history_field(omit=("client_secret", "last_claims", "resolved_at", "resolve_tried_at", "resolve_error"))

    class Meta(ProviderRecord.Meta):
        db_table = "oidc_setting"
        verbose_name = "OIDC setting"
        ordering = ["name", "sys_id"]
        constraints = [
            models.UniqueConstraint(fields=["active"], condition=models.Q(active=True), name="oidc_setting_one_active")
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def get_active(cls) -> Self | None:
        return cls.objects.filter(active=True).first()

    @property
    def decrypted_client_secret(self) -> str:
        """The decrypted client secret; raises `encryption.DecryptionFailed` if the key is missing."""
        return encryption.decrypt(self.client_secret) if self.client_secret else ""

    def approve(self, *, reviewed_version: str) -> None:
        """Let users with protected roles sign in through this connection, unless it changed after the review."""
        if not privileges.acts_as_admin():
            raise AccessDenied("Only an administrator can approve a connection.")
        with transaction.atomic():
            stored_setting = self.stored_record(lock=True)
            if stored_setting is None or str(stored_setting.sys_version) != reviewed_version:
                raise Conflict("The connection changed after you opened the page. Reload the page and review it again.")
            if stored_setting.needs_approval:
                stored_setting.store_columns(needs_approval=False)
            self.refresh_from_db()  # inside the transaction, so that a later change does not count as seen

    @classmethod
    def lock_for_change(cls) -> None:
        """Block other changes to connections until the end of the transaction.

        The unique index alone would protect the data, but one of two administrators would get its error. Call this
        before locking a record: otherwise two saves could deadlock.
        """
        advisory_locks.lock(advisory_locks.CONNECTIONS_LOCK)

    def validate_constraints(self, exclude: Any = None) -> None:
        """Skip the constraint on `active`: `save` deactivates the other record instead of refusing this one."""

    def clean(self) -> None:
        super().clean()
        previous_setting = self.stored_record()
        errors: dict[str, str] = {}
        # The operator's settings may have made a stored value invalid. Deactivating must still be possible.
        is_activated = previous_setting is None or (self.active and not previous_setting.active)
        for name, check in connection_validators.COLUMN_CHECKS.items():
            if not getattr(self, name):  # the field itself decides whether it may be empty
                continue
            is_changed = is_activated or getattr(previous_setting, name) != getattr(self, name)
            if is_changed or (self.active and name == "redirect_uri"):
                try:
                    setattr(self, name, check(getattr(self, name)))
                except ValueError as error:
                    errors[name] = str(error)
        if errors:
            raise ValidationError(errors)

    def save(self, *args: Any, **options: Any) -> None:
        """Save, deactivate other records, and update the welcome page, the provider's state and its certificates.

        Administrators save through `sso.connections.saving`, which also checks the script and requires approval.
        """
        with transaction.atomic():
            previous_setting = self.lock_and_merge(options.pop("update_fields", None))
            self.full_clean(exclude={"sys_id"})
            if previous_setting is not None and previous_setting.pair != self.pair:
                self._reset_provider_state(previous_setting)
            self._deactivate_others()
            self.untracked_change_text = self._secret_change(previous_setting)
            try:
                super().save(*args, **options)
            finally:
                self.untracked_change_text = ""
            self._update_welcome_page(previous_setting)
            if previous_setting is not None and previous_setting.pair != self.pair:
                previous_setting.remove_unused_certificates()

    def stored_record(self, *, lock: bool = False) -> Self | None:
        if self.is_new:
            return None
        rows = type(self).objects.filter(pk=self.pk)
        stored_setting = (rows.select_for_update() if lock else rows).first()
        if stored_setting is None and lock:
            raise ValidationError("This connection was deleted in the meantime.")
        return stored_setting

    def lock_and_merge(self, update_fields: Collection[str] | None) -> Self | None:
        """Lock and return the stored record, and copy from it all columns that are not being changed."""
        self.lock_for_change()
        previous_setting = self.stored_record(lock=True)
        if previous_setting is not None:
            for field in self._meta.concrete_fields:
                if field.name in INTERNAL_COLUMNS or (update_fields is not None and field.name not in update_fields):
                    setattr(self, field.attname, getattr(previous_setting, field.attname))
        return previous_setting

    def _deactivate_others(self) -> None:
        """ "Previously active record is deactivated; only one record may be active." Keeps the welcome page."""
        if self.active:
            for other in type(self).objects.filter(active=True).exclude(pk=self.pk):
                other.store_columns(active=False)

    def _update_welcome_page(self, previous_setting: Self | None) -> None:
        """ "When an active record is saved and its Redirect URI differs from `svc.welcome_page.url`, the property takes
        the Redirect URI value." "Save with Active cleared: the property becomes empty by default."
        """
        if self.active:
            set_welcome_page(self.redirect_uri)
        elif previous_setting is not None and previous_setting.active:
            set_welcome_page("")

    def remove_unused_certificates(self) -> None:
        """ "When … no other record has the same URL IdP and Realm, its certificates are removed." """
        if not type(self).objects.filter(url_idp=self.url_idp, realm=self.realm).exists():
            pair = CertificatePair.get_locked(*self.pair)
            IdpCertificate.of_pair(*self.pair).delete()  # each removal is logged
            pair.reset()

    def _secret_change(self, previous_setting: Self | None) -> str:
        """A sentence for the history, which does not record this column."""
        if previous_setting is None or previous_setting.client_secret == self.client_secret:
            return ""
        return f"The client secret was {'entered' if self.client_secret else 'removed'}."

    def _reset_provider_state(self, previous_setting: Self) -> None:
        for name in INTERNAL_COLUMNS - {"needs_approval"}:
            field: Any = self._meta.get_field(name)
            setattr(self, name, field.get_default())
        # A user who can change the record but not read its secret must not be able to send it to another server.
        if self.client_secret == previous_setting.client_secret:
            self.client_secret = ""


def set_welcome_page(url: str) -> None:
    if properties.fetch(properties.WELCOME_PAGE) != url:
        properties.put(properties.WELCOME_PAGE, url)


@receiver(pre_delete, sender=OidcSetting)
def lock_before_deletion(sender: Any, instance: Any, **_: Any) -> None:
    OidcSetting.lock_for_change()
    # The stored version, which may be newer than this object.
    instance.before_deletion = OidcSetting.objects.filter(pk=instance.pk).first()


@receiver(post_delete, sender=OidcSetting)
def clean_up_after_deletion(sender: Any, instance: Any, **_: Any) -> None:
    deleted_setting = instance.before_deletion
    if deleted_setting is not None:
        if deleted_setting.active:  # our choice: deleting the active record works like clearing Active
            set_welcome_page("")
        deleted_setting.remove_unused_certificates()

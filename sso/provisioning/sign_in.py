"""Turns the verified claims of a sign-in into an account, in steps that the authentication backend calls:

    claims ──▶ script ──▶ profile ──▶ find_user ─┬─▶ create_user ─┬─▶ complete: link, update, roles, approval
               child      validated   link, match └────────────────┘

Everything after the script happens in one transaction, so that a refusal at the end leaves nothing behind.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.db import DataError, IntegrityError, transaction
from django.db.models import Value
from django.db.models.functions import Lower

from accounts import privileges
from accounts.models import User
from sso.connections.saving import SECURITY_COLUMNS
from sso.models import IdentityLink, OidcSetting
from sso.provisioning import account_changes, profile, user_matching
from sso.provisioning.account_changes import RoleChange
from sso.provisioning.profile import Profile
from sso.provisioning.user_matching import Comparison
from sso.refusals import Refusal, SignInRefused
from sso.scripts import mapping_script
from sso.scripts.mapping_script import EngineBusy, ScriptFailed
from system import properties
from system.outbound.deadline import Deadline
from system.records import acting_user, custom_columns

T = TypeVar("T")

# If two first sign-ins are concurrent, the next try of the second finds the account that the first created.
MAX_TRIES = 3
# Values of the protocol, which scripts do not need.
PROTOCOL_CLAIMS = frozenset(("nonce", "at_hash", "c_hash", "s_hash"))


@dataclass(frozen=True)
class SignInResult:
    """The user who signed in, and the changes to the account."""

    user: User
    is_new: bool = False
    role_change: RoleChange = field(default_factory=RoleChange)
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """The text for the sign-in log."""
        roles = ", ".join(self.role_change.refused)
        sentences = [
            "The account was created." if self.is_new else "",
            f"Ignored roles that a provider cannot grant: {roles}." if roles else "",
            *self.notes,
        ]
        return " ".join(filter(None, sentences))


@dataclass(frozen=True)
class SignInPreview:
    """What a sign-in with these claims would do. Nothing was changed."""

    fields: dict[str, Any] = field(default_factory=dict)
    result: SignInResult | None = None
    refusal: SignInRefused | None = None


@dataclass(frozen=True)
class AccountProvisioning:
    """Finds or creates the account of one sign-in. The methods run in the caller's transaction."""

    setting: OidcSetting
    claims: Mapping[str, Any]
    profile: Profile
    comparison: Comparison

    @classmethod
    def prepare(cls, setting: OidcSetting, claims: Mapping[str, Any], deadline: Deadline) -> "AccountProvisioning":
        """Run the script, outside any transaction."""
        # First, because an administrator who investigates a failure needs the claims.
        setting.store_claims(script_claims(claims))
        comparison = comparison_for(setting)
        return cls(setting, claims, profile.validate_profile(run_script(setting.script, claims, deadline)), comparison)

    @property
    def issuer(self) -> str:
        return str(self.claims.get("iss", self.setting.issuer))

    @property
    def sub(self) -> str:
        return str(self.claims.get("sub", ""))

    @property
    def has_verified_email(self) -> bool:
        return user_matching.has_verified_email(self.claims)

    def find_user(self) -> User | None:
        """Return the linked account or, if there is no link, the account that matches the claims."""
        if (link := self._find_link()) is not None:
            return link.user
        user = self._find_matching_user()
        if user is not None and not self.has_verified_email:
            raise SignInRefused(Refusal.EMAIL_UNVERIFIED, f"The provider has not verified the email of {user.login}.")
        return user

    def create_user(self) -> User:
        if not self.setting.enable_user_creation:
            value = self.profile.require(self.setting.user_field)
            raise SignInRefused(Refusal.USER_UNKNOWN, f"No account matches the {self.setting.user_field} {value}.")
        for column in ("login", "email"):  # "the two mandatory fields"
            self.profile.require(column)
        # Serialized from here: otherwise two spellings of one login could become two accounts.
        OidcSetting.objects.select_for_update(no_key=True).filter(pk=self.setting.pk).first()
        if self._find_matching_user() is not None:
            raise IntegrityError("created by another sign-in in the meantime")
        self._check_email_is_free()
        return account_changes.create_account(self.profile.values)

    def complete(self, user: User, *, is_new: bool) -> SignInResult:
        """Link the account, update it, synchronize its roles and check that it may sign in here."""
        link = self._find_link() or self._create_link(user, is_new=is_new)
        user = link.user
        if not user.active:
            raise SignInRefused(Refusal.USER_INACTIVE, f"The account {user.login} is not active.")
        role_change, notes = RoleChange(), self.profile.notes
        updates_data = self.setting.update_data_when_login
        is_updated = is_new or updates_data
        if updates_data and not is_new:
            notes += tuple(account_changes.update_account(user, self._verified_values()))
        if is_updated and self.profile.custom_values:
            notes += tuple(custom_columns.save(user, self.profile.custom_values))
        if link.is_email_unverified and self.has_verified_email:
            link.mark_email_verified(self.profile.values.get("email", ""))
        if is_updated and self.setting.enable_role_mapping:
            names, invalid_count = profile.claimed_names(
                self.claims, self.setting.role_claim, self.setting.client_id, profile.ROLE_CLAIMS
            )
            role_change = account_changes.sync_provider_roles(user, names)
            notes += (f"Ignored invalid role names: {invalid_count}.",) if invalid_count else ()
        if is_updated and self.setting.group_claim:
            names, invalid_count = profile.claimed_names(self.claims, self.setting.group_claim, self.setting.client_id)
            notes += tuple(account_changes.sync_provider_groups(user, names, self.setting.pk))
            notes += (f"Ignored invalid group names: {invalid_count}.",) if invalid_count else ()
        check_approval(self.setting, link)
        return SignInResult(user, is_new, role_change, notes)

    def _find_link(self) -> IdentityLink | None:
        return IdentityLink.objects.select_related("user").filter(issuer=self.issuer, sub=self.sub).first()

    def _create_link(self, user: User, *, is_new: bool) -> IdentityLink:
        """ "An account holds at most one sub per issuer: another sub of the same issuer is refused." """
        existing_link = IdentityLink.objects.select_related("user").filter(user=user, issuer=self.issuer).first()
        if existing_link is not None and existing_link.sub == self.sub:
            return existing_link  # created by a concurrent sign-in
        if existing_link is not None:
            raise SignInRefused(Refusal.SUBJECT_CONFLICT, f"The account {user.login} is linked to a different subject.")
        return IdentityLink.objects.create(
            user=user,
            issuer=self.issuer,
            sub=self.sub,
            is_unapproved=self.setting.needs_approval,
            is_email_unverified=is_new and not self.has_verified_email,
        )

    def _find_matching_user(self) -> User | None:
        column, value = self.setting.user_field, self.profile.require(self.setting.user_field)
        users = User.objects.all()
        if column == OidcSetting.UserField.EMAIL:
            # A user who registered with another person's address must not later share an account with that person.
            users = users.exclude(identity_links__is_email_unverified=True)
        if self.comparison is Comparison.EXACT:
            candidates = users.filter(**{column: value})
        else:
            # Uses the index; `user_matching` then compares by its own rules.
            candidates = users.annotate(lowercase_value=Lower(column)).filter(lowercase_value=Lower(Value(value)))
        users_by_id = {user.pk: user for user in candidates}
        values = {pk: getattr(user, column) for pk, user in users_by_id.items()}
        sys_id = user_matching.find_account(value, values, self.comparison)
        return users_by_id[sys_id] if sys_id else None

    def _check_email_is_free(self) -> None:
        """Refuse an unverified email that belongs to another account."""
        email = self.profile.values["email"]
        is_taken = User.objects.annotate(lower_email=Lower("email")).filter(lower_email=Lower(Value(email))).exists()
        if is_taken and not self.has_verified_email:
            raise SignInRefused(Refusal.EMAIL_UNVERIFIED, f"The unverified email {email} belongs to another account.")

    def _verified_values(self) -> dict[str, str]:
        """The profile's values, without an unverified email, because accounts are matched by email."""
        values = self.profile.values
        return {name: value for name, value in values.items() if name != "email" or self.has_verified_email}


def run_in_transaction(initial_provisioning: AccountProvisioning, work: Callable[[AccountProvisioning], T]) -> T:
    """Call `work` with the current connection, and again if another sign-in has created the same record."""
    with acting_user.acting_as(None):
        for _ in range(MAX_TRIES):
            # In this order: the error ends the transaction, then the loop goes on.
            with suppress(IntegrityError), transaction.atomic():
                return work(replace(initial_provisioning, setting=reload_unchanged(initial_provisioning.setting)))
    raise SignInRefused(Refusal.TOO_BUSY, "Other sign-ins kept creating the same account or role.")


def reload_unchanged(setting: OidcSetting) -> OidcSetting:
    """Reload the connection; refuse if the claims might no longer be accepted."""
    current_setting = OidcSetting.objects.filter(pk=setting.pk, active=True).first()
    if current_setting is None:
        raise SignInRefused(Refusal.NOT_AVAILABLE, "The connection was deactivated or deleted during the sign-in.")
    if any(getattr(current_setting, name) != getattr(setting, name) for name in ("issuer", *SECURITY_COLUMNS)):
        raise SignInRefused(Refusal.NOT_AVAILABLE, "The connection was changed during the sign-in.")
    current_setting.needs_approval |= setting.needs_approval
    return current_setting


def preview_sign_in(setting: OidcSetting, source: str, claims: Mapping[str, Any]) -> SignInPreview:
    """Run the same steps with this script and roll them back; `setting.needs_approval` is the value after a save."""
    fields: dict[str, Any] = {}
    try:
        comparison = comparison_for(setting)
        fields = run_script(source, claims)
        with acting_user.acting_as(None), transaction.atomic():
            account_provisioning = AccountProvisioning(setting, claims, profile.validate_profile(fields), comparison)
            user = account_provisioning.find_user()
            result = account_provisioning.complete(user or account_provisioning.create_user(), is_new=user is None)
            transaction.set_rollback(True)
    except SignInRefused as refusal:
        return SignInPreview(fields, refusal=refusal)
    except IntegrityError:
        return SignInPreview(fields, refusal=SignInRefused(Refusal.TOO_BUSY, "Another request changed the account."))
    except DataError:
        return SignInPreview(fields, refusal=SignInRefused(Refusal.PROFILE_INVALID, "iss or sub is too long."))
    return SignInPreview(fields, result)


def comparison_for(setting: OidcSetting) -> Comparison:
    return user_matching.choose_comparison(
        ignores_case=setting.ignore_case, is_case_sensitive=bool(properties.get(properties.CASE_SENSITIVE))
    )


def script_claims(claims: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claims.items() if name not in PROTOCOL_CLAIMS}


def run_script(source: str, claims: Mapping[str, Any], deadline: Deadline | None = None) -> dict[str, Any]:
    try:
        return mapping_script.map_claims(source, script_claims(claims), deadline, custom_columns.column_names("user"))
    except EngineBusy as error:
        raise SignInRefused(Refusal.TOO_BUSY, str(error)) from None
    except ScriptFailed as error:
        raise SignInRefused(Refusal.SCRIPT_ERROR, str(error)) from None


def check_approval(setting: OidcSetting, link: IdentityLink) -> None:
    """Prevent an administrator of single sign-on from signing in to an account with more rights, directly or through a
    link that was created before the connection was reviewed."""
    role = privileges.protected_role_of(link.user)
    if role is None:
        return
    detail = f"{link.user.login} has the role {role.name}."
    if setting.needs_approval:
        raise SignInRefused(Refusal.NOT_APPROVED, f"{detail} The connection is not approved.")
    if link.is_unapproved:
        raise SignInRefused(Refusal.NOT_APPROVED, f"{detail} The account was linked before the approval.")

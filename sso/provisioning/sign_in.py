"""In charge of letting somebody in whom the provider has named: the one place that knows the order of the steps.

    claims ──▶ script ──▶ profile ──▶ link or match ──▶ account made or kept up ──▶ roles ──▶ may they? ──▶ log
               child      usable      by case rules     accounts.provisioning      ditto     approval

Everything behind the script happens in one transaction: a refusal at its end leaves nothing behind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import DataError, IntegrityError, transaction
from django.db.models import Value
from django.db.models.functions import Lower

from accounts import provisioning
from accounts.models import User
from accounts.privileges import privilege_guard
from accounts.provisioning import AccountNotCreated, RoleChange
from sso.connections.approval import DECISIVE
from sso.models import IdentityLink, OidcSetting
from sso.provisioning import profile, user_matching
from sso.provisioning.profile import Profile
from sso.provisioning.user_matching import Account, Comparison
from sso.refusals import SignInRefused
from sso.scripts import mapping_script
from sso.scripts.mapping_script import ScriptFailed, ScriptNotRun
from system import properties
from system.outbound.deadline import Deadline
from system.records import acting_user

# Two first sign-ins at once: the second finds what the first has made.
TRIES = 3
# Values of the protocol, of no use to a script.
INNER_CLAIMS = frozenset(("nonce", "at_hash", "c_hash", "s_hash"))


@dataclass(frozen=True)
class SignInResult:
    """Who came in, and what was done about their account."""

    user: User
    is_new: bool = False
    change: RoleChange = field(default_factory=RoleChange)
    notes: tuple[str, ...] = ()

    def told(self) -> str:
        """For the log."""
        refused = ", ".join(self.change.refused)
        said = [
            "The account was created." if self.is_new else "",
            f"Not granted from outside: {refused}." if refused else "",
            *self.notes,
        ]
        return " ".join(filter(None, said))


@dataclass(frozen=True)
class Preview:
    """What a script would do with these claims; nothing of it was done."""

    fields: dict[str, Any] = field(default_factory=dict)
    user: User | None = None
    is_new: bool = False
    roles_added: tuple[str, ...] = ()
    roles_removed: tuple[str, ...] = ()
    roles_refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refusal: SignInRefused | None = None


def provision_user(setting: OidcSetting, claims: Mapping[str, Any], deadline: Deadline | None = None) -> SignInResult:
    """The account of whom these verified claims name, or `Refused`."""
    # First: who looks for why the script fails wants the claims that it failed with.
    setting.remember_claims(outer(claims))
    how = comparison(setting)
    mapped = profile.read(run(setting.script, claims, deadline))
    with acting_user.acting_as(None):
        for _ in range(TRIES):
            try:
                with transaction.atomic():
                    current = OidcSetting.objects.filter(pk=setting.pk, active=True).first()
                    if current is None:
                        raise SignInRefused("not_available", "The connection was deactivated meanwhile.")
                    if any(getattr(current, name) != getattr(setting, name) for name in ("issuer", *DECISIVE)):
                        raise SignInRefused("not_available", "The connection was changed meanwhile.")
                    current.needs_approval |= setting.needs_approval
                    entered = link_or_create_user(current, claims, mapped, how)
            except IntegrityError:
                continue
            return entered
    raise SignInRefused("too_busy", "Others made the same account or role at the same time, again and again.")


def preview(setting: OidcSetting, source: str, claims: Mapping[str, Any]) -> Preview:
    """The same steps with this script, all of them undone; `setting.needs_approval` is what would be in force."""
    made: dict[str, Any] = {}
    try:
        how = comparison(setting)
        made = run(source, claims)
        with acting_user.acting_as(None), transaction.atomic():
            entered = link_or_create_user(setting, claims, profile.read(made), how)
            transaction.set_rollback(True)
    except SignInRefused as refusal:
        return Preview(fields=made, refusal=refusal)
    except IntegrityError:
        return Preview(
            fields=made, refusal=SignInRefused("too_busy", "Somebody else changed the same account just now.")
        )
    except DataError:
        return Preview(fields=made, refusal=SignInRefused("profile_invalid", "iss or sub is too long to be kept."))
    change = entered.change
    return Preview(
        fields=made,
        user=entered.user,
        is_new=entered.is_new,
        roles_added=change.added,
        roles_removed=change.removed,
        roles_refused=change.refused,
        notes=entered.notes,
    )


def comparison(setting: OidcSetting) -> Comparison:
    how = user_matching.comparison(
        ignores_case=setting.ignore_case, case_counts=bool(properties.get(properties.CASE_SENSITIVE))
    )
    user_matching.refuse_nobody(how)
    return how


def outer(claims: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claims.items() if name not in INNER_CLAIMS}


def run(source: str, claims: Mapping[str, Any], deadline: Deadline | None = None) -> dict[str, Any]:
    try:
        return mapping_script.run(source, outer(claims), deadline)
    except ScriptNotRun as error:
        raise SignInRefused("too_busy", str(error)) from None
    except ScriptFailed as error:
        raise SignInRefused("script_error", str(error)) from None


def link_or_create_user(
    setting: OidcSetting, claims: Mapping[str, Any], mapped: Profile, how: Comparison
) -> SignInResult:
    """One try, in the caller's transaction."""
    issuer, sub = str(claims.get("iss", setting.issuer)), str(claims.get("sub", ""))
    known, is_new = linked(issuer, sub), False
    if known is None:
        user, is_new = match_or_create(setting, claims, mapped, how)
        is_vouched = not is_new or user_matching.has_verified_email(claims)
        known = link(user, issuer, sub, is_unapproved=setting.needs_approval, is_email_unverified=not is_vouched)
    user = known.user
    if not user.active:
        raise SignInRefused("user_inactive", f"The account {user.login} is not active.")
    change, notes = RoleChange(), mapped.notes
    if setting.update_data_when_login and not is_new:
        notes += tuple(provisioning.update(user, vouched(mapped.values, claims)))
    if known.is_email_unverified and user_matching.has_verified_email(claims):
        known.vouch_for(mapped.values.get("email", ""))
    if setting.enable_role_mapping and (is_new or setting.update_data_when_login):
        named = profile.role_names(claims, setting.role_claim, setting.client_id)
        change = provisioning.sync_provider_roles(user, named.names)
        notes += (f"{named.unusable} roles have no usable name.",) if named.unusable else ()
    check_approval(setting, known)
    return SignInResult(user, is_new, change, notes)


def check_approval(setting: OidcSetting, known: IdentityLink) -> None:
    """Whoever only runs single sign-on must not come into an account with more rights, neither at once nor by a link
    that they made before somebody else looked at the connection."""
    guarded = privilege_guard.guarded_role_of(known.user)
    if guarded is None:
        return
    if setting.needs_approval:
        raise SignInRefused(
            "not_approved", f"{known.user.login} holds {guarded.name}, and the connection awaits approval."
        )
    if known.is_unapproved:
        raise SignInRefused(
            "not_approved", f"{known.user.login} holds {guarded.name}, and was linked before the approval."
        )


def vouched(values: Mapping[str, str], claims: Mapping[str, Any]) -> dict[str, str]:
    """Without an email that the provider does not vouch for: accounts are found by it."""
    is_verified = user_matching.has_verified_email(claims)
    return {name: value for name, value in values.items() if name != "email" or is_verified}


def linked(issuer: str, sub: str) -> IdentityLink | None:
    """The link decides, whatever the claims say by now."""
    return IdentityLink.objects.select_related("user").filter(issuer=issuer, sub=sub).first()


def match_or_create(
    setting: OidcSetting, claims: Mapping[str, Any], mapped: Profile, how: Comparison
) -> tuple[User, bool]:
    value = mapped.need(setting.user_field)
    user = matching(setting.user_field, value, how)
    if user is not None:
        if not user_matching.has_verified_email(claims):
            raise SignInRefused(
                "email_unverified", f"{user.login} is an account already, and the email is not verified."
            )
        return user, False
    if not setting.enable_user_creation:
        raise SignInRefused("user_unknown", f"No account is found by the {setting.user_field} {value}.")
    for column in ("login", "email"):  # "the two mandatory fields"
        mapped.need(column)
    # One after the other from here on: without this, two spellings of one login could become two accounts.
    OidcSetting.objects.select_for_update(no_key=True).filter(pk=setting.pk).first()
    user = matching(setting.user_field, value, how)
    if user is not None:
        raise IntegrityError("made by somebody else meanwhile")
    check_address(mapped.values["email"], claims)
    try:
        return provisioning.create(mapped.values), True
    except AccountNotCreated as error:
        raise SignInRefused(error.code, error.detail) from None


def check_address(email: str, claims: Mapping[str, Any]) -> None:
    """Who does not prove that an address is theirs gets no account with that of somebody else."""
    if user_matching.has_verified_email(claims):
        return
    if User.objects.annotate(folded=Lower("email")).filter(folded=Lower(Value(email))).exists():
        raise SignInRefused("email_unverified", f"An account has the email {email} already, and it is not verified.")


def matching(column: str, value: str, how: Comparison) -> User | None:
    users = User.objects.all()
    if column == OidcSetting.UserField.EMAIL:
        # Whoever made an account with an address that was not theirs must not be met by its owner there.
        users = users.exclude(identity_links__is_email_unverified=True)
    if how is Comparison.EXACT:
        found = users.filter(**{column: value})
    else:
        # By the index; the rules then look again at what it brings.
        found = users.annotate(folded=Lower(column)).filter(folded=Lower(Value(value)))
    by_id = {user.pk: user for user in found}
    who = user_matching.find(value, [Account(pk, getattr(user, column)) for pk, user in by_id.items()], how)
    return by_id[who] if who else None


def link(user: User, issuer: str, sub: str, **marks: bool) -> IdentityLink:
    """ "An account holds at most one sub per issuer: another sub of the same issuer is refused." """
    standing = IdentityLink.objects.filter(user=user, issuer=issuer).first()
    if standing is not None and standing.sub == sub:
        return standing  # made meanwhile, by another window of the same person
    if standing is not None:
        raise SignInRefused("subject_conflict", f"{user.login} is linked to another subject of this provider.")
    made = IdentityLink(user=user, issuer=issuer, sub=sub, **marks)
    made.save()
    return made

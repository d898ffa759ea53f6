"""Creates and updates accounts of people who sign in through an identity provider."""

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.db.models.functions import Lower

from accounts import roles
from accounts.models import Group, Role, User, UserGroup, UserRole
from accounts.normalization import composed
from accounts.privileges import NoAdminLeft, ensure_admin_remains
from sso.refusals import Refusal, SignInRefused
from system import properties

# Logins that no provider account may have or resemble.
RESERVED_LOGINS = frozenset((
    "admin", "administrator", "root", "system", "superuser", "servicebase", "sso_admin", "anonymous", "guest", "nobody",
))  # fmt: skip


def fold_name(name: str) -> str:
    """Returns a key that is equal for names that look alike.

    >>> fold_name("\uff41dmin "), fold_name("ADMIN")
    ('admin', 'admin')
    """
    return unicodedata.normalize("NFKC", name).casefold().strip()


def is_login_taken(login: str, exclude_id: str = "") -> bool:
    """Whether another user has this login, ignoring case if logins are case-insensitive."""
    others, login = User.objects.exclude(pk=exclude_id), composed(login)
    if others.filter(login=login).exists():
        return True
    ignores_case = not properties.get(properties.CASE_SENSITIVE)
    return ignores_case and others.annotate(lower_login=Lower("login")).filter(lower_login=login.lower()).exists()


def check_login_is_free(login: str, exclude_id: str = "") -> None:
    if fold_name(login) in RESERVED_LOGINS:
        raise SignInRefused(Refusal.LOGIN_RESERVED, f"The login {login} is reserved.")
    if is_login_taken(login, exclude_id):
        raise SignInRefused(Refusal.LOGIN_TAKEN, f"The login {login} belongs to another account.")


def create_account(profile: Mapping[str, str]) -> User:
    """Creates an account without a password; raises SignInRefused if that is not possible."""
    check_login_is_free(profile.get("login", ""))
    user = User(**profile)
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["password", "sys_id"])
    except ValidationError as error:
        raise SignInRefused(Refusal.PROFILE_INVALID, " ".join(error.messages)) from None
    user.save()
    return user


def update_account(user: User, profile: Mapping[str, str]) -> list[str]:
    """Updates the columns that differ; skips invalid values and returns a note about each."""
    changes = {name: value for name, value in profile.items() if getattr(user, name) != value}
    notes = []
    if "login" in changes:
        try:
            check_login_is_free(changes["login"], exclude_id=user.pk)
        except SignInRefused as error:
            notes.append(f"{error.detail} The login {user.login} was not changed.")
            del changes["login"]
    for name, value in [*changes.items()]:
        try:
            User._meta.get_field(name).run_validators(value)  # type: ignore[union-attr]  # a column
        except ValidationError as error:
            notes.append(f"{name} was not changed. {' '.join(error.messages)}")
            del changes[name]
        else:
            setattr(user, name, value)
    if changes:
        user.save(update_fields=list(changes))
    return notes


@dataclass(frozen=True)
class RoleChange:
    """Names of roles that were granted, revoked, and refused because no sign-in may grant them."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def sync_provider_roles(user: User, names: Collection[str]) -> RoleChange:
    """Replaces the grants that the provider made; keeps grants made here. Runs in the caller's transaction.

    "A provider role with no matching Role (`sys_role`) record causes a new Role record to be created and assigned."
    """
    change = plan_role_change(user, names)
    # Always in the same order: two sign-ins that create the same roles must not deadlock.
    for name in sorted(change.added):
        role, _ = Role.objects.get_or_create(name=name, defaults={"description": "Comes from the identity provider."})
        UserRole.objects.get_or_create(user=user, role=role, source=UserRole.PROVIDER)
    if change.removed:
        try:
            with ensure_admin_remains():
                # Locked, so that the second of two concurrent sign-ins sees the remaining grants.
                revoked_grants = provider_grants(user).filter(role__name__in=change.removed)
                for grant in revoked_grants.select_for_update(of=("self",)).order_by("pk"):
                    grant.delete()
        except NoAdminLeft:
            change = replace(change, removed=())
    user.__dict__.pop("role_names", None)  # cached before the change
    return change


def sync_provider_groups(user: User, names: Collection[str], provider: str) -> list[str]:
    """Replaces the memberships that this provider made; keeps all others. Returns a sentence about each change.

    Groups are never created, and members are added only to groups that are grantable by sign-in.
    """
    groups = {group.pk: group for group in Group.objects.filter(name__in=names, grantable_by_sign_in=True, active=True)}
    rows = UserGroup.objects.filter(user=user).select_related("group").order_by("pk")
    # Locked, so that the second of two concurrent sign-ins sees the remaining memberships.
    memberships = list(rows.select_for_update(of=("self",)))
    old_memberships = [row for row in memberships if row.source == provider and row.group_id not in groups]
    new_groups = [groups[pk] for pk in sorted(groups.keys() - {row.group_id for row in memberships})]
    for membership in old_memberships:
        membership.delete()
    for group in new_groups:
        UserGroup(user=user, group=group, source=provider).save()
    changes = {"Added to groups": new_groups, "Removed from groups": [row.group for row in old_memberships]}
    return [f"{text}: {', '.join(sorted(map(str, group_list)))}." for text, group_list in changes.items() if group_list]


def plan_role_change(user: User, names: Collection[str]) -> RoleChange:
    existing_roles = {role.name: role for role in Role.objects.filter(name__in=names)}
    protected_names = frozenset(Role.objects.filter(grantable_by_sign_in=False).values_list("name", flat=True))
    refused_names = tuple(name for name in names if is_protected_role(name, existing_roles.get(name), protected_names))
    allowed_names = [name for name in names if name not in refused_names]
    granted_names = set(provider_grants(user).values_list("role__name", flat=True))
    return RoleChange(
        added=tuple(name for name in allowed_names if name not in granted_names),
        removed=tuple(sorted(granted_names.difference(allowed_names))),
        refused=refused_names,
    )


def is_protected_role(name: str, role: Role | None, protected_names: frozenset[str]) -> bool:
    """Whether no sign-in may grant this role: it is protected, resembles a protected role, or contains one."""
    if role is not None and not protected_names.isdisjoint(roles.effective_names([role.pk])):
        return True
    return fold_name(name) in {fold_name(protected_name) for protected_name in protected_names}


def provider_grants(user: User) -> QuerySet[UserRole]:
    return UserRole.objects.filter(user=user, source=UserRole.PROVIDER)

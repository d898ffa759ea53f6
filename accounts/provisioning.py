"""In charge of accounts that an identity provider vouches for: making them, keeping data and grants as it says."""

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.db.models.functions import Lower

from accounts import roles
from accounts.models import Role, User, UserRole
from accounts.normalisation import composed
from accounts.privileges.last_admin import NoAdminLeft, keeping_an_admin
from system import properties

# Nobody from outside gets an account that looks like one of ours.
RESERVED = frozenset(
    (
        "admin",
        "administrator",
        "root",
        "system",
        "superuser",
        "servicebase",
        "sso_admin",
        "anonymous",
        "guest",
        "nobody",
    )
)


class AccountNotCreated(Exception):
    """There can be no account of this login; `code` is `login_reserved`, `login_taken` or `profile_invalid`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


def folded(name: str) -> str:
    """One spelling for all that look like it: of names that are guarded.

    >>> folded("\uff41dmin "), folded("ADMIN")
    ('admin', 'admin')
    """
    return unicodedata.normalize("NFKC", name).casefold().strip()


def is_taken(login: str, but: str = "") -> bool:
    """Whether somebody else has this login, or one that counts as the same."""
    others, login = User.objects.exclude(pk=but), composed(login)
    if others.filter(login=login).exists():
        return True
    counts = bool(properties.get(properties.CASE_SENSITIVE))
    return not counts and others.annotate(folded=Lower("login")).filter(folded=login.lower()).exists()


def check_login(login: str, but: str = "") -> None:
    if folded(login) in RESERVED:
        raise AccountNotCreated("login_reserved", f"The login {login} is reserved.")
    if is_taken(login, but):
        raise AccountNotCreated("login_taken", f"The login {login} belongs to another account.")


def create(profile: Mapping[str, str]) -> User:
    """A new account without password; `NotMade` says why there can be none."""
    check_login(profile.get("login", ""))
    user = User(**profile)
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["password", "sys_id"])
    except ValidationError as error:
        raise AccountNotCreated("profile_invalid", " ".join(error.messages)) from None
    user.save()
    return user


def update(user: User, profile: Mapping[str, str]) -> list[str]:
    """Take over what differs; what cannot be taken over stays as it is and is told."""
    changed = {name: value for name, value in profile.items() if getattr(user, name) != value}
    notes = []
    if "login" in changed:
        try:
            check_login(changed["login"], but=user.pk)
        except AccountNotCreated as error:
            notes.append(f"{error.detail} It stays {user.login}.")
            del changed["login"]
    for name, value in [*changed.items()]:
        try:
            User._meta.get_field(name).run_validators(value)  # type: ignore[union-attr]  # a column
        except ValidationError as error:
            notes.append(f"{name} stays as it is. {' '.join(error.messages)}")
            del changed[name]
        else:
            setattr(user, name, value)
    if changed:
        user.save(update_fields=list(changed))
    return notes


@dataclass(frozen=True)
class RoleChange:
    """Names of roles: granted, taken away again, and refused because no sign-in may grant them."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def sync_provider_roles(user: User, names: Collection[str]) -> RoleChange:
    """Make the provider's grants of a user these; grants given here stay. Part of the caller's transaction.

    "A provider role with no matching Role (`sys_role`) record causes a new Role record to be created and assigned."
    """
    change = plan(user, names)
    # In one order everywhere: two sign-ins that make the same roles must not wait for each other.
    for name in sorted(change.added):
        role, _ = Role.objects.get_or_create(name=name, defaults={"description": "From the identity provider."})
        UserRole.objects.get_or_create(user=user, role=role, source=UserRole.PROVIDER)
    if change.removed:
        try:
            with keeping_an_admin():
                # Locked: of two sign-ins of one person the second finds what is left.
                gone = provider_grants(user).filter(role__name__in=change.removed)
                for grant in gone.select_for_update(of=("self",)).order_by("pk"):
                    grant.delete()
        except NoAdminLeft:
            change = replace(change, removed=())
    user.__dict__.pop("role_names", None)  # remembered from before
    return change


def plan(user: User, names: Collection[str]) -> RoleChange:
    known = {role.name: role for role in Role.objects.filter(name__in=names)}
    guarded = frozenset(Role.objects.filter(grantable_by_sign_in=False).values_list("name", flat=True))
    refused = tuple(name for name in names if is_guarded(name, known.get(name), guarded))
    wanted = [name for name in names if name not in refused]
    held = set(provider_grants(user).values_list("role__name", flat=True))
    return RoleChange(
        added=tuple(name for name in wanted if name not in held),
        removed=tuple(sorted(held.difference(wanted))),
        refused=refused,
    )


def is_guarded(name: str, role: Role | None, guarded: frozenset[str]) -> bool:
    """Whether this is a role that no sign-in may grant, looks like one, or contains one."""
    if role is not None and not guarded.isdisjoint(roles.closure([role.pk])):
        return True
    # One that was unticked is granted under its own name; others that look like a guarded one are not.
    return folded(name) in {folded(each) for each in guarded}


def provider_grants(user: User) -> QuerySet[UserRole]:
    return UserRole.objects.filter(user=user, source=UserRole.PROVIDER)

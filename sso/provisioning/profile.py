"""In charge of what a provider's data means here: which columns of a user it fills, which roles it names. Pure."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accounts.normalisation import composed
from sso.provisioning.user_matching import INVISIBLE, is_email, is_login
from sso.refusals import SignInRefused

# Text that is too long for these is cut; of login and email it is refused.
LONGEST = {"first_name": 150, "last_name": 150, "phone": 50}
IS_GOOD = {"login": is_login, "email": is_email}

ROLE_CLAIMS = ("realm_access.roles", "resource_access.<client>.roles", "roles", "groups")
MOST_ROLES = 200
LONGEST_ROLE = 100


@dataclass(frozen=True)
class Profile:
    """Usable values of the columns that the script set, and a few words on each that is not usable."""

    values: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def need(self, column: str) -> str:
        """A value without which it cannot be told who somebody is."""
        if column not in self.values:
            raise SignInRefused("profile_invalid", " ".join(self.notes) or f"The script sets no {column}.")
        return self.values[column]


def read(made: Mapping[str, Any]) -> Profile:
    """
    >>> read({"login": "ann", "email": ["x"], "first_name": "Ann\\x07"})
    Profile(values={'login': 'ann', 'first_name': 'Ann'}, notes=('email is no text.',))
    """
    values, notes = {}, []
    for name, value in made.items():
        if value is None:
            continue
        if isinstance(value, bool | list | dict):
            notes.append(f"{name} is no text.")
        elif name not in IS_GOOD:
            values[name] = visible(composed(str(value)))[: LONGEST[name]].strip()
        elif isinstance(value, str) and IS_GOOD[name](composed(value)):
            values[name] = composed(value)  # as it is stored
        else:
            notes.append(f"{name} is not a usable one.")
    return Profile(values, tuple(notes))


def visible(text: str) -> str:
    return "".join(character for character in text if unicodedata.category(character) not in INVISIBLE)


@dataclass(frozen=True)
class RoleNames:
    """What a provider calls somebody's roles, as far as they can be names of ours."""

    names: tuple[str, ...] = ()
    unusable: int = 0
    """How many were no name at all, too long, or beyond the most."""


def role_names(claims: Mapping[str, Any], paths: str, client_id: str) -> RoleNames:
    """The roles under the claims that the connection names, else under the usual ones.

    >>> role_names({"groups": ["itil", "itil", " x", 7]}, "", "servicebase")
    RoleNames(names=('itil',), unusable=2)
    """
    wanted = [path.strip() for path in paths.split(",") if path.strip()] or ROLE_CLAIMS
    found: dict[Any, None] = {}
    unusable = 0
    for path in wanted:
        value = at(claims, path, client_id)
        for name in [value] if isinstance(value, str) else value if isinstance(value, list) else ():
            if is_role_name(name):
                found[name] = None
            else:
                unusable += 1
    names = tuple(found)
    return RoleNames(names[:MOST_ROLES], unusable + max(0, len(names) - MOST_ROLES))


def at(claims: Mapping[str, Any], path: str, client_id: str) -> Any:
    """The value under a path of names with dots; a claim whose own name has dots (an address) is found first.

    >>> at({"resource_access": {"my.app": {"roles": ["a"]}}}, "resource_access.<client>.roles", "my.app")
    ['a']
    """
    if path in claims:
        return claims[path]
    value: Any = claims
    for step in path.split("."):
        value = value.get(client_id if step == "<client>" else step) if isinstance(value, dict) else None
    return value


def is_role_name(name: object) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= LONGEST_ROLE and name == name.strip() and visible(name) == name

"""Reads a user's columns, roles and groups from a provider's data. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accounts.normalization import composed
from sso.provisioning.user_matching import is_email, is_login, is_visible_name, remove_invisible
from sso.refusals import Refusal, SignInRefused
from system.records import custom_columns

# Longer text is truncated in these columns, but refused in login and email.
MAX_LENGTHS = {"first_name": 150, "last_name": 150, "phone": 50}
VALIDATORS = {"login": is_login, "email": is_email}

ROLE_CLAIMS = ("realm_access.roles", "resource_access.<client>.roles", "roles", "groups")
MAX_ROLES = 200
MAX_ROLE_LENGTH = 100


@dataclass(frozen=True)
class Profile:
    """The valid values of the columns that the script set, and a note about each invalid one. Values of custom
    columns are checked when they are stored."""

    values: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    custom_values: dict[str, Any] = field(default_factory=dict)

    def require(self, column: str) -> str:
        """Return the value of a column; refuse if there is none."""
        if column not in self.values:
            is_set = any(note.startswith(f"{column} ") for note in self.notes)
            notes = self.notes if is_set else (f"The script does not set {column}.", *self.notes)
            raise SignInRefused(Refusal.PROFILE_INVALID, " ".join(notes))
        return self.values[column]


def validate_profile(fields: Mapping[str, Any]) -> Profile:
    """
    >>> validate_profile({"login": "ann", "email": ["x"], "first_name": "Ann\\x07"})
    Profile(values={'login': 'ann', 'first_name': 'Ann'}, notes=('email is not text.',), custom_values={})
    """
    values, notes, custom_values = {}, [], {}
    for name, value in fields.items():
        if value is None:
            continue
        if name.startswith(custom_columns.PREFIX):
            custom_values[name] = value
        elif isinstance(value, bool | list | dict):
            notes.append(f"{name} is not text.")
        elif name not in VALIDATORS:
            values[name] = remove_invisible(composed(str(value)))[: MAX_LENGTHS[name]].strip()
        elif isinstance(value, str) and VALIDATORS[name](composed(value)):
            values[name] = composed(value)  # as it is stored
        else:
            notes.append(f"{name} is not valid.")
    return Profile(values, tuple(notes), custom_values)


def claimed_names(
    claims: Mapping[str, Any], paths: str, client_id: str, default_paths: Sequence[str] = ()
) -> tuple[tuple[str, ...], int]:
    """The names of roles or groups in the claims at the comma-separated `paths`, or at `default_paths` if `paths` is
    empty, and the number of names that are malformed, too long or beyond the limit.

    >>> claimed_names({"groups": ["itil", "itil", " x", 7]}, "", "servicebase", ROLE_CLAIMS)
    (('itil',), 2)
    """
    valid_names: dict[str, None] = {}
    invalid_count = 0
    entered_paths = [path.strip() for path in paths.split(",") if path.strip()]
    for path in entered_paths or default_paths:
        value = read_claim(claims, path, client_id)
        for name in [value] if isinstance(value, str) else value if isinstance(value, list) else ():
            if isinstance(name, str) and is_visible_name(name, MAX_ROLE_LENGTH):
                valid_names[name] = None
            else:
                invalid_count += 1
    names = tuple(valid_names)
    return names[:MAX_ROLES], invalid_count + max(0, len(names) - MAX_ROLES)


def read_claim(claims: Mapping[str, Any], path: str, client_id: str) -> Any:
    """The value at a dotted path. A claim whose own name contains dots (a URL) takes precedence.

    >>> read_claim({"resource_access": {"my.app": {"roles": ["a"]}}}, "resource_access.<client>.roles", "my.app")
    ['a']
    """
    if path in claims:
        return claims[path]
    value: Any = claims
    for step in path.split("."):
        value = value.get(client_id if step == "<client>" else step) if isinstance(value, dict) else None
    return value

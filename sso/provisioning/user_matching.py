"""Matches a provider's user to an account by the rules of case sensitivity. Pure.

Ignore case   svc.login.username.sensitivity.enabled   comparison
off           true                                     EXACT: the account spelled as the provider returns it
on            true                                     refused: nobody is authorized, as specified
on            false                                    FOLDED: an exact match is preferred, several are refused
off           false                                    FOLDED (our choice: the property turns sensitivity off)
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import Enum

from accounts.normalization import composed
from sso.refusals import Refusal, SignInRefused

MAX_EMAIL_LENGTH = 254
MAX_LOGIN_LENGTH = 150
# One at sign, no invisible characters, a domain of plain labels: the addresses that an account can have.
LOCAL_PART = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
DOMAIN_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
EMAIL_PATTERN = re.compile(rf"(?=.{{1,64}}@){LOCAL_PART}@{DOMAIN_LABEL}(?:\.{DOMAIN_LABEL})*")
# Control, format, surrogate, private use, unassigned, line and paragraph separators.
INVISIBLE_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


class Comparison(Enum):
    EXACT = "exact"
    FOLDED = "folded"


def choose_comparison(*, ignores_case: bool, is_case_sensitive: bool) -> Comparison:
    """Apply the table at the top of this module; raise SignInRefused if it refuses the combination."""
    if not is_case_sensitive:
        return Comparison.FOLDED
    if ignores_case:
        raise SignInRefused(
            Refusal.CASE_RULE,
            "Ignore case sensitivity is selected, but the property svc.login.username.sensitivity.enabled is true.",
        )
    return Comparison.EXACT


def fold_case(text: str) -> str:
    """Return the form of a value for case-insensitive comparison. Never converts to upper case.

    >>> fold_case("MIKE") == fold_case("mike"), fold_case("m\u0131ke") == fold_case("MIKE")
    (True, False)
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.lower()).casefold())


def is_same_value(value: str, other_value: str, comparison: Comparison) -> bool:
    """Folding never makes non-ASCII characters equal to ASCII ones: a Kelvin sign is not a k.

    >>> is_same_value("Karl", "karl", Comparison.FOLDED), is_same_value("\u212aarl", "karl", Comparison.FOLDED)
    (True, False)
    """
    if comparison is Comparison.EXACT:
        return composed(value) == composed(other_value)
    return value.isascii() == other_value.isascii() and fold_case(value) == fold_case(other_value)


def find_account(value: str, values: Mapping[str, str], comparison: Comparison) -> str | None:
    """Return the id of the matching account, or None; refuse if several match. `values` maps ids to emails or logins,
    depending on the connection's User field."""
    similar_ids = [sys_id for sys_id, other in values.items() if is_same_value(value, other, comparison)]
    matches = [sys_id for sys_id in similar_ids if values[sys_id] == value] or similar_ids
    if len(matches) > 1:
        raise SignInRefused(Refusal.USER_AMBIGUOUS, f"{len(matches)} accounts match.")
    return matches[0] if matches else None


def is_email(value: str) -> bool:
    """
    >>> is_email("ann@example.com"), is_email("a@b@victim"), is_email("ann@example.com."), is_email(" ann@example.com")
    (True, False, False, False)
    """
    return len(value) <= MAX_EMAIL_LENGTH and EMAIL_PATTERN.fullmatch(value) is not None


def remove_invisible(text: str) -> str:
    return "".join(character for character in text if unicodedata.category(character) not in INVISIBLE_CATEGORIES)


def is_visible_name(name: str, max_length: int) -> bool:
    """Whether the name has a valid length, no invisible characters, and no spaces around it."""
    return 1 <= len(name) <= max_length and name == name.strip() == remove_invisible(name)


def is_login(value: str) -> bool:
    """
    >>> is_login("ann"), is_login("ann "), is_login("a:b"), is_login("a\u200bnn"), is_login("")
    (True, False, False, False, False)
    """
    return ":" not in value and is_visible_name(value, MAX_LOGIN_LENGTH)


def has_verified_email(claims: Mapping[str, object]) -> bool:
    """A missing claim counts as verified; any value other than true counts as unverified.

    >>> has_verified_email({}), has_verified_email({"email_verified": "true"})
    (True, True)
    >>> has_verified_email({"email_verified": False})
    False
    """
    value = claims.get("email_verified")
    return value is None or value is True or (isinstance(value, str) and value.lower() == "true")

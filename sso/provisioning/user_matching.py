"""In charge of who somebody is among accounts: pure, by the rules on upper and lower case.

Ignore case   svc.login.username.sensitivity.enabled   comparison
off           true                                     EXACT: the account spelled as the provider returns it
on            true                                     NOBODY is authorized, as specified
on            false                                    FOLDED: exact preferred, more than one left is refused
off           false                                    FOLDED (chosen: the property switches sensitivity off)
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from accounts.normalisation import composed
from sso.refusals import SignInRefused

LONGEST_EMAIL = 254
LONGEST_LOGIN = 150
# One at-sign, nothing invisible, a domain of plain labels: the addresses that an account can have.
LOCAL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
EMAIL = re.compile(rf"(?=.{{1,64}}@){LOCAL}@{LABEL}(?:\.{LABEL})*")
# Control, format, surrogate, private, unassigned, and the separators of lines and paragraphs.
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


class Comparison(Enum):
    EXACT = "exact"
    FOLDED = "folded"
    NOBODY = "nobody"


def comparison(*, ignores_case: bool, case_counts: bool) -> Comparison:
    """The row of the table above."""
    if not case_counts:
        return Comparison.FOLDED
    return Comparison.NOBODY if ignores_case else Comparison.EXACT


@dataclass(frozen=True)
class Account:
    """What matching needs of an account; `value` is its email or login, as the connection's User field says."""

    sys_id: str
    value: str


def folded(text: str) -> str:
    """The spelling under which two values are the same where case does not count. Never the upper case.

    >>> folded("MIKE") == folded("mike"), folded("m\u0131ke") == folded("MIKE")
    (True, False)
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.lower()).casefold())


def is_same(one: str, other: str, how: Comparison) -> bool:
    """Folding never makes a value of other characters equal to a plain one: a Kelvin sign is no k.

    >>> is_same("Karl", "karl", Comparison.FOLDED), is_same("\u212aarl", "karl", Comparison.FOLDED)
    (True, False)
    """
    if how is Comparison.EXACT:
        return composed(one) == composed(other)
    return how is Comparison.FOLDED and one.isascii() == other.isascii() and folded(one) == folded(other)


def refuse_nobody(how: Comparison) -> None:
    """Nobody is authorized, whoever it is: said before anything is asked about them."""
    if how is Comparison.NOBODY:
        raise SignInRefused("case_rule", "Ignore case is selected while the system property says that case counts.")


def find(value: str, accounts: Iterable[Account], how: Comparison) -> str | None:
    """The id of the one account that this value means; None when there is none, `Refused` when there are several."""
    refuse_nobody(how)
    same = [account for account in accounts if is_same(value, account.value, how)]
    exact = [account for account in same if account.value == value]
    left = exact or same
    if len(left) > 1:
        raise SignInRefused("user_ambiguous", f"{len(left)} accounts match.")
    return left[0].sys_id if left else None


def is_email(value: str) -> bool:
    """
    >>> is_email("ann@example.com"), is_email("a@b@victim"), is_email("ann@example.com."), is_email(" ann@example.com")
    (True, False, False, False)
    """
    return len(value) <= LONGEST_EMAIL and EMAIL.fullmatch(value) is not None


def is_login(value: str) -> bool:
    """
    >>> is_login("ann"), is_login("ann "), is_login("a:b"), is_login("a\u200bnn"), is_login("")
    (True, False, False, False, False)
    """
    return (
        1 <= len(value) <= LONGEST_LOGIN
        and value == value.strip()
        and ":" not in value
        and not any(unicodedata.category(character) in INVISIBLE for character in value)
    )


def has_verified_email(claims: Mapping[str, object]) -> bool:
    """Only what says something else than yes counts as no: a provider that does not say vouches for its addresses.

    >>> has_verified_email({}), has_verified_email({"email_verified": "true"})
    (True, True)
    >>> has_verified_email({"email_verified": False})
    False
    """
    said = claims.get("email_verified")
    return said is None or said is True or (isinstance(said, str) and said.lower() == "true")

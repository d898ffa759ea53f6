"""Matching a claim to an account according to the case rules."""

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sso.provisioning import user_matching
from sso.provisioning.user_matching import (
    Comparison,
    choose_comparison,
    find_account,
    is_email,
    is_login,
    is_same_value,
)
from sso.refusals import SignInRefused

BOB, Bob, BoB = ("1", "bob"), ("2", "Bob"), ("3", "BoB")


@pytest.mark.parametrize(
    ("ignores_case", "is_case_sensitive", "row"),
    [
        (False, True, Comparison.EXACT),
        (True, False, Comparison.FOLDED),
        (False, False, Comparison.FOLDED),
    ],
)
def test_case_settings_choose_the_comparison(ignores_case: bool, is_case_sensitive: bool, row: Comparison):
    assert choose_comparison(ignores_case=ignores_case, is_case_sensitive=is_case_sensitive) is row


# The claim, the ids and logins of all accounts, and the match for EXACT and for FOLDED ("!" means refused).
CASES: list[tuple[str, list[tuple[str, str]], str | None, str | None]] = [
    ("bob", [], None, None),
    ("bob", [BOB], "1", "1"),
    ("bob", [Bob], None, "2"),
    ("Bob", [BOB], None, "1"),
    ("bob", [BOB, Bob], "1", "1"),  # "the one whose value equals the returned lower-case value is authorized"
    ("bob", [Bob, BoB], None, "!"),
    ("BOB", [BOB, Bob], None, "!"),
    ("bob", [BOB, ("4", "bob")], "!", "!"),  # two accounts with one email address
    ("bob", [BOB, Bob, ("4", "bob")], "!", "!"),
    ("bo", [BOB], None, None),
    ("bob ", [BOB], None, None),
    ("m\u0131ke", [("5", "mike")], None, None),
    ("m\u0131ke", [("5", "MIKE")], None, None),
    ("mike", [("5", "MIKE")], None, "5"),
    ("m\u0131k\u00e9", [("5", "MIK\u00c9")], None, None),  # upper() would make them equal
    ("\u212aarl", [("6", "karl")], None, None),  # Kelvin sign
    ("\uff4barl", [("6", "karl")], None, None),  # fullwidth k
    ("ma\u00df", [("7", "mass")], None, None),
    ("\u00c4nne", [("8", "\u00e4nne")], None, "8"),
    ("\u00e4nne", [("8", "a\u0308nne")], "8", "8"),  # the same letter, composed and decomposed
    ("a\u0308nne", [("8", "\u00e4nne")], "8", "8"),
    ("\u00e4nne", [("8", "a\u0308nne"), ("9", "\u00e4nne")], "9", "9"),
    ("\u212a\u00e4rl", [("6", "K\u00e4rl")], None, "6"),  # Kelvin sign
    ("\u212aarl", [("6", "Karl")], None, None),
]


@pytest.mark.parametrize(
    ("value", "accounts", "exact_login", "folded_login"), CASES, ids=[str(case[:2]) for case in CASES]
)
def test_the_matching_account_is_found(
    value: str, accounts: list[tuple[str, str]], exact_login: str | None, folded_login: str | None
):  # A47, A48
    for comparison, login in ((Comparison.EXACT, exact_login), (Comparison.FOLDED, folded_login)):
        for order in itertools.permutations(accounts):
            if login == "!":
                with pytest.raises(SignInRefused) as error:
                    find_account(value, dict(order), comparison)
                assert error.value.code == "user_ambiguous"
            else:
                assert find_account(value, dict(order), comparison) == login


def test_sign_in_is_refused_under_rule_2():  # A48
    with pytest.raises(SignInRefused) as error:
        choose_comparison(ignores_case=True, is_case_sensitive=True)
    assert error.value.code == "case_rule"


@given(st.text(max_size=8), st.text(max_size=8))
def test_folding_never_merges_ascii_with_other_characters(character: str, other_character: str):  # A47
    if is_same_value(character, other_character, Comparison.FOLDED) and character.isascii():
        assert character.lower() == other_character.lower()


@given(st.text(max_size=8))
def test_every_spelling_matches_itself(value: str):
    assert is_same_value(value, value, Comparison.FOLDED) and is_same_value(value, value, Comparison.EXACT)
    assert user_matching.fold_case(user_matching.fold_case(value)) == user_matching.fold_case(value)
    assert is_same_value(value, unicodedata.normalize("NFC", value), Comparison.FOLDED) or not value.isascii()


@given(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
def test_matching_is_transitive(first: str, second: str, third: str):
    comparison = Comparison.FOLDED
    assert is_same_value(first, second, comparison) == is_same_value(second, first, comparison)
    if is_same_value(first, second, comparison) and is_same_value(second, third, comparison):
        assert is_same_value(first, third, comparison)


EMAIL_EXAMPLES = {
    "ann@example.com": True, "a.b+c_d-e@sub.example.co": True, "Ann@Example.COM": True, "a@b": True,
    "o'neil@x.org": True,
    "": False, "ann": False, "@example.com": False, "ann@": False, "a@b@victim": False, "ann@example.com.": False,
    " ann@example.com": False, "ann@example.com ": False, "ann@example.com\n": False, "ann@exa mple.com": False,
    "ann@example.com\x00": False, "ann\x00@example.com": False, "a..b@example.com": False, ".a@example.com": False,
    "ann@.example.com": False, "ann@example..com": False, "ann@-example.com": False, "ann@[127.0.0.1]": False,
    '"a b"@example.com': False, "\u0131nn@example.com": False, "ann@ex\u0430mple.com": False,
    "\u212aim@example.com": False,
    "ann,bob@example.com": False, "ann@example.com,bob@example.com": False, "<ann@example.com>": False,
    "a" * 65 + "@example.com": False, "a@" + ".".join(["b" * 60] * 5): False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "is_valid"), EMAIL_EXAMPLES.items(), ids=[ascii(value)[:30] for value in EMAIL_EXAMPLES]
)
def test_email_address_validation(value: str, is_valid: bool):  # A47
    assert is_email(value) is is_valid


LOGIN_EXAMPLES = {
    "ann": True, "Ann Smith": True, "\u00e4nne": True, "ann@example.com": True, "a" * 150: True, "DOMAIN\\ann": True,
    "": False, " ann": False, "ann\t": False, "a:b": False, "a\nb": False, "a\x00b": False, "a\u200bb": False,
    "a\u202eb": False, "\ud800": False, "a\u2028b": False, "a" * 151: False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "is_valid"), LOGIN_EXAMPLES.items(), ids=[ascii(value)[:30] for value in LOGIN_EXAMPLES]
)
def test_login_validation(value: str, is_valid: bool):
    assert is_login(value) is is_valid


@pytest.mark.parametrize(
    ("claim", "is_verified"),
    [(None, True), (True, True), ("true", True), ("True", True), (False, False), ("false", False), ("", False),
     (0, False), (1, False), ([], False), ("yes", False)],
)  # fmt: skip
def test_only_true_or_a_missing_claim_counts_as_verified(claim: object, is_verified: bool):  # A44
    assert user_matching.has_verified_email({"email_verified": claim}) is is_verified


def test_a_missing_claim_counts_as_verified():
    assert user_matching.has_verified_email({})

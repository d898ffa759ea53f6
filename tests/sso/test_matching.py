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

LOWER_BOB, TITLE_BOB, MIXED_BOB = ("1", "bob"), ("2", "Bob"), ("3", "BoB")


@pytest.mark.parametrize(
    ("ignores_case", "is_case_sensitive", "comparison"),
    [
        (False, True, Comparison.EXACT),
        (True, False, Comparison.FOLDED),
        (False, False, Comparison.FOLDED),
    ],
)
def test_case_settings_choose_the_comparison(ignores_case: bool, is_case_sensitive: bool, comparison: Comparison):
    assert choose_comparison(ignores_case=ignores_case, is_case_sensitive=is_case_sensitive) is comparison


# The claim, the ids and logins of all accounts, and the match for EXACT and for FOLDED ("!" means refused).
MATCHES: list[tuple[str, list[tuple[str, str]], str | None, str | None]] = [
    ("bob", [], None, None),
    ("bob", [LOWER_BOB], "1", "1"),
    ("bob", [TITLE_BOB], None, "2"),
    ("Bob", [LOWER_BOB], None, "1"),
    # "the one whose value equals the returned lower-case value is authorized"
    ("bob", [LOWER_BOB, TITLE_BOB], "1", "1"),
    ("bob", [TITLE_BOB, MIXED_BOB], None, "!"),
    ("BOB", [LOWER_BOB, TITLE_BOB], None, "!"),
    ("bob", [LOWER_BOB, ("4", "bob")], "!", "!"),  # two accounts with one email address
    ("bob", [LOWER_BOB, TITLE_BOB, ("4", "bob")], "!", "!"),
    ("bo", [LOWER_BOB], None, None),
    ("bob ", [LOWER_BOB], None, None),
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
    ("value", "accounts", "exact_id", "folded_id"), MATCHES, ids=[str(match[:2]) for match in MATCHES]
)
def test_the_matching_account_is_found(
    value: str, accounts: list[tuple[str, str]], exact_id: str | None, folded_id: str | None
):  # A47, A48
    for comparison, account_id in ((Comparison.EXACT, exact_id), (Comparison.FOLDED, folded_id)):
        for ordered_accounts in itertools.permutations(accounts):
            if account_id == "!":
                with pytest.raises(SignInRefused) as exc_info:
                    find_account(value, dict(ordered_accounts), comparison)
                assert exc_info.value.code == "user_ambiguous"
            else:
                assert find_account(value, dict(ordered_accounts), comparison) == account_id


def test_ignoring_case_is_refused_while_logins_are_case_sensitive():  # A48
    with pytest.raises(SignInRefused) as exc_info:
        choose_comparison(ignores_case=True, is_case_sensitive=True)
    assert exc_info.value.code == "case_rule"


@given(st.text(max_size=8), st.text(max_size=8))
def test_folding_never_merges_ascii_with_other_characters(text: str, other_text: str):  # A47
    if is_same_value(text, other_text, Comparison.FOLDED) and text.isascii():
        assert text.lower() == other_text.lower()


@given(st.text(max_size=8))
def test_every_spelling_matches_itself(value: str):
    assert is_same_value(value, value, Comparison.FOLDED) and is_same_value(value, value, Comparison.EXACT)
    assert user_matching.fold_case(user_matching.fold_case(value)) == user_matching.fold_case(value)
    assert is_same_value(value, unicodedata.normalize("NFC", value), Comparison.FOLDED) or not value.isascii()


@given(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
def test_matching_is_transitive(first_value: str, second_value: str, third_value: str):
    comparison = Comparison.FOLDED
    assert is_same_value(first_value, second_value, comparison) == is_same_value(second_value, first_value, comparison)
    if is_same_value(first_value, second_value, comparison) and is_same_value(second_value, third_value, comparison):
        assert is_same_value(first_value, third_value, comparison)


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

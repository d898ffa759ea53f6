"""Accounts at sign-in: matching by the case rules, and identity links."""

from typing import Any

import pytest

from accounts.models import User
from sso.models import IdentityLink, OidcSetting, SignIn
from sso.provisioning.sign_in import AccountProvisioning
from sso.scripts import mapping_script
from system import properties
from tableapi.models import Table
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT
from tests.sso.sign_ins import Browser, check_refusal, make_active_connection, make_ann
from tests.tableapi.designs import make_column, query_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    return Browser(provider)


def set_case_sensitivity(is_case_sensitive: bool) -> None:
    properties.put(properties.CASE_SENSITIVE, "true" if is_case_sensitive else "false")


def sign_in_outcome(browser: Browser) -> str:
    """The login of the signed-in user, or the code of the refusal."""
    Browser(browser.provider).sign_in()
    entry = SignIn.objects.latest("sys_updated_at")
    return entry.user.login if entry.user else entry.outcome


# The claim, the existing logins, and the signed-in user: with default settings, with Ignore
# case alone, with both off, and with Ignore case and the property off.
CASE_RULES: list[tuple[str, list[str], tuple[str, str, str, str]]] = [
    ("bob", ["bob"], ("bob", "case_rule", "bob", "bob")),
    ("bob", ["Bob"], ("user_unknown", "case_rule", "Bob", "Bob")),
    ("Bob", ["bob"], ("user_unknown", "case_rule", "bob", "bob")),
    ("bob", ["bob", "Bob"], ("bob", "case_rule", "bob", "bob")),
    ("bob", ["Bob", "BOB"], ("user_unknown", "case_rule", "user_ambiguous", "user_ambiguous")),
    ("m\u0131ke", ["mike", "MIKE"], ("user_unknown", "case_rule", "user_unknown", "user_unknown")),
    ("\u212aarl", ["karl"], ("user_unknown", "case_rule", "user_unknown", "user_unknown")),
    ("bob", [], ("user_unknown", "case_rule", "user_unknown", "user_unknown")),
]


@pytest.mark.parametrize(
    ("claim", "logins", "expected_outcomes"), CASE_RULES, ids=[f"{row[0]}-{'-'.join(row[1])}" for row in CASE_RULES]
)
def test_an_account_is_matched_by_the_case_rules(
    browser: Browser, claim: str, logins: list[str], expected_outcomes: tuple[str, ...]
):
    """Specified as rules 1 and 2. A47, A48"""
    for login in logins:
        User.objects.create_user(login)
    browser.provider.person["preferred_username"] = claim
    setting = make_active_connection(browser.provider)
    case_settings = [(False, True), (True, True), (False, False), (True, False)]
    for expected_outcome, (ignores_case, is_case_sensitive) in zip(expected_outcomes, case_settings, strict=True):
        set_case_sensitivity(is_case_sensitive)
        OidcSetting.objects.filter(pk=setting.pk).update(ignore_case=ignores_case)
        IdentityLink.objects.all().delete()

        assert sign_in_outcome(browser) == expected_outcome, (ignores_case, is_case_sensitive)


def test_an_account_is_matched_by_email(browser: Browser):
    make_active_connection(browser.provider, user_field="email")
    User.objects.create_user("someone.else", email="ann@example.com")
    User.objects.create_user("ann", email="other@example.com")

    assert sign_in_outcome(browser) == "someone.else"


def test_two_accounts_with_one_email_are_refused(browser: Browser):  # A48
    make_active_connection(browser.provider, user_field="email")
    for login in ("one", "two"):
        User.objects.create_user(login, email="ann@example.com")

    check_refusal(browser.sign_in(), "user_ambiguous", 401)


@pytest.mark.parametrize(("stored_login", "claim"), [("jos\xe9", "jose\u0301"), ("jose\u0301", "jos\xe9")])
@pytest.mark.parametrize(("is_case_sensitive", "has_account"), [(True, True), (False, False)])
def test_two_spellings_of_a_login_are_one_account(
    browser: Browser, stored_login: str, claim: str, is_case_sensitive: bool, has_account: bool
):
    """Composed and decomposed accents are equal under every case rule."""
    set_case_sensitivity(is_case_sensitive)
    browser.provider.person["preferred_username"] = claim
    make_active_connection(browser.provider, enable_user_creation=True)
    if has_account:
        User.objects.create_user(stored_login)
    assert sign_in_outcome(browser) == "jos\xe9"
    IdentityLink.objects.all().delete()
    browser.provider.person["preferred_username"] = stored_login

    assert sign_in_outcome(browser) == "jos\xe9" and User.objects.count() == 1


def test_a_lookalike_character_is_a_different_login(browser: Browser):  # A47
    make_active_connection(browser.provider)
    User.objects.create_user("Karl")
    browser.provider.person["preferred_username"] = "\u212aarl"

    check_refusal(browser.sign_in(), "user_unknown", 401)


INVALID_EMAILS: list[Any] = ["a@b@victim", "ann@example.com.", " ann@example.com", "\u0131nn@example.com", "", None,
                             ["x"], {}, 7, True, "x" * 5_000 + "@example.com", "ann@example.com\nbcc: x",
                             ABSENT]  # fmt: skip


@pytest.mark.parametrize("email", INVALID_EMAILS, ids=[ascii(email)[:20] for email in INVALID_EMAILS])
@pytest.mark.parametrize("is_creation_enabled", [True, False])
def test_an_invalid_email_matches_and_creates_no_account(
    browser: Browser, email: Any, is_creation_enabled: bool
):  # A42, A47
    make_active_connection(browser.provider, user_field="email", enable_user_creation=is_creation_enabled)
    User.objects.create_user("empty", email="")
    browser.provider.person["email"] = email

    check_refusal(browser.sign_in(), "profile_invalid", 401)
    assert User.objects.count() == 1


@pytest.mark.parametrize("login", ["", " ann", "a:b", "a\u200bnn", "x" * 151, None, 7, ["ann"], {"a": 1}])
def test_an_invalid_login_matches_and_creates_no_account(browser: Browser, login: Any):  # A42
    make_active_connection(
        browser.provider, enable_user_creation=True, script="function map(c) { return {login: c.preferred_username} }"
    )
    browser.provider.person["preferred_username"] = login

    check_refusal(browser.sign_in(), "profile_invalid", 401)
    assert not User.objects.exists()


def test_a_huge_claim_is_handled(browser: Browser):  # A42
    OidcSetting.objects.all().delete()
    make_active_connection(browser.provider)
    make_ann()
    browser.provider.userinfo = {"name": "x" * 400_000}

    check_refusal(browser.sign_in(), "script_error", 401)


# After the first sign-in, the link decides.


def test_the_link_takes_precedence_over_later_claims(browser: Browser):
    make_active_connection(browser.provider)
    user = make_ann()
    assert browser.sign_in().status_code == 302
    User.objects.create_user("bob")
    browser.provider.person |= {"preferred_username": "bob", "email": "bob@example.com", "email_verified": False}

    assert browser.sign_in().status_code == 302
    assert browser.login == user.login


def test_another_subject_of_the_same_provider_is_refused(browser: Browser):  # A45
    make_active_connection(browser.provider)
    make_ann()
    browser.sign_in()
    browser.provider.person["sub"] = "sub-thief"

    check_refusal(browser.sign_in(), "subject_conflict", 403)
    assert IdentityLink.objects.get().sub == "sub-ann"


def test_concurrent_first_sign_ins_share_one_link(browser: Browser, monkeypatch: Any):
    make_ann()
    make_active_connection(browser.provider)
    browser.sign_in()
    # The second sign-in reads before the first one commits.
    monkeypatch.setattr(AccountProvisioning, "_find_link", lambda self: None)
    second_browser = Browser(browser.provider)

    assert second_browser.sign_in().status_code == 302 and second_browser.login == "ann"
    assert IdentityLink.objects.count() == 1


def test_an_administrator_may_reset_the_link(browser: Browser):  # A45
    make_active_connection(browser.provider)
    make_ann()
    browser.sign_in()
    IdentityLink.objects.get().delete()
    browser.provider.person["sub"] = "sub-new"

    assert browser.sign_in().status_code == 302
    assert IdentityLink.objects.get().sub == "sub-new"


def test_a_second_provider_matches_again_and_adds_a_link(browser: Browser, allow_http: None):
    make_active_connection(browser.provider)
    user = make_ann()
    browser.sign_in()
    with HostileProvider(realm="other") as other_provider:
        other_provider.person["sub"] = "sub-elsewhere"
        make_active_connection(other_provider, name="Other")
        assert Browser(other_provider).sign_in().status_code == 302

        links = {(link.issuer, link.sub) for link in IdentityLink.objects.filter(user=user)}
        assert links == {(browser.provider.issuer, "sub-ann"), (other_provider.issuer, "sub-elsewhere")}


def test_subjects_are_case_sensitive(browser: Browser):
    make_active_connection(browser.provider, enable_user_creation=True)
    for sub, login in (("sub", "one"), ("SUB", "two")):
        browser.provider.person |= {"sub": sub, "preferred_username": login}
        assert Browser(browser.provider).sign_in().status_code == 302

    assert IdentityLink.objects.count() == User.objects.count() == 2


@pytest.mark.parametrize("user_field", ["email", "login"])
@pytest.mark.parametrize("claim", [False, "false", 0, "no"])
def test_an_unverified_email_does_not_match_an_account(browser: Browser, user_field: str, claim: Any):  # A44
    make_active_connection(browser.provider, user_field=user_field, enable_user_creation=True)
    make_ann()
    browser.provider.person["email_verified"] = claim

    check_refusal(browser.sign_in(), "email_unverified", 403)
    assert not IdentityLink.objects.exists() and browser.login is None


@pytest.mark.parametrize("claim", [True, "true", ABSENT, None])
def test_a_verified_or_unspecified_email_matches(browser: Browser, claim: Any):  # A44
    make_active_connection(browser.provider, user_field="email")
    make_ann()
    browser.provider.person["email_verified"] = claim

    assert browser.sign_in().status_code == 302


def test_userinfo_cannot_verify_the_email_of_the_id_token(browser: Browser):  # A44, A46
    make_active_connection(browser.provider, user_field="email")
    make_ann()
    browser.provider.claims = {"email_verified": False}
    browser.provider.userinfo = {"email_verified": True}

    check_refusal(browser.sign_in(), "email_unverified", 403)


def test_userinfo_may_mark_the_email_as_unverified(browser: Browser):
    make_active_connection(browser.provider, user_field="email")
    make_ann()
    browser.provider.userinfo = {"email_verified": False}
    check_refusal(browser.sign_in(), "email_unverified", 403)

    browser.provider.userinfo = {"email_verified": False, "email": "other@example.com"}
    assert browser.sign_in().status_code == 302, "the claim is about another address"


def test_invalid_profile_values_are_not_stored(browser: Browser):
    script = "function map(c) { return {login: 'ann', email: c.email, last_name: c.family_name} }"
    make_active_connection(browser.provider, update_data_when_login=True, script=script)
    user = make_ann()
    browser.sign_in()
    browser.provider.person |= {"email": "ann@corp", "family_name": "Lee"}

    assert browser.sign_in().status_code == 302
    assert (user.refreshed().email, user.refreshed().last_name) == ("ann@example.com", "Lee")
    assert "email was not changed." in SignIn.objects.latest("sys_created_at").detail


def test_script_fills_custom_columns_of_users(browser: Browser):
    make_column(Table.objects.get(name="user"), "x_floor", "integer")
    script = "function map(c) { return {login: 'ann', email: c.email, x_floor: c.floor} }"
    mapping_script.check_script(script, {"x_floor"})
    with pytest.raises(mapping_script.ScriptRefused, match="x_none"):
        mapping_script.check_script(script.replace("x_floor: c.floor", "x_none: 1"), {"x_floor"})
    browser.provider.person |= {"floor": 3}
    columns = {"enable_user_creation": True, "update_data_when_login": True, "script": script}
    make_active_connection(browser.provider, **columns)
    floor_query = 'SELECT x_floor FROM records."user" JOIN public."user" USING (sys_id) WHERE login = %s'

    assert browser.sign_in().status_code == 302
    assert query_rows(floor_query, "ann") == [(3,)]

    browser.provider.person |= {"floor": "high"}
    assert browser.sign_in().status_code == 302
    assert query_rows(floor_query, "ann") == [(3,)]
    assert "x_floor was not changed." in SignIn.objects.latest("sys_created_at").detail


@pytest.mark.parametrize("is_linked", [True, False])
def test_an_inactive_account_is_refused(browser: Browser, is_linked: bool):  # A54
    make_active_connection(browser.provider, enable_user_creation=True, update_data_when_login=True)
    user = make_ann()
    if is_linked:
        browser.sign_in()
        browser.client.post("/logout/")
    user = user.refreshed()
    user.active = False
    user.save()
    browser.provider.person["email"] = "new@example.com"

    check_refusal(browser.sign_in(), "user_inactive", 403)
    assert browser.login is None
    assert user.refreshed().email == "ann@example.com", "the account is not updated"
    assert IdentityLink.objects.exists() is is_linked

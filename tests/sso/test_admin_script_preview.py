"""*Try the script* shows the result of a sign-in without signing in."""

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import Role, User, UserRole
from sso.admin.connection_warnings import APPROVAL_AFTER_SAVE
from sso.models import IdentityLink, OidcSetting, SignIn
from tests.providers.hostile import HostileProvider
from tests.sso.connections import VALID_COLUMNS, make_connection, make_connection_at, press_button
from tests.sso.sign_ins import Browser, make_active_connection

pytestmark = pytest.mark.django_db

CLAIMS_OF_ANN = {
    "iss": "https://idp.example.com/realms/acme",
    "sub": "sub-ann",
    "email": "bob@example.com",
    "preferred_username": "ann",
    "realm_access": {"roles": ["itil", "new role", "admin"]},
}


def row_counts() -> list[int]:
    return [model.objects.count() for model in (User, Role, UserRole, IdentityLink, SignIn)]


def try_script(browser: Client, setting: OidcSetting | None, claims: Any, **columns: Any) -> Any:
    claims_json = claims if isinstance(claims, str) else json.dumps(claims)
    return press_button(browser, "_try", setting, try_claims=claims_json, **columns).context["report"]


def test_preview_shows_fields_account_and_roles_and_changes_nothing(as_sonja: Client, bob: User):
    setting = make_connection(enable_role_mapping=True, update_data_when_login=True)
    rows_before = row_counts(), OidcSetting.objects.values().get(), User.objects.values().get(pk=bob.pk)
    script = "function map(claims) { return {login: 'bob', email: claims.email, first_name: 'Ann'} }"
    report = try_script(as_sonja, setting, CLAIMS_OF_ANN, script=script)

    facts = dict(report.facts)
    assert report.is_successful and facts["account"] == "bob"
    assert (facts["user.first_name"], facts["user.email"]) == ("Ann", "bob@example.com")
    assert set(facts["roles added"].split(", ")) == {"itil", "new role"}
    assert facts["roles a provider cannot grant"] == "admin"
    assert (row_counts(), OidcSetting.objects.values().get(), User.objects.values().get(pk=bob.pk)) == rows_before


def test_an_account_that_would_be_created_is_marked_as_new(as_sonja: Client):
    counts_before = row_counts()
    report = try_script(
        as_sonja, make_connection(), {**CLAIMS_OF_ANN, "email": "ann@example.com"}, enable_user_creation=True
    )

    assert dict(report.facts)["account"] == "ann (new)"
    assert row_counts() == counts_before


def test_a_refusal_is_shown_with_its_code(as_sonja: Client):
    report = try_script(as_sonja, make_connection(), {**CLAIMS_OF_ANN, "email": "nobody@example.com"})

    assert not report.is_successful and report.title.startswith("This sign-in would be refused: user_unknown.")


def test_output_of_the_script_is_escaped(as_sonja: Client):
    script = "function map(claims) { return {login: '<script>alert(1)</script>', email: claims.email} }"
    page = press_button(as_sonja, "_try", make_connection(), try_claims=json.dumps(CLAIMS_OF_ANN), script=script)

    assert b"<script>alert" not in page.content and b"&lt;script&gt;alert(1)" in page.content


def test_long_lists_of_roles_are_cut_and_escaped(as_sonja: Client, bob: User):  # A52
    roles = ["<script>alert(1)</script>", *(f"role {number}" for number in range(10_000))]
    setting = make_connection(enable_role_mapping=True, update_data_when_login=True)
    page = press_button(
        as_sonja, "_try", setting, try_claims=json.dumps({**CLAIMS_OF_ANN, "realm_access": {"roles": roles}})
    )
    report = page.context["report"]

    assert len(dict(report.facts)["roles added"]) == 500 and "Ignored invalid role names: 9801." in report.notes
    assert b"<script>alert" not in page.content and b"&lt;script&gt;alert(1)" in page.content
    assert not Role.objects.filter(name__startswith="role ").exists()


def test_a_failing_script_is_reported(as_sonja: Client):
    report = try_script(
        as_sonja, make_connection(), {"sub": "1"}, script="function map(claims) { return {login: claims.a.b.c} }"
    )

    assert not report.is_successful and "script_error" in report.title


@pytest.mark.parametrize(
    "claims", ["[]", "7", "{", '{"a": 1, "a": 2}', "null", "[" * 5000, '{"a": "\\u0000"}', "{" + " " * 300_000]
)
def test_invalid_claims_are_reported(as_sonja: Client, claims: str):
    report = try_script(as_sonja, make_connection(), claims)

    assert (report.title, report.is_successful) == ("The claims must be a JSON object of at most 256 KB.", False)


def test_the_claims_of_the_last_sign_in_are_used_by_default(as_sonja: Client, bob: User):
    setting = make_connection()
    assert "There are no claims from an earlier sign-in" in try_script(as_sonja, setting, "").title
    setting.store_claims(CLAIMS_OF_ANN)

    assert dict(try_script(as_sonja, setting, "  ").facts)["account"] == "bob"


@pytest.mark.parametrize("body", ["throw new Error('x')", "return {login: 'ann', email: 'no address'}"])
def test_claims_are_kept_when_the_script_fails(as_sonja: Client, provider: HostileProvider, body: str):
    setting = make_active_connection(provider, user_field="email", script=f"function map(claims) {{ {body} }}")
    assert Browser(provider).sign_in().status_code == 401
    assert (OidcSetting.objects.get(pk=setting.pk).last_sign_in_claims or {})["preferred_username"] == "ann"


def test_the_preview_works_before_the_first_save(as_sonja: Client, bob: User):
    assert dict(try_script(as_sonja, None, CLAIMS_OF_ANN).facts)["account"] == "bob"
    assert not OidcSetting.objects.exists()


def test_the_page_requests_an_entered_secret_again(as_sonja: Client):
    page = press_button(as_sonja, "_try", make_connection(), try_claims="{}", client_secret="canary").content.decode()

    assert "Enter the client secret again" in page and "canary" not in page


@pytest.mark.parametrize("claims", [CLAIMS_OF_ANN, " "], ids=["pasted", "of the last sign-in"])
@pytest.mark.parametrize("has_endpoints", [True, False])
def test_no_request_is_sent_to_the_provider(  # A43
    as_sonja: Client, provider: HostileProvider, bob: User, claims: Any, has_endpoints: bool
):
    columns = {"url_idp": provider.url_idp, "realm": provider.realm}
    setting = (
        make_connection_at(provider, active=True)
        if has_endpoints
        else OidcSetting.objects.create(**{**VALID_COLUMNS, **columns})
    )
    setting.store_claims(CLAIMS_OF_ANN)
    report = try_script(as_sonja, setting, claims, enable_role_mapping=True)
    unsaved_report = try_script(as_sonja, None, CLAIMS_OF_ANN, **columns)

    assert dict(report.facts)["account"] == dict(unsaved_report.facts)["account"] == "bob"
    assert provider.requests == []


class TestApprovalInPreview:  # A57
    """A save without the role admin would require approval before users with protected roles can sign in."""

    CLAIMS_OF_ALICE = {**CLAIMS_OF_ANN, "email": "alice@example.com"}
    OTHER_SCRIPT = "function map(claims) { return {login: 'x', email: claims.email} }"

    @pytest.mark.parametrize(
        ("columns", "may_sign_in"),
        [
            ({}, True),
            ({"name": "Renamed", "scope": "openid email"}, True),
            ({"script": OTHER_SCRIPT}, False),
            ({"enable_role_mapping": True}, False),
            ({"active": True}, False),
        ],
        ids=str,
    )
    def test_the_preview_applies_the_approval_rules_of_the_form(
        self, as_sonja: Client, alice: User, columns: dict[str, Any], may_sign_in: bool
    ):
        setting = make_connection()
        report = try_script(as_sonja, setting, self.CLAIMS_OF_ALICE, **columns)
        assert report.is_successful is may_sign_in and ("refused: not_approved." in report.title) is not may_sign_in
        assert (APPROVAL_AFTER_SAVE in report.notes) is not may_sign_in
        assert not setting.refreshed().needs_approval

        press_button(as_sonja, "_save", setting, **columns)
        stored_setting = setting.refreshed()
        saved_report = try_script(as_sonja, stored_setting, self.CLAIMS_OF_ALICE)
        assert (stored_setting.needs_approval, saved_report.title) == (not may_sign_in, report.title)
        assert APPROVAL_AFTER_SAVE not in saved_report.notes

    def test_a_new_connection_of_sso_admin_needs_approval_for_protected_roles_only(
        self, as_sonja: Client, alice: User, bob: User
    ):
        assert "refused: not_approved." in try_script(as_sonja, None, self.CLAIMS_OF_ALICE).title
        report = try_script(as_sonja, None, CLAIMS_OF_ANN)
        assert report.is_successful and report.notes == (APPROVAL_AFTER_SAVE,)

    def test_an_administrator_needs_no_approval_but_approves_nothing(self, as_alice: Client):
        setting = make_connection()
        report = try_script(as_alice, setting, self.CLAIMS_OF_ALICE, script=self.OTHER_SCRIPT)
        assert report.is_successful and report.notes == ()
        OidcSetting.objects.update(needs_approval=True)
        report = try_script(as_alice, setting, self.CLAIMS_OF_ALICE, script=self.OTHER_SCRIPT)
        assert "refused: not_approved." in report.title

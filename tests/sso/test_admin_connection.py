"""The form of a connection: what it saves, and its buttons."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.admin.connection_warnings import UNSAVED_VALUES, UNSAVED_VALUES_IN_USE
from sso.models import CertificatePair, IdentityLink, IdpCertificate, OidcSetting
from system import properties
from tests.providers.behaviours import responds_with_error, responds_with_html
from tests.providers.hostile import HostileProvider
from tests.providers.signing import jwk
from tests.sso.connections import (
    CALLBACK_URL,
    CONNECTION_LIST_PATH,
    connection_path,
    form_data,
    make_connection,
    make_connection_at,
    messages_of,
    press_button,
    welcome_page,
)
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


class TestSaving:
    def test_save_stays_on_the_form_and_save_and_exit_opens_the_list(self, as_sonja: Client):
        response = as_sonja.post(connection_path(None), {**form_data(), "_continue": "1"})
        setting = OidcSetting.objects.get()
        assert response.status_code == 302 and response.headers["Location"] == connection_path(setting)
        exit_response = as_sonja.post(connection_path(setting), {**form_data(setting), "name": "Renamed", "_save": "1"})
        assert exit_response.status_code == 302 and exit_response.headers["Location"] == CONNECTION_LIST_PATH
        assert setting.refreshed().name == "Renamed"

    def test_required_fields_are_enforced(self, as_sonja: Client):
        required_fields = (
            "name",
            "url_idp",
            "realm",
            "authorization_type",
            "client_id",
            "user_field",
            "redirect_uri",
            "scope",
            "script",
        )
        for name in required_fields:
            page = as_sonja.post(connection_path(None), {**form_data(**{name: ""}), "_save": "1"})
            assert page.status_code == 200 and name in page.context["adminform"].form.errors, name
        assert not OidcSetting.objects.exists()
        page = as_sonja.post(connection_path(None), {**form_data(client_secret=None), "_save": "1"})
        assert page.status_code == 302, "no other field is required"

    def test_a_new_form_has_defaults_and_its_own_redirect_uri(self, as_sonja: Client):
        page = as_sonja.get(connection_path(None)).content.decode()
        assert 'value="openid"' in page and "function map(claims)" in page
        assert (
            page.count(f'value="{CALLBACK_URL}"') == 2 and f">{CALLBACK_URL}<" not in page
        )  # the field, and its initial
        assert 'data-copies="id_redirect_uri"' in page

    def test_the_form_shows_its_buttons(self, as_sonja: Client, as_alice: Client):
        setting = make_connection(active=True)
        page = as_sonja.get(connection_path(setting)).content.decode()
        for name, text in (
            ("_continue", "Save"),
            ("_save", "Save and exit"),
            ("_update_certificates", "Update certificates"),
        ):
            assert f'name="{name}"' in page and text in page
        OidcSetting.objects.update(active=False)
        assert "Update certificates" not in as_sonja.get(connection_path(setting)).content.decode()

    def test_a_message_names_the_deactivated_connection(self, as_sonja: Client):
        former_setting = make_connection(name="Former", active=True)
        page = press_button(as_sonja, "_save", name="Newer", active=True)
        assert "“Former” was deactivated" in messages_of(page) and not former_setting.refreshed().active
        second_page = press_button(as_sonja, "_save", OidcSetting.objects.get(name="Newer"), scope="openid email")
        assert "was deactivated" not in messages_of(second_page)

    def test_a_warning_states_that_the_secret_was_removed(self, as_sonja: Client):
        press_button(as_sonja, "_save", client_secret="first", authorization_type="code")
        setting = OidcSetting.objects.get()
        assert "The client secret was removed" in messages_of(press_button(as_sonja, "_save", setting, realm="other"))
        assert "was removed" not in messages_of(press_button(as_sonja, "_save", setting.refreshed(), realm="third"))
        press_button(as_sonja, "_save", setting.refreshed(), client_secret="second")
        page = press_button(as_sonja, "_save", setting.refreshed(), realm="fourth", client_secret="third")
        assert "was removed" not in messages_of(page) and setting.refreshed().decrypted_client_secret == "third"
        assert "was removed" not in messages_of(
            press_button(as_sonja, "_save", setting.refreshed(), forget_secret=True)
        )

    @pytest.mark.parametrize(
        ("redirect_uri", "warning"),
        [
            ("http://testserver/elsewhere/", "must be /sso/callback/"),
            ("https://testserver/sso/callback/", "Redirect URI is at https://testserver."),
            ("http://testserver:8001/sso/callback/", "Redirect URI is at http://testserver:8001."),
        ],
    )
    def test_a_wrong_redirect_uri_causes_one_warning(self, as_sonja: Client, redirect_uri: str, warning: str):
        page = as_sonja.get(connection_path(make_connection(redirect_uri=redirect_uri))).content.decode()
        assert (
            warning in page and page.count("path of the Redirect URI must") + page.count("the Redirect URI is at") == 1
        )
        assert "the Redirect URI is at" not in as_sonja.get(connection_path(make_connection())).content.decode()

    def test_a_change_of_client_columns_suggests_a_test(self, as_sonja: Client):
        suggestion = "Use “Test connection”"
        assert suggestion in messages_of(press_button(as_sonja, "_save", client_id="mine", active=True))
        setting = OidcSetting.objects.get()
        assert suggestion not in messages_of(press_button(as_sonja, "_save", setting, name="Renamed"))
        tested = press_button(as_sonja, "_save", setting.refreshed(), client_id="tested", tested="1")
        assert suggestion not in messages_of(tested)
        assert suggestion in messages_of(press_button(as_sonja, "_save", setting.refreshed(), client_id="other"))
        assert suggestion not in messages_of(
            press_button(as_sonja, "_save", setting.refreshed(), client_id="third", active=False)
        )

    def test_an_empty_url_causes_one_error(self, as_sonja: Client):
        errors = (
            as_sonja.post(connection_path(None), {**form_data(url_idp=""), "_save": "1"})
            .context["adminform"]
            .form.errors
        )
        assert errors["url_idp"] == ["This field is required."]

    def test_the_adopt_button_is_shown_only_with_known_endpoints(self, as_sonja: Client):
        setting = make_connection(resolve_error="It was not found.")
        for issuer, is_shown in (("https://idp.example.com/realms/acme", True), ("", False)):
            setting.update_unversioned(issuer=issuer)
            assert ('name="_adopt"' in as_sonja.get(connection_path(setting)).content.decode()) is is_shown

    def test_http_to_another_machine_causes_a_warning(self, as_sonja: Client, allow_http: None):
        for url, causes_warning in (("http://idp.example.com", True), ("http://127.0.0.1:9", False)):
            page = as_sonja.get(connection_path(make_connection(url_idp=url))).content.decode()
            assert ("Provider URL uses http." in page) is causes_warning

    def test_a_concurrent_change_of_another_column_is_kept(self, as_sonja: Client, monkeypatch: Any):
        setting = make_connection(active=True)
        original_lock = OidcSetting.lock_for_change

        def change_and_lock() -> None:
            OidcSetting.objects.filter(pk=setting.pk).update(scope="openid email")
            original_lock()

        monkeypatch.setattr(OidcSetting, "lock_for_change", staticmethod(change_and_lock))
        press_button(as_sonja, "_save", setting, name="Renamed")
        stored_setting = setting.refreshed()
        assert (stored_setting.name, stored_setting.scope) == ("Renamed", "openid email")

    def open_form(self, browser: Client, setting: OidcSetting) -> dict[str, str]:
        """The form data of the unchanged page."""
        page = browser.get(connection_path(setting)).content.decode()
        initial_values = dict(re.findall(r'name="(initial-\w+)"(?: value="([^"]*)")?', page))
        assert initial_values["initial-scope"] == "openid" and "initial-client_secret" not in initial_values
        return {**form_data(setting), **{name: html.unescape(value) for name, value in initial_values.items()}}

    @pytest.mark.parametrize(
        ("stored_columns", "submitted_scope", "expected_scope"),
        [
            ({"scope": "openid email"}, "openid profile", "openid email"),
            ({"scope": "openid email"}, "openid email", "openid email"),
            ({"realm": "other"}, "openid profile", "openid profile"),
        ],
        ids=["different values", "equal values", "another column"],
    )
    def test_conflicting_changes_of_one_column_are_an_error(
        self, as_sonja: Client, stored_columns: dict[str, str], submitted_scope: str, expected_scope: str
    ):
        setting = make_connection()
        form = self.open_form(as_sonja, setting)
        OidcSetting.objects.filter(pk=setting.pk).update(**stored_columns)
        response = as_sonja.post(connection_path(setting), {**form, "scope": submitted_scope, "_save": "1"})
        is_reported = "Another user changed this" in response.content.decode()
        assert is_reported is (submitted_scope != expected_scope) and setting.refreshed().scope == expected_scope

    def test_a_change_since_the_page_was_opened_is_kept(self, as_sonja: Client):
        setting = make_connection(active=True)
        form = self.open_form(as_sonja, setting)
        OidcSetting.objects.filter(pk=setting.pk).update(scope="openid email", enable_user_creation=True)
        as_sonja.post(connection_path(setting), {**form, "name": "Renamed", "_save": "1"})
        stored_setting = setting.refreshed()
        assert (stored_setting.name, stored_setting.scope, stored_setting.enable_user_creation) == (
            "Renamed",
            "openid email",
            True,
        )

    @pytest.mark.parametrize(
        ("columns", "warning"),
        [
            ({"authorization_type": "code"}, "Most providers require a client secret"),
            ({"algorithms": ["HS256"]}, "supports none of the algorithms"),
            ({"authorization_type": "code", "client_secret": "not ours"}, "cannot be decrypted with the keys"),
        ],
    )
    def test_the_form_warns_if_no_user_can_sign_in(self, as_sonja: Client, columns: Any, warning: str):
        setting = make_connection()
        OidcSetting.objects.update(**columns)
        assert warning in as_sonja.get(connection_path(setting)).content.decode()

    def test_the_form_shows_problems_with_certificates(self, as_sonja: Client):
        setting = make_connection()
        pair = CertificatePair.objects.create(url_idp=setting.url_idp, realm=setting.realm, failure="It was away.")
        assert (
            "The last certificate update failed. It was away."
            in as_sonja.get(connection_path(setting)).content.decode()
        )
        pair.failure, pair.warning = "", "Something else under the kid “a”."
        pair.save()
        assert "Something else under the kid" in as_sonja.get(connection_path(setting)).content.decode()

    def test_the_form_warns_if_the_case_settings_prevent_sign_in(self, as_sonja: Client):
        for button in ("_save", "_continue"):
            setting = make_connection()
            page = press_button(as_sonja, button, setting, ignore_case=True)
            assert "Nobody can sign in because Ignore case sensitivity is selected" in page.content.decode(), button
        properties.put(properties.CASE_SENSITIVE, "false")
        assert "Nobody can sign in" not in as_sonja.get(connection_path(setting)).content.decode()

    def test_the_form_warns_about_accounts_that_a_login_could_open(self, as_sonja: Client, alice: User, bob: User):
        setting = make_connection(user_field="login")
        warning = "are not linked to this provider yet: alice, sonja. Anyone who can choose one of these logins"
        assert warning in as_sonja.get(connection_path(setting)).content.decode()
        IdentityLink(user=alice, issuer=setting.issuer, sub="1").save()
        IdentityLink(user=User.objects.get(login="sonja"), issuer="https://other.example.com", sub="2").save()
        assert "yet: sonja. Anyone" in as_sonja.get(connection_path(setting)).content.decode()
        assert "are not linked" not in press_button(as_sonja, "_save", setting, user_field="email").content.decode()

    def test_the_warning_names_a_few_active_accounts(self, as_alice: Client, alice: User):
        for number in range(6):
            make_user(f"chief{number}", "admin")
        make_user("former", "admin", active=False)
        page = as_alice.get(connection_path(make_connection(user_field="login"))).content.decode()
        assert "yet: alice, chief0, chief1, chief2, chief3 and others. Anyone" in page

    def test_the_form_names_the_protected_roles(self, as_sonja: Client):
        page = as_sonja.get(connection_path(None)).content.decode()
        assert "A provider never grants protected roles" in page and "admin, sso_admin, collection_admin" in page

    def test_an_unavailable_provider_causes_a_warning_instead_of_an_error(
        self, as_sonja: Client, allow_http: None, django_capture_on_commit_callbacks: Any
    ):
        with django_capture_on_commit_callbacks(execute=True):
            as_sonja.post(connection_path(None), {**form_data(url_idp="http://127.0.0.1:9"), "_continue": "1"})
        setting = OidcSetting.objects.get()
        page = as_sonja.get(connection_path(setting)).content.decode()
        assert (
            "Nobody can sign in until the provider is found." in page and "The connection to 127.0.0.1 failed" in page
        )

    def test_the_active_connection_can_be_deleted_from_its_page_and_the_list(self, as_sonja: Client):
        for delete in (
            lambda setting: as_sonja.post(connection_path(setting, "delete"), {"post": "yes"}),
            lambda setting: as_sonja.post(
                CONNECTION_LIST_PATH, {"action": "delete_selected", "_selected_action": [setting.pk], "post": "yes"}
            ),
        ):
            setting = make_connection(active=True)
            assert welcome_page() == CALLBACK_URL
            assert delete(setting).status_code == 302
            assert welcome_page() == "" and not OidcSetting.objects.exists()

    def test_a_save_without_changes_creates_no_version(self, as_alice: Client, as_sonja: Client):
        setting = make_connection()
        press_button(as_alice, "_save", setting)
        script = setting.refreshed().script.replace("\n", "\r\n")  # as a browser sends it
        press_button(as_sonja, "_save", setting, script=script)
        stored_setting = setting.refreshed()
        assert "\r" not in stored_setting.script and not stored_setting.needs_approval
        assert len(stored_setting.history.latest().diff_against(stored_setting.history.earliest()).changes) == 0


class TestUpdateCertificates:
    def test_the_message_counts_the_changes(self, as_sonja: Client, provider: HostileProvider):
        provider.jwks = {"keys": [jwk("rsa-1"), jwk("p256-1"), jwk("small-1"), {"kty": "oct", "k": "c2VjcmV0"}]}
        setting = make_connection_at(provider, active=True)
        page = press_button(as_sonja, "_update_certificates", setting)
        assert "2 added, 0 unchanged, 0 removed." in messages_of(page)
        assert "Ignored: an RSA key under 2048 bits, a symmetric key." in messages_of(page)
        assert [certificate.kid for certificate in IdpCertificate.of_pair(*setting.pair)] == ["p256-1", "rsa-1"]
        table_html = page.content.decode().partition('id="certificates"')[2]
        assert (
            "rsa-1" in table_html and provider.realm in table_html and "&quot;kty&quot;: &quot;RSA&quot;" in table_html
        )

    @pytest.mark.parametrize("behaviour", [responds_with_error(500), responds_with_html()])
    def test_a_failure_shows_the_specified_message_and_changes_nothing(  # A29
        self, as_sonja: Client, provider: HostileProvider, behaviour: Any
    ):
        setting = make_connection_at(provider, active=True)
        press_button(as_sonja, "_update_certificates", setting)
        rows_before = list(IdpCertificate.objects.values())
        provider.serve("certs", behaviour)
        page = press_button(as_sonja, "_update_certificates", setting)
        assert messages_of(page).startswith("The certificate update failed. Check the connection settings. ")
        assert list(IdpCertificate.objects.values()) == rows_before

    def test_an_inactive_record_is_refused_and_nothing_is_fetched(  # A35
        self, as_sonja: Client, provider: HostileProvider
    ):
        page = press_button(as_sonja, "_update_certificates", make_connection_at(provider))
        assert "Only the active connection" in messages_of(page)
        assert provider.requests == [] and not IdpCertificate.objects.exists()

    def test_a_get_updates_nothing_and_a_post_needs_a_csrf_token(self, sonja: User, provider: HostileProvider):  # A63
        setting = make_connection_at(provider, active=True)
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(sonja)
        assert browser.get(connection_path(setting), {"_update_certificates": "1"}).status_code == 200
        assert (
            browser.post(connection_path(setting), {**form_data(setting), "_update_certificates": "1"}).status_code
            == 403
        )
        assert provider.requests == []

    def test_entered_values_stay_in_the_form_without_being_saved(self, as_sonja: Client, provider: HostileProvider):
        setting = make_connection_at(provider, active=True)
        page = press_button(as_sonja, "_update_certificates", setting, name="Typed")
        assert 'value="Typed"' in page.content.decode() and setting.refreshed().name == "Example"
        assert page.status_code == 200 and page.redirect_chain == []


class TestTestConnection:
    def test_report_describes_the_provider_and_no_setting_changes(self, as_sonja: Client, provider: HostileProvider):
        setting = make_connection()
        provider.client_secret = ""
        row_before = OidcSetting.objects.values().get()
        page = press_button(as_sonja, "_test", setting, url_idp=provider.url_idp, realm=provider.realm)
        report = page.context["report"]
        assert report.is_successful and dict(report.facts)["issuer"] == provider.issuer
        assert dict(report.facts)["keys"] == "rsa-1"
        assert OidcSetting.objects.values().get() == row_before and not IdpCertificate.objects.exists()
        assert f'value="{provider.url_idp}"' in page.content.decode(), "the form keeps the entered values"

    def test_connection_test_works_before_the_first_save(self, as_sonja: Client, provider: HostileProvider):
        provider.client_secret = ""
        page = press_button(as_sonja, "_test", None, url_idp=provider.url_idp, realm=provider.realm)
        assert page.context["report"].is_successful and not OidcSetting.objects.exists()

    def test_report_states_whether_the_tested_values_are_saved(self, as_sonja: Client, provider: HostileProvider):
        provider.client_secret = ""
        active_setting, inactive_setting = make_connection_at(provider, active=True), make_connection_at(provider)
        entered_secret = {"client_secret": "typed", "authorization_type": "code"}
        for setting, columns, expected_warning in (
            (active_setting, {}, ""),
            (active_setting, {"scope": "openid email"}, UNSAVED_VALUES_IN_USE),
            (active_setting, {"realm": "elsewhere"}, UNSAVED_VALUES_IN_USE),
            (active_setting, entered_secret, UNSAVED_VALUES_IN_USE),
            (active_setting, {"script": active_setting.script.replace("\n", "\r\n")}, ""),
            (inactive_setting, {}, ""),
            (inactive_setting, {"name": "Other"}, UNSAVED_VALUES),
            (None, {"url_idp": provider.url_idp, "realm": provider.realm}, UNSAVED_VALUES),
        ):
            page = press_button(as_sonja, "_test", setting, **columns)
            assert page.context["report"].unsaved_warning == expected_warning, columns
            assert (UNSAVED_VALUES.removesuffix(".") in page.content.decode()) == bool(expected_warning)

    def test_another_issuer_is_reported(self, as_sonja: Client, provider: HostileProvider):
        provider.discovery = {"issuer": "https://<b>other</b>.example.com"}
        page = press_button(as_sonja, "_test", None, url_idp=provider.url_idp, realm=provider.realm)
        assert "issuer is https://&lt;b&gt;other&lt;/b&gt;.example.com." in page.content.decode()

    def test_an_entered_secret_must_be_entered_again(self, as_sonja: Client, provider: HostileProvider):
        page = press_button(
            as_sonja, "_test", None, url_idp=provider.url_idp, realm=provider.realm, client_secret="typed"
        )
        assert 'id="secret-not-kept"' in page.content.decode()

    def test_invalid_values_are_form_errors_and_no_request_is_made(self, as_sonja: Client):
        page = press_button(as_sonja, "_test", None, realm="../../x")
        assert "report" not in page.context and "realm" in page.context["adminform"].form.errors


class TestPermissions:  # A58
    @pytest.mark.parametrize(
        "path",
        [
            CONNECTION_LIST_PATH,
            f"{CONNECTION_LIST_PATH}add/",
            "/admin/sso/idpcertificate/",
            "/admin/sso/signin/",
            "/admin/sso/identitylink/",
        ],
    )
    def test_only_admin_and_sso_admin_can_open_the_pages(
        self, as_alice: Client, as_sonja: Client, as_bob: Client, carl: User, path: str
    ):
        as_carl = Client()
        as_carl.force_login(carl)
        assert as_alice.get(path).status_code == as_sonja.get(path).status_code == 200
        assert as_bob.get(path, follow=True).status_code == as_carl.get(path).status_code == 403
        assert Client().get(path).status_code == 302

    @pytest.mark.parametrize("button", ["_save", "_test", "_try", "_update_certificates", "_approve", "_adopt"])
    def test_a_button_without_permission_is_refused(  # A43
        self, as_bob: Client, carl: User, provider: HostileProvider, button: str
    ):
        setting = make_connection_at(provider, active=True)
        as_carl = Client()
        as_carl.force_login(carl)
        for browser in (as_bob, as_carl):
            response = browser.post(connection_path(setting), {**form_data(setting), button: "1"}, follow=True)
            assert response.status_code == 403
        assert provider.requests == []

    @pytest.mark.parametrize(
        "path", ["accounts/user", "accounts/role", "system/property", "tableapi/rule", "accounts/accesskey"]
    )
    def test_sso_admin_cannot_open_other_pages(self, as_sonja: Client, path: str):
        assert as_sonja.get(f"/admin/{path}/").status_code == 403

    @pytest.mark.parametrize(
        "path",
        [
            f"{CONNECTION_LIST_PATH}?client_secret__startswith=g",
            f"{CONNECTION_LIST_PATH}?last_claims__startswith=g",
            "/admin/sso/signin/?user__password__startswith=p",
            "/admin/sso/signin/?setting__client_secret__startswith=g",
            "/admin/sso/identitylink/?user__password__startswith=p",
            "/admin/sso/identitylink/?user__sessions__session_key__startswith=p",
        ],
    )
    def test_filters_in_the_url_do_not_reveal_secrets(self, as_sonja: Client, path: str):
        assert as_sonja.get(path).status_code == 400

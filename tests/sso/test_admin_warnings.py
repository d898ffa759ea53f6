"""Errors and warnings on the form of a connection."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.admin.connection_form import ENTER_SECRET_AGAIN
from sso.models import CertificatePair, OidcSetting
from system import properties
from tests.providers.behaviours import responds_with, responds_with_error
from tests.providers.hostile import HostileProvider
from tests.sso.connections import (
    VALID_COLUMNS,
    connection_path,
    make_connection,
    make_connection_at,
    messages_of,
    press_button,
)

pytestmark = pytest.mark.django_db

INVALID_COLUMNS = {
    "url_idp": "ftp://idp.example.com",
    "realm": "no realm",
    "client_id": "",
    "redirect_uri": "https://elsewhere.example.com/",
    "scope": "email",
    "script": "nonsense(",
}


def form_errors(page: Any) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = page.context["adminform"].form.errors
    return errors


class TestErrors:
    def test_all_invalid_fields_are_reported_together(self, as_sonja: Client):
        for setting in (None, make_connection()):
            assert set(form_errors(press_button(as_sonja, "_save", setting, **INVALID_COLUMNS))) == set(INVALID_COLUMNS)

    def test_each_invalid_field_has_one_error(self, as_sonja: Client):
        errors = form_errors(
            press_button(as_sonja, "_save", make_connection(), **{**INVALID_COLUMNS, "url_idp": "x" * 600})
        )
        assert {name: len(messages) for name, messages in errors.items()} == dict.fromkeys(INVALID_COLUMNS, 1)

    def test_connection_test_reports_other_problems_if_no_provider_is_found(
        self, as_sonja: Client, provider: HostileProvider
    ):
        provider.serve("discovery", responds_with_error(404))
        columns = {"url_idp": provider.url_idp, "realm": "elsewhere", "redirect_uri": "http://testserver/elsewhere/"}
        report = press_button(as_sonja, "_test", None, ignore_case=True, **columns).context["report"]
        assert report.title.startswith("The provider was not found.")
        redirect_uri_note, sign_in_note = report.notes
        assert "must be /sso/callback/" in redirect_uri_note and sign_in_note.startswith("Nobody can sign in")

    def test_connection_test_checks_the_client_even_if_the_keys_are_unusable(
        self, as_sonja: Client, provider: HostileProvider
    ):
        provider.serve("certs", responds_with_error(500))
        provider.serve("token", responds_with({"error": "invalid_client"}, 401))
        report = press_button(as_sonja, "_test", None, url_idp=provider.url_idp, realm=provider.realm).context["report"]
        assert "its keys cannot be used" in report.title and not report.is_successful
        assert any("rejected the client ID" in note for note in report.notes)


class TestSecretAfterRefusal:
    def test_an_entered_secret_is_requested_again_at_its_field(self, as_sonja: Client):
        for button in ("_save", "_test"):
            page = press_button(as_sonja, button, None, realm="no realm", client_secret="typed")
            assert form_errors(page)["client_secret"] == [ENTER_SECRET_AGAIN]
            assert 'id="secret-not-kept"' not in page.content.decode(), "reported once"

    def test_an_invalid_secret_has_only_its_own_error(self, as_sonja: Client):
        page = press_button(as_sonja, "_save", None, realm="no realm", client_secret="x" * 1001)
        (message,) = form_errors(page)["client_secret"]
        assert "1000" in message

    def test_no_secret_is_requested_if_none_was_entered(self, as_sonja: Client):
        assert "client_secret" not in form_errors(press_button(as_sonja, "_save", None, realm="no realm"))

    def test_a_valid_form_saves_the_secret(self, as_sonja: Client):
        press_button(as_sonja, "_save", client_secret="typed")
        assert OidcSetting.objects.get().decrypted_client_secret == "typed"


class TestSimilarConnections:
    NAME_WARNING = "is also called “eXample”"

    def test_a_duplicate_name_causes_a_warning(self, as_sonja: Client):
        make_connection()
        page = press_button(as_sonja, "_save", None, name="eXample", client_id="another")
        assert self.NAME_WARNING in messages_of(page) and "client ID: Example" not in messages_of(page)
        assert OidcSetting.objects.filter(name="eXample").exists(), "a warning, not an error"

    def test_a_duplicate_client_causes_a_warning(self, as_sonja: Client):
        make_connection()
        for columns in (
            {"name": "Same pair", "issuer": ""},
            {"name": "Another way", "url_idp": "https://idp.example.com/realms"},
        ):
            page = as_sonja.get(connection_path(make_connection(**columns))).content.decode()
            assert "the same provider and client ID: " in page and "Example" in page
            assert "is also called" not in page
        OidcSetting.objects.exclude(name="Same pair").delete()
        assert (
            "same provider and client ID: "
            not in as_sonja.get(connection_path(OidcSetting.objects.get())).content.decode()
        )

    def test_the_same_client_id_at_another_provider_causes_no_warning(self, as_sonja: Client):
        make_connection()
        other_setting = make_connection(name="Other", realm="other", issuer="https://idp.example.com/realms/other")
        assert "same provider and client ID: " not in as_sonja.get(connection_path(other_setting)).content.decode()


class TestStoredState:
    def test_the_form_shows_that_no_certificates_are_stored(self, as_sonja: Client, provider: HostileProvider):
        setting = make_connection_at(provider)
        page = press_button(as_sonja, "_test", setting).content.decode()
        assert (
            "No certificates are stored." in page and "at the first sign-in after the connection is activated." in page
        )
        OidcSetting.objects.update(active=True)
        assert "select <em>Update certificates" in as_sonja.get(connection_path(setting)).content.decode()

    def test_the_form_shows_when_certificates_were_fetched(self, as_sonja: Client, provider: HostileProvider):
        setting = make_connection_at(provider, active=True)
        page = press_button(as_sonja, "_update_certificates", setting).content.decode()
        assert "Last fetched" in page and "No certificates are stored." not in page
        CertificatePair.objects.update(fetched_at=None)
        assert "No certificates are stored." not in as_sonja.get(connection_path(setting)).content.decode()

    def test_the_page_after_a_test_shows_updated_endpoints(self, as_sonja: Client, provider: HostileProvider):
        setting = make_connection_at(provider, token_endpoint=f"{provider.url_idp}/old")
        page = press_button(as_sonja, "_test", setting, name="Typed")
        shown_setting = page.context["adminform"].form.instance
        assert f'">{provider.url_idp}/old<' not in page.content.decode()
        assert (shown_setting.token_endpoint, shown_setting.sys_version) == (provider.url("token"), 1)
        assert 'value="Typed"' in page.content.decode() and setting.refreshed().name == VALID_COLUMNS["name"]


class TestEmailsInMixedCase:
    @pytest.fixture(autouse=True)
    def mixed_case_user(self) -> User:
        return User.objects.create_user("mona", email="Mona@Example.com")

    def warnings(self, client: Client, **columns: Any) -> str:
        return " ".join(client.get(connection_path(make_connection(**columns))).context["notes"])

    def test_are_named_with_the_consequence(self, as_sonja: Client):
        User.objects.create_user("nora", email="nora@example.com")
        warnings = self.warnings(as_sonja, enable_user_creation=True)

        assert "have capital letters: mona." in warnings and "creates a second account" in warnings
        assert "refuses the sign-in" in self.warnings(as_sonja)

    @pytest.mark.parametrize("cause", ["login", "property", "inactive"])
    def test_do_not_matter_otherwise(self, as_sonja: Client, mixed_case_user: User, cause: str):
        if cause == "property":
            properties.put(properties.CASE_SENSITIVE, "false")
        if cause == "inactive":
            User.objects.filter(pk=mixed_case_user.pk).update(active=False)
        columns = {"user_field": "login"} if cause == "login" else {}

        assert "capital letters" not in self.warnings(as_sonja, **columns)

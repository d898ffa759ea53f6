"""Warnings on the form of a connection, which describe the stored record."""

from typing import Any

import pytest
from django.test import Client

from sso.admin.connection_form import ENTER_SECRET_AGAIN
from sso.models import CertificatePair, OidcSetting
from tests.providers.behaviours import answers, fails
from tests.providers.hostile import HostileProvider
from tests.sso.connections import RIGHT, address, make, make_at, press, said

pytestmark = pytest.mark.django_db

WRONG = {
    "url_idp": "ftp://idp.example.com",
    "realm": "no realm",
    "client_id": "",
    "redirect_uri": "https://elsewhere.example.com/",
    "scope": "email",
    "script": "nonsense(",
}


def errors(page: Any) -> dict[str, list[str]]:
    result: dict[str, list[str]] = page.context["adminform"].form.errors
    return result


class TestErrors:
    def test_all_invalid_fields_are_reported_together(self, as_sonja: Client):
        for setting in (None, make()):
            assert set(errors(press(as_sonja, "_save", setting, **WRONG))) == set(WRONG)

    def test_each_invalid_field_has_one_error(self, as_sonja: Client):
        message = errors(press(as_sonja, "_save", make(), **{**WRONG, "url_idp": "x" * 600}))
        assert {name: len(errors) for name, errors in message.items()} == dict.fromkeys(WRONG, 1)

    def test_without_a_provider_a_test_still_reports_other_problems(self, as_sonja: Client, provider: HostileProvider):
        provider.serve("discovery", fails(404))
        where = {"url_idp": provider.url_idp, "realm": "elsewhere", "redirect_uri": "http://testserver/elsewhere/"}
        report = press(as_sonja, "_test", None, ignore_case=True, **where).context["report"]
        assert report.title.startswith("The provider was not found.")
        redirect_uri, case = report.notes
        assert "must be /sso/callback/" in redirect_uri and case.startswith("Nobody can sign in")

    def test_with_unusable_keys_a_test_still_checks_the_client(self, as_sonja: Client, provider: HostileProvider):
        provider.serve("certs", fails(500))
        provider.serve("token", answers({"error": "invalid_client"}, 401))
        report = press(as_sonja, "_test", None, url_idp=provider.url_idp, realm=provider.realm).context["report"]
        assert "its keys cannot be used" in report.title and not report.is_successful
        assert any("rejected the client ID" in note for note in report.notes)


class TestTheSecretAfterARefusal:
    def test_an_entered_secret_is_requested_again_at_its_field(self, as_sonja: Client):
        for button in ("_save", "_test"):
            page = press(as_sonja, button, None, realm="no realm", client_secret="typed")
            assert errors(page)["client_secret"] == [ENTER_SECRET_AGAIN]
            assert 'id="secret-not-kept"' not in page.content.decode(), "said once"

    def test_an_invalid_secret_has_only_its_own_error(self, as_sonja: Client):
        page = press(as_sonja, "_save", None, realm="no realm", client_secret="x" * 1001)
        (message,) = errors(page)["client_secret"]
        assert "1000" in message

    def test_without_an_entered_secret_none_is_requested(self, as_sonja: Client):
        assert "client_secret" not in errors(press(as_sonja, "_save", None, realm="no realm"))

    def test_a_valid_form_saves_the_secret(self, as_sonja: Client):
        press(as_sonja, "_save", client_secret="typed")
        assert OidcSetting.objects.get().secret == "typed"


class TestConnectionsThatAreAlike:
    NAME, CLIENT = "is also called “eXample”", "the same provider and client ID: Example."

    def test_a_duplicate_name_causes_a_warning(self, as_sonja: Client):
        make()
        page = press(as_sonja, "_save", None, name="eXample", client_id="another")
        assert self.NAME in said(page) and "client ID: Example" not in said(page)
        assert OidcSetting.objects.filter(name="eXample").exists(), "a warning, no refusal"

    def test_a_duplicate_client_causes_a_warning(self, as_sonja: Client):
        make()
        for columns in (
            {"name": "Same pair", "issuer": ""},
            {"name": "Another way", "url_idp": "https://idp.example.com/realms"},
        ):
            page = as_sonja.get(address(make(**columns))).content.decode()
            assert "the same provider and client ID: " in page and "Example" in page
            assert "is also called" not in page
        OidcSetting.objects.exclude(name="Same pair").delete()
        assert "same provider and client ID: " not in as_sonja.get(address(OidcSetting.objects.get())).content.decode()

    def test_the_same_client_id_at_another_provider_causes_none(self, as_sonja: Client):
        make()
        other = make(name="Other", realm="other", issuer="https://idp.example.com/realms/other")
        assert "same provider and client ID: " not in as_sonja.get(address(other)).content.decode()


class TestWhatIsStored:
    def test_the_form_tells_that_no_certificates_are_stored(self, as_sonja: Client, provider: HostileProvider):
        setting = make_at(provider)
        page = press(as_sonja, "_test", setting).content.decode()
        assert (
            "No certificates are stored." in page and "at the first sign-in after the connection is activated." in page
        )
        OidcSetting.objects.update(active=True)
        assert "and by <em>Update certificates" in as_sonja.get(address(setting)).content.decode()

    def test_the_form_tells_when_certificates_were_fetched(self, as_sonja: Client, provider: HostileProvider):
        setting = make_at(provider, active=True)
        page = press(as_sonja, "_update_certificates", setting).content.decode()
        assert "Last fetched" in page and "No certificates are stored." not in page
        CertificatePair.objects.update(fetched_at=None)
        assert "No certificates are stored." not in as_sonja.get(address(setting)).content.decode()

    def test_the_page_after_a_test_shows_updated_endpoints(self, as_sonja: Client, provider: HostileProvider):
        setting = make_at(provider, token_endpoint=f"{provider.url_idp}/old")
        page = press(as_sonja, "_test", setting, name="Typed")
        output = page.context["adminform"].form.instance
        assert f'">{provider.url_idp}/old<' not in page.content.decode()
        assert (output.token_endpoint, output.sys_version) == (provider.url("token"), 1)
        assert 'value="Typed"' in page.content.decode() and setting.refreshed().name == RIGHT["name"]

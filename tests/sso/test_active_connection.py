"""One active connection, the welcome page that follows it, and the deletion of unused certificates."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from sso.models import CertificatePair, IdpCertificate, OidcSetting
from system import properties, property_definitions
from system.models import DeletionLogEntry
from tests.sso.connections import CALLBACK_URL, make_connection, welcome_page

pytestmark = pytest.mark.django_db

OTHER_URL = "http://testserver/other/"


def active_names() -> list[str]:
    return [setting.name for setting in OidcSetting.objects.filter(active=True)]


def store_keys(setting: OidcSetting, *kids: str) -> None:
    for kid in kids:
        IdpCertificate.objects.create(kid=kid, url_idp=setting.url_idp, realm=setting.realm, json={"kid": kid})


class TestActiveConnection:
    def test_saving_a_connection_as_active_deactivates_the_other(self):
        first_setting, second_setting = (
            make_connection(name="first", active=True),
            make_connection(name="second", active=True),
        )
        assert active_names() == ["second"]
        first_setting = first_setting.refreshed()
        assert (first_setting.active, first_setting.sys_version, first_setting.history.count()) == (False, 1, 2)
        first_setting.active = True
        first_setting.save()
        assert active_names() == ["first"] and not second_setting.refreshed().active
        assert OidcSetting.get_active() == first_setting

    def test_the_database_allows_only_one_active_connection(self):
        from django.db import IntegrityError, transaction

        make_connection(name="first", active=True)
        second_setting = make_connection(name="second")
        with pytest.raises(IntegrityError), transaction.atomic():
            OidcSetting.objects.filter(pk=second_setting.pk).update(active=True)

    def test_a_failed_save_leaves_the_old_connection_active(self, monkeypatch: Any):  # A38
        make_connection(name="first", active=True)
        monkeypatch.setattr(properties, "put", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make_connection(name="second", active=True, redirect_uri=OTHER_URL)
        assert active_names() == ["first"] and welcome_page() == CALLBACK_URL
        assert OidcSetting.objects.count() == 1

    def test_a_refused_save_leaves_the_old_connection_active(self):
        make_connection(name="first", active=True)
        with pytest.raises(ValidationError):
            make_connection(name="second", active=True, realm="no realm")
        assert active_names() == ["first"]

    def test_the_acting_user_is_in_the_history_of_both_connections(self, as_sonja: Client, sonja: Any):
        from tests.sso.connections import press_button

        first_setting = make_connection(name="first", active=True)
        press_button(as_sonja, "_save", None, name="second", active=True)
        assert first_setting.history.latest().history_user_id == sonja.pk
        assert OidcSetting.objects.get(name="second").history.latest().history_user_id == sonja.pk


class TestWelcomePage:
    def test_welcome_page_is_the_redirect_uri_of_the_active_connection(self):
        setting = make_connection()
        assert welcome_page() == ""
        setting.active = True
        setting.save()
        assert welcome_page() == CALLBACK_URL
        setting.redirect_uri = OTHER_URL
        setting.save()
        assert welcome_page() == OTHER_URL

    def test_each_save_of_the_active_connection_sets_the_welcome_page(self):
        setting = make_connection(active=True)
        properties.put(properties.WELCOME_PAGE, "/account/")
        setting.save()
        assert welcome_page() == CALLBACK_URL

    def test_unchanged_welcome_page_leaves_no_history(self):
        from system.models import Property

        setting = make_connection(active=True)
        count_before = Property.objects.get(name=properties.WELCOME_PAGE.name).history.count()
        setting.save()
        assert Property.objects.get(name=properties.WELCOME_PAGE.name).history.count() == count_before

    def test_deactivation_clears_the_welcome_page(self):
        setting = make_connection(active=True)
        setting.active = False
        setting.save()
        assert welcome_page() == ""

    def test_saving_an_inactive_connection_keeps_the_welcome_page(self):
        make_connection(name="first", active=True)
        second_setting = make_connection(name="second")
        second_setting.save()
        assert welcome_page() == CALLBACK_URL

    def test_activating_another_connection_does_not_clear_the_welcome_page(self):
        first_setting = make_connection(name="first", active=True, redirect_uri=OTHER_URL)
        make_connection(name="second", active=True)
        assert welcome_page() == CALLBACK_URL
        first_setting = first_setting.refreshed()
        first_setting.save()
        assert welcome_page() == CALLBACK_URL

    def test_an_outdated_object_does_not_clear_the_welcome_page(self):
        first_setting = make_connection(name="first", active=True)
        outdated_setting = OidcSetting.objects.get(pk=first_setting.pk)
        make_connection(name="second", active=True)
        outdated_setting.active = False
        outdated_setting.save()
        assert welcome_page() == CALLBACK_URL and active_names() == ["second"]

    @pytest.mark.parametrize(
        "delete", [lambda setting: setting.delete(), lambda setting: OidcSetting.objects.all().delete()]
    )
    def test_deleting_the_active_connection_clears_the_welcome_page(self, delete: Any):
        delete(make_connection(active=True))
        assert welcome_page() == ""

    def test_deleting_an_inactive_connection_keeps_the_welcome_page(self):
        make_connection(name="first", active=True)
        make_connection(name="second").delete()
        assert welcome_page() == CALLBACK_URL

    def test_a_visitor_is_redirected_to_the_welcome_page(self):
        setting = make_connection(active=True)
        assert Client().get("/").headers["Location"] == CALLBACK_URL
        setting.delete()
        property_definitions.VALUE_CACHE.clear()
        assert Client().get("/").headers["Location"] == "/login/"


class TestCertificatesOfAPair:  # A36
    def test_deleting_the_last_connection_removes_and_logs_its_certificates(self):
        setting = make_connection()
        store_keys(setting, "one", "two")
        setting.delete()
        assert not IdpCertificate.objects.exists()
        logged_kids = DeletionLogEntry.objects.filter(table="idp_certificate").values_list("display_value", flat=True)
        assert sorted(logged_kids) == ["one", "two"]
        assert DeletionLogEntry.objects.filter(table="oidc_setting").count() == 1

    def test_deleting_one_of_two_connections_keeps_certificates(self):
        first_setting, second_setting = make_connection(name="first"), make_connection(name="second")
        store_keys(first_setting, "one")
        first_setting.delete()
        assert IdpCertificate.objects.count() == 1
        second_setting.delete()
        assert not IdpCertificate.objects.exists()

    def test_deleting_both_connections_together_removes_certificates(self):
        store_keys(make_connection(name="first"), "one")
        make_connection(name="second")
        OidcSetting.objects.all().delete()
        assert not IdpCertificate.objects.exists()

    @pytest.mark.parametrize("changed_columns", [{"url_idp": "https://other.example.com"}, {"realm": "other"}])
    def test_changing_the_pair_removes_certificates(self, changed_columns: dict[str, str]):
        setting = make_connection()
        other_setting = make_connection(name="other", realm="third")
        store_keys(setting, "one")
        store_keys(other_setting, "two")
        for name, value in changed_columns.items():
            setattr(setting, name, value)
        setting.save()
        assert [certificate.kid for certificate in IdpCertificate.objects.all()] == ["two"]
        assert CertificatePair.objects.get(realm="acme").fetched_at is None

    def test_changing_the_pair_keeps_certificates_of_another_connection(self):
        setting = make_connection()
        make_connection(name="second")
        store_keys(setting, "one")
        setting.realm = "other"
        setting.save()
        assert IdpCertificate.objects.count() == 1

    def test_another_spelling_is_the_same_pair(self):
        setting = make_connection()
        store_keys(setting, "one")
        setting.url_idp = "https://IDP.example.com/"
        setting.save()
        assert IdpCertificate.objects.count() == 1 and setting.refreshed().issuer

    def test_deactivating_keeps_certificates(self):
        setting = make_connection(active=True)
        store_keys(setting, "one")
        setting.active = False
        setting.save()
        assert IdpCertificate.objects.count() == 1

"""One active connection, the welcome page that follows it, and the deletion of unused certificates."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from sso.models import CertificatePair, IdpCertificate, OidcSetting
from system import properties, property_definitions
from system.models import DeletionLogEntry
from tests.sso.connections import CALLBACK, make, welcome_page

pytestmark = pytest.mark.django_db

OTHER = "http://testserver/other/"


def active() -> list[str]:
    return [setting.name for setting in OidcSetting.objects.filter(active=True)]


def keys(setting: OidcSetting, *kids: str) -> None:
    for kid in kids:
        IdpCertificate.objects.create(kid=kid, url_idp=setting.url_idp, realm=setting.realm, json={"kid": kid})


class TestTheActiveOne:
    def test_saving_one_as_active_deactivates_the_other(self):
        first, second = make(name="first", active=True), make(name="second", active=True)
        assert active() == ["second"]
        first = first.refreshed()
        assert (first.active, first.sys_version, first.history.count()) == (False, 1, 2)
        first.active = True
        first.save()
        assert active() == ["first"] and not second.refreshed().active
        assert OidcSetting.get_active() == first

    def test_the_database_itself_takes_no_second_one(self):
        from django.db import IntegrityError, transaction

        make(name="first", active=True)
        second = make(name="second")
        with pytest.raises(IntegrityError), transaction.atomic():
            OidcSetting.objects.filter(pk=second.pk).update(active=True)

    def test_a_save_that_fails_half_way_leaves_the_old_one_active(self, monkeypatch: Any):  # A38
        make(name="first", active=True)
        monkeypatch.setattr(properties, "put", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(name="second", active=True, redirect_uri=OTHER)
        assert active() == ["first"] and welcome_page() == CALLBACK
        assert OidcSetting.objects.count() == 1

    def test_a_refused_save_leaves_the_old_one_active(self):
        make(name="first", active=True)
        with pytest.raises(ValidationError):
            make(name="second", active=True, realm="no realm")
        assert active() == ["first"]

    def test_the_acting_user_is_in_the_history_of_both(self, as_sonja: Client, sonja: Any):
        from tests.sso.connections import press

        first = make(name="first", active=True)
        press(as_sonja, "_save", None, name="second", active=True)
        assert first.history.latest().history_user_id == sonja.pk
        assert OidcSetting.objects.get(name="second").history.latest().history_user_id == sonja.pk


class TestTheWelcomePage:
    def test_it_takes_the_redirect_uri_of_the_active_one(self):
        setting = make()
        assert welcome_page() == ""
        setting.active = True
        setting.save()
        assert welcome_page() == CALLBACK
        setting.redirect_uri = OTHER
        setting.save()
        assert welcome_page() == OTHER

    def test_each_save_of_the_active_one_sets_it_again(self):
        setting = make(active=True)
        properties.put(properties.WELCOME_PAGE, "/account/")
        setting.save()
        assert welcome_page() == CALLBACK

    def test_a_save_that_does_not_change_it_leaves_no_history(self):
        from system.models import Property

        setting = make(active=True)
        before = Property.objects.get(name=properties.WELCOME_PAGE.name).history.count()
        setting.save()
        assert Property.objects.get(name=properties.WELCOME_PAGE.name).history.count() == before

    def test_active_cleared_empties_it(self):
        setting = make(active=True)
        setting.active = False
        setting.save()
        assert welcome_page() == ""

    def test_saving_an_inactive_one_leaves_it(self):
        make(name="first", active=True)
        second = make(name="second")
        second.save()
        assert welcome_page() == CALLBACK

    def test_being_deactivated_by_another_does_not_empty_it(self):
        first = make(name="first", active=True, redirect_uri=OTHER)
        make(name="second", active=True)
        assert welcome_page() == CALLBACK
        first = first.refreshed()
        first.save()
        assert welcome_page() == CALLBACK

    def test_an_object_read_while_active_does_not_empty_it_later(self):
        first = make(name="first", active=True)
        old = OidcSetting.objects.get(pk=first.pk)
        make(name="second", active=True)
        old.active = False
        old.save()
        assert welcome_page() == CALLBACK and active() == ["second"]

    @pytest.mark.parametrize(
        "delete", [lambda setting: setting.delete(), lambda setting: OidcSetting.objects.all().delete()]
    )
    def test_deleting_the_active_one_empties_it(self, delete: Any):
        delete(make(active=True))
        assert welcome_page() == ""

    def test_deleting_an_inactive_one_leaves_it(self):
        make(name="first", active=True)
        make(name="second").delete()
        assert welcome_page() == CALLBACK

    def test_a_visitor_is_sent_to_it(self):
        setting = make(active=True)
        assert Client().get("/").headers["Location"] == CALLBACK
        setting.delete()
        property_definitions.VALUE_CACHE.clear()
        assert Client().get("/").headers["Location"] == "/login/"


class TestCertificatesOfAPair:  # A36
    def test_deleting_the_last_connection_removes_and_logs_its_certificates(self):
        setting = make()
        keys(setting, "one", "two")
        setting.delete()
        assert not IdpCertificate.objects.exists()
        logged = DeletionLogEntry.objects.filter(table="idp_certificate").values_list("display_value", flat=True)
        assert sorted(logged) == ["one", "two"]
        assert DeletionLogEntry.objects.filter(table="oidc_setting").count() == 1

    def test_deleting_one_of_two_keeps_certificates(self):
        first, second = make(name="first"), make(name="second")
        keys(first, "one")
        first.delete()
        assert IdpCertificate.objects.count() == 1
        second.delete()
        assert not IdpCertificate.objects.exists()

    def test_deleting_both_at_once_removes_them(self):
        keys(make(name="first"), "one")
        make(name="second")
        OidcSetting.objects.all().delete()
        assert not IdpCertificate.objects.exists()

    @pytest.mark.parametrize("change", [{"url_idp": "https://other.example.com"}, {"realm": "other"}])
    def test_changing_the_pair_removes_certificates(self, change: dict[str, str]):
        setting = make()
        other = make(name="other", realm="third")
        keys(setting, "one")
        keys(other, "two")
        for name, value in change.items():
            setattr(setting, name, value)
        setting.save()
        assert [row.kid for row in IdpCertificate.objects.all()] == ["two"]
        assert CertificatePair.objects.get(realm="acme").fetched_at is None

    def test_changing_the_pair_keeps_certificates_of_another_connection(self):
        setting = make()
        make(name="second")
        keys(setting, "one")
        setting.realm = "other"
        setting.save()
        assert IdpCertificate.objects.count() == 1

    def test_another_spelling_is_the_same_pair(self):
        setting = make()
        keys(setting, "one")
        setting.url_idp = "https://IDP.example.com/"
        setting.save()
        assert IdpCertificate.objects.count() == 1 and setting.refreshed().issuer

    def test_deactivating_keeps_them(self):
        setting = make(active=True)
        keys(setting, "one")
        setting.active = False
        setting.save()
        assert IdpCertificate.objects.count() == 1

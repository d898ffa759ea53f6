"""Certificates, identity links, the sign-in log and the dashboard tile in the administration, and expiry of entries."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from sso import tasks
from sso.models import CertificatePair, IdentityLink, IdpCertificate, OidcSetting, SignIn
from system.models import DeletionLogEntry
from tests.sso.connections import make_connection

pytestmark = pytest.mark.django_db


def page_path(record: Any, page: str = "change") -> str:
    return f"/admin/sso/{record._meta.model_name}/{record.pk}/{page}/"


def make_certificate(kid: str = "rsa-1") -> IdpCertificate:
    return IdpCertificate.objects.create(kid=kid, url_idp="https://idp.example.com", realm="acme", json={"kty": "RSA"})


def make_link(user: User, sub: str = "sub-1") -> IdentityLink:
    return IdentityLink.objects.create(user=user, issuer="https://idp.example.com/realms/acme", sub=sub)


class TestCertificates:
    def test_certificates_are_read_only(self, as_sonja: Client):
        certificate = make_certificate("<b>kid</b>")
        assert b"&lt;b&gt;kid&lt;/b&gt;" in as_sonja.get("/admin/sso/idpcertificate/").content
        content = as_sonja.get(page_path(certificate)).content.decode()
        assert "&quot;kty&quot;: &quot;RSA&quot;" in content and "<b>kid</b>" not in content
        assert as_sonja.post(page_path(certificate), {"kid": "mine"}).status_code == 403
        assert as_sonja.get("/admin/sso/idpcertificate/add/").status_code == 403
        assert certificate.refreshed().kid == "<b>kid</b>"

    def test_a_deleted_certificate_is_logged(self, as_sonja: Client, sonja: User):
        certificate = make_certificate()
        assert as_sonja.post(page_path(certificate, "delete"), {"post": "yes"}).status_code == 302
        entry = DeletionLogEntry.objects.get(table="idp_certificate")
        assert (entry.display_value, entry.deleted_by) == ("rsa-1", sonja.pk)


class TestSignInEntry:
    def test_an_entry_shows_the_advice_and_the_last_time(self, as_sonja: Client):
        entry = SignIn(outcome="user_unknown", login="nina")
        entry.save()
        assert (
            "Create the account, or select “Enable user creation”." in as_sonja.get(page_path(entry)).content.decode()
        )
        page = as_sonja.get("/admin/sso/signin/").content.decode()
        assert "Last occurrence" in page and "No account" in page and "user_unknown</" not in page

    def test_a_code_is_shown_only_for_refusals(self, as_sonja: Client):
        for outcome, is_shown in (("ok", False), ("user_unknown", True)):
            entry = SignIn(outcome=outcome, login="nina")
            entry.save()
            page = as_sonja.get(page_path(entry)).content.decode()
            assert bool(re.search(rf">\s*{outcome}\s*<", page)) is is_shown
            assert SignIn.outcome_title(outcome) in page

    def test_the_log_is_filtered_by_outcome(self, as_sonja: Client):
        for outcome in ("ok", "token_alg"):
            SignIn(outcome=outcome, login=f"login-{outcome}").save()
        page = as_sonja.get("/admin/sso/signin/?outcome=token_alg").content.decode()

        assert "Unsupported signature algorithm" in page and "login-token_alg" in page and "login-ok" not in page


class TestLinks:  # A45
    def test_a_link_is_reset_by_deleting_it(self, as_sonja: Client, bob: User):
        link = make_link(bob)
        assert b"sub-1" in as_sonja.get("/admin/sso/identitylink/").content
        assert as_sonja.post(page_path(link, "delete"), {"post": "yes"}).status_code == 302
        assert not IdentityLink.objects.exists()
        assert DeletionLogEntry.objects.filter(table="sso_identity_link").count() == 1

    def test_only_administrators_can_reset_the_link_of_an_administrator(  # A57
        self, as_sonja: Client, as_alice: Client, alice: User, bob: User
    ):
        link, other_link = make_link(alice), make_link(bob, "sub-2")
        assert as_sonja.post(page_path(link, "delete"), {"post": "yes"}).status_code == 403
        form = {"action": "delete_selected", "_selected_action": [link.pk, other_link.pk], "post": "yes"}
        page = as_sonja.post("/admin/sso/identitylink/", form)
        assert b"only an administrator can reset it" in page.content
        assert IdentityLink.objects.count() == 2
        assert as_alice.post("/admin/sso/identitylink/", form).status_code == 302
        assert not IdentityLink.objects.exists()

    def test_a_link_is_deleted_with_its_user(self, as_alice: Client, alice: User, bob: User):
        make_link(bob)
        make_link(alice, "sub-2")
        bob.delete()
        assert IdentityLink.objects.count() == 1

    def test_links_cannot_be_added_or_changed(self, as_alice: Client, bob: User):
        link = make_link(bob)
        assert as_alice.get("/admin/sso/identitylink/add/").status_code == 403
        assert as_alice.post(page_path(link), {"sub": "mine"}).status_code == 403


class TestSignInLog:
    def test_the_log_is_read_only(self, as_sonja: Client, bob: User):
        entry = SignIn.objects.create(
            user=bob, setting=make_connection(), setting_name="Example", login="<b>bob</b>", outcome="token_alg",
            detail="none", address="192.0.2.7", duration_ms=42,
        )  # fmt: skip
        for path in (
            "/admin/sso/signin/",
            "/admin/sso/signin/?outcome=token_alg",
            "/admin/sso/signin/?q=bob",
            page_path(entry),
        ):
            content = as_sonja.get(path).content
            assert b"&lt;b&gt;bob&lt;/b&gt;" in content and b"token_alg" in content and b"192.0.2.7" in content, path
        for path in (page_path(entry), page_path(entry, "delete")):
            assert as_sonja.post(path, {"post": "yes"}).status_code == 403
        assert as_sonja.get("/admin/sso/signin/add/").status_code == 403

    def test_an_entry_outlives_its_connection_and_its_user(self, bob: User):
        setting = make_connection()
        entry = SignIn.objects.create(user=bob, setting=setting, setting_name="Example", login="bob", outcome=SignIn.OK)
        setting.delete()
        bob.delete()
        entry = entry.refreshed()
        assert (entry.user, entry.setting, entry.setting_name, entry.login) == (None, None, "Example", "bob")

    def test_entries_are_deleted_after_90_days_without_log_entries(self, monkeypatch: Any):
        monkeypatch.setattr(tasks, "DELETE_BATCH_SIZE", 2)
        for days in (89, 91, 92, 93):
            entry = SignIn.objects.create(outcome=SignIn.OK, login=str(days))
            SignIn.objects.filter(pk=entry.pk).update(sys_created_at=timezone.now() - timedelta(days=days))
        tasks.forget_old_sign_ins()
        assert [entry.login for entry in SignIn.objects.all()] == ["89"]
        assert not DeletionLogEntry.objects.exists()


def test_the_list_explains_that_password_sign_ins_are_not_listed(as_sonja: Client):
    page = as_sonja.get("/admin/sso/signin/").content.decode()
    assert "Provider sign-ins" in page and "Password sign-ins are not listed here" in page


class TestDashboardTile:
    def dashboard_tile(self, browser: Client) -> Any:
        (tile,) = [tile for tile in browser.get("/admin/").context["tiles"] if tile.title == "Single sign-on"]
        return tile

    def test_the_tile_is_off_without_an_active_connection(self, as_sonja: Client):
        make_connection()
        tile = self.dashboard_tile(as_sonja)
        assert (tile.figure, tile.needs_attention) == ("Off", False)

    def test_the_tile_shows_connection_certificate_age_and_failures(self, as_sonja: Client):
        setting = make_connection(active=True)
        for outcome in (SignIn.OK, "token_alg", "user_unknown"):
            SignIn.objects.create(outcome=outcome)
        old_entry = SignIn.objects.create(outcome="token_alg")
        SignIn.objects.filter(pk=old_entry.pk).update(sys_created_at=timezone.now() - timedelta(days=2))
        assert (
            "No certificates yet. 2 failed provider sign-ins in the last 24 hours."
            in self.dashboard_tile(as_sonja).description
        )
        fetched_at = timezone.now() - timedelta(hours=3)
        CertificatePair.objects.create(url_idp=setting.url_idp, realm=setting.realm, fetched_at=fetched_at)
        tile = self.dashboard_tile(as_sonja)
        assert tile.figure == "Example" and "Certificates updated 3\xa0hours ago." in tile.description
        assert tile.url.endswith(f"/{setting.pk}/change/") and not tile.needs_attention

    @pytest.mark.parametrize(
        ("setting_columns", "pair_columns"),
        [
            ({"needs_approval": True}, {}),
            ({"resolve_error": "away"}, {}),
            ({}, {"failure": "away"}),
            ({}, {"warning": "changed"}),
            ({}, {"fetched_at": timezone.now() - timedelta(days=3)}),
        ],
    )
    def test_the_tile_shows_warnings(self, as_sonja: Client, setting_columns: Any, pair_columns: Any):
        setting = make_connection(active=True)
        OidcSetting.objects.filter(pk=setting.pk).update(**setting_columns)
        CertificatePair.objects.create(
            url_idp=setting.url_idp, realm=setting.realm, **{"fetched_at": timezone.now(), **pair_columns}
        )
        assert self.dashboard_tile(as_sonja).needs_attention

    def test_users_without_the_role_do_not_see_the_tile(self, carl: User):
        browser = Client()
        browser.force_login(carl)
        assert "Single sign-on" not in browser.get("/admin/").content.decode()

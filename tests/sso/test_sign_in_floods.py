"""Requests that anyone can repeat store few rows, and only for a short time."""

import re
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from accounts.models import FailedAttempts, Session, User
from sso import sign_in_attempts
from sso.models import SignIn
from sso.provider import request_slots
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import (
    CALLBACK_PATH,
    HTML_HEADERS,
    START_PATH,
    Browser,
    check_refusal,
    make_active_connection,
    make_ann,
)
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture
def active_provider(provider: HostileProvider) -> HostileProvider:
    make_active_connection(provider)
    make_ann()
    return provider


def send_denied_sign_in(provider: HostileProvider, ip: str = "192.0.2.1", error: str = "access_denied") -> None:
    """Starts an attempt and returns with an error from the provider."""
    browser = Browser(provider, Client(REMOTE_ADDR=ip))
    state = re.findall(r"[?&]state=([^&]+)", browser.start())[0]
    check_refusal(
        browser.client.get(CALLBACK_PATH, {"state": state, "error": error}, headers=HTML_HEADERS),
        "provider_denied",
        401,
    )


class TestSignInLog:
    def test_equal_refusals_from_one_address_share_an_entry(self, active_provider: HostileProvider):
        for _ in range(3):
            send_denied_sign_in(active_provider)
        entry = SignIn.objects.get()

        assert (entry.times, entry.detail) == (3, "The provider returned access_denied.")
        assert entry.sys_updated_at > entry.sys_created_at

    def test_each_detail_has_an_entry_up_to_the_limit(self, active_provider: HostileProvider):
        for error in ("access_denied", "login_required", "access_denied", *(f"made_up_{name}" for name in "abcde")):
            send_denied_sign_in(active_provider, error=error)

        times_by_detail = dict(SignIn.objects.values_list("detail", "times"))
        assert times_by_detail["The provider returned access_denied."] == 2
        assert times_by_detail["The provider returned login_required."] == 1
        # The last two refusals are in the newest entry, which has the detail of the last one.
        assert times_by_detail["The provider returned made_up_e."] == 3 and len(times_by_detail) == 5

    @pytest.mark.parametrize(
        ("ips", "count"),
        [
            (("192.0.2.1", "192.0.2.2"), 2),
            (("2001:db8::1", "2001:db8::2"), 1),  # the same network
            (("2001:db8::1", "2001:db8:0:1::1"), 2),
        ],
    )
    def test_each_address_has_its_own_entry(self, active_provider: HostileProvider, ips: tuple[str, ...], count: int):
        for ip in ips:
            send_denied_sign_in(active_provider, ip)

        assert SignIn.objects.count() == count

    def test_other_outcomes_have_their_own_entries(self, active_provider: HostileProvider):
        send_denied_sign_in(active_provider)
        browser = Browser(active_provider, Client(REMOTE_ADDR="192.0.2.1"))
        for _ in range(2):
            assert browser.sign_in().status_code == 302
        active_provider.id_token = lambda claims: active_provider.sign({**claims, "aud": "another"})
        check_refusal(browser.sign_in(), "token_audience", 401)
        send_denied_sign_in(active_provider)

        assert sorted(SignIn.objects.values_list("outcome", "times")) == [
            ("ok", 1), ("ok", 1), ("provider_denied", 2), ("token_audience", 1),
        ]  # fmt: skip

    def test_another_user_has_another_entry(self, active_provider: HostileProvider):
        User.objects.update(active=False)
        for name in ("ann", "ann", "bob"):
            active_provider.person = {**active_provider.person, "preferred_username": name}
            Browser(active_provider).sign_in()

        assert sorted(SignIn.objects.values_list("login", "times")) == [("ann", 2), ("bob", 1)]

    def test_after_15_minutes_there_is_a_new_entry(self, active_provider: HostileProvider):
        for minutes, count in ((14, 1), (2, 2)):
            send_denied_sign_in(active_provider)
            SignIn.objects.update(sys_created_at=F("sys_created_at") - timedelta(minutes=minutes))
            send_denied_sign_in(active_provider)
            assert SignIn.objects.count() == count

    def test_the_dashboard_counts_every_refusal(self, active_provider: HostileProvider, as_sonja: Client):
        for _ in range(3):
            send_denied_sign_in(active_provider)

        (tile,) = [tile for tile in as_sonja.get("/admin/").context["tiles"] if tile.title == "Single sign-on"]
        assert "3 failed provider sign-ins in the last 24 hours." in tile.description
        assert "provider_denied" in as_sonja.get("/admin/sso/signin/").content.decode()


class TestAnonymousSessions:
    def remaining_lifetime(self) -> timedelta:
        return Session.objects.get().expire_date - timezone.now()

    def test_anonymous_sessions_last_little_longer_than_an_attempt(self, active_provider: HostileProvider):
        browser = Browser(active_provider)
        browser.start()
        assert (
            timedelta(seconds=sign_in_attempts.ATTEMPT_LIFETIME_S) < self.remaining_lifetime() <= timedelta(minutes=15)
        )

    def test_another_attempt_extends_the_session(self, active_provider: HostileProvider):
        browser = Browser(active_provider)
        browser.start()
        Session.objects.update(expire_date=F("expire_date") - timedelta(minutes=12))
        callback_url = browser.authorize(browser.start())

        assert Session.objects.count() == 1 and self.remaining_lifetime() > timedelta(minutes=14)
        assert browser.follow_callback(callback_url).status_code == 302

    def test_a_signed_in_session_has_the_full_lifetime(self, active_provider: HostileProvider):
        browser = Browser(active_provider)
        assert browser.sign_in().status_code == 302
        assert self.remaining_lifetime() > timedelta(hours=11)
        browser.start()
        assert self.remaining_lifetime() > timedelta(hours=11), "another attempt does not shorten the lifetime"

    def test_a_password_session_has_the_full_lifetime(self, active_provider: HostileProvider, bob: User):
        browser = Browser(active_provider)
        browser.start()
        assert browser.client.post("/login/", {"login": "bob", "password": PASSWORD}).status_code == 302

        assert self.remaining_lifetime() > timedelta(hours=11)

    def test_an_outdated_cookie_is_ignored(self, active_provider: HostileProvider):
        browser = Browser(active_provider)
        browser.start()
        Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))

        assert browser.sign_in().status_code == 302

    def test_one_address_cannot_create_unlimited_sessions(self, active_provider: HostileProvider, monkeypatch: Any):
        monkeypatch.setattr(sign_in_attempts, "MAX_NEW_BROWSERS", 3)
        browser = Browser(active_provider, Client(REMOTE_ADDR="192.0.2.1"))
        browser.start()
        for path, status in (
            (START_PATH, 302),
            (CALLBACK_PATH, 302),
            (START_PATH, 429),
            (CALLBACK_PATH, 429),
            (f"{START_PATH}?again", 429),
        ):
            response = Client(REMOTE_ADDR="192.0.2.1").get(path, headers=HTML_HEADERS)
            assert response.status_code == status, path

        assert response["Retry-After"] and Session.objects.count() == 3
        assert browser.sign_in().status_code == 302, "an existing session can continue"
        assert Client(REMOTE_ADDR="192.0.2.2").get(START_PATH).status_code == 302, "other addresses can continue too"
        assert Client(REMOTE_ADDR="192.0.2.1").get("/login/?local=1").status_code == 200
        FailedAttempts.objects.update(started_at=F("started_at") - timedelta(minutes=16))
        assert Client(REMOTE_ADDR="192.0.2.1").get(START_PATH).status_code == 302


class TestInventedCodes:
    """Each invented code costs a request to the provider, so callers that send them share one slot."""

    def send_invented_codes(self, provider: HostileProvider, ip: str, *, count: int = 1) -> Any:
        browser = Browser(provider, Client(REMOTE_ADDR=ip))
        for _ in range(count):
            state = re.findall(r"[?&]state=([^&]+)", browser.start())[0]
            response = browser.client.get(CALLBACK_PATH, {"state": state, "code": "invented"}, headers=HTML_HEADERS)
        return response

    def test_invented_codes_leave_a_slot_for_others(self, active_provider: HostileProvider):
        with request_slots.request_slot():
            check_refusal(
                self.send_invented_codes(active_provider, "192.0.2.1", count=request_slots.MAX_REJECTED_CODES),
                "code_rejected",
                401,
            )
        for ip in ("192.0.2.1", "192.0.2.2"):
            self.send_invented_codes(active_provider, ip, count=request_slots.MAX_REJECTED_CODES)
        with request_slots.request_slot("192.0.2.2"):
            assert self.send_invented_codes(active_provider, "192.0.2.1").status_code == 503
            assert Browser(active_provider, Client(REMOTE_ADDR="192.0.2.3")).sign_in().status_code == 302
        check_refusal(self.send_invented_codes(active_provider, "192.0.2.1"), "code_rejected", 401)

    def test_suspects_are_forgotten_after_a_minute(self, active_provider: HostileProvider, monkeypatch: Any):
        self.send_invented_codes(active_provider, "192.0.2.1", count=request_slots.MAX_REJECTED_CODES)
        assert request_slots.is_suspect("192.0.2.1")
        now = time.monotonic()
        monkeypatch.setattr(
            request_slots, "time", SimpleNamespace(monotonic=lambda: now + request_slots.REJECTED_WINDOW_S)
        )
        assert not request_slots.is_suspect("192.0.2.1")

    def test_only_the_latest_suspects_are_remembered(self):
        for number in range(request_slots.MAX_SUSPECT_ADDRESSES + 1):
            for _ in range(request_slots.MAX_REJECTED_CODES):
                request_slots.record_rejected_code(f"10.0.{number // 256}.{number % 256}")
        assert not request_slots.is_suspect("10.0.0.0") and request_slots.is_suspect("10.0.0.1")

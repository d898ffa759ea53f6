"""Back-channel logout: the provider ends sessions with a token that must be valid."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Session, User
from sso import tasks
from sso.models import OidcSetting, ProviderSession, ProviderSignOut
from sso.provider import request_slots
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT, jwk
from tests.sso.sign_ins import ME, Browser, active, ann
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db
ADDRESS = "/sso/backchannel-logout/"


def browser_of(provider: HostileProvider, sid: Any = ABSENT) -> Client:
    provider.claims = {"sid": sid}
    browser = Browser(provider)
    assert browser.sign_in().status_code == 302
    return browser.client


@pytest.fixture
def ours(provider: HostileProvider) -> HostileProvider:
    active(provider)
    ann()
    return provider


def tell(token: Any, **more: Any) -> Any:
    """As a server calls: no cookie, no token of our pages."""
    return Client(enforce_csrf_checks=True).post(ADDRESS, {"logout_token": token} if token is not None else {}, **more)


def is_in(client: Client) -> bool:
    return bool(client.get(ME).status_code == 200)


def test_a_subject_is_signed_out_everywhere(ours: HostileProvider, bob: User):
    first, second = browser_of(ours, "sid-1"), browser_of(ours)
    other = Client()
    other.post("/login/", {"login": "bob", "password": PASSWORD})
    response = tell(ours.logout_token())

    assert response.status_code == 200 and response["Cache-Control"] == "no-store"
    assert not is_in(first) and not is_in(second) and is_in(other)
    assert not ProviderSession.objects.exists()


def test_a_session_is_signed_out_alone(ours: HostileProvider):
    first, second = browser_of(ours, "sid-1"), browser_of(ours, "sid-2")
    assert tell(ours.logout_token(sub=ABSENT, sid="sid-1")).status_code == 200

    assert not is_in(first) and is_in(second)
    assert tell(ours.logout_token(sid="sid-2")).status_code == 200
    assert not is_in(second)


def test_a_session_without_sid_may_be_the_one_that_ended(ours: HostileProvider):
    unnamed, named = browser_of(ours), browser_of(ours, "sid-2")
    assert tell(ours.logout_token(sid="sid-1")).status_code == 200

    assert not is_in(unnamed) and is_in(named)
    claims = {"iss": ours.issuer, "sub": "sub-ann", "iat": 0}
    assert ProviderSignOut.has_ended(claims, since=0), "one that was under way too"
    assert not ProviderSignOut.has_ended({**claims, "sid": "sid-2"}, since=0)
    assert not ProviderSignOut.has_ended({**claims, "sub": "sub-other"}, since=0)


def test_subject_and_session_must_belong_together(ours: HostileProvider):
    client = browser_of(ours, "sid-1")
    assert tell(ours.logout_token(sub="sub-other", sid="sid-1")).status_code == 200

    assert is_in(client)


def test_a_session_by_password_of_the_same_user_stays(ours: HostileProvider):
    user = User.objects.get(login="ann")
    user.set_password(PASSWORD)
    user.save()
    local = Client()
    local.post("/login/", {"login": "ann", "password": PASSWORD})
    theirs = browser_of(ours)
    tell(ours.logout_token())

    assert is_in(local) and not is_in(theirs)


def test_a_token_without_matching_session_is_accepted(ours: HostileProvider):
    assert tell(ours.logout_token()).status_code == 200


def test_an_inactive_connection_accepts_logout_tokens(ours: HostileProvider):
    client = browser_of(ours)
    setting = OidcSetting.objects.get()
    setting.active = False
    setting.save()

    assert tell(ours.logout_token()).status_code == 200 and not is_in(client)


# The other cases of wrong tokens: `test_token_check.py` and the suite in `test_relying_party.py`.
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"key": "rsa-2", "kid": "rsa-1"}, {}, "token_signature"),
    ({"key": "rsa-2"}, {}, "token_key"),
    ({}, {"iss": ["x"]}, "token_issuer"),
    ({}, {"iss": ABSENT}, "token_issuer"),
    ({}, {"sub": ABSENT}, "token_subject"),
    ({}, {"iat": 1}, "token_clock"),
    ({}, {"exp": ABSENT}, "token_time"),
    ({}, {"jti": ABSENT}, "token_form"),
]


@pytest.mark.parametrize(("how", "changes", "code"), REFUSED, ids=[str(row) for row in REFUSED])
def test_a_token_that_proves_nothing_keeps_the_session(ours: HostileProvider, how: Any, changes: Any, code: str):
    client = browser_of(ours)
    response = tell(ours.logout_token(how, **changes))

    assert response.status_code == 400 and response["Cache-Control"] == "no-store"
    assert response.json() == {"error": "invalid_request", "error_description": code}
    assert is_in(client)


def test_an_id_token_ends_nothing(ours: HostileProvider):
    client = browser_of(ours)

    assert tell(ours.sign(ours.right_claims("n"))).status_code == 400
    assert is_in(client)


@pytest.mark.parametrize("token", [None, "", "x", "a.b.c", "x" * 20_000, "x" * 60_000, "é", ["a", "b"]])
def test_garbage_is_400(ours: HostileProvider, token: Any):
    assert tell(token).status_code == 400


def test_too_much_is_413(ours: HostileProvider):
    assert tell("x" * 100_000).status_code == 413


@pytest.mark.parametrize("method", ["get", "put", "head", "delete"])
def test_only_post_is_taken(ours: HostileProvider, method: str):
    assert getattr(Client(), method)(ADDRESS).status_code == 405


def test_json_is_not_accepted(ours: HostileProvider):
    response = Client().post(ADDRESS, {"logout_token": ours.logout_token()}, content_type="application/json")

    assert response.status_code == 400


def test_the_providers_new_key_is_fetched(ours: HostileProvider):
    client = browser_of(ours)
    ours.jwks = {"keys": [jwk("rsa-2")]}

    assert tell(ours.logout_token({"key": "rsa-2"})).status_code == 200
    assert not is_in(client)


def test_without_a_free_slot_the_provider_must_retry(ours: HostileProvider):
    client = browser_of(ours)
    ours.jwks = {"keys": [jwk("rsa-2")]}
    with request_slots.request_slot(), request_slots.request_slot():
        response = tell(ours.logout_token({"key": "rsa-2"}))

    assert (response.status_code, response["Retry-After"]) == (503, "1") and is_in(client)


def test_two_connections_to_one_provider(ours: HostileProvider):
    client = browser_of(ours)
    active(ours, name="Second", client_id="second")

    assert tell(ours.logout_token()).status_code == 200
    assert not is_in(client)


def test_records_of_ended_sessions_are_deleted(ours: HostileProvider):
    browser_of(ours)
    live = browser_of(ours)
    ProviderSession.objects.update(started_at=timezone.now() - timedelta(hours=2))
    remaining = live.session["provider_session"]
    Session.objects.exclude(provider_session=remaining).delete()
    tasks.forget_ended_sessions()

    assert [provider_session.pk for provider_session in ProviderSession.objects.all()] == [remaining]


def test_the_record_of_a_starting_session_is_kept(ours: HostileProvider):
    browser_of(ours)
    Session.objects.all().delete()
    tasks.forget_ended_sessions()

    assert ProviderSession.objects.count() == 1

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
from tests.sso.sign_ins import ME_PATH, Browser, make_active_connection, make_ann
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db
BACKCHANNEL_PATH = "/sso/backchannel-logout/"


def sign_in(provider: HostileProvider, sid: Any = ABSENT) -> Client:
    provider.claims = {"sid": sid}
    browser = Browser(provider)
    assert browser.sign_in().status_code == 302
    return browser.client


@pytest.fixture
def active_provider(provider: HostileProvider) -> HostileProvider:
    make_active_connection(provider)
    make_ann()
    return provider


def send_logout_token(token: Any, **request_options: Any) -> Any:
    """Sends the request like a server, without cookies and without a CSRF token."""
    return Client(enforce_csrf_checks=True).post(
        BACKCHANNEL_PATH, {"logout_token": token} if token is not None else {}, **request_options
    )


def is_signed_in(client: Client) -> bool:
    return bool(client.get(ME_PATH).status_code == 200)


def test_a_subject_is_signed_out_everywhere(active_provider: HostileProvider, bob: User):
    first_client, second_client = sign_in(active_provider, "sid-1"), sign_in(active_provider)
    client_of_bob = Client()
    client_of_bob.post("/login/", {"login": "bob", "password": PASSWORD})
    response = send_logout_token(active_provider.logout_token())

    assert response.status_code == 200 and response["Cache-Control"] == "no-store"
    assert not is_signed_in(first_client) and not is_signed_in(second_client) and is_signed_in(client_of_bob)
    assert not ProviderSession.objects.exists()


def test_a_single_session_is_signed_out(active_provider: HostileProvider):
    first_client, second_client = sign_in(active_provider, "sid-1"), sign_in(active_provider, "sid-2")
    assert send_logout_token(active_provider.logout_token(sub=ABSENT, sid="sid-1")).status_code == 200

    assert not is_signed_in(first_client) and is_signed_in(second_client)
    assert send_logout_token(active_provider.logout_token(sid="sid-2")).status_code == 200
    assert not is_signed_in(second_client)


def test_a_session_without_sid_ends_with_any_session_of_its_subject(active_provider: HostileProvider):
    client_without_sid, client_with_sid = sign_in(active_provider), sign_in(active_provider, "sid-2")
    assert send_logout_token(active_provider.logout_token(sid="sid-1")).status_code == 200

    assert not is_signed_in(client_without_sid) and is_signed_in(client_with_sid)
    claims = {"iss": active_provider.issuer, "sub": "sub-ann", "iat": 0}
    assert ProviderSignOut.has_ended(claims, since_id=0), "a sign-in in progress ends too"
    assert not ProviderSignOut.has_ended({**claims, "sid": "sid-2"}, since_id=0)
    assert not ProviderSignOut.has_ended({**claims, "sub": "sub-other"}, since_id=0)


def test_subject_and_session_must_match(active_provider: HostileProvider):
    client = sign_in(active_provider, "sid-1")
    assert send_logout_token(active_provider.logout_token(sub="sub-other", sid="sid-1")).status_code == 200

    assert is_signed_in(client)


def test_password_sessions_of_the_same_user_continue(active_provider: HostileProvider):
    user = User.objects.get(login="ann")
    user.set_password(PASSWORD)
    user.save()
    password_client = Client()
    password_client.post("/login/", {"login": "ann", "password": PASSWORD})
    provider_client = sign_in(active_provider)
    send_logout_token(active_provider.logout_token())

    assert is_signed_in(password_client) and not is_signed_in(provider_client)


def test_a_token_without_matching_session_is_accepted(active_provider: HostileProvider):
    assert send_logout_token(active_provider.logout_token()).status_code == 200


def test_an_inactive_connection_accepts_logout_tokens(active_provider: HostileProvider):
    client = sign_in(active_provider)
    setting = OidcSetting.objects.get()
    setting.active = False
    setting.save()

    assert send_logout_token(active_provider.logout_token()).status_code == 200 and not is_signed_in(client)


# The other cases of wrong tokens: `test_token_check.py` and the suite in `test_relying_party.py`.
REFUSED_TOKENS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"key": "rsa-2", "kid": "rsa-1"}, {}, "token_signature"),
    ({"key": "rsa-2"}, {}, "token_key"),
    ({}, {"iss": ["x"]}, "token_issuer"),
    ({}, {"iss": ABSENT}, "token_issuer"),
    ({}, {"sub": ABSENT}, "token_subject"),
    ({}, {"iat": 1}, "token_clock"),
    ({}, {"exp": ABSENT}, "token_time"),
    ({}, {"jti": ABSENT}, "token_form"),
]


@pytest.mark.parametrize(("options", "claims", "code"), REFUSED_TOKENS, ids=[str(row) for row in REFUSED_TOKENS])
def test_an_invalid_logout_token_does_not_end_the_session(
    active_provider: HostileProvider, options: Any, claims: Any, code: str
):
    client = sign_in(active_provider)
    response = send_logout_token(active_provider.logout_token(options, **claims))

    assert response.status_code == 400 and response["Cache-Control"] == "no-store"
    assert response.json() == {"error": "invalid_request", "error_description": code}
    assert is_signed_in(client)


def test_an_id_token_does_not_end_the_session(active_provider: HostileProvider):
    client = sign_in(active_provider)

    assert send_logout_token(active_provider.sign(active_provider.valid_claims("n"))).status_code == 400
    assert is_signed_in(client)


@pytest.mark.parametrize("token", [None, "", "x", "a.b.c", "x" * 20_000, "x" * 60_000, "é", ["a", "b"]])
def test_malformed_token_is_400(active_provider: HostileProvider, token: Any):
    assert send_logout_token(token).status_code == 400


def test_too_large_body_is_413(active_provider: HostileProvider):
    assert send_logout_token("x" * 100_000).status_code == 413


@pytest.mark.parametrize("method", ["get", "put", "head", "delete"])
def test_only_post_is_allowed(active_provider: HostileProvider, method: str):
    assert getattr(Client(), method)(BACKCHANNEL_PATH).status_code == 405


def test_json_is_not_accepted(active_provider: HostileProvider):
    response = Client().post(
        BACKCHANNEL_PATH, {"logout_token": active_provider.logout_token()}, content_type="application/json"
    )

    assert response.status_code == 400


def test_the_providers_new_key_is_fetched(active_provider: HostileProvider):
    client = sign_in(active_provider)
    active_provider.jwks = {"keys": [jwk("rsa-2")]}

    assert send_logout_token(active_provider.logout_token({"key": "rsa-2"})).status_code == 200
    assert not is_signed_in(client)


def test_without_a_free_slot_the_provider_must_retry(active_provider: HostileProvider):
    client = sign_in(active_provider)
    active_provider.jwks = {"keys": [jwk("rsa-2")]}
    with request_slots.request_slot(), request_slots.request_slot():
        response = send_logout_token(active_provider.logout_token({"key": "rsa-2"}))

    assert (response.status_code, response["Retry-After"]) == (503, "1") and is_signed_in(client)


def test_a_logout_token_may_be_for_another_connection_to_the_provider(active_provider: HostileProvider):
    client = sign_in(active_provider)
    make_active_connection(active_provider, name="Second", client_id="second")

    assert send_logout_token(active_provider.logout_token()).status_code == 200
    assert not is_signed_in(client)


def test_records_of_ended_sessions_are_deleted(active_provider: HostileProvider):
    sign_in(active_provider)
    client = sign_in(active_provider)
    ProviderSession.objects.update(started_at=timezone.now() - timedelta(hours=2))
    provider_session_id = client.session["provider_session"]
    Session.objects.exclude(provider_session=provider_session_id).delete()
    tasks.forget_ended_sessions()

    assert [provider_session.pk for provider_session in ProviderSession.objects.all()] == [provider_session_id]


def test_the_record_of_a_starting_session_is_kept(active_provider: HostileProvider):
    sign_in(active_provider)
    Session.objects.all().delete()
    tasks.forget_ended_sessions()

    assert ProviderSession.objects.count() == 1

"""Tokens for clients of ServiceNow: grants, limits, and what ends a token."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, Role, User
from accounts.models.access_keys import hash_key
from accounts.tasks import forget_expired
from system import properties
from system.property_definitions import SERVICENOW_ENABLED
from tests.accounts.callers import basic_auth, bearer_auth, get_me
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db


class Script:
    def __init__(self, user: User, **limits: Any) -> None:
        self.secret = access_keys.create_key(user, "script", expires_at=None, **limits)
        self.key = AccessKey.objects.get(digest=hash_key(self.secret))
        self.client = {"client_id": self.key.pk, "client_secret": self.secret}

    def post(self, grant_type: str, address: str = "127.0.0.1", **form: str) -> Any:
        return post({"grant_type": grant_type, **self.client, **form}, address)

    def tokens(self, grant_type: str = "client_credentials", **form: str) -> Any:
        response = self.post(grant_type, **form)
        assert response.status_code == 200, response.content
        return response.json()


def post(form: dict[str, str], address: str = "127.0.0.1", headers: Any = None) -> Any:
    return Client().post(
        "/oauth_token.do",
        urlencode(form),
        content_type="application/x-www-form-urlencoded",
        headers=headers or {},
        REMOTE_ADDR=address,
    )


@pytest.fixture
def script(bob: User) -> Script:
    return Script(bob)


def status_of(token: str) -> int:
    access_keys.KEY_CACHE.clear()
    return int(get_me(bearer_auth(token)).status_code)


def error_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]


@pytest.mark.parametrize("key_id", ["pk", "prefix"])
def test_a_key_is_a_client(bob: User, script: Script, key_id: str):
    tokens = script.tokens(client_id=getattr(script.key, key_id))
    assert tokens.keys() == {"access_token", "refresh_token", "scope", "token_type", "expires_in"}
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 1800)
    assert get_me(bearer_auth(tokens["access_token"])).json()["login"] == "bob"
    assert not AccessKey.objects.filter(digest=tokens["access_token"]).exists()


def test_a_client_can_send_a_header(script: Script):
    headers = basic_auth(script.key.pk, script.secret)
    assert post({"grant_type": "client_credentials"}, headers=headers).status_code == 200
    assert error_of(post({"grant_type": "client_credentials"}, headers={"Authorization": "Basic x"}))[0] == 401


@pytest.mark.parametrize("form", [{"client_id": ""}, {"client_id": "1"}, {"client_secret": "sb_wrong"}])
def test_unknown_clients_are_refused(script: Script, form: dict[str, str]):
    response = script.post("client_credentials", **form)
    assert error_of(response) == (401, "invalid_client")
    assert script.secret not in response.content.decode()


def test_a_password_must_be_that_of_the_owner(script: Script, alice: User):
    assert status_of(script.tokens("password", username="bob", password=PASSWORD)["access_token"]) == 200
    for form in ({"username": "alice", "password": PASSWORD}, {"username": "bob", "password": "wrong"}, {}):
        assert error_of(script.post("password", **form)) == (400, "invalid_grant")


def test_wrong_passwords_are_counted(script: Script):
    responses = [script.post("password", username="bob", password=f"wrong{number}") for number in range(12)]
    assert responses[-1].status_code == 429 and int(responses[-1]["Retry-After"]) > 0


def test_a_refresh_token_can_be_used_once(script: Script, alice: User):
    first = script.tokens()
    assert status_of(first["refresh_token"]) == 401
    other = Script(alice)
    assert error_of(other.post("refresh_token", refresh_token=first["refresh_token"])) == (400, "invalid_grant")
    second = script.tokens("refresh_token", refresh_token=first["refresh_token"])
    assert status_of(second["access_token"]) == 200
    for used in (first["refresh_token"], second["access_token"], ""):
        assert error_of(script.post("refresh_token", refresh_token=used)) == (400, "invalid_grant")


def test_a_token_has_the_limits_of_its_key(bob: User):
    Role.objects.get_or_create(name="itil")
    script = Script(bob, scope=[Role.objects.get(name="itil").pk], read_only=True)
    headers = bearer_auth(script.tokens()["access_token"])
    assert get_me(headers).json()["roles"] == []
    response = Client().post("/api/now/table/task", "{}", content_type="application/json", headers=headers)
    assert response.status_code == 403


def test_a_token_is_no_client(script: Script):
    token = AccessKey.objects.get(parent=script.key, kind=AccessKey.KIND_TOKEN) if script.tokens() else None
    assert token is not None
    secret = script.tokens()["access_token"]
    assert error_of(script.post("client_credentials", client_id=token.pk, client_secret=secret))[0] == 401


def test_tokens_end_with_their_key(script: Script):
    token = script.tokens()["access_token"]
    AccessKey.objects.filter(pk=script.key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert status_of(token) == 401
    AccessKey.objects.filter(pk=script.key.pk).update(expires_at=None)
    assert status_of(token) == 200
    script.key.delete()
    assert status_of(token) == 401 and not AccessKey.objects.exists()


def test_tokens_end_with_the_user_and_the_password(bob: User, script: Script):
    tokens = script.tokens()
    bob.change_password("another long password 1")
    assert status_of(tokens["access_token"]) == 401
    assert error_of(script.post("refresh_token", refresh_token=tokens["refresh_token"]))[0] == 400
    token = script.tokens()["access_token"]
    bob.active = False
    bob.save()
    assert status_of(token) == 401
    assert error_of(script.post("client_credentials")) == (401, "invalid_client")


def test_expired_tokens_are_deleted(script: Script):
    token = script.tokens()["access_token"]
    AccessKey.objects.exclude(parent=None).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert status_of(token) == 401
    forget_expired()
    assert [key.pk for key in AccessKey.objects.all()] == [script.key.pk]


def test_bad_requests(script: Script):
    assert error_of(script.post("other")) == (400, "unsupported_grant_type")
    assert error_of(script.post("client_credentials", address="192.0.2.1")) == (400, "invalid_request")
    as_json = Client().post("/oauth_token.do", "{}", content_type="application/json")
    assert error_of(as_json) == (415, "invalid_request")
    assert error_of(Client().get("/oauth_token.do"))[0] == 405
    properties.put(SERVICENOW_ENABLED, "false")
    assert error_of(script.post("client_credentials"))[0] == 404


def test_use_of_a_token_is_use_of_its_key(script: Script):
    token = script.tokens()["access_token"]
    assert AccessKey.objects.get(pk=script.key.pk).last_used_at is None
    assert status_of(token) == 200
    assert AccessKey.objects.get(pk=script.key.pk).last_used_at is not None


def test_other_bodies_are_refused(script: Script):
    response = Client().post("/oauth_token.do", script.client, content_type="application/json")
    assert error_of(response) == (415, "invalid_request")
    assert "application/x-www-form-urlencoded" in response.json()["error_description"]

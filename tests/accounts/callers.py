"""Requests with each kind of credential, from any IP address."""

import base64
import time
from types import SimpleNamespace
from typing import Any

from django.test import Client

from accounts.models import AccessKey
from tests.support.users import PASSWORD

ME_PATH = "/api/me"
API_SIGN_IN_PATH = "/rest/v1/auth/login"


def basic_auth(login: str, password: str = PASSWORD) -> dict[str, str]:
    """The Authorization header with Basic credentials."""
    return {"Authorization": "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()}


def bearer_auth(key: str) -> dict[str, str]:
    """The Authorization header with an access key."""
    return {"Authorization": f"Bearer {key}"}


def get_me(headers: dict[str, str] | None = None, ip: str = "192.0.2.1") -> Any:
    """The response of `GET /api/me` to a client without cookies."""
    return Client().get(ME_PATH, headers=headers or {}, REMOTE_ADDR=ip)


def try_password(login: str, password: str, ip: str = "192.0.2.1") -> int:
    """The status of one request with Basic credentials."""
    return int(get_me(basic_auth(login, password), ip).status_code)


def request_api_key(login: str, password: str = PASSWORD, **request_options: Any) -> Any:
    """The response of `POST /rest/v1/auth/login`."""
    credentials = {"username": login, "password": password}
    return Client().post(API_SIGN_IN_PATH, credentials, content_type="application/json", **request_options)


def clock_ahead(seconds: float) -> SimpleNamespace:
    """A stand-in for the module `time` whose monotonic clock is ahead; patch it into a single module."""
    return SimpleNamespace(monotonic=lambda: time.monotonic() + seconds)


def sign_in(login: str, password: str = PASSWORD, **request_options: Any) -> Client:
    """Signs in on the sign-in page and returns the browser."""
    browser = Client()
    response = browser.post("/login/", {"login": login, "password": password}, **request_options)
    assert response.status_code == 302, response.status_code
    return browser


def only_access_key() -> Any:
    """The only stored access key."""
    return AccessKey.objects.get()

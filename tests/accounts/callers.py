"""Requests with each kind of credential, from any IP address."""

import base64
import time
from types import SimpleNamespace
from typing import Any

from django.test import Client

from accounts.models import AccessKey
from tests.support.users import PASSWORD

ME = "/api/me"
SIGN_IN = "/rest/v1/auth/login"


def basic(login: str, password: str = PASSWORD) -> dict[str, str]:
    """The header of Basic credentials."""
    return {"Authorization": "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()}


def bearer(key: str) -> dict[str, str]:
    """The header of an access key."""
    return {"Authorization": f"Bearer {key}"}


def ask(headers: dict[str, str] | None = None, address: str = "192.0.2.1") -> Any:
    """Who the service takes this caller for; from a client without cookies."""
    return Client().get(ME, headers=headers or {}, REMOTE_ADDR=address)


def guess(login: str, password: str, address: str = "192.0.2.1") -> int:
    """The status of one try with Basic."""
    return int(ask(basic(login, password), address).status_code)


def api_key(login: str, password: str = PASSWORD, **more: Any) -> Any:
    """The answer of `POST /rest/v1/auth/login`."""
    values = {"username": login, "password": password}
    return Client().post(SIGN_IN, values, content_type="application/json", **more)


def later(seconds: float) -> SimpleNamespace:
    """A module `time` whose monotonic clock is ahead; put it into the one module whose memory is meant."""
    return SimpleNamespace(monotonic=lambda: time.monotonic() + seconds)


def sign_in(login: str, password: str = PASSWORD, **more: Any) -> Client:
    """A browser that signed in through the page."""
    client = Client()
    response = client.post("/login/", {"login": login, "password": password}, **more)
    assert response.status_code == 302, response.status_code
    return client


def only_key() -> Any:
    """The one stored access key."""
    return AccessKey.objects.get()

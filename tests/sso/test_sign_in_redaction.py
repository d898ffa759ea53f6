"""No token, code, secret, nonce or verifier appears in a log, a page, a table or a history."""

import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.apps import apps
from django.db import connection
from django.test import RequestFactory

from sso.models import OidcSetting
from system.monitoring.logs import redact
from tests.providers.behaviours import fails
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import CALLBACK, PAGE, Browser, active, ann

pytestmark = pytest.mark.django_db


@pytest.fixture
def lines(capfd: Any) -> Iterator[list[str]]:
    """What libraries log; our own lines are printed."""
    results: list[str] = []

    class Everything(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            results.append(record.getMessage())

    handler = Everything()
    logging.getLogger().addHandler(handler)
    yield results
    logging.getLogger().removeHandler(handler)


def tables() -> str:
    """The text of every table but that of sessions, which hold what attempts need."""
    names = {model._meta.db_table for model in apps.get_models(include_auto_created=True)} - {"accounts_session"}
    text = ""
    with connection.cursor() as cursor:
        for name in sorted(names):
            cursor.execute(f"SELECT coalesce(json_agg(to_json(stored))::text, '') FROM \"{name}\" AS stored")
            text += cursor.fetchone()[0]
    return text


def test_a_sign_in_and_each_kind_of_refusal_leave_no_secret(
    provider: HostileProvider, lines: list[str], capfd: Any
):  # A56, A60
    active(provider)
    ann()
    secrets: set[str] = {provider.client_secret}
    pages: list[bytes] = []
    signed: list[str] = []

    def noting(claims: dict[str, Any]) -> str:
        signed.append(provider.sign(claims))
        return signed[-1]

    provider.id_token = noting

    def go(**changed: Any) -> None:
        browser = Browser(provider)
        location = browser.start()
        (remaining,) = browser.client.session["sso_attempts"].values()
        back = dict(parse_qsl(urlsplit(provider.authorize(location)).query))
        values = dict(parse_qsl(urlsplit(location).query))
        secrets.update((values["nonce"], remaining["verifier"], back["code"], back["state"], f"access-{back['code']}"))
        response = browser.client.get(CALLBACK, {**back, **changed}, headers=PAGE)
        pages.append(response.content)

    go()
    go(code="wrong-code-canary")
    go(iss="https://evil.example")
    go(error="access_denied")
    go(id_token="token-canary")
    provider.claims = {"aud": "another"}
    go()
    provider.claims = {"sub": "another"}
    go()
    for endpoint in ("token", "userinfo", "certs"):
        provider.serve(endpoint, fails(500))
        go()
        provider.behave(endpoint)
    OidcSetting.objects.update(script="broken (")
    go()
    secrets |= {*signed, *(part for token in signed for part in token.split(".")[1:])}
    secrets |= {"token-canary", "wrong-code-canary"}

    out, err = capfd.readouterr()
    logged = "\n".join(lines) + out + err
    assert "sign_in_refused" in logged
    stored, page = tables(), b"".join(pages).decode()
    for secret in secrets:
        assert secret not in logged, "in the log"
        assert secret not in stored, "in a table"
        assert secret not in page, "on a page"


def test_djangos_own_lines_have_no_query(rf: RequestFactory):
    """It logs each 503 with the request, whose text has the address: the code of an attempt that waits is unused."""
    request = rf.get("/sso/callback/?code=code-canary&state=s")

    assert redact(None, "", {"request": request})["request"] == "GET /sso/callback/"

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
from tests.providers.behaviours import responds_with_error
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import CALLBACK_PATH, HTML_HEADERS, Browser, make_active_connection, make_ann

pytestmark = pytest.mark.django_db


@pytest.fixture
def log_lines(capfd: Any) -> Iterator[list[str]]:
    """Collects the log lines of libraries; our own log lines are printed."""
    messages: list[str] = []

    class RecordingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    handler = RecordingHandler()
    logging.getLogger().addHandler(handler)
    yield messages
    logging.getLogger().removeHandler(handler)


def stored_text() -> str:
    """The text of every table except the sessions, which contain the attempts."""
    table_names = {model._meta.db_table for model in apps.get_models(include_auto_created=True)} - {"accounts_session"}
    text = ""
    with connection.cursor() as cursor:
        for table_name in sorted(table_names):
            cursor.execute(f"SELECT coalesce(json_agg(to_json(stored))::text, '') FROM \"{table_name}\" AS stored")
            text += cursor.fetchone()[0]
    return text


def test_a_sign_in_and_each_kind_of_refusal_leave_no_secret(
    provider: HostileProvider, log_lines: list[str], capfd: Any
):  # A56, A60
    make_active_connection(provider)
    make_ann()
    secrets: set[str] = {provider.client_secret}
    pages: list[bytes] = []
    signed_tokens: list[str] = []

    def sign_and_record(claims: dict[str, Any]) -> str:
        signed_tokens.append(provider.sign(claims))
        return signed_tokens[-1]

    provider.id_token = sign_and_record

    def return_with(**changes: Any) -> None:
        browser = Browser(provider)
        authorization_url = browser.start()
        (attempt,) = browser.client.session["sso_attempts"].values()
        response_parameters = dict(parse_qsl(urlsplit(provider.authorize(authorization_url)).query))
        request_parameters = dict(parse_qsl(urlsplit(authorization_url).query))
        secrets.update(
            (
                request_parameters["nonce"],
                attempt["verifier"],
                response_parameters["code"],
                response_parameters["state"],
                f"access-{response_parameters['code']}",
            )
        )
        response = browser.client.get(CALLBACK_PATH, {**response_parameters, **changes}, headers=HTML_HEADERS)
        pages.append(response.content)

    return_with()
    return_with(code="wrong-code-canary")
    return_with(iss="https://evil.example")
    return_with(error="access_denied")
    return_with(id_token="token-canary")
    provider.claims = {"aud": "another"}
    return_with()
    provider.claims = {"sub": "another"}
    return_with()
    for endpoint in ("token", "userinfo", "certs"):
        provider.serve(endpoint, responds_with_error(500))
        return_with()
        provider.behave_correctly(endpoint)
    OidcSetting.objects.update(script="broken (")
    return_with()
    secrets |= {*signed_tokens, *(segment for token in signed_tokens for segment in token.split(".")[1:])}
    secrets |= {"token-canary", "wrong-code-canary"}

    stdout, stderr = capfd.readouterr()
    log_text = "\n".join(log_lines) + stdout + stderr
    assert "sign_in_refused" in log_text
    table_text, page_text = stored_text(), b"".join(pages).decode()
    for secret in secrets:
        assert secret not in log_text, "in the log"
        assert secret not in table_text, "in a table"
        assert secret not in page_text, "on a page"


def test_log_lines_of_django_contain_no_query(rf: RequestFactory):
    """Django logs the request of each 503. Its URL would contain the unused code of a waiting attempt."""
    request = rf.get("/sso/callback/?code=code-canary&state=s")

    assert redact(None, "", {"request": request})["request"] == "GET /sso/callback/"

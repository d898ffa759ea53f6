"""Health probes may use any host name or IP address; other requests must use an allowed host name."""

import io
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

pytestmark = pytest.mark.django_db

# The allowed host names, and the URL that `up` then prints.
PRINTED_URLS = [
    (["service.example.com"], "https://service.example.com/api/me"),
    (["service.example.com", "127.0.0.1"], "http://127.0.0.1:8000/api/me"),
]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probe_is_answered_for_any_host_name(path: str):
    assert Client().get(path, HTTP_HOST="10.0.0.7:8000").status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/me", "/metrics", "/healthz/", "/login/"])
def test_other_requests_with_a_foreign_host_name_are_refused(path: str):
    assert Client().get(path, HTTP_HOST="10.0.0.7:8000").status_code == 400


@pytest.mark.parametrize(("allowed_hosts", "printed_url"), PRINTED_URLS)
def test_printed_url_uses_an_allowed_host_name(allowed_hosts: list[str], printed_url: str, settings: Any):
    settings.BASE_URL, settings.ALLOWED_HOSTS = "https://service.example.com", allowed_hosts
    output = io.StringIO()

    call_command("welcome", "http://127.0.0.1:8000", stdout=output)

    assert f"{printed_url}\n" in output.getvalue()

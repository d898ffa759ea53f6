"""Probes come by address, people and scripts by name."""

import io
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

pytestmark = pytest.mark.django_db

# The name, and how the call that `up` prints then goes.
CALLS = [
    (["service.example.com"], "https://service.example.com/api/me"),
    (["service.example.com", "127.0.0.1"], "http://127.0.0.1:8000/api/me"),
]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_is_answered_under_any_name(path: str):
    assert Client().get(path, HTTP_HOST="10.0.0.7:8000").status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/me", "/metrics", "/healthz/", "/login/"])
def test_everything_else_is_refused_under_a_name_that_is_not_ours(path: str):
    assert Client().get(path, HTTP_HOST="10.0.0.7:8000").status_code == 400


@pytest.mark.parametrize(("names", "call"), CALLS)
def test_the_first_call_goes_to_a_name_that_the_service_answers_to(names: list[str], call: str, settings: Any):
    settings.BASE_URL, settings.ALLOWED_HOSTS = "https://service.example.com", names
    said = io.StringIO()

    call_command("welcome", "http://127.0.0.1:8000", stdout=said)

    assert f"{call}\n" in said.getvalue()

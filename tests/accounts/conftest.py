"""Fixtures: browsers of Sonja and Carl, and a list of the passwords that were checked."""

from typing import Any

import pytest
from django.contrib.auth.hashers import check_password
from django.test import Client

from accounts.authentication import passwords
from accounts.models import User


@pytest.fixture
def as_sonja(sonja: User) -> Client:
    client = Client()
    client.force_login(sonja)
    return client


@pytest.fixture
def as_carl(carl: User) -> Client:
    client = Client()
    client.force_login(carl)
    return client


@pytest.fixture
def checked_passwords(monkeypatch: Any) -> list[str]:
    """A list that collects each password that is compared with a hash."""
    recorded_passwords: list[str] = []

    def record_and_check(password: str, encoded: str) -> bool:
        recorded_passwords.append(password)
        return check_password(password, encoded)

    monkeypatch.setattr(passwords, "check_password", record_and_check)
    return recorded_passwords

"""Browsers of the other users, and a record of the passwords that were checked."""

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
    """The passwords that were compared with a hash."""
    passwords_checked: list[str] = []

    def record_and_check(password: str, encoded: str) -> bool:
        passwords_checked.append(password)
        return check_password(password, encoded)

    monkeypatch.setattr(passwords, "check_password", record_and_check)
    return passwords_checked

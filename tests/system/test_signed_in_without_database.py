"""Requests of a signed-in user while the database is unavailable."""

from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from accounts.models.sessions import SessionStore


@pytest.mark.parametrize("path", ["/", "/account/", "/api/me", "/admin/"])
def test_session_is_read_once_and_the_response_is_503(as_bob: Client, monkeypatch: pytest.MonkeyPatch, path: str):
    session_reads: list[str] = []

    def fail_to_connect(self: Any) -> None:
        session_reads.append(path)
        raise OperationalError("away")

    as_bob.raise_request_exception = False
    monkeypatch.setattr(SessionStore, "_get_session_from_db", fail_to_connect)
    response = as_bob.get(path)

    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert len(session_reads) == 1  # each additional read would wait for a connection again

"""Fixtures of the Table API tests; `world.py` has the functions."""

from types import SimpleNamespace
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from tests.tableapi import world


@pytest.fixture
def notes(db: Any) -> list[str]:
    """Twenty-five records with a name and a rank that everybody may change; a third have no rank."""
    world.table("note")
    world.field("note", "name")
    world.field("note", "rank", "integer")
    world.open_table("note")
    return [world.record("note", name=f"n{number:02}", rank=number % 3 or None) for number in range(25)]


@pytest.fixture
def unavailable_broker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No broker is available; returns the tasks that the product tried to send."""
    sent_tasks: list[str] = []

    def send(task: str, **_: Any) -> None:
        sent_tasks.append(task)
        raise OperationalError("Error 111 connecting: connection refused")

    monkeypatch.setattr("system.background.task_dispatch.current_app", SimpleNamespace(send_task=send))
    return sent_tasks

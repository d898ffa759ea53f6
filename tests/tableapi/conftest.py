"""Fixtures of the Table API tests; `world.py` has the helper functions."""

from types import SimpleNamespace
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from tests.tableapi import world


@pytest.fixture
def note_ids(db: Any) -> list[str]:
    """The ids of 25 records that everybody may read and change; every third has no rank."""
    world.table("note")
    world.field("note", "name")
    world.field("note", "rank", "integer")
    world.open_table("note")
    return [world.record("note", name=f"n{number:02}", rank=number % 3 or None) for number in range(25)]


@pytest.fixture
def unavailable_broker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Makes the broker unavailable; returns the names of the tasks that the product tried to send."""
    sent_tasks: list[str] = []

    def fail_to_send(task: str, **_: Any) -> None:
        sent_tasks.append(task)
        raise OperationalError("Error 111 connecting: connection refused")

    monkeypatch.setattr("system.background.task_dispatch.current_app", SimpleNamespace(send_task=fail_to_send))
    return sent_tasks

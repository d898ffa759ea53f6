"""Fixtures of the Table API tests; `world.py` has the functions."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from tests.tableapi import world as made


@pytest.fixture
def world(db: Any) -> ModuleType:
    return made


@pytest.fixture
def api(db: Any) -> Callable[..., made.Api]:
    return made.api


@pytest.fixture
def notes(db: Any) -> list[str]:
    """Twenty-five records with name and rank that anybody may change; a third has no rank."""
    made.table("note")
    made.field("note", "name")
    made.field("note", "rank", "integer")
    made.open_table("note")
    return [made.record("note", name=f"n{number:02}", rank=number % 3 or None) for number in range(25)]


@pytest.fixture
def unavailable_broker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The broker is away; what the worker would have been woken for."""
    sent_tasks: list[str] = []

    def send(task: str, **_: Any) -> None:
        sent_tasks.append(task)
        raise OperationalError("Error 111 connecting: connection refused")

    monkeypatch.setattr("system.background.task_dispatch.current_app", SimpleNamespace(send_task=send))
    return sent_tasks

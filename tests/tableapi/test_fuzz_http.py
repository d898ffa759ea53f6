"""Requests made from the service's own description, valid and not: none of them is a fault of the service."""

from base64 import b64encode
from functools import partial
from typing import Any

import pytest
import schemathesis
from django.test import Client

from accounts import demo as demo_people
from tableapi import demo
from tests.conftest import PASSWORD, make_user
from tests.fuzzing import count_answers, sent

pytestmark = pytest.mark.django_db

# Catalogue and rules among them: whoever may write those changes what the next request meets.
CALLERS = ("", "demo.user", "demo.agent", "alice")


@pytest.fixture
def people(db: Any) -> None:
    demo_people.make(lambda: PASSWORD)
    demo.make()
    make_user("alice", "admin")


def send(login: str, examples: int) -> dict[int, int]:
    """So many requests of each operation that this caller is told of; how often each status was answered."""
    pair = b64encode(f"{login}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {pair}"} if login else {}
    client = Client(headers=headers)
    schema = schemathesis.openapi.from_dict(client.get("/api/schema").json())
    found: dict[int, int] = {}

    operations: Any = schema.get_all_operations()
    for described in (operation.ok() for operation in operations):
        count_answers(described, examples, partial(sent, client), found)
    return found


@pytest.mark.parametrize("login", CALLERS)
def test_no_request_is_a_fault_of_the_service(login: str, people: None):
    found = send(login, examples=6)

    # It got somewhere: not everything was refused at the door.
    assert found.get(200 if login else 401, 0) > 0 and found.get(400, 0) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("login", CALLERS)
def test_neither_is_any_of_many(login: str, people: None):
    send(login, examples=200)

"""Requests for a table with every column type; each response has the documented form."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from accounts.models import User
from system.records import acting_user
from tests.project.fuzz.requests import LAST_ETAG, TABLE_NAME, Request, RequestGenerator
from tests.support.nightly import scaled_count
from tests.tableapi import world
from tests.tableapi.column_types import EXAMPLE_IDS, EXAMPLES

pytestmark = pytest.mark.django_db

FEW_REQUESTS, MANY_REQUESTS, REQUESTS_PER_TEST = 600, 120_000, 10_000
# After this number of requests, writes are rolled back, and keys and ETags are forgotten.
CONVERSATION_LENGTH = 25
# The requests must reach all of these statuses, otherwise the test would prove little.
EXPECTED_STATUSES = {200, 201, 304, 400, 401, 403, 404, 405, 409, 412}
USUAL_STATUSES = {200, 201, 304, 400, 401, 404}


@dataclass
class Conversation:
    """Sends requests as random callers, with the ETags of earlier responses."""

    clients: list[Client]
    etags: dict[str, str] = field(default_factory=dict)

    def send(self, random: Random, request: Request) -> Any:
        client = random.choice(self.clients)
        client.cookies.clear()
        etag = self.etags.get(request.path, '"0-0"')
        headers = {name: etag if value == LAST_ETAG else value for name, value in request.headers.items()}
        response = client.generic(
            request.method, request.url, request.body, content_type=headers.pop("Content-Type", ""), headers=headers
        )
        acting_user.set_current(None)
        if "ETag" in response.headers:
            self.etags[request.path] = response.headers["ETag"]
        return response


@pytest.fixture
def clients(alice: User, bob: User) -> list[Client]:
    """Clients of five callers; the table is open except for one column and one condition."""
    world.table(TABLE_NAME)
    for name in EXAMPLES:
        is_reference = name in ("reference", "list")
        choice_labels = {"1": "New", "2": "Done"} if name == "choice" else None
        world.field(TABLE_NAME, name, name, target=TABLE_NAME if is_reference else None, choices=choice_labels)
    for operation in ("read", "create", "write", "delete"):
        world.rule(operation, TABLE_NAME)
    world.rule("read", TABLE_NAME, "decimal", roles=["auditor"])
    world.rule("write", TABLE_NAME, "integer", condition="boolean!=true")
    world.view(TABLE_NAME, "short", "string", "reference.string")
    for sys_id in EXAMPLE_IDS:
        world.record(TABLE_NAME, sys_id=sys_id, string="a", boolean=True)
    carol = User.objects.create_user("carol")
    world.grant(carol, "auditor")
    callers = [world.api(user, credential="key") for user in (alice, bob, bob, carol)] + [world.api(None)]
    return [Client(headers=caller.headers) for caller in callers]


def find_violation(request: Request, response: Any) -> str:
    """Describes what is wrong with a response; empty if nothing is."""
    status = response.status_code
    if status >= 500:
        return "a server error"
    if not request.path.startswith(f"/rest/v1/table/{TABLE_NAME}"):
        return ""
    if request.method in ("HEAD", "OPTIONS") or status == 304:
        return "" if request.method == "OPTIONS" or not response.content else "a body"
    if not response["Content-Type"].startswith("application/json"):
        return "no JSON"
    body = response.json()
    if status < 300:
        data_type = dict if request.method == "DELETE" else list
        return "" if body["status"] == "OK" and isinstance(body["data"], data_type) else "another form of success"
    is_error = body["status"] == "ERROR" and all(error["code"] and error["message"] for error in body["errors"])
    return "" if is_error and body["errors"] else "another form of error"


def send_many(clients: list[Client], first_seed: int, count: int) -> Counter[int]:
    status_counts: Counter[int] = Counter()
    for seed in range(first_seed, first_seed + count, CONVERSATION_LENGTH):
        random = Random(seed)
        conversation, generator = Conversation(clients), RequestGenerator(random, [*EXAMPLE_IDS])
        request: Request | None = None
        with transaction.atomic():
            for _ in range(CONVERSATION_LENGTH):
                if request is None or random.random() > 0.1:  # else repeat the request
                    request = generator.random_request()
                response = conversation.send(random, request)
                assert not (fault := find_violation(request, response)), (seed, fault, request, response.content)
                status_counts[response.status_code] += 1
                if request.method == "POST" and response.status_code == 201:
                    generator.ids.extend(record["sys_id"] for record in response.json()["data"] if "sys_id" in record)
            transaction.set_rollback(True)
    return status_counts


def test_every_response_is_well_formed(clients: list[Client]):
    assert send_many(clients, 0, FEW_REQUESTS).keys() >= USUAL_STATUSES


@pytest.mark.nightly
@pytest.mark.parametrize(
    "first_seed", range(FEW_REQUESTS, FEW_REQUESTS + scaled_count(MANY_REQUESTS), REQUESTS_PER_TEST)
)
def test_every_response_to_many_requests_is_well_formed(clients: list[Client], first_seed: int):
    assert send_many(clients, first_seed, REQUESTS_PER_TEST).keys() >= EXPECTED_STATUSES

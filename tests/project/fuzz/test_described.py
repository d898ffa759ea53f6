"""Requests generated from the service's own description, valid and invalid: none causes a server error."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
import schemathesis
from django.test import Client

from accounts import demo as demo_people
from tableapi.setup import demo_records
from tests.project.access import callers, world
from tests.support.fuzzing import count_statuses, send_case
from tests.support.nightly import share_of
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db

# Catalogue and rules are among what the last may write: that changes what the next request meets.
CALLER_NAMES = ("nobody", "gone", "person", "itil", "monitor", "sso", "coll", "narrow", "admin")
FEW_EXAMPLES, MANY_EXAMPLES = 6, 150


@dataclass
class DescribedService:
    """Somebody who asks, and what is there to be asked for, by the address with its names in braces."""

    caller: callers.MatrixCaller
    known_paths: dict[str, str]
    turns: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.client = Client(headers=self.caller.headers)
        response = Client(headers={} if self.caller.name == "gone" else self.caller.headers).get("/api/schema")
        self.schema = schemathesis.openapi.from_dict(response.json())

    def send(self, case: Any) -> Any:
        """Every second time with ids that lead somewhere: made-up ones never get past the door."""
        known_path = self.known_paths.get(case.path) if next(self.turns) % 2 else None
        return send_case(self.client, case, known_path)

    def send_all(self, examples: int) -> dict[int, int]:
        """So many requests of each operation that this caller is told of; how often each status was answered."""
        result: dict[int, int] = {}
        operations: Any = self.schema.get_all_operations()
        for operation in (result.ok() for result in operations):
            count_statuses(operation, examples, self.send, result)
        return result


def known_paths(ids: dict[str, str], admin: Client) -> dict[str, str]:
    """The address of something that is there, for each that has ids in it."""
    result = {}
    for path in admin.get("/api/schema").json()["paths"]:
        if "{tableName}" in path:
            result[path] = path.format(tableName="task", sys_id=ids["task"])
        elif path.startswith("/rest/v1/table/") and path.endswith("/{sys_id}"):
            list_path = path.removesuffix("/{sys_id}")
            records = admin.get(f"{list_path}?sysparm_fields=sys_id&sysparm_limit=1").json()["data"]
            if records:
                result[path] = f"{list_path}/{records[0]['sys_id']}"
        elif "{" in path:
            result[path] = path.format(sys_id=ids["collection"], document=ids["document"])
    return result


@pytest.fixture(params=CALLER_NAMES)
def described_service(request: pytest.FixtureRequest, db: None) -> DescribedService:
    demo_people.create_demo_users(lambda: PASSWORD)
    demo_records.create_demo_records()
    ids, all_callers = world.make_world(), {caller.name: caller for caller in callers.all_callers()}
    return DescribedService(all_callers[request.param], known_paths(ids, Client(headers=all_callers["admin"].headers)))


def test_no_request_causes_a_server_error(described_service: DescribedService):
    result = described_service.send_all(FEW_EXAMPLES)

    # It got somewhere: not everything was refused at the door.
    let_in = described_service.caller.name not in ("nobody", "gone")
    assert result.get(200 if let_in else 401, 0) > 0 and (result.get(400, 0) > 0 or not let_in)


@pytest.mark.nightly
def test_no_request_of_many_causes_a_server_error(described_service: DescribedService):
    """Of all callers together, more than 50,000."""
    described_service.send_all(share_of(MANY_EXAMPLES))

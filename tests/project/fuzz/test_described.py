"""Valid and invalid requests generated from the API description cause no server error."""

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
from tests.support.nightly import scaled_count
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db

# The administrator can change the catalogue and its rules, which changes the result of the next requests.
CALLER_NAMES = ("nobody", "gone", "person", "itil", "monitor", "sso", "coll", "narrow", "admin")
FEW_EXAMPLES, MANY_EXAMPLES = 4, 150


@dataclass
class CallerFuzzer:
    """Sends generated requests as one caller. `known_paths` has the path of an existing object by path template."""

    caller: callers.MatrixCaller
    known_paths: dict[str, str]
    request_numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.client = Client(headers=self.caller.headers)
        response = Client(headers={} if self.caller.name == "gone" else self.caller.headers).get("/api/schema")
        self.schema = schemathesis.openapi.from_dict(response.json())

    def send(self, case: Any) -> Any:
        """Uses ids of existing objects for every second request, because generated ids only lead to a 404."""
        known_path = self.known_paths.get(case.path) if next(self.request_numbers) % 2 else None
        return send_case(self.client, case, known_path)

    def send_all(self, example_count: int) -> dict[int, int]:
        """Sends requests for each operation that this caller can see; returns how often each status occurred."""
        status_counts: dict[int, int] = {}
        operation_results: Any = self.schema.get_all_operations()
        for operation in (operation_result.ok() for operation_result in operation_results):
            count_statuses(operation, example_count, self.send, status_counts)
        return status_counts


def find_known_paths(ids: dict[str, str], admin: Client) -> dict[str, str]:
    """The path of an existing object for each path template with ids."""
    paths = {}
    for template in admin.get("/api/schema").json()["paths"]:
        if "{tableName}" in template:
            paths[template] = template.format(tableName="task", sys_id=ids["task"], entry="0" * 18)
        elif template.startswith("/rest/v1/table/") and template.endswith("/{sys_id}"):
            list_path = template.removesuffix("/{sys_id}")
            records = admin.get(f"{list_path}?sysparm_fields=sys_id&sysparm_limit=1").json()["data"]
            if records:
                paths[template] = f"{list_path}/{records[0]['sys_id']}"
        elif "{" in template:
            paths[template] = template.format(sys_id=ids["collection"], entry="0" * 18, **ids)
    return paths


@pytest.fixture(params=CALLER_NAMES)
def caller_fuzzer(request: pytest.FixtureRequest, db: None) -> CallerFuzzer:
    demo_people.create_demo_users(lambda: PASSWORD)
    demo_records.create_demo_records()
    ids, callers_by_name = world.create_example_objects(), {caller.name: caller for caller in callers.create_callers()}
    return CallerFuzzer(
        callers_by_name[request.param], find_known_paths(ids, Client(headers=callers_by_name["admin"].headers))
    )


def test_no_request_causes_a_server_error(caller_fuzzer: CallerFuzzer):
    status_counts = caller_fuzzer.send_all(FEW_EXAMPLES)

    # Some requests got past the first checks.
    is_authenticated = caller_fuzzer.caller.name not in ("nobody", "gone")
    assert status_counts.get(200 if is_authenticated else 401, 0) > 0
    assert status_counts.get(400, 0) > 0 or not is_authenticated


@pytest.mark.nightly
def test_none_of_many_requests_causes_a_server_error(caller_fuzzer: CallerFuzzer):
    """Sends more than 50,000 requests of all callers in total."""
    caller_fuzzer.send_all(scaled_count(MANY_EXAMPLES))

"""The measured requests: the same work through the Table API and through DRF."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from bench.tableapi.load import COUNTER_PLACEHOLDER

TASKS_PATH = "/rest/v1/table/task"
BATCH_PATH, BULK_PATH = "/rest/v1/batch", "/rest/v1/bulk/task"
BATCH_SIZE, BULK_SIZE = 100, 1_000
SERVICENOW_PATH = "/api/now/table/task"
VIEWSET_PATH = "/rest/bench/task/"

FIELDS = "number,short_description,assigned_user.login,assignment_group.name,caller.first_name"
NEWEST_FIRST = "^ORDERBYDESCopened_at"
# Filters that match 2 % and 8 % of the tasks, which a scan of the sort index finds at different speeds.
FILTERS = ("active=true^priorityIN1,2", "active=true^priority=2", "active=true^stateIN1,3")
DRF_FILTERS = ("active=true&priority__in=1,2", "active=true&priority=2", "active=true&state__in=1,3")

USER_ID, GROUP_ID, SERVICE_ID = "160000000000000042", "160000000100000042", "160000000200000042"
# `opened_at` is in the past, because new tasks would come first in the lists and change what the reads measure.
CREATE_BODY = (
    f'{{"short_description":"Made @","description":"{"A printer that prints no more. " * 6}","priority":"3",'
    '"opened_at":"2020-02-02 02:02:02",'
    f'"caller":"{USER_ID}","assignment_group":"{GROUP_ID}","service":"{SERVICE_ID}"}}'
).replace("@", COUNTER_PLACEHOLDER.decode())
PATCH_BODY = '{"state":"2","short_description":"Changed @"}'.replace("@", COUNTER_PLACEHOLDER.decode())
# The values that are read after a write whose counter is "first".
EXPECTED_VALUES = {
    "W1": {"short_description": "Made first", "priority": "3", "opened_at": "2020-02-02 02:02:02"},
    "W2": {"short_description": "Changed first", "state": "2"},
}


@dataclass(frozen=True)
class Case:
    """One kind of request, sent to the paths in turn."""

    name: str
    description: str
    paths: tuple[str, ...]
    method: str = "GET"
    body: str = ""
    status: int = 200
    # The number of single requests that it replaces.
    size: int = 1

    def requests(self, port: int, key: str) -> list[bytes]:
        body = self.body.encode()
        content_headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        headers = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n{content_headers}".encode()
        return [f"{self.method} {path} HTTP/1.1\r\n".encode() + headers + b"\r\n" + body for path in self.paths]


def list_path(**parameters: str) -> str:
    return TASKS_PATH + "?" + "&".join(f"sysparm_{name}={quote(value)}" for name, value in parameters.items())


def table_api_cases(task_ids: Sequence[str]) -> list[Case]:
    """The cases through the Table API."""
    record_paths = tuple(f"{TASKS_PATH}/{task_id}" for task_id in task_ids)
    queries = [query + NEWEST_FIRST for query in FILTERS]
    return [
        Case("R1", "one record", record_paths),
        Case("R2", "list of 20, all columns", tuple(list_path(query=query) for query in queries)),
        Case("R3", "list of 20, 3 of 5 dot-walked", tuple(list_path(query=query, fields=FIELDS) for query in queries)),
        Case("R4", "list of 1,000", (list_path(limit="1000"),)),
        Case("W1", "create", (TASKS_PATH,), "POST", CREATE_BODY, 201),
        Case("W2", "patch", record_paths, "PATCH", PATCH_BODY),
    ]


def combined_cases(task_ids: Sequence[str]) -> list[Case]:
    """Requests that combine many: 100 reads, 1,000 creations."""
    reads = [{"method": "GET", "url": f"{TASKS_PATH}/{task_id}"} for task_id in task_ids[:BATCH_SIZE]]
    bodies = ",".join([CREATE_BODY] * BULK_SIZE)
    return [
        Case("R1", "in a batch of 100", (BATCH_PATH,), "POST", json.dumps({"requests": reads}), size=BATCH_SIZE),
        Case("W1", "in bulk of 1,000", (BULK_PATH,), "POST", f"[{bodies}]", 201, size=BULK_SIZE),
    ]


def servicenow_cases(task_ids: Sequence[str]) -> list[tuple[Case, Case]]:
    """Lists and records in the dialect of ServiceNow, each with the same request of the Table API."""
    queries = [query + NEWEST_FIRST for query in FILTERS]

    def case(name: str, description: str, start: str, **parameters: str) -> Case:
        paths = [list_path(query=query, limit="20", **parameters) for query in queries]
        return Case(name, description, tuple(path.replace(TASKS_PATH, start) for path in paths))

    return [
        (
            case("N1", "list of 20, no count", SERVICENOW_PATH, no_count="true"),
            case("N1", "list of 20, no count", TASKS_PATH),
        ),
        (case("N2", "list of 20, count", SERVICENOW_PATH), case("N2", "list of 20, count", TASKS_PATH, count="exact")),
        (
            Case("N3", "one record", tuple(f"{SERVICENOW_PATH}/{task_id}" for task_id in task_ids)),
            Case("N3", "one record", tuple(f"{TASKS_PATH}/{task_id}" for task_id in task_ids)),
        ),
    ]


def floor_case() -> Case:
    return Case("S1", "SELECT 1, bare WSGI", ("/",))


def drf_cases(task_ids: Sequence[str]) -> list[Case]:
    """The same cases through DRF."""
    list_paths = tuple(f"{VIEWSET_PATH}?{query}&ordering=-opened_at" for query in DRF_FILTERS)
    record_paths = tuple(f"{VIEWSET_PATH}{task_id}/" for task_id in task_ids)
    return [
        Case("R1", "one record", record_paths),
        Case("R2", "list of 20, all columns", list_paths),
        Case("R3", "list of 20, 3 of 5 dot-walked", tuple(f"{path}&short=1" for path in list_paths)),
        Case("R4", "list of 1,000", (f"{VIEWSET_PATH}?limit=1000",)),
        Case("W1", "create", (VIEWSET_PATH,), "POST", CREATE_BODY, 201),
        Case("W2", "patch", record_paths, "PATCH", PATCH_BODY),
    ]

"""The measured requests, as a table; the same work through the Table API and through DRF."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from bench.tableapi.load import COUNTER

TABLE = "/rest/v1/table/task"
VIEWSET = "/rest/bench/task/"

FIELDS = "number,short_description,assigned_user.login,assignment_group.name,caller.first_name"
NEWEST = "^ORDERBYDESCopened_at"
# 2 % and 8 % of the tasks, which the index of the sorting finds at different pace.
FILTERS = ("active=true^priorityIN1,2", "active=true^priority=2", "active=true^stateIN1,3")
DRF_FILTERS = ("active=true&priority__in=1,2", "active=true&priority=2", "active=true&state__in=1,3")

USER, GROUP, SERVICE = "160000000000000042", "160000000100000042", "160000000200000042"
# Made in the past: new tasks without a time would come first in the lists, which the reads would have to step over.
CREATE = (
    f'{{"short_description":"Made @","description":"{"A printer that prints no more. " * 6}","priority":"3",'
    '"opened_at":"2020-02-02 02:02:02",'
    f'"caller":"{USER}","assignment_group":"{GROUP}","service":"{SERVICE}"}}'
).replace("@", COUNTER.decode())
PATCH = '{"state":"2","short_description":"Changed @"}'.replace("@", COUNTER.decode())
# What is read after a write whose counter is "first".
CHECKED = {
    "W1": {"short_description": "Made first", "priority": "3", "opened_at": "2020-02-02 02:02:02"},
    "W2": {"short_description": "Changed first", "state": "2"},
}


@dataclass(frozen=True)
class Case:
    """One kind of request; `paths` are asked in turn."""

    name: str
    what: str
    paths: tuple[str, ...]
    method: str = "GET"
    body: str = ""
    status: int = 200

    def requests(self, port: int, key: str) -> list[bytes]:
        body = self.body.encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        rest = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n{kind}\r\n".encode() + body
        return [f"{self.method} {path} ".encode() + rest for path in self.paths]


def listed(**params: str) -> str:
    return TABLE + "?" + "&".join(f"sysparm_{name}={quote(value)}" for name, value in params.items())


def requests(tasks: Sequence[str]) -> list[Case]:
    """Through the Table API."""
    records = tuple(f"{TABLE}/{task}" for task in tasks)
    return [
        Case("R1", "one record", records),
        Case("R2", "list of 20, all columns", tuple(listed(query=task + NEWEST) for task in FILTERS)),
        Case("R3", "list of 20, 3 of 5 walked", tuple(listed(query=f + NEWEST, fields=FIELDS) for f in FILTERS)),
        Case("R4", "list of 1,000", (listed(limit="1000"),)),
        Case("W1", "create", (TABLE,), "POST", CREATE, 201),
        Case("W2", "patch", records, "PATCH", PATCH),
    ]


def floor() -> Case:
    return Case("S1", "SELECT 1, bare WSGI", ("/",))


def idiomatic(tasks: Sequence[str]) -> list[Case]:
    """The same through DRF."""
    result = tuple(f"{VIEWSET}?{filter}&ordering=-opened_at" for filter in DRF_FILTERS)
    records = tuple(f"{VIEWSET}{sys_id}/" for sys_id in tasks)
    return [
        Case("R1", "one record", records),
        Case("R2", "list of 20, all columns", result),
        Case("R3", "list of 20, 3 of 5 walked", tuple(f"{filter}&short=1" for filter in result)),
        Case("R4", "list of 1,000", (f"{VIEWSET}?limit=1000",)),
        Case("W1", "create", (VIEWSET,), "POST", CREATE, 201),
        Case("W2", "patch", records, "PATCH", PATCH),
    ]

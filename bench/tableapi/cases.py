"""The requests that are measured, as a table; the same work through our address and through DRF's."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from bench.tableapi.load import COUNTER

OURS, DRF, LEAST, LOOP = "ours", "DRF", "SELECT 1", "SQL loop"
TABLE = "/rest/v1/table/task"
VIEWSET = "/rest/bench/task/"

FIELDS = "number,short_description,assigned_user.login,assignment_group.name,caller.first_name"
NEWEST = "^ORDERBYDESCopened_at"
# 2 % and 8 % of the tasks, which the index of the sorting finds at different pace.
FILTERS = ("active=true^priorityIN1,2", "active=true^priority=2", "active=true^stateIN1,3")
DRF_FILTERS = ("active=true&priority__in=1,2", "active=true&priority=2", "active=true&state__in=1,3")
DEEP_PAGE = 5_000

USER, GROUP, SERVICE = "160000000000000042", "160000000100000042", "160000000200000042"
# Made in the past: new tasks without a time would come first in the lists, which the reads would have to step over.
CREATE = (
    f'{{"short_description":"Made @","description":"{"A printer that prints no more. " * 6}","priority":"3",'
    '"opened_at":"2020-02-02 02:02:02",'
    f'"caller":"{USER}","assignment_group":"{GROUP}","service":"{SERVICE}"}}'
).replace("@", COUNTER.decode())
PATCH = '{"state":"2","short_description":"Changed @"}'.replace("@", COUNTER.decode())


@dataclass(frozen=True)
class Case:
    """One kind of request; `paths` are asked in turn."""

    name: str
    way: str
    what: str
    paths: Sequence[str]
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


def reads(tasks: Sequence[str]) -> list[Case]:
    """R1 to R4, ours."""
    return [
        Case("R1", OURS, "one record", [f"{TABLE}/{each}" for each in tasks]),
        Case("R2", OURS, "list of 20, all columns", [listed(query=each + NEWEST) for each in FILTERS]),
        Case("R3", OURS, "list of 20, 5 fields, 3 walked", [listed(query=f + NEWEST, fields=FIELDS) for f in FILTERS]),
        Case("R4", OURS, "list of 1,000", [listed(limit="1000")]),
    ]


def absent(hidden: Sequence[str]) -> list[Case]:
    """What the caller may not read, and what is not there: neither may take longer than the other."""
    missing = [f"{TABLE}/{each[:-1]}z" for each in hidden]
    return [
        Case("H1", OURS, "a record that is hidden", [f"{TABLE}/{each}" for each in hidden], status=404),
        Case("H2", OURS, "a record that is not there", missing, status=404),
    ]


def writes(tasks: Sequence[str]) -> list[Case]:
    """W1 and W2, ours."""
    return [
        Case("W1", OURS, "create", [TABLE], "POST", CREATE, 201),
        Case("W2", OURS, "patch", [f"{TABLE}/{each}" for each in tasks], "PATCH", PATCH),
    ]


def pages(cursor_path: str) -> list[Case]:
    """The first page, page 5,000 by number, and the one after it by cursor."""
    return [
        Case("P0", OURS, "first page", [listed(query=NEWEST[1:])]),
        Case("Pn", OURS, f"page {DEEP_PAGE:,} by number", [deep_page()]),
        Case("Pc", OURS, f"page {DEEP_PAGE + 1:,} by cursor", [cursor_path]),
    ]


def deep_page() -> str:
    return listed(query=NEWEST[1:], page=str(DEEP_PAGE))


def least() -> Case:
    return Case("S1", LEAST, "SELECT 1, authenticated", ["/rest/bench/one"])


def idiomatic(tasks: Sequence[str]) -> list[Case]:
    """The same through DRF."""
    found = [f"{VIEWSET}?{each}&ordering=-opened_at" for each in DRF_FILTERS]
    each_task = [f"{VIEWSET}{sys_id}/" for sys_id in tasks]
    return [
        Case("R1", DRF, "one record", each_task),
        Case("R2", DRF, "list of 20, all columns", found),
        Case("R3", DRF, "list of 20, 5 fields, 3 walked", [f"{each}&short=1" for each in found]),
        Case("R4", DRF, "list of 1,000", [f"{VIEWSET}?limit=1000"]),
        Case("W1", DRF, "create", [VIEWSET], "POST", CREATE, 201),
        Case("W2", DRF, "patch", each_task, "PATCH", PATCH),
    ]

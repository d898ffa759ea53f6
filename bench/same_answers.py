"""`./run bench same_answers COMMIT`: whether 500 requests of programs get the same answers as from an earlier commit.

Compared are status, headers, body, log line and metrics. Ids, times and ports differ between two installations, so they
are replaced; with --no-messages, so are the texts of errors.
"""

import argparse
import http.client
import json
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product as combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.tableapi.product import Product, check_out
from bench.tableapi.run import running
from config.env import ROOT

ROWS = 500
TABLE = "/rest/v1/table/task"
IGNORED_HEADERS = {"date", "x-request-id", "server"}
VOLATILE = [
    (re.compile(rb"\b[0-9]{18}\b"), b"ID"),
    (re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}"), b"TIME"),
    (re.compile(rb"127\.0\.0\.1:[0-9]+"), b"HOST"),
    (re.compile(rb"SVC[0-9]{7}|TASK[0-9]{7}"), b"NUMBER"),
    (re.compile(rb"sysparm_cursor=[^>&\"]+"), b"sysparm_cursor=CURSOR"),
    (re.compile(rb'"[0-9]+-[0-9a-f]{16}"'), b'"ETAG"'),
]
COUNTED = re.compile(r"^(django_http_responses_total_by_status_view_method_total\{[^}]+\}) ([0-9.]+)$", re.M)


@dataclass(frozen=True)
class RecordedRequest:
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    has_key: bool = True


def read_requests(tasks: list[str]) -> list[RecordedRequest]:
    queries = [
        "",
        "priority=1",
        "priority=1^ORpriority=2",
        "short_descriptionLIKEtask",
        "short_descriptionSTARTSWITHa",
        "ORDERBYpriority^ORDERBYDESCnumber",
        "stateIN1,2,3",
        "assigned_userISEMPTY",
        "callerISNOTEMPTY",
        "active=true",
        "caller.nameLIKEa",
        "opened_at>2020-01-01",
        "sys_idAREtask",
        "nothere=1",
        "priority",
        "priority=1^^",
        "(priority=1",
        "prioritySAMEASurgency",
        "opened_atRELATIVEGT@day@ago@3000",
        "caller.first_name=Ada^NQstate=2",
    ]
    options = [
        "",
        "&sysparm_fields=number,caller.name",
        "&sysparm_display_value=true",
        "&sysparm_display_value=all",
        "&sysparm_page=2",
        "&sysparm_count=exact",
        "&sysparm_fields=none",
        "&sysparm_view=Default",
        "&sysparm_exclude_reference_link=true",
        "&sysparm_limit=x",
    ]
    lists = [
        RecordedRequest("GET", f"{TABLE}?sysparm_limit=5&sysparm_query={quote(query)}{more}")
        for query, more in combinations(queries, options)
    ]
    ones = [
        RecordedRequest(method, f"{TABLE}/{task}{more}")
        for task in tasks[:20]
        for method in ("GET", "HEAD")
        for more in ("", "/", "?sysparm_fields=number,state", "?sysparm_display_value=all", "?sysparm_nothing=1")
    ]
    return lists + ones


def write_requests(tasks: list[str]) -> list[RecordedRequest]:
    bodies = [
        {"short_description": "New"},
        {"short_description": "New", "priority": "2"},
        {"priority": "99"},
        {"none": 1},
        {},
        {"sys_version": 1},
        {"number": "X"},
        {"caller": "0" * 18},
        {"opened_at": "2020-02-02 02:02:02"},
        {"opened_at": "x"},
        {"active": "maybe"},
        {"followers_list": []},
        {"description": "x" * 5000},
        {"short_description": None},
        [],
        "text",
    ]
    texts = [json.dumps(body).encode() for body in bodies] + [
        b"",
        b"{",
        b'{"a": 1, "a": 2}',
        b"\xff",
        b'{"priority": NaN}',
    ]
    kind = {"Content-Type": "application/json"}
    result = [RecordedRequest("POST", TABLE, text, kind) for text in texts]
    for number, text in enumerate(texts):
        result += [RecordedRequest(method, f"{TABLE}/{tasks[20 + number]}", text, kind) for method in ("PATCH", "PUT")]
    result += [
        RecordedRequest("PATCH", f"{TABLE}/{tasks[50]}", texts[0], kind | {"If-Match": tag})
        for tag in ("*", '"0-0"', "x")
    ]
    result += [
        RecordedRequest("POST", TABLE, texts[0], kind | {"Idempotency-Key": key})
        for key in ("a", "a", "b", "ü", "x" * 300)
    ]
    result += [RecordedRequest("DELETE", f"{TABLE}/{task}") for task in (tasks[51], tasks[51], "x", "0" * 18)]
    return result


CREDENTIALS: list[dict[str, str]] = [
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer sb_wrong"},
    {"Authorization": "Basic bm9ib2R5Ondyb25n"},
    {"Authorization": "Basic !"},
    {"Authorization": "Digest x"},
    {"Authorization": "Bearer " + "x" * 5000},
    {"Authorization": "bearer \u00fc"},
]
HEADERS = [
    {"Accept": "text/html"},
    {"Accept": "text/html", "Cookie": "servicebase_session=x"},
    {"Host": "evil.example"},
    {"X-Forwarded-For": "1.2.3.4"},
    {"X-Forwarded-Proto": "https"},
    {"X-Request-ID": "my-id"},
    {"X-Request-ID": "a b"},
    {"If-None-Match": "*"},
    {"If-None-Match": '"x"'},
    {"Content-Encoding": "gzip"},
    {"Content-Length": "-1"},
    {"Transfer-Encoding": "gzip"},
    {"Origin": "https://evil.example"},
    {"X-HTTP-Method-Override": "DELETE"},
]
PATHS = [
    "/rest/",
    "/rest/v1/table",
    "/rest/v1/table/",
    "/rest/v1/table/none",
    "/rest/v1/table/none/1",
    "/rest/v1/table/task%00",
    "/rest/v1/table/t%C3%BCr",
    "/rest/v1/table/task/%2e%2e",
    "/rest//v1/table/task",
    "/rest/v2/x",
    "/rest/v1/table/TASK",
    "/rest/v1/table/user",
    "/rest/v1/table/sys_acl",
    "/get_list_of_collection",
    "/get_list_of_documents_names",
    "/get_list_of_documents_names?collection_name=none",
    "/get_relevant_documents?query=x&collection_names=none",
    "/get_relevant_documents?query=x&k=0",
    "/get_content_by_tag",
    "/load_text_to_collection",
    "/load_document_to_collection",
    "/delete_collection",
    "/delete_document_from_collection",
    f"{TABLE}?sysparm_query=" + "x" * 20_000,
    f"{TABLE}?a=%FF",
    f"{TABLE}?sysparm_query=%00",
]
BODY_TYPES = ["text/plain", "application/json; charset=latin-1", "application/x-www-form-urlencoded", "", "a/b;1*"]


def odd_requests(tasks: list[str]) -> list[RecordedRequest]:
    one, body = f"{TABLE}/{tasks[0]}", b'{"short_description": "x"}'
    paths = [*PATHS, f"{one}/x", f"{one}//"]
    return [
        *(RecordedRequest("GET", one, headers=headers, has_key=False) for headers in CREDENTIALS),
        *(RecordedRequest("GET", one, headers=headers) for headers in HEADERS),
        *(RecordedRequest(method, path) for path in paths for method in ("GET", "POST", "DELETE", "OPTIONS")),
        *(RecordedRequest(method, one) for method in ("POST", "TRACE", "PROPFIND", "OPTIONS")),
        *(RecordedRequest("POST", TABLE, body, {"Content-Type": body_type}) for body_type in BODY_TYPES),
    ]


MESSAGE = re.compile(rb'"message": "(?:[^"\\]|\\.)*"')


def without_volatile_parts(text: bytes) -> bytes:
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return text


def send(
    product: Product, request: RecordedRequest, *, with_messages: bool = True
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=60)
    headers = dict(request.headers)
    if request.has_key:
        headers["Authorization"] = f"Bearer {product.key}"
    encoded = {name: value.encode("utf-8") for name, value in headers.items()}
    connection.request(request.method, request.path, request.body or None, encoded)
    answer = connection.getresponse()
    body = without_volatile_parts(answer.read())
    ignored = IGNORED_HEADERS
    if answer.status >= 400 and not with_messages:
        body, ignored = MESSAGE.sub(b"MESSAGE", body), ignored | {"content-length"}
    shown = sorted(
        (name.lower(), without_volatile_parts(value.encode("latin-1")).decode("latin-1"))
        for name, value in answer.getheaders()
        if name.lower() not in ignored
    )
    connection.close()
    return answer.status, shown, body


def log_lines(product: Product, since: int) -> list[tuple[Any, ...]]:
    lines = []
    for line in product.log.read_bytes()[since:].decode(errors="replace").splitlines():
        try:
            entry = json.loads(line[line.index("{") :])
        except ValueError:
            continue
        if entry.get("event") in ("request_finished", "request_failed"):
            request = without_volatile_parts(str(entry.get("request")).encode()).decode()
            lines.append(
                (entry["event"], entry.get("level"), entry.get("code"), request, entry.get("user_id") is not None)
            )
    return lines


def counts(product: Product) -> Counter[str]:
    product.manage("grant", "demo.agent", "monitoring")
    _, _, body = send(product, RecordedRequest("GET", "/metrics"))
    return Counter({name: float(value) for name, value in COUNTED.findall(body.decode()) if '"metrics' not in name})


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="./run bench same_answers", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--no-messages", action="store_true", help="the texts of errors may differ")
    arguments = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as scratch:
        root = Path(scratch)
        name = check_out(arguments.commit, root / "code")
        present = Product("present", ROOT, root / "present")
        earlier = Product(name, root / "code", root / "earlier")
        with running(present, earlier):
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda product: product.fill(ROWS), (present, earlier)))
            sys.exit(compare(present, earlier, with_messages=not arguments.no_messages))


def compare(present: Product, earlier: Product, *, with_messages: bool) -> int:
    requests = read_requests(present.tasks) + write_requests(present.tasks) + odd_requests(present.tasks)
    begins = {product.name: len(product.log.read_bytes()) for product in (present, earlier)}
    differences = 0
    for request in requests:
        one, other = (send(product, request, with_messages=with_messages) for product in (present, earlier))
        if one != other:
            differences += 1
            print(f"{request.method} {request.path[:120]} {request.headers} {request.body[:80]!r}")
            for now, before in zip(one, other, strict=True):
                if isinstance(now, list) and isinstance(before, list):
                    now, before = sorted(set(now) - set(before)), sorted(set(before) - set(now))
                if now != before:
                    print(f"  now    {now!s:.400}\n  before {before!s:.400}")
    time.sleep(2)  # until the last lines are in the log
    lines = [log_lines(product, begins[product.name]) for product in (present, earlier)]
    for now, before in zip(*lines, strict=False):
        if now != before:
            differences += 1
            print(f"log now {now}\n    before {before}")
    now_counts, before_counts = counts(present), counts(earlier)
    if now_counts != before_counts:
        differences += 1
        print(f"metrics: {sorted(now_counts.items() ^ before_counts.items())}")
    print(f"{len(requests)} requests, {len(lines[0])} and {len(lines[1])} log lines, {differences} differences")
    return min(differences, 1)

"""`./run bench same_responses COMMIT`: compares the responses to API requests with those of an earlier commit.

It compares status, headers, body, log lines and metrics. Ids, times and ports differ between two installations, so they
are masked; with --no-messages, error messages are masked too.
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
from bench.tableapi.run import running_products
from config.env import ROOT

ROW_COUNT = 500
TASKS_PATH = "/rest/v1/table/task"
IGNORED_HEADERS = {"date", "x-request-id", "server"}
VOLATILE_PATTERNS = [
    (re.compile(rb"\b[0-9]{18}\b"), b"ID"),
    (re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}"), b"TIME"),
    (re.compile(rb"127\.0\.0\.1:[0-9]+"), b"HOST"),
    (re.compile(rb"SVC[0-9]{7}|TASK[0-9]{7}"), b"NUMBER"),
    (re.compile(rb"sysparm_cursor=[^>&\"]+"), b"sysparm_cursor=CURSOR"),
    (re.compile(rb'"[0-9]+-[0-9a-f]{16}"'), b'"ETAG"'),
]
RESPONSE_COUNTER = re.compile(r"^(django_http_responses_total_by_status_view_method_total\{[^}]+\}) ([0-9.]+)$", re.M)


@dataclass(frozen=True)
class SampleRequest:
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    has_key: bool = True


def build_read_requests(task_ids: list[str]) -> list[SampleRequest]:
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
    query_suffixes = [
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
    list_requests = [
        SampleRequest("GET", f"{TASKS_PATH}?sysparm_limit=5&sysparm_query={quote(query)}{suffix}")
        for query, suffix in combinations(queries, query_suffixes)
    ]
    record_requests = [
        SampleRequest(method, f"{TASKS_PATH}/{task_id}{suffix}")
        for task_id in task_ids[:20]
        for method in ("GET", "HEAD")
        for suffix in ("", "/", "?sysparm_fields=number,state", "?sysparm_display_value=all", "?sysparm_nothing=1")
    ]
    return list_requests + record_requests


def build_write_requests(task_ids: list[str]) -> list[SampleRequest]:
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
    encoded_bodies = [json.dumps(body).encode() for body in bodies] + [
        b"",
        b"{",
        b'{"a": 1, "a": 2}',
        b"\xff",
        b'{"priority": NaN}',
    ]
    headers = {"Content-Type": "application/json"}
    requests = [SampleRequest("POST", TASKS_PATH, body, headers) for body in encoded_bodies]
    for number, body in enumerate(encoded_bodies):
        path = f"{TASKS_PATH}/{task_ids[20 + number]}"
        requests += [SampleRequest(method, path, body, headers) for method in ("PATCH", "PUT")]
    requests += [
        SampleRequest("PATCH", f"{TASKS_PATH}/{task_ids[50]}", encoded_bodies[0], headers | {"If-Match": etag})
        for etag in ("*", '"0-0"', "x")
    ]
    requests += [
        SampleRequest("POST", TASKS_PATH, encoded_bodies[0], headers | {"Idempotency-Key": key})
        for key in ("a", "a", "b", "ü", "x" * 300)
    ]
    requests += [SampleRequest("DELETE", f"{TASKS_PATH}/{sys_id}") for sys_id in (*[task_ids[51]] * 2, "x", "0" * 18)]
    return requests


CREDENTIAL_HEADERS: list[dict[str, str]] = [
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer sb_wrong"},
    {"Authorization": "Basic bm9ib2R5Ondyb25n"},
    {"Authorization": "Basic !"},
    {"Authorization": "Digest x"},
    {"Authorization": "Bearer " + "x" * 5000},
    {"Authorization": "bearer \u00fc"},
]
UNUSUAL_HEADERS = [
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
UNUSUAL_PATHS = [
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
    f"{TASKS_PATH}?sysparm_query=" + "x" * 20_000,
    f"{TASKS_PATH}?a=%FF",
    f"{TASKS_PATH}?sysparm_query=%00",
]
BODY_TYPES = ["text/plain", "application/json; charset=latin-1", "application/x-www-form-urlencoded", "", "a/b;1*"]


def build_unusual_requests(task_ids: list[str]) -> list[SampleRequest]:
    record_path, body = f"{TASKS_PATH}/{task_ids[0]}", b'{"short_description": "x"}'
    paths = [*UNUSUAL_PATHS, f"{record_path}/x", f"{record_path}//"]
    return [
        *(SampleRequest("GET", record_path, headers=headers, has_key=False) for headers in CREDENTIAL_HEADERS),
        *(SampleRequest("GET", record_path, headers=headers) for headers in UNUSUAL_HEADERS),
        *(SampleRequest(method, path) for path in paths for method in ("GET", "POST", "DELETE", "OPTIONS")),
        *(SampleRequest(method, record_path) for method in ("POST", "TRACE", "PROPFIND", "OPTIONS")),
        *(SampleRequest("POST", TASKS_PATH, body, {"Content-Type": body_type}) for body_type in BODY_TYPES),
    ]


MESSAGE_FIELD = re.compile(rb'"message": "(?:[^"\\]|\\.)*"')


def mask_volatile_parts(text: bytes) -> bytes:
    for pattern, replacement in VOLATILE_PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def send_request(
    product: Product, request: SampleRequest, *, compares_messages: bool = True
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=60)
    headers = dict(request.headers)
    if request.has_key:
        headers["Authorization"] = f"Bearer {product.key}"
    encoded_headers = {name: value.encode("utf-8") for name, value in headers.items()}
    connection.request(request.method, request.path, request.body or None, encoded_headers)
    response = connection.getresponse()
    body = mask_volatile_parts(response.read())
    ignored_headers = IGNORED_HEADERS
    if response.status >= 400 and not compares_messages:
        body, ignored_headers = MESSAGE_FIELD.sub(b"MESSAGE", body), ignored_headers | {"content-length"}
    response_headers = sorted(
        (name.lower(), mask_volatile_parts(value.encode("latin-1")).decode("latin-1"))
        for name, value in response.getheaders()
        if name.lower() not in ignored_headers
    )
    connection.close()
    return response.status, response_headers, body


def log_lines(product: Product, offset: int) -> list[tuple[Any, ...]]:
    lines = []
    for line in product.log_path.read_bytes()[offset:].decode(errors="replace").splitlines():
        try:
            entry = json.loads(line[line.index("{") :])
        except ValueError:
            continue
        if entry.get("event") in ("request_finished", "request_failed"):
            request = mask_volatile_parts(str(entry.get("request")).encode()).decode()
            lines.append(
                (entry["event"], entry.get("level"), entry.get("code"), request, entry.get("user_id") is not None)
            )
    return lines


def request_counts(product: Product) -> Counter[str]:
    product.manage("grant", "demo.agent", "monitoring")
    _, _, body = send_request(product, SampleRequest("GET", "/metrics"))
    return Counter(
        {name: float(value) for name, value in RESPONSE_COUNTER.findall(body.decode()) if '"metrics' not in name}
    )


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="./run bench same_responses", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--no-messages", action="store_true", help="error messages may differ")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as scratch_folder:
        folder = Path(scratch_folder)
        name = check_out(arguments.commit, folder / "code")
        current = Product("current", ROOT, folder / "current")
        baseline = Product(name, folder / "code", folder / "baseline")
        with running_products(current, baseline):
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda product: product.fill_database(ROW_COUNT), (current, baseline)))
            sys.exit(compare(current, baseline, compares_messages=not arguments.no_messages))


def compare(current: Product, baseline: Product, *, compares_messages: bool) -> int:
    build_functions = (build_read_requests, build_write_requests, build_unusual_requests)
    requests = [request for build_requests in build_functions for request in build_requests(current.task_ids)]
    log_offsets = {product.name: len(product.log_path.read_bytes()) for product in (current, baseline)}
    differences = 0
    for request in requests:
        response, baseline_response = (
            send_request(product, request, compares_messages=compares_messages) for product in (current, baseline)
        )
        if response != baseline_response:
            differences += 1
            print(f"{request.method} {request.path[:120]} {request.headers} {request.body[:80]!r}")
            for value, baseline_value in zip(response, baseline_response, strict=True):
                if isinstance(value, list) and isinstance(baseline_value, list):
                    value, baseline_value = (
                        sorted(set(value) - set(baseline_value)), sorted(set(baseline_value) - set(value))
                    )  # fmt: skip
                if value != baseline_value:
                    print(f"  current  {value!s:.400}\n  baseline {baseline_value!s:.400}")
    time.sleep(2)  # until the last log lines are written
    lines = [log_lines(product, log_offsets[product.name]) for product in (current, baseline)]
    for line, baseline_line in zip(*lines, strict=False):
        if line != baseline_line:
            differences += 1
            print(f"log current  {line}\n    baseline {baseline_line}")
    current_counts, baseline_counts = request_counts(current), request_counts(baseline)
    if current_counts != baseline_counts:
        differences += 1
        print(f"metrics: {sorted(current_counts.items() ^ baseline_counts.items())}")
    print(f"{len(requests)} requests, {len(lines[0])} and {len(lines[1])} log lines, {differences} differences")
    return min(differences, 1)

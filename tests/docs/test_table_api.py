"""Runs every request on the Table API pages in order on the demo records, and compares the response.

Each request block is followed by its response block. In a response, `…` matches any text and a time matches any time.
An id matches any id at its first occurrence, and the same id from then on.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from accounts import demo as demo_users
from config.env import ROOT
from system import errors
from tableapi.changes import feed_statement
from tableapi.models import Table
from tableapi.notifications import change_scan
from tableapi.query import parameters
from tableapi.setup.demo_records import create_demo_records
from tableapi.write import deferred_records
from tests.docs import curl
from tests.docs.curl import HOST
from tests.support.users import PASSWORD, make_user
from tests.tableapi.designs import query_rows

PAGES = (
    "reference/table-api",
    "how-to/design-tables",
    "reference/changes",
    "reference/statistics",
    "reference/bulk-and-batch",
    "reference/imports",
    "reference/comments-and-attachments",
    "reference/encoded-queries",
)
PAGE = "".join((ROOT / f"docs/{name}.md").read_text() for name in PAGES)
README = (ROOT / "README.md").read_text()
BLOCKS = re.compile(
    r"```http\n(?P<request>[A-Z]+ /.*?)```\n+```http\n(?P<response>\d{3} .*?)```|(?P<worker><!-- the worker -->)", re.S
)
ID = re.compile(r"\d{18}")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@dataclass
class ExampleRunner:
    """Runs the requests of a page in order, with the ids and the cursor of earlier responses."""

    ids: dict[str, str] = field(default_factory=dict)
    cursor: str = ""

    def send_request(self, printed_request: str) -> Any:
        head, _, body = printed_request.strip().partition("\n\n")
        request_line, *header_lines = head.splitlines()
        method, target = request_line.split(" ", 1)
        headers = dict(line.split(": ", 1) for line in header_lines)
        content_type = headers.pop("Content-Type", "application/json")
        login = headers.pop("Authorization", "Basic demo.agent").removeprefix("Basic ")
        credentials = b64encode(f"{login}:{PASSWORD}".encode()).decode()
        authorization = {"Authorization": f"Basic {credentials}"} if login != "nobody" else {}
        path, _, query = self.replace_ids(target).partition("?")
        query = re.sub("(sysparm_cursor|since)=…", rf"\1={self.cursor}", query)
        response = Client().generic(
            method,
            f"{path}?{urlencode([field.partition('=')[::2] for field in query.split('&')])}" if query else path,
            self.replace_ids(body),
            content_type=content_type,
            headers={"Host": HOST, **authorization, **headers},
        )
        if "Link" in response:
            self.cursor = re.search(r"(?:sysparm_cursor|since)=([^&>]+)", response["Link"])[1]  # type: ignore[index]
        return response

    def replace_ids(self, text: str) -> str:
        return ID.sub(lambda match: self.ids[match[0]], text)

    def check_response(self, printed_response: str, response: Any) -> None:
        head, _, printed_body = printed_response.strip().partition("\n\n")
        status_line, *header_lines = head.splitlines()
        assert int(status_line[:3]) == response.status_code, response.content
        for name, value in (line.split(": ", 1) for line in header_lines):
            assert self.is_same_text(value, response.headers.get(name, "")), f"{name}: {response.headers.get(name)}"
        content = b"".join(response).decode()
        if printed_body and response["Content-Type"] in ("text/csv", "application/x-ndjson"):
            assert self.is_same_text(printed_body, content.strip()), content
        elif printed_body:
            value = json.loads(content)
            assert self.is_same_value(json.loads(printed_body), value), json.dumps(value, ensure_ascii=False)

    def is_same_value(self, printed_value: Any, actual_value: Any) -> bool:
        if isinstance(printed_value, dict) and isinstance(actual_value, dict):
            return list(printed_value) == list(actual_value) and all(
                self.is_same_value(printed_value[key], actual_value[key]) for key in printed_value
            )
        if isinstance(printed_value, list) and isinstance(actual_value, list):
            return len(printed_value) == len(actual_value) and all(map(self.is_same_value, printed_value, actual_value))
        if isinstance(printed_value, str) and isinstance(actual_value, str):
            return self.is_same_text(printed_value, actual_value)
        return type(printed_value) is type(actual_value) and bool(printed_value == actual_value)

    def is_same_text(self, printed_text: str, actual_text: str) -> bool:
        """Whether the texts are equal except for ids, times and `…`."""
        for printed_id, actual_id in zip(ID.findall(printed_text), ID.findall(actual_text), strict=False):
            if self.ids.setdefault(printed_id, actual_id) != actual_id:
                return False
        pattern = re.escape(TIME.sub("TIME", ID.sub("ID", printed_text))).replace("…", ".*")
        return re.fullmatch(pattern, TIME.sub("TIME", ID.sub("ID", actual_text)), re.S) is not None


@pytest.fixture
def demo_records(db: Any) -> None:
    """The records of the first start, with task numbers that do not depend on other tests."""
    make_user("admin", "admin")
    task_table = Table.objects.get(name="task")
    query_rows(f'ALTER SEQUENCE records."N{task_table.pk}" RESTART')
    demo_users.create_demo_users(lambda: PASSWORD)
    create_demo_records()


def steps() -> Iterator[re.Match[str]]:
    yield from BLOCKS.finditer(PAGE)


def test_examples_return_the_printed_responses(demo_records: None, monkeypatch: pytest.MonkeyPatch):
    # The feed omits open transactions, such as that of the test.
    settled_sql = change_scan.CREATE_NOTIFICATIONS.replace(feed_statement.IS_SETTLED, "TRUE")
    monkeypatch.setattr(change_scan, "CREATE_NOTIFICATIONS", settled_sql)
    monkeypatch.setattr(feed_statement, "IS_SETTLED", "TRUE")
    change_scan.notify_of_changes()
    runner = ExampleRunner()
    for step in steps():
        if step["worker"]:
            deferred_records.create_due_records()
            change_scan.notify_of_changes()
            continue
        try:
            runner.check_response(step["response"], runner.send_request(step["request"]))
        except (AssertionError, KeyError) as error:
            raise AssertionError(f"{step['request']}\n\nprinted:\n{step['response']}\nerror: {error}") from None


def test_every_request_has_a_response():
    requests = re.findall(r"```http\n[A-Z]+ /", PAGE)

    assert len(requests) == len([step for step in steps() if step["request"]]) > 30
    assert len(re.findall(r"```http\n\d{3} ", PAGE)) == len(requests)


@pytest.mark.parametrize("page", [README, PAGE], ids=["README", "table-api"])
def test_curl_commands_return_the_printed_responses(demo_records: None, page: str):
    examples = re.findall(r"```\w*\n(curl .*?)```\n+(?:[^\n]*\n+)?```json\n(.*?)```", page, re.S)
    assert len(examples) >= 1

    for command, printed_json in examples:
        response = curl.run_command(command)
        assert ExampleRunner().is_same_value(json.loads(printed_json), json.loads(response.content)), response.content


def test_every_example_query_works(demo_records: None):
    queries = re.findall(
        r"^\| `([^`|]+)` \| [^|]+ \|$", PAGE.partition("## Queries by example")[2].partition("\n## ")[0], re.M
    )
    assert len(queries) > 8

    for query in queries[1:]:
        response = ExampleRunner().send_request(f"GET /rest/v1/table/task?sysparm_query={query}")
        assert response.status_code == 200 and response.json()["data"], query


def test_parameter_table_has_every_parameter():
    source = (ROOT / "tableapi/query/parameters.py").read_text()
    page = (ROOT / "docs/reference/table-api.md").read_text()

    assert set(re.findall(r'"(sysparm_\w+)"', source)) == set(re.findall(r"^\| `(sysparm_\w+)` \|", page, re.M))


def test_error_table_has_every_code_with_its_status():
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.M)
    paths = [*python_files("tableapi"), *python_files("system/strict_json.py")]
    source_text = "".join(path.read_text() for path in paths)

    code_matches = set(re.findall(r'code = "(\w+)"|code="(\w+)"', source_text))
    used_codes = {attribute or argument for attribute, argument in code_matches} - {"bad_request"}
    assert used_codes - {code for _, code in rows} == set()
    statuses_by_code = {
        error_class.code: error_class.status
        for error_class in errors.ServiceError.__subclasses__()
        if error_class.code != "bad_request"
    }
    documented_statuses = {code: int(status) for status, code in rows if code in statuses_by_code}
    assert documented_statuses.items() <= statuses_by_code.items()


def python_files(name: str) -> Iterator[Any]:
    path = ROOT / name
    yield from [path] if path.is_file() else sorted(path.glob("*.py"))


def test_limits_match_the_code():
    for limit in (
        parameters.DEFAULT_LIMIT,
        parameters.MAX_RECORDS,
        parameters.MAX_PAGED_RECORDS,
        parameters.MAX_FIELDS,
    ):
        assert f"{limit:,}" in PAGE

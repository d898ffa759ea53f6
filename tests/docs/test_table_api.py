"""Runs every request on the pages of the Table API, in order, on the demo records, and compares the response.

A block of a request is followed by a block of its answer. In an answer `…` stands for any text and a time for any time;
an id stands for itself: whatever record it is at first, it must be from then on.
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

from accounts import demo as demo_people
from config.env import ROOT
from system import errors
from tableapi.models import Table
from tableapi.query import parameters
from tableapi.setup import demo_records as demo
from tableapi.write import deferred_records
from tests.docs import curl
from tests.docs.curl import HOST
from tests.support.users import PASSWORD, make_user
from tests.tableapi.designs import query_rows

PAGE = "".join((ROOT / f"docs/{name}.md").read_text() for name in ("reference/table-api", "how-to/design-tables"))
README = (ROOT / "README.md").read_text()
BLOCKS = re.compile(
    r"```http\n(?P<asked>[A-Z]+ /.*?)```\n+```http\n(?P<answered>\d{3} .*?)```|(?P<worker><!-- the worker -->)", re.S
)
ID = re.compile(r"\d{18}")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@dataclass
class Reader:
    """Somebody who types the page off, from its beginning to its end."""

    ids: dict[str, str] = field(default_factory=dict)
    cursor: str = ""

    def ask(self, text: str) -> Any:
        head, _, body = text.strip().partition("\n\n")
        line, *lines = head.splitlines()
        method, target = line.split(" ", 1)
        headers = dict(each.split(": ", 1) for each in lines)
        who = headers.pop("Authorization", "Basic demo.agent").removeprefix("Basic ")
        pair = b64encode(f"{who}:{PASSWORD}".encode()).decode()
        path, _, query = self.known(target).partition("?")
        query = query.replace("sysparm_cursor=…", f"sysparm_cursor={self.cursor}")
        answer = Client().generic(
            method,
            f"{path}?{urlencode([each.partition('=')[::2] for each in query.split('&')])}" if query else path,
            self.known(body),
            content_type="application/json",
            headers={"Host": HOST, **({"Authorization": f"Basic {pair}"} if who != "nobody" else {}), **headers},
        )
        if "Link" in answer:
            self.cursor = re.search(r"sysparm_cursor=([^&>]+)", answer["Link"])[1]  # type: ignore[index]
        return answer

    def known(self, text: str) -> str:
        return ID.sub(lambda found: self.ids[found[0]], text)

    def check(self, printed: str, answer: Any) -> None:
        head, _, body = printed.strip().partition("\n\n")
        line, *lines = head.splitlines()
        assert int(line[:3]) == answer.status_code, answer.content
        for name, value in (each.split(": ", 1) for each in lines):
            assert self.is_like(value, answer.headers.get(name, "")), f"{name}: {answer.headers.get(name)}"
        if body:
            document = json.loads(body)
            content = json.loads(answer.content)
            assert self.is_same(document, content), json.dumps(content, ensure_ascii=False)

    def is_same(self, shown: Any, got: Any) -> bool:
        if isinstance(shown, dict) and isinstance(got, dict):
            return list(shown) == list(got) and all(self.is_same(shown[key], got[key]) for key in shown)
        if isinstance(shown, list) and isinstance(got, list):
            return len(shown) == len(got) and all(map(self.is_same, shown, got))
        if isinstance(shown, str) and isinstance(got, str):
            return self.is_like(shown, got)
        return type(shown) is type(got) and bool(shown == got)

    def is_like(self, shown: str, got: str) -> bool:
        """The same text, but for ids, times and `…`."""
        for printed, real in zip(ID.findall(shown), ID.findall(got), strict=False):
            if self.ids.setdefault(printed, real) != real:
                return False
        pattern = re.escape(TIME.sub("TIME", ID.sub("ID", shown))).replace("…", ".*")
        return re.fullmatch(pattern, TIME.sub("TIME", ID.sub("ID", got)), re.S) is not None


@pytest.fixture
def demo_records(db: Any) -> None:
    """As after the first start; numbers of other tests' tasks do not count."""
    make_user("admin", "admin")
    task = Table.objects.get(name="task")
    query_rows(f'ALTER SEQUENCE records."N{task.pk}" RESTART')
    demo_people.create_demo_users(lambda: PASSWORD)
    demo.create_demo_records()


def steps() -> Iterator[re.Match[str]]:
    yield from BLOCKS.finditer(PAGE)


def test_examples_are_answered_as_printed(demo_records: None):
    reader = Reader()
    for step in steps():
        if step["worker"]:
            deferred_records.create_due()
            continue
        try:
            reader.check(step["answered"], reader.ask(step["asked"]))
        except (AssertionError, KeyError) as wrong:
            raise AssertionError(f"{step['asked']}\n\nprinted:\n{step['answered']}\nwrong: {wrong}") from None


def test_every_request_has_a_response():
    matches = re.findall(r"```http\n[A-Z]+ /", PAGE)

    assert len(matches) == len([step for step in steps() if step["asked"]]) > 30
    assert len(re.findall(r"```http\n\d{3} ", PAGE)) == len(matches)


@pytest.mark.parametrize("page", [README, PAGE], ids=["README", "table-api"])
def test_curl_commands_work_as_printed(demo_records: None, page: str):
    matches = re.findall(r"```\w*\n(curl .*?)```\n+(?:[^\n]*\n+)?```json\n(.*?)```", page, re.S)
    assert len(matches) >= 1

    for command, printed in matches:
        answer = curl.run(command)
        assert Reader().is_same(json.loads(printed), json.loads(answer.content)), answer.content


def test_every_example_query_works(demo_records: None):
    rows = re.findall(
        r"^\| `([^`|]+)` \| [^|]+ \|$", PAGE.partition("## Queries by example")[2].partition("\n## ")[0], re.M
    )
    assert len(rows) > 8

    for query in rows[1:]:
        answer = Reader().ask(f"GET /rest/v1/table/task?sysparm_query={query}")
        assert answer.status_code == 200 and answer.json()["data"], query


def test_parameter_table_has_every_parameter():
    source = (ROOT / "tableapi/query/parameters.py").read_text()

    assert set(re.findall(r'"(sysparm_\w+)"', source)) == set(re.findall(r"^\| `(sysparm_\w+)` \|", PAGE, re.M))


def test_error_table_has_every_code_with_its_status():
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.M)
    sources = "".join(path.read_text() for room in ("tableapi", "system/http/request_body.py") for path in files(room))

    codes = set(re.findall(r'code = "(\w+)"|code="(\w+)"', sources))
    named = {one or other for one, other in codes} - {"bad_request"}
    assert named - {code for _, code in rows} == set()
    existing = {
        subclasse.code: subclasse.status
        for subclasse in errors.ServiceError.__subclasses__()
        if subclasse.code != "bad_request"
    }
    assert {code: int(status) for status, code in rows if code in existing}.items() <= existing.items()


def files(room: str) -> Iterator[Any]:
    place = ROOT / room
    yield from [place] if place.is_file() else sorted(place.glob("*.py"))


def test_limits_match_the_code():
    for number in (
        parameters.DEFAULT_LIMIT,
        parameters.MAX_RECORDS,
        parameters.MAX_PAGED_RECORDS,
        parameters.MAX_FIELDS,
    ):
        assert f"{number:,}" in PAGE

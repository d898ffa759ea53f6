"""Hidden records and values change no page, picker, search or export of the workspace.

Two databases differ only in what the caller may not read. Every page must be the same in both, byte by byte, and read
them with the same statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from django.contrib.messages.storage.cookie import CookieStorage
from django.core.signals import request_finished
from django.db import connection
from django.http import HttpResponseBase
from django.test import RequestFactory
from django.urls import resolve

from accounts.models import User
from system.errors import ServiceError
from system.http.error_responses import error_for_client, to_service_error
from tableapi.catalogue.definitions import Table
from tests.support.nightly import scaled_count
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import ProgramGenerator
from tests.tableapi.noninterference.runner import insert_world, stored_tables
from tests.tableapi.oracle import World

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 40, 2_000
REQUESTS_PER_PAIR = 16
REQUEST_FACTORY = RequestFactory()
# A path and its query.
PageRequest = tuple[str, dict[str, str]]


class PageGenerator:
    """Generates requests with the names and values of both databases."""

    def __init__(self, random: Random, pair: Pair) -> None:
        self.random, self.pair = random, pair
        self.programs = ProgramGenerator(random, pair)
        self.tables = list(pair.catalogue.tables.values())

    def requests(self) -> Iterator[PageRequest]:
        makers = [self.options, self.find, self.fields, self.list_page, self.columns_dialog, self.export]
        makers += [self.list_page, self.random_list, self.random_list, self.new_record, *([self.record_part] * 6)]
        for _ in range(REQUESTS_PER_PAIR):
            yield self.random.choice(makers)(self.random.choice(self.tables))
        yield "/tables/", {}  # shows the records that were opened

    def options(self, table: Table) -> PageRequest:
        return f"/tables/{table.name}/options/", {"q": self.random.choice(["", "a", "ab", "b", "x"])}

    def find(self, _: Table) -> PageRequest:
        return "/find/", {"q": self.random.choice(["", "a", "ab", "B", "x"])}

    def list_page(self, table: Table) -> PageRequest:
        column = self.random.choice([*table.columns])
        parameters: list[dict[str, str]] = [
            {},
            {"count": "1"},
            {"columns": column},
            {"group": column},
            {"sysparm_query": f"ORDERBYDESC{column}"},
            {"sysparm_query": f"{column}ISNOTEMPTY", "count": "1"},
            {"sysparm_query": f"{column}ISEMPTY^ORDERBY{column}", "group": self.random.choice([*table.columns])},
        ]
        return f"/tables/{table.name}/", self.random.choice(parameters)

    def random_list(self, table: Table) -> PageRequest:
        parameters = {"sysparm_query": self.programs.random_query(table), "columns": self._paths(table)}
        if self.random.random() < 0.3:
            parameters["group"] = self.programs.random_field_path(table)
        return f"/tables/{table.name}/", parameters

    def columns_dialog(self, table: Table) -> PageRequest:
        return f"/tables/{table.name}/columns/", {}

    def fields(self, table: Table) -> PageRequest:
        path = self.random.choice(["", self.programs.random_field_path(table)])
        return f"/tables/{table.name}/fields/", {"path": path}

    def export(self, table: Table) -> PageRequest:
        parameters = {"format": self.random.choice(["csv", "jsonl"]), "columns": self._paths(table)}
        return f"/tables/{table.name}/export/", parameters | {"sysparm_query": self.programs.random_query(table)}

    def new_record(self, table: Table) -> PageRequest:
        parameters: list[dict[str, str]] = [{}, {"_duplicate": self.programs.random_id(table)}]
        parameters += [{name: self.programs.random_id(self.random.choice(self.tables))} for name in table.columns]
        return f"/tables/{table.name}/new/", self.random.choice(parameters)

    def record_part(self, table: Table) -> PageRequest:
        parts = ["", "", "", "related/", "activity/", "delete/", f"cell/{self.random.choice([*table.columns])}/"]
        path = f"/tables/{table.name}/{self.programs.random_id(table)}/{self.random.choice(parts)}"
        if not path.endswith(f"{path.split('/')[3]}/") or self.random.random() < 0.5:
            return path, {}
        _, parameters = self.list_page(table)
        return path, {"list": urlencode({"table": table.name, **parameters})}

    def _paths(self, table: Table) -> str:
        return ",".join(self.programs.random_field_path(table) for _ in range(3))


def open_page(pair: Pair, request: PageRequest) -> tuple[int, bytes, list[str]]:
    path, query = request
    http_request: Any = REQUEST_FACTORY.get(f"{path}?{urlencode(query)}", headers={"Accept": "text/html"})
    http_request.user = User(sys_id=pair.caller.id, login="somebody")
    http_request.user.role_names = pair.caller.role_names
    http_request._messages = CookieStorage(http_request)
    view, _, parameters = resolve(path)
    with captured_statements() as statements:
        try:
            response: HttpResponseBase = view(http_request, **parameters)
        except Exception as error:
            service_error = to_service_error(error, http_request.user)
            if not isinstance(service_error, ServiceError):
                raise
            response = error_for_client(http_request, service_error)
    assert not connection.needs_rollback, (request, response)
    content = b"".join(response) if response.streaming else response.content  # type: ignore[attr-defined]
    with patch.object(request_finished, "send"):  # its receivers would close the connection
        response.close()
    return response.status_code, content, statements


def collect_pages(pair: Pair, world: World, requests: list[PageRequest]) -> list[tuple[int, bytes, list[str]]]:
    with rollback_afterwards(), active_catalogue(pair.catalogue):
        insert_world(world)
        return [open_page(pair, request) for request in requests]


def check_pair(seed: int) -> int:
    """Compare both databases, and return the number of pages that were shown."""
    random = Random(seed)
    pair = pairs.make_pair(random)
    requests = list(PageGenerator(random, pair).requests())
    with stored_tables(pair), patch("django.template.context_processors.get_token", lambda request: "token"):
        if not User.objects.filter(pk=pair.caller.id).exists():
            User.objects.bulk_create([User(sys_id=pair.caller.id, login=f"u{pair.caller.id}")])
        pages = [collect_pages(pair, world, requests) for world in (pair.first, pair.second)]
    for request, first, second in zip(requests, *pages, strict=True):
        assert first == second, f"seed {seed}: {request}"
        assert first[0] in (200, 302, 400, 403, 404), f"seed {seed}: {request} {first}"
    return sum(status == 200 for status, _, _ in pages[0])


def test_hidden_data_changes_no_page() -> None:
    assert sum(map(check_pair, range(PAIR_COUNT))) > PAIR_COUNT


@pytest.mark.nightly
def test_hidden_data_changes_no_page_in_many_pairs() -> None:
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        check_pair(seed)

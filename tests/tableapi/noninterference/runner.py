"""Runs a program on both databases of a pair, and compares the responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode, urlsplit

from django.db import connection
from django.http import HttpResponse
from psycopg import sql
from rest_framework.test import APIRequestFactory

from accounts.models import User
from system.http.json_view import JsonRequest
from system.records import acting_user
from tableapi.http.responses import API_PATH
from tableapi.read import context
from tableapi.urls import LIST_VIEW, RECORD_VIEW
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.laws.storage import (
    active_catalogue,
    columns_of,
    create_statements,
    insert_statement,
    load_world,
    rollback_afterwards,
    store_groups,
    stored_world,
    table_identifier,
)
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair, visible_values
from tests.tableapi.noninterference.programs import LAST_ETAG, ProgramGenerator, Step
from tests.tableapi.oracle import Caller, World
from tests.tableapi.oracle.alphabets import make_moment
from tests.tableapi.oracle.column_types import NOW

# The schema precedes `pg_catalog`, so the product calls this function. Generated ids start again for each database.
STOP_CLOCK_STATEMENT = f"""
    CREATE SCHEMA stopped;
    CREATE FUNCTION stopped.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
        AS $$ SELECT timestamptz '{NOW.isoformat()}' $$;
    SET LOCAL search_path = stopped, pg_catalog, public;
    CREATE SEQUENCE stopped.ids;
    CREATE OR REPLACE FUNCTION public.svc_new_sys_id() RETURNS varchar LANGUAGE sql VOLATILE
        AS $$ SELECT '1800000000' || lpad(nextval('stopped.ids')::text, 8, '0') $$
"""
IGNORED_HEADERS = {"date", "x-request-id"}
REQUEST_FACTORY = APIRequestFactory()
CanonicalResponse = tuple[int, tuple[tuple[str, str], ...], bytes]
# A response and its database statements. Different statements would take different times.
StepResult = tuple[Step, CanonicalResponse, list[str]]


@dataclass(frozen=True)
class Difference:
    """A difference between the results of the two databases."""

    pair: Pair
    step: Step | None
    first: Any
    second: Any

    def __str__(self) -> str:
        rules = "\n".join(
            f"  {rule.operation} {rule.table}.{rule.column} {sorted(rule.roles)} {rule.condition}"
            for rule in self.pair.catalogue.rules
        )
        return f"{self.step}\n{self.first}\n{self.second}\n{self.pair.caller}\n{rules}"


def stop_database_clock() -> None:
    with connection.cursor() as cursor:
        cursor.execute(STOP_CLOCK_STATEMENT)


def find_difference(seed: int) -> Difference | None:
    """Return the first response, or else the final state, that differs between the two databases of this seed."""
    random = Random(seed)
    pair = pairs.make_pair(random)
    program = ProgramGenerator(random, pair).random_program()
    if not pair.has_differences:
        return None
    with stored_tables(pair):
        outcomes = []
        for world in (pair.first, pair.second):
            with rollback_afterwards(), active_catalogue(pair.catalogue):
                insert_world(world)
                conversation = Conversation(pair.caller)
                step_results = [result for step in program for result in conversation.send_and_follow(step)]
                outcomes.append(
                    (step_results, visible_values(load_world(pair.catalogue), pair.caller, make_moment(pair.caller.id)))
                )
    (results, values_after), (other_results, other_values_after) = outcomes
    for (step, *first), (_, *second) in zip(results, other_results, strict=False):
        if first != second:
            return Difference(pair, step, first, second)
    different_keys = [
        key for key in values_after | other_values_after if values_after.get(key) != other_values_after.get(key)
    ]
    if different_keys or len(results) != len(other_results):
        return Difference(
            pair, None, program, [(key, values_after.get(key), other_values_after.get(key)) for key in different_keys]
        )
    return None


@contextmanager
def stored_tables(pair: Pair) -> Iterator[None]:
    """Create the tables of the pair without records, and the caller's groups; act as the caller and stop the clock."""
    with (
        rollback_afterwards(),
        patch.object(context, "now", lambda: NOW),
        acting_user.acting_as(pair.caller.id),
    ):
        make_tables(pair)
        store_groups(pair.caller)
        yield


def make_tables(pair: Pair) -> None:
    tables = list(pair.catalogue.tables.values())
    statements = [statement for table in tables for statement in create_statements(pair.catalogue, table)]
    for table in tables:
        for column in columns_of(table):
            if column.type == "reference":
                target = table_identifier(pair.catalogue.tables[column.reference or ""])
                # Deferred, because a record may refer to one that only the other database has.
                statements.append(
                    sql.SQL(
                        "ALTER TABLE {} ADD FOREIGN KEY ({}) REFERENCES {} (sys_id) ON DELETE SET NULL "
                        "DEFERRABLE INITIALLY DEFERRED"
                    ).format(table_identifier(table), sql.Identifier(column.database_name), target)
                )
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(";").join(statements))


def insert_world(world: World) -> None:
    values: list[Any] = []
    statements: list[sql.Composable] = [sql.SQL("SELECT setval('stopped.ids', 1)")]
    for table in world.catalogue.tables.values():
        rows = list(world.rows[table.name].values())
        for name in reversed(table.lineage):
            if rows:
                statements.append(insert_statement(world.catalogue.tables[name], table, rows, values))
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(";").join(statements), values)


class Conversation:
    """Sends the requests of one caller, with the ETags of earlier responses."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.etags: dict[tuple[str, str], str] = {}

    def send_and_follow(self, step: Step) -> list[StepResult]:
        with captured_statements() as statements:
            response = self.send(step)
        results = [(step, canonical_response(response), statements)]
        for _ in range(step.max_pages):
            next_link = response.headers.get("Link", "")
            if not next_link:
                break
            link_params = parse_qs(urlsplit(next_link[1 : next_link.index(">")]).query)
            params = {name: values[0] for name, values in link_params.items()}
            with captured_statements() as statements:
                response = self.send(Step("GET", step.table, "", params))
            results.append((step, canonical_response(response), statements))
        return results

    def send(self, step: Step) -> HttpResponse:
        address = (step.table, step.sys_id)
        tag = self.etags.get(address, '"0-0"')
        headers = {name: tag if value == LAST_ETAG else value for name, value in step.headers.items()}
        response = send_step(replace(step, headers=headers), self.caller)
        if "ETag" in response.headers:
            self.etags[address] = response.headers["ETag"]
        return response


@contextmanager
def open_conversation(pair: Pair) -> Iterator[Conversation]:
    """Store the first database of the pair and the groups of the caller."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(context, "now", lambda: NOW))
        stack.enter_context(acting_user.acting_as(pair.caller.id))
        stack.enter_context(stored_world(pair.first))
        store_groups(pair.caller)
        yield Conversation(pair.caller)


def send_step(step: Step, caller: Caller) -> HttpResponse:
    path = f"{API_PATH}{step.table}" + (f"/{step.sys_id}" if step.sys_id else "")
    body, content_type = ("", "") if step.body is None else (json.dumps(step.body), "application/json")
    query = query_string(step.params)
    request = REQUEST_FACTORY.generic(
        step.method, path, body, content_type=content_type, QUERY_STRING=query, headers=step.headers
    )
    view, url_parameters = (RECORD_VIEW, {"sys_id": step.sys_id}) if step.sys_id else (LIST_VIEW, {})
    return call_view(view, caller, request, table=step.table, **url_parameters)


def call_view(view: Any, caller: Caller, request: Any, **url_parameters: str) -> HttpResponse:
    user = User(sys_id=caller.id, login="somebody")
    user.role_names = caller.role_names
    with patch.object(JsonRequest, "user", user):
        response: HttpResponse = view(request, **url_parameters)
    return response


def send_to_view(
    view: Any, caller: Caller, query: str = "", method: str = "GET", body: Any = None, **url_parameters: str
) -> HttpResponse:
    json_body = "" if body is None else json.dumps(body)
    request = REQUEST_FACTORY.generic(method, "/", json_body, content_type="application/json", QUERY_STRING=query)
    return call_view(view.as_view(), caller, request, **url_parameters)


def query_string(params: dict[str, str]) -> str:
    return urlencode(params)


def canonical_response(response: HttpResponse) -> CanonicalResponse:
    headers = sorted((name.lower(), value) for name, value in response.headers.items())
    return (
        response.status_code,
        tuple(header for header in headers if header[0] not in IGNORED_HEADERS),
        response.content,
    )

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
from tests.tableapi.database_statements import statements
from tests.tableapi.laws.storage import (
    in_force,
    inserting,
    making,
    own_columns,
    place,
    read_back,
    rolled_back,
    store_groups,
    stored_world,
)
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair, seen
from tests.tableapi.noninterference.programs import HEARD, Author, Step
from tests.tableapi.oracle import Caller, World
from tests.tableapi.oracle.alphabets import moment
from tests.tableapi.oracle.column_types import NOW

# In its own schema before PostgreSQL's: the product asks for the time without saying whose. The ids that the database
# makes are counted from the beginning for each of the two.
CLOCK = f"""
    CREATE SCHEMA stopped;
    CREATE FUNCTION stopped.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
        AS $$ SELECT timestamptz '{NOW.isoformat()}' $$;
    SET LOCAL search_path = stopped, pg_catalog, public;
    CREATE SEQUENCE stopped.ids;
    CREATE OR REPLACE FUNCTION public.svc_new_sys_id() RETURNS varchar LANGUAGE sql VOLATILE
        AS $$ SELECT '1800000000' || lpad(nextval('stopped.ids')::text, 8, '0') $$
"""
IGNORED_HEADERS = {"date", "x-request-id"}
FACTORY = APIRequestFactory()
Answer = tuple[int, tuple[tuple[str, str], ...], bytes]
# An answer, and what was asked of the database for it: a difference there is one in time.
Heard = tuple[Step, Answer, list[str]]


@dataclass(frozen=True)
class Difference:
    """What told the two databases apart."""

    pair: Pair
    step: Step | None
    one: Any
    other: Any

    def __str__(self) -> str:
        rules = "\n".join(
            f"  {rule.operation} {rule.table}.{rule.column} {sorted(rule.roles)} {rule.condition}"
            for rule in self.pair.catalogue.rules
        )
        return f"{self.step}\n{self.one}\n{self.other}\n{self.pair.caller}\n{rules}"


def stop_the_clock() -> None:
    with connection.cursor() as cursor:
        cursor.execute(CLOCK)


def difference(seed: int) -> Difference | None:
    """The first answer, or the state afterwards, in which the two databases of this seed differ."""
    random = Random(seed)
    pair = pairs.make(random)
    program = Author(random, pair).program()
    if not pair.is_telling:
        return None
    with ExitStack() as stack:
        stack.enter_context(rolled_back())
        stack.enter_context(patch.object(context, "now", lambda: NOW))
        stack.enter_context(acting_user.acting_as(pair.caller.id))
        make_tables(pair)
        store_groups(pair.caller)
        responses = []
        for world in (pair.one, pair.other):
            with rolled_back(), in_force(pair.catalogue):
                fill(world)
                talk = Conversation(pair.caller)
                result = [response for step in program for response in talk.answers_to(step)]
                responses.append((result, seen(read_back(pair.catalogue), pair.caller, moment(pair.caller.id))))
    (one, after_one), (other, after_other) = responses
    for (step, *left), (_, *right) in zip(one, other, strict=False):
        if left != right:
            return Difference(pair, step, left, right)
    keys = [key for key in after_one | after_other if after_one.get(key) != after_other.get(key)]
    if keys or len(one) != len(other):
        return Difference(pair, None, program, [(key, after_one.get(key), after_other.get(key)) for key in keys])
    return None


def make_tables(pair: Pair) -> None:
    tables = list(pair.catalogue.tables.values())
    created = [statement for table in tables for statement in making(pair.catalogue, table)]
    for table in tables:
        for column in own_columns(table):
            if column.type == "reference":
                target = place(pair.catalogue.tables[column.reference or ""])
                # Deferred, so that a record may refer to one that only the other database has.
                created.append(
                    sql.SQL(
                        "ALTER TABLE {} ADD FOREIGN KEY ({}) REFERENCES {} (sys_id) ON DELETE SET NULL "
                        "DEFERRABLE INITIALLY DEFERRED"
                    ).format(place(table), sql.Identifier(column.physical), target)
                )
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(";").join(created))


def fill(world: World) -> None:
    values: list[Any] = []
    statements: list[sql.Composable] = [sql.SQL("SELECT setval('stopped.ids', 1)")]
    for table in world.catalogue.tables.values():
        rows = list(world.rows[table.name].values())
        for name in reversed(table.lineage):
            if rows:
                statements.append(inserting(world.catalogue.tables[name], table, rows, values))
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(";").join(statements), values)


class Conversation:
    """What one caller asks one after the other: they send back the tags that they heard."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.heard: dict[tuple[str, str], str] = {}

    def answers_to(self, step: Step) -> list[Heard]:
        with statements() as result:
            response = self.send(step)
        actual = [(step, canonical(response), result)]
        for _ in range(step.follows):
            following = response.headers.get("Link", "")
            if not following:
                break
            sent_values = parse_qs(urlsplit(following[1 : following.index(">")]).query)
            params = {name: values[0] for name, values in sent_values.items()}
            with statements() as result:
                response = self.send(Step("GET", step.table, "", params))
            actual.append((step, canonical(response), result))
        return actual

    def send(self, step: Step) -> HttpResponse:
        about = (step.table, step.sys_id)
        tag = self.heard.get(about, '"0-0"')
        headers = {name: tag if value == HEARD else value for name, value in step.headers.items()}
        response = send(replace(step, headers=headers), self.caller)
        if "ETag" in response.headers:
            self.heard[about] = response.headers["ETag"]
        return response


@contextmanager
def conversation(pair: Pair) -> Iterator[Conversation]:
    """The first of the two databases is there, and the caller about to ask."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(context, "now", lambda: NOW))
        stack.enter_context(acting_user.acting_as(pair.caller.id))
        stack.enter_context(stored_world(pair.one))
        store_groups(pair.caller)
        yield Conversation(pair.caller)


def send(step: Step, caller: Caller) -> HttpResponse:
    path = f"{API_PATH}{step.table}" + (f"/{step.sys_id}" if step.sys_id else "")
    text = "" if step.body is None else json.dumps(step.body)
    kind = "application/json" if step.body is not None else ""
    request = FACTORY.generic(
        step.method, path, text, content_type=kind, QUERY_STRING=encoded(step.params), headers=step.headers
    )
    user = User(sys_id=caller.id, login="somebody")
    user.role_names = caller.role_names
    view, named = (RECORD_VIEW, {"sys_id": step.sys_id}) if step.sys_id else (LIST_VIEW, {})
    with patch.object(JsonRequest, "user", user):
        response: HttpResponse = view(request, table=step.table, **named)
    return response


def encoded(params: dict[str, str]) -> str:
    return urlencode(params)


def canonical(response: HttpResponse) -> Answer:
    headers = sorted((name.lower(), value) for name, value in response.headers.items())
    return (
        response.status_code,
        tuple(header for header in headers if header[0] not in IGNORED_HEADERS),
        response.content,
    )

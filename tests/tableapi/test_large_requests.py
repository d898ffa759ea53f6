"""Long, many and wide requests, exact numbers, headers, indexes, and caches between requests."""

import gc
import json
import weakref
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from accounts.models import User
from system import database_statements
from tableapi import tasks
from tableapi.access import caller_view
from tableapi.database import catalogue_loader, statement_runner
from tableapi.ddl import schema_editor
from tableapi.design import saving
from tableapi.models import Column, Rule, State
from tableapi.query import parsed_query, read_plan
from tableapi.sql import select
from tableapi.write import permission_queries, single_statement
from tests.tableapi.designs import ask, indexes_of, make_column
from tests.tableapi.world import api, column, data, failed, field, next_of, open_table, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def note(db: Any) -> Any:
    created = table("note")
    field("note", "name", is_display=True, is_indexed=True)
    open_table("note")
    return created


@pytest.fixture
def ran(monkeypatch: Any) -> list[tuple[str, Any]]:
    """The statements that run, with their values."""
    results: list[tuple[str, Any]] = []
    fetch: Callable[..., Any] = statement_runner.fetch_bytes

    def noted(statement: Any, inputs: Any, *place: Any) -> Any:
        results.append((statement.sql, statement.values(inputs)))
        return fetch(statement, inputs, *place)

    monkeypatch.setattr(statement_runner, "fetch_bytes", noted)
    return results


def counted(monkeypatch: Any, module: Any, name: str) -> list[Any]:
    """One item for each call."""
    calls: list[Any] = []
    original = getattr(module, name)

    def counting(*positional: Any, **named: Any) -> Any:
        calls.append(positional)
        return original(*positional, **named)

    monkeypatch.setattr(module, name, counting)
    return calls


def follow(who: User, response: Any) -> Any:
    split = urlsplit(next_of(response))
    return api(who).get(f"{split.path}?{split.query}")


class TestListsByDisplayValue:
    @pytest.fixture
    def box(self, note: Any) -> str:
        table("box")
        field("box", "notes", "list", to="note")
        open_table("box")
        return record("note", name="a")

    def test_equal_names_are_looked_up_once(self, box: str, bob: User, ran: list[Any]):
        response = api(bob).post("box", {"notes": ["a"] * 20_000}, input_display_value=1, exclude_reference_link=1)
        assert column(response, "notes") == [[box]]
        assert len(ran) < 10

    def test_many_names_are_looked_up_in_one_query(self, box: str, bob: User, ran: list[Any]):
        ids = [box, *(record("note", name=f"n{number}") for number in range(50))]
        names = ["a", *(f"n{number}" for number in range(50))]
        response = api(bob).post("box", {"notes": names}, input_display_value=1, exclude_reference_link=1)
        assert column(response, "notes") == [ids]
        assert len(ran) < 10
        for one_wrong in ([*names, "nobody"], [*names, "A"]):
            response = api(bob).post("box", {"notes": one_wrong}, input_display_value=1)
            assert failed(response) == (422, "invalid_value", "notes")
        record("note", name="n7")
        assert failed(api(bob).post("box", {"notes": names}, input_display_value=1))[0] == 422, "two are called so"

    def test_more_than_a_thousand_are_refused_at_once(self, box: str, bob: User, ran: list[Any]):
        ask("INSERT INTO records.note (name) SELECT 'x' || number FROM generate_series(0, 1000) number")
        names = [f"x{number}" for number in range(1_001)]
        response = api(bob).post("box", {"notes": names}, input_display_value=1)
        assert failed(response) == (422, "invalid_value", "notes")
        assert len(ran) < 10
        response = api(bob).post("box", {"notes": names[1:]}, input_display_value=1, exclude_reference_link=1)
        assert len(column(response, "notes")[0]) == 1_000


class TestARuleThatAsksForAUserWhereNoneFits:
    CONDITION = "active=javascript:gs.getUserID()"

    def test_form_refuses_it(self, note: Any):
        field("note", "active", "boolean")
        rule = Rule(operation="read", table=note, condition=self.CONDITION)
        with pytest.raises(ValidationError):
            saving.validate(rule)

    def test_stored_rule_matches_nothing(self, bob: User):
        created = table("note")
        field(created, "active", "boolean")
        lamp = record("note", active=True)
        remaining = rule("read", "note")
        Rule.objects.filter(pk=remaining.pk).update(condition=self.CONDITION)
        State.increment_version()
        assert api(bob).get(f"note/{lamp}").status_code == 404
        response = api(bob).get("note")
        assert response.status_code == 404 or data(response) == []


class TestWhatIsKept:
    def test_pages_share_one_statement(self, note: Any, bob: User, monkeypatch: Any):
        for number in range(6):
            record("note", name=str(number))
        created = counted(monkeypatch, select, "page_statement")
        responses = [
            api(bob).get("note", query="ORDERBYname", limit=1, page=page, fields="name") for page in range(2, 7)
        ]
        assert [column(response, "name") for response in responses] == [["1"], ["2"], ["3"], ["4"], ["5"]]
        assert len(created) == 1

    @pytest.mark.parametrize(
        ("headers", "module", "name"),
        [({}, single_statement, "_statement"), ({"If-Match": "*"}, permission_queries, "locking_statement")],
    )
    def test_order_of_a_body_does_not_change_the_statement(
        self, note: Any, bob: User, monkeypatch: Any, headers: dict[str, str], module: Any, name: str
    ):
        field("note", "colour")
        lamp = record("note")
        created = counted(monkeypatch, module, name)
        for body in ({"name": "a", "colour": "b"}, {"colour": "c", "name": "d"}):
            (after,) = data(api(bob).patch(f"note/{lamp}", body, headers=headers))
            assert {key: after[key] for key in body} == body
        assert len(created) == 1

    def test_old_catalogues_are_released(self, note: Any, bob: User):
        caller = api(bob, by="key")
        results = []
        for number in range(8):
            field("note", f"c{number}")
            assert caller.get("note").status_code == 200
            results.append(weakref.ref(catalogue_loader.cached_catalogue()))
        gc.collect()
        assert [outcome() for outcome in results[:-1]] == [None] * 7


class TestIndexes:
    def test_word_search_in_converted_text_uses_its_index(self, bob: User, ran: list[Any]):
        created = table("note")
        body = field(created, "body", "text", is_indexed=True)
        open_table("note")
        body.type = "wysiwyg"
        saving.save_column(body)
        lamp = record("note", body="<p>bright <b>lamp</b></p>")
        old = record("note", body="dim lamp")
        plain = catalogue_loader.reload_if_changed().tables["note"].columns["body"].plain
        ask(f'UPDATE records.note SET "{plain}" = NULL WHERE sys_id = %s', old)
        ran.clear()
        assert set(column(api(bob).get("note", query="sys_idARElamp", fields="sys_id"), "sys_id")) == {lamp, old}
        assert column(api(bob).get("note", query="sys_idAREbright", fields="sys_id"), "sys_id") == [lamp]
        (name,) = [name for name, text in indexes_of("note").items() if "to_tsvector" in text]
        sql, values = ran[0]
        ask("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        explained = "\n".join(line for (line,) in database_statements.run_sql(f"EXPLAIN {sql}".encode(), values).rows())
        assert f'"{name}"' in explained or f"on {name}" in explained, explained

    def test_list_columns_always_have_an_index(self, note: Any):
        owners = field("note", "owners", "list", to="user")
        assert indexes_of("note")[f"I{owners.pk}"].startswith("gin (owners")

    def test_sort_by_long_text_does_not_expect_an_index(self, note: Any, bob: User, ran: list[Any]):
        field("note", "body", "text", is_indexed=True)
        field("note", "short", is_indexed=True)
        for number in range(3):
            record("note", body=str(number), short=str(number), name=str(number))
        for name, is_split in (("body", False), ("sys_created_by", False), ("short", True), ("sys_created_at", True)):
            first = api(bob).get("note", query=f"ORDERBY{name}", limit=1, fields="name")
            ran.clear()
            assert column(follow(bob, first), "name") == ["1"]
            assert ("UNION ALL" in ran[-1][0]) is is_split, name


@pytest.mark.parametrize(("kind", "most"), [("string", 255), ("text", 100_000), ("wysiwyg", 100_000)])
def test_column_with_too_long_text_cannot_be_indexed(note: Any, bob: User, kind: str, most: int):
    body = field("note", "body", kind)
    lamp = record("note", body="x " * (most // 2) + "yy")
    body.is_indexed = True
    with pytest.raises(ValidationError, match=f"more than {most:,} characters"):
        saving.save_column(body)
    data(api(bob).patch(f"note/{lamp}", {"body": "x " * (most // 2)}))
    saving.save_column(body)
    saving.save_column(body.refreshed())  # what is marked already is not looked through again


def test_length_of_formatted_text_is_that_of_its_plain_text(note: Any):
    body = field("note", "body", "wysiwyg")
    picture = "data:image/png;base64," + "A" * 120_000
    record("note", body=f'<p>Seen <img src="{picture}"></p>')
    body.is_indexed = True
    saving.save_column(body)


def test_indexed_text_becomes_a_string_only_if_all_values_are_short(note: Any):
    body = field("note", "body", "text", is_indexed=True)
    record("note", body="x" * 300)
    body.type, body.max_length = "string", 255
    with pytest.raises(ValidationError, match="more than 255 characters"):
        saving.save_column(body)


def test_slow_length_check_keeps_the_index(note: Any, monkeypatch: Any):
    body = field("note", "body", "text")
    record("note", body="x" * 200_000)
    body.is_indexed = True

    def cut_off(execute: Any, query: Any, *rest: Any) -> Any:
        if "octet_length" in str(query):
            query = "SELECT pg_sleep(5), %s, %s"
        return execute(query, *rest)

    ask("SET LOCAL statement_timeout = 200")
    with connection.execute_wrapper(cut_off):
        saving.save_column(body)
    ask("SET LOCAL statement_timeout = 0")
    assert body.refreshed().is_indexed


def test_pages_after_a_very_long_value_use_offsets(note: Any, bob: User):
    field("note", "body", "text")
    for number in range(4):
        record("note", body=f"{number}" + "".join(chr(0x4E00 + (number * 977 + at) % 20_000) for at in range(6_000)))
    seen_values, response = [], api(bob).get("note", query="ORDERBYbody", limit=1, fields="body")
    while True:
        seen_values += column(response, "body")
        if "Link" not in response:
            break
        assert len(response["Link"]) < 4_096
        assert f"sysparm_page={len(seen_values) + 1}" in response["Link"] and "sysparm_cursor" not in response["Link"]
        response = follow(bob, response)
        assert response.status_code == 200
    assert [body[0] for body in seen_values] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("order", ["ORDERBYbody", "ORDERBYshort^ORDERBYbody", "ORDERBYDESCbody"])
def test_list_continues_after_long_values(note: Any, bob: User, order: str):
    field("note", "body", "text")
    field("note", "short", is_indexed=True)
    results = []
    for number in range(9):
        long = "".join(chr(0x4E00 + (number * 977 + at) % 20_000) for at in range(6_000))
        body = f"{number}" + (long if number in (1, 2, 3, 6, 8) else "")
        results.append(body)
        record("note", body=body, short="same")
    response = api(bob).get("note", query=order, limit=1, fields="body")
    actual = column(response, "body")
    while "Link" in response:
        assert len(response["Link"]) < 4_096
        response = follow(bob, response)
        actual += column(response, "body")
    assert actual == (results[::-1] if "DESC" in order else results)


def test_deferred_record_keeps_the_returned_name(bob: User):
    table("plan", number_prefix="PLN", deferred_create=True)
    field("plan", "display_name")
    open_table("plan")
    created = [data(api(bob).post("plan", {}))[0] for _ in range(2)]
    tasks.create_deferred()
    for stored_rule in created:
        (read,) = data(api(bob).get(f"plan/{stored_rule['sys_id']}"))
        assert (read["number"], read["display_name"]) == (stored_rule["number"], stored_rule["display_name"])
    assert created[0]["display_name"] and created[0]["number"] != created[1]["number"]


class TestHeaders:
    def test_long_path_with_idempotency_key_is_answered_normally(self, note: Any, bob: User):
        path = "".join(f"{number:x}" for number in range(2_000))
        for headers in ({}, {"Idempotency-Key": "k"}):
            for response in (
                api(bob).post(path, {}, headers=headers), api(bob).patch(f"note/{path}", {}, headers=headers)
            ):  # fmt: skip
                assert response.status_code == 404

    def test_another_if_match_under_the_same_key_is_another_request(self, note: Any, bob: User):
        lamp = record("note", name="a")

        def send(tag: str) -> Any:
            headers = {"Idempotency-Key": "k", "If-Match": tag}
            return api(bob).patch(f"note/{lamp}", {"name": "b"}, headers=headers)

        assert send('"0-x"').status_code == 200
        assert send('"0-x"').status_code == 200, "the answer of the first"
        for tag in ('"1-x"', "*"):
            assert failed(send(tag)) == (409, "idempotency_mismatch", None)
        assert ask("SELECT sys_version FROM records.note") == [(1,)]

    def test_empty_key_is_refused(self, note: Any, bob: User):
        for key in ("", "x" * 10_000):
            response = api(bob).post("note", {"name": "a"}, headers={"Idempotency-Key": key})
            assert failed(response)[:2] == (400, "invalid_parameter")
        assert ask("SELECT count(*) FROM records.note") == [(0,)]

    @pytest.mark.parametrize("tag", ["0-x", '"0-x', '0-x"', "W/0-x", '"0-x" "1-x"', ",", " "])
    def test_malformed_if_match_is_refused(self, note: Any, bob: User, tag: str):
        lamp = record("note", name="a")
        for send in (api(bob).patch, api(bob).put):
            response = send(f"note/{lamp}", {"name": "b"}, headers={"If-Match": tag})
            assert failed(response) == (400, "invalid_parameter", "If-Match")
        assert failed(api(bob).delete(f"note/{lamp}", headers={"If-Match": tag}))[0] == 400
        assert ask("SELECT name FROM records.note") == [("a",)]


def test_record_with_600_columns_can_be_replaced(bob: User):
    wide = table("wide")
    open_table(wide)
    Column.objects.bulk_create(Column(table=wide, name=f"c{n}", label="x", type="string") for n in range(600))
    schema_editor.add_columns(wide, list(wide.columns.all()))
    State.increment_version()
    lamp = record("wide", c1="x", c599="y")
    (after,) = data(api(bob).put(f"wide/{lamp}", {"c1": "a"}, fields="c1,c599"))
    assert after == {"c1": "a", "c599": None}
    for operation in ("read", "write"):  # each asked of each column
        rule(operation, wide, "*", condition="c1=a")
    (after,) = data(api(bob).put(f"wide/{lamp}", {"c1": "a", "c2": "b"}, fields="c1,c2,c599"))
    assert after == {"c1": "a", "c2": "b", "c599": None}


class TestAmounts:
    BODY = '{"%s": %s}'

    @pytest.fixture
    def device(self, note: Any) -> str:
        for name, kind in (("price", "decimal"), ("code", "string"), ("tree", "json")):
            make_column(note, name, kind)
        return record("note")

    @pytest.mark.parametrize("amount", ["99999999999999.99", "0.1", "123456789012345678901234567890.5", "1.10"])
    def test_decimals_are_stored_exactly(self, device: str, bob: User, amount: str):
        for name in ("price", "code"):
            api(bob).patch(f"note/{device}", self.BODY % (name, amount))
        ((price, code),) = ask("SELECT price::text, code FROM records.note")
        assert price.rstrip("0") == amount.rstrip("0")
        assert code.rstrip("0") == amount.rstrip("0")

    def test_too_many_digits_are_refused_in_json(self, device: str, bob: User):
        for value in ("99999999999999.99", '{"a": [99999999999999.99]}'):
            response = api(bob).patch(f"note/{device}", self.BODY % ("tree", value))
            assert failed(response) == (422, "invalid_value", "tree")
        (after,) = data(api(bob).patch(f"note/{device}", json.dumps({"tree": {"a": [0.1, 5]}})))
        assert after["tree"] == {"a": [0.1, 5]}


def test_statement_cache_is_bounded_by_weight(note: Any, bob: User, monkeypatch: Any):
    """500 of 500 fields each, all different, would hold hundreds of megabytes."""
    names = [field("note", f"c{number}").name for number in range(12)]
    remaining = catalogue_loader.reload_if_changed().caches.statements
    monkeypatch.setattr(remaining, "limit", 200_000)

    def weight_of(*fields: str) -> int:
        before = remaining.weight
        assert api(bob).get("note", fields=",".join(fields), limit=1).status_code == 200
        return remaining.weight - before

    narrow = weight_of("name")
    wide = weight_of(*names)
    assert narrow > 0 and wide - narrow > 11 * read_plan.BYTES_PER_FIELD
    for number in range(40):
        weight_of(*names[number % 12 :], f"none{number}", *names[: number % 12])
        assert 0 < remaining.weight <= remaining.limit


def test_query_cache_is_bounded_by_weight(monkeypatch: pytest.MonkeyPatch):
    """As many of 200 conditions as the number of entries allowed were 80 MB."""
    remaining = parsed_query._query_cache
    monkeypatch.setattr(remaining, "limit", 1_000_000)
    for number in range(20):
        text = "^".join(f"a{index}={number}" for index in range(200))
        assert len(parsed_query.parse_query_text(text).conditions) == 200
        assert parsed_query.parse_query_text(text) is parsed_query.parse_query_text(text)
        assert 200 * parsed_query.BYTES_PER_CONDITION < remaining.weight <= remaining.limit


def test_caller_view_cache_is_bounded(note: Any, monkeypatch: pytest.MonkeyPatch):
    catalogue = catalogue_loader.reload_if_changed()
    one = caller_view.BYTES_PER_COLUMN * catalogue.column_count
    views = catalogue.caches.caller_views
    monkeypatch.setattr(views, "limit", 3 * one)
    for number in range(5):
        caller_view.view_for(catalogue, frozenset({f"role {number}"}))
        assert one <= views.weight <= 3 * one

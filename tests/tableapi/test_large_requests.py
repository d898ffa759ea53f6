"""Large requests: long values, many names, wide tables; also exact numbers, headers, indexes and caches."""

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
from tests.tableapi.designs import indexes_of, make_column, query_rows
from tests.tableapi.world import (
    api,
    column_values,
    data_of,
    error_of,
    field,
    next_page_url,
    open_table,
    record,
    rule,
    table,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def note(db: Any) -> Any:
    new_table = table("note")
    field("note", "name", is_display=True, is_indexed=True)
    open_table("note")
    return new_table


@pytest.fixture
def executed_statements(monkeypatch: Any) -> list[tuple[str, Any]]:
    """The executed statements with their values."""
    statements: list[tuple[str, Any]] = []
    original_fetch: Callable[..., Any] = statement_runner.fetch_bytes

    def record_and_run(statement: Any, inputs: Any, *alias: Any) -> Any:
        statements.append((statement.sql, statement.values(inputs)))
        return original_fetch(statement, inputs, *alias)

    monkeypatch.setattr(statement_runner, "fetch_bytes", record_and_run)
    return statements


def record_calls(monkeypatch: Any, module: Any, name: str) -> list[Any]:
    """Return a list that gets the arguments of each call."""
    calls: list[Any] = []
    original_function = getattr(module, name)

    def record_and_call(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return original_function(*args, **kwargs)

    monkeypatch.setattr(module, name, record_and_call)
    return calls


def get_next_page(user: User, response: Any) -> Any:
    url = urlsplit(next_page_url(response))
    return api(user).get(f"{url.path}?{url.query}")


class TestListsByDisplayValue:
    @pytest.fixture
    def note_id(self, note: Any) -> str:
        table("box")
        field("box", "notes", "list", target="note")
        open_table("box")
        return record("note", name="a")

    def test_equal_names_are_looked_up_once(self, note_id: str, bob: User, executed_statements: list[Any]):
        response = api(bob).post("box", {"notes": ["a"] * 20_000}, input_display_value=1, exclude_reference_link=1)
        assert column_values(response, "notes") == [[note_id]]
        assert len(executed_statements) < 10

    def test_many_names_are_looked_up_in_one_query(self, note_id: str, bob: User, executed_statements: list[Any]):
        ids = [note_id, *(record("note", name=f"n{number}") for number in range(50))]
        names = ["a", *(f"n{number}" for number in range(50))]
        response = api(bob).post("box", {"notes": names}, input_display_value=1, exclude_reference_link=1)
        assert column_values(response, "notes") == [ids]
        assert len(executed_statements) < 10
        for invalid_names in ([*names, "nobody"], [*names, "A"]):
            response = api(bob).post("box", {"notes": invalid_names}, input_display_value=1)
            assert error_of(response) == (422, "invalid_value", "notes")
        record("note", name="n7")
        assert error_of(api(bob).post("box", {"notes": names}, input_display_value=1))[0] == 422, "n7 is ambiguous"

    def test_more_than_a_thousand_names_are_refused_immediately(
        self, note_id: str, bob: User, executed_statements: list[Any]
    ):
        query_rows("INSERT INTO records.note (name) SELECT 'x' || number FROM generate_series(0, 1000) number")
        names = [f"x{number}" for number in range(1_001)]
        response = api(bob).post("box", {"notes": names}, input_display_value=1)
        assert error_of(response) == (422, "invalid_value", "notes")
        assert len(executed_statements) < 10
        response = api(bob).post("box", {"notes": names[1:]}, input_display_value=1, exclude_reference_link=1)
        assert len(column_values(response, "notes")[0]) == 1_000


class TestUserFunctionInBooleanCondition:
    CONDITION = "active=javascript:gs.getUserID()"

    def test_form_refuses_the_condition(self, note: Any):
        field("note", "active", "boolean")
        rule = Rule(operation="read", table=note, condition=self.CONDITION)
        with pytest.raises(ValidationError):
            saving.validate(rule)

    def test_stored_rule_matches_nothing(self, bob: User):
        note_table = table("note")
        field(note_table, "active", "boolean")
        note_id = record("note", active=True)
        stored_rule = rule("read", "note")
        Rule.objects.filter(pk=stored_rule.pk).update(condition=self.CONDITION)
        State.increment_version()
        assert api(bob).get(f"note/{note_id}").status_code == 404
        response = api(bob).get("note")
        assert response.status_code == 404 or data_of(response) == []


class TestCaches:
    def test_pages_share_one_statement(self, note: Any, bob: User, monkeypatch: Any):
        for number in range(6):
            record("note", name=str(number))
        calls = record_calls(monkeypatch, select, "page_statement")
        responses = [
            api(bob).get("note", query="ORDERBYname", limit=1, page=page, fields="name") for page in range(2, 7)
        ]
        assert [column_values(response, "name") for response in responses] == [["1"], ["2"], ["3"], ["4"], ["5"]]
        assert len(calls) == 1

    @pytest.mark.parametrize(
        ("headers", "module", "function_name"),
        [({}, single_statement, "_statement"), ({"If-Match": "*"}, permission_queries, "locking_statement")],
    )
    def test_key_order_of_a_body_does_not_change_the_statement(
        self, note: Any, bob: User, monkeypatch: Any, headers: dict[str, str], module: Any, function_name: str
    ):
        field("note", "colour")
        note_id = record("note")
        calls = record_calls(monkeypatch, module, function_name)
        for body in ({"name": "a", "colour": "b"}, {"colour": "c", "name": "d"}):
            (record_after,) = data_of(api(bob).patch(f"note/{note_id}", body, headers=headers))
            assert {name: record_after[name] for name in body} == body
        assert len(calls) == 1

    def test_old_catalogues_are_released(self, note: Any, bob: User):
        caller = api(bob, credential="key")
        catalogue_references = []
        for number in range(8):
            field("note", f"c{number}")
            assert caller.get("note").status_code == 200
            catalogue_references.append(weakref.ref(catalogue_loader.cached_catalogue()))
        gc.collect()
        assert [reference() for reference in catalogue_references[:-1]] == [None] * 7


class TestIndexes:
    def test_word_search_in_converted_text_uses_its_index(self, bob: User, executed_statements: list[Any]):
        note_table = table("note")
        body_column = field(note_table, "body", "text", is_indexed=True)
        open_table("note")
        body_column.type = "wysiwyg"
        saving.save_column(body_column)
        new_note = record("note", body="<p>bright <b>lamp</b></p>")
        converted_note = record("note", body="dim lamp")
        plain_column = catalogue_loader.reload_if_changed().tables["note"].columns["body"].plain_text_name
        query_rows(f'UPDATE records.note SET "{plain_column}" = NULL WHERE sys_id = %s', converted_note)
        executed_statements.clear()
        assert set(column_values(api(bob).get("note", query="sys_idARElamp", fields="sys_id"), "sys_id")) == {
            new_note,
            converted_note,
        }
        assert column_values(api(bob).get("note", query="sys_idAREbright", fields="sys_id"), "sys_id") == [new_note]
        (index_name,) = [index_name for index_name, text in indexes_of("note").items() if "to_tsvector" in text]
        sql, values = executed_statements[0]
        query_rows("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        query_plan = "\n".join(
            line for (line,) in database_statements.run_sql(f"EXPLAIN {sql}".encode(), values).rows()
        )
        assert f'"{index_name}"' in query_plan or f"on {index_name}" in query_plan, query_plan

    def test_list_columns_always_have_an_index(self, note: Any):
        owners_column = field("note", "owners", "list", target="user")
        assert indexes_of("note")[f"I{owners_column.pk}"].startswith("gin (owners")

    def test_sort_by_long_text_does_not_expect_an_index(self, note: Any, bob: User, executed_statements: list[Any]):
        field("note", "body", "text", is_indexed=True)
        field("note", "short", is_indexed=True)
        for number in range(3):
            record("note", body=str(number), short=str(number), name=str(number))
        for name, has_index in (("body", False), ("sys_created_by", False), ("short", True), ("sys_created_at", True)):
            first_page = api(bob).get("note", query=f"ORDERBY{name}", limit=1, fields="name")
            executed_statements.clear()
            assert column_values(get_next_page(bob, first_page), "name") == ["1"]
            assert ("UNION ALL" in executed_statements[-1][0]) is has_index, name


@pytest.mark.parametrize(("type_name", "max_length"), [("string", 255), ("text", 100_000), ("wysiwyg", 100_000)])
def test_column_with_too_long_text_cannot_be_indexed(note: Any, bob: User, type_name: str, max_length: int):
    body_column = field("note", "body", type_name)
    note_id = record("note", body="x " * (max_length // 2) + "yy")
    body_column.is_indexed = True
    with pytest.raises(ValidationError, match=rf"exceed the maximum length \({max_length:,}\)"):
        saving.save_column(body_column)
    data_of(api(bob).patch(f"note/{note_id}", {"body": "x " * (max_length // 2)}))
    saving.save_column(body_column)
    saving.save_column(body_column.refreshed())  # already marked columns are not checked again


def test_length_of_formatted_text_is_that_of_its_plain_text(note: Any):
    body_column = field("note", "body", "wysiwyg")
    picture = "data:image/png;base64," + "A" * 120_000
    record("note", body=f'<p>Seen <img src="{picture}"></p>')
    body_column.is_indexed = True
    saving.save_column(body_column)


def test_indexed_text_becomes_a_string_only_if_all_values_are_short(note: Any):
    body_column = field("note", "body", "text", is_indexed=True)
    record("note", body="x" * 300)
    body_column.type, body_column.max_length = "string", 255
    with pytest.raises(ValidationError, match=r"exceed the maximum length \(255\)"):
        saving.save_column(body_column)


def test_slow_length_check_keeps_the_index(note: Any, monkeypatch: Any):
    body_column = field("note", "body", "text")
    record("note", body="x" * 200_000)
    body_column.is_indexed = True

    def execute_slowly(execute: Any, query: Any, *arguments: Any) -> Any:
        if "octet_length" in str(query):
            query = "SELECT pg_sleep(5), %s, %s"
        return execute(query, *arguments)

    query_rows("SET LOCAL statement_timeout = 200")
    with connection.execute_wrapper(execute_slowly):
        saving.save_column(body_column)
    query_rows("SET LOCAL statement_timeout = 0")
    assert body_column.refreshed().is_indexed


def test_pages_after_a_very_long_value_use_offsets(note: Any, bob: User):
    field("note", "body", "text")
    for number in range(4):
        record(
            "note",
            body=f"{number}" + "".join(chr(0x4E00 + (number * 977 + offset) % 20_000) for offset in range(6_000)),
        )
    listed_bodies, response = [], api(bob).get("note", query="ORDERBYbody", limit=1, fields="body")
    while True:
        listed_bodies += column_values(response, "body")
        if "Link" not in response:
            break
        assert len(response["Link"]) < 4_096
        assert f"sysparm_page={len(listed_bodies) + 1}" in response["Link"] and "sysparm_cursor" not in response["Link"]
        response = get_next_page(bob, response)
        assert response.status_code == 200
    assert [body[0] for body in listed_bodies] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("order", ["ORDERBYbody", "ORDERBYshort^ORDERBYbody", "ORDERBYDESCbody"])
def test_list_continues_after_long_values(note: Any, bob: User, order: str):
    field("note", "body", "text")
    field("note", "short", is_indexed=True)
    bodies = []
    for number in range(9):
        long_text = "".join(chr(0x4E00 + (number * 977 + offset) % 20_000) for offset in range(6_000))
        body = f"{number}" + (long_text if number in (1, 2, 3, 6, 8) else "")
        bodies.append(body)
        record("note", body=body, short="same")
    response = api(bob).get("note", query=order, limit=1, fields="body")
    listed_bodies = column_values(response, "body")
    while "Link" in response:
        assert len(response["Link"]) < 4_096
        response = get_next_page(bob, response)
        listed_bodies += column_values(response, "body")
    assert listed_bodies == (bodies[::-1] if "DESC" in order else bodies)


def test_deferred_record_keeps_the_returned_name(bob: User):
    table("plan", number_prefix="PLN", deferred_create=True)
    field("plan", "display_name")
    open_table("plan")
    created_records = [data_of(api(bob).post("plan", {}))[0] for _ in range(2)]
    tasks.create_deferred()
    for created_record in created_records:
        (stored_record,) = data_of(api(bob).get(f"plan/{created_record['sys_id']}"))
        assert (stored_record["number"], stored_record["display_name"]) == (
            created_record["number"],
            created_record["display_name"],
        )
    assert created_records[0]["display_name"] and created_records[0]["number"] != created_records[1]["number"]


class TestHeaders:
    def test_unknown_long_path_with_idempotency_key_is_404(self, note: Any, bob: User):
        path = "".join(f"{number:x}" for number in range(2_000))
        for headers in ({}, {"Idempotency-Key": "k"}):
            for response in (
                api(bob).post(path, {}, headers=headers), api(bob).patch(f"note/{path}", {}, headers=headers)
            ):  # fmt: skip
                assert response.status_code == 404

    def test_same_key_with_another_if_match_is_another_request(self, note: Any, bob: User):
        note_id = record("note", name="a")

        def send(tag: str) -> Any:
            headers = {"Idempotency-Key": "k", "If-Match": tag}
            return api(bob).patch(f"note/{note_id}", {"name": "b"}, headers=headers)

        assert send('"0-x"').status_code == 200
        assert send('"0-x"').status_code == 200, "the stored response"
        for tag in ('"1-x"', "*"):
            assert error_of(send(tag)) == (409, "idempotency_mismatch", None)
        assert query_rows("SELECT sys_version FROM records.note") == [(1,)]

    def test_empty_or_too_long_key_is_refused(self, note: Any, bob: User):
        for key in ("", "x" * 10_000):
            response = api(bob).post("note", {"name": "a"}, headers={"Idempotency-Key": key})
            assert error_of(response)[:2] == (400, "invalid_parameter")
        assert query_rows("SELECT count(*) FROM records.note") == [(0,)]

    @pytest.mark.parametrize("tag", ["0-x", '"0-x', '0-x"', "W/0-x", '"0-x" "1-x"', ",", " "])
    def test_malformed_if_match_is_refused(self, note: Any, bob: User, tag: str):
        note_id = record("note", name="a")
        for write in (api(bob).patch, api(bob).put):
            response = write(f"note/{note_id}", {"name": "b"}, headers={"If-Match": tag})
            assert error_of(response) == (400, "invalid_parameter", "If-Match")
        assert error_of(api(bob).delete(f"note/{note_id}", headers={"If-Match": tag}))[0] == 400
        assert query_rows("SELECT name FROM records.note") == [("a",)]


def test_record_with_600_columns_can_be_read_and_replaced(bob: User):
    wide_table = table("wide")
    open_table(wide_table)
    Column.objects.bulk_create(
        Column(table=wide_table, name=f"c{number}", label="x", type="string") for number in range(600)
    )
    schema_editor.add_columns(wide_table, list(wide_table.columns.all()))
    State.increment_version()
    wide_id = record("wide", c1="x", c599="y")
    (full_record,) = data_of(api(bob).get(f"wide/{wide_id}"))
    assert data_of(api(bob).get("wide")) == [full_record]
    returned_columns = {name: value for name, value in full_record.items() if name.startswith("c")}
    assert returned_columns == {f"c{number}": {1: "x", 599: "y"}.get(number) for number in range(600)}
    (record_after,) = data_of(api(bob).put(f"wide/{wide_id}", {"c1": "a"}, fields="c1,c599"))
    assert record_after == {"c1": "a", "c599": None}
    for operation in ("read", "write"):  # these rules apply to each column
        rule(operation, wide_table, "*", condition="c1=a")
    (record_after,) = data_of(api(bob).put(f"wide/{wide_id}", {"c1": "a", "c2": "b"}, fields="c1,c2,c599"))
    assert record_after == {"c1": "a", "c2": "b", "c599": None}


class TestExactNumbers:
    BODY_TEMPLATE = '{"%s": %s}'

    @pytest.fixture
    def note_id(self, note: Any) -> str:
        for name, type_name in (("price", "decimal"), ("code", "string"), ("tree", "json")):
            make_column(note, name, type_name)
        return record("note")

    @pytest.mark.parametrize("amount", ["99999999999999.99", "0.1", "123456789012345678901234567890.5", "1.10"])
    def test_decimals_are_stored_exactly(self, note_id: str, bob: User, amount: str):
        for name in ("price", "code"):
            api(bob).patch(f"note/{note_id}", self.BODY_TEMPLATE % (name, amount))
        ((price, code),) = query_rows("SELECT price::text, code FROM records.note")
        assert price.rstrip("0") == amount.rstrip("0")
        assert code.rstrip("0") == amount.rstrip("0")

    def test_too_many_digits_are_refused_in_json(self, note_id: str, bob: User):
        for value in ("99999999999999.99", '{"a": [99999999999999.99]}'):
            response = api(bob).patch(f"note/{note_id}", self.BODY_TEMPLATE % ("tree", value))
            assert error_of(response) == (422, "invalid_value", "tree")
        (record_after,) = data_of(api(bob).patch(f"note/{note_id}", json.dumps({"tree": {"a": [0.1, 5]}})))
        assert record_after["tree"] == {"a": [0.1, 5]}


def test_statement_cache_is_bounded_by_weight(note: Any, bob: User, monkeypatch: Any):
    """500 different statements of 500 fields each would take hundreds of megabytes."""
    names = [field("note", f"c{number}").name for number in range(12)]
    statement_cache = catalogue_loader.reload_if_changed().caches.statements
    monkeypatch.setattr(statement_cache, "max_weight", 200_000)

    def added_weight(*fields: str) -> int:
        weight_before = statement_cache.weight
        assert api(bob).get("note", fields=",".join(fields), limit=1).status_code == 200
        return statement_cache.weight - weight_before

    narrow_weight = added_weight("name")
    wide_weight = added_weight(*names)
    assert narrow_weight > 0 and wide_weight - narrow_weight > 11 * read_plan.BYTES_PER_FIELD
    for number in range(40):
        added_weight(*names[number % 12 :], f"none{number}", *names[: number % 12])
        assert 0 < statement_cache.weight <= statement_cache.max_weight


def test_query_cache_is_bounded_by_weight(monkeypatch: pytest.MonkeyPatch):
    """Bounded only by the number of entries, queries of 200 conditions would take 80 MB."""
    query_cache = parsed_query._query_cache
    monkeypatch.setattr(query_cache, "max_weight", 1_000_000)
    for number in range(20):
        text = "^".join(f"a{index}={number}" for index in range(200))
        assert len(parsed_query.parse_query_text(text).conditions) == 200
        assert parsed_query.parse_query_text(text) is parsed_query.parse_query_text(text)
        assert 200 * parsed_query.BYTES_PER_CONDITION < query_cache.weight <= query_cache.max_weight


def test_caller_view_cache_is_bounded(note: Any, monkeypatch: pytest.MonkeyPatch):
    catalogue = catalogue_loader.reload_if_changed()
    bytes_per_view = caller_view.BYTES_PER_COLUMN * catalogue.column_count
    view_cache = catalogue.caches.caller_views
    monkeypatch.setattr(view_cache, "max_weight", 3 * bytes_per_view)
    for number in range(5):
        caller_view.view_for(catalogue, frozenset({f"role {number}"}))
        assert bytes_per_view <= view_cache.weight <= 3 * bytes_per_view

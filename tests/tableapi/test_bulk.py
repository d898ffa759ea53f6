"""`/rest/v1/bulk/{table}` and `/rest/v1/upsert/{table}`."""

import threading
from typing import Any

import pytest
from django.db import DataError, connection

from accounts.models import User
from system.models import Change, DeletionLogEntry
from tableapi.bulk import bulk_write, row_insert
from tableapi.models import Table
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, errors_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db
BULK, UPSERT = "/rest/v1/bulk/part", "/rest/v1/upsert/part"


@pytest.fixture
def closed_part(db: Any) -> Table:
    table("shop")
    field("shop", "name")
    new_table = table("part", number_prefix="PRT")
    field("part", "name")
    field("part", "code", is_unique=True)
    field("part", "quantity", "integer", default_value="1")
    field("part", "shop", target="shop")
    field("part", "data", "json")
    return new_table


@pytest.fixture
def part(closed_part: Table) -> Table:
    open_table("shop")
    open_table(closed_part)
    return closed_part


def stored_names() -> list[str]:
    return [name for (name,) in query_rows("SELECT name FROM records.part ORDER BY number")]


def test_records_are_created_in_order_with_one_statement(part: Table, bob: User):
    shop_id = record("shop", name="North")
    bodies = [{"name": f"n{number}", "quantity": number, "shop": shop_id} for number in range(50)]
    with captured_statements() as statements:
        response = api(bob).post(BULK, bodies)
    entries = data_of(response)
    assert response.status_code == 201 and len({entry["sys_id"] for entry in entries}) == 50
    assert [entry["status"] for entry in entries] == [201] * 50
    assert stored_names() == [f"n{number}" for number in range(50)]
    assert len([sql for sql in statements if "INSERT INTO records" in sql]) == 1
    stored_rows = query_rows("SELECT name, sys_created_by FROM records.part WHERE sys_id = %s", entries[7]["sys_id"])
    assert stored_rows == [("n7", bob.pk)]
    changes = Change.objects.filter(record_id__in=[entry["sys_id"] for entry in entries])
    assert len(changes) == 50 and {change.changed_by for change in changes} == {bob.pk}


def test_records_with_different_columns_are_created_in_order(part: Table, bob: User):
    bodies = [
        {"name": "a"},
        {"name": "b"},
        {"name": "c", "data": {"x": 1}},
        {"name": "d"},
        {"name": "e", "quantity": 3},
    ]
    assert len(data_of(api(bob).post(BULK, bodies))) == 5
    assert stored_names() == list("abcde")
    assert query_rows("SELECT quantity FROM records.part ORDER BY number") == [(1,), (1,), (1,), (1,), (3,)]


@pytest.mark.parametrize(
    ("invalid_body", "error"),
    [({"name": "x", "quantity": "many"}, (422, "invalid_value", "quantity")),
     ({"name": "x", "none": 1}, (400, "unknown_field", "none")),
     ({"name": "x", "shop": "0" * 18}, (422, "invalid_value", "shop")),
     ({"name": "x", "code": "taken"}, (409, "duplicate", "code"))],
)  # fmt: skip
def test_one_invalid_record_prevents_all_writes(part: Table, bob: User, invalid_body: dict[str, Any], error: Any):
    record("part", name="old", code="taken")
    for bodies in ([{"name": "a"}, {"name": "b"}, invalid_body], [{"name": "a"}, invalid_body, {"name": "b"}]):
        response = api(bob).post(BULK, bodies)
        assert error_of(response) == error
        assert response.json()["errors"][0]["position"] == bodies.index(invalid_body)
    assert stored_names() == ["old"]
    assert Change.objects.filter(table_key=part.pk).count() <= 1


def test_on_error_continue_writes_valid_records_and_reports_each(part: Table, bob: User):
    bodies = [{"name": "a"}, {"name": "b", "quantity": "many"}, {"name": "c", "code": "1"}, {"name": "d", "code": "1"}]
    response = api(bob).send("POST", f"{BULK}?on_error=continue", bodies)
    assert response.status_code == 200
    assert [entry["status"] for entry in data_of(response)] == [201, 422, 201, 409]
    assert data_of(response)[1]["errors"][0]["code"] == "invalid_value"
    assert stored_names() == ["a", "c"]


def test_rules_apply_to_each_record(closed_part: Table, bob: User):
    rule("read", "part")
    rule("create", "part", condition="quantity<5")
    rule("create", "part", "code", roles=["itil"])
    assert api(bob).post(BULK, [{"name": "a", "quantity": 1}, {"name": "b", "quantity": 9}]).status_code == 403
    response = api(bob).post(BULK, [{"name": "a"}, {"name": "b", "code": "1"}])
    assert (response.status_code, response.json()["errors"][0]["position"]) == (403, 1)
    assert stored_names() == []
    assert api(bob).post(BULK, [{"name": "a", "quantity": 1}, {"name": "b", "quantity": 2}]).status_code == 201


def test_unreadable_records_can_be_created(closed_part: Table, bob: User):
    rule("create", "part")
    assert api(bob).post(BULK, [{"name": "a"}, {"name": "b"}]).status_code == 201
    assert stored_names() == ["a", "b"]


def test_reference_to_a_hidden_record_is_refused_like_a_missing_one(closed_part: Table, bob: User):
    open_table("part")
    rule("read", "shop", condition="name!=Secret")
    hidden_id = record("shop", name="Secret")
    responses = [api(bob).post(BULK, [{"name": "a"}, {"shop": sys_id}]) for sys_id in (hidden_id, "0" * 18)]
    assert responses[0].content == responses[1].content and responses[0].status_code == 422


def test_records_are_changed_by_id(part: Table, bob: User):
    ids = [record("part", name=name, quantity=3) for name in "ab"]
    body = [{"sys_id": ids[0], "name": "A"}, {"sys_id": ids[1], "quantity": 5}]
    assert data_of(api(bob).patch(BULK, body)) == [{"sys_id": sys_id, "status": 200} for sys_id in ids]
    assert sorted(query_rows("SELECT name, quantity FROM records.part")) == [("A", 3), ("b", 5)]
    assert error_of(api(bob).patch(BULK, [{"name": "x"}])) == (400, "invalid_parameter", "sys_id")
    response = api(bob).patch(BULK, [{"sys_id": ids[0], "name": "x"}, {"sys_id": "1", "name": "x"}])
    assert (response.status_code, response.json()["errors"][0]["position"]) == (404, 1)
    assert sorted(query_rows("SELECT name FROM records.part")) == [("A",), ("b",)]


def test_records_are_changed_by_query_if_the_count_is_as_expected(part: Table, bob: User):
    for name in "abc":
        record("part", name=name, quantity=1)
    body = {"sysparm_query": "name!=c", "expected": 3, "values": {"quantity": 7}}
    assert error_of(api(bob).patch(BULK, body)) == (409, "count_differs", "expected")
    assert len(data_of(api(bob).patch(BULK, body | {"expected": 2}))) == 2
    assert sorted(query_rows("SELECT name, quantity FROM records.part")) == [("a", 7), ("b", 7), ("c", 1)]


def test_expected_count_includes_only_readable_records(closed_part: Table, bob: User):
    rule("read", "part", condition="quantity<5")
    rule("write", "part")
    for quantity in (1, 2, 9):
        record("part", quantity=quantity)
    body = {"sysparm_query": "quantity>0", "expected": 2, "values": {"name": "x"}}
    assert len(data_of(api(bob).patch(BULK, body))) == 2


def test_records_are_deleted_by_id_and_by_query(part: Table, bob: User):
    ids = [record("part", name=name) for name in "abcd"]
    assert len(data_of(api(bob).send("DELETE", BULK, [{"sys_id": ids[0]}], {"Content-Type": "application/json"}))) == 1
    body = {"sysparm_query": "nameINb,c", "expected": 2}
    assert len(data_of(api(bob).send("DELETE", BULK, body, {"Content-Type": "application/json"}))) == 2
    assert query_rows("SELECT name FROM records.part") == [("d",)]
    assert DeletionLogEntry.objects.filter(table="part").count() == 3


QUERY_BODY = {"sysparm_query": "name=a", "expected": 1, "values": {}}


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("POST", ""),
        ("POST", {"name": "a"}),
        ("POST", ["a"]),
        ("POST", [{}] * 10_001),
        ("PATCH", "x"),
        ("PATCH", QUERY_BODY | {"sysparm_query": ""}),
        ("PATCH", QUERY_BODY | {"sysparm_query": "^"}),
        ("PATCH", QUERY_BODY | {"sysparm_query": "^EQ"}),
        ("PATCH", QUERY_BODY | {"sysparm_query": "ORDERBYname"}),
        ("PATCH", QUERY_BODY | {"sysparm_query": "none=a"}),
        ("PATCH", QUERY_BODY | {"sysparm_query": "name~a"}),
        ("PATCH", QUERY_BODY | {"expected": True}),
        ("PATCH", QUERY_BODY | {"values": None}),
        ("PATCH", QUERY_BODY | {"more": 1}),
        ("PATCH", {"expected": 1, "values": {}}),
        ("PATCH", {"sysparm_query": "name=a", "values": {}}),
        ("DELETE", QUERY_BODY),
        ("DELETE", {"sysparm_query": "^ORDERBYDESCname", "expected": 1}),
    ],
)
def test_invalid_bodies_are_refused(part: Table, bob: User, method: str, body: Any):
    record("part", name="a")
    response = api(bob).send(method, BULK, body, {"Content-Type": "application/json"})
    assert response.status_code == 400 and errors_of(response)
    assert stored_names() == ["a"]


def test_bulk_requests_are_idempotent(part: Table, bob: User):
    headers = {"Idempotency-Key": "k"}
    responses = [api(bob).post(BULK, [{"name": "a"}, {"name": "b"}], headers=headers) for _ in range(2)]
    assert responses[0].content == responses[1].content and stored_names() == ["a", "b"]


def test_records_with_omitted_columns_are_created_in_one_statement(part: Table, bob: User):
    bodies = [{"name": "a"}, {"name": "b", "code": "1"}, {"name": "c", "quantity": 5}]
    with captured_statements() as statements:
        data_of(api(bob).post(BULK, bodies))
    assert len([sql for sql in statements if "INSERT INTO records" in sql]) == 1
    assert query_rows("SELECT name, code, quantity FROM records.part ORDER BY number") == [
        ("a", None, 1), ("b", "1", 1), ("c", None, 5)
    ]  # fmt: skip


def test_unreadable_ids_are_null_in_the_response(closed_part: Table, bob: User):
    for operation in ("read", "write"):
        rule(operation, "part")
    rule("read", "part", "sys_id", roles=["itil"])
    record("part", name="a")
    body = {"sysparm_query": "name=a", "expected": 1, "values": {"name": "b"}}
    assert data_of(api(bob).patch(BULK, body)) == [{"sys_id": None, "status": 200}]


def test_catalogue_records_are_created_in_order(alice: User):
    bodies = [{"name": name, "label": name} for name in ("first", "second")]
    assert api(alice).post("/rest/v1/bulk/sys_db_table", bodies).status_code == 201
    assert api(alice).get("/rest/v1/table/second").status_code == 200


def test_value_that_cannot_be_stored_refuses_only_its_record(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    def raise_data_error(*_: Any, **__: Any) -> Any:
        raise DataError

    monkeypatch.setattr(row_insert, "insert_records", lambda *_: None)
    monkeypatch.setattr("tableapi.write.single_statement._run", raise_data_error)
    response = api(bob).send("POST", f"{BULK}?on_error=continue", [{"name": "a"}, {"name": "b"}])
    assert [entry["status"] for entry in data_of(response)] == [400, 400]


def test_records_written_one_by_one_have_a_time_limit(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bulk_write, "MAX_BULK_S", -1.0)
    assert error_of(api(bob).post(BULK, [{"name": "a", "data": {}}])) == (413, "too_large", None)


def test_many_records_are_created_in_several_statements(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_insert, "MAX_ROWS", 10)
    assert len(data_of(api(bob).post(BULK, [{"name": f"n{number:02}"} for number in range(35)]))) == 35
    assert stored_names() == [f"n{number:02}" for number in range(35)]


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [("POST", BULK, []), ("PATCH", BULK, []), ("DELETE", BULK, []), ("POST", UPSERT, {"name": "a"})],
)
def test_only_administrators_can_import(part: Table, bob: User, method: str, url: str, body: Any):
    response = api(bob).send(
        method, f"{url}?sysparm_import=1&sysparm_key=name", body, {"Content-Type": "application/json"}
    )
    assert (response.status_code, error_of(response)[2]) == (403, "sysparm_import")


def test_upsert_creates_and_then_changes_a_record(part: Table, bob: User):
    creation = api(bob).post(f"{UPSERT}?sysparm_key=code", {"code": "x1", "name": "a"})
    assert creation.status_code == 201 and creation["Location"].endswith(data_of(creation)[0]["sys_id"])
    change = api(bob).post(f"{UPSERT}?sysparm_key=code", {"code": "X1", "quantity": 4})
    assert change.status_code == 200 and data_of(change)[0]["sys_id"] == data_of(creation)[0]["sys_id"]
    assert query_rows("SELECT name, code, quantity FROM records.part") == [("a", "X1", 4)]


def test_upsert_with_if_match_creates_nothing(part: Table, bob: User):
    for tag in ("*", '"0-1"'):
        headers = {"If-Match": tag}
        response = api(bob).post("/rest/v1/upsert/part?sysparm_key=code", {"code": "P1"}, headers=headers)
        assert error_of(response) == (412, "stale", None)
    assert data_of(api(bob).get("part")) == []


def test_upsert_of_a_hidden_record_is_refused_like_a_duplicate(closed_part: Table, bob: User):
    open_table("shop")
    rule("read", "part", condition="quantity<5")
    rule("create", "part")
    rule("write", "part")
    record("part", code="x1", quantity=9)
    body = {"code": "x1", "quantity": 1}
    responses = [api(bob).post("part", body), api(bob).post(f"{UPSERT}?sysparm_key=code", body)]
    assert error_of(responses[0]) == (409, "duplicate", "code")
    assert responses[0].content == responses[1].content


@pytest.mark.parametrize(
    ("key", "body", "error"),
    [
        ("", {"code": "1"}, (400, "invalid_parameter", "sysparm_key")),
        ("name", {"name": "1"}, (400, "invalid_parameter", "sysparm_key")),
        ("number", {"number": "PRT1"}, (400, "invalid_parameter", "sysparm_key")),
        ("none", {"code": "1"}, (400, "unknown_field", "none")),
        ("code", {"name": "1"}, (400, "invalid_parameter", "code")),
        ("code", {"code": None}, (400, "invalid_parameter", "code")),
    ],
)
def test_invalid_upserts_are_refused(part: Table, bob: User, key: str, body: dict[str, Any], error: Any):
    assert error_of(api(bob).post(f"{UPSERT}?sysparm_key={key}", body)) == error
    assert stored_names() == []


def test_upsert_compares_keys_like_the_unique_index(alice: User):
    path = "/rest/v1/upsert/sys_group?sysparm_key=name"
    statuses = [api(alice).post(path, {"name": name}).status_code for name in ("Network", "NETWORK", "Network")]
    assert statuses == [201, 201, 200]


@pytest.mark.django_db(transaction=True)
def test_simultaneous_upserts_create_one_record(part: Table, bob: User):
    statuses: list[int] = []

    def send(number: int) -> None:
        try:
            statuses.append(api(bob).post(f"{UPSERT}?sysparm_key=code", {"code": "x", "quantity": number}).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 7 + [201]
    assert query_rows("SELECT count(*) FROM records.part") == [(1,)]

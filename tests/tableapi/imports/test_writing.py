"""What an import writes: mapping, references, modes, errors by line, dry runs, undo."""

import json
from typing import Any

import pytest

from accounts.models import User
from tableapi.imports import jobs, steps
from tableapi.models import Import, ImportPiece, Table
from tests.tableapi.designs import query_rows
from tests.tableapi.imports.files import JSON_LINES, counts, line_errors, run, send
from tests.tableapi.world import api, data_of, error_of, errors_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db


def stored(columns: str = "name") -> list[Any]:
    return query_rows(f"SELECT {columns} FROM records.part ORDER BY number")


def undo(user: User, state: dict[str, Any]) -> dict[str, Any]:
    (undone,) = data_of(api(user).post(f"/rest/v1/import/part/{state['sys_id']}/undo"))
    return dict(undone)


def test_names_are_matched_by_column_and_label(part: Table, bob: User):
    field("part", "size_in_cm", "integer", label="Size (cm)")
    state = run(bob, "part", "NAME,size (CM),sys_id\na,3,x\n")
    assert [item["column"] for item in state["columns"]] == ["name", "size_in_cm", None]
    assert stored("name, size_in_cm") == [("a", 3)]


def test_unknown_name_fails_the_import_until_it_is_mapped(part: Table, bob: User):
    content = "Title,Remark\na,x\n"
    state = run(bob, "part", content)
    assert state["state"] == "failed" and [error["field"] for error in state["error"]] == ["Title", "Remark"]
    path = f"/rest/v1/import/part/{state['sys_id']}/run"
    (again,) = data_of(api(bob).post(f'{path}?mapping={{"Title":"name","Remark":null}}'))
    assert again["state"] == "done" and stored() == [("a",)]
    # The mapping is remembered for the table.
    assert run(bob, "part", content)["created"] == 1
    assert run(bob, "part", "Title,Note\na,x\n")["state"] == "failed"
    assert error_of(api(bob).post(path)) == (409, "not_repeatable", None)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"mapping": "x"}, (400, "invalid_parameter", "mapping")),
     ({"mapping": '{"a": "none"}'}, (400, "unknown_field", "mapping")),
     ({"mode": "merge"}, (400, "invalid_parameter", "mode")),
     ({"mode": "upsert"}, (400, "invalid_parameter", "key")),
     ({"mode": "upsert", "key": "name"}, (400, "invalid_parameter", "key")),
     ({"mode": "upsert", "key": "sys_id"}, (400, "invalid_parameter", "key")),
     ({"delimiter": "ab"}, (400, "invalid_parameter", "delimiter")),
     ({"encoding": "zip"}, (400, "invalid_parameter", "encoding")),
     ({"time_zone": "Mars"}, (400, "invalid_parameter", "time_zone")),
     ({"sysparm_import": "1"}, (403, "access_denied", "sysparm_import"))],
)  # fmt: skip
def test_invalid_options_are_refused(part: Table, bob: User, options: dict[str, str], error: Any):
    assert error_of(send(bob, "part", "name\na\n", **options)) == error
    assert not Import.objects.exists()


def test_references_are_found_by_display_value_unique_value_or_id(part: Table, bob: User):
    north = record("shop", name="North", code="n1")
    south = record("shop", name="South", code="North of the south")
    for _ in range(2):
        record("shop", name="Twice")
    content = (
        f"name,shop,shops\na,North,\nb,north,n1; South\nc,N1,{north}\nd,{south},\n"
        "e,North of the south,\nf,Twice,\ng,None,\nh,,North;None\n"
    )
    state = run(bob, "part", content, on_error="continue")
    assert stored("name, shop, shops") == [
        ("a", north, None), ("b", north, [north, south]), ("c", north, [north]), ("d", south, None),
        ("e", south, None),
    ]  # fmt: skip
    assert line_errors(state) == [
        (line, [("invalid_value", name)]) for line, name in ((7, "shop"), (8, "shop"), (9, "shops"))
    ]
    assert len({item["errors"][0]["message"] for item in state["line_errors"]}) == 1


def test_references_of_json_lines_may_have_the_form_of_responses(part: Table, bob: User):
    north = record("shop", name="North")
    lines = [{"name": "a", "shop": {"display_value": "North"}, "shops": [{"value": north}]},
             {"name": "b", "shop": {}, "shops": []}]  # fmt: skip
    state = run(bob, "part", "\n".join(map(json.dumps, lines)), JSON_LINES)
    assert line_errors(state) == []
    assert stored("name, shop, shops") == [("a", north, [north]), ("b", None, [])]


def test_line_can_refer_to_a_record_of_an_earlier_line(part: Table, bob: User):
    state = run(bob, "part", "code,name,parent\np1,a,\np2,b,p1\np3,c,p2\np4,d,p5\n", on_error="continue")
    assert counts(state) == (3, 0, 0, 1) and line_errors(state) == [(5, [("invalid_value", "parent")])]
    rows = query_rows("SELECT p.code, q.code FROM records.part p LEFT JOIN records.part q ON q.sys_id = p.parent")
    assert sorted(rows, key=str) == [("p1", None), ("p2", "p1"), ("p3", "p2")]


def test_errors_quote_the_wrong_values_shortened_and_without_passwords(alice: User):
    state = run(alice, "user", f"login,email,password\nanna,{'x' * 60},\nbob,,1\n,,secret\n", on_error="continue")
    shown = [[(item["field"], item.get("value")) for item in line["errors"]] for line in state["line_errors"]]
    assert shown == [[("email", "x" * 39 + "…")], [("password", None)], [("login", None)]]


ERRORS = 'name,code,quantity,state\na,x,1,1\n,y,1,1\nc,z,many,2\nd,old,1,1\ne,v,1,None\nf,w,2,2\n'  # fmt: skip
EXPECTED_ERRORS = [
    (3, [("mandatory", "name")]), (4, [("invalid_value", "quantity")]), (5, [("duplicate", "code")]),
    (6, [("invalid_value", "state")]),
]  # fmt: skip


@pytest.mark.parametrize("on_error", ["stop", "continue"])
@pytest.mark.parametrize("dry_run", ["0", "1"])
def test_errors_name_line_and_column(part: Table, bob: User, on_error: str, dry_run: str):
    record("part", name="old", code="old")
    state = run(bob, "part", ERRORS, on_error=on_error, dry_run=dry_run)
    assert line_errors(state) == EXPECTED_ERRORS
    keeps = on_error == "continue" and dry_run == "0"
    assert {name for (name,) in stored()} == {"old"} | ({"a", "f"} if keeps else set())
    assert state["state"] == ("failed" if on_error == "stop" and dry_run == "0" else "done")
    assert counts(state) == (0 if state["state"] == "failed" else 2, 0, 0, 4)
    assert state["can_be_undone"] is keeps


def test_import_that_wrote_nothing_can_run_again(part: Table, bob: User):
    state = run(bob, "part", "code,name\n,a\n", on_error="continue", mapping='{"code": "name", "name": null}')
    assert counts(state) == (0, 0, 0, 1)
    path = f"/rest/v1/import/part/{state['sys_id']}/run"
    (again,) = data_of(api(bob).post(f'{path}?mapping={{"code":"code","name":"name"}}'))
    assert counts(again) == (1, 0, 0, 0) and stored() == [("a",)]


def test_undo_does_not_set_values_that_the_caller_cannot_read(part: Table, bob: User, alice: User):
    for operation in ("read", "write"):
        rule(operation, "part", "price", condition="state=1" if operation == "read" else "")
    record("part", name="a", code="x", state="2", price="5")
    state = run(bob, "part", "code,price,quantity\nx,7,9\n", mode="update", key="code")
    assert counts(state) == (0, 1, 0, 0) and stored("price::text, quantity") == [("7", 9)]
    assert undo(bob, state)["undone"] == 1
    assert stored("price::text, quantity") == [("7", None)]


def test_dry_run_finds_duplicates_within_the_file_and_can_then_run(part: Table, bob: User):
    state = run(bob, "part", "name,code\na,x\nb,x\n", dry_run=1)
    assert line_errors(state) == [(3, [("duplicate", "code")])] and stored() == []
    path = f"/rest/v1/import/part/{state['sys_id']}/run"
    (again,) = data_of(api(bob).post(f"{path}?on_error=continue"))
    assert counts(again) == (1, 0, 0, 1) and stored() == [("a",)]


def test_update_and_upsert_by_key(part: Table, bob: User):
    record("part", name="a", code="A1", quantity=1, price="2.5")
    content = "code,name,quantity,price\nA1,a,1,2.5\na1,a,2,\nnew,n,3,\n,x,,\n"
    updated = run(bob, "part", content, mode="update", key="code", on_error="continue")
    assert counts(updated) == (0, 1, 1, 2)
    assert line_errors(updated) == [(4, [("record_not_found", "code")]), (5, [("mandatory", "code")])]
    upserted = run(bob, "part", content, mode="upsert", key="code", on_error="continue")
    # The first line sets the value back that the second one sets.
    assert counts(upserted) == (1, 2, 0, 1)
    assert sorted(query_rows("SELECT code, quantity, price::text FROM records.part")) == [
        ("a1", 2, "2.5"), ("new", 3, None)
    ]  # fmt: skip


def test_update_by_id_of_an_export(part: Table, bob: User):
    part_id = record("part", name="a")
    exported = b"".join(api(bob).get("part", headers={"Accept": "text/csv"})).decode()
    state = run(bob, "part", exported.replace(",a,", ",changed,"), mode="update", key="sys_id")
    assert line_errors(state) == [] and stored("sys_id, name") == [(part_id, "changed")]


def test_empty_cells_keep_values_unless_they_clear_them(part: Table, bob: User):
    record("part", name="a", code="x", price="1.5", quantity=5)
    options = {"mode": "update", "key": "code"}
    run(bob, "part", "code,price,quantity\nx,,6\n", **options)
    assert stored("price::text, quantity") == [("1.5", 6)]
    run(bob, "part", "code,price,quantity\nx,,6\n", clear_empty=1, **options)
    assert stored("price::text, quantity") == [(None, 6)]


def test_undo_removes_created_records_and_restores_changed_ones(part: Table, bob: User):
    record("part", name="a", code="x", quantity=1, data='{"x": 1, "y": 2}')
    before = stored("name, quantity, data::text")
    lines = [{"code": "x", "name": "b", "quantity": 2, "data": {"z": 3}}, {"code": "y", "name": "new"}]
    state = run(bob, "part", "\n".join(map(json.dumps, lines)), JSON_LINES, mode="upsert", key="code")
    assert counts(state) == (1, 1, 0, 0) and state["can_be_undone"]
    undone = undo(bob, state)
    assert (undone["state"], undone["undone"], undone["left"]) == ("undone", 2, 0)
    assert stored("name, quantity, data::text") == before
    assert error_of(api(bob).post(f"/rest/v1/import/part/{state['sys_id']}/undo")) == (409, "not_undoable", None)


def test_undo_leaves_and_lists_records_that_changed_since(part: Table, bob: User, alice: User):
    state = run(bob, "part", "name\na\nb\nc\n")
    (a_id, b_id, _) = [sys_id for (sys_id,) in stored("sys_id")]
    api(alice).patch(f"part/{a_id}", {"name": "changed"})
    api(alice).delete(f"part/{b_id}")
    undone = undo(bob, state)
    assert stored() == [("changed",)] and (undone["undone"], undone["left"]) == (1, 2)
    reasons = {item["sys_id"]: item["errors"][0]["code"] for item in undone["left_records"]}
    assert reasons == {a_id: "stale", b_id: "record_not_found"}


def test_undo_needs_the_rights_of_the_person(closed_part: Table, bob: User):
    for operation in ("create", "read"):
        rule(operation, "part")
    state = run(bob, "part", "name\na\n")
    undone = undo(bob, state)
    assert (undone["undone"], undone["left"]) == (0, 1) and stored() == [("a",)]


def test_only_the_owner_sees_an_import(part: Table, bob: User, alice: User):
    path = "/rest/v1/import/part/" + run(bob, "part", "name,code\na,x\n")["sys_id"]
    assert data_of(api(bob).get(path))[0]["state"] == "done"
    other_table = path.replace("/part/", "/shop/")
    for response in (api(alice).get(path), api(alice).delete(path), api(alice).post(f"{path}/undo"),
                     api(alice).post(f"{path}/run"), api(bob).get(other_table)):  # fmt: skip
        assert error_of(response) == (404, "record_not_found", None)
    assert data_of(api(bob).delete(path))[0]["sys_id"] == path.rpartition("/")[2]
    assert error_of(api(bob).get(path)) == (404, "record_not_found", None)
    assert not ImportPiece.objects.exists()


def test_table_that_the_caller_cannot_write_is_refused_before_the_file(closed_part: Table, bob: User):
    assert error_of(send(bob, "part", "name\na\n")) == (404, "table_not_found", None)
    rule("read", "part")
    assert error_of(send(bob, "part", "name\na\n")) == (403, "access_denied", None)
    assert error_of(send(bob, "part", "name\na\n", mode="update", key="code")) == (403, "access_denied", None)
    assert error_of(send(bob, "none", "name\na\n")) == (404, "table_not_found", None)


def test_administrator_keeps_ids_numbers_and_creation_data(part: Table, alice: User):
    content = "sys_id,number,sys_created_at,name\nold1,PRT0000077,2020-01-02 03:04:05,a\n"
    state = run(alice, "part", content, sysparm_import=1)
    assert line_errors(state) == []
    assert stored("sys_id, number, sys_created_at::text") == [("old1", "PRT0000077", "2020-01-02 03:04:05+00")]
    assert error_of(send(alice, "company", "name\na\n", sysparm_import=1)) == (
        400,
        "invalid_parameter",
        "sysparm_import",
    )
    assert error_of(send(alice, "sys_db_table", "name\na\n")) == (400, "invalid_parameter", "table")


def test_product_tables_are_written_through_their_models(part: Table, alice: User):
    content = "login,email\nuser1,a@example.com\nuser2,wrong\nuser1,b@example.com\nuser3,\n"
    state = run(alice, "user", content, on_error="continue")
    assert line_errors(state) == [(3, [("invalid_value", "email")]), (4, [("duplicate", "login")])]
    assert set(User.objects.filter(login__startswith="user").values_list("login", flat=True)) == {"user1", "user3"}
    updated = run(alice, "user", "login,email\nuser1,new@example.com\n", mode="update", key="login")
    assert counts(updated) == (0, 1, 0, 0) and User.objects.get(login="user1").email == "new@example.com"
    (undone,) = data_of(api(alice).post(f"/rest/v1/import/user/{updated['sys_id']}/undo"))
    assert undone["undone"] == 1 and User.objects.get(login="user1").email == "a@example.com"


def test_scoped_key_limits_the_import_to_its_roles(closed_part: Table, alice: User):
    table("tool")
    field("tool", "name")
    rule("create", "tool", roles=["maker"])
    rule("read", "tool", roles=["maker"])
    caller = api(alice, scope=["maker"])
    assert error_of(caller.post("/rest/v1/import/part", b"name\na\n", headers={"Content-Type": "text/csv"}))[0] == 404
    (state,) = data_of(caller.post("/rest/v1/import/tool", b"name\na\n", headers={"Content-Type": "text/csv"}))
    assert state["created"] == 1 and Import.objects.get().roles == ["maker"]


def test_expired_imports_are_deleted(part: Table, bob: User):
    state = run(bob, "part", "name\na\n")
    jobs.delete_expired()
    assert Import.objects.count() == 1
    query_rows("UPDATE tableapi_import SET finished_at = now() - interval '8 days'")
    jobs.delete_expired()
    assert not Import.objects.exists() and not ImportPiece.objects.exists() and state["created"] == 1


def test_number_of_errors_in_a_response_is_limited(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    content = "name,quantity\n" + "a,x\n" * 50
    state = run(bob, "part", content, on_error="continue")
    assert len(state["line_errors"]) == 20 and state["failed"] == 50
    path = f"/rest/v1/import/part/{state['sys_id']}"
    assert len(data_of(api(bob).get(f"{path}?sysparm_limit=30"))[0]["line_errors"]) == 30
    assert errors_of(api(bob).get(f"{path}?sysparm_limit=x"))[0][1:] == ("invalid_parameter", "sysparm_limit")
    monkeypatch.setattr(steps, "MAX_STORED_ERRORS", 10)
    assert len(run(bob, "part", content, on_error="continue")["line_errors"]) == 10


def test_waiting_imports_of_a_user_are_limited(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tableapi.imports.jobs.MAX_BYTES_IN_REQUEST", 0)
    monkeypatch.setattr(jobs, "MAX_UNFINISHED", 1)
    response = send(bob, "part", "name\na\n")
    assert response.status_code == 202 and response["Location"].startswith("http://testserver/rest/v1/import/part/")
    assert error_of(send(bob, "part", "name\na\n"))[:2] == (429, "too_many_requests")


def test_hidden_and_missing_referenced_records_have_the_same_error(part: Table, bob: User):
    table("safe")
    field("safe", "name", is_display=True)
    field("safe", "code", is_unique=True)
    rule("read", "safe", condition="name!=Secret")
    field("part", "safe", target="safe")
    secret_id = record("safe", name="Secret", code="s1")
    states = [
        run(bob, "part", f"name,safe\na,{name}\n", on_error="continue")
        for name in ("Secret", "s1", secret_id, "Missing", "0" * 18)
    ]
    errors = [item for state in states for line in state["line_errors"] for item in line["errors"]]
    assert [item.pop("value") for item in errors] == ["Secret", "s1", secret_id, "Missing", "0" * 18]
    assert len({json.dumps(item) for item in errors}) == 1 and stored() == []


def test_hidden_column_is_as_unknown_as_a_missing_one(closed_part: Table, bob: User):
    for operation in ("create", "read"):
        rule(operation, "part")
        rule(operation, "part", "price", roles=["buyer"])
    rule("write", "part", "price", roles=["buyer"])
    hidden, missing = (run(bob, "part", f"name,{name}\na,1\n") for name in ("price", "no_price"))
    assert hidden["error"][0]["message"].replace("price", "no_price") == missing["error"][0]["message"]
    for name in ("price", "no_price"):
        assert error_of(send(bob, "part", "name,x\na,1\n", mapping=json.dumps({"x": name}))) == (
            400,
            "unknown_field",
            "mapping",
        )


def test_upsert_of_a_hidden_record_has_the_error_of_the_api(part: Table, bob: User, alice: User):
    open_table("shop")
    table("box")
    field("box", "code", is_unique=True)
    field("box", "name")
    rule("read", "box", condition="name!=Secret")
    rule("create", "box")
    rule("write", "box")
    record("box", code="b1", name="Secret")
    state = run(bob, "box", "code,name\nB1,x\n", mode="upsert", key="code", on_error="continue")
    own = api(bob).post("/rest/v1/upsert/box?sysparm_key=code", {"code": "B1", "name": "x"})
    (errors,) = [item["errors"] for item in state["line_errors"]]
    assert errors == [error | {"value": "B1"} for error in own.json()["errors"]]
    assert query_rows("SELECT name FROM records.box") == [("Secret",)]

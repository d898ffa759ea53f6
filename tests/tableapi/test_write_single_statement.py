"""Writes that are one statement have the same results as those in a transaction."""

import json
from typing import Any

import pytest

from accounts.models import User
from system import properties
from tableapi.design import saving
from tableapi.models import Table
from tableapi.write import single_statement
from tests.tableapi.database_statements import statements
from tests.tableapi.designs import ask
from tests.tableapi.world import api, data, failed, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db

CHANGING = ("sys_id", "number", "sys_created_at", "sys_updated_at", "display_name")


@pytest.fixture
def maker(db: Any) -> Table:
    created = table("maker")
    field("maker", "name")
    open_table("maker")
    return created


@pytest.fixture
def device(maker: Table) -> Table:
    created = table("device", number_prefix="DEV")
    for name in ("name", "colour"):
        field("device", name)
    field("device", "rank", "integer", default_value="7")
    field("device", "bought_at", "datetime")
    field("device", "code", is_unique=True)
    field("device", "maker", to="maker")
    field("device", "other", to="device")
    open_table("device")
    return created


@pytest.fixture
def in_transaction(monkeypatch: pytest.MonkeyPatch) -> Any:
    """From then on no write is one statement."""

    def switch() -> None:
        monkeypatch.setattr(single_statement, "_run", lambda *_, **__: None)

    return switch


def comparable(answer: Any) -> tuple[int, Any, set[str]]:
    body = json.loads(answer.content)
    rows = [{key: value for key, value in row.items() if key not in CHANGING} for row in body.get("data", [])]
    return answer.status_code, rows or body, set(answer.headers)


def statements_on_records(send: Any) -> list[str]:
    with statements() as executed:
        assert send().status_code < 300
    return [sql for sql in executed if "records." in sql or "tableapi_state" in sql]


STORED = "SELECT name, colour, rank, bought_at, sys_version, sys_created_by FROM records.device ORDER BY sys_id"


@pytest.mark.parametrize(
    "body",
    [{}, {"name": "Lamp"}, {"name": "Lamp", "rank": 3, "bought_at": "2026-01-02 03:04:05"}, {"name": "", "rank": None},
     {"rank": "many"}, {"none": 1}, {"sys_version": 3}, {"maker": "0" * 18}, {"code": "taken"}],
)  # fmt: skip
def test_created_record_is_the_same(device: Table, bob: User, in_transaction: Any, body: dict[str, Any]):
    record("device", code="taken")
    one = api(bob).post("device", body)
    stored = ask(
        "SELECT name, colour, rank, bought_at, sys_version, sys_created_by FROM records.device ORDER BY sys_id"
    )
    ask("DELETE FROM records.device WHERE code IS DISTINCT FROM 'taken'")
    in_transaction()
    other = api(bob).post("device", body)

    assert comparable(one) == comparable(other)
    assert stored == ask(STORED)


@pytest.mark.parametrize(
    "body",
    [{"name": "Lamp"}, {"name": "Chair"}, {"name": "Chair", "rank": 2}, {"rank": 1}, {"rank": "1"}, {"name": None},
     {"name": ""}, {"bought_at": "2026-01-02 03:04:05", "name": "Chair"}, {"rank": "many"}, {"number": "DEV1"},
     {"code": "taken"}, {"maker": "0" * 18}, {}],
)  # fmt: skip
def test_changed_record_is_the_same(device: Table, bob: User, in_transaction: Any, body: dict[str, Any]):
    record("device", code="taken")
    about = {"name": "Lamp", "rank": 1, "bought_at": "2026-01-02 03:04:05.678"}
    first, second = record("device", **about), record("device", **about)
    one = api(bob).patch(f"device/{first}", body)
    in_transaction()
    other = api(bob).patch(f"device/{second}", body)

    assert comparable(one) == comparable(other)
    query = "SELECT name, rank, bought_at, sys_version, sys_updated_by FROM records.device WHERE sys_id = %s"
    assert ask(query, first) == ask(query, second)


def test_usual_writes_are_one_statement(device: Table, bob: User):
    made_by, lamp = record("maker", name="Acme"), record("device", name="Lamp")
    body = {"name": "Chair", "maker": made_by}
    assert len(statements_on_records(lambda: api(bob).post("device", body))) == 1
    assert len(statements_on_records(lambda: api(bob).patch(f"device/{lamp}", body))) == 1


@pytest.mark.parametrize("headers", [{"If-Match": "*"}, {"Idempotency-Key": "once"}])
def test_other_writes_are_several(device: Table, bob: User, headers: dict[str, str]):
    lamp = record("device", name="Lamp")
    assert len(statements_on_records(lambda: api(bob).patch(f"device/{lamp}", {"name": "New"}, headers=headers))) > 1


def test_reference_to_a_hidden_record_is_refused_as_one_to_a_missing_record(device: Table, bob: User):
    table("owner")
    field("owner", "name")
    rule("read", "owner", condition="name!=Secret")
    field("device", "owner", to="owner")
    hidden = record("owner", name="Secret")
    for method, path in (("POST", "device"), ("PATCH", f"device/{record('device')}")):
        api(bob).send(method, path, {"owner": hidden})  # fills the caches
        answers, sent = [], []
        for sys_id in (hidden, "0" * 18):
            with statements() as executed:
                answers.append(api(bob).send(method, path, {"owner": sys_id}))
            sent.append(executed)
        assert failed(answers[0]) == (422, "invalid_value", "owner")
        assert answers[0].content == answers[1].content
        assert sent[0] == sent[1] and any("WITH written" in sql for sql in sent[0])
    assert ask("SELECT count(*) FROM records.device WHERE owner IS NOT NULL") == [(0,)]


def test_record_that_refers_to_itself_is_shown_as_it_is_now(device: Table, bob: User):
    lamp = record("device", name="Lamp")
    (row,) = data(api(bob).patch(f"device/{lamp}", {"other": lamp, "name": "New"}, fields="name,other.name"))
    assert row == {"name": "New", "other.name": "New"}


def test_rule_with_a_condition_is_checked(db: Any, bob: User):
    table("lamp")
    field("lamp", "rank", "integer")
    rule("read", "lamp")
    rule("write", "lamp", condition="rank<5")
    lamp = record("lamp", rank=1)
    assert failed(api(bob).patch(f"lamp/{lamp}", {"rank": 9}))[0] == 403
    assert ask("SELECT rank FROM records.lamp WHERE sys_id = %s", lamp) == [(1,)]
    assert api(bob).patch(f"lamp/{lamp}", {"rank": 2}).status_code == 200


def test_refused_write_takes_no_number(device: Table, bob: User):
    numbers = [data(api(bob).post("device", {"name": "a"}))[0]["number"]]
    assert api(bob).post("device", {"maker": "0" * 18}).status_code == 422
    numbers.append(data(api(bob).post("device", {"name": "b"}))[0]["number"])
    assert int(numbers[1][3:]) == int(numbers[0][3:]) + 1


def test_converted_text_is_shown_as_the_property_says(device: Table, bob: User):
    body = field("device", "body", "text")
    body.type = "wysiwyg"
    saving.save_column(body)
    lamp = record("device", name="Lamp", body="<p>a <b>b</b></p>")
    (plain,) = data(api(bob).patch(f"device/{lamp}", {"name": "One"}))
    properties.put(properties.WYSIWYG_COLUMNS, body.pk)
    (formatted,) = data(api(bob).patch(f"device/{lamp}", {"name": "Two"}))
    assert (plain["body"], formatted["body"]) == ("a b", "<p>a <b>b</b></p>")

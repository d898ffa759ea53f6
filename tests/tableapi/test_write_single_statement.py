"""Writes in a single statement have the same results as writes in a transaction."""

import json
from typing import Any

import pytest

from accounts.models import User
from system import properties
from tableapi.design import saving
from tableapi.models import Column, Table
from tableapi.write import single_statement
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db

VARYING_COLUMNS = ("sys_id", "number", "sys_created_at", "sys_updated_at", "display_name")


@pytest.fixture
def maker(db: Any) -> Table:
    new_table = table("maker")
    field("maker", "name")
    open_table("maker")
    return new_table


@pytest.fixture
def device_without_rules(maker: Table) -> Table:
    new_table = table("device", number_prefix="DEV")
    for name in ("name", "colour"):
        field("device", name)
    field("device", "rank", "integer", default_value="7")
    field("device", "bought_at", "datetime")
    field("device", "code", is_unique=True)
    field("device", "maker", target="maker")
    field("device", "other", target="device")
    return new_table


@pytest.fixture
def device(device_without_rules: Table) -> Table:
    open_table(device_without_rules)
    return device_without_rules


@pytest.fixture
def use_transactions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes every later write run in a transaction."""

    def switch_to_transactions() -> None:
        monkeypatch.setattr(single_statement, "_run", lambda *_, **__: None)

    return switch_to_transactions


def comparable_response(response: Any) -> tuple[int, Any, set[str]]:
    body = json.loads(response.content)
    rows = [{key: value for key, value in row.items() if key not in VARYING_COLUMNS} for row in body.get("data", [])]
    return response.status_code, rows or body, set(response.headers)


def statements_on_records(send: Any) -> list[str]:
    with captured_statements() as executed_statements:
        assert send().status_code < 300
    return [sql for sql in executed_statements if "records." in sql or "tableapi_state" in sql]


STORED_QUERY = "SELECT name, colour, rank, bought_at, sys_version, sys_created_by FROM records.device ORDER BY sys_id"


@pytest.mark.parametrize(
    "body",
    [{}, {"name": "Lamp"}, {"name": "Lamp", "rank": 3, "bought_at": "2026-01-02 03:04:05"}, {"name": "", "rank": None},
     {"rank": "many"}, {"none": 1}, {"sys_version": 3}, {"maker": "0" * 18}, {"code": "taken"}],
)  # fmt: skip
def test_transaction_creates_the_same_record(device: Table, bob: User, use_transactions: Any, body: dict[str, Any]):
    record("device", code="taken")
    response = api(bob).post("device", body)
    stored_rows = query_rows(STORED_QUERY)
    query_rows("DELETE FROM records.device WHERE code IS DISTINCT FROM 'taken'")
    use_transactions()
    transaction_response = api(bob).post("device", body)

    assert comparable_response(response) == comparable_response(transaction_response)
    assert stored_rows == query_rows(STORED_QUERY)


@pytest.mark.parametrize(
    "body",
    [{"name": "Lamp"}, {"name": "Chair"}, {"name": "Chair", "rank": 2}, {"rank": 1}, {"rank": "1"}, {"name": None},
     {"name": ""}, {"bought_at": "2026-01-02 03:04:05", "name": "Chair"}, {"rank": "many"}, {"number": "DEV1"},
     {"code": "taken"}, {"maker": "0" * 18}, {}],
)  # fmt: skip
def test_transaction_makes_the_same_change(device: Table, bob: User, use_transactions: Any, body: dict[str, Any]):
    record("device", code="taken")
    stored_values = {"name": "Lamp", "rank": 1, "bought_at": "2026-01-02 03:04:05.678"}
    first_device, second_device = record("device", **stored_values), record("device", **stored_values)
    response = api(bob).patch(f"device/{first_device}", body)
    use_transactions()
    transaction_response = api(bob).patch(f"device/{second_device}", body)

    assert comparable_response(response) == comparable_response(transaction_response)
    query = "SELECT name, rank, bought_at, sys_version, sys_updated_by FROM records.device WHERE sys_id = %s"
    assert query_rows(query, first_device) == query_rows(query, second_device)


def test_simple_writes_are_one_statement(device: Table, maker: Table, bob: User):
    field("device", "makers", "list", reference_table=maker)
    acme, lamp = record("maker", name="Acme"), record("device", name="Lamp")
    body = {"name": "Chair", "maker": acme}
    assert len(statements_on_records(lambda: api(bob).post("device", body))) == 1
    assert len(statements_on_records(lambda: api(bob).patch(f"device/{lamp}", body))) == 1


@pytest.mark.parametrize("headers", [{"If-Match": "*"}, {"Idempotency-Key": "once"}])
def test_conditional_and_idempotent_writes_are_several_statements(device: Table, bob: User, headers: dict[str, str]):
    lamp = record("device", name="Lamp")
    assert len(statements_on_records(lambda: api(bob).patch(f"device/{lamp}", {"name": "New"}, headers=headers))) > 1


def test_reference_to_a_hidden_record_is_refused_like_a_missing_one(device: Table, bob: User):
    table("owner")
    field("owner", "name")
    rule("read", "owner", condition="name!=Secret")
    field("device", "owner", target="owner")
    hidden_owner = record("owner", name="Secret")
    for method, path in (("POST", "device"), ("PATCH", f"device/{record('device')}")):
        api(bob).send(method, path, {"owner": hidden_owner})  # fills the caches
        responses, statement_lists = [], []
        for sys_id in (hidden_owner, "0" * 18):
            with captured_statements() as executed_statements:
                responses.append(api(bob).send(method, path, {"owner": sys_id}))
            statement_lists.append(executed_statements)
        assert error_of(responses[0]) == (422, "invalid_value", "owner")
        assert responses[0].content == responses[1].content
        assert statement_lists[0] == statement_lists[1] and any("written AS" in sql for sql in statement_lists[0])
    assert query_rows("SELECT count(*) FROM records.device WHERE owner IS NOT NULL") == [(0,)]


def test_self_reference_shows_the_new_values(device: Table, bob: User):
    lamp = record("device", name="Lamp")
    response = api(bob).patch(f"device/{lamp}", {"other": lamp, "name": "New"}, fields="name,other.name")
    assert data_of(response) == [{"name": "New", "other.name": "New"}]
    name_column = Column.objects.get(table=device, name="name")
    name_column.is_display = True
    saving.save_column(name_column)
    response = api(bob).patch(f"device/{lamp}", {"name": "Newest"}, fields="other", display_value="true")
    assert data_of(response)[0]["other"]["display_value"] == "Newest"


RULE_EXAMPLES = [
    ("read", ""),
    ("write", ""),
    ("create", ""),
    ("read", "colour"),
    ("write", "colour"),
    ("create", "colour"),
]
# Conditions on the record itself, checked before and after the write.
CONDITION_EXAMPLES = ["colour=red", "colour!=red", "rank<5", "nameISEMPTY", "sys_updated_byDYNAMICme",
              "sys_created_byDYNAMICme", "codeISNOTEMPTY^ORcolour=red", "nameSAMEAScolour"]  # fmt: skip
BODY_EXAMPLES: list[dict[str, Any]] = [{"colour": "red"}, {"colour": "blue", "rank": 9}, {"rank": 3}, {"name": "red"},
                                {"name": "x", "rank": None}]  # fmt: skip
STORED_DEVICES: list[dict[str, Any]] = [{"colour": "red", "rank": 1}, {"colour": "blue", "rank": 9}, {"rank": 9}]


def write_device(bob: User, sys_id: str | None, body: dict[str, Any]) -> tuple[Any, int]:
    """The response and the number of statements on records."""
    with captured_statements() as executed_statements:
        response = api(bob).patch(f"device/{sys_id}", body) if sys_id else api(bob).post("device", body)
    return response, len([sql for sql in executed_statements if "records." in sql])


def make_rules(operation: str, column: str, condition: str) -> None:
    """Rules that allow everything, except one with this condition."""
    for each_operation in ("create", "read", "write"):
        rule(each_operation, "device", condition=condition if (each_operation, column) == (operation, "") else "")
    if column:
        rule(operation, "device", column, condition=condition)


@pytest.mark.parametrize(("operation", "column"), RULE_EXAMPLES)
@pytest.mark.parametrize("condition", CONDITION_EXAMPLES)
def test_rule_with_a_condition_has_the_same_effect_in_a_transaction(
    device_without_rules: Table, bob: User, use_transactions: Any, operation: str, column: str, condition: str
):
    make_rules(operation, column, condition)
    cases = [(values, body) for values in (None, *STORED_DEVICES) for body in BODY_EXAMPLES]
    ids, transaction_ids = ([record("device", **values) if values else None for values, _ in cases] for _ in range(2))
    results = [write_device(bob, sys_id, body) for sys_id, (_, body) in zip(ids, cases, strict=True)]
    use_transactions()
    transaction_results = [
        write_device(bob, sys_id, body) for sys_id, (_, body) in zip(transaction_ids, cases, strict=True)
    ]

    for case, (response, _), (transaction_response, _) in zip(cases, results, transaction_results, strict=True):
        assert comparable_response(response) == comparable_response(transaction_response), case
    query = """
        SELECT colour, rank, name, sys_version, sys_updated_by FROM records.device WHERE sys_id = ANY(%s)
        ORDER BY 1, 2, 3, 4, 5
    """
    assert query_rows(query, ids) == query_rows(query, transaction_ids)
    assert [count for response, count in results if response.status_code < 300 and count == 1] != []


@pytest.mark.parametrize(
    "condition", ["maker.name=Acme", "other.name=x^ORcolour=red", "sys_version<9", "sys_updated_at>2020-01-01 00:00:00"]
)
def test_rule_on_other_records_or_generated_values_requires_a_transaction(
    device_without_rules: Table, bob: User, condition: str
):
    make_rules("read", "", condition)
    lamp = record("device", name="Lamp", colour="red", maker=record("maker", name="Acme"))
    response, count = write_device(bob, lamp, {"name": "New"})
    assert response.status_code == 200 and count > 1


@pytest.mark.parametrize("column", ["number", "display_name", "sys_id", "sys_created_at"])
def test_rule_on_a_generated_value_is_checked(device_without_rules: Table, bob: User, column: str):
    field("device", "display_name")
    make_rules("create", "", f"{column}ISEMPTY")
    response, _ = write_device(bob, None, {"name": "Lamp"})
    assert error_of(response)[0] == 403


def test_wrong_and_right_guesses_of_a_hidden_value_run_the_same_statements(device_without_rules: Table, bob: User):
    make_rules("read", "colour", "rank<5")
    statement_counts = set()
    for colour in ("red", "blue"):
        lamp = record("device", colour="red", rank=9)
        response, count = write_device(bob, lamp, {"colour": colour})
        assert response.status_code == 200
        statement_counts.add(count)
    assert len(statement_counts) == 1


def test_column_rule_through_a_self_reference_is_evaluated_after_the_write(device_without_rules: Table, bob: User):
    make_rules("read", "rank", "other.colour=red")
    lamp = record("device", colour="blue", rank=1)
    query_rows("UPDATE records.device SET other = sys_id")
    assert data_of(api(bob).patch(f"device/{lamp}", {"colour": "red"}, fields="rank")) == [{"rank": 1}]


def test_columns_of_designed_tables_have_no_defaults_in_the_database(db: Any):
    """Conditions on a new record treat omitted columns as NULL."""
    query = """
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = 'records' AND column_default IS NOT NULL AND column_name NOT LIKE 'sys\\_%%'
    """
    assert query_rows(query) == []


def test_refused_write_takes_no_number(device: Table, bob: User):
    numbers = [data_of(api(bob).post("device", {"name": "a"}))[0]["number"]]
    assert api(bob).post("device", {"maker": "0" * 18}).status_code == 422
    numbers.append(data_of(api(bob).post("device", {"name": "b"}))[0]["number"])
    assert int(numbers[1][3:]) == int(numbers[0][3:]) + 1


def test_property_determines_how_converted_text_is_shown(device: Table, bob: User):
    body_column = field("device", "body", "text")
    body_column.type = "wysiwyg"
    saving.save_column(body_column)
    lamp = record("device", name="Lamp", body="<p>a <b>b</b></p>")
    (plain_record,) = data_of(api(bob).patch(f"device/{lamp}", {"name": "One"}))
    properties.put(properties.WYSIWYG_COLUMNS, body_column.pk)
    (formatted_record,) = data_of(api(bob).patch(f"device/{lamp}", {"name": "Two"}))
    assert (plain_record["body"], formatted_record["body"]) == ("a b", "<p>a <b>b</b></p>")

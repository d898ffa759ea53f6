"""The search finds tables, records by number and display value, collections and pages of the administration."""

import pytest
from django.test import Client

from accounts.models import User
from tableapi.read import name_search
from tableapi.read.context import Caller
from tests.collections_app.builders import make_collection
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.world import field, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def lamps(db: None) -> list[str]:
    table("device", number_prefix="DEV")
    field("device", "name", is_display=True)
    names = ("Lamp", "lantern", "Ladder", "Desk lamp")
    return [record("device", name=name, number=f"DEV000000{place}") for place, name in enumerate(names, 1)]


def titles(client: Client, text: str, group: str = "Records") -> list[str]:
    response = client.get("/find/", {"q": text}, headers={"Accept": "application/json"})
    assert response.status_code == 200, response.content
    groups = {entry["title"]: entry["items"] for entry in response.json()["groups"]}
    return [item["title"] for item in groups.get(group, [])]


def test_records_are_found_by_the_beginning_of_their_display_value(as_bob: Client):
    rule("read", "device")

    assert titles(as_bob, "LA") == ["Ladder", "Lamp", "lantern"]
    assert titles(as_bob, "lamp") == ["Lamp"]
    assert titles(as_bob, "x") == []


def test_records_are_found_by_number_once(as_bob: Client, lamps: list[str]):
    rule("read", "device")
    response = as_bob.get("/find/", {"q": "dev000"}, headers={"Accept": "application/json"})
    items = response.json()["groups"][0]["items"]

    assert [item["url"] for item in items] == [f"/tables/device/{sys_id}/" for sys_id in lamps]


def test_each_table_has_at_most_five_records(as_bob: Client):
    rule("read", "device")
    table("desk")
    field("desk", "name", is_display=True)
    rule("read", "desk")
    for number in range(9):
        record("device", name=f"many {number}")
        record("desk", name=f"many {number}")

    found = titles(as_bob, "many")

    assert len(found) == 2 * name_search.MAX_RECORDS_PER_TABLE


def test_one_statement_searches_all_tables(bob: User):
    table("desk")
    field("desk", "name", is_display=True)
    rule("read", "desk")
    rule("read", "device")
    name_search.find_records(Caller.of(bob), "la")

    caller = Caller.of(bob)
    with captured_statements() as statements:
        name_search.find_records(caller, "la")

    assert len(statements) == 1


def test_records_and_columns_that_the_caller_cannot_read_are_not_found(as_bob: Client):
    assert titles(as_bob, "la") == []
    rule("read", "device", condition="name=Ladder")
    assert titles(as_bob, "la") == ["Ladder"]
    rule("read", "device", column="name", roles=["admin"])
    assert titles(as_bob, "la") == []
    rule("read", "device", column="number", roles=["admin"])
    assert titles(as_bob, "dev") == []


def test_column_that_is_readable_in_some_records_is_not_searched(as_bob: Client):
    rule("read", "device")
    rule("read", "device", column="name", condition="name=Ladder")

    assert titles(as_bob, "la") == []


def test_hidden_id_hides_the_record(as_bob: Client):
    rule("read", "device")
    rule("read", "device", column="sys_id", roles=["admin"])

    assert titles(as_bob, "la") == []


def test_tables_and_collections_are_found_if_readable(as_bob: Client, as_alice: Client):
    make_collection("Device manuals")

    assert titles(as_alice, "evic", "Tables") == ["Device"]
    assert titles(as_alice, "manu evic", "Collections") == ["Device manuals"] == titles(as_alice, "", "Collections")
    assert titles(as_alice, "device x", "Tables") == [] == titles(as_alice, "device x", "Collections")
    assert titles(as_bob, "devic", "Tables") == [] and titles(as_bob, "devic", "Collections") == []
    assert titles(as_alice, "devic", "Tables") == ["Device"]
    assert titles(as_alice, "devic", "Collections") == ["Device manuals"]


def test_pages_of_the_administration_are_for_administrators(as_bob: Client, as_alice: Client):
    assert "Users" in titles(as_alice, "ser", "Administration")
    assert titles(as_alice, "rules acc", "Administration") == ["Access rules"]
    assert titles(as_bob, "user", "Administration") == []


@pytest.mark.parametrize("text", ["%", "_", "\\", "'", "a^b", "{", "ß", "\U0010ffff", " "])
def test_any_text_is_a_search(as_alice: Client, text: str):
    assert titles(as_alice, text) == []


@pytest.mark.parametrize("text", ["x" * 201, "a\0b"])
def test_unusable_text_is_refused(as_alice: Client, text: str):
    assert as_alice.get("/find/", {"q": text}).status_code == 400


def test_search_is_also_a_page(as_alice: Client):
    text = as_alice.get("/find/", {"q": "lad"}).content.decode()

    assert "Ladder" in text and "/tables/device/" in text

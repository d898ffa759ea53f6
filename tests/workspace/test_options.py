"""The suggestions of reference pickers."""

import pytest
from django.test import Client

from tests.support.users import make_user
from tests.tableapi.world import field, record, rule, table
from workspace.forms.options import MAX_OPTIONS

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rooms(db: None) -> None:
    table("room")
    field("room", "name", is_display=True)
    for name in ("Red", "rest", "Green", "Bar^red}"):
        record("room", name=name)


def labels(client: Client, text: str = "") -> list[str]:
    response = client.get("/tables/room/options/", {"q": text})
    assert response.status_code == 200, response.content
    return [option["label"] for option in response.json()["options"]]


def test_options_start_with_the_text_or_else_contain_it(as_bob: Client):
    rule("read", "room")

    assert labels(as_bob) == ["Bar^red}", "Green", "Red", "rest"]
    assert labels(as_bob, "RE") == ["Red", "rest"]
    assert labels(as_bob, "ee") == ["Green"]
    assert labels(as_bob, "^red}") == ["Bar^red}"]


def test_options_are_limited(as_bob: Client):
    rule("read", "room")
    for number in range(MAX_OPTIONS + 1):
        record("room", name=f"n{number}")

    assert len(labels(as_bob)) == MAX_OPTIONS


def test_only_readable_records_are_options(as_bob: Client):
    rule("read", "room", condition="name=Green")

    assert labels(as_bob) == ["Green"]


@pytest.mark.parametrize("column", ["name", "sys_id"])
def test_hidden_columns_leave_no_options(as_bob: Client, column: str):
    rule("read", "room")
    rule("read", "room", column=column, roles=["admin"])

    assert labels(as_bob) == [] and labels(as_bob, "r") == []


def test_hidden_and_missing_tables_are_the_same(as_bob: Client):
    hidden, missing = (as_bob.get(f"/tables/{name}/options/") for name in ("room", "nothing"))

    assert hidden.status_code == missing.status_code == 404
    assert hidden.content == missing.content


@pytest.mark.parametrize("text", ["x" * 201, "a\0b"])
def test_unusable_text_is_refused(as_alice: Client, text: str):
    assert as_alice.get("/tables/room/options/", {"q": text}).status_code == 400


def test_people_are_found_by_name_and_email_as_far_as_the_caller_can_read_them(as_bob: Client, as_alice: Client):
    make_user("ada.l", first_name="Ada", last_name="Lovelace", email="countess@example.com")

    def logins(client: Client, text: str) -> list[tuple[str, str]]:
        options = client.get("/tables/user/options/", {"q": text}).json()["options"]
        return [(option["label"], option["detail"]) for option in options]

    assert logins(as_bob, "lovel") == logins(as_alice, "countess") == [("ada.l", "Ada Lovelace")]
    assert logins(as_bob, "countess") == []  # only administrators can read the email address

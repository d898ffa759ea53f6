"""The columns of a list: chosen, ordered and resized by a person, and remembered for them and the table."""

from html import unescape

import pytest
from django.test import Client

from tests.support.users import make_user, signed_in_client
from tests.tableapi.world import field, open_table, record, rule, table, view
from workspace.forms.display import PATH_SEPARATOR

pytestmark = pytest.mark.django_db

URL = "/tables/device/columns/"


@pytest.fixture(autouse=True)
def device_table(db: object) -> None:
    table("maker")
    field("maker", "name", is_display=True)
    table("device")
    for name in ("name", "color", "size"):
        field("device", name)
    field("device", "maker", target="maker")
    field("device", "old_color", label="Color")
    field("device", "secret_plan")
    open_table("maker")
    open_table("device")
    rule("read", "device", "secret_plan", roles=["auditor"])
    record("device", name="Lamp")


def paths_of(client: Client, **parameters: str) -> list[str]:
    text = client.get("/tables/device/", parameters).content.decode()
    return [part.partition('"')[0] for part in text.split(' data-path="')[1:]]


def chosen_of(response: object) -> list[str]:
    """The checked columns of the dialog, in order."""
    text = response.content.decode()  # type: ignore[attr-defined]
    values = text.split('name="path" value="')[1:]
    return [part.partition('"')[0] for part in values if part.partition(">")[0].endswith("checked")]


def test_without_a_choice_the_automatic_columns_begin_with_the_display_column(as_bob: Client):
    assert paths_of(as_bob) == ["name", "color", "size", "maker", "old_color", "sys_updated_at"]


def test_chosen_columns_are_remembered_for_one_person_and_table(as_bob: Client, as_alice: Client):
    response = as_bob.post(
        URL, {"step": "save", "path": ["size", "maker.name", "name"], "list-state": "sysparm_query=a"}
    )
    assert response.status_code == 302 and response["Location"] == "/tables/device/?sysparm_query=a"
    assert paths_of(as_bob) == ["size", "maker.name", "name"]
    assert paths_of(as_alice)[0] == "name"


def test_chosen_columns_come_before_the_view_but_after_the_url(as_bob: Client):
    view("device", "list", "color")
    assert paths_of(as_bob) == ["color"]
    as_bob.post(URL, {"step": "save", "path": ["size"]})
    assert paths_of(as_bob) == ["size"] and paths_of(as_bob, columns="name,missing") == ["name"]
    as_bob.post(URL, {"step": "reset"})
    assert paths_of(as_bob) == ["color"]


def test_buttons_move_and_add_columns_without_saving_them(as_bob: Client):
    chosen = {"path": ["name", "color", "size"]}
    assert chosen_of(as_bob.post(URL, {**chosen, "step": "up:size"})) == ["name", "size", "color"]
    assert chosen_of(as_bob.post(URL, {**chosen, "step": "down:name"})) == ["color", "name", "size"]
    for typed in (f"Maker{PATH_SEPARATOR}Name", "maker.name"):
        response = as_bob.post(URL, {**chosen, "step": "add", "new-path": typed})
        assert chosen_of(response) == ["name", "color", "size", "maker.name"]
    response = as_bob.post(URL, {**chosen, "step": "add", "new-path": "Nonsense"})
    assert "There is no column &quot;Nonsense&quot;." in response.content.decode()
    assert paths_of(as_bob)[-1] == "sys_updated_at"


def test_dialog_shows_labels_and_tells_equal_ones_apart(as_bob: Client):
    text = unescape(as_bob.get(URL).content.decode())
    assert "> Color (color)<" in text and "> Color (old_color)<" in text and "> Name<" in text


def test_hidden_column_cannot_be_chosen_or_guessed(as_bob: Client):
    text = as_bob.get(URL).content.decode()
    assert "secret_plan" not in text and "Secret_plan" not in text
    as_bob.post(URL, {"step": "save", "path": ["name", "secret_plan", "maker.secret"]})
    assert paths_of(as_bob) == ["name"]
    replies = [
        as_bob.post(
            URL, {"step": "add", "path": "name", "new-path": name}, headers={"HX-Request": "1"}
        ).content.decode()
        for name in ("secret_plan", "missing_one")
    ]
    errors = [reply.partition('role="alert">')[2].partition("<")[0] for reply in replies]
    assert errors[0].replace("secret_plan", "x") == errors[1].replace("missing_one", "x")


def test_column_that_became_hidden_is_left_out(as_bob: Client):
    as_bob.post(URL, {"step": "save", "path": ["name", "color"]})
    rule("read", "device", "color", roles=["auditor"])
    assert paths_of(as_bob) == ["name"]


def test_widths_are_remembered_within_limits(as_bob: Client):
    body = {"step": "widths", "path": ["name", "color", "size"], "width": ["300", "1", "99999"]}
    assert as_bob.post(URL, body).status_code == 204
    text = as_bob.get("/tables/device/").content.decode()
    assert '<col width="300"><col width="48"><col width="1200">' in text
    as_bob.post(URL, {"step": "save", "path": ["color", "name"]})
    assert '<col width="48"><col width="300">' in as_bob.get("/tables/device/").content.decode()


def test_invalid_widths_are_automatic(as_bob: Client):
    as_bob.post(URL, {"step": "widths", "path": ["name", "color"], "width": ["²", "-4"]})
    assert '<col width="48"><col><col>' in as_bob.get("/tables/device/").content.decode()


def test_list_cannot_have_more_than_50_columns(as_bob: Client):
    for number in range(51):
        field("device", f"extra{number}")
    response = as_bob.post(URL, {"step": "save", "path": [f"extra{number}" for number in range(51)]})
    assert response.status_code == 422


def test_no_column_is_refused_in_the_dialog(as_bob: Client):
    assert "Choose at least one column." in as_bob.post(URL, {"step": "save"}).content.decode()


def test_change_requires_the_token(db: object):
    client = signed_in_client(make_user("eve"), enforce_csrf_checks=True)
    assert client.post(URL, {"step": "reset"}).status_code == 403

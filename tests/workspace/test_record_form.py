"""The record form: reading, creating and changing records with nothing but a form and the names of columns."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from tableapi.models import Rule
from tests.support.pages import without_token
from tests.support.users import signed_in_client
from tests.tableapi import world
from tests.tableapi.column_types import EXAMPLE_IDS, EXAMPLES
from workspace.models import MAX_RECENT_RECORDS, RecentRecord

CONTROL = re.compile(r'<(?:input|select|textarea)[^>]* name="([^"]+)"')


@pytest.fixture
def device(db: Any) -> None:
    world.table("maker")
    world.field("maker", "name", is_display=True)
    world.table("device", number_prefix="DEV")
    world.field("device", "name", mandatory=True, is_display=True)
    world.field("device", "state", choices={"1": "New", "2": "Done"}, default_value="1")
    world.field("device", "maker", target="maker")
    world.field("device", "notes", "text")
    world.open_table("maker")
    world.open_table("device")


def hidden(page: Any, name: str) -> str:
    match = re.search(rf'name="{name}" value="([^"]*)"', page.content.decode())
    assert match is not None, name
    return unescape(match[1])


def control_names(page: Any) -> list[str]:
    main = page.content.decode().partition("<main")[2]
    return [name for name in CONTROL.findall(main) if not name.startswith("_") and name != "csrfmiddlewaretoken"]


def messages_of(page: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.content.decode())).split())


def stored(user: User, path: str, **params: Any) -> dict[str, Any]:
    (record,) = world.data_of(world.api(user).get(path, **params))
    return dict(record)


def test_a_record_is_created_with_the_names_of_its_columns(device: None, as_bob: Client, bob: User) -> None:
    acme = world.record("maker", name="Acme")
    page = as_bob.get("/tables/device/new/")
    assert sorted(control_names(page)) == ["maker", "name", "notes", "state"]
    assert page.content.decode().count('<form method="post"') == 2  # and the one that signs out
    assert '<option value="1" selected>New</option>' in page.content.decode()

    response = as_bob.post("/tables/device/new/", {"name": "Lamp", "state": "2", "maker": "Acme", "notes": "a\r\nb"})

    assert response.status_code == 302
    match = re.fullmatch(r"/tables/device/([0-9a-z]+)/", response["Location"])
    assert match is not None
    record = stored(bob, f"device/{match[1]}", exclude_reference_link=1)
    assert (record["name"], record["state"], record["maker"], record["notes"]) == ("Lamp", "2", acme, "a\nb")
    assert "Lamp" in messages_of(as_bob.get(response["Location"]))


def test_an_empty_control_has_no_value_and_a_missing_one_the_default(device: None, as_bob: Client, bob: User) -> None:
    empty = as_bob.post("/tables/device/new/", {"name": "Lamp", "state": ""})["Location"]
    missing = as_bob.post("/tables/device/new/", {"name": "Lamp"})["Location"]
    states = [stored(bob, f"device/{url.split('/')[3]}")["state"] for url in (empty, missing)]
    assert states == [None, "1"]


def test_a_control_that_is_missing_leaves_the_column_as_it_is(device: None, as_bob: Client, bob: User) -> None:
    lamp = world.record("device", name="Lamp", state="2", notes="old")
    response = as_bob.post(f"/tables/device/{lamp}/", {"notes": ""})
    assert (response.status_code, response["Location"]) == (302, f"/tables/device/{lamp}/")
    record = stored(bob, f"device/{lamp}")
    assert (record["name"], record["state"], record["notes"], record["sys_version"]) == ("Lamp", "2", None, 1)


def test_an_unchanged_form_changes_nothing(device: None, as_bob: Client, bob: User) -> None:
    acme = world.record("maker", name="Acme")
    lamp = world.record("device", name="Lamp", state="2", notes="a\nb", maker=acme)
    page = as_bob.get(f"/tables/device/{lamp}/")
    values = {"name": "Lamp", "state": "2", "notes": "a\r\nb", "maker": "Acme"}
    for more in ({}, {"_base": hidden(page, "_base"), "_version": hidden(page, "_version")}, {"maker": acme}):
        assert as_bob.post(f"/tables/device/{lamp}/", values | more).status_code == 302
    assert stored(bob, f"device/{lamp}")["sys_version"] == 0


def create_table_of_all_types() -> str:
    """Create a table with a column of each type, and return the id of a record in it."""
    world.table("maker")
    world.field("maker", "name", is_display=True)
    world.table("thing")
    for name in EXAMPLES:
        attributes: dict[str, Any] = {"target": "maker"} if name in ("reference", "list") else {}
        attributes |= {"choices": {"1": "New", "2": "Done"}} if name == "choice" else {}
        world.field("thing", f"a_{name}", name, **attributes)
    for sys_id in EXAMPLE_IDS:
        world.record("maker", sys_id=sys_id, name=f"Maker {sys_id}")
    world.open_table("maker")
    world.open_table("thing")
    return world.record("thing", a_json={"a": 1})


def texts_of_all_types(local_time: str) -> dict[str, str]:
    special = {
        "boolean": "true",
        "duration": "1d 2h 3m 4s",
        "datetime": local_time,
        "list": f"Maker {EXAMPLE_IDS[1]}",
        "json": '{"b": 2}',
    }
    return {f"a_{name}": special.get(name, str(example.values[1])) for name, example in EXAMPLES.items()}


@pytest.mark.parametrize(
    ("zone", "local_time"), [("UTC", "2024-05-19T13:45"), ("America/New_York", "2024-05-19T09:45")]
)
def test_every_column_type_can_be_set_and_cleared(as_bob: Client, bob: User, zone: str, local_time: str) -> None:
    bob.time_zone = zone
    bob.save()
    sys_id, texts = create_table_of_all_types(), texts_of_all_types(local_time)
    expected = {f"a_{name}": example.values[1] for name, example in EXAMPLES.items()} | {"a_json": {"b": 2}}
    readable = texts.keys() - {"a_password", "a_secret"}
    url = f"/tables/thing/{sys_id}/"
    assert set(control_names(as_bob.get(url))) == set(texts)

    assert as_bob.post(url, texts).status_code == 302

    record = stored(bob, f"thing/{sys_id}", exclude_reference_link=1)
    assert {name: record[name] for name in readable} == {name: expected[name] for name in readable}
    assert record["sys_version"] == 1

    page = as_bob.get(url)
    unchanged = texts | {"a_password": "", "a_secret": "", "_base": hidden(page, "_base")}
    assert as_bob.post(url, unchanged).status_code == 302
    assert stored(bob, f"thing/{sys_id}")["sys_version"] == 1  # nothing changed

    assert as_bob.post(url, dict.fromkeys(readable, "")).status_code == 302
    record = stored(bob, f"thing/{sys_id}")
    assert {record[name] for name in readable} == {None}


def test_errors_are_shown_beside_their_fields_and_nothing_is_lost(device: None, as_bob: Client, bob: User) -> None:
    lamp = world.record("device", name="Lamp")
    values = {"name": "", "state": "7", "maker": "Nobody", "notes": "typed <b>text</b>"}
    api_errors = world.api(bob).patch(f"device/{lamp}", {"name": "", "state": "7"}).json()["errors"]

    page = as_bob.post(f"/tables/device/{lamp}/", values)

    assert page.status_code == 422
    text = messages_of(page)
    for error in api_errors[1:]:
        assert text.count(error["message"]) == 2  # in the summary and beside the field
    assert "Expected the display value of exactly one record that you can read." in text
    assert "typed &lt;b&gt;text&lt;/b&gt;" in page.content.decode() and 'value="Nobody"' in page.content.decode()
    assert '<a href="#control-state">State</a>' in page.content.decode()
    assert stored(bob, f"device/{lamp}")["name"] == "Lamp"


def test_a_new_record_is_refused_in_the_words_of_the_api(device: None, as_bob: Client, bob: User) -> None:
    page = as_bob.post("/tables/device/new/", {"name": "", "notes": "kept"})
    (error,) = world.api(bob).post("device", {"notes": "kept"}).json()["errors"]
    assert page.status_code == 422 and error["message"] in messages_of(page) and "kept" in page.content.decode()


def test_a_program_gets_errors_as_json(device: None, as_bob: Client) -> None:
    response = as_bob.post("/tables/device/new/", {"name": ""}, headers={"Accept": "application/json"})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "name")


def test_columns_are_read_only_where_the_rules_say_so(device: None, as_bob: Client, bob: User) -> None:
    Rule.objects.filter(table__name="device", operation="write").delete()
    world.rule("write", "device", condition="state=1")
    world.rule("write", "device", "notes", condition="name=Lamp")
    world.rule("write", "device", "maker", roles=["nobody"])
    lamp, desk = world.record("device", name="Lamp", state="1"), world.record("device", name="Desk", state="1")
    done = world.record("device", name="Done", state="2")

    pages = [as_bob.get(f"/tables/device/{sys_id}/") for sys_id in (lamp, desk, done)]

    assert [sorted(control_names(page)) for page in pages] == [["name", "notes", "state"], ["name", "state"], []]
    assert "You can read this record but not change it." in messages_of(pages[2])
    # The form refuses what the API refuses, with its words, and keeps what was typed.
    for sys_id, sent in (
        (done, {"name": "typed"}),
        (desk, {"notes": "typed"}),
        (lamp, {"maker": ""}),
        (lamp, {"number": "5"}),
    ):
        response = as_bob.post(f"/tables/device/{sys_id}/", sent)
        api_response = world.api(bob).patch(f"device/{sys_id}", sent)
        if sent == {"maker": ""}:
            assert response.status_code == 302  # it was empty before
            continue
        assert response.status_code == api_response.status_code
        assert api_response.json()["errors"][0]["message"] in messages_of(response)


def test_numbers_are_shown_with_their_digits_if_they_are_read_only(device: None, as_bob: Client) -> None:
    world.field("device", "price", "decimal")
    world.field("device", "data", "json")
    lamp = world.record("device", name="Lamp", price="0.00000010", data={"a": 1.5})
    Rule.objects.filter(table__name="device", operation="write").delete()
    text = messages_of(as_bob.get(f"/tables/device/{lamp}/"))
    assert "Price 0.00000010" in text and 'Data {"a": 1.5}' in text


def test_a_change_that_hides_the_record_leads_to_the_list(device: None, as_bob: Client, alice: User) -> None:
    Rule.objects.filter(table__name="device", operation="read").delete()
    world.rule("read", "device", condition="state=1")
    lamp = world.record("device", name="Lamp", state="1")
    page = as_bob.post(f"/tables/device/{lamp}/", {"state": "2"}, follow=True)
    assert page.redirect_chain == [("/tables/device/", 302)] and page.status_code == 200
    assert "Saved. You are not allowed to read the changed record." in messages_of(page)


def test_an_unknown_column_is_like_a_hidden_one(device: None, as_bob: Client) -> None:
    world.rule("read", "device", "notes", roles=["nobody"])
    lamp = world.record("device", name="Lamp", notes="secret")
    for url in (f"/tables/device/{lamp}/", "/tables/device/new/"):
        known, unknown = (as_bob.post(url, {"name": "Lamp", name: "secret"}) for name in ("notes", "bones"))
        assert known.status_code == unknown.status_code == 400
        hide = re.compile(r"csrf[^>]*|[a-zA-Z0-9]{64}")
        assert hide.sub("", known.content.decode()).replace("notes", "bones") == hide.sub("", unknown.content.decode())


@pytest.mark.parametrize("path", ["", "delete/", "related/"])
def test_a_hidden_record_is_like_a_missing_one(device: None, as_bob: Client, path: str) -> None:
    Rule.objects.filter(table__name="device", operation="read").delete()
    world.rule("read", "device", condition="name=Lamp")
    desk = world.record("device", name="Desk")
    for method in ("get", "post") if path != "related/" else ("get",):
        responses = [
            getattr(as_bob, method)(f"/tables/{url}/{path}", headers={"Accept": "text/html"})
            for url in (f"device/{desk}", "device/171000000000000009")
        ]
        assert [response.status_code for response in responses] == [404, 404]
        assert without_token(responses[0].content) == without_token(responses[1].content)
    assert world.api(None).get("device").status_code == 401 and not RecentRecord.objects.exists()


def test_a_hidden_table_is_like_a_missing_one(device: None, as_bob: Client) -> None:
    Rule.objects.filter(table__name="device").delete()
    for path in ("new/", "171000000000000009/"):
        contents = {
            without_token(as_bob.get(f"/tables/{table}/{path}", headers={"Accept": "text/html"}).content)
            for table in ("device", "gizmo")
        }
        assert len(contents) == 1


def test_a_caller_who_can_create_but_not_read_learns_that_the_record_was_created(
    device: None, as_bob: Client, alice: User
) -> None:
    Rule.objects.filter(table__name="device", operation="read").delete()
    world.rule("read", "device", roles=["nobody"])
    world.rule("create", "device", "maker", roles=["nobody"])
    assert sorted(control_names(as_bob.get("/tables/device/new/"))) == ["name", "notes", "state"]

    page = as_bob.post("/tables/device/new/", {"name": "Lamp"}, follow=True)

    assert page.status_code == 200 and "The record was created." in messages_of(page)
    assert len(world.data_of(world.api(alice).get("device", query="name=Lamp"))) == 1


def test_a_caller_who_cannot_create_gets_the_error_of_the_api(device: None, as_bob: Client, bob: User) -> None:
    Rule.objects.filter(table__name="device", operation="create").delete()
    for response in (as_bob.get("/tables/device/new/"), as_bob.post("/tables/device/new/", {"name": "Lamp"})):
        assert response.status_code == 403
    assert "Duplicate" not in messages_of(as_bob.get(f"/tables/device/{world.record('device', name='Lamp')}/"))


def test_sections_and_order_come_from_the_form_view(device: None, as_bob: Client, alice: User) -> None:
    world.field("maker", "city")
    view = world.view("device", "form", "notes", "name", "maker.city")
    world.view("device", "Default", "state")
    columns = world.data_of(world.api(alice).get("sys_ui_view_column", query=f"view={view.pk}^path=notes"))
    assert world.api(alice).patch(f"sys_ui_view_column/{columns[0]['sys_id']}", {"section": "Story"}).status_code == 200
    lamp = world.record("device", name="Lamp", maker=world.record("maker", name="Acme", city="Ulm"))

    page = as_bob.get(f"/tables/device/{lamp}/")

    text = messages_of(page)
    assert control_names(page) == ["notes", "name"]
    assert text.index("Story") < text.index("Maker › City") < text.index("Ulm") < text.index("Created by")


def test_a_parameter_fills_the_control_of_its_column(device: None, as_bob: Client, bob: User) -> None:
    acme = world.record("maker", name="Acme")
    page = as_bob.get(f"/tables/device/new/?maker={acme}&name=Lamp&colour=red&sys_id=1")
    assert 'value="Acme"' in page.content.decode() and 'value="Lamp"' in page.content.decode()
    response = as_bob.post(f"/tables/device/new/?maker={acme}", {"name": "Lamp", "maker": "Acme", "_save": "new"})
    assert response["Location"] == f"/tables/device/new/?maker={acme}"
    assert [record["name"] for record in world.data_of(world.api(bob).get("device", query=f"maker={acme}"))] == ["Lamp"]


def test_a_copy_has_the_values_that_can_be_written_without_unique_ones(device: None, as_bob: Client) -> None:
    world.field("device", "serial", is_unique=True)
    acme = world.record("maker", name="Acme")
    lamp = world.record("device", name="Lamp", state="2", maker=acme, serial="S1", notes="text")
    page = as_bob.get(f"/tables/device/new/?_duplicate={lamp}").content.decode()
    assert 'value="Lamp"' in page and 'value="Acme"' in page and ">\ntext</textarea>" in page
    assert '<option value="2" selected>' in page and "S1" not in page
    assert as_bob.get("/tables/device/new/?_duplicate=171000000000000009").status_code == 404


def test_a_deletion_is_confirmed(device: None, as_bob: Client, bob: User) -> None:
    lamp = world.record("device", name="Lamp")
    assert "Delete Lamp?" in messages_of(as_bob.get(f"/tables/device/{lamp}/delete/"))
    assert as_bob.post(f"/tables/device/{lamp}/delete/")["Location"] == "/tables/device/"
    assert world.api(bob).get(f"device/{lamp}").status_code == 404


def test_a_refused_deletion_says_why(device: None, as_bob: Client, bob: User) -> None:
    world.field("device", "part_of", target="device")
    maker = world.record("maker", name="Acme")
    world.table("order")
    world.field("order", "maker", target="maker", mandatory=True)
    world.open_table("order")
    world.record("order", maker=maker)
    page = as_bob.post(f"/tables/maker/{maker}/delete/")
    assert page.status_code == 409
    assert world.api(bob).delete(f"maker/{maker}").json()["errors"][0]["message"] in messages_of(page)


def test_related_lists_contain_only_what_the_caller_can_read(device: None, as_bob: Client) -> None:
    maker = world.record("maker", name="Acme")
    for name in ("Lamp", "Hidden"):
        world.record("device", name=name, maker=maker)
    world.table("order")
    world.field("order", "maker", target="maker")
    world.record("order", maker=maker)
    Rule.objects.filter(table__name="device", operation="read").delete()
    world.rule("read", "device", condition="name=Lamp")

    page = as_bob.get(f"/tables/maker/{maker}/related/")

    text = page.content.decode()
    assert "Device (Maker)" in text and ">Lamp</a>" in text
    assert "Hidden" not in text and "Order" not in text
    assert f'href="/tables/device/new/?maker={maker}"' in text and f"sysparm_query=maker%3D{maker}" in text
    world.rule("read", "device", "maker", roles=["nobody"])
    assert (
        "Device" not in as_bob.get(f"/tables/maker/{maker}/related/", headers={"HX-Request": "true"}).content.decode()
    )


def test_previous_and_next_are_those_of_the_list(device: None, as_bob: Client) -> None:
    ids = [world.record("device", name=name) for name in ("a", "b", "hidden", "c")]
    Rule.objects.filter(table__name="device", operation="read").delete()
    world.rule("read", "device", condition="name!=hidden")
    page = as_bob.get(f"/tables/device/{ids[1]}/?list=sysparm_query%3DORDERBYname")
    links = re.findall(
        r'rel="(prev|next)" href="/tables/device/([^/]+)/\?list=table%3Ddevice%26sysparm_query%3DORDERBYname"',
        page.content.decode(),
    )
    assert links == [("prev", ids[0]), ("next", ids[3])]
    assert 'href="/tables/device/?sysparm_query=ORDERBYname"' in page.content.decode()
    # A list that cannot be read again has no neighbours.
    for text in ("sysparm_query%3DORDERBYcolour", "sysparm_cursor%3Dx", "table%3Dgizmo"):
        page = as_bob.get(f"/tables/device/{ids[1]}/?list={text}")
        assert page.status_code == 200 and 'rel="next"' not in page.content.decode()


def test_visits_are_remembered_by_ids_only(device: None, as_bob: Client, bob: User) -> None:
    ids = [world.record("device", name=f"n{number}") for number in range(MAX_RECENT_RECORDS + 2)]
    for sys_id in [*ids, ids[5]]:
        assert as_bob.get(f"/tables/device/{sys_id}/").status_code == 200
    visits = RecentRecord.objects.filter(user=bob).order_by("-opened_at")
    assert [visit.record_id for visit in visits][:2] == [ids[5], ids[-1]]
    assert len(visits) == MAX_RECENT_RECORDS and ids[0] not in {visit.record_id for visit in visits}


def test_a_form_costs_few_statements(device: None, as_bob: Client) -> None:
    lamp = world.record("device", name="Lamp")
    as_bob.get(f"/tables/device/{lamp}/")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        as_bob.get(f"/tables/device/{lamp}/")
    assert len(queries) <= 5


def test_a_product_table_uses_the_same_form(alice: User, bob: User) -> None:
    as_alice = signed_in_client(alice)
    url = f"/tables/user/{bob.pk}/"
    page = as_alice.get(url)
    assert page.status_code == 200 and "login" in control_names(page) and bob.password not in page.content.decode()
    assert as_alice.post(url, {"first_name": "Robert", "password": ""}).status_code == 302
    bob.refresh_from_db()
    assert bob.first_name == "Robert" and bob.check_password("correct horse 42")
    refused = as_alice.post(url, {"login": "alice"})
    api_response = world.api(alice).patch(f"user/{bob.pk}", {"login": "alice"})
    assert refused.status_code == api_response.status_code
    assert api_response.json()["errors"][0]["message"] in messages_of(refused)


@pytest.mark.parametrize("path", ["new/", "{}/"])
@pytest.mark.parametrize(
    "text", ["\x00", "a\x00b", "x" * 70_000, "\u2028", "9" * 5_000, "٣", "-1e999", ",,", "0001-01-01T00:00"]
)
def test_no_text_is_an_internal_error(device: None, as_bob: Client, bob: User, path: str, text: str) -> None:
    bob.time_zone = "Asia/Tokyo"
    bob.save()
    for name in EXAMPLES:
        attributes: dict[str, Any] = {"target": "maker"} if name in ("reference", "list") else {}
        attributes |= {"choices": {"1": "New"}} if name == "choice" else {}
        world.field("device", f"a_{name}", name, **attributes)
    url = f"/tables/device/{path.format(world.record('device', name='Lamp'))}"
    for name in EXAMPLES:
        assert as_bob.post(url, {"name": "Lamp", f"a_{name}": text}).status_code in (302, 400, 413, 422)


def test_a_long_list_of_references_can_be_saved(device: None, as_bob: Client, bob: User) -> None:
    world.field("device", "makers", "list", target="maker")
    ids = [world.record("maker", name=f"m{number}") for number in range(901)]
    lamp = world.record("device", name="Lamp")
    assert as_bob.post(f"/tables/device/{lamp}/", {"makers": ",".join(ids)}).status_code == 302
    assert stored(bob, f"device/{lamp}", exclude_reference_link=1)["makers"] == ids
    page = as_bob.post(f"/tables/device/{lamp}/", {"makers": ",".join([*ids, *ids])})
    assert page.status_code == 422 and "Expected at most 1000 references." in messages_of(page)

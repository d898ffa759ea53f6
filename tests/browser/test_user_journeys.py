"""The product as each kind of user meets it from the first start, knowing only the README.

The administrator comes first and sets up what the others use; each goes by what stands on the pages.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.collection_pages import LOADED_WITHIN_MS, file
from tests.browser.demo_provider import Demo
from tests.browser.identity_provider import Traveller
from tests.browser.visitor import PHONE
from tests.config.stack import Stack, eventually

pytestmark = [pytest.mark.browser, pytest.mark.provider]

PASSWORD = "a first password"
MANUAL = b"# Badge readers\n\nA badge reader that blinks red three times wants a new battery.\n"
DATE = "2026-11-30"


@dataclass
class House:
    """The product, the demo provider, and what the administrator made: a key for scripts."""

    product: Stack
    demo: Demo
    key: str = ""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[House]:
    product = Stack(tmp_path_factory.mktemp("walks") / "data", SVC_ADMIN_PASSWORD=PASSWORD).start()
    try:
        product.wait_until_up()
        eventually(lambda: product.get("/readyz") == 200)
        house = House(product, Demo(product.env))
        try:
            administrator(house, browser)
            yield house
        finally:
            assert house.demo.stop() == 0
    finally:
        product.stop()
        product.end()


def administrator(house: House, browser: Browser) -> None:
    """Connects the provider, designs a table with rules, makes a key, loads documents."""
    alice = Traveller(browser, house.product.url, house.demo.field("URL IdP"))
    page = alice.sign_in_locally("admin", PASSWORD).page
    page.get_by_role("link", name="Administration").first.click()
    connects(page, house.demo)
    designs(page)
    lets_in(page)
    house.key = makes_key(page)
    fills_collection(page)
    alice.context.close()
    assert alice.complaints == []


def opens(page: Page, name: str) -> None:
    """By the link of the administration's own menu, and there to a new record."""
    page.get_by_role("link", name=name, exact=True).first.click()
    page.locator("a[href*='/add/']").first.click()


def saves(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(lambda url: not url.endswith("/add/"))
    expect(page.locator(".errornote, .errorlist")).to_have_count(0)


def connects(page: Page, demo: Demo) -> None:
    opens(page, "login OIDC settings")
    for name in ("Name", "URL IdP", "Realm", "Client ID", "Client secret"):
        page.locator(f"#id_{name.lower().replace(' ', '_')}").fill(demo.field(name))
    # "The rest stands there already."
    for name in ("Redirect URI", "Scope"):
        assert page.locator(f"#id_{name.lower().replace(' ', '_')}").input_value() == demo.field(name)
    for name in ("Authorization type", "User field"):
        assert page.locator(f"#id_{name.lower().replace(' ', '_')} option:checked").inner_text() == demo.field(name)
    for box in demo.field("Tick").split(", "):
        page.locator(f"#id_{box.lower().replace(' ', '_')}").check()
    saves(page)
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("The connection works.").wait_for()


def designs(page: Page) -> None:
    """A table with columns of several types, and a view of some of them."""
    opens(page, "table Tables")
    page.locator("#id_name").fill("device")
    page.locator("#id_label").fill("Device")
    saves(page)
    columns: tuple[dict[str, str], ...] = (
        {"name": "title", "type": "string"}, {"name": "owner", "type": "reference", "reference_table": "user"},
        {"name": "state", "type": "choice"}, {"name": "checked_on", "type": "date"},
    )  # fmt: skip
    for column in columns:
        opens(page, "view_column Columns")
        page.locator("#id_table").select_option(label="device")
        page.locator("#id_type").select_option(column["type"])
        page.locator("#id_name").fill(column["name"])
        page.locator("#id_label").fill(column["name"].replace("_", " ").capitalize())
        if "reference_table" in column:
            page.locator("#id_reference_table").select_option(label=column["reference_table"])
        if column["type"] == "choice":
            for number, label in enumerate(("In use", "Broken")):
                page.get_by_text("Add another Choice").click()
                page.locator(f"#id_choices-{number}-value").fill(str(number + 1))
                page.locator(f"#id_choices-{number}-label").fill(label)
        saves(page)
    opens(page, "visibility Views")
    page.locator("#id_table").select_option(label="device")
    page.locator("#id_name").fill("short")
    for number, path in enumerate(("title", "owner.login")):
        page.get_by_text("Add another Column").click()
        page.locator(f"#id_columns-{number}-path").fill(path)
    saves(page)


def finds_role(page: Page, field: str, name: str) -> None:
    page.locator(f".field-{field} .select2-search__field").fill(name)
    page.locator(".select2-results__option", has_text=re.compile(f"^{name}$")).click()


def lets_in(page: Page) -> None:
    """Who has the role itil may do everything with devices but see when they were checked."""
    for operation, column in (("create", ""), ("read", ""), ("write", ""), ("delete", ""), ("read", "checked_on")):
        opens(page, "shield Access rules")
        page.locator("#id_operation").select_option(operation)
        page.locator("#id_table").select_option(label="device")
        page.locator("#id_column_name").fill(column)
        finds_role(page, "roles", "admin" if column else "itil")
        saves(page)


def makes_key(page: Page) -> str:
    page.goto("/account/")
    if not page.get_by_label("Name", exact=True).is_visible():
        page.get_by_text("New key").click()
    page.get_by_label("Name", exact=True).fill("first script")
    page.get_by_role("button", name="Create key").click()
    return page.locator("#new-key").inner_text()


def fills_collection(page: Page) -> None:
    page.get_by_role("link", name="Servicebase").first.click()
    page.get_by_role("link", name="Collections").first.click()
    page.get_by_label("Name").fill("Badges")
    page.get_by_role("button", name="Create collection").click()
    page.get_by_role("heading", name="Add documents").wait_for()
    page.set_input_files("#files", file("badges.md", MANUAL))
    expect(page.locator("#documents")).to_contain_text("1 ready", timeout=LOADED_WITHIN_MS)
    page.get_by_role("link", name="Settings").click()
    finds_role(page, "reader_roles", "itil")
    saves(page)


def curl(house: House, *words: str) -> tuple[int, Any]:
    """Status and body, as somebody at a terminal gets them."""
    request = ["curl", "-s", "-w", "\n%{http_code}", "-H", f"Authorization: Bearer {house.key}", *words]
    output = subprocess.run(request, capture_output=True, text=True, timeout=60, check=True).stdout
    body, _, status = output.rpartition("\n")
    return int(status), json.loads(body)


def with_body(body: dict[str, Any]) -> tuple[str, ...]:
    return ("-H", "Content-Type: application/json", "-d", json.dumps(body))


def test_integrator_uses_every_table_operation_with_curl(house: House, tmp_path: Path):
    devices = f"{house.product.url}/rest/v1/table/device"
    status, me = curl(house, f"{house.product.url}/rest/v1/table/user?sysparm_query=login=admin")
    assert status == 200

    values = {"title": "Reader at the gate", "owner": me["data"][0]["sys_id"], "state": "1", "checked_on": DATE}
    status, made = curl(house, devices, *with_body(values))
    assert status == 201
    one = f"{devices}/{made['data'][0]['sys_id']}"
    text = "sysparm_query=stateIN1,2^ORDERBYtitle&sysparm_view=short&sysparm_limit=5"
    assert curl(house, f"{devices}?{text}") == (
        200, {"status": "OK", "data": [{"title": "Reader at the gate", "owner.login": "admin"}]},
    )  # fmt: skip
    assert curl(house, "-X", "PATCH", one, *with_body({"state": "2"}))[0] == 200
    status, shown = curl(house, f"{one}?sysparm_fields=state,checked_on&sysparm_display_value=1")
    assert shown["data"] == [{"state": "Broken", "checked_on": "30 Nov 2026"}]
    assert curl(house, "-X", "PUT", one, *with_body({"title": "Reader at the door"}))[0] == 200
    assert curl(house, one)[1]["data"][0]["owner"] in ("", None)
    assert curl(house, "-X", "DELETE", one)[0] == 200
    assert curl(house, one)[0] == 404


def test_integrator_loads_searches_and_deletes_documents_with_curl(house: House, tmp_path: Path):
    own = house.product.url
    (tmp_path / "doors.md").write_text("# Doors\n\nA door that stays open longer than a minute calls the porter.\n")
    load = ("-F", f"file=@{tmp_path}/doors.md", "-F", 'metadata={"type": "manual"}')
    status, loaded = curl(house, *load, f"{own}/load_document_to_collection?collection_name=Badges&doc_id=doors")
    assert (status, loaded["document_status"]) == (201, "ready")
    text = with_body({"text": "The porter has the number 12.", "metadata": {"type": "note"}})
    assert curl(house, *text, f"{own}/load_text_to_collection?collection_name=Badges&doc_id=porter")[0] == 201

    path = f"{own}/get_relevant_documents?collection_names=Badges&query=porter&metadata=type=manual"
    assert [each["doc_id"] for each in curl(house, path)[1]] == ["doors"]
    tagged = curl(house, f"{own}/get_content_by_tag?collection_name=Badges&tag_info=type=note")[1]
    assert [each["page_content"] for each in tagged] == ["The porter has the number 12."]
    names = curl(house, f"{own}/get_list_of_documents_names?collection_name=Badges")[1]
    assert len(names) == 3
    collections = curl(house, f"{own}/get_list_of_collection")[1]
    assert "Badges" in {each["collection_name"] for each in collections}
    gone = f"{own}/delete_document_from_collection?collection_name=Badges&id_value=porter"
    assert [curl(house, "-X", "DELETE", gone)[0] for _ in range(2)] == [200, 404]


def test_user_signs_in_through_the_provider_and_finds_own_records(house: House, browser: Browser):
    anna = Traveller(browser, house.product.url, house.demo.field("URL IdP"))
    page = anna.sign_in("anna", house.demo.password).page
    expect(page.get_by_role("heading", name="Hello, Anna")).to_be_visible()
    assert page.get_by_role("link", name="Administration").count() == 0

    page.get_by_role("link", name="Collections").first.click()
    page.get_by_role("link", name="Badges").click()
    assert page.get_by_role("heading", name="Add documents").count() == 0
    page.get_by_label("What are you looking for?").fill("reader blinks red")
    page.get_by_role("button", name="Search").click()
    first = page.locator(".hits li").first
    expect(first).to_contain_text("wants a new battery")
    expect(first.locator("mark").first).to_be_visible()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0

    page.goto("/account/")
    expect(page.get_by_text("Signed in as anna")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{house.demo.field('URL IdP')}/**")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{house.product.url}/login/?signed_out=1")
    assert anna.complaints == []


def test_access_rules_apply_to_that_user(house: House, browser: Browser):
    """With a key that she makes, since scripts see what she sees."""
    devices = "/rest/v1/table/device"
    response = house.product.call(
        "POST", devices, {"title": "Seen by all who work here", "checked_on": DATE}, key=house.key
    )
    anna = Traveller(browser, house.product.url, house.demo.field("URL IdP"))
    key = makes_key(anna.sign_in("anna", house.demo.password).page)

    seen = house.product.call("GET", f"{devices}?sysparm_query=titleSTARTSWITHSeen", key=key)

    assert response.body["data"][0]["checked_on"] == DATE
    assert [each["title"] for each in seen.body["data"]] == ["Seen by all who work here"]
    assert "checked_on" not in seen.body["data"][0]
    asked = house.product.call("GET", f"{devices}?sysparm_query=checked_onISNOTEMPTY", key=key)
    assert (asked.status, asked.body["errors"][0]["code"]) == (400, "unknown_field")

"""Each kind of user works with a new installation, knowing only the README and the texts of the pages.

The administrator first sets up the provider, table and collection that the others use.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.collection_pages import LOAD_TIMEOUT_MS, file_payload
from tests.browser.demo_provider import DemoProvider
from tests.browser.sso_setup import SsoVisitor
from tests.browser.visitor import PHONE_SIZE
from tests.config.stack import Stack, eventually

pytestmark = [pytest.mark.browser, pytest.mark.provider]

PASSWORD = "a first password"
MANUAL = b"# Badge readers\n\nA badge reader that blinks red three times wants a new battery.\n"
DATE = "2026-11-30"


@dataclass
class Installation:
    """The product, the demo provider, and a key for scripts that the administrator created."""

    product: Stack
    demo_provider: DemoProvider
    key: str = ""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Installation]:
    product = Stack(tmp_path_factory.mktemp("walks") / "data", SVC_ADMIN_PASSWORD=PASSWORD).start()
    try:
        product.wait_until_up()
        eventually(lambda: product.get("/readyz") == 200)
        installation = Installation(product, DemoProvider(product.env))
        try:
            set_up_installation(installation, browser)
            yield installation
        finally:
            assert installation.demo_provider.stop() == 0
    finally:
        product.stop()
        product.end()


def set_up_installation(installation: Installation, browser: Browser) -> None:
    """Connects the provider, designs a table with rules, creates a key, and loads documents."""
    alice = SsoVisitor(browser, installation.product.url, installation.demo_provider.printed_value("Provider URL"))
    page = alice.sign_in_locally("admin", PASSWORD).page
    page.get_by_role("link", name="Administration").first.click()
    connect_provider(page, installation.demo_provider)
    design_table(page)
    create_access_rules(page)
    installation.key = create_key(page)
    fill_collection(page)
    alice.context.close()
    assert alice.problems == []


def open_new_record(page: Page, name: str) -> None:
    """Opens a list from the menu of the administration, and the form of a new record."""
    page.get_by_role("link", name=name, exact=True).first.click()
    page.locator("a[href*='/add/']").first.click()


def save_record(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(lambda url: not url.endswith("/add/"))
    expect(page.locator(".errornote, .errorlist")).to_have_count(0)


def field_selector(label: str) -> str:
    return "#id_url_idp" if label == "Provider URL" else f"#id_{label.lower().replace(' ', '_')}"


def connect_provider(page: Page, demo_provider: DemoProvider) -> None:
    open_new_record(page, "OIDC settings")
    for name in ("Name", "Provider URL", "Realm", "Client ID", "Client secret"):
        page.locator(field_selector(name)).fill(demo_provider.printed_value(name))
    # These fields are already filled in.
    for name in ("Redirect URI", "Scope"):
        assert page.locator(field_selector(name)).input_value() == demo_provider.printed_value(name)
    for name in ("Authorization type", "User field"):
        option = page.locator(f"{field_selector(name)} option:checked")
        assert option.inner_text() == demo_provider.printed_value(name)
    for checkbox_name in demo_provider.printed_value("Select").split(", "):
        page.locator(field_selector(checkbox_name)).check()
    save_record(page)
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("The connection works.").wait_for()


def design_table(page: Page) -> None:
    """Creates a table with columns of several types, and a view of some of them."""
    page.get_by_role("link", name="Design tables", exact=True).first.click()
    page.get_by_role("link", name="Create table").click()
    page.get_by_label("Label").first.fill("Device")
    for card, label in (("string", "Title"), ("reference", "Owner"), ("choice", "State"), ("date", "Checked on")):
        page.locator(f"[data-add-type={card}]").click()
        page.keyboard.insert_text(label)
    page.get_by_label("Refers to").locator("visible=true").fill("User (u")
    page.get_by_role("option", name="User (user)").click()
    page.locator("[name$=-choices]:visible").fill("1: In use\n2: Broken")
    page.get_by_role("button", name="Create table").click()
    page.wait_for_url("**/design/device/")
    page.get_by_role("button", name="Add another view").click()
    view = page.get_by_role("group", name="View").last
    view.get_by_label("Name").fill("short")
    view.locator("textarea").evaluate("(area) => { area.value = 'title\\nowner.login'; }")
    page.get_by_role("button", name="Save", exact=True).last.click()
    page.get_by_text("Saved.").wait_for()
    page.goto("/admin/")


def create_access_rules(page: Page) -> None:
    """Allows the role itil every operation on devices, except reading the column `checked_on`."""
    page.goto("/design/device/")
    for role in ("itil", "admin"):
        page.locator("#rules-add-role").select_option(label=role)
    for operation in ("create", "read", "write", "delete"):
        page.get_by_label(f"itil: {operation} the record").check()
    page.locator("#rules-add-column").select_option(label="Checked on")
    page.get_by_label("admin: read Checked on").check()
    page.get_by_role("button", name="Save", exact=True).last.click()
    page.get_by_text("Saved.").wait_for()


def create_key(page: Page) -> str:
    page.goto("/account/")
    if not page.get_by_label("Name", exact=True).is_visible():
        page.get_by_text("New key").click()
    page.get_by_label("Name", exact=True).fill("first script")
    page.get_by_role("button", name="Create key").click()
    return page.locator("#new-key").inner_text()


def fill_collection(page: Page) -> None:
    page.get_by_role("link", name="Servicebase").first.click()
    page.get_by_role("link", name="Collections").first.click()
    page.get_by_label("Name", exact=True).fill("Badges")
    page.get_by_role("button", name="Create collection").click()
    page.get_by_role("heading", name="Add documents").wait_for()
    page.set_input_files("#files", file_payload("badges.md", MANUAL))
    expect(page.locator("#documents")).to_contain_text("1 ready", timeout=LOAD_TIMEOUT_MS)
    page.get_by_role("link", name="Access", exact=True).click()
    page.get_by_role("group", name="Readers").get_by_label("itil", exact=True).check()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved.").wait_for()


def curl(installation: Installation, *arguments: str) -> tuple[int, Any]:
    """Runs curl; returns status and body of the response."""
    command = ["curl", "-s", "-w", "\n%{http_code}", "-H", f"Authorization: Bearer {installation.key}", *arguments]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    body, _, status = output.rpartition("\n")
    return int(status), json.loads(body)


def json_arguments(body: dict[str, Any]) -> tuple[str, ...]:
    return ("-H", "Content-Type: application/json", "-d", json.dumps(body))


def test_integrator_uses_every_table_operation_with_curl(installation: Installation, tmp_path: Path):
    devices_url = f"{installation.product.url}/rest/v1/table/device"
    status, user_list = curl(installation, f"{installation.product.url}/rest/v1/table/user?sysparm_query=login=admin")
    assert status == 200

    payload = {"title": "Reader at the gate", "owner": user_list["data"][0]["sys_id"], "state": "1", "checked_on": DATE}
    status, created = curl(installation, devices_url, *json_arguments(payload))
    assert status == 201
    device_url = f"{devices_url}/{created['data'][0]['sys_id']}"
    query = "sysparm_query=stateIN1,2^ORDERBYtitle&sysparm_view=short&sysparm_limit=5"
    assert curl(installation, f"{devices_url}?{query}") == (
        200, {"status": "OK", "data": [{"title": "Reader at the gate", "owner.login": "admin"}]},
    )  # fmt: skip
    assert curl(installation, "-X", "PATCH", device_url, *json_arguments({"state": "2"}))[0] == 200
    status, display_values = curl(installation, f"{device_url}?sysparm_fields=state,checked_on&sysparm_display_value=1")
    assert display_values["data"] == [{"state": "Broken", "checked_on": "30 Nov 2026"}]
    assert curl(installation, "-X", "PUT", device_url, *json_arguments({"title": "Reader at the door"}))[0] == 200
    assert curl(installation, device_url)[1]["data"][0]["owner"] in ("", None)
    assert curl(installation, "-X", "DELETE", device_url)[0] == 200
    assert curl(installation, device_url)[0] == 404


def test_integrator_loads_searches_and_deletes_documents_with_curl(installation: Installation, tmp_path: Path):
    product_url = installation.product.url
    (tmp_path / "doors.md").write_text("# Doors\n\nA door that stays open longer than a minute calls the porter.\n")
    upload_arguments = ("-F", f"file=@{tmp_path}/doors.md", "-F", 'metadata={"type": "manual"}')
    url = f"{product_url}/load_document_to_collection?collection_name=Badges&doc_id=doors"
    status, document = curl(installation, *upload_arguments, url)
    assert (status, document["document_status"]) == (201, "ready")
    body = {"text": "The porter has the number 12.", "metadata": {"type": "note"}}
    url = f"{product_url}/load_text_to_collection?collection_name=Badges&doc_id=porter"
    assert curl(installation, *json_arguments(body), url)[0] == 201

    url = f"{product_url}/get_relevant_documents?collection_names=Badges&query=porter&metadata=type=manual"
    assert [row["doc_id"] for row in curl(installation, url)[1]] == ["doors"]
    url = f"{product_url}/get_content_by_tag?collection_name=Badges&tag_info=type=note"
    assert [row["page_content"] for row in curl(installation, url)[1]] == ["The porter has the number 12."]
    document_names = curl(installation, f"{product_url}/get_list_of_documents_names?collection_name=Badges")[1]
    assert len(document_names) == 3
    collections = curl(installation, f"{product_url}/get_list_of_collection")[1]
    assert "Badges" in {row["collection_name"] for row in collections}
    deletion_url = f"{product_url}/delete_document_from_collection?collection_name=Badges&id_value=porter"
    assert [curl(installation, "-X", "DELETE", deletion_url)[0] for _ in range(2)] == [200, 404]


def test_user_signs_in_through_the_provider_and_finds_own_records(installation: Installation, browser: Browser):
    anna = SsoVisitor(browser, installation.product.url, installation.demo_provider.printed_value("Provider URL"))
    page = anna.sign_in("anna", installation.demo_provider.password).page
    expect(page.get_by_role("heading", name="Hello, Anna")).to_be_visible()
    assert page.get_by_role("link", name="Administration").count() == 0

    page.get_by_role("link", name="Collections").first.click()
    page.get_by_role("link", name="Badges").click()
    assert page.get_by_role("heading", name="Add documents").count() == 0
    page.get_by_label("What are you looking for?").fill("reader blinks red")
    page.get_by_role("button", name="Search").click()
    first_hit = page.locator(".hits li").first
    expect(first_hit).to_contain_text("wants a new battery")
    expect(first_hit.locator("mark").first).to_be_visible()
    page.set_viewport_size(PHONE_SIZE)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0

    page.goto("/account/")
    expect(page.get_by_text("Signed in as anna")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{installation.demo_provider.printed_value('Provider URL')}/**")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{installation.product.url}/login/?signed_out=1")
    assert anna.problems == []


def test_access_rules_apply_to_the_user_of_the_provider(installation: Installation, browser: Browser):
    """Uses a key of the user, because scripts have the same permissions."""
    devices_path = "/rest/v1/table/device"
    creation = installation.product.call(
        "POST", devices_path, {"title": "Seen by all who work here", "checked_on": DATE}, key=installation.key
    )
    anna = SsoVisitor(browser, installation.product.url, installation.demo_provider.printed_value("Provider URL"))
    anna_key = create_key(anna.sign_in("anna", installation.demo_provider.password).page)

    list_response = installation.product.call("GET", f"{devices_path}?sysparm_query=titleSTARTSWITHSeen", key=anna_key)

    assert creation.body["data"][0]["checked_on"] == DATE
    assert [row["title"] for row in list_response.body["data"]] == ["Seen by all who work here"]
    assert "checked_on" not in list_response.body["data"][0]
    refusal = installation.product.call("GET", f"{devices_path}?sysparm_query=checked_onISNOTEMPTY", key=anna_key)
    assert (refusal.status, refusal.body["errors"][0]["code"]) == (400, "unknown_field")

"""Uploads on the page of a collection, and their results."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.collection_pages import (
    LOAD_TIMEOUT_MS,
    create_collection,
    documents_section,
    file_payload,
    fill_metadata,
    open_documents,
    search,
    upload_files,
    wait_until_ready,
)
from tests.browser.visitor import Visitor
from tests.support.users import PASSWORD

pytestmark = pytest.mark.browser

REPLACE_LABEL = "Replace documents with the same file name"


def test_files_can_be_dropped(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    data_transfer = page.evaluate_handle(
        """() => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File(["Dropped text about printers"], "dropped.txt", { type: "text/plain" }));
            return dataTransfer;
        }"""
    )
    page.dispatch_event(".drop-zone", "drop", {"dataTransfer": data_transfer})
    wait_until_ready(page)
    expect(documents_section(page)).to_contain_text("dropped.txt")


def test_failed_upload_shows_the_reason(collection_visitor: Visitor):
    page = collection_visitor.page
    page.get_by_text("Metadata for new uploads").click()
    fill_metadata(page, 1, "priority", "high")
    page.set_input_files("#files", file_payload("a.txt", b"Text"))
    expect(page.locator("#uploads li").last).to_contain_text("priority")
    fill_metadata(page, 1, "", "")
    page.set_input_files("#files", file_payload("program.exe", b"MZ\x00\x00\x00"))
    expect(page.locator("#uploads li .error-text")).to_have_count(2)
    page.evaluate("document.getElementById('upload').dataset.limitBytes = 3")
    page.set_input_files("#files", file_payload("large.txt", b"Text"))
    expect(page.locator("#uploads li").last).to_contain_text("larger than")
    expect(documents_section(page)).to_contain_text("0 documents")


def test_upload_after_the_session_has_ended_leads_to_the_sign_in(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    page = desktop_visitor.page
    documents_url = create_collection(page)
    desktop_visitor.context.clear_cookies()
    page.set_input_files("#files", [file_payload("a.txt", b"Text"), file_payload("b.txt", b"Text")])
    expect(page.locator("#uploads li", has_text="Your session has ended.")).to_have_count(2)
    assert page.get_by_role("button", name="Retry a.txt").count() == 0
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Login").fill("carl")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(documents_url)


def test_retry_sends_the_current_metadata(collection_visitor: Visitor):
    page = collection_visitor.page
    upload_rows = page.locator("#uploads li")
    page.get_by_text("Metadata for new uploads").click()
    fill_metadata(page, 1, "weight", "heavy", "Number")
    page.set_input_files("#files", [file_payload(f"{name}.txt", name.encode()) for name in ("a", "b", "c")])
    expect(upload_rows.locator(".error-text")).to_have_count(3)
    expect(upload_rows.first).to_contain_text("Change the metadata above and try again.")
    assert collection_visitor.overflow_px() <= 0

    page.get_by_role("button", name="Retry a.txt").press("Enter")
    expect(upload_rows.first).to_be_focused()  # the button is gone
    expect(upload_rows.locator(".error-text")).to_have_count(3)  # the metadata is still invalid
    fill_metadata(page, 1, "type", "note")
    page.get_by_role("button", name="Retry a.txt").press("Enter")
    wait_until_ready(page)
    expect(documents_section(page)).to_contain_text("type: note")
    page.get_by_role("button", name="Retry all").click()
    wait_until_ready(page, 3)
    expect(page.get_by_role("button", name="Retry all")).to_be_hidden()


def test_failed_upload_can_be_removed(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    rejected_files = [
        file_payload("one.exe", b"MZ\x00\x00"),
        file_payload("two.exe", b"MZ\x00\x00"),
        file_payload("empty.txt", b""),
    ]
    page.set_input_files("#files", rejected_files)
    expect(page.locator("#uploads .error-text")).to_have_count(3)
    # A retry cannot succeed: their types are not supported, or they are empty.
    assert page.get_by_role("button", name="Try").count() == 0

    page.get_by_role("button", name="Remove one.exe").press("Enter")
    expect(page.locator("#uploads li")).to_have_count(2)
    expect(page.get_by_role("button", name="Remove two.exe")).to_be_focused()
    page.get_by_role("button", name="Remove all failed uploads").click()
    expect(page.locator("#uploads")).to_be_hidden()
    expect(page.locator("#files")).to_be_focused()


def test_same_file_is_stored_once(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    for _ in range(2):
        page.set_input_files("#files", file_payload("a.txt", b"The same text"))
        wait_until_ready(page)
    expect(page.locator("#uploads li").last).to_contain_text("already exists")
    expect(documents_section(page)).to_contain_text("1 document,")


def test_upload_row_says_how_processing_ended(collection_visitor: Visitor):
    page = collection_visitor.page
    rows = upload_files(page, file_payload("good.md", b"The lamp"), file_payload("broken.pdf", b"%PDF-1.7 broken"))
    expect(rows.filter(has_text="good.md").get_by_role("status")).to_have_text("ready", timeout=LOAD_TIMEOUT_MS)
    broken = rows.filter(has_text="broken.pdf")
    expect(broken.locator(".error-text")).to_be_visible(timeout=LOAD_TIMEOUT_MS)
    expect(page.locator("#uploads progress:visible")).to_have_count(0)
    broken.get_by_role("button", name="Remove").click()
    expect(broken).to_have_count(0)


def test_changed_file_replaces_the_document(collection_visitor: Visitor):
    page = collection_visitor.page
    metadata_summary = page.locator("#upload").get_by_text("Metadata for new uploads")
    metadata_summary.click()
    fill_metadata(page, 1, "type", "manual")
    upload_files(page, file_payload("b.md", b"The old lamp"), file_payload("ab.md", b"Another lamp"))
    wait_until_ready(page, 2)
    fill_metadata(page, 1, "", "")
    page.get_by_label(REPLACE_LABEL).press("Space")
    upload_files(page, file_payload("b.md", b"The new lantern"), file_payload("c.md", b"First of its name"))
    wait_until_ready(page, 3)
    expect(documents_section(page)).to_contain_text("3 documents,")
    expect(page.locator("#uploads")).not_to_contain_text("Another document")
    # The replaced document keeps its metadata, because no other was entered.
    expect(documents_section(page).locator(".metadata", has_text="type: manual")).to_have_count(2)
    search(page, "old new lantern")
    expect(page.locator(".hits > li").filter(has_text="The new lantern")).to_have_count(1)
    expect(page.locator(".hits > li").filter(has_text="The old lamp")).to_have_count(0)
    assert collection_visitor.overflow_px() <= 0

    # Selected together, and uploaded one after the other.
    open_documents(page)
    page.get_by_label(REPLACE_LABEL).press("Space")
    upload_files(page, file_payload("d.md", b"Older"), file_payload("d.md", b"Newer"))
    wait_until_ready(page, 4)


def test_composed_and_decomposed_names_are_treated_as_equal(collection_visitor: Visitor):
    page = collection_visitor.page
    page.get_by_label(REPLACE_LABEL).check()
    payloads = (
        file_payload("cafe\u0301.md", b"Once"),
        file_payload("caf\u00e9.md", b"Twice"),
        file_payload("cafe\u0301.md", b"Thrice"),
    )
    for payload in payloads:
        expect(upload_files(page, payload)).not_to_contain_text("Another document")
        wait_until_ready(page)
    expect(documents_section(page)).to_contain_text("1 document,")


def test_second_document_with_the_same_name_is_reported(collection_visitor: Visitor):
    page = collection_visitor.page
    assert not page.get_by_label(REPLACE_LABEL).is_checked()
    upload_rows = upload_files(page, file_payload("b.md", b"The old lamp"))
    wait_until_ready(page)
    expect(upload_rows).not_to_contain_text("Another document")
    upload_rows = upload_files(page, file_payload("b.md", b"The new lamp"))
    expect(upload_rows).to_contain_text("Another document has the same name.")
    wait_until_ready(page, 2)

    page.get_by_label(REPLACE_LABEL).check()
    upload_rows = upload_files(page, file_payload("b.md", b"The newest lamp"))
    expect(upload_rows).to_contain_text("Several documents have this name")
    expect(upload_rows.get_by_role("button", name="Retry b.md")).to_be_visible()
    assert collection_visitor.overflow_px() <= 0
    page.get_by_role("button", name="Delete b.md").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    wait_until_ready(page, 1)
    page.get_by_role("button", name="Retry b.md").click()
    expect(page.locator("#uploads .is-done")).to_have_count(1)
    wait_until_ready(page, 1)


def test_metadata_can_be_corrected(collection_visitor: Visitor):
    page = collection_visitor.page
    upload_files(page, file_payload("b.md", b"The lamp"))
    wait_until_ready(page)
    page.get_by_role("link", name="Metadata of b.md").press("Enter")
    page.get_by_text("Advanced").click()
    metadata_field = page.get_by_label("JSON object")
    metadata_field.fill('{"type": ')
    page.get_by_role("button", name="Save JSON").press("Enter")
    expect(page.get_by_role("alert").filter(has_text="JSON")).to_be_visible()
    expect(metadata_field).to_be_focused()
    expect(metadata_field).to_have_value('{"type": ')
    assert collection_visitor.overflow_px() <= 0
    metadata_field.fill('{"type": "hint"}')
    page.get_by_role("button", name="Save JSON").press("Enter")
    expect(documents_section(page)).to_contain_text("type: hint")
    collection_visitor.problems = [
        problem for problem in collection_visitor.problems if "status of 400" not in problem
    ]  # expected


def test_upload_during_a_refresh_appears_in_the_list(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    held_responses: list[Any] = []

    def hold_response(route: Any) -> None:
        """Holds the first response in which all documents are ready, after which the list does not poll again."""
        if held_responses or route.request.method != "GET" or "hx-request" not in route.request.headers:
            route.continue_()
            return
        response = route.fetch()
        while "every 2s" in response.text():
            response = route.fetch()
        held_responses.append((route, response))

    def upload(name: str) -> None:
        page.set_input_files("#files", file_payload(name, b"Note\n" + name.encode()))
        expect(page.locator("#uploads .is-done", has_text=name)).to_be_visible(timeout=LOAD_TIMEOUT_MS)

    page.route("**/collections/**", hold_response)
    upload("a.txt")
    while not held_responses:
        page.wait_for_timeout(50)
    upload("b.txt")
    route, response = held_responses[0]
    route.fulfill(response=response)

    wait_until_ready(page, 2)

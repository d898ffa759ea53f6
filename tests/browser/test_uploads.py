"""Uploads on the page of a collection, and their results."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.collection_pages import (
    LOADED_WITHIN_MS,
    documents,
    file,
    make_collection,
    send,
    wait_until_ready,
)
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser

IN_PLACE = "Replace documents with the same file name"


def test_files_can_be_dropped(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    dropped = page.evaluate_handle(
        """() => {
            const carried = new DataTransfer();
            carried.items.add(new File(["Dropped text about printers"], "dropped.txt", { type: "text/plain" }));
            return carried;
        }"""
    )
    page.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
    wait_until_ready(page)
    expect(documents(page)).to_contain_text("dropped.txt")


def test_failed_upload_shows_the_reason(at_manuals: Visitor):
    page = at_manuals.page
    page.get_by_text("Metadata for new uploads").click()
    page.get_by_label("JSON object, stored with each file").fill('{"priority": "high"}')
    page.set_input_files("#files", file("a.txt", b"Text"))
    expect(page.locator("#uploads li").last).to_contain_text("priority")
    page.get_by_label("JSON object, stored with each file").fill("")
    page.set_input_files("#files", file("program.exe", b"MZ\x00\x00\x00"))
    expect(page.locator("#uploads li .bad")).to_have_count(2)
    page.evaluate("document.getElementById('upload').dataset.limit = 3")
    page.set_input_files("#files", file("large.txt", b"Text"))
    expect(page.locator("#uploads li").last).to_contain_text("larger than")
    expect(documents(page)).to_contain_text("0 documents")


def test_retry_sends_the_current_metadata(at_manuals: Visitor):
    page = at_manuals.page
    sent = page.locator("#uploads li")
    metadata = page.get_by_label("JSON object, stored with each file")
    page.get_by_text("Metadata for new uploads").click()
    metadata.fill('{"type": ')
    page.set_input_files("#files", [file(f"{name}.txt", name.encode()) for name in ("a", "b", "c")])
    expect(sent.locator(".bad")).to_have_count(3)
    expect(sent.first).to_contain_text("Change the metadata above and try again.")
    assert at_manuals.overflow() <= 0

    page.get_by_role("button", name="Retry a.txt").press("Enter")
    expect(sent.first).to_be_focused()  # the button is gone
    expect(sent.locator(".bad")).to_have_count(3)  # nothing was mended yet
    metadata.fill('{"type": "note"}')
    page.get_by_role("button", name="Retry a.txt").press("Enter")
    wait_until_ready(page)
    expect(documents(page)).to_contain_text("type: note")
    page.get_by_role("button", name="Retry all").click()
    wait_until_ready(page, 3)
    expect(page.get_by_role("button", name="Retry all")).to_be_hidden()


def test_failed_upload_can_be_removed(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    hopeless = [file("one.exe", b"MZ\x00\x00"), file("two.exe", b"MZ\x00\x00"), file("empty.txt", b"")]
    page.set_input_files("#files", hopeless)
    expect(page.locator("#uploads .bad")).to_have_count(3)
    # They are of a kind that is not loaded or empty, whenever they are sent.
    assert page.get_by_role("button", name="Try").count() == 0

    page.get_by_role("button", name="Remove one.exe").press("Enter")
    expect(page.locator("#uploads li")).to_have_count(2)
    expect(page.get_by_role("button", name="Remove two.exe")).to_be_focused()
    page.get_by_role("button", name="Remove all failed uploads").click()
    expect(page.locator("#uploads")).to_be_hidden()
    expect(page.locator("#files")).to_be_focused()


def test_same_file_is_stored_once(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    for _ in range(2):
        page.set_input_files("#files", file("a.txt", b"The same text"))
        wait_until_ready(page)
    expect(page.locator("#uploads li").last).to_contain_text("already exists")
    expect(documents(page)).to_contain_text("1 document,")


def test_changed_file_replaces_the_document(at_manuals: Visitor):
    page = at_manuals.page
    values = page.locator("#upload").get_by_text("Metadata for new uploads")
    values.click()
    page.get_by_label("JSON object, stored with each file").fill('{"type": "manual"}')
    send(page, file("b.md", b"The old lamp"), file("ab.md", b"Another lamp"))
    wait_until_ready(page, 2)
    page.get_by_label("JSON object, stored with each file").fill("")
    page.get_by_label(IN_PLACE).press("Space")
    send(page, file("b.md", b"The new lantern"), file("c.md", b"First of its name"))
    wait_until_ready(page, 3)
    expect(documents(page)).to_contain_text("3 documents,")
    expect(page.locator("#uploads")).not_to_contain_text("another document")
    expect(documents(page).locator(".metadata", has_text="type: manual")).to_have_count(2)  # no others were given
    page.get_by_label("What are you looking for?").fill("old new lantern")
    page.keyboard.press("Enter")
    expect(page.locator(".hits > li").filter(has_text="The new lantern")).to_have_count(1)
    expect(page.locator(".hits")).not_to_contain_text("The old lamp")
    assert at_manuals.overflow() <= 0

    # Sent together, one after the other.
    send(page, file("d.md", b"Older"), file("d.md", b"Newer"))
    wait_until_ready(page, 4)


def test_composed_and_decomposed_names_are_equal(at_manuals: Visitor):
    page = at_manuals.page
    page.get_by_label(IN_PLACE).check()
    sent = (file("cafe\u0301.md", b"Once"), file("caf\u00e9.md", b"Twice"), file("cafe\u0301.md", b"Thrice"))
    for each in sent:
        expect(send(page, each)).not_to_contain_text("another document")
        wait_until_ready(page)
    expect(documents(page)).to_contain_text("1 document,")


def test_second_document_with_the_name_is_reported(at_manuals: Visitor):
    page = at_manuals.page
    assert not page.get_by_label(IN_PLACE).is_checked()
    sent = send(page, file("b.md", b"The old lamp"))
    wait_until_ready(page)
    expect(sent).not_to_contain_text("another document")
    expect(send(page, file("b.md", b"The new lamp"))).to_contain_text("there is another document with this name")
    wait_until_ready(page, 2)

    page.get_by_label(IN_PLACE).check()
    sent = send(page, file("b.md", b"The newest lamp"))
    expect(sent).to_contain_text("Several documents have this name")
    expect(sent.get_by_role("button", name="Retry b.md")).to_be_visible()
    assert at_manuals.overflow() <= 0
    page.get_by_role("button", name="Delete b.md").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    wait_until_ready(page, 1)
    page.get_by_role("button", name="Retry b.md").click()
    expect(page.locator("#uploads .done")).to_have_count(1)
    wait_until_ready(page, 1)


def test_metadata_can_be_corrected(at_manuals: Visitor):
    page = at_manuals.page
    send(page, file("b.md", b"The lamp"))
    wait_until_ready(page)
    page.get_by_role("link", name="Metadata of b.md").press("Enter")
    typed = page.get_by_label("JSON object")
    typed.fill('{"type": ')
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_role("alert").filter(has_text="JSON")).to_be_visible()
    expect(typed).to_be_focused()
    expect(typed).to_have_value('{"type": ')
    assert at_manuals.overflow() <= 0
    typed.fill('{"type": "hint"}')
    page.get_by_role("button", name="Save").press("Enter")
    expect(documents(page)).to_contain_text("type: hint")
    at_manuals.complaints = [
        complaint for complaint in at_manuals.complaints if "status of 400" not in complaint
    ]  # meant


def test_upload_during_a_refresh_appears_in_the_list(at_desk: Visitor):
    at_desk.sign_in("carl")
    make_collection(at_desk.page)
    page = at_desk.page
    results: list[Any] = []

    def hold(route: Any) -> None:
        """The first answer in which all is ready: the list does not ask again by itself after it."""
        if results or route.request.method != "GET" or "hx-request" not in route.request.headers:
            route.continue_()
            return
        answer = route.fetch()
        while "every 2s" in answer.text():
            answer = route.fetch()
        results.append((route, answer))

    def send(name: str) -> None:
        page.set_input_files("#files", file(name, b"Note\n" + name.encode()))
        expect(page.locator("#uploads .done", has_text=name)).to_be_visible(timeout=LOADED_WITHIN_MS)

    page.route("**/collections/**", hold)
    send("a.txt")
    while not results:
        page.wait_for_timeout(50)
    send("b.txt")
    route, answer = results[0]
    route.fulfill(response=answer)

    wait_until_ready(page, 2)

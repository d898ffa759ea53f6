"""The collection pages as users use them: with a mouse, with a keyboard only, and on a phone."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.collection_pages import (
    LOAD_TIMEOUT_MS,
    create_collection,
    documents_section,
    file_payload,
    fill_metadata,
    open_documents,
    search,
    wait_until_ready,
)
from tests.browser.visitor import Visitor
from tests.collections_app.library import pdf
from tests.support.users import PASSWORD

pytestmark = pytest.mark.browser

MANUAL = pdf("Before the first use charge the battery", "A blinking lamp means that the toner is empty")


def test_uploaded_file_becomes_ready_and_is_found(collection_visitor: Visitor):
    page = collection_visitor.page
    page.set_input_files("#files", file_payload("manual.pdf", MANUAL, "application/pdf"))
    upload_rows = page.locator("#uploads li")
    expect(upload_rows).to_contain_text("manual.pdf")
    wait_until_ready(page)  # without a click
    expect(upload_rows.get_by_role("status")).to_have_text("ready")
    expect(documents_section(page)).to_contain_text("2 pages")

    search(page, "toner empty")
    first_hit = page.locator(".hits li").first
    expect(first_hit.locator("mark").first).to_be_visible()
    assert {text.lower() for text in first_hit.locator("mark").all_inner_texts()} == {"toner", "empty"}
    expect(first_hit).to_contain_text("manual.pdf")
    expect(first_hit).to_contain_text("pages 1 to 2")
    assert "query=toner" in page.url and collection_visitor.overflow_px() <= 0

    page.reload()  # the URL contains the search
    expect(page.locator(".hits mark").first).to_be_visible()


def test_upload_search_and_deletion_work_by_keyboard(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    page.get_by_role("link", name="Documents", exact=True).focus()
    # Wait for the chooser before pressing Tab, because the page handles calls in order. Otherwise a key could be
    # pressed before the page expects the chooser, which would then be missed.
    with page.expect_file_chooser() as chooser:
        focused_elements = press_tab_until(page, element_id="files")
        page.keyboard.press("Enter")
    assert "SUMMARY" in focused_elements
    chooser.value.set_files([file_payload("manual.pdf", MANUAL), file_payload("notes.txt", b"Notes about the mailbox")])
    wait_until_ready(page, 2)

    page.locator(".tabs").get_by_role("link", name="Search", exact=True).press("Enter")
    page.get_by_label("What are you looking for?").press("m")
    page.keyboard.type("ailbox")
    page.keyboard.press("Enter")
    expect(page.locator(".hits mark").first).to_be_visible()

    open_documents(page)
    page.get_by_role("button", name="Delete notes.txt").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete “notes.txt”?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(documents_section(page)).to_contain_text("notes.txt")

    expect(page.get_by_role("button", name="Delete notes.txt")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(documents_section(page)).not_to_contain_text("notes.txt")
    expect(page.get_by_role("heading", name="Documents", exact=True)).to_be_focused()


def test_deletion_in_a_refreshed_list_needs_confirmation(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    page.set_input_files("#files", file_payload("notes.txt", b"Notes"))
    wait_until_ready(page)
    page.evaluate("""
        document.addEventListener("htmx:afterSwap", () =>
            setTimeout(() => document.querySelector("#documents button.danger").click()), {once: true});
        htmx.trigger(document.body, "uploaded");
    """)
    expect(page.get_by_role("dialog")).to_contain_text("Delete “notes.txt”?")
    expect(documents_section(page)).to_contain_text("notes.txt")


def press_tab_until(page: Page, element_id: str) -> list[str]:
    """Presses Tab until this element has the focus; returns the elements that had it before."""
    focused_elements: list[str] = []
    for _ in range(20):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.id || document.activeElement.tagName")
        if name == element_id:
            return focused_elements
        focused_elements.append(name)
    raise AssertionError(f"{element_id} did not get the focus: {focused_elements}")


def test_show_more_leads_to_the_first_new_passage(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    page.get_by_text("Metadata for new uploads").click()
    fill_metadata(page, 1, "type", "note")
    notes = [file_payload(f"note {number}.txt", f"Note {number} about the mailbox".encode()) for number in range(8)]
    page.set_input_files("#files", notes)
    wait_until_ready(page, 8)
    expect(documents_section(page).locator("li").first).to_contain_text("type: note")
    page.set_input_files("#files", file_payload("note 0.txt", b"Note 0 about the mailbox"))
    expect(page.locator("#uploads li")).to_have_count(1)  # finished uploads are removed from this list
    search(page, "mailbox")
    expect(page.locator(".hits > li")).to_have_count(5)
    expect(page.locator(".hits > li").first).to_contain_text("type: note")

    page.get_by_role("link", name="Show more").focus()
    page.keyboard.press("Enter")

    expect(page.locator(".hits > li")).to_have_count(8)
    assert page.evaluate("document.querySelector(':target').id") == "hit-6"
    expect(page.locator(".hits > li").nth(5)).to_be_in_viewport()


def test_document_text_is_shown_and_never_executed(collection_visitor: Visitor):  # C25 C26
    page = collection_visitor.page
    malicious_text = b"toner <img src=x onerror=alert(1)> <script>alert(2)</script> ![x](/evil.png)"
    page.on("dialog", lambda dialog: pytest.fail(f"executed: {dialog.message}"))
    page.set_input_files("#files", file_payload("<img src=x onerror=alert(3)>.txt", malicious_text))
    wait_until_ready(page)
    search(page, "toner")
    expect(page.locator(".hits .passage")).to_contain_text("<script>alert(2)</script> ![x](/evil.png)")
    assert page.locator(".hits img, .hits script, #documents img, #uploads img").count() == 0
    assert collection_visitor.overflow_px() <= 0


def test_invalid_filter_reports_the_position(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    page.locator(".tabs").get_by_role("link", name="Search", exact=True).click()
    page.get_by_label("What are you looking for?").fill("toner")
    page.get_by_text("Filter and search mode").click()
    page.get_by_text("Advanced").click()
    page.get_by_label("Filter as an encoded query").fill("priority<<3")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#results").get_by_role("alert")).to_contain_text("position")
    expect(page.get_by_label("Value").first).to_have_value("<3")


def test_failed_deletion_shows_the_message_of_the_service(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    page.set_input_files("#files", file_payload("a.txt", b"Soon gone"))
    wait_until_ready(page)
    other_page = desktop_visitor.context.new_page()
    other_page.goto(page.url)
    for tab in (other_page, page):
        tab.get_by_role("button", name="Delete a.txt").click()
        tab.get_by_role("dialog").get_by_role("button", name="Delete").click()
        if tab is other_page:
            expect(documents_section(other_page)).to_contain_text("0 documents")
    expect(page.locator("#request-error")).to_have_text("The document no longer exists.")
    desktop_visitor.problems = [
        problem for problem in desktop_visitor.problems if "Status Error Code 404" not in problem
    ]  # expected


def test_collection_is_deleted_after_a_confirmation(collection_visitor: Visitor):
    page = collection_visitor.page
    name = page.get_by_role("heading", level=1).inner_text()
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("button", name="Delete collection").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/collections/")
    expect(page.get_by_role("status").first).to_contain_text("deleted.")
    expect(page.locator("#collections")).not_to_contain_text(name)


def test_new_user_searches_the_product_documentation(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    page.goto("/")
    page.get_by_role("link", name="Collections", exact=True).click()
    page.locator("#collections").wait_for()
    search_field = page.get_by_label("Find a collection")
    if search_field.count():  # shown if other tests have created many collections
        search_field.fill("product")
    expect(page.locator("#collections")).to_contain_text("Product documentation")
    page.get_by_role("link", name="Product documentation").click()
    open_documents(page)
    expect(documents_section(page)).not_to_contain_text("queued", timeout=LOAD_TIMEOUT_MS)
    expect(documents_section(page)).not_to_contain_text("embedding", timeout=LOAD_TIMEOUT_MS)
    search(page, "How do I restore a backup?")
    expect(page.locator(".hits li").first).to_contain_text("backup.md")


def test_user_without_roles_sees_no_collections(visitor: Visitor):
    visitor.sign_in("bob")
    assert visitor.open("/collections/") == 200
    expect(visitor.page.locator("main")).to_contain_text(
        "You don't have access to any collections. Ask an administrator"
    )
    assert visitor.page.get_by_role("button", name="Create collection").count() == 0
    assert visitor.overflow_px() <= 0
    assert visitor.open("/admin/collections_app/collection/") == 403


def test_ended_session_redirects_to_the_sign_in_page(desktop_visitor: Visitor):
    desktop_visitor.sign_in("carl")
    collection_url = create_collection(desktop_visitor.page)
    page = desktop_visitor.page
    desktop_visitor.context.clear_cookies()
    page.locator("#name").fill("x")  # which refreshes the list of documents
    page.wait_for_url("**/login/?next=/collections/**")
    page.get_by_label("Login").fill("carl")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(collection_url)

"""The activity of a record in a browser: comments with mentions, uploads, previews, and following."""

import base64
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tableapi.attached.pdf_page import png
from tests.browser.collection_pages import file_payload
from tests.browser.visitor import Visitor
from tests.collections_app.library import pdf
from tests.support.users import PASSWORD

pytestmark = pytest.mark.browser

PHOTO = png(40, 30, [b"\xc0\x20\x20" * 40] * 30)
MANUAL = pdf("Before the first use", "Second page")
# Drops files on an element, as a mouse does.
DROP_FILES = """(element, files) => {
    const dataTransfer = new DataTransfer();
    for (const { name, bytes } of files) dataTransfer.items.add(new File([new Uint8Array(bytes)], name));
    for (const type of ["dragover", "drop"]) {
        element.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
    }
}"""


def call_api(visitor: Visitor, method: str, path: str, data: Any) -> Any:
    credentials = base64.b64encode(f"alice:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}"}
    response = visitor.context.request.fetch(f"/rest/v1/table/{path}", method=method, data=data, headers=headers)
    assert response.ok, response.text()
    return response.json()["data"][0]


def open_task(visitor: Visitor) -> str:
    """Opens the activity of a new task as its creator; returns the task's id."""
    sys_id = call_api(visitor, "POST", "task", {"short_description": "Lamp is broken"})["sys_id"]
    visitor.sign_in("alice")
    assert visitor.open(f"/tables/task/{sys_id}/activity/") == 200
    return str(sys_id)


@pytest.fixture
def page(visitor: Visitor) -> Page:
    open_task(visitor)
    return visitor.page


def test_comment_with_a_mention_is_written_changed_and_deleted_by_keyboard(visitor: Visitor, page: Page):
    page.get_by_label("New comment").focus()
    page.keyboard.type("Ask @bo")
    suggestion = page.get_by_role("option", name="bob")
    expect(suggestion).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.keyboard.type("about https://example.com/manual")
    page.keyboard.press("Control+Enter")

    comment = page.locator(".entry.is-comment")
    expect(comment).to_contain_text("Ask @bob about https://example.com/manual")
    expect(comment.locator(".mention")).to_have_text("@bob")
    expect(comment.get_by_role("link")).to_have_attribute("href", "https://example.com/manual")
    expect(page.get_by_label("New comment")).to_have_value("")
    assert visitor.overflow_px() <= 0

    comment.locator("summary", has_text="Edit").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Edit comment").fill("Ask nobody")
    page.get_by_role("button", name="Save comment").press("Enter")
    expect(comment).to_contain_text("Ask nobody")
    comment.locator("summary", has_text="Delete").press("Enter")
    page.get_by_role("button", name="Delete comment").press("Enter")
    expect(comment).to_have_count(0)


def test_escape_closes_the_suggestions_and_keeps_the_text(page: Page):
    field = page.get_by_label("New comment")
    field.press_sequentially("@")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field).to_have_value("@")
    field.press_sequentially("b x@y.example")
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_refused_comment_stays_in_the_form(page: Page):
    page.get_by_label("New comment").fill("   ")
    page.get_by_role("button", name="Add comment").click()
    expect(page.get_by_role("alert")).to_have_text("A value is required.")
    page.get_by_label("New comment").fill("Now with text")
    page.get_by_role("button", name="Add comment").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".entry.is-comment")).to_contain_text("Now with text")


def test_dropped_files_are_attached_and_each_row_says_what_happened(visitor: Visitor, page: Page):
    files = [
        {"name": "manual.pdf", "bytes": list(MANUAL)},
        {"name": "photo.png", "bytes": list(PHOTO)},
        {"name": "page.svg", "bytes": list(b"<svg xmlns='http://www.w3.org/2000/svg'/>")},
        {"name": "empty.txt", "bytes": []},
    ]
    page.locator("#activity").evaluate(DROP_FILES, files)

    rows = page.locator("#activity-uploads li")
    expect(page.locator("#activity-uploads .is-finished")).to_have_count(4)
    expect(rows.filter(has_text="manual.pdf")).to_contain_text("Attached")
    expect(rows.filter(has_text="empty.txt")).to_contain_text("The file is empty.")
    attached = page.locator("#activity-files li")
    expect(attached).to_have_count(3)
    assert visitor.overflow_px() <= 0

    # Only images are displayed.
    expect(attached.locator("img")).to_have_count(1)
    thumbnail = attached.filter(has_text="photo.png").locator("img")
    expect(thumbnail).to_have_js_property("naturalWidth", 40)
    thumbnail.click()
    expect(page.get_by_role("dialog", name="photo.png").get_by_role("img")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for name in ("page.svg", "manual.pdf"):
        with page.expect_download() as download:
            attached.filter(has_text=name).get_by_role("link").click()
        assert download.value.suggested_filename == name


def test_pages_of_a_pdf_file_are_shown_as_images(visitor: Visitor, page: Page):
    page.set_input_files(
        "#attachment-file", [file_payload("manual.pdf", MANUAL), file_payload("bad.pdf", b"%PDF-1.4 ?")]
    )
    attached = page.locator("#activity-files li")
    expect(attached).to_have_count(2)
    manual = attached.filter(has_text="manual.pdf")
    manual.locator("summary", has_text="Preview").click()
    image = manual.get_by_role("img")
    expect(manual.get_by_role("status")).to_have_text("Page 1 of 2", timeout=20_000)
    expect(image).to_have_js_property("naturalWidth", 1200)
    manual.get_by_role("button", name="Next page").click()
    expect(manual.get_by_role("status")).to_have_text("Page 2 of 2", timeout=20_000)
    expect(manual.get_by_role("img", name="Page 2 of manual.pdf")).to_be_visible()
    expect(manual.get_by_role("button", name="Next page")).to_be_disabled()
    assert visitor.overflow_px() <= 0

    damaged = attached.filter(has_text="bad.pdf")
    damaged.locator("summary", has_text="Preview").click()
    expect(damaged.get_by_role("status")).to_have_text("No preview", timeout=20_000)


def test_comment_during_an_upload_loses_neither(page: Page):
    page.get_by_label("New comment").fill("While it is sent")
    large_file = file_payload("large.bin", b"\0" * 8_000_000)
    page.set_input_files("#attachment-file", large_file)
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".entry.is-comment")).to_have_count(1)
    expect(page.locator("#activity-uploads li")).to_contain_text("Attached")
    expect(page.locator("#activity-files li")).to_contain_text("large.bin")


def test_attachment_is_deleted_after_a_confirmation(page: Page):
    page.set_input_files("#attachment-file", file_payload("notes.txt", b"Notes"))
    attached = page.locator("#activity-files li")
    attached.locator("summary", has_text="Delete").click()
    expect(attached).to_contain_text("This cannot be undone.")
    page.get_by_role("button", name="Delete file").click()
    expect(page.get_by_text("No attachments.")).to_be_visible()


def test_following_leads_to_notifications(visitor: Visitor):
    sys_id = open_task(visitor)
    page = visitor.page
    page.get_by_role("button", name="Follow", exact=True).click()
    button = page.get_by_role("button", name="Unfollow")
    expect(button).to_be_visible()
    expect(button).to_be_focused()
    page.reload()
    expect(button).to_be_visible()
    button.click()
    expect(page.get_by_role("button", name="Follow", exact=True)).to_be_visible()
    assert sys_id
    assert visitor.open("/notifications/") == 200
    expect(page.get_by_role("heading", name="Notifications")).to_be_visible()
    assert visitor.overflow_px() <= 0


def test_filters_and_older_entries_need_no_new_page(visitor: Visitor):
    sys_id = open_task(visitor)
    for number in range(25):
        call_api(visitor, "PATCH", f"task/{sys_id}", {"short_description": f"Lamp {number} is broken"})
    page = visitor.page
    page.reload()
    entries = page.locator(".entry")
    expect(entries).to_have_count(20)
    page.get_by_role("link", name="Show older").click()
    expect(entries).to_have_count(26)
    expect(entries.nth(20)).to_be_focused()
    page.get_by_role("link", name="Comments", exact=True).click()
    expect(page.get_by_text("No comments.")).to_be_visible()
    page.get_by_role("link", name="Changes", exact=True).click()
    expect(entries).to_have_count(20)


def test_everything_works_without_scripts(browser: Any, visitor: Visitor):
    sys_id = open_task(visitor)
    context = browser.new_context(
        java_script_enabled=False,
        base_url=visitor.page.url.split("/tables")[0],
        storage_state=visitor.context.storage_state(),
    )
    page = context.new_page()
    page.goto(f"/tables/task/{sys_id}/activity/")
    page.get_by_label("New comment").fill("No scripts here")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".entry.is-comment")).to_contain_text("No scripts here")
    page.set_input_files("#attachment-file", [file_payload("a.pdf", MANUAL), file_payload("b.txt", b"b")])
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#activity-files li")).to_have_count(2)
    page.locator("summary", has_text="Preview").click()
    page.get_by_role("link", name="Show page 1 as an image").click()
    expect(page.locator("img")).to_have_count(1)
    page.go_back()
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(page.get_by_role("button", name="Unfollow")).to_be_visible()
    context.close()

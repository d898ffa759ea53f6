"""A spreadsheet with faulty lines is checked, mended by choosing columns, imported and undone; and Ctrl K."""

import io
from typing import Any

import pytest
from openpyxl import Workbook
from playwright.sync_api import expect

from tests.browser.axe import assert_no_findings
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser


def workbook(name: str, title: str) -> Any:
    book = Workbook()
    book.active.append([title, "Priority"])
    for number in range(1, 6):
        book.active.append([f"{name} {number}", "Urgent" if number == 2 else "High"])
    file = io.BytesIO()
    book.save(file)
    mime_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    return {"name": "desks.xlsx", "mimeType": mime_type, "buffer": file.getvalue()}


def test_spreadsheet_is_checked_imported_and_undone(visitor: Visitor):
    page = visitor.sign_in("alice").page
    title = f"Title {page.viewport_size}"  # the chosen columns of known titles are remembered
    visitor.open("/tables/task/")
    page.get_by_role("link", name="Import").click()
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0
    page.get_by_label("File", exact=True).set_input_files(workbook("Desk of the walk", title))
    page.get_by_role("button", name="Check the file").click()
    expect(page.get_by_role("status")).to_contain_text("No column is named")
    page.get_by_label(f"Column for {title}").select_option("Short description")
    page.get_by_label("Import the other lines").check()
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_role("region", name="Errors").first).to_contain_text("Not a valid choice")
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0
    page.get_by_role("button", name="Import now").click()
    expect(page.get_by_role("status")).to_contain_text("Imported")
    page.get_by_text("Undo this import").click()
    page.get_by_role("button", name="Undo now").click()
    expect(page.get_by_role("status")).to_contain_text("Import undone")


def test_ctrl_k_finds_pages_and_records_by_keyboard(visitor: Visitor):
    page = visitor.sign_in("alice").page
    for path in ("/tables/", "/account/", "/admin/"):
        visitor.open(path)
        page.keyboard.press("Control+k")
        search = page.get_by_role("combobox", name="Search")
        expect(search).to_be_focused()
        expect(page.get_by_role("dialog", name="Search")).to_contain_text("Finds tables, records by number or name")
        search.fill("sys_db_t")
        expect(page.locator("dialog.palette [role=option]").first).to_be_visible()
        assert_no_findings(page, "dialog.palette")
        page.keyboard.press("Escape")
        expect(search).to_be_hidden()
    page.keyboard.press("Control+k")
    search.fill("Task")
    expect(page.get_by_role("option", name="Task", exact=True)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url("**/tables/task/")

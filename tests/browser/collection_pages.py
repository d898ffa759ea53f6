"""Steps that the tests of the collection pages share."""

from typing import Any

from playwright.sync_api import Page, expect

LOAD_TIMEOUT_MS = 60_000
COLLECTION_NAMES = iter(f"Manuals {number}" for number in range(1, 1000))


def file_payload(name: str, data: bytes, mime_type: str = "application/octet-stream") -> Any:
    return {"name": name, "mimeType": mime_type, "buffer": data}


def create_collection(page: Page) -> str:
    """Creates a collection with the form; returns the URL of its documents."""
    page.goto("/collections/")
    page.get_by_label("Name", exact=True).fill(next(COLLECTION_NAMES))
    page.get_by_role("button", name="Create collection").click()
    page.get_by_role("heading", name="Add documents").wait_for()
    return page.url


def documents_section(page: Page) -> Any:
    return page.locator("#documents")


def wait_until_ready(page: Page, count: int = 1) -> None:
    expect(documents_section(page)).to_contain_text(f"{count} ready", timeout=LOAD_TIMEOUT_MS)


def upload_files(page: Page, *files: Any) -> Any:
    """Uploads files, waits until each upload has finished or failed, and returns their rows on the page."""
    page.set_input_files("#files", list(files))
    rows = page.locator("#uploads li")
    expect(page.locator("#uploads .is-done, #uploads .is-failed")).to_have_count(rows.count(), timeout=LOAD_TIMEOUT_MS)
    return rows


def fill_metadata(page: Page, row: int, name: str, value: str, value_type: str = "Text") -> None:
    """Fills a row of the metadata for uploads, which must be open."""
    fields = page.get_by_role("group", name=f"Field {row}")
    fields.get_by_label("Name").fill(name)
    fields.get_by_label("Type").select_option(label=value_type)
    fields.get_by_label("Value").fill(value)


def search(page: Page, query: str) -> None:
    """Searches the collection whose documents the page shows."""
    page.locator(".tabs").get_by_role("link", name="Search", exact=True).click()
    page.get_by_label("What are you looking for?").fill(query)
    page.get_by_role("button", name="Search", exact=True).click()


def open_documents(page: Page) -> None:
    page.get_by_role("link", name="Documents", exact=True).click()
    documents_section(page).wait_for()

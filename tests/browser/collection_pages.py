"""Steps that the tests of the collection pages share."""

from typing import Any

from playwright.sync_api import Page, expect

LOADED_WITHIN_MS = 60_000
NAMES = iter(f"Manuals {number}" for number in range(1, 1000))


def file(name: str, data: bytes, kind: str = "application/octet-stream") -> Any:
    return {"name": name, "mimeType": kind, "buffer": data}


def make_collection(page: Page) -> str:
    """As somebody who may: by its form; the address of its page."""
    page.goto("/collections/")
    page.get_by_label("Name").fill(next(NAMES))
    page.get_by_role("button", name="Create collection").click()
    page.get_by_role("heading", name="Add documents").wait_for()
    return page.url


def documents(page: Page) -> Any:
    return page.locator("#documents")


def wait_until_ready(page: Page, count: int = 1) -> None:
    expect(documents(page)).to_contain_text(f"{count} ready", timeout=LOADED_WITHIN_MS)


def send(page: Page, *sent: Any) -> Any:
    """What the page says of each, once it has arrived or failed."""
    page.set_input_files("#files", list(sent))
    rows = page.locator("#uploads li")
    expect(page.locator("#uploads .done, #uploads .failed")).to_have_count(rows.count(), timeout=LOADED_WITHIN_MS)
    return rows

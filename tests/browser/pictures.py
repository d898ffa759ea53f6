"""`./run pictures`: takes the pictures of the documentation, from a new installation with demo data."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from openpyxl import Workbook
from playwright.sync_api import Page, sync_playwright

from config.env import ROOT
from tests.browser.chromium import CHROMIUM_FLAGS, chromium
from tests.config.stack import Stack

IMAGES = ROOT / "docs" / "images"
SIZE: Any = {"width": 1280, "height": 800}
LIST_QUERY = "active=true^priorityIN1,2^ORDERBYnumber"
FAULTY_CELLS = {2: ("Urgent", "demo.user"), 4: ("High", "nobody")}


def write_workbook(path: Path) -> None:
    workbook = Workbook()
    workbook.active.append(["Short description", "Priority", "Caller"])
    for number in range(1, 9):
        priority, caller = FAULTY_CELLS.get(number, ("Low", "demo.user"))
        workbook.active.append([f"New desk {number}", priority, caller])
    workbook.save(path)


def take_pictures(page: Page, folder: Path) -> Iterator[str]:
    page.goto("/tables/")
    yield "home"
    page.goto(f"/tables/task/?{urlencode({'sysparm_query': LIST_QUERY})}")
    page.locator("details.filter > summary").click()
    yield "list"
    page.goto(f"/tables/task/?{urlencode({'sysparm_query': LIST_QUERY})}")
    page.get_by_role("link", name="TSK").first.click()
    page.get_by_label("New comment").fill("The spare part arrives tomorrow, @demo.user.")
    page.get_by_role("button", name="Add comment").click()
    page.locator(".comment-content").wait_for()
    yield "record"
    write_workbook(folder / "desks.xlsx")
    page.goto("/tables/task/import/")
    page.get_by_label("File", exact=True).set_input_files(folder / "desks.xlsx")
    page.get_by_role("button", name="Check the file").click()
    page.get_by_role("heading", name="Errors").wait_for()
    yield "import"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="servicebase-pictures-") as folder, sync_playwright() as playwright:
        product = Stack(Path(folder) / "data", SVC_DEMO="1").start().wait_until_up()
        try:
            browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
            password = (Path(folder) / "data" / "secrets" / "demo-password").read_text().strip()
            page = browser.new_page(viewport=SIZE, base_url=product.url)
            page.goto("/login/")
            page.get_by_label("Login").fill("demo.agent")
            page.get_by_label("Password").fill(password)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/")
            for name in take_pictures(page, Path(folder)):
                page.wait_for_load_state("networkidle")
                page.screenshot(path=IMAGES / f"{name}.png", caret="initial")
                print(f"docs/images/{name}.png")
            browser.close()
        finally:
            product.stop()
            product.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())

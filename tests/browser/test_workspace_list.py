"""The list of records as people use it: with a mouse, with a keyboard, on a phone, and without scripts."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.axe import assert_no_findings
from tests.browser.visitor import DESKTOP_SIZE, Visitor
from tests.config.stack import Stack, manage
from workspace.forms.display import PATH_SEPARATOR

pytestmark = pytest.mark.browser

CALLER_EMAIL = f"Caller{PATH_SEPARATOR}Email"
QUERY = "short_descriptionSTARTSWITHListed^ORDERBYnumber"
PATH = f"/tables/task/?sysparm_query={QUERY}&columns=number,short_description,priority,state"
TASKS_PATH = "/rest/v1/table/task"
CREATE_KEY = """
from accounts.authentication import access_keys
from accounts.models import User
print(access_keys.create_key(User.objects.get(login="alice"), "of a test", expires_at=None, scope=[]))
"""


@pytest.fixture(scope="module")
def key(product: Stack) -> str:
    completed = manage("shell", "-v", "0", "-c", CREATE_KEY, env=product.env)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


def create_tasks(product: Stack, key: str, count: int) -> None:
    query = "sysparm_query=short_descriptionSTARTSWITHListed&sysparm_limit=200"
    for record in product.call("GET", f"{TASKS_PATH}?{query}", key=key).body["data"]:
        product.call("DELETE", f"{TASKS_PATH}/{record['sys_id']}", key=key)
    texts = [(f"Listed {number:02}", f"Body {number:02}") for number in range(count)]
    records = [{"short_description": short, "description": long, "priority": "3"} for short, long in texts]
    response = product.call("POST", "/rest/v1/bulk/task", records, key=key)
    assert response.status == 201, response.body


@pytest.fixture
def tasks(product: Stack, key: str) -> None:
    create_tasks(product, key, 5)


def cell(page: Page, row: int, column: int) -> Locator:
    return page.locator("#records tbody tr").nth(row).locator("td").nth(column)


def query_of(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("sysparm_query", [""])[0]


def test_list_is_sorted_searched_and_counted(visitor: Visitor, tasks: None):
    page = visitor.sign_in("alice").page
    visitor.open(PATH)
    expect(page.locator("#count")).to_have_text("5 records")
    page.get_by_role("link", name="Short description", exact=True).click()
    page.get_by_role("link", name="Short description", exact=True).click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Short description")
    expect(cell(page, 0, 2)).to_have_text("Listed 04")
    page.get_by_role("searchbox", name="Search Task").fill("Body 03")
    page.keyboard.press("Enter")
    expect(page.locator("#count")).to_have_text("1 record")
    assert "short_descriptionSTARTSWITHListed" in query_of(page) and "ORDERBYDESCshort_description" in query_of(page)
    assert visitor.overflow_px() <= 0
    assert_no_findings(page)


def test_more_rows_are_loaded_after_the_last_one(desktop_visitor: Visitor, product: Stack, key: str):
    create_tasks(product, key, 70)
    page = desktop_visitor.sign_in("alice").page
    desktop_visitor.open(PATH)
    expect(page.locator("#records tbody tr[data-id]")).to_have_count(50)
    page.get_by_role("link", name="Count records").click()
    expect(page.locator("#count")).to_have_text("70 records")
    page.get_by_role("link", name="Load more").click()
    expect(page.locator("#records tbody tr[data-id]")).to_have_count(70)
    expect(page.get_by_role("link", name="Load more")).to_have_count(0)


def test_columns_are_chosen_and_ordered_by_keyboard_and_by_drag(desktop_visitor: Visitor, tasks: None):
    page = desktop_visitor.sign_in("alice").page
    desktop_visitor.open(f"/tables/task/?sysparm_query={QUERY}")
    dialog = page.locator("#columns-dialog")

    def open_dialog() -> None:
        page.get_by_role("link", name="Columns").focus()
        page.keyboard.press("Enter")
        expect(dialog).to_be_visible()

    open_dialog()
    assert_no_findings(page, "#columns-dialog")
    dialog.get_by_label("Column of a referenced record").fill("caller.email")
    page.keyboard.press("Enter")
    expect(dialog.get_by_label(CALLER_EMAIL, exact=True)).to_be_checked()
    expect(dialog.get_by_label("Column of a referenced record")).to_be_focused()
    dialog.get_by_label(f"Move {CALLER_EMAIL} up").focus()
    page.keyboard.press("Enter")
    names = dialog.locator("input[name=path]:checked")
    expect(names.nth(names.count() - 2)).to_have_value("caller.email")
    expect(dialog.get_by_label(f"Move {CALLER_EMAIL} up")).to_be_focused()
    before = names.evaluate_all("inputs => inputs.map((input) => input.value)")
    rows = dialog.locator(".column-choices li")
    rows.nth(1).drag_to(rows.nth(0), target_position={"x": 20, "y": 2})
    dialog.get_by_role("button", name="Apply").click()
    expected = [before[1], before[0], *before[2:]]
    expect(page.locator("th[data-path]").first).to_have_attribute("data-path", expected[0])
    assert page.locator("th[data-path]").evaluate_all("cells => cells.map((cell) => cell.dataset.path)") == expected

    open_dialog()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    open_dialog()
    dialog.get_by_role("button", name="Reset").click()
    expect(page.locator("th[data-path]").first).not_to_have_attribute("data-path", expected[0])


def test_column_is_resized_by_drag_and_by_keyboard_and_keeps_its_width(desktop_visitor: Visitor, tasks: None):
    page = desktop_visitor.sign_in("alice").page
    desktop_visitor.open(PATH)
    border = page.get_by_role("separator", name="Width of Short description")
    box = border.bounding_box()
    assert box is not None
    width = page.locator("th[data-path=short_description]").bounding_box()["width"]  # type: ignore[index]
    page.mouse.move(box["x"] + 6, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 66, box["y"] + 10, steps=4)
    with page.expect_response("**/columns/"):
        page.mouse.up()
    border.focus()
    with page.expect_response("**/columns/"):
        page.keyboard.press("ArrowRight")
    page.reload()
    new_width = page.locator("th[data-path=short_description]").bounding_box()["width"]  # type: ignore[index]
    assert abs(new_width - width - 76) < 3
    page.get_by_role("link", name="Columns").click()
    page.locator("#columns-dialog").get_by_role("button", name="Reset").click()


def test_cell_is_edited_in_place(desktop_visitor: Visitor, tasks: None):
    page = desktop_visitor.sign_in("alice").page
    desktop_visitor.open(PATH)
    cell(page, 0, 2).dblclick()
    expect(page.get_by_role("textbox", name="Short description")).to_be_focused()
    assert_no_findings(page, "#records")
    page.keyboard.type("Listed by hand")
    page.keyboard.press("Enter")
    expect(cell(page, 0, 2)).to_have_text("Listed by hand")
    expect(cell(page, 0, 2)).to_be_focused()

    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(cell(page, 1, 3)).to_be_focused()
    page.keyboard.press("F2")
    select = page.get_by_role("combobox", name="Priority")
    expect(select).to_be_focused()
    select.select_option(label="High")
    page.keyboard.press("Escape")
    expect(cell(page, 1, 3)).to_have_text("Moderate")
    expect(cell(page, 1, 3)).to_be_focused()
    page.keyboard.press("Enter")
    select.select_option(label="High")
    page.keyboard.press("Enter")
    expect(cell(page, 1, 3)).to_have_text("High")


def test_conflict_shows_both_values(desktop_visitor: Visitor, browser: Browser, product: Stack, tasks: None):
    page = desktop_visitor.sign_in("alice").page
    desktop_visitor.open(PATH)
    cell(page, 0, 2).dblclick()
    expect(page.get_by_role("textbox", name="Short description")).to_be_focused()
    other = Visitor(browser, product, viewport=DESKTOP_SIZE).sign_in("alice")
    other.open(PATH)
    cell(other.page, 0, 2).dblclick()
    other.page.get_by_role("textbox", name="Short description").fill("Listed by another")
    other.page.keyboard.press("Enter")
    expect(cell(other.page, 0, 2)).to_have_text("Listed by another")
    other.context.close()

    page.keyboard.type("Listed by me")
    page.keyboard.press("Enter")
    expect(cell(page, 0, 2)).to_contain_text("Somebody else saved: Listed by another")
    page.get_by_role("button", name="Save mine").click()
    expect(cell(page, 0, 2)).to_have_text("Listed by me")


def test_selected_records_are_changed_and_deleted(visitor: Visitor, tasks: None):
    page = visitor.sign_in("alice").page
    visitor.open(PATH)
    expect(page.get_by_role("button", name="Edit selected")).to_be_disabled()
    boxes = page.locator("#records tbody input[type=checkbox]")
    boxes.nth(0).click()
    boxes.nth(2).click(modifiers=["Shift"])
    expect(page.locator("#selected-count")).to_have_text("3 selected")
    page.get_by_role("button", name="Edit selected").click()
    page.get_by_label("Column to change").select_option(label="Priority")
    page.get_by_role("button", name="Continue").click()
    assert_no_findings(page)
    page.get_by_label("Priority").select_option(label="Critical")
    page.get_by_role("button", name="Change 3 records").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("3 records changed")
    assert visitor.overflow_px() <= 0
    page.get_by_role("link", name="Back to the list").click()
    expect(page.locator("#records tbody").get_by_text("Critical")).to_have_count(3)

    page.get_by_label("Select all records on this page").check()
    expect(page.locator("#selected-count")).to_have_text("5 selected")
    page.get_by_role("button", name="Delete selected").click()
    page.get_by_role("button", name="Delete 5 records").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("5 records deleted")
    page.get_by_role("link", name="Back to the list").click()
    expect(page.get_by_text("No records match this filter.")).to_be_visible()


def test_list_is_grouped_saved_shared_and_deleted(visitor: Visitor, tasks: None):
    page = visitor.sign_in("alice").page
    visitor.open(PATH)
    header, link = page.locator(".page-header").bounding_box(), page.locator(".page-header nav a").first.bounding_box()
    assert header and link and header["height"] < 3 * link["height"]  # two lines, also on a phone
    page.locator("summary", has_text="Group").click()
    page.get_by_label("Group by").select_option(label="Priority")
    page.get_by_role("button", name="Group", exact=True).click()
    expect(page.locator(".groups li")).to_have_text("Moderate 5 records")
    assert_no_findings(page)
    page.locator(".groups li").click()  # anywhere in the line
    expect(page.locator("#count")).to_have_text("5 records")

    page.locator("summary", has_text="Saved lists").click()
    assert_no_findings(page)
    page.get_by_role("link", name="Save this list").click()
    page.get_by_label("Name").fill("Moderate ones")
    page.get_by_label("itil").check()
    assert_no_findings(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Moderate ones")
    page.locator("summary", has_text="Saved lists").click()
    expect(page.locator(".menu-panel").get_by_text("shared")).to_be_visible()
    page.get_by_role("link", name="Change “Moderate ones”").click()
    page.locator("summary", has_text="Delete this list").click()
    page.get_by_role("button", name="Delete “Moderate ones”").click()
    page.locator("summary", has_text="Saved lists").click()
    expect(page.get_by_text("There are no saved lists of this table.")).to_be_visible()


def test_menus_fit_and_close(visitor: Visitor, tasks: None):
    page = visitor.sign_in("alice").page
    visitor.open(PATH)
    for name in ("Saved lists", "Group", "Export", "Copy"):
        page.locator("summary", has_text=name).click()
        expect(page.locator("details.menu[open]")).to_have_count(1)
        assert visitor.overflow_px() <= 0, name
        assert_no_findings(page)
    page.keyboard.press("Escape")
    expect(page.locator("details.menu[open]")).to_have_count(0)
    with page.expect_download() as download:
        page.locator("summary", has_text="Export").click()
        page.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "task.csv"


@pytest.fixture
def page_without_scripts(browser: Browser, product: Stack) -> Iterator[Page]:
    context = browser.new_context(base_url=product.url, java_script_enabled=False, viewport=DESKTOP_SIZE)
    yield context.new_page()
    context.close()


def test_list_works_without_scripts(page_without_scripts: Page, tasks: None):
    page = page_without_scripts
    page.goto("/login/")
    page.get_by_label("Login").fill("alice")
    page.get_by_label("Password").fill("correct horse 42")
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"/tables/task/?sysparm_query={QUERY}")
    page.get_by_role("link", name="Columns").click()
    page.get_by_label("Column of a referenced record").fill(CALLER_EMAIL)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name=CALLER_EMAIL)).to_be_visible()
    page.get_by_role("link", name="Columns").click()
    page.get_by_role("button", name="Reset").click()

    page.locator("#records tbody input[type=checkbox]").first.check()
    page.get_by_role("button", name="Edit selected").click()
    page.get_by_label("Column to change").select_option(label="Priority")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Priority").select_option(label="Low")
    page.get_by_role("button", name="Change 1 record").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 record changed")

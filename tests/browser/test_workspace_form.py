"""The record form as people use it: with a picker, an editor, another person, the keyboard, and without scripts."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visitor import DESKTOP_SIZE, Visitor
from tests.browser.workspace_tables import create_tables
from tests.config.stack import Stack
from tests.support.users import PASSWORD

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tables(product: Stack) -> Stack:
    create_tables(product)
    return product


@pytest.fixture
def agent(tables: Stack, desktop_visitor: Visitor) -> Visitor:
    return desktop_visitor.sign_in("bob")


def add_record(page: Page, table: str, **values: str) -> str:
    """Create a record as the form does without scripts; returns its URL."""
    page.goto(f"/tables/{table}/new/")
    for name, value in values.items():
        page.locator(f"[name={name}]").fill(value)
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(lambda url: "/new/" not in url)
    return page.url


def test_a_record_is_created_with_a_picker(tables: Stack, visitor: Visitor):
    visitor.sign_in("bob")
    page = visitor.page
    for name in ("Acme", "Acme East", "Zeta"):
        add_record(page, "maker", name=name)
    page.goto("/tables/asset/new/")
    page.get_by_label("Name", exact=False).first.fill("Laptop")
    page.get_by_label("State").select_option("In use")
    maker = page.get_by_role("combobox", name="Maker", exact=True)
    maker.fill("acme e")
    page.get_by_role("option", name="Acme East").first.click()
    others = page.get_by_role("combobox", name="Other makers")
    for name in ("Zeta", "Acme East"):
        others.fill(name)
        page.get_by_role("option", name=name).first.click()
    page.get_by_label("Bought on").fill("2024-05-09")
    page.get_by_label("Warranty").fill("1d 2h")
    assert visitor.overflow_px() <= 0
    page.get_by_role("button", name="Save", exact=True).click()

    page.get_by_role("heading", name="Laptop").wait_for()
    expect(page.get_by_text("Created.", exact=True)).to_be_visible()
    expect(maker).to_have_value("Acme East")
    expect(page.get_by_role("button", name="Remove Zeta")).to_be_visible()
    expect(page.get_by_label("State")).to_have_value("2")
    expect(page.get_by_label("Bought on")).to_have_value("2024-05-09")
    expect(page.get_by_label("Warranty")).to_have_value("1d 2h")
    expect(page.get_by_text("Unsaved changes")).to_be_hidden()
    assert visitor.overflow_px() <= 0


def test_errors_get_the_focus_and_nothing_is_lost(agent: Visitor):
    page = agent.page
    page.goto("/tables/asset/new/")
    page.get_by_label("Warranty").fill("long")
    page.get_by_label("Data").fill('{"a": ')
    page.get_by_label("Notes").fill("typed")
    expect(page.get_by_text("This is not valid JSON")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("alert")).to_contain_text("Not saved.")
    expect(page.get_by_label("Name", exact=False).first).to_be_focused()
    expect(page.get_by_label("Notes")).to_have_value("typed")
    expect(page.get_by_label("Data")).to_have_value('{"a": ')
    page.get_by_role("alert").get_by_role("link", name="Warranty").click()
    expect(page.get_by_label("Warranty")).to_be_focused()
    expect(page.get_by_label("Warranty")).to_have_accessible_description(
        "For example 1d 2h 30m. Expected a whole number."
    )


def test_one_value_is_chosen_after_two_people_edited(agent: Visitor, browser: Browser, tables: Stack):
    page = agent.page
    url = add_record(page, "asset", name="Shared")
    other = Visitor(browser, tables, viewport=DESKTOP_SIZE).sign_in("alice")
    other.page.goto(url)
    other.page.get_by_label("Notes").fill("hers")
    other.page.get_by_label("State").select_option("Retired")
    other.page.get_by_role("button", name="Save", exact=True).click()
    expect(other.page.get_by_text("Saved.")).to_be_visible()

    page.get_by_label("Notes").fill("mine")
    page.get_by_label("Warranty").fill("1d")
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("alert")).to_contain_text("Another person changed this record")
    choice = page.get_by_role("group", name="Notes")
    expect(choice.get_by_label("Your value")).to_be_focused()
    expect(choice).to_contain_text("hers")
    expect(page.get_by_label("State")).to_have_value("3")
    expect(page.get_by_label("Warranty")).to_have_value("1d")
    page.keyboard.press("ArrowDown")  # the other person's value
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("Notes")).to_have_value("hers")
    expect(page.get_by_label("Warranty")).to_have_value("1d")
    other.context.close()
    assert other.problems == []


def test_unsaved_changes_are_not_lost_by_leaving(agent: Visitor):
    page = agent.page
    add_record(page, "asset", name="Careful")
    dialogs: list[str] = []

    def dismiss(dialog: Any) -> None:
        dialogs.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.get_by_role("link", name="Duplicate").focus()
    page.get_by_label("Notes").fill("typed")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    page.get_by_role("link", name="Account").click(no_wait_after=True)
    page.wait_for_timeout(0)
    expect(page.get_by_label("Notes")).to_have_value("typed")
    assert dialogs == ["beforeunload"]
    page.get_by_label("Notes").fill("")
    expect(page.get_by_text("Unsaved changes")).to_be_hidden()
    page.get_by_role("link", name="Account").click()
    page.wait_for_url("**/account/")


def test_formatted_text_is_edited_and_sanitized(agent: Visitor):
    page = agent.page
    add_record(page, "asset", name="Story")
    editor = page.get_by_role("textbox", name="Story")
    page.locator("label[for=control-story]").click()
    expect(editor).to_be_focused()
    page.keyboard.type("plain ")
    page.get_by_role("button", name="Bold").click()
    expect(page.get_by_role("button", name="Bold")).to_have_attribute("aria-pressed", "true")
    page.keyboard.type("bold")
    paste(page, '<i>pasted</i><a href="javascript:fail()">link</a><script>fail()</script>')
    expect(editor).to_contain_text("pastedlink")
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    stored = page.locator("textarea[name=story]").input_value()
    assert "<b>bold" in stored and "<i>pasted</i>" in stored and "script" not in stored
    expect(editor.locator("b").first).to_contain_text("bold")
    expect(page.get_by_text("Unsaved changes")).to_be_hidden()  # the editor alone changes nothing


def paste(page: Page, html: str) -> None:
    page.evaluate(
        """html => {
            const data = new DataTransfer();
            data.setData("text/html", html);
            const options = { clipboardData: data, bubbles: true, cancelable: true };
            document.activeElement.dispatchEvent(new ClipboardEvent("paste", options));
        }""",
        html,
    )


def test_links_are_added_by_keyboard(agent: Visitor):
    page = agent.page
    page.goto("/tables/asset/new/")
    editor = page.get_by_role("textbox", name="Story")
    editor.focus()
    page.keyboard.type("site")
    page.keyboard.press("Control+a")
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="Bold")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_label("Address of the link").fill("example.com")
    page.keyboard.press("Enter")
    expect(editor.locator('a[href="https://example.com"]')).to_have_text("site")
    expect(editor).to_be_focused()
    page.on("dialog", lambda dialog: dialog.accept())


def test_next_record_stays_reachable_after_a_change_moved_this_one_out_of_the_list(agent: Visitor):
    page = agent.page
    urls = [add_record(page, "maker", name=f"Queue {number}") for number in range(3)]
    list_parameter = "?list=sysparm_query%3DnameSTARTSWITHQueue^ORDERBYname"
    page.goto(f"{urls[0]}{list_parameter}")
    for following in urls[1:]:
        page.get_by_label("Name", exact=True).fill("Done")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        page.get_by_role("link", name="Next", exact=True).click()
        expect(page).to_have_url(re.compile(re.escape(following)))


def test_shortcuts_are_listed_and_can_be_switched_off(agent: Visitor):
    page = agent.page
    urls = sorted(add_record(page, "maker", name=f"Key {number}") for number in range(2))
    page.goto(f"{urls[0]}?list=sysparm_query%3DnameSTARTSWITHKey^ORDERBYsys_id")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_contain_text("Next record of the list")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.wait_for_url(f"{urls[1]}?*")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    dialog.get_by_label("Use shortcuts of a single key").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    expect(dialog).to_be_hidden()
    assert page.url.startswith(urls[1])


def test_related_lists_lead_to_a_new_record(agent: Visitor):
    page = agent.page
    add_record(page, "maker", name="Related maker")
    page.get_by_role("link", name="New Asset (Maker)").click()
    expect(page.get_by_role("combobox", name="Maker", exact=True)).to_have_value("Related maker")
    page.get_by_label("Name", exact=False).first.fill("Part")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("link", name="Open Related maker").click()
    expect(page.get_by_role("region", name="Asset (Maker)").get_by_role("link", name="Part")).to_be_visible()


@pytest.fixture
def page_without_scripts(browser: Browser, tables: Stack) -> Iterator[Page]:
    context = browser.new_context(viewport=DESKTOP_SIZE, base_url=tables.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Login").fill("bob")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    yield page
    context.close()


def test_records_are_created_changed_and_deleted_without_scripts(page_without_scripts: Page):
    page = page_without_scripts
    add_record(page, "maker", name="Plain maker")
    page.goto("/tables/asset/new/")
    values: dict[str, Any] = {"name": "Plain", "maker": "Plain maker", "makers": "Plain maker", "story": "<p>x</p>"}
    for name, value in {**values, "data": json.dumps({"a": 1})}.items():
        page.locator(f"[name={name}]").fill(value)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("heading", name="Plain").wait_for()
    for name, value in values.items():
        expect(page.locator(f"[name={name}]")).to_have_value(value)
    page.locator("[name=notes]").fill("more")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.get_by_role("link", name="Related lists").click()
    page.get_by_role("link", name="Back to Plain").click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/tables/asset/")

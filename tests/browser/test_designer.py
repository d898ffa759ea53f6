"""The designer as an administrator uses it: a whole table with few clicks, the keyboard, a phone, and the preview."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import assert_no_findings
from tests.browser.visitor import DESKTOP_SIZE, Visitor
from workspace.forms.display import PATH_SEPARATOR

pytestmark = pytest.mark.browser

MAX_CLICKS, MAX_TYPED_FIELDS = 25, 15
MAX_CLICKS_OF_RULES = 6
# The cards stay open, so that each column takes one click.
MAX_CARDS_HEIGHT_PX = 400
# A folded column; two lines on a phone.
MAX_LINES_HEIGHT_PX = 70
MANY_COLUMNS = 20


class CountingHand:
    """Clicks and types, and counts both. Tab and Enter in a field count as typing."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.typed_fields = page, 0, 0

    def click(self, locator: Locator) -> None:
        locator.click()
        self.clicks += 1

    def type(self, text: str) -> None:
        """Type into the field that has the focus."""
        self.page.keyboard.insert_text(text)
        self.typed_fields += 1


def add_column(hand: CountingHand, card: str, label: str) -> None:
    hand.click(hand.page.locator(f"[data-add-type={card}]"))
    hand.type(label)


def add_rules(hand: CountingHand) -> None:
    """Everyone reads; a new role reads, creates and writes."""
    before = hand.clicks
    hand.click(hand.page.get_by_label("New role"))
    hand.type("laptop team")
    hand.page.keyboard.press("Enter")
    for rule in ("Everyone: read", "laptop team: read", "laptop team: create", "laptop team: write"):
        hand.click(hand.page.get_by_label(f"{rule} the record"))
    assert hand.clicks - before <= MAX_CLICKS_OF_RULES


def test_a_table_of_eight_columns_takes_few_clicks(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    page.goto("/tables/")
    hand = CountingHand(page)
    hand.click(page.get_by_role("link", name="Design tables"))
    hand.click(page.get_by_role("link", name="Create table"))
    expect(page.get_by_label("Label").first).to_be_focused()
    hand.type("Laptop")
    cards = page.locator("ul.type-cards").bounding_box()
    assert cards and cards["height"] < MAX_CARDS_HEIGHT_PX
    add_column(hand, "string", "Model")
    page.keyboard.press("Enter")
    hand.type("Serial number")
    add_column(hand, "date", "Bought on")
    add_column(hand, "decimal", "Price")
    add_column(hand, "boolean", "Leased")
    add_column(hand, "text", "Notes")
    add_column(hand, "choice", "State")
    hand.click(page.locator("[name$=-choices]:visible"))
    hand.type("New\nIn use")
    add_column(hand, "reference", "Owner")
    hand.click(page.get_by_role("combobox", name="Refers to"))
    hand.type("user (u")
    expect(page.get_by_role("option", name="User (user)", selected=True)).to_be_visible()
    page.keyboard.press("Enter")
    hand.click(page.get_by_role("button", name="Add a form view with all columns"))
    expect(page.locator("#preview")).to_contain_text("Serial number")
    add_rules(hand)
    assert_no_findings(page)
    assert desktop_visitor.overflow_px() <= 0
    hand.click(page.get_by_role("button", name="Create table"))
    page.wait_for_url("**/design/laptop/")
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert_no_findings(page)
    assert hand.clicks <= MAX_CLICKS and hand.typed_fields <= MAX_TYPED_FIELDS, vars(hand)
    for rule in ("Everyone: read", "laptop team: read", "laptop team: create", "laptop team: write"):
        expect(page.get_by_label(f"{rule} the record")).to_be_checked()

    hand.page.goto("/tables/laptop/new/")
    for label in ("Model", "Serial number", "Bought on", "Price", "Leased", "Notes", "State", "Owner"):
        expect(page.get_by_label(label, exact=True)).to_be_visible()
    page.goto("/tables/laptop/")
    page.get_by_role("link", name="Design", exact=True).click()
    page.wait_for_url("**/design/laptop/")


def test_the_keyboard_orders_choices_and_the_columns_of_views(visitor: Visitor):
    size = visitor.page.viewport_size
    name = f"desk_{size['width'] if size else 0}"
    page = visitor.sign_in("alice").page
    page.goto("/design/new-table/")
    page.keyboard.insert_text(name)
    page.locator("[data-add-type=choice]").click()
    page.keyboard.insert_text("State")
    page.locator("[name$=-choices]:visible").fill("New\nOld\nGone")
    page.get_by_text("Order", exact=True).click()
    page.get_by_role("button", name="Move Gone up").press("Enter")
    expect(page.get_by_role("button", name="Move Gone up")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("[name$=-choices]:visible")).to_have_value("Gone\nNew\nOld")
    page.locator("[data-add-type=string]").click()
    page.keyboard.insert_text("Place")
    page.get_by_role("button", name="Add a list view").click()
    page.get_by_role("button", name="Move Place up").press("Enter")
    page.get_by_role("textbox", name="New heading").fill("More")
    page.get_by_role("textbox", name="New heading").press("Enter")
    page.get_by_role("button", name="Move More up").press("Enter")
    expect(page.locator("[name^=views][name$=-columns]").first).to_have_value("place\n# More\nstate")
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0
    page.keyboard.press("Control+s")
    page.wait_for_url(f"**/design/{name}/")
    page.locator(".stored-column > summary", has_text="State").click()
    expect(page.get_by_label("Choices").first).to_have_value("Gone\nNew\nOld")


def test_a_view_column_is_picked_from_a_referenced_record(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    page.goto("/design/task/")
    view = page.get_by_role("button", name="Add another view")
    view.click()
    page.keyboard.insert_text("people")
    picker = page.get_by_role("combobox", name="Add a column to the view").last
    picker.fill(f"Caller{PATH_SEPARATOR}Log")
    page.get_by_role("option", name=f"Caller{PATH_SEPARATOR}Login").click()
    row = page.get_by_role("group", name="View people")
    row.get_by_role("button", name="Remove Short description").click()
    page.get_by_role("button", name="Save", exact=True).last.click()
    page.wait_for_load_state()
    expect(page.get_by_text("Saved.")).to_be_visible()
    stored = page.get_by_role("group", name="View people")
    expect(stored.get_by_text(f"Caller{PATH_SEPARATOR}Login", exact=True)).to_be_visible()
    expect(stored.get_by_role("button", name="Move Short description up")).to_have_count(0)


def test_a_choice_column_suggests_its_values_for_an_automatic_value(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    page.goto("/design/task/")
    contents = page.get_by_role("navigation", name="Sections")
    contents.get_by_role("link", name="Automatic values").click()
    expect(page.get_by_role("heading", name="Automatic values")).to_be_in_viewport()
    expect(contents).to_be_in_viewport()
    page.get_by_role("button", name="Add an automatic value").click()
    row = page.get_by_role("group", name="Automatic value").last
    row.get_by_label("When this column changes").select_option("priority")
    row.get_by_label("To", exact=True).focus()
    expect(row.locator("datalist option").first).to_have_attribute("value", "1")


def test_a_deletion_is_confirmed_with_its_costs(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    page.goto("/design/new-table/")
    page.keyboard.insert_text("Shelf")
    page.locator("[data-add-type=string]").click()
    page.keyboard.insert_text("Room")
    page.get_by_role("button", name="Create table").click()
    page.wait_for_url("**/design/shelf/")
    page.locator(".stored-column > summary", has_text="Room").click()
    page.get_by_label("Delete Room").check()
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_text("“Room” is deleted.")).to_be_visible()
    assert_no_findings(page)
    page.get_by_role("button", name="Save anyway").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("Delete Room")).to_have_count(0)
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete table").click()
    page.wait_for_url("**/design/")
    assert_no_findings(page)


def test_stored_columns_fold_to_a_line(visitor: Visitor):
    page = visitor.sign_in("alice").page
    page.goto("/design/task/")
    summaries = page.locator(".stored-column > summary")
    heights = summaries.evaluate_all("(rows) => rows.map((row) => row.offsetHeight)")
    assert len(heights) > MANY_COLUMNS and sorted(heights)[len(heights) // 2] <= MAX_LINES_HEIGHT_PX
    priority = page.get_by_role("group", name="Priority", exact=True)
    priority.locator("summary").first.click()
    priority.get_by_label("Label").fill("Rank")
    row = page.get_by_role("group", name="Rank", exact=True)
    row.get_by_text("Options").click()
    row.get_by_label("Required").check()
    expect(row.locator("summary").first).to_contain_text("Rank")
    expect(row.locator("summary").first).to_contain_text("Required")
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0
    row.get_by_label("Label").press("Enter")
    expect(page.get_by_label("Label").nth(4)).to_be_focused()
    record = page.locator(".stored-column [id^=record-]").last
    expect(record).to_be_hidden()
    page.evaluate("id => { location.hash = id; }", record.get_attribute("id"))
    expect(record).to_be_visible()


def test_the_description_of_the_chosen_type_is_shown(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    page.goto("/design/new-table/")
    page.locator("[data-add-type=decimal]").click()
    row = page.get_by_role("group", name="New column")
    expect(row.get_by_text("An exact number, such as an amount of money").first).to_be_visible()
    row.get_by_text("Type: Decimal").click()
    row.get_by_role("radio", name="Percent").check()
    expect(row.locator("[data-type-description]")).to_have_text("From 0 to 100")


def test_a_condition_is_built_with_the_builder_of_lists(visitor: Visitor):
    page = visitor.sign_in("alice").page
    page.goto("/design/task/")
    page.get_by_role("button", name="Add a rule with a condition").click()
    row = page.get_by_role("group", name="New rule")
    row.get_by_role("textbox", name="Condition").fill("active=true")
    row.get_by_role("button", name="Build the condition").click()
    dialog = page.get_by_role("dialog", name="Condition of the rule")
    dialog.get_by_role("button", name="Add condition").click()
    dialog.get_by_role("combobox", name="Field").last.fill("Short d")
    dialog.get_by_role("option", name="Short description").click()
    dialog.get_by_role("group", name="Condition 2").get_by_role("textbox").last.fill("fire")
    assert_no_findings(page)
    dialog.get_by_role("button", name="Use this condition").click()
    expect(row.get_by_role("textbox", name="Condition")).to_have_value("active=true^short_descriptionLIKEfire")
    assert visitor.overflow_px() <= 0


def test_the_matrix_gets_a_group_for_a_column(visitor: Visitor):
    page = visitor.sign_in("alice").page
    page.goto("/design/task/")
    page.get_by_label("Add rules for a column").select_option(label="Priority")
    expect(page.get_by_label("Everyone: read Priority")).to_be_focused()
    page.get_by_label("Add a role").select_option(label="monitoring")
    page.get_by_label("monitoring: write Priority").check()
    assert page.locator("[value^='write:priority:']:checked").count() == 1
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0


def test_a_rule_for_any_table_is_ticked_on_its_page(visitor: Visitor):
    page = visitor.sign_in("alice").page
    # The page of one size has the rules of the other.
    is_desktop = page.viewport_size == DESKTOP_SIZE
    column = "sys_created_by" if is_desktop else "sys_updated_by"
    role = "monitoring" if is_desktop else "itil"
    page.goto("/design/")
    page.get_by_role("link", name="Rules for any table").click()
    page.wait_for_url("**/design/any-table/")  # and its scripts
    page.get_by_label("Add a role").select_option(label=role)
    page.get_by_label("Add rules for a column").select_option(label=column)
    page.get_by_label(f"{role}: read {column}").check()
    page.get_by_role("button", name="Add a rule with a condition").locator("visible=true").click()
    page.get_by_role("textbox", name="Condition").last.fill("sys_version=1")
    assert_no_findings(page)
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label(f"{role}: read {column}")).to_be_checked()
    assert visitor.overflow_px() <= 0


def test_a_rule_with_a_condition_offers_a_new_role(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    page.goto("/design/any-table/")
    page.get_by_label("New role").fill("gardeners")
    page.get_by_role("button", name="Add the new role").click()
    page.get_by_role("button", name="Add a rule with a condition").locator("visible=true").click()
    page.locator("[data-rows=rules] > [data-row]").last.get_by_label("gardeners").check()
    page.get_by_role("textbox", name="Condition").last.fill("sys_version=2")
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.locator("[data-rows=rules] > [data-row]").last.get_by_label("gardeners")).to_be_checked()

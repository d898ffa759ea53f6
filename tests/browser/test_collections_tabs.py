"""The tabs of a collection: filters, weaker results, the page of a document, access, settings, replacing a file."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import assert_no_findings
from tests.browser.collection_pages import (
    create_collection,
    documents_section,
    file_payload,
    fill_metadata,
    open_documents,
    search,
    wait_until_ready,
)
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser

GUIDE = b"# Toner\n\nThe **red** toner.\n\n| Room | Badge |\n|---|---|\n| 1 | blue |\n"


def upload_with_type(page: Page, metadata_type: str, *files: object) -> None:
    page.get_by_text("Metadata for new uploads").click()
    fill_metadata(page, 1, "type", metadata_type)
    page.set_input_files("#files", list(files))  # type: ignore[arg-type]
    wait_until_ready(page, len(files))


def check_page(visitor: Visitor) -> None:
    assert visitor.overflow_px() <= 0
    assert_no_findings(visitor.page)


def test_result_leads_to_the_highlighted_passage(collection_visitor: Visitor):
    page = collection_visitor.page
    upload_with_type(page, "manual", file_payload("guide.md", GUIDE))
    check_page(collection_visitor)
    search(page, "red toner")
    expect(page.locator(".hits strong mark")).to_have_text("red")
    expect(page.locator(".hits table td").first).to_have_text("1")
    check_page(collection_visitor)
    page.get_by_role("link", name="guide.md", exact=True).click()
    expect(page.locator(".is-cited")).to_contain_text("The red toner.")
    assert "#passage-1" in page.url
    check_page(collection_visitor)


def test_filter_offers_fields_and_values(collection_visitor: Visitor):
    page = collection_visitor.page
    upload_with_type(page, "manual", file_payload("guide.md", GUIDE))
    page.locator(".tabs").get_by_role("link", name="Search", exact=True).click()
    page.get_by_label("What are you looking for?").fill("toner")
    page.get_by_text("Filter and search mode").click()
    page.get_by_label("Field").select_option("type")
    list_id = page.get_by_label("Value").get_attribute("list")
    assert page.locator(f"#{list_id} option").get_attribute("value") == "manual"
    page.get_by_label("Value").fill("other")
    page.get_by_role("button", name="Add condition").click()
    expect(page.get_by_label("Field")).to_have_count(2)
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#results")).to_contain_text("No results with this filter.")
    assert "filter=type%3Dother" in page.url
    check_page(collection_visitor)


def test_manager_changes_access_and_settings(collection_visitor: Visitor):
    page = collection_visitor.page
    page.get_by_role("link", name="Access", exact=True).click()
    page.get_by_role("group", name="Readers").get_by_label("itil", exact=True).check()
    check_page(collection_visitor)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    expect(page.get_by_role("group", name="Readers").get_by_label("itil", exact=True)).to_be_checked()
    page.get_by_role("link", name="Settings", exact=True).click()
    check_page(collection_visitor)
    page.get_by_label("Keyword weight").fill("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Keyword weight")).to_have_value("7")


def test_metadata_is_edited_as_fields(collection_visitor: Visitor):
    page = collection_visitor.page
    upload_with_type(page, "manual", file_payload("guide.md", GUIDE))
    page.get_by_role("link", name="Metadata of guide.md").click()
    page.get_by_role("button", name="Add field").click()
    row = page.get_by_role("group", name="Field 4")
    row.get_by_label("Name").fill("priority")
    row.get_by_label("Type").select_option("Number")
    row.get_by_label("Value").fill("2")
    check_page(collection_visitor)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(documents_section(page)).to_contain_text("type: manual · priority: 2")


def test_file_of_any_name_replaces_a_document(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("carl").page
    create_collection(page)
    upload_with_type(page, "manual", file_payload("guide.md", GUIDE))
    with page.expect_file_chooser() as chooser:
        page.get_by_role("link", name="Replace guide.md").click()
    chooser.value.set_files(file_payload("guide 2.md", b"# Second edition"))
    expect(documents_section(page)).to_contain_text("guide 2.md")
    wait_until_ready(page)
    expect(documents_section(page)).to_contain_text("type: manual")
    expect(documents_section(page)).to_contain_text("1 document,")


def test_several_collections_are_searched(collection_visitor: Visitor):
    page = collection_visitor.page
    name = page.get_by_role("heading", level=1).inner_text()
    upload_with_type(page, "note", file_payload("guide.md", b"The zebra crossing of " + name.encode()))
    page.goto("/collections/")
    page.get_by_label("Search all collections").fill("zebra crossing")
    page.get_by_role("search", name="All collections").get_by_role("button").click()
    own_hit = page.locator(".hits > li").filter(has=page.get_by_role("link", name=name, exact=True))
    expect(own_hit).to_contain_text("guide.md")
    check_page(collection_visitor)
    page.get_by_role("link", name=name, exact=True).first.click()
    open_documents(page)

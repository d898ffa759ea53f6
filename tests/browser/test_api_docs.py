"""The API docs: a key that only the page has, and commands without a secret. The dashboard is accessible."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.axe import assert_no_findings
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser


def test_requests_are_tried_out_with_a_key_that_no_command_shows(desktop_visitor: Visitor):
    page = desktop_visitor.page
    desktop_visitor.sign_in("alice")
    desktop_visitor.open("/api/docs")
    with page.expect_response("**/api/docs/key") as response:
        page.get_by_role("button", name="Create a key").click()
    secret = response.value.json()["data"]["auth_key"]
    expect(page.locator("#docs-key-status")).to_contain_text("read-only key until")

    page.get_by_placeholder("Filter by tag").fill("TABLE TASK")
    expect(page.locator(".opblock-tag")).to_have_count(1)
    page.locator(".opblock-tag").click()
    page.locator(".opblock-post .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute", exact=True).click()

    expect(page.locator("pre.curl")).to_contain_text('-H "Authorization: Bearer $TOKEN"')
    expect(page.locator(".live-responses-table").first).to_contain_text("This access key is read-only.")
    assert secret not in page.content()
    stored = page.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert secret not in stored

    desktop_visitor.open("/account/")
    desktop_visitor.open("/api/docs")
    expect(page.locator("#docs-key-status")).to_contain_text("With a key you can try requests on this page.")


def test_allowed_writes_are_written(desktop_visitor: Visitor):
    page = desktop_visitor.page
    desktop_visitor.sign_in("alice")
    desktop_visitor.open("/api/docs")
    page.get_by_label("Allow writes").check()
    page.get_by_role("button", name="Create a key").click()
    expect(page.locator("#docs-key-status")).to_have_text(re.compile("This page has a key until"))

    page.get_by_placeholder("Filter by tag").fill("product table COMPANY")
    page.locator(".opblock-tag").click()
    page.locator(".opblock-post .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute", exact=True).click()
    expect(page.locator(".live-responses-table .response-col_status").last).to_contain_text("201")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_have_enough_contrast(desktop_visitor: Visitor, theme: str):
    page = desktop_visitor.sign_in("alice").page
    desktop_visitor.open("/api/docs")
    page.locator(".opblock-tag").first.click()
    page.locator(".opblock-summary-control").first.click()
    page.locator(f".theme-switch [value={theme}]").click()

    assert_no_findings(page, rules=["color-contrast"])


def test_dashboard_has_no_findings(visitor: Visitor):
    visitor.sign_in("alice")
    visitor.open("/admin/")
    visitor.page.get_by_text("Figures").first.click()
    assert visitor.page.get_by_role("img", name="Requests:").count() == 1
    for region in ("steps-title", "charts-title"):
        assert_no_findings(visitor.page, f'section[aria-labelledby="{region}"]')
    assert visitor.overflow_px() <= 0

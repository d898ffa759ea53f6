"""Pages of administrators, walked through: who sees what, from a record to the reason of a value, and design files."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import assert_no_findings
from tests.browser.visitor import Visitor
from tests.config.stack import Stack, manage

pytestmark = pytest.mark.browser

CREATE_SAFES = """
from accounts.models import Role, User, UserRole
from tableapi.database import catalogue_loader
from tableapi.design import saving
from tableapi.models import Column, Rule, Table
from tableapi.write import designed_records

table = Table(name="safe", label="Safe")
saving.save_table(table)
for name, label in (("name", "Name"), ("kind", "Kind"), ("code", "Code")):
    saving.save_column(Column(table=table, name=name, label=label, type="string", is_display=name == "name"))
auditor = Role.objects.create(name="safe auditor")
UserRole.objects.create(user=User.objects.create_user("vera"), role=auditor)
saving.save_rule(Rule(operation="read", table=table))
for role, condition in ((Role.objects.get(name="admin"), "kind=open"), (auditor, "")):
    saving.save_rule(Rule(operation="read", table=table, column_name="code", roles=[role.pk], condition=condition,
                          admin_overrides=False))
catalogue = catalogue_loader.reload_if_changed()
columns = catalogue.tables["safe"].columns
for name, kind in (("Open safe", "open"), ("Locked safe", "locked")):
    values = {"name": name, "kind": kind, "code": "1234"}
    designed_records.insert(catalogue, catalogue.tables["safe"], {columns[key]: text for key, text in values.items()})
"""
DESIGN = """format: 1
tables:
- name: planned_{}
  label: Planned
  columns:
  - {{name: title, label: Title, type: string}}
"""


@pytest.fixture(scope="module")
def safes(product: Stack) -> None:
    completed = manage("shell", "-c", CREATE_SAFES, env=product.env)
    assert completed.returncode == 0, completed.stderr


def choose_vera(page: Page) -> None:
    page.get_by_role("combobox", name="User").fill("vera")
    page.get_by_role("option", name="vera").first.click()


def test_administrator_reads_why_another_user_sees_a_value(safes: None, visitor: Visitor):
    page = visitor.sign_in("alice").page
    visitor.open("/tables/safe/")
    page.get_by_role("link", name="Open safe").click()
    page.get_by_role("link", name="Who sees this").click()
    choose_vera(page)
    page.get_by_role("button", name="Show").click()
    record = page.get_by_role("region", name="Columns")
    expect(record.get_by_role("row", name="Name")).to_contain_text("Open safe")
    assert_no_findings(page)
    page.get_by_role("link", name="All records that vera sees").click()
    rows = page.get_by_role("region", name="Records").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="Open safe")).to_contain_text("1234")
    expect(rows.filter(has_text="Locked safe")).to_contain_text("hidden from you")
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0
    reason = rows.filter(has_text="Open safe").get_by_role("cell", name="1234").get_by_role("link")
    number = reason.inner_text()
    reason.click()
    expect(page.locator(f"#reason-{number}:target")).to_contain_text("read Safe.code for safe auditor")


def test_records_that_another_user_sees_are_filtered_by_conditions(safes: None, visitor: Visitor):
    page = visitor.sign_in("alice").page
    visitor.open("/access/")
    choose_vera(page)
    page.get_by_label("Table", exact=True).select_option("Safe")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("Filter", exact=True).click()
    page.get_by_role("combobox", name="Field").fill("Name")
    page.get_by_role("option", name="Name", exact=True).click()
    page.get_by_label("Value").fill("Open safe")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("list", name="Conditions of this list")).to_contain_text("Open safe")
    expect(page.get_by_role("region", name="Records").locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("heading", name="vera in Safe")).to_be_visible()
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0


def test_design_is_exported_changed_planned_and_applied(visitor: Visitor):
    page = visitor.sign_in("alice").page
    visitor.open("/design-files/")
    assert_no_findings(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the design").click()
    text = download.value.path().read_text()
    assert "name: task" in text and "format: 1" in text
    name = f"{page.viewport_size['width']}" if page.viewport_size else "0"
    file = {"name": "design.yaml", "mimeType": "application/yaml", "buffer": DESIGN.format(name).encode()}
    page.get_by_label("File", exact=True).set_input_files(file)  # type: ignore[arg-type]  # a dictionary with these keys
    page.get_by_role("button", name="Show the plan").click()
    steps = page.get_by_role("region", name="Steps", exact=True)
    expect(steps).to_contain_text(f"create table planned_{name}")
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0
    page.get_by_role("button", name="Apply these steps").click()
    expect(page.get_by_role("heading", name="Applied: 2 steps")).to_be_visible()
    assert_no_findings(page)
    visitor.open(f"/tables/planned_{name}/")
    expect(page.get_by_role("heading", name="Planned").first).to_be_visible()

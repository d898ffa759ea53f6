"""The condition builder of a list, with a mouse, with a keyboard, on a phone and without JavaScript."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from system.encoded_query import QueryError, parse
from tests.browser.axe import assert_no_findings
from tests.browser.visitor import DESKTOP_SIZE, Visitor
from tests.config.stack import Stack, manage
from tests.system.encoded_query.queries import random_text
from tests.workspace.filter_queries import TASK_QUERIES
from workspace.lists.query_tree import SPELLINGS, parse_tree

pytestmark = pytest.mark.browser

OLD_TASKS = "active=true^assignment_groupDYNAMICmy_groups^opened_atRELATIVELT@day@ago@7"
CREATE_TASKS = """
import json
from accounts.models import Group, User, UserGroup
from django.test import Client
from datetime import UTC, datetime, timedelta
from typing import Any
alice = User.objects.get(login="alice")
group, is_new = Group.objects.get_or_create(name="Helpers")
if is_new:
    UserGroup.objects.create(user=alice, group=group)
    client = Client(headers={"Accept": "application/json"}, SERVER_NAME="localhost")
    from accounts.authentication import access_keys
    key = access_keys.create_key(alice, "of a test", expires_at=None, scope=[])
    for description, days, group_id in (("Old task", 20, group.pk), ("New task", 1, group.pk), ("Other task", 20, "")):
        opened_at = (datetime.now(UTC) - timedelta(days=days)).isoformat(sep=" ", timespec="seconds")
        values = {"short_description": description, "opened_at": opened_at[:19], "assignment_group": group_id}
        response = client.post("/rest/v1/table/task", json.dumps(values), content_type="application/json",
                               headers={"Authorization": f"Bearer {key}"})
        assert response.status_code == 201, response.content
"""


@pytest.fixture(scope="module")
def tasks(product: Stack) -> None:
    """An old task of a group of alice, a new one, and an old one without a group."""
    completed = manage("shell", "-c", CREATE_TASKS, env=product.env)
    assert completed.returncode == 0, completed.stderr


def open_builder(page: Page, query: str = "") -> Locator:
    page.goto("/tables/task/" + (f"?sysparm_query={quote(query)}" if query else ""))
    page.locator("summary", has_text="Filter").click()
    builder = page.locator("details.filter")
    expect(builder.get_by_role("combobox", name="Field").first).to_be_focused()
    return builder


def choose_field(row: Locator, text: str, label: str) -> None:
    row.get_by_role("combobox", name="Field", exact=True).fill(text)
    row.get_by_role("option", name=label, exact=True).click()


def query_of(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("sysparm_query", [""])[0]


def test_old_tasks_of_my_group_are_found(visitor: Visitor, tasks: None):
    page = visitor.sign_in("alice").page
    builder = open_builder(page)
    first = builder.get_by_role("group", name="Condition 1", exact=True)
    choose_field(first, "acti", "Active")
    expect(first.get_by_label("Value")).to_have_value("true")

    builder.get_by_role("button", name="Add condition").click()
    second = builder.get_by_role("group", name="Condition 2", exact=True)
    expect(second.get_by_role("combobox", name="Field")).to_be_focused()
    choose_field(second, "group", "Assignment group")
    second.get_by_label("Operator").select_option("is one of my groups")

    builder.get_by_role("button", name="Add condition").click()
    third = builder.get_by_role("group", name="Condition 3", exact=True)
    choose_field(third, "opened", "Opened at")
    third.get_by_label("Operator").select_option("is more than … ago")
    assert_no_findings(page)
    assert visitor.overflow_px() <= 0
    builder.get_by_role("button", name="Apply").click()

    page.wait_for_url("**sysparm_query=**")
    assert query_of(page) == OLD_TASKS
    expect(page.get_by_text("Old task")).to_be_visible()
    expect(page.get_by_text("New task")).to_have_count(0)
    expect(page.get_by_text("Other task")).to_have_count(0)
    parts = page.get_by_role("list", name="Conditions of this list")
    expect(parts).to_contain_text("Assignment group is one of my groups")
    expect(parts).to_contain_text("Opened at is more than 7 days ago")
    assert_no_findings(page)

    parts.get_by_role("link", name="Remove the condition: Opened at is more than 7 days ago").click()
    expect(page.get_by_text("New task")).to_be_visible()
    assert query_of(page) == "active=true^assignment_groupDYNAMICmy_groups"


def test_conditions_are_built_with_the_keyboard(desktop_visitor: Visitor, tasks: None):
    page = desktop_visitor.sign_in("alice").page
    page.goto("/tables/task/")
    keyboard = page.keyboard
    page.locator("summary", has_text="Filter").focus()
    keyboard.press("Enter")
    field = page.get_by_role("combobox", name="Field")
    expect(field).to_be_focused()
    keyboard.type("short d")
    expect(page.locator("details.filter").get_by_role("option", name="Short description")).to_have_attribute(
        "aria-selected", "true"
    )
    keyboard.press("Enter")
    expect(page.get_by_label("Operator")).to_have_value("LIKE")
    keyboard.press("Tab")
    keyboard.press("Tab")
    expect(page.get_by_label("Value")).to_be_focused()
    keyboard.type("old")

    keyboard.press("Tab")
    expect(page.get_by_role("button", name="or: add an alternative to this condition")).to_be_focused()
    keyboard.press("Enter")
    second = page.get_by_role("group", name="Condition 2", exact=True)
    expect(second.get_by_role("combobox", name="Field")).to_be_focused()
    keyboard.type("assigned user › log")  # noqa: RUF001
    expect(second.get_by_role("option", name="Assigned user › Login")).to_be_visible()  # noqa: RUF001
    keyboard.press("Enter")
    second.get_by_label("Value").focus()
    keyboard.type("bob")
    keyboard.press("Enter")
    page.wait_for_url("**sysparm_query=**")
    assert query_of(page) == "short_descriptionLIKEold^ORassigned_user.loginLIKEbob"
    expect(page.get_by_text("Old task")).to_be_visible()


def test_walking_continues_in_the_same_list(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    builder = open_builder(page)
    choose_field(builder, "caller", "Caller › …")  # noqa: RUF001
    builder.get_by_role("option", name="Caller › Company › …", exact=True).click()  # noqa: RUF001
    builder.get_by_role("option", name="Caller › Company › Name", exact=True).click()  # noqa: RUF001
    builder.get_by_label("Value").fill("A^b")
    builder.get_by_role("button", name="Apply").click()
    page.wait_for_url("**sysparm_query=**")
    assert query_of(page) == "caller.company.nameLIKE{A^b}"


def test_groups_are_added_and_removed(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    builder = open_builder(page, "priority=1^ORDERBYnumber")
    builder.get_by_role("button", name="Add group (and)").click()
    nested = builder.get_by_role("group", name="Condition 2", exact=True)
    choose_field(nested, "state", "State")
    nested.get_by_label("Value").select_option("New")
    builder.get_by_role("button", name="Add group (or)").first.click()
    choose_field(builder.get_by_role("group", name="Condition 3", exact=True), "active", "Active")
    builder.get_by_role("button", name="Add group (or)").last.click()
    last = builder.get_by_role("group", name="Condition 4", exact=True)
    choose_field(last, "number", "Number")
    last.get_by_label("Operator").select_option("is not empty")
    assert_no_findings(page)

    builder.get_by_role("group", name="Condition 1", exact=True).get_by_role("button", name="Remove this").click()
    expect(
        builder.get_by_role("group", name="Condition 1", exact=True).get_by_role("combobox", name="Field")
    ).to_be_focused()
    builder.get_by_role("button", name="Apply").click()
    page.wait_for_url("**ISNOTEMPTY**")
    assert query_of(page) == "(state=1^NQactive=true)^NQnumberISNOTEMPTY^ORDERBYnumber"


def test_missing_value_is_pointed_out(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    builder = open_builder(page)
    choose_field(builder, "short desc", "Short description")
    builder.get_by_role("button", name="Apply").click()
    expect(builder.get_by_role("alert")).to_have_text("Enter a value.")
    expect(builder.get_by_label("Value")).to_be_focused()
    builder.get_by_label("Value").fill("x")
    builder.get_by_label("Operator").select_option("is one of")
    builder.get_by_role("button", name="Add condition").click()
    page.keyboard.type("no such field")
    page.keyboard.press("Enter")
    expect(builder.get_by_role("alert")).to_have_text("Choose a field of the list.")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.press("Delete")
    builder.get_by_role("button", name="Apply").click()
    page.wait_for_url("**sysparm_query=**")
    assert query_of(page) == "short_descriptionINx"


def test_queries_are_read_back_unchanged(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    for query in TASK_QUERIES:
        builder = open_builder(page, query)
        expect(builder.get_by_role("group", name="Condition 1", exact=True)).to_be_visible()
        builder.get_by_role("button", name="Edit as text").click()
        assert parse(builder.get_by_label("Encoded query").input_value()) == parse(query)
        builder.get_by_role("button", name="Edit as conditions").click()
        builder.get_by_role("button", name="Apply").click()
        page.wait_for_load_state("load")
        assert parse(query_of(page)) == parse(query)
        assert page.get_by_role("alert").count() == 0


def test_every_kind_of_value_is_accessible(visitor: Visitor):
    page = visitor.sign_in("alice").page
    builder = open_builder(page, "^".join(query.partition("^ORDERBY")[0] for query in TASK_QUERIES))
    expect(builder.get_by_role("group", name="Condition 12", exact=True)).to_be_visible()
    assert_no_findings(page, "details.filter")
    assert visitor.overflow_px() <= 0


def test_every_query_is_written_as_the_server_writes_it(desktop_visitor: Visitor):
    random = Random(21)
    trees: list[Any] = []
    while len(trees) < 2_000:
        try:
            trees.append(parse_tree(random_text(random)))
        except QueryError:
            continue
    page = desktop_visitor.sign_in("bob").page
    page.goto("/")
    script = """async ([trees, spellings]) => {
        const { toText } = await import("/static/servicebase/workspace/query-text.js");
        return trees.map((tree) => toText(tree, spellings));
    }"""
    texts = page.evaluate(script, [trees, SPELLINGS])
    assert [parse_tree(text) for text in texts] == trees


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Auckland"])
def test_times_are_edited_on_the_clock_of_the_account(desktop_visitor: Visitor, zone: str):
    start = datetime(2024, 3, 30, 12, tzinfo=UTC)
    instants = [start + timedelta(days=day, minutes=37 * day) for day in range(0, 366, 5)]
    values = [f"{instant:%Y-%m-%d %H:%M:%S}" for instant in instants]
    script = """async ([values, zone]) => {
        const { toLocalTime, fromLocalTime } = await import("/static/servicebase/workspace/filter-dates.js");
        return values.map((value) => [toLocalTime(value, zone), fromLocalTime(toLocalTime(value, zone), zone)]);
    }"""
    page = desktop_visitor.sign_in("bob").page
    page.goto("/")
    pairs = page.evaluate(script, [values, zone])
    local_times = [f"{instant.astimezone(ZoneInfo(zone)):%Y-%m-%dT%H:%M}" for instant in instants]
    assert pairs == [[local, value] for local, value in zip(local_times, values, strict=True)]


def test_query_is_edited_as_text_without_javascript(browser: Browser, product: Stack, tasks: None):
    context = browser.new_context(viewport=DESKTOP_SIZE, base_url=product.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Login").fill("alice")
    page.get_by_label("Password").fill("correct horse 42")
    page.get_by_role("button", name="Sign in").click()
    page.goto("/tables/task/?group=&sysparm_query=active%3Dtrue")
    page.locator("summary", has_text="Filter").click()
    expect(page.get_by_label("Encoded query")).to_have_value("active=true")
    page.get_by_label("Encoded query").fill(OLD_TASKS)
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Old task")).to_be_visible()
    expect(page.get_by_text("New task")).to_have_count(0)
    context.close()

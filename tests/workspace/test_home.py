"""The home page shows the caller's work, recent records and tables, and only what they can read."""

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from tableapi.models import Table
from tests.tableapi.world import field, record, rule, table
from workspace.models import RecentRecord

pytestmark = pytest.mark.django_db


@pytest.fixture
def ticket() -> Table:
    ticket = table("ticket")
    field("ticket", "name", is_display=True)
    field("ticket", "assigned_user", target="user")
    field("ticket", "opened_by", target="user")
    field("ticket", "active", "boolean")
    return ticket


def page(client: Client) -> str:
    response = client.get("/tables/")
    assert response.status_code == 200
    return response.content.decode()


def test_visitors_sign_in_first(client: Client):
    response = client.get("/tables/")

    assert response.status_code == 302 and response["Location"] == "/login/?next=/tables/"


def test_records_assigned_to_and_opened_by_the_caller_are_listed(ticket: Table, as_bob: Client, bob: User, alice: User):
    rule("read", "ticket")
    record("ticket", name="Mine", assigned_user=bob.pk, active=True)
    record("ticket", name="Finished", assigned_user=bob.pk, active=False)
    record("ticket", name="Hers", assigned_user=alice.pk, opened_by=bob.pk, active=True)
    record("ticket", name="Unrelated", active=True)

    text = page(as_bob)
    assigned, _, opened = text.partition("Opened by me")

    assert "Mine" in assigned and "Hers" not in assigned and "Finished" not in assigned
    assert "Hers" in opened and "Unrelated" not in text
    # The form then leads to the next record of the list.
    assert "/?list=table%3Dticket%26sysparm_query%3Dassigned_userDYNAMICme" in assigned


def test_work_needs_a_readable_column(ticket: Table, as_bob: Client, bob: User):
    rule("read", "ticket")
    rule("read", "ticket", column="assigned_user", roles=["admin"])
    record("ticket", name="Secretly mine", assigned_user=bob.pk, active=True)

    text = page(as_bob)

    assert "Assigned to me" not in text and "Secretly mine" not in text


def test_unreadable_tables_are_not_listed(ticket: Table, as_bob: Client, as_alice: Client):
    assert "/tables/ticket/" not in page(as_bob)
    assert "/tables/ticket/" in page(as_alice)


def test_recent_records_follow_the_rules_of_now(ticket: Table, as_bob: Client, bob: User):
    readable = rule("read", "ticket", condition="active=true")
    shown, hidden = record("ticket", name="Shown", active=True), record("ticket", name="Hidden", active=False)
    for sys_id in (shown, hidden, "1"):
        RecentRecord.objects.create(user=bob, table_key=ticket.pk, record_id=sys_id, opened_at=timezone.now())

    text = page(as_bob)
    readable.delete()

    assert "Shown" in text and "Hidden" not in text
    assert "Shown" not in page(as_bob)


def test_start_page_leads_to_the_tables_first(as_bob: Client):
    text = as_bob.get("/").content.decode()

    assert 0 < text.index('href="/tables/"><strong>') < text.index('href="/collections/"><strong>')

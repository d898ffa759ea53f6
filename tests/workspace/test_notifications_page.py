"""The page of notifications: what it says, marking as read, and what it does not say."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils.datastructures import MultiValueDict

from accounts.models import User
from tableapi import tasks
from tableapi.changes import feed_statement
from tableapi.models import Notification, Rule, Table
from tableapi.notifications import change_scan, listing
from tableapi.read.context import Caller
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.world import api, field, record, rule, table

pytestmark = pytest.mark.django_db
PATH = "/notifications/"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Table:
    # A test is one transaction, so its changes never settle.
    statement = change_scan.CREATE_NOTIFICATIONS.replace(feed_statement.IS_SETTLED, "TRUE")
    monkeypatch.setattr(change_scan, "CREATE_NOTIFICATIONS", statement)
    tasks.notify_of_changes()  # the first run only stores the position
    device = table("device")
    field("device", "name", label="Name of it", is_display=True)
    field("device", "secret", label="Secret thing")
    field("device", "assigned_user", target="user")
    rule("read", "device")
    rule("write", "device")
    return device


@pytest.fixture
def lamp(device: Table) -> str:
    return record("device", name="Lamp")


def unread_count(caller: Caller) -> int:
    return len(listing.read_notifications(caller, MultiValueDict({"unread": ["1"]})).entries)


def text_of(response: Any) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", response.content.decode()).split())


def test_notifications_say_who_did_what_to_which_record(lamp: str, alice: User, bob: User, as_bob: Client):
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    api(bob).put(f"device/{lamp}/followers/me")
    api(alice).patch(f"device/{lamp}", {"name": "Torch"})
    api(alice).post(f"device/{lamp}/comments", {"text": "Look, <i>@bob</i>: https://a.example"})
    tasks.notify_of_changes()

    response = as_bob.get(PATH)
    text = text_of(response)
    assert "Device Torch was assigned to you" in text
    assert "Device Torch was changed Name of it alice ·" in text
    assert "You were mentioned in a comment on Device Torch Look, &lt;i&gt; @bob &lt;/i&gt;: https://a.example" in text
    assert f'href="/tables/device/{lamp}/"' in response.content.decode() and lamp not in text


def test_notifications_are_marked_as_read_one_by_one_or_together(lamp: str, alice: User, bob: User, as_bob: Client):
    api(bob).put(f"device/{lamp}/followers/me")
    for name in ("a", "b", "c"):
        api(alice).patch(f"device/{lamp}", {"name": name})
    tasks.notify_of_changes()
    first, second, third = Notification.objects.order_by("pk")

    assert as_bob.post(f"{PATH}{first.pk}/", {"notification-read": "1"})["Location"] == PATH
    assert as_bob.post(f"{PATH}{second.pk}/", {"notification-read": "1"}).status_code == 302
    assert (
        text_of(as_bob.get(PATH)).count("New ")
        == 1
        == text_of(as_bob.get(PATH, {"show": "unread"})).count("was changed")
    )
    as_bob.post(f"{PATH}{first.pk}/", {"notification-read": "0"})
    assert list(Notification.objects.filter(read_at=None).order_by("pk")) == [first, third]
    as_bob.post(PATH)
    assert "No unread notifications." in text_of(as_bob.get(PATH, {"show": "unread"}))
    assert "Mark all as read" not in text_of(as_bob.get(PATH))


def test_notifications_of_others_cannot_be_marked(lamp: str, alice: User, bob: User, as_alice: Client):
    api(bob).put(f"device/{lamp}/followers/me")
    api(alice).patch(f"device/{lamp}", {"name": "a"})
    tasks.notify_of_changes()
    assert as_alice.post(f"{PATH}{Notification.objects.get().pk}/").status_code == 404
    as_alice.post(PATH)
    assert Notification.objects.get().read_at is None


def test_hidden_records_columns_and_users_leave_no_trace(
    device: Table, lamp: str, alice: User, bob: User, as_bob: Client
):
    api(bob).put(f"device/{lamp}/followers/me")
    api(alice).patch(f"device/{lamp}", {"name": "a", "secret": "hush"})
    tasks.notify_of_changes()
    caller = Caller.of(bob)
    assert "Secret thing" in text_of(as_bob.get(PATH)) and unread_count(caller) == 1

    rule("read", "device", "secret", roles=["itil"])
    Rule.objects.filter(table__name="user", column_name="login").delete()
    text = text_of(as_bob.get(PATH))
    assert "Name of it" in text and "Secret thing" not in text and "alice" not in text

    Rule.objects.filter(table=device, operation="read", column_name="").delete()
    rule("read", "device", condition="name=other")
    assert "No notifications." in text_of(as_bob.get(PATH)) and unread_count(caller) == 0


def test_older_notifications_are_on_the_next_page(lamp: str, alice: User, bob: User, as_bob: Client):
    api(bob).put(f"device/{lamp}/followers/me")
    for number in range(25):
        api(alice).post(f"device/{lamp}/comments", {"text": f"Comment {number}."})
    tasks.notify_of_changes()
    first = as_bob.get(PATH, {"show": "unread"}).content.decode()
    link = re.search(r'href="(/notifications/\?after=[^"]+)"', first)
    assert link and "Comment 24." in first and "Comment 4." not in first
    second = as_bob.get(link[1].replace("&amp;", "&")).content.decode()
    assert "Comment 4." in second and "Comment 24." not in second and "?after=" not in second


def test_count_of_none_takes_one_statement(device: Table, bob: User):
    caller = Caller.of(bob)
    unread_count(caller)
    with captured_statements() as statements:
        assert unread_count(caller) == 0
    assert len(statements) == 1


def test_only_signed_in_people_see_the_page(device: Table):
    assert Client().get(PATH).status_code == 302

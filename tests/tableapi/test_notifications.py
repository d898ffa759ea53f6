"""Notifications: who gets them, and what the list and the emails say."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from accounts.models import NotificationChoice, User
from tableapi import tasks
from tableapi.changes import feed_statement
from tableapi.models import Notification, NotificationPosition, Rule, Table
from tableapi.notifications import emails, found_changes
from tests.support.users import make_user
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, record, rule, table

pytestmark = pytest.mark.django_db
PATH = "/rest/v1/notifications"


@pytest.fixture(autouse=True)
def read_log_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test is one transaction, so its changes never settle."""
    settled = found_changes.FIND.replace(feed_statement.IS_SETTLED, "TRUE")
    monkeypatch.setattr(found_changes, "FIND", settled)
    tasks.notify_of_changes()


@pytest.fixture
def device(read_log_at_once: None) -> Table:
    device = table("device")
    field("device", "name")
    field("device", "secret_name")
    field("device", "assigned_user", target="user")
    rule("read", "device")
    rule("write", "device")
    return device


@pytest.fixture
def lamp(device: Table) -> str:
    return record("device", name="Lamp")


def told(user: User, **options: str) -> list[dict[str, Any]]:
    tasks.notify_of_changes()
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return data_of(api(user).get(f"{PATH}?{query}"))


def test_assigned_user_is_told_and_whoever_assigns_is_not(lamp: str, alice: User, bob: User):
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    api(alice).patch(f"device/{lamp}", {"assigned_user": alice.pk})

    (entry,) = told(bob)
    assert (entry["reason"], entry["table"], entry["record"]) == ("assigned", "device", lamp)
    assert (entry["display_value"], entry["columns"], entry["read"]) == ("Lamp", ["assigned_user"], False)
    assert told(alice) == []


def test_sending_the_same_assignee_again_tells_nobody(lamp: str, alice: User, bob: User):
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk, "name": "Light"})
    assert len(told(bob)) == 1
    (entry, _) = data_of(api(alice).get(f"device/{lamp}/history"))[:2]
    assert set(entry["fields"]) == {"name"}


def test_change_after_the_end_of_what_the_log_keeps_is_told(lamp: str, alice: User, bob: User):
    api(alice).patch(f"device/{lamp}", {"name": "x" * 2_000})
    api(bob).put(f"device/{lamp}/followers/me")
    api(alice).patch(f"device/{lamp}", {"name": "x" * 2_001})
    assert [entry["columns"] for entry in told(bob)] == [["name"], ["name"]]


def test_mention_added_later_is_told_once(lamp: str, alice: User, bob: User, carl: User):
    rule("read", "user", "login")
    sys_id = data_of(api(alice).post(f"device/{lamp}/comments", {"text": "See @bob"}))[0]["sys_id"]
    assert [entry["reason"] for entry in told(bob)] == ["mentioned"] and told(carl) == []
    for text in ("See @bob and @carl", "See @carl, @bob!", "See nobody"):
        api(alice).patch(f"device/{lamp}/comments/{sys_id}", {"text": text})
    assert len(told(bob)) == 1 and told(carl) == [], "the last version mentions nobody"
    api(alice).patch(f"device/{lamp}/comments/{sys_id}", {"text": "@carl"})
    assert [entry["reason"] for entry in told(carl)] == ["mentioned"]


def test_comment_tells_followers_and_those_it_mentions(lamp: str, alice: User, bob: User):
    carla = make_user("carla")
    for user in (alice, bob, carla):
        assert data_of(api(user).put(f"device/{lamp}/followers/me", {})) == [{"following": True}]
    api(carla).delete(f"device/{lamp}/followers/me")
    api(alice).post(f"device/{lamp}/comments", {"text": "Look @carla"})

    assert [entry["reason"] for entry in told(bob)] == ["commented"]
    assert [entry["comment"]["text"] for entry in told(carla)] == ["Look @carla"]
    assert told(alice) == []


def test_follower_is_told_of_changes_once(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "Lampe"})
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    told(bob)

    assert [(entry["reason"], entry["columns"]) for entry in told(bob)] == [
        ("assigned", ["assigned_user"]), ("changed", ["name"])
    ]  # fmt: skip


def test_what_cannot_be_read_is_not_told(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    rule("read", "device", "secret_name", roles=["itil"])
    api(alice).patch(f"device/{lamp}", {"secret_name": "x"})
    assert told(bob) == []
    api(alice).patch(f"device/{lamp}", {"name": "y"})
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    assert len(told(bob)) == 2
    hidden = told(bob)[0]["sys_id"]

    Rule.objects.filter(table__name="device", operation="read", column_name="").delete()
    rule("read", "device", condition="name=z")

    assert told(bob) == []
    responses = [api(bob).send("PATCH", f"{PATH}/{sys_id}", {"read": True}) for sys_id in (hidden, "0" * 18)]
    assert responses[0].status_code == 404 and responses[0].content == responses[1].content


def test_pages_are_full_although_some_entries_are_hidden(device: Table, alice: User, bob: User):
    rule("read", "device", "secret_name", roles=["itil"])
    lamp = record("device", name="Lamp")
    api(bob).put(f"device/{lamp}/followers/me", {})
    for number in range(3):
        api(alice).patch(f"device/{lamp}", {"name": str(number)})
        api(alice).patch(f"device/{lamp}", {"secret_name": str(number)})

    assert len(told(bob, sysparm_limit="2")) == 2
    assert len(told(bob)) == 3


def test_read_notifications_can_be_left_out(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    for name in "ab":
        api(alice).patch(f"device/{lamp}", {"name": name})
    newest, oldest = told(bob)

    marked = data_of(api(bob).send("PATCH", f"{PATH}/{newest['sys_id']}", {"read": True}))
    assert marked == [{**newest, "read": True}]
    assert told(bob, unread="1") == [oldest]
    assert error_of(api(alice).send("PATCH", f"{PATH}/{newest['sys_id']}", {"read": True}))[0] == 404
    assert data_of(api(bob).send("PATCH", PATH, {"read": True})) == [{"read": True}]
    assert told(bob, unread="1") == [] and len(told(bob)) == 2


@pytest.mark.parametrize("body", [None, {}, {"read": 1}, {"read": True, "other": 1}])
def test_invalid_mark_is_refused(body: Any, bob: User):
    for path in (PATH, f"{PATH}/{'0' * 18}"):
        assert error_of(api(bob).send("PATCH", path, body))[:2] == (400, "invalid_json")


def test_each_person_chooses(lamp: str, alice: User, bob: User):
    NotificationChoice.objects.create(user=bob, reasons=["mentioned"])
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "a"})
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})

    assert [entry["reason"] for entry in told(bob)] == ["mentioned"]


def test_following_needs_a_readable_record(device: Table, bob: User):
    Rule.objects.filter(table__name="device", operation="read").delete()
    rule("read", "device", condition="name=a")
    hidden = record("device", name="b")
    for method in ("GET", "PUT", "DELETE"):
        responses = [api(bob).send(method, f"device/{sys_id}/followers/me") for sys_id in (hidden, "0" * 18)]
        assert responses[0].status_code == 404 and responses[0].content == responses[1].content


def test_first_run_does_not_tell_of_the_past(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "a"})
    assert len(told(bob)) == 1
    found_changes.delete_old()
    assert len(told(bob)) == 1
    Notification.objects.update(created_at=timezone.now() - timedelta(days=91))
    found_changes.delete_old()
    assert told(bob) == []


@pytest.fixture
def smtp() -> Any:
    with override_settings(EMAIL_HOST="mail.example", BASE_URL="https://service.example"):
        User.objects.filter(login="bob").update(email="bob@service.example")
        yield


def test_email_is_sent_once(lamp: str, alice: User, bob: User, smtp: None):
    api(alice).post(f"device/{lamp}/comments", {"text": "Look @bob"})
    tasks.notify_of_changes()
    for _ in range(2):
        tasks.send_notification_emails()

    (email,) = mail.outbox
    assert email.to == ["bob@service.example"] and email.subject == "You were mentioned in a comment on Lamp"
    assert "Look @bob" in email.body and "https://service.example/account/" in email.body


def test_email_says_what_may_be_read_when_it_is_sent(lamp: str, alice: User, bob: User, smtp: None):
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    tasks.notify_of_changes()
    Rule.objects.filter(table__name="device", operation="read").delete()
    tasks.send_notification_emails()

    assert mail.outbox == [] and Notification.objects.get().email_at is None


def test_email_is_not_sent_for_what_was_read_or_declined(lamp: str, alice: User, bob: User, smtp: None):
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    tasks.notify_of_changes()
    api(bob).send("PATCH", PATH, {"read": True})
    tasks.send_notification_emails()
    NotificationChoice.objects.create(user=bob, by_email=False)
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    tasks.notify_of_changes()
    tasks.send_notification_emails()

    assert mail.outbox == [] and Notification.objects.count() == 2


def test_failed_email_is_tried_again(lamp: str, alice: User, bob: User, smtp: None, monkeypatch: pytest.MonkeyPatch):
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    tasks.notify_of_changes()
    with monkeypatch.context() as patch:
        patch.setattr(mail.EmailMessage, "send", lambda self: (_ for _ in ()).throw(ConnectionRefusedError()))
        tasks.send_notification_emails()
    row = Notification.objects.get()
    assert row.email_attempts == 1 and row.email_at is not None and row.email_at > timezone.now()
    tasks.send_notification_emails()
    assert mail.outbox == []
    Notification.objects.update(email_at=timezone.now() - timedelta(seconds=1))
    tasks.send_notification_emails()

    assert len(mail.outbox) == 1 and Notification.objects.get().email_at is None


def test_email_that_cannot_be_built_does_not_stop_the_others(
    lamp: str, alice: User, bob: User, smtp: None, monkeypatch: pytest.MonkeyPatch
):
    other = record("device", name="Other")
    for sys_id in (lamp, other):
        api(alice).patch(f"device/{sys_id}", {"assigned_user": bob.pk})
    tasks.notify_of_changes()
    build = emails._message

    def fail(row: Notification) -> Any:
        if row.record_id == lamp:
            raise RuntimeError
        return build(row)

    monkeypatch.setattr(emails, "_message", fail)
    emails.send_due()
    assert [message.subject for message in mail.outbox] == ["Other was assigned to you"]


def test_nothing_is_locked_while_an_email_is_sent(
    lamp: str, alice: User, bob: User, smtp: None, monkeypatch: pytest.MonkeyPatch
):
    depth = len(connection.savepoint_ids)

    def send(message: Any) -> int:
        assert len(connection.savepoint_ids) == depth
        return 1

    monkeypatch.setattr("django.core.mail.EmailMessage.send", send)
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    tasks.notify_of_changes()
    emails.send_due()
    assert Notification.objects.get().email_at is None


def test_restored_database_goes_on_after_its_backup(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "in the backup"})
    query_rows("UPDATE public.sys_change SET transaction = '3' RETURNING 1")
    NotificationPosition.objects.update(database=1, transaction="99999999")

    assert told(bob) == []
    api(alice).patch(f"device/{lamp}", {"name": "afterwards"})
    assert [entry["columns"] for entry in told(bob)] == [["name"]]


def test_second_worker_leaves_the_log_to_the_first(lamp: str, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch):
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "a"})
    with monkeypatch.context() as patch:  # as if another worker had locked the position
        patch.setattr(found_changes, "LOCK", f"{found_changes.LOCK} WHERE FALSE")
        tasks.notify_of_changes()
    assert not Notification.objects.exists()
    assert len(told(bob)) == 1

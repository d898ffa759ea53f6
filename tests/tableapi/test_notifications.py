"""Notifications: who gets them, and the contents of the list and the emails."""

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
from tableapi.models import Follower, Notification, NotificationPosition, Rule, Table
from tableapi.notifications import change_scan, emails
from tests.support.users import make_user
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, record, rule, table

pytestmark = pytest.mark.django_db
PATH = "/rest/v1/notifications"


@pytest.fixture(autouse=True)
def all_changes_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat all changes as settled: a test is one transaction, so its changes never settle."""
    statement = change_scan.CREATE_NOTIFICATIONS.replace(feed_statement.IS_SETTLED, "TRUE")
    monkeypatch.setattr(change_scan, "CREATE_NOTIFICATIONS", statement)
    tasks.notify_of_changes()


@pytest.fixture
def device(all_changes_settled: None) -> Table:
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


def notifications_of(user: User, **params: str) -> list[dict[str, Any]]:
    tasks.notify_of_changes()
    query_string = "&".join(f"{name}={value}" for name, value in params.items())
    return data_of(api(user).get(f"{PATH}?{query_string}"))


def test_assigned_user_is_notified_except_of_own_changes(lamp: str, alice: User, bob: User):
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    api(alice).patch(f"device/{lamp}", {"assigned_user": alice.pk})

    (entry,) = notifications_of(bob)
    assert (entry["reason"], entry["table"], entry["record"]) == ("assigned", "device", lamp)
    assert (entry["display_value"], entry["columns"], entry["read"]) == ("Lamp", ["assigned_user"], False)
    assert notifications_of(alice) == []


def test_assignment_in_a_hidden_column_does_not_notify(lamp: str, alice: User, bob: User):
    rule("read", "device", "assigned_user", roles=["itil"])
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk, "name": "Light"})
    assert notifications_of(bob) == []

    api(bob).put(f"device/{lamp}/followers/me")
    assert notifications_of(bob) == []
    Follower.objects.update(created_at=timezone.now() - timedelta(days=1))
    (entry,) = notifications_of(bob)
    assert (entry["reason"], entry["columns"]) == ("changed", ["name"])
    NotificationChoice.objects.create(user=bob, reasons=["assigned"])
    assert notifications_of(bob) == []


def test_unchanged_assignee_is_not_notified_again(lamp: str, alice: User, bob: User):
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk, "name": "Light"})
    assert len(notifications_of(bob)) == 1
    (entry, _) = data_of(api(alice).get(f"device/{lamp}/history"))[:2]
    assert set(entry["fields"]) == {"name"}


def test_change_beyond_the_logged_part_of_a_value_notifies(lamp: str, alice: User, bob: User):
    api(alice).patch(f"device/{lamp}", {"name": "x" * 2_000})
    api(bob).put(f"device/{lamp}/followers/me")
    api(alice).patch(f"device/{lamp}", {"name": "x" * 2_001})
    assert [entry["columns"] for entry in notifications_of(bob)] == [["name"], ["name"]]


def test_mention_added_later_notifies_once(lamp: str, alice: User, bob: User, carl: User):
    rule("read", "user", "login")
    sys_id = data_of(api(alice).post(f"device/{lamp}/comments", {"text": "See @bob"}))[0]["sys_id"]
    assert [entry["reason"] for entry in notifications_of(bob)] == ["mentioned"] and notifications_of(carl) == []
    for text in ("See @bob and @carl", "See @carl, @bob!", "See nobody"):
        api(alice).patch(f"device/{lamp}/comments/{sys_id}", {"text": text})
    assert len(notifications_of(bob)) == 1 and notifications_of(carl) == [], "the last text mentions no user"
    api(alice).patch(f"device/{lamp}/comments/{sys_id}", {"text": "@carl"})
    assert [entry["reason"] for entry in notifications_of(carl)] == ["mentioned"]


def test_comment_notifies_followers_and_mentioned_users(lamp: str, alice: User, bob: User):
    carla = make_user("carla")
    for user in (alice, bob, carla):
        assert data_of(api(user).put(f"device/{lamp}/followers/me", {})) == [{"following": True}]
    api(carla).delete(f"device/{lamp}/followers/me")
    api(alice).post(f"device/{lamp}/comments", {"text": "Look @carla"})

    assert [entry["reason"] for entry in notifications_of(bob)] == ["commented"]
    assert [entry["comment"]["text"] for entry in notifications_of(carla)] == ["Look @carla"]
    assert notifications_of(alice) == []


def test_follower_is_notified_of_each_change_once(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "Lampe"})
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    notifications_of(bob)

    assert [(entry["reason"], entry["columns"]) for entry in notifications_of(bob)] == [
        ("assigned", ["assigned_user"]), ("changed", ["name"])
    ]  # fmt: skip


def test_unreadable_changes_do_not_notify(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    rule("read", "device", "secret_name", roles=["itil"])
    api(alice).patch(f"device/{lamp}", {"secret_name": "x"})
    assert notifications_of(bob) == []
    api(alice).patch(f"device/{lamp}", {"name": "y"})
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    assert len(notifications_of(bob)) == 2
    hidden_id = notifications_of(bob)[0]["sys_id"]

    Rule.objects.filter(table__name="device", operation="read", column_name="").delete()
    rule("read", "device", condition="name=z")

    assert notifications_of(bob) == []
    responses = [api(bob).send("PATCH", f"{PATH}/{sys_id}", {"read": True}) for sys_id in (hidden_id, "0" * 18)]
    assert responses[0].status_code == 404 and responses[0].content == responses[1].content


def test_hidden_entries_do_not_shorten_pages(device: Table, alice: User, bob: User):
    rule("read", "device", "secret_name", roles=["itil"])
    lamp = record("device", name="Lamp")
    api(bob).put(f"device/{lamp}/followers/me", {})
    for number in range(3):
        api(alice).patch(f"device/{lamp}", {"name": str(number)})
        api(alice).patch(f"device/{lamp}", {"secret_name": str(number)})

    assert len(notifications_of(bob, sysparm_limit="2")) == 2
    assert len(notifications_of(bob)) == 3


def test_read_notifications_can_be_omitted(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    for name in "ab":
        api(alice).patch(f"device/{lamp}", {"name": name})
    newest, oldest = notifications_of(bob)

    marked_notifications = data_of(api(bob).send("PATCH", f"{PATH}/{newest['sys_id']}", {"read": True}))
    assert marked_notifications == [{**newest, "read": True}]
    assert notifications_of(bob, unread="1") == [oldest]
    assert error_of(api(alice).send("PATCH", f"{PATH}/{newest['sys_id']}", {"read": True}))[0] == 404
    assert data_of(api(bob).send("PATCH", PATH, {"read": True})) == [{"read": True}]
    assert notifications_of(bob, unread="1") == [] and len(notifications_of(bob)) == 2


@pytest.mark.parametrize("body", [None, {}, {"read": 1}, {"read": True, "other": 1}])
def test_invalid_body_is_refused(body: Any, bob: User):
    for path in (PATH, f"{PATH}/{'0' * 18}"):
        assert error_of(api(bob).send("PATCH", path, body))[:2] == (400, "invalid_json")


def test_user_can_choose_the_reasons(lamp: str, alice: User, bob: User):
    NotificationChoice.objects.create(user=bob, reasons=["mentioned"])
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "a"})
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})

    assert [entry["reason"] for entry in notifications_of(bob)] == ["mentioned"]


def test_following_requires_a_readable_record(device: Table, bob: User):
    Rule.objects.filter(table__name="device", operation="read").delete()
    rule("read", "device", condition="name=a")
    hidden_id = record("device", name="b")
    for method in ("GET", "PUT", "DELETE"):
        responses = [api(bob).send(method, f"device/{sys_id}/followers/me") for sys_id in (hidden_id, "0" * 18)]
        assert responses[0].status_code == 404 and responses[0].content == responses[1].content


def test_old_notifications_are_deleted(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "a"})
    assert len(notifications_of(bob)) == 1
    change_scan.delete_old_notifications()
    assert len(notifications_of(bob)) == 1
    Notification.objects.update(created_at=timezone.now() - timedelta(days=91))
    change_scan.delete_old_notifications()
    assert notifications_of(bob) == []


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


def test_email_is_not_sent_if_the_record_became_unreadable(lamp: str, alice: User, bob: User, smtp: None):
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    tasks.notify_of_changes()
    Rule.objects.filter(table__name="device", operation="read").delete()
    tasks.send_notification_emails()

    assert mail.outbox == [] and Notification.objects.get().email_at is None


def test_email_is_not_sent_for_read_notifications_or_if_declined(lamp: str, alice: User, bob: User, smtp: None):
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    tasks.notify_of_changes()
    api(bob).send("PATCH", PATH, {"read": True})
    tasks.send_notification_emails()
    NotificationChoice.objects.create(user=bob, email_reasons=["assigned", "changed"])
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    tasks.notify_of_changes()
    tasks.send_notification_emails()

    assert mail.outbox == [] and Notification.objects.count() == 2


def test_failed_email_is_retried(lamp: str, alice: User, bob: User, smtp: None, monkeypatch: pytest.MonkeyPatch):
    api(alice).post(f"device/{lamp}/comments", {"text": "@bob"})
    tasks.notify_of_changes()
    with monkeypatch.context() as patch:
        patch.setattr(mail.EmailMessage, "send", lambda self: (_ for _ in ()).throw(ConnectionRefusedError()))
        tasks.send_notification_emails()
    notification = Notification.objects.get()
    assert notification.email_attempts == 1 and notification.email_at and notification.email_at > timezone.now()
    tasks.send_notification_emails()
    assert mail.outbox == []
    Notification.objects.update(email_at=timezone.now() - timedelta(seconds=1))
    tasks.send_notification_emails()

    assert len(mail.outbox) == 1 and Notification.objects.get().email_at is None


def test_email_that_cannot_be_built_does_not_stop_the_others(
    lamp: str, alice: User, bob: User, smtp: None, monkeypatch: pytest.MonkeyPatch
):
    other_id = record("device", name="Other")
    for sys_id in (lamp, other_id):
        api(alice).patch(f"device/{sys_id}", {"assigned_user": bob.pk})
    tasks.notify_of_changes()
    original_build = emails._build_email

    def fail_for_lamp(notification: Notification) -> Any:
        if notification.record_id == lamp:
            raise RuntimeError
        return original_build(notification)

    monkeypatch.setattr(emails, "_build_email", fail_for_lamp)
    emails.send_due_emails()
    assert [message.subject for message in mail.outbox] == ["Other was assigned to you"]


def test_nothing_is_locked_while_an_email_is_sent(
    lamp: str, alice: User, bob: User, smtp: None, monkeypatch: pytest.MonkeyPatch
):
    savepoint_count = len(connection.savepoint_ids)

    def send(message: Any) -> int:
        assert len(connection.savepoint_ids) == savepoint_count
        return 1

    monkeypatch.setattr("django.core.mail.EmailMessage.send", send)
    api(alice).patch(f"device/{lamp}", {"assigned_user": bob.pk})
    tasks.notify_of_changes()
    emails.send_due_emails()
    assert Notification.objects.get().email_at is None


def test_restored_database_notifies_only_of_new_changes(lamp: str, alice: User, bob: User):
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "in the backup"})
    query_rows("UPDATE public.sys_change SET transaction = '3' RETURNING 1")
    NotificationPosition.objects.update(database=1, transaction="99999999")

    assert notifications_of(bob) == []
    api(alice).patch(f"device/{lamp}", {"name": "afterwards"})
    assert [entry["columns"] for entry in notifications_of(bob)] == [["name"]]


def test_only_one_worker_reads_the_log(lamp: str, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch):
    api(bob).put(f"device/{lamp}/followers/me", {})
    api(alice).patch(f"device/{lamp}", {"name": "a"})
    with monkeypatch.context() as patch:  # as if another worker had locked the position
        patch.setattr(change_scan, "POSITION", f"{change_scan.POSITION} WHERE FALSE")
        tasks.notify_of_changes()
    assert not Notification.objects.exists()
    assert len(notifications_of(bob)) == 1

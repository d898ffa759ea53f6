"""What is sent for a change, and what is skipped."""

import json
from typing import Any

import pytest
from django.db import connection
from standardwebhooks import Webhook as Verifier

from accounts.models import User
from config.env import ROOT
from system.models import Change
from tableapi import tasks
from tableapi.models import Rule, Table, Webhook, WebhookDelivery, WebhookPosition
from tableapi.webhooks import delivery
from tableapi.webhooks.metrics import DeliveryCollector
from tests.tableapi.webhooks.conftest import MakeWebhook, deliver, states
from tests.tableapi.webhooks.receiver import Message, Receiver
from tests.tableapi.world import api, data_of, field, rule, table

pytestmark = pytest.mark.django_db(transaction=True)


def create(caller: User, **values: Any) -> str:
    return str(data_of(api(caller).post("device", values))[0]["sys_id"])


def last_reason() -> str:
    last = WebhookDelivery.objects.first()
    assert last is not None and last.state == "skipped"
    return last.reason


def test_changes_of_a_record_are_sent_in_order(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    webhook = make_webhook()
    lamp = create(alice, name="Lamp", price=5)
    deliver()
    api(alice).patch(f"device/{lamp}", {"price": 6})
    deliver()
    api(alice).delete(f"device/{lamp}")
    deliver()

    created, updated, deleted = receiver.take()
    assert [message.type for message in (created, updated, deleted)] == [
        "record.created", "record.updated", "record.deleted"
    ]  # fmt: skip
    base = {"table": "device", "sys_id": lamp}
    assert created.data == {
        **base, "operation": "create", "record": {"sys_id": lamp, "name": "Lamp", "price": 5}
    }  # fmt: skip
    assert updated.data["record"]["price"] == 6
    assert deleted.data == {**base, "operation": "delete"}
    assert len({created.id, updated.id, deleted.id}) == 3
    assert states() == ["delivered"] * 3
    for message in (created, updated, deleted):
        Verifier(webhook.new_secret).verify(message.content, message.headers)  # type: ignore[attr-defined]
    assert created.headers["content-type"] == "application/json"


def test_only_chosen_operations_and_records_within_the_condition_are_sent(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User
):
    make_webhook(operations=["update", "delete"], condition="price>5^ORname=A)B^NQname=Always")
    lamp = create(alice, name="Lamp", price=5)
    api(alice).patch(f"device/{lamp}", {"name": "Light"})
    deliver()
    assert receiver.take() == [] and "condition" in last_reason()

    api(alice).patch(f"device/{lamp}", {"name": "A)B"})
    deliver()
    assert [message.data["operation"] for message in receiver.take()] == ["update"]
    api(alice).delete(f"device/{lamp}")
    other = create(alice, name="Other", price=1)
    api(alice).delete(f"device/{other}")
    deliver()
    assert [message.data["sys_id"] for message in receiver.take()] == [lamp]
    assert "condition" in last_reason()


def test_unreadable_records_and_columns_are_not_sent(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, device: Table
):
    make_webhook()
    Rule.objects.filter(table=device, operation="read").delete()
    rule("read", "device", condition="name=Open")
    rule("read", "device", "price", roles=["itil"])
    lamp, lock = create(alice, name="Open", price=7), create(alice, name="Secret", price=8)
    deliver()
    (message,) = receiver.take()
    assert message.data["record"] == {"sys_id": lamp, "name": "Open"}
    assert "may not read" in last_reason()

    for sys_id in (lock, lamp):
        api(alice).delete(f"device/{sys_id}")
    deliver()
    assert [(message.type, message.data["sys_id"]) for message in receiver.take()] == [("record.deleted", lamp)]
    assert states() == ["delivered", "skipped", "skipped", "delivered"]


def test_condition_on_a_column_that_became_unreadable_skips(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook(condition="price=7")
    rule("read", "device", "price", roles=["itil"])
    lamp = create(alice, name="Lamp", price=7)
    api(alice).delete(f"device/{lamp}")
    deliver()
    assert receiver.take() == [] and states() == ["skipped", "skipped"]


def test_record_is_sent_as_it_is_now(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook()
    lamp = create(alice, name="Lamp")
    api(alice).patch(f"device/{lamp}", {"name": "Light"})
    deliver()
    assert [message.data["record"]["name"] for message in receiver.take()] == ["Light", "Light"]


def test_cleared_reference_is_sent_only_to_those_who_can_read_it(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, carl: User
):
    make_webhook()
    create(alice, name="Lamp", owner=carl.pk)
    deliver()
    receiver.take()
    User.objects.get(pk=carl.pk).delete()
    deliver()
    assert [message.data["operation"] for message in receiver.take()] == ["update"]

    rule("read", "device", "owner", roles=["itil"])
    dora = User.objects.create_user("dora")
    create(alice, name="Lock", owner=dora.pk)
    deliver()
    receiver.take()
    dora.delete()
    deliver()
    assert receiver.take() == [] and "reference" in last_reason()


def test_records_of_child_tables_are_sent(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook()
    table("laptop", parent="device")
    field("laptop", "cpu")
    api(alice).post("laptop", {"name": "L", "cpu": "x"})
    deliver()
    (message,) = receiver.take()
    assert (message.data["table"], message.data["record"]["name"]) == ("device", "L")


def test_product_tables_can_be_watched(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    webhook = make_webhook(table=Table.objects.get(name="company"), user=alice, columns=["name"])
    data_of(api(alice).post("company", {"name": "Example"}))
    deliver()
    (message,) = receiver.take()
    assert message.data["record"] == {"name": "Example"} and webhook.table.is_system


def test_webhook_pauses_while_its_user_is_inactive(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, bob: User
):
    make_webhook()
    bob.active = False
    bob.save()
    create(alice, name="Lamp")
    deliver()
    assert receiver.take() == [] and states() == ["waiting"]
    bob.active = True
    bob.save()
    deliver()
    assert [message.data["record"]["name"] for message in receiver.take()] == ["Lamp"]


def test_inactive_webhook_collects_nothing(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    webhook = make_webhook(active=False)
    create(alice, name="Lamp")
    deliver()
    webhook.active = True
    webhook.save()
    deliver()
    assert receiver.take() == [] and states() == []


def test_rotated_secrets_both_sign_until_the_overlap_ends(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, settings: Any
):
    webhook = make_webhook()
    old_secret = webhook.new_secret  # type: ignore[attr-defined]
    new_secret = webhook.generate_secret()
    webhook.save()
    create(alice, name="Lamp")
    deliver()
    (message,) = receiver.take()
    for secret in (old_secret, new_secret):
        Verifier(secret).verify(message.content, message.headers)
    assert len(message.headers["webhook-signature"].split(" ")) == 2

    Webhook.objects.update(old_secret_until=webhook.sys_created_at)
    create(alice, name="Lock")
    deliver()
    (message,) = receiver.take()
    Verifier(new_secret).verify(message.content, message.headers)
    assert " " not in message.headers["webhook-signature"]
    tasks.forget_notifications()
    assert Webhook.objects.get().old_secret == ""
    history = json.dumps([str(entry.__dict__) for entry in Webhook.history.all()])
    assert "gAAAA" not in history and new_secret not in history


def test_key_that_was_removed_delays_deliveries(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, settings: Any
):
    make_webhook()
    create(alice, name="Lamp")
    keys = settings.SECRET_ENCRYPTION_KEYS
    settings.SECRET_ENCRYPTION_KEYS = ["A" * 43 + "="]
    deliver()
    row = WebhookDelivery.objects.get()
    assert (row.state, row.reason) == ("waiting", "Internal error: DecryptionFailed.")
    settings.SECRET_ENCRYPTION_KEYS = keys
    deliver(retries=True)
    assert len(receiver.take()) == 1


def test_restored_database_sends_only_new_changes(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, position: WebhookPosition
):
    make_webhook()
    create(alice, name="Lamp")
    deliver()
    receiver.take()
    # As a restore leaves them: all changes have transaction 3, and the position is of another database.
    with connection.cursor() as cursor:
        cursor.execute("UPDATE public.sys_change SET transaction = '3'")
    WebhookPosition.objects.update(database=1)
    create(alice, name="Lock")
    deliver()
    assert [message.data["record"]["name"] for message in receiver.take()] == ["Lock"]


def test_answer_is_logged_up_to_one_kilobyte(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook()

    def answer(message: Message) -> tuple[int, bytes, dict[str, str]]:
        return 201, b"\x00<b>" + "é".encode() * 300_000, {"X-Secret": "of the receiver"}

    receiver.answer = answer
    create(alice, name="Lamp")
    deliver()
    row = WebhookDelivery.objects.get()
    assert (row.state, row.status) == ("delivered", 201)
    assert row.answer.startswith("\ufffd<b>é") and len(row.answer.encode()) <= 1030
    assert "of the receiver" not in str(row.__dict__)


def test_test_message_is_sent_once(receiver: Receiver, make_webhook: MakeWebhook):
    webhook = make_webhook()
    assert delivery.send_test(webhook).state == "delivered"
    (message,) = receiver.take()
    assert (message.type, message.data) == ("webhook.test", {"table": "device", "operation": "test"})
    receiver.answer = lambda message: (500, b"", {})
    delivery.send_test(webhook)
    assert states() == ["delivered", "failed"]
    deliver(retries=True)
    assert len(receiver.take()) == 1


def test_deletion_that_is_no_longer_logged_is_skipped(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, bob: User
):
    make_webhook(operations=["delete"])
    User.objects.filter(pk=bob.pk).update(active=False)
    api(alice).delete(f"device/{create(alice, name='Lamp')}")
    deliver()
    Change.objects.all().delete()
    User.objects.filter(pk=bob.pk).update(active=True)
    deliver()
    assert receiver.take() == [] and last_reason() == "The change is no longer in the change log."


def test_metrics_count_unfinished_deliveries(make_webhook: MakeWebhook):
    webhook = make_webhook()
    for state in ("waiting", "waiting", "parked", "delivered"):
        WebhookDelivery.objects.create(webhook=webhook, operation="update", state=state)
    (gauge,) = DeliveryCollector().collect()
    assert {sample.labels["state"]: sample.value for sample in gauge.samples} == {"waiting": 2, "parked": 1}


def test_code_of_the_guide_verifies_messages(receiver: Receiver, make_webhook: MakeWebhook):
    webhook = make_webhook()
    delivery.send_test(webhook)
    (message,) = receiver.take()
    guide = (ROOT / "docs/how-to/webhooks.md").read_text()
    names: dict[str, Any] = {}
    exec(guide.partition("```python\n")[2].partition("```")[0], names)
    arguments = webhook.new_secret, message.headers  # type: ignore[attr-defined]
    assert names["verify"](*arguments, message.content)
    assert not names["verify"](*arguments, message.content + b" ")

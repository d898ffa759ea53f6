"""Failed deliveries: retries with the same id, order per record, parking and replay, and refused addresses."""

import random
from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.models import User
from tableapi.models import Webhook, WebhookDelivery
from tableapi.webhooks import delivery, payload
from tableapi.webhooks.change_scan import create_deliveries
from tests.tableapi.webhooks.conftest import MakeWebhook, deliver, states
from tests.tableapi.webhooks.receiver import Message, Receiver, accept, refuse
from tests.tableapi.webhooks.test_deliveries import create
from tests.tableapi.world import api

pytestmark = pytest.mark.django_db(transaction=True)


def operations(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.data["sys_id"], message.data["operation"]) for message in messages]


def let_retries_end() -> None:
    WebhookDelivery.objects.filter(attempts__gt=0).update(first_attempt_at=F("first_attempt_at") - timedelta(days=3))


def test_repetition_has_the_same_id_and_a_new_time(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook()
    receiver.answer = refuse
    create(alice, name="Lamp")
    deliver()
    row = WebhookDelivery.objects.get()
    assert (row.state, row.status, row.answer, row.attempts) == ("waiting", 500, "out of order", 1)
    assert row.due_at is not None and timezone.now() < row.due_at < timezone.now() + timedelta(seconds=7)
    deliver()
    receiver.answer = accept
    deliver(retries=True)
    first, second = receiver.take()
    assert (first.id, first.content) == (second.id, second.content)
    assert states() == ["delivered"]


def test_later_changes_of_a_record_wait_but_others_do_not(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook()
    lamp, lock = create(alice, name="Lamp"), create(alice, name="Lock")
    receiver.answer = lambda message: refuse(message) if message.data["sys_id"] == lamp else accept(message)
    for sys_id in (lamp, lock):
        api(alice).patch(f"device/{sys_id}", {"price": 2})
    deliver()
    assert operations(receiver.take()) == [(lamp, "create"), (lock, "create"), (lock, "update")]
    receiver.answer = accept
    deliver()
    assert receiver.take() == []
    deliver(retries=True)
    assert operations(receiver.take()) == [(lamp, "create"), (lamp, "update")]


def test_parked_deliveries_are_replayed_in_order(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook()
    receiver.answer = refuse
    lamp = create(alice, name="Lamp")
    deliver()
    let_retries_end()
    deliver(retries=True)
    assert states() == ["parked"]
    receiver.answer = accept
    receiver.take()

    api(alice).patch(f"device/{lamp}", {"price": 2})
    other = create(alice, name="Other")
    deliver()
    assert operations(receiver.take()) == [(other, "create")]
    assert states() == ["parked", "parked", "delivered"]
    assert delivery.replay(WebhookDelivery.objects.filter(operation="update")) == 2
    api(alice).patch(f"device/{lamp}", {"price": 3})
    deliver()
    assert operations(receiver.take()) == [(lamp, "create"), (lamp, "update"), (lamp, "update")]
    assert delivery.replay(WebhookDelivery.objects.all()) == 0


def test_delays_grow_to_four_hours_and_end_after_three_days(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, monkeypatch: pytest.MonkeyPatch
):
    make_webhook()
    receiver.answer = refuse
    create(alice, name="Lamp")
    delays: list[float] = []
    deliver()
    while states() == ["waiting"]:
        row = WebhookDelivery.objects.get()
        assert row.due_at is not None and row.first_attempt_at is not None
        delays.append((row.due_at - timezone.now()).total_seconds())
        # Let the time pass.
        WebhookDelivery.objects.update(
            due_at=timezone.now(), first_attempt_at=row.first_attempt_at - timedelta(seconds=delays[-1])
        )
        deliver()
    assert all(0.7 * base < delay < 1.21 * base for base, delay in zip(delivery.RETRY_DELAYS_S, delays, strict=False))
    assert 2.7 * 86_400 < sum(delays) <= 3 * 86_400 + 60
    assert len(receiver.take()) == len(delays) + 1


@pytest.mark.parametrize("is_sent", [True, False])
def test_killed_worker_leaves_a_delivery_that_is_sent_again(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, monkeypatch: pytest.MonkeyPatch, is_sent: bool
):
    make_webhook()
    lamp = create(alice, name="Lamp")
    api(alice).patch(f"device/{lamp}", {"price": 2})
    with monkeypatch.context() as killing:

        def end_process(*_: Any) -> None:
            raise KeyboardInterrupt

        killing.setattr(delivery if is_sent else payload, "_record_outcome" if is_sent else "build", end_process)
        with pytest.raises(KeyboardInterrupt):
            deliver()
    first = receiver.take()
    assert len(first) == is_sent
    deliver()
    assert receiver.take() == [], "the delivery is still leased, and the next one waits for it"
    deliver(retries=True)
    again = receiver.take()
    assert operations(again) == [(lamp, "create"), (lamp, "update")]
    assert [message.id for message in first] in ([], [again[0].id])


def test_overtaken_worker_does_not_change_the_outcome(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    webhook = make_webhook()
    create(alice, name="Lamp")
    receiver.answer = refuse
    deliver()
    WebhookDelivery.objects.update(due_at=timezone.now())
    slow = delivery._claim(webhook.pk)
    assert slow is not None
    receiver.answer = accept
    deliver(retries=True)
    receiver.answer = refuse
    delivery.attempt(slow)
    assert states() == ["delivered"]


def test_silent_receiver_does_not_delay_other_webhooks(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook(name="Nowhere", url="https://receiver.example.com:1/")
    make_webhook()
    for number in range(3):
        create(alice, name=f"Lamp {number}")
    deliver()
    assert len(receiver.take()) == 3
    failed = WebhookDelivery.objects.filter(webhook__name="Nowhere", attempts__gt=0)
    assert [row.reason for row in failed] == ["The connection to receiver.example.com failed (Connection refused)."]


def test_silent_receivers_do_not_take_up_all_runs(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    silent = [make_webhook(name=f"Nowhere {n}", url="https://receiver.example.com:1/") for n in range(2)]
    make_webhook()
    for number in range(4):
        create(alice, name=f"Lamp {number}")
    create_deliveries()
    # Each run has time for one call. The silent webhooks rest after one each.
    for _ in range(6):
        claims = iter([False])
        delivery.send_due(lambda claims=claims: next(claims, True))  # type: ignore[misc]
    assert len(receiver.take()) == 4
    assert WebhookDelivery.objects.filter(attempts__gt=0).exclude(state="delivered").count() == 2

    Webhook.objects.filter(pk=silent[0].pk).update(url=receiver.url)
    deliver()
    assert not receiver.take()
    delivery.send_test(Webhook.objects.get(pk=silent[0].pk))  # ends the rest
    deliver(retries=False)
    assert len(receiver.take()) == 4  # the test, and those that were not tried


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": lambda message: (302, b"", {"Location": "https://elsewhere.example.com/"})}, "redirect (302)"),
        ({"policy": {"allow_http": False}}, "loopback addresses are not allowed"),
        ({"address": "10.0.0.8"}, "private addresses are not allowed"),
        ({"address": "169.254.169.254"}, "metadata addresses are not allowed"),
        ({"policy": {"ca_bundle": None}}, "SVC_CA_BUNDLE"),
    ],
)
def test_redirects_and_forbidden_addresses_are_not_called(
    receiver: Receiver, make_webhook: MakeWebhook, alice: User, settings: Any, change: Any, reason: str
):
    make_webhook()
    receiver.answer = change.get("answer", accept)
    settings.WEBHOOK_POLICY = {**settings.WEBHOOK_POLICY, **change.get("policy", {})}
    if "address" in change:
        settings.WEBHOOK_POLICY["resolve"] = lambda host: [change["address"]]
    create(alice, name="Lamp")
    deliver()
    row = WebhookDelivery.objects.get()
    assert row.state == "waiting" and reason in row.reason
    assert len(receiver.take()) == ("answer" in change)


def test_random_failures_keep_the_order_of_each_record(receiver: Receiver, make_webhook: MakeWebhook, alice: User):
    make_webhook()
    rng = random.Random(3)
    accepted: list[Message] = []

    def answer(message: Message) -> tuple[int, bytes, dict[str, str]]:
        if rng.random() < 0.4:
            return refuse(message)
        accepted.append(message)
        return accept(message) if rng.random() < 0.8 else refuse(message)

    receiver.answer = answer
    ids = [create(alice, name=f"Lamp {number}", price=0) for number in range(3)]
    for price in range(1, 6):
        for sys_id in ids:
            api(alice).patch(f"device/{sys_id}", {"price": price})
    while set(states()) - {"delivered"} or not states():
        deliver(retries=True)
    rows = {str(row): row for row in WebhookDelivery.objects.all()}
    by_record: dict[str, list[int]] = defaultdict(list)
    for message in accepted:
        by_record[message.data["sys_id"]].append(rows[message.id].pk)
    assert {message.id for message in accepted} == rows.keys()
    assert all(order == sorted(order) for order in by_record.values()) and len(by_record) == 3

"""A receiver, a table with a record, and a webhook of Bob, who may read the table."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from tableapi import tasks
from tableapi.models import Table, Webhook, WebhookDelivery, WebhookPosition
from tests.system.outbound.hostile import FakeResolver
from tests.tableapi.webhooks.receiver import Receiver, running_receiver
from tests.tableapi.world import field, open_table, table

MakeWebhook = Callable[..., Webhook]


@pytest.fixture(scope="session")
def one_receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with running_receiver(tmp_path_factory.mktemp("receiver")) as receiver:
        yield receiver


@pytest.fixture
def receiver(one_receiver: Receiver, settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_POLICY = {
        "allow_http": True,  # allows loopback
        "allow_private": False,
        "ca_bundle": one_receiver.ca_bundle,
        "resolve": FakeResolver(["127.0.0.1"]),
    }
    answer = one_receiver.answer
    one_receiver.take()
    yield one_receiver
    one_receiver.answer = answer


@pytest.fixture
def position(transactional_db: Any) -> WebhookPosition:
    """The row of the migration, or a new one, because tests that commit end with empty tables."""
    values = {"database": 0, "transaction": "3", "change_id": 0, "at": timezone.now()}
    return WebhookPosition.objects.update_or_create(id=1, defaults=values)[0]


@pytest.fixture
def device(position: WebhookPosition) -> Table:
    device = table("device")
    field("device", "name")
    field("device", "price", "integer")
    field("device", "owner", target="user")
    open_table("device")
    deliver()  # the position is now of this database
    return device


@pytest.fixture
def make_webhook(receiver: Receiver, device: Table, bob: User) -> MakeWebhook:
    def make(**values: Any) -> Webhook:
        defaults = {
            "name": "Devices",
            "url": receiver.url,
            "table": device,
            "user": bob,
            "operations": Webhook.Operation.values,
            "columns": ["sys_id", "name", "price"],
        }
        webhook = Webhook(**(defaults | values))
        webhook.new_secret = webhook.generate_secret()  # type: ignore[attr-defined]
        webhook.save()
        return webhook

    return make


def deliver(*, retries: bool = False) -> None:
    """Run the task of the worker; `retries` makes all waiting deliveries due."""
    if retries:
        Webhook.objects.update(silent_until=None)
        WebhookDelivery.objects.filter(state="waiting").update(due_at=timezone.now())
    tasks.deliver_webhooks()


def states() -> list[str]:
    return [delivery.state for delivery in WebhookDelivery.objects.order_by("id")]

"""Changes of hidden records and values change nothing that a webhook of the caller sends."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from django.utils import timezone

from accounts.models import User
from tableapi import models
from tableapi.catalogue.definitions import Table
from tableapi.changes.feed_statement import IS_SETTLED
from tableapi.models import Webhook, WebhookDelivery, WebhookPosition
from tableapi.webhooks import change_scan, delivery
from tableapi.webhooks.delivery import Outcome
from tableapi.write import designed_records, references
from tests.support.nightly import scaled_count
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import ProgramGenerator
from tests.tableapi.noninterference.runner import insert_world, stored_tables
from tests.tableapi.noninterference.test_change_log import change_hidden_records, log_creations
from tests.tableapi.oracle import World

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 30, 2_000
DELIVERIES = change_scan.CREATE_DELIVERIES.replace(IS_SETTLED, "TRUE")  # the test is one transaction


def create_webhook(generator: ProgramGenerator, table: Table) -> None:
    """Columns can be hidden, as if they had become so after the webhook was saved."""
    random, pair = generator.random, generator.pair
    for each in sorted(pair.catalogue.tables.values(), key=lambda each: len(each.lineage)):
        parent = pair.catalogue.tables[each.parent].id if each.parent else None
        models.Table.objects.bulk_create([models.Table(sys_id=each.id, name=each.name, label="", parent_id=parent)])
    WebhookPosition.objects.update_or_create(
        id=1, defaults={"database": 0, "transaction": "0", "change_id": 0, "at": timezone.now()}
    )
    webhook = Webhook(
        name="pair",
        url="https://receiver.example.com/",
        table_id=table.id,
        user_id=pair.caller.id,
        operations=Webhook.Operation.values,
        condition=generator.random_query(table) if random.random() < 0.6 else "",
        columns=random.sample(sorted(table.columns), random.randint(1, len(table.columns))),
    )
    webhook.generate_secret()
    webhook.save()


def delete_visible_records(random: Random, pair: Pair, world: World) -> None:
    """Delete the same records in both databases, and clear the references to them."""
    for name, sys_id in sorted(pair.visible_values):
        if random.random() < 0.3 and sys_id in world.rows[name]:
            table = world.catalogue.tables[name]
            references.clear_references(world.catalogue, table, sys_id)
            designed_records.delete(table, sys_id)


def sent_bodies(seed: int, pair: Pair, world: World) -> list[Any]:
    bodies: list[Any] = []

    def send(webhook: Webhook, message_id: str, body: bytes) -> Outcome:
        bodies.append({**json.loads(body), "timestamp": None})
        return Outcome(WebhookDelivery.State.DELIVERED)

    with rollback_afterwards(), active_catalogue(pair.catalogue):
        random = Random(seed)
        create_webhook(ProgramGenerator(random, pair), random.choice(list(pair.catalogue.tables.values())))
        insert_world(world)
        log_creations(world)
        change_hidden_records(Random(random.random()), pair, world)
        delete_visible_records(random, pair, world)
        with (
            patch.object(change_scan, "CREATE_DELIVERIES", DELIVERIES),
            patch.object(change_scan, "RESET_POSITION", "SELECT"),
            patch.object(delivery, "_send", send),
            patch.object(User, "role_names", pair.caller.role_names),
        ):
            change_scan.create_deliveries()
            assert not delivery.send_due(lambda: False)
        assert not WebhookDelivery.objects.exclude(state__in=["delivered", "skipped"]).exists()
    return bodies


def check_pair(seed: int) -> int:
    """Compare what is sent for both databases, and return the number of bodies."""
    pair = pairs.make_pair(Random(seed), may_write=True)
    with stored_tables(pair):
        bodies, other_bodies = (sent_bodies(seed, pair, world) for world in (pair.first, pair.second))
    assert bodies == other_bodies, f"seed {seed}"
    return len(bodies)


def test_hidden_data_changes_nothing_that_is_sent() -> None:
    assert sum(map(check_pair, range(PAIR_COUNT))) > PAIR_COUNT


@pytest.mark.nightly
def test_hidden_data_changes_nothing_that_is_sent_in_many_pairs() -> None:
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        check_pair(seed)

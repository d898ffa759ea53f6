"""Comments, attachments, followers and notifications of hidden records change no response."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from tableapi.attached.records import root_key
from tableapi.http import entry_views as views
from tableapi.models import Attachment, Comment, Follower, Notification
from tests.support.nightly import scaled_count
from tests.tableapi.designs import query_rows
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.runner import insert_world, send_to_view, stored_tables
from tests.tableapi.noninterference.test_change_log import log_creations
from tests.tableapi.oracle import World
from tests.tableapi.oracle.column_types import NOW

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 25, 2_000


def attach_to_all_records(pair: Pair, world: World) -> None:
    """Attach data to all records. Its ids derive from those of the records, so hidden records do not affect them."""
    log_creations(world)
    change_ids = dict(query_rows("SELECT record_id, id FROM public.sys_change"))
    for name, rows in world.rows.items():
        table_key = root_key(world.catalogue, world.catalogue.tables[name])
        for sys_id in rows:
            target_columns: dict[str, Any] = {"table_key": table_key, "record_id": sys_id}
            timestamps = {"sys_created_at": NOW, "sys_updated_at": NOW}
            comment = Comment(sys_id=f"c{sys_id}"[:32], text=sys_id, **target_columns, **timestamps)
            Comment.objects.bulk_create([comment])
            attachment = Attachment(sys_id=f"a{sys_id}"[:32], file_name=sys_id, size=0, **target_columns, **timestamps)
            Attachment.objects.bulk_create([attachment])
            Follower.objects.create(user_id=pair.caller.id, **target_columns)
            for reason, comment_id in (("commented", comment.pk), ("changed", None)):
                Notification.objects.create(
                    id=f"{reason[1]}{sys_id}"[:32],
                    user_id=pair.caller.id,
                    change_id=change_ids[sys_id] + (comment_id is not None) * 1_000_000,
                    reason=reason,
                    comment_id=comment_id,
                    created_at=timezone.now(),
                    **target_columns,
                )


def collect_responses(pair: Pair, world: World, page_size: int) -> list[Any]:
    with rollback_afterwards(), active_catalogue(pair.catalogue):
        insert_world(world)
        attach_to_all_records(pair, world)
        ids = [(name, sys_id) for name in world.rows for sys_id in {*pair.first.rows[name], *pair.second.rows[name]}]
        responses = []
        for name, sys_id in sorted(ids):
            address = {"table": name, "sys_id": sys_id}
            for view, method, body in (
                (views.CommentsView, "GET", None),
                (views.CommentsView, "POST", {"text": "a"}),
                (views.AttachmentsView, "GET", None),
                (views.FollowerView, "GET", None),
                (views.FollowerView, "DELETE", None),
            ):
                response = send_to_view(view, pair.caller, "", method, body, **address)
                responses.append((name, sys_id, response.status_code, _without_times(response.content)))
        response = send_to_view(views.NotificationsView, pair.caller, f"sysparm_limit={page_size}")
        return [*responses, (response.status_code, _without_times(response.content), "Link" in response)]


def _without_times(content: bytes) -> Any:
    body = json.loads(content)
    for entry in body.get("data", ()):
        entry.pop("sys_created_at", None), entry.pop("sys_updated_at", None)
        entry.get("comment", {}).pop("sys_updated_at", None)
    return body


def check_pair(seed: int) -> int:
    """Compare both databases, and return the number of visible notifications."""
    random = Random(seed)
    pair = pairs.make_pair(random, may_write=True)
    page_size = random.choice([1, 2, 20])
    with stored_tables(pair):
        if not User.objects.filter(pk=pair.caller.id).exists():
            User.objects.bulk_create([User(sys_id=pair.caller.id, login=f"u{pair.caller.id}")])
        responses = [collect_responses(pair, world, page_size) for world in (pair.first, pair.second)]
    for first, second in zip(*responses, strict=True):
        assert first == second, f"seed {seed}"
    return len(responses[0][-1][1]["data"])


def test_data_attached_to_hidden_records_changes_no_response() -> None:
    assert sum(map(check_pair, range(PAIR_COUNT))) > PAIR_COUNT // 2


@pytest.mark.nightly
def test_data_attached_to_hidden_records_changes_no_response_in_many_pairs() -> None:
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        check_pair(seed)

"""Kills of workers, Valkey and the receiver while records change: each change arrives, in the order of its record."""

import json
import random
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from bench.soak.kills import KillInjector, kill_worker
from bench.soak.tally import Tally
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, eventually, manage
from tests.support.nightly import choose_seed, scaled_count
from tests.tableapi.webhooks.receiver import Message, Receiver, accept, refuse, running_receiver

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

CHANGE_COUNT, KILL_COUNT = 10_000, 50
CHANGES_PER_RECORD = 20
WRITER_COUNT = 3
# About as long as the kills take.
PAUSE_S = 0.05
REFUSAL_RATE = 0.02
MAX_OUTAGE_S = 3.0
# Killed deliveries are repeated after a minute, refused ones after up to minutes.
COMPLETION_TIMEOUT_S = 1_200.0
CREATE_WEBHOOK = """
from accounts.models import User
from tableapi.models import Table, Webhook
webhook = Webhook(name="soak", url={url!r}, table=Table.objects.get(name="task"),
    user=User.objects.get(login="admin"), operations=Webhook.Operation.values, columns=["sys_id", "sys_version"])
webhook.generate_secret()
webhook.save()
"""
CHANGES = """
    SELECT c.id, c.record_id FROM sys_change c JOIN sys_db_table t ON t.sys_id = c.table_key AND t.name = 'task'
    WHERE c.record_id = ANY (%s) ORDER BY c.transaction, c.id
"""
DELIVERIES = """
    SELECT id, change_id, record_id, state, 'msg_' || replace(message_id::text, '-', '') FROM sys_webhook_delivery
    WHERE record_id = ANY (%s) ORDER BY id
"""


@dataclass
class Setting:
    servers: SharedServers
    stack: Stack
    receiver: Receiver


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with running_receiver(tmp_path) as receiver:
        servers = SharedServers(tmp_path / "servers").start_postgres("-c", "synchronous_commit=on").start_valkey()
        stack = Stack(
            tmp_path / "host", **servers.environ, SVC_CA_BUNDLE=str(receiver.ca_bundle),
            DJANGO_SETTINGS_MODULE="tests.config.webhook_settings",
        )  # fmt: skip
        try:
            stack.start().wait_until_up()
            yield Setting(servers, stack, receiver)
        finally:
            if stack.process.poll() is None:
                stack.stop()
            stack.end()
            servers.end()


class Faults:
    """Kills workers, some of them during a call, and sometimes Valkey or the receiver, which then accepts nothing."""

    def __init__(self, setting: Setting, rng: random.Random) -> None:
        self.setting, self.rng, self.is_receiver_down = setting, rng, False
        self.accepted: list[Message] = []
        self.kill_during_call: KillInjector | None = None
        setting.receiver.answer = self.answer

    def answer(self, message: Message) -> tuple[int, bytes, dict[str, str]]:
        if self.is_receiver_down:
            raise ConnectionError  # ends the connection without a response
        if self.rng.random() < REFUSAL_RATE:
            return refuse(message)
        self.accepted.append(message)
        injector, self.kill_during_call = self.kill_during_call, None
        if injector is not None:  # the worker does not learn that the message was accepted
            for process in injector.working_processes(" worker "):
                process.kill()
        return accept(message)

    def kill(self, injector: KillInjector) -> str:
        roll = self.rng.random()
        outage_s = self.rng.uniform(0, MAX_OUTAGE_S)
        if roll < 0.2:
            self.kill_during_call = injector
            return "the workers during a call"
        if roll < 0.8:
            return kill_worker(injector)
        if roll < 0.9:
            self.setting.servers.stop("valkey", signal.SIGKILL)
            time.sleep(outage_s)
            self.setting.servers.start_valkey()
            return "Valkey"
        self.is_receiver_down = True
        time.sleep(outage_s)
        self.is_receiver_down = False
        return "the receiver"


def write_changes(stack: Stack, key: str, record_count: int) -> list[str]:
    """Create records and change them, interleaved."""
    ids = []
    for number in range(record_count):
        response = stack.call("POST", "/rest/v1/table/task", {"short_description": f"soak {number}"}, key=key)
        assert response.status == 201, response.body
        ids.append(response.body["data"][0]["sys_id"])
    for step in range(1, CHANGES_PER_RECORD):
        for sys_id in ids:
            path = f"/rest/v1/table/task/{sys_id}"
            assert stack.call("PATCH", path, {"short_description": f"step {step}"}, key=key).status == 200
            time.sleep(PAUSE_S)
    return ids


def test_webhooks_lose_no_change_and_keep_the_order_of_each_record(setting: Setting):
    rng = random.Random(choose_seed())
    change_count, kill_count = scaled_count(CHANGE_COUNT), scaled_count(KILL_COUNT)
    stack, tally = setting.stack, Tally()
    key = manage("key", "admin", "soak", env=stack.env).stdout.strip()
    completed = manage("shell", "-c", CREATE_WEBHOOK.format(url=setting.receiver.url), env=stack.env)
    assert completed.returncode == 0, completed.stderr
    faults = Faults(setting, rng)
    injector = KillInjector(setting.servers, stack, tally, faults.kill, rng.randrange(10**6))
    started_at = time.monotonic()
    with ThreadPoolExecutor(WRITER_COUNT + 1) as pool:
        kills = pool.submit(injector.run, 3.0, Event(), kill_count)
        record_count = change_count // CHANGES_PER_RECORD // WRITER_COUNT + 1
        writers = [pool.submit(write_changes, stack, key, record_count) for _ in range(WRITER_COUNT)]
        ids = [sys_id for writer in writers for sys_id in writer.result()]
        written_s = time.monotonic() - started_at
        kills.result()
    with psycopg.connect(setting.servers.postgres.url, autocommit=True) as connection:
        changes = connection.execute(CHANGES, [ids]).fetchall()
        assert len(changes) == len(ids) * CHANGES_PER_RECORD >= change_count

        def unfinished() -> int:
            rows = connection.execute(DELIVERIES, [ids]).fetchall()
            return len(changes) - sum(row[3] == "delivered" for row in rows)

        eventually(lambda: unfinished() == 0, COMPLETION_TIMEOUT_S)
        deliveries = connection.execute(DELIVERIES, [ids]).fetchall()
        versions: dict[str, int] = dict(
            connection.execute("SELECT sys_id, sys_version FROM records.task WHERE sys_id = ANY (%s)", [ids]).fetchall()
        )
    repeated = len(faults.accepted) - len(deliveries)
    print(f"{len(changes)} changes in {written_s:.0f} s, {len(injector.results)} kills, {repeated} repetitions,")
    print(f"all delivered after {time.monotonic() - started_at:.0f} s")
    assert tally.errors == [] and len(injector.results) == kill_count and repeated > 0
    assert by_record(changes) == by_record([(row[1], row[2]) for row in deliveries])
    check_messages(faults.accepted, {row[4]: row[0] for row in deliveries}, versions)


def by_record(rows: list[tuple[Any, ...]]) -> dict[str, list[int]]:
    changes = defaultdict(list)
    for change_id, record_id in rows:
        changes[record_id].append(change_id)
    return changes


def check_messages(messages: list[Message], delivery_ids: dict[str, int], versions: dict[str, int]) -> None:
    assert {message.id for message in messages} == delivery_ids.keys()
    last: dict[str, tuple[int, int]] = {}
    for message in messages:
        record = json.loads(message.content)["data"]["record"]
        place = delivery_ids[message.id], record["sys_version"]
        # A repetition has the same id, and comes before the next change of the record.
        previous = last.get(record["sys_id"], (0, 0))
        assert place[0] >= previous[0] and place[1] >= previous[1]
        last[record["sys_id"]] = place
    assert {sys_id: version for sys_id, (_, version) in last.items()} == versions

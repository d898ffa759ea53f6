"""Outages of broker, database, worker and web server: every acknowledged load is stored once."""

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
import redis
from celery import Celery

from tests.collections_app.ingest.stack.product import CONNECTION_ERRORS, Product
from tests.collections_app.ingest.world import sample_text
from tests.config.stack import eventually

pytestmark = pytest.mark.stack

QUEUE_NAME = "servicebase"
WAITING_QUERY = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'servicebase web' AND wait_event_type = 'Lock'"
# Unknown tasks, and known ones with invalid arguments.
FORGED_MESSAGES: tuple[tuple[str, list[Any]], ...] = (
    ("os.system", ["true"]),
    ("collections_app.tasks.work", [999_999]),
    ("collections_app.tasks.work", ["'; DROP TABLE document", {"a": None}]),
    ("collections_app.tasks.purge", [[]]),
    ("collections_app.ingest.worker.process_version", [1, "x"]),
    ("collections_app.tasks.sweep", []),
)


def connect_to_broker(product: Product) -> redis.Redis:
    return redis.Redis.from_url(product.servers.valkey.url)


@pytest.fixture(scope="module")
def expected_rows(product: Product) -> list[Any]:
    assert product.load("expected_rows", sample_text(40), wait=True).status == 201
    return product.fetch_chunks("expected_rows")


def test_lost_broker_messages_delay_documents_only_briefly(product: Product, expected_rows: list[Any]):  # C36
    for number in range(10):
        assert product.load(f"flushed {number}", sample_text(40)).status == 202
        connect_to_broker(product).flushall()
    product.wait_until_done()
    assert all(product.fetch_chunks(f"flushed {number}") == expected_rows for number in range(10))


def test_loads_are_accepted_without_a_broker_and_processed_later(product: Product, expected_rows: list[Any]):  # C36
    product.servers.stop("valkey", signal.SIGKILL)
    started_at = time.monotonic()
    assert product.load("no broker, now", sample_text(40), wait=True).status == 201
    assert product.load("no broker, later", sample_text(40)).status == 202
    assert time.monotonic() - started_at < 20
    product.servers.start_valkey()
    product.wait_until_done()
    assert product.fetch_chunks("no broker, later") == product.fetch_chunks("no broker, now") == expected_rows


def test_forged_messages_are_harmless(product: Product, expected_rows: list[Any]):  # C37
    url = product.servers.valkey.url.replace("unix://", "redis+socket://")
    with Celery("forger", broker=url, set_as_current=False) as forging_app:
        forging_app.conf.task_default_queue = QUEUE_NAME
        for number, (task, arguments) in enumerate(FORGED_MESSAGES):
            forging_app.send_task(task, args=arguments, retry=False)
            assert product.load(f"forged {number}", sample_text(40)).status == 202
        forging_app.send_task("collections_app.tasks.work", args=[object], serializer="pickle", retry=False)
    # An invalid message ends the worker, and its supervisor restarts it.
    connect_to_broker(product).lpush(QUEUE_NAME, b"no json")
    assert product.load("forged", sample_text(40)).status == 202
    product.wait_until_done()
    for name in ("forged", *[f"forged {number}" for number in range(len(FORGED_MESSAGES))]):
        assert product.fetch_chunks(name) == expected_rows


def test_repeatedly_killed_workers_lose_and_duplicate_nothing(product: Product, expected_rows: list[Any]):  # C33
    for number in range(20):
        assert product.load(f"killed {number}", sample_text(40)).status == 202
        if number % 5 == 4:
            with suppress(AssertionError):  # the server may still be starting
                product.kill_workers()
            product.expire_leases()
    product.wait_until_done()
    assert all(product.fetch_chunks(f"killed {number}") == expected_rows for number in range(20))


def test_web_process_killed_during_a_load_loses_nothing(product: Product, expected_rows: list[Any]):  # C35
    statuses = []

    def load_and_record_status() -> None:
        try:
            statuses.append(product.load("web killed", sample_text(40), wait=True).status)
        except CONNECTION_ERRORS:
            statuses.append(0)

    with product.connect_to_database() as blocker, blocker.transaction():
        blocker.execute("LOCK TABLE chunk IN SHARE MODE")
        load_thread = threading.Thread(target=load_and_record_status)
        load_thread.start()
        eventually(lambda: product.fetch_rows(WAITING_QUERY))
        for child in product.web.child("web_server").children(recursive=True):
            os.kill(child.pid, signal.SIGKILL)
    load_thread.join(60)
    assert statuses == [0]
    eventually(lambda: product.fetch_rows("SELECT 1 FROM document WHERE doc_id = 'web killed'"))
    product.expire_leases()
    product.wait_until_done()
    assert product.fetch_chunks("web killed") == expected_rows
    product.web.wait_until_up()


def load_until(product: Product, is_over: threading.Event, id_prefix: str, acknowledged_ids: list[str]) -> None:
    number = 0
    while not is_over.is_set():
        number += 1
        doc_id = f"{id_prefix} {number}"
        try:
            response = product.load(doc_id, sample_text(40), wait=number % 2 == 0)
        except CONNECTION_ERRORS:
            continue
        if response.status in (201, 202):
            acknowledged_ids.append(doc_id)
        else:
            assert response.status == 503


@pytest.mark.parametrize("stop_count", [1, pytest.param(5, marks=pytest.mark.nightly)])
def test_immediate_database_stop_loses_no_acknowledged_load(
    product: Product, expected_rows: list[Any], stop_count: int
):  # C38
    acknowledged_ids: list[str] = []
    is_over = threading.Event()
    load_threads = [
        threading.Thread(target=load_until, args=(product, is_over, f"stopped {stop_count} {number}", acknowledged_ids))
        for number in range(2)
    ]
    for thread in load_threads:
        thread.start()
    for _ in range(stop_count):
        count_before = len(acknowledged_ids)
        eventually(lambda: len(acknowledged_ids) >= count_before + 6)  # noqa: B023
        product.servers.stop("postgres", signal.SIGQUIT)  # immediate shutdown
        product.servers.start_postgres("-c", "synchronous_commit=on")
    count_before = len(acknowledged_ids)
    eventually(lambda: len(acknowledged_ids) >= count_before + 4)
    is_over.set()
    for thread in load_threads:
        thread.join(60)
    product.expire_leases()
    product.wait_until_done()
    assert all(product.fetch_chunks(doc_id) == expected_rows for doc_id in acknowledged_ids)
    assert product.fetch_rows("SELECT doc_id, count(*) FROM document GROUP BY 1 HAVING count(*) > 1") == []

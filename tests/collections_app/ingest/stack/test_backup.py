"""A backup during loads is consistent: bytes, texts, chunks, and the queue."""

import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.collections_app.ingest.stack.product import Product
from tests.collections_app.ingest.stack.test_outages import load_until
from tests.config.shared_servers import SharedServers
from tests.config.stack import environment, eventually, free_port, manage

pytestmark = pytest.mark.stack

INCONSISTENCY_QUERY = """
SELECT v.id, v.state FROM document_version v WHERE
    (SELECT coalesce(sum(length(data)), 0) FROM document_piece p WHERE p.version_id = v.id) <> v.size
    OR (SELECT encode(sha256(string_agg(data, ''::bytea ORDER BY number)), 'hex')
        FROM document_piece p WHERE p.version_id = v.id) <> v.sha256
    OR (v.state = 'ready' AND (SELECT count(*) FROM chunk c JOIN chunk_words ON chunk_words.chunk_id = c.id
        JOIN chunk_vector ON chunk_vector.chunk_id = c.id WHERE c.version_id = v.id) <> v.chunks_count)
    OR (v.state = 'ready') <> v.is_searched
"""
COUNTS_QUERY = """
SELECT (SELECT sum(chunks_count) FROM document_version WHERE is_searched)
    = (SELECT sum(chunks) FROM term_count WHERE term = 0)
"""


@pytest.mark.nightly
def test_backup_during_loads_is_consistent(product: Product, tmp_path: Path):  # C53
    acknowledged_ids: list[str] = []
    is_over = threading.Event()
    load_thread = threading.Thread(target=load_until, args=(product, is_over, "backed up", acknowledged_ids))
    load_thread.start()
    try:
        eventually(lambda: len(acknowledged_ids) >= 4)
        ids_before_backup = list(acknowledged_ids)
        backup = manage("backup", str(tmp_path / "saved"), env=product.web.env)
    finally:
        is_over.set()
        load_thread.join(60)
    assert backup.returncode == 0, backup.stderr
    restore = manage("restore", str(tmp_path / "saved"), env=environment(tmp_path / "fresh", free_port()))
    assert restore.returncode == 0, restore.stderr

    restored_servers = SharedServers(tmp_path / "fresh").start_postgres()
    try:
        with psycopg.connect(restored_servers.postgres.url) as connection:
            inconsistent_rows: list[Any] = connection.execute(INCONSISTENCY_QUERY).fetchall()
            restored_ids = {doc_id for (doc_id,) in connection.execute("SELECT doc_id FROM document").fetchall()}
            are_counts_correct = connection.execute(COUNTS_QUERY).fetchone()
    finally:
        restored_servers.end()
    assert (inconsistent_rows, are_counts_correct) == ([], (True,))
    assert set(ids_before_backup) <= restored_ids

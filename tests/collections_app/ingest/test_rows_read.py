"""Searches for passages without a vector read each row only a few times, even in long documents."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from collections_app.embed import local_model
from collections_app.ingest import steps
from collections_app.models import ChunkVector, Collection, Version
from collections_app.queue import leases
from collections_app.vectors import chunk_vectors
from tests.collections_app import vector_rows
from tests.collections_app.builders import make_collection
from tests.collections_app.ingest.world import expire_leases, process_queue, sample_text, store_document

pytestmark = pytest.mark.django_db

BATCH_SIZE = 16
# As in a new database. If autovacuum analyzed the tables while they were empty, the plans would differ.
FORGET_STATISTICS_QUERY = """
    SELECT pg_clear_relation_stats('public', relname), (
        SELECT count(pg_clear_attribute_stats('public', relname, attname, false))
        FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
    )
    FROM pg_class WHERE oid IN ('chunk'::regclass, 'chunk_vector'::regclass, 'document_version'::regclass)
"""
LONG_TEXT = sample_text(500).encode()  # over 150 chunks


@pytest.fixture
def collection(db: Any, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A collection that changes to another space, so two spaces are filled."""
    monkeypatch.setattr(chunk_vectors, "CHUNK_BATCH_SIZE", BATCH_SIZE)
    with connection.cursor() as cursor:
        cursor.execute(FORGET_STATISTICS_QUERY)
    for name in ("letters-a", "letters-b"):
        monkeypatch.setitem(local_model.LOCAL_MODELS, name, vector_rows.make_local_model(name))
    monkeypatch.setattr(local_model, "_encoders", {})
    spaces = [vector_rows.make_space(name) for name in ("letters-a", "letters-b")]
    return make_collection("manuals", space=spaces[0], next_space=spaces[1])


@contextmanager
def count_rows_per_search() -> Iterator[list[int]]:
    """A list that collects how many rows each search for missing vectors reads."""
    row_counts: list[int] = []

    def record_row_count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql == chunk_vectors.MISSING_SQL:
            ((plan,),) = execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params, many, context).fetchall()
            row_counts.append(count_rows_of_plan(plan[0]["Plan"]))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record_row_count):
        yield row_counts


def count_rows_of_plan(node: dict[str, Any]) -> int:
    rows_per_loop = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    own_rows = round(rows_per_loop * node["Actual Loops"]) if "Relation Name" in node else 0
    return own_rows + sum([count_rows_of_plan(child) for child in node.get("Plans", ())])


def process_with_alternating_workers() -> None:
    """Processes each step with another worker."""
    for _ in range(200):
        if process_one_step() in ("ready", "failed"):
            return


def process_one_step() -> str:
    lease = leases.take_next_lease()
    assert lease is not None
    leased_version = leases.leased_version(lease.version_id, lease.token)
    steps.STEPS[leased_version.state](leased_version, 60.0)
    expire_leases()
    return Version.objects.get(pk=leased_version.pk).state


@pytest.mark.parametrize("process", [process_queue, process_with_alternating_workers])
def test_search_for_missing_vectors_continues_after_the_previous_batch(collection: Collection, process: Any):
    store_document(collection, LONG_TEXT)
    with count_rows_per_search() as rows_per_search:
        process()
    chunk_count = Version.objects.get(state="ready").chunks_count
    assert chunk_count > 9 * BATCH_SIZE and ChunkVector.objects.count() == 2 * chunk_count
    # Each passage once for each space, then all passages with their vectors before they become searchable.
    assert rows_per_search[-1] == 2 * chunk_count
    assert sum(rows_per_search[:-1]) == 2 * chunk_count and max(rows_per_search[:-1]) == BATCH_SIZE


@pytest.mark.parametrize("positions", [{}, {"{space}": 100}, {"{space}": 10_000}])
def test_stored_position_skips_no_missing_vector(collection: Collection, positions: dict[str, int]):
    """Vectors before the position may have been deleted, and are then created again."""
    store_document(collection, LONG_TEXT)
    while process_one_step() != "embedding":
        pass
    version = Version.objects.get(state="embedding")
    stored_positions = {name.format(space=collection.space_id): position for name, position in positions.items()}
    Version.objects.update(embedded_to=stored_positions)
    with count_rows_per_search() as rows_per_search:
        process_with_alternating_workers()
    version.refresh_from_db()
    assert version.state == "ready" and version.chunks_count > 150
    assert ChunkVector.objects.filter(space=collection.space_id).count() == version.chunks_count
    assert sum(rows_per_search) < 12 * version.chunks_count

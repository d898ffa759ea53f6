"""Each large collection has its own index, built while others write."""

import threading
from contextlib import closing, nullcontext
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from hypothesis import given
from hypothesis import strategies as st

from collections_app.models import Collection, EmbeddingSpace
from collections_app.vectors import vector_indexes
from system.background import index_builds
from tests.collections_app.vector_rows import (
    insert_vectors,
    make_collection,
    make_space,
    make_version,
    run_statement,
    vector_of,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def low_index_threshold(monkeypatch: pytest.MonkeyPatch, vector_index_cleanup: None) -> None:
    """Collections are large from 20 chunks of 8 dimensions."""
    monkeypatch.setattr(vector_indexes, "INDEX_THRESHOLD", 160)


@pytest.fixture
def space() -> EmbeddingSpace:
    return make_space("letters-a")


@pytest.fixture
def large_collection(space: EmbeddingSpace) -> Collection:
    collection = make_collection(space, "large")
    make_version(collection, "doc-1", 21)
    return collection


def test_only_large_collections_get_an_index(large_collection: Collection, space: EmbeddingSpace):
    small_collection = make_collection(space, "small")
    make_version(small_collection, "doc-1", 20)

    name = vector_indexes.index_name(large_collection.pk, space.pk)
    assert not vector_indexes.is_index_usable(large_collection.pk, space.pk)
    assert vector_indexes.maintain_indexes() == [name]
    assert vector_indexes.is_index_usable(large_collection.pk, space.pk) and not vector_indexes.is_index_usable(
        small_collection.pk, space.pk
    )
    assert vector_indexes.maintain_indexes() == []


def test_search_uses_the_index_and_equals_a_scan(large_collection: Collection, space: EmbeddingSpace):
    other_collection = make_collection(space, "other")
    make_version(other_collection, "doc-1", 40)
    query_vector = vector_of(space.model, "Printers\ndoc-1 7")
    search_query = (
        f"SELECT chunk_id FROM chunk_vector WHERE collection_id = '{large_collection.pk}' AND space_id = {space.pk} "
        f"ORDER BY (embedding::halfvec(8)) <=> '{query_vector}'::halfvec(8) LIMIT 5"
    )
    scan_results = run_statement(search_query)
    vector_indexes.maintain_indexes()

    run_statement("SET enable_seqscan = off; SET enable_sort = off")
    try:
        assert vector_indexes.index_name(large_collection.pk, space.pk) in str(run_statement(f"EXPLAIN {search_query}"))
        assert run_statement(search_query) == scan_results and len(scan_results) == 5
    finally:
        run_statement("RESET enable_seqscan; RESET enable_sort")


def test_index_is_dropped_if_the_collection_is_deleted_or_small(large_collection: Collection, space: EmbeddingSpace):
    deleted_collection = make_collection(space, "gone")
    make_version(deleted_collection, "doc-1", 30)
    index_names = {
        vector_indexes.index_name(collection.pk, space.pk) for collection in (large_collection, deleted_collection)
    }
    assert set(vector_indexes.maintain_indexes()) == index_names

    deleted_collection.mark_deleted()
    large_collection.documents.get().versions.update(chunks_count=11)
    assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(deleted_collection.pk, space.pk)], (
        "the index is kept around the threshold"
    )
    large_collection.documents.get().versions.update(chunks_count=10)
    assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(large_collection.pk, space.pk)]
    assert not vector_indexes.is_index_usable(large_collection.pk, space.pk)


def test_invalid_index_of_an_interrupted_build_is_rebuilt(large_collection: Collection, space: EmbeddingSpace):
    (name,) = vector_indexes.maintain_indexes()
    run_statement(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass")
    vector_indexes.clear_cache()
    assert not vector_indexes.is_index_usable(large_collection.pk, space.pk)

    assert vector_indexes.maintain_indexes() == [name]
    assert vector_indexes.is_index_usable(large_collection.pk, space.pk)


def test_space_that_is_being_filled_gets_its_index_when_it_is_full(large_collection: Collection, space: EmbeddingSpace):
    new_space = make_space("letters-b")
    large_collection.next_space = new_space
    large_collection.save()
    version = large_collection.documents.get().versions.get()
    assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(large_collection.pk, space.pk)]

    insert_vectors(version, new_space)
    assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(large_collection.pk, new_space.pk)]


def test_only_one_process_builds_indexes(large_collection: Collection):
    with (
        closing(connections.create_connection(connection.alias)) as other_connection,
        other_connection.cursor() as other_cursor,
    ):
        other_cursor.execute("SELECT pg_advisory_lock(%s)", [vector_indexes.ADVISORY_LOCK_ID])
        assert vector_indexes.maintain_indexes() == []

    assert len(vector_indexes.maintain_indexes()) == 1


def test_lock_is_released_before_the_server_has_closed_the_connection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_builds, "closing", nullcontext)
    cursors = []
    for _ in range(2):
        with index_builds.build_cursor(vector_indexes.ADVISORY_LOCK_ID) as cursor:
            cursors.append(cursor)
    assert None not in cursors
    for cursor in cursors:
        cursor.db.close()


def test_lost_connection_does_not_fail_at_the_end():
    with index_builds.build_cursor(vector_indexes.ADVISORY_LOCK_ID) as cursor:
        cursor.db.close()


def test_failed_build_does_not_delay_other_indexes(large_collection: Collection, space: EmbeddingSpace):
    # With other dimensions than those of the vectors, the cast in the index fails.
    wrong_space = make_space("wrong", 9)
    Collection.objects.filter(pk=large_collection.pk).update(space=wrong_space)
    insert_vectors(make_version(make_collection(wrong_space, "empty"), "doc-0", 0), wrong_space)
    second_collection = make_collection(space, "second")
    make_version(second_collection, "doc-1", 30)
    run_statement("ALTER TABLE chunk_vector DROP CONSTRAINT chunk_vector_space")
    try:
        run_statement(
            f"UPDATE chunk_vector SET space_id = {wrong_space.pk} WHERE collection_id = '{large_collection.pk}'"
        )
        assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(second_collection.pk, space.pk)]
    finally:
        run_statement(f"UPDATE chunk_vector SET space_id = {space.pk} WHERE collection_id = '{large_collection.pk}'")
        run_statement(
            "ALTER TABLE chunk_vector ADD CONSTRAINT chunk_vector_space FOREIGN KEY (space_id, dimensions) "
            "REFERENCES embedding_space (id, dimensions)"
        )


def test_writes_continue_during_the_build(large_collection: Collection, space: EmbeddingSpace):
    """The build waits for an older transaction; concurrent writes do not wait for the build."""
    built_indexes: list[list[str]] = []

    def build_indexes() -> None:
        built_indexes.append(vector_indexes.maintain_indexes())
        connection.close()

    with (
        closing(connections.create_connection(connection.alias)) as older_connection,
        older_connection.cursor() as cursor,
    ):
        cursor.execute("BEGIN; UPDATE chunk_vector SET dimensions = dimensions WHERE space_id = %s", [space.pk])
        thread = threading.Thread(target=build_indexes)
        thread.start()
        waiting_query = (
            "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'"
        )
        for _ in range(1000):
            if run_statement(waiting_query):
                break
            thread.join(0.01)
        run_statement("SET statement_timeout = '2s'")
        make_version(large_collection, "doc-2", 3)
        run_statement("RESET statement_timeout")
        cursor.execute("COMMIT")
        thread.join(20)

    assert built_indexes == [[vector_indexes.index_name(large_collection.pk, space.pk)]]


def test_long_build_is_not_limited_by_the_statement_timeout(large_collection: Collection):
    database_settings: dict[str, Any] = connections[connection.alias].settings_dict
    limited_options = {
        **database_settings["OPTIONS"],
        "options": database_settings["OPTIONS"].get("options", "") + " -c statement_timeout=60",
    }
    original_options, database_settings["OPTIONS"] = database_settings["OPTIONS"], limited_options
    # The build takes longer than the limit, because it waits for this transaction.
    try:
        with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as older_connection:
            older_connection.execute("UPDATE chunk_vector SET dimensions = dimensions")
            commit_timer = threading.Timer(0.3, older_connection.commit)
            commit_timer.start()
            assert len(vector_indexes.maintain_indexes()) == 1
            commit_timer.join()
    finally:
        database_settings["OPTIONS"] = original_options


@given(st.text(), st.integers(0, 2**63 - 1))
def test_any_id_gives_a_valid_index_name(collection_id: str, space_id: int):
    name = vector_indexes.index_name(collection_id.encode("utf-8", "replace").decode(), space_id)

    assert name.isidentifier() and name.islower() and len(name) <= 63

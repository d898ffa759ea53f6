"""Each large collection has its own index, built while others write."""

import threading
from contextlib import closing
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from hypothesis import given
from hypothesis import strategies as some

from collections_app.models import Collection, EmbeddingSpace
from collections_app.vectors import vector_indexes
from tests.collections_app import vector_rows as rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def small_threshold(monkeypatch: pytest.MonkeyPatch, vector_indexes_go: None) -> None:
    """20 chunks of 8 dimensions are many here."""
    monkeypatch.setattr(vector_indexes, "INDEX_THRESHOLD", 160)


@pytest.fixture
def space() -> EmbeddingSpace:
    return rows.make_space("letters-a")


@pytest.fixture
def large(space: EmbeddingSpace) -> Collection:
    collection = rows.make_collection(space, "large")
    rows.make_version(collection, "doc-1", 21)
    return collection


def test_large_collection_gets_an_index_and_a_small_one_none(large: Collection, space: EmbeddingSpace):
    small = rows.make_collection(space, "small")
    rows.make_version(small, "doc-1", 20)

    name = vector_indexes.index_name(large.pk, space.pk)
    assert not vector_indexes.is_index_usable(large.pk, space.pk)
    assert vector_indexes.maintain_indexes() == [name]
    assert vector_indexes.is_index_usable(large.pk, space.pk) and not vector_indexes.is_index_usable(small.pk, space.pk)
    assert vector_indexes.maintain_indexes() == []


def test_search_of_its_collection_uses_it_and_finds_what_a_scan_finds(large: Collection, space: EmbeddingSpace):
    other = rows.make_collection(space, "other")
    rows.make_version(other, "doc-1", 40)
    near = rows.vector(space.model, "Printers\ndoc-1 7")
    search = (
        f"SELECT chunk_id FROM chunk_vector WHERE collection_id = '{large.pk}' AND space_id = {space.pk} "
        f"ORDER BY (embedding::halfvec(8)) <=> '{near}'::halfvec(8) LIMIT 5"
    )
    scanned = rows.run(search)
    vector_indexes.maintain_indexes()

    rows.run("SET enable_seqscan = off; SET enable_sort = off")
    try:
        assert vector_indexes.index_name(large.pk, space.pk) in str(rows.run(f"EXPLAIN {search}"))
        assert rows.run(search) == scanned and len(scanned) == 5
    finally:
        rows.run("RESET enable_seqscan; RESET enable_sort")


def test_it_is_dropped_when_its_collection_goes_or_becomes_small(large: Collection, space: EmbeddingSpace):
    gone = rows.make_collection(space, "gone")
    rows.make_version(gone, "doc-1", 30)
    names = {vector_indexes.index_name(collection.pk, space.pk) for collection in (large, gone)}
    assert set(vector_indexes.maintain_indexes()) == names

    gone.mark_deleted()
    large.documents.get().versions.update(chunks_count=11)
    assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(gone.pk, space.pk)], (
        "around the threshold it stays"
    )
    large.documents.get().versions.update(chunks_count=10)
    assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(large.pk, space.pk)]
    assert not vector_indexes.is_index_usable(large.pk, space.pk)


def test_what_an_interrupted_build_left_is_built_anew(large: Collection, space: EmbeddingSpace):
    (name,) = vector_indexes.maintain_indexes()
    rows.run(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass")
    vector_indexes.clear_cache()
    assert not vector_indexes.is_index_usable(large.pk, space.pk)

    assert vector_indexes.maintain_indexes() == [name]
    assert vector_indexes.is_index_usable(large.pk, space.pk)


def test_space_that_is_being_filled_gets_its_index_when_it_is_full(large: Collection, space: EmbeddingSpace):
    new = rows.make_space("letters-b")
    large.next_space = new
    large.save()
    version = large.documents.get().versions.get()
    assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(large.pk, space.pk)]

    rows.give_vectors(version, new)
    assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(large.pk, new.pk)]


def test_only_one_tends_at_a_time(large: Collection):
    with closing(connections.create_connection(connection.alias)) as other, other.cursor() as first:
        first.execute("SELECT pg_advisory_lock(%s)", [vector_indexes.ADVISORY_LOCK_ID])
        assert vector_indexes.maintain_indexes() == []

    assert len(vector_indexes.maintain_indexes()) == 1


def test_one_that_cannot_be_built_holds_up_no_other(large: Collection, space: EmbeddingSpace):
    # Of other dimensions than its vectors have: the cast in the index fails.
    wrong = rows.make_space("wrong", 9)
    Collection.objects.filter(pk=large.pk).update(space=wrong)
    rows.give_vectors(rows.make_version(rows.make_collection(wrong, "empty"), "doc-0", 0), wrong)
    second = rows.make_collection(space, "second")
    rows.make_version(second, "doc-1", 30)
    rows.run("ALTER TABLE chunk_vector DROP CONSTRAINT chunk_vector_space")
    try:
        rows.run(f"UPDATE chunk_vector SET space_id = {wrong.pk} WHERE collection_id = '{large.pk}'")
        assert vector_indexes.maintain_indexes() == [vector_indexes.index_name(second.pk, space.pk)]
    finally:
        rows.run(f"UPDATE chunk_vector SET space_id = {space.pk} WHERE collection_id = '{large.pk}'")
        rows.run(
            "ALTER TABLE chunk_vector ADD CONSTRAINT chunk_vector_space FOREIGN KEY (space_id, dimensions) "
            "REFERENCES embedding_space (id, dimensions)"
        )


def test_writers_go_on_while_it_is_built(large: Collection, space: EmbeddingSpace):
    """The build waits for a transaction that is older; who writes meanwhile does not wait for the build."""
    built: list[list[str]] = []

    def tend() -> None:
        built.append(vector_indexes.maintain_indexes())
        connection.close()

    with closing(connections.create_connection(connection.alias)) as older, older.cursor() as cursor:
        cursor.execute("BEGIN; UPDATE chunk_vector SET dimensions = dimensions WHERE space_id = %s", [space.pk])
        thread = threading.Thread(target=tend)
        thread.start()
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'"
        )
        for _ in range(1000):
            if rows.run(waiting):
                break
            thread.join(0.01)
        rows.run("SET statement_timeout = '2s'")
        rows.make_version(large, "doc-2", 3)
        rows.run("RESET statement_timeout")
        cursor.execute("COMMIT")
        thread.join(20)

    assert built == [[vector_indexes.index_name(large.pk, space.pk)]]


def test_long_build_is_not_cut_off_by_the_workers_limit(large: Collection):
    database: dict[str, Any] = connections[connection.alias].settings_dict
    limited = {**database["OPTIONS"], "options": database["OPTIONS"].get("options", "") + " -c statement_timeout=60"}
    before, database["OPTIONS"] = database["OPTIONS"], limited
    # The build takes longer than the limit: it waits for this transaction.
    try:
        with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as older:
            older.execute("UPDATE chunk_vector SET dimensions = dimensions")
            release = threading.Timer(0.3, older.commit)
            release.start()
            assert len(vector_indexes.maintain_indexes()) == 1
            release.join()
    finally:
        database["OPTIONS"] = before


@given(some.text(), some.integers(0, 2**63 - 1))
def test_any_id_gives_a_name_that_the_database_takes(collection_id: str, space_id: int):
    name = vector_indexes.index_name(collection_id.encode("utf-8", "replace").decode(), space_id)

    assert name.isidentifier() and name.islower() and len(name) <= 63

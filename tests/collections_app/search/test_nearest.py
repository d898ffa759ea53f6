"""Nearest-neighbour searches with the vector index: complete and correct, with and without a filter."""

import random
from typing import Any

import pytest
from django.db import connection

from collections_app.models import Chunk, ChunkVector, Collection, Document, EmbeddingSpace, Version
from collections_app.search import vector_retrieval
from collections_app.search.scope import Scope, snapshot_transaction
from collections_app.vectors import vector_indexes

from .searches import make_collection

DIMENSIONS, CHUNKS, CHUNKS_PER_VERSION, RESULT_COUNT = 24, 1_200, 10, 50
RNG = random.Random(7)


def random_vector() -> list[float]:
    return [RNG.gauss(0, 1) for _ in range(DIMENSIONS)]


@pytest.fixture
def large_collection(vector_index_cleanup: None, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A collection that counts as large; the index of a similar collection must not be used for it."""
    monkeypatch.setattr(vector_indexes, "INDEX_THRESHOLD", 1)
    monkeypatch.setattr(vector_retrieval, "VISIT_COST", 0.001)
    space = EmbeddingSpace.objects.create(provider="test", model="random", dimensions=DIMENSIONS)
    for name in ("theirs", "large"):
        collection = make_collection(name, space=space)
        fill_collection(collection)
    vector_indexes.maintain_indexes()
    vector_indexes.clear_cache()
    return collection


def fill_collection(collection: Collection) -> None:
    chunks_and_versions = []
    for start in range(0, CHUNKS, CHUNKS_PER_VERSION):
        document = Document.objects.create(collection=collection, doc_id=f"d{start}")
        version = Version.objects.create(
            document=document, collection=collection, format="text", size=1, sha256="0" * 64, is_searched=True,
            state="ready", chunks_count=CHUNKS_PER_VERSION,
        )  # fmt: skip
        version_chunks = [
            Chunk(version=version, collection=collection, number=number, text="x", char_start=0, char_end=1)
            for number in range(CHUNKS_PER_VERSION)
        ]
        chunks_and_versions += [(chunk, version) for chunk in Chunk.objects.bulk_create(version_chunks)]
    ChunkVector.objects.bulk_create(
        ChunkVector(
            chunk=chunk, space=collection.space, collection=collection, version=version, dimensions=DIMENSIONS,
            embedding=random_vector(),
        )
        for chunk, version in chunks_and_versions
    )  # fmt: skip


def measure_recall(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> float:
    """The fraction of the exact ten nearest neighbours that the index finds; also checks the number of results."""
    match_count = neighbour_count = 0
    available_count = CHUNKS if scope.version_ids is None else CHUNKS_PER_VERSION * len(scope.version_ids)
    for _ in range(20):
        query_vector = vector_retrieval.vector_literal(random_vector())
        with snapshot_transaction():
            indexed_results = vector_retrieval.nearest_chunks(scope, CHUNKS, query_vector, RESULT_COUNT)
        with monkeypatch.context() as patch, snapshot_transaction():
            patch.setattr(vector_indexes, "INDEX_THRESHOLD", 10**15)
            exact_results = vector_retrieval.nearest_chunks(scope, CHUNKS, query_vector, 10)
        assert len(indexed_results) == min(RESULT_COUNT, available_count)
        match_count += len(exact_results.keys() & indexed_results.keys())
        neighbour_count += len(exact_results)
    return match_count / neighbour_count


# C05
def test_index_search_equals_a_scan(large_collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    version_ids = list(Version.objects.filter(collection=large_collection).order_by("pk").values_list("pk", flat=True))
    for searched_ids in (None, version_ids[: len(version_ids) * 6 // 10], version_ids[::10], version_ids[::100]):
        scope = Scope(
            collection=large_collection,
            version_ids=searched_ids,
            chunk_count=None if searched_ids is None else CHUNKS_PER_VERSION * len(searched_ids),
        )
        assert measure_recall(scope, monkeypatch) > 0.95
        assert uses_index(scope)


def test_a_filter_that_keeps_little_is_scanned(large_collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """With this cost, the index is used for more than 1,000 of 1,200 chunks: it visits 200 at least."""
    monkeypatch.setattr(vector_retrieval, "VISIT_COST", 5)
    version_ids = list(Version.objects.filter(collection=large_collection).order_by("pk").values_list("pk", flat=True))
    for share, is_index_expected in ((0.8, False), (0.9, True)):
        searched_ids = version_ids[: int(len(version_ids) * share)]
        chunk_count = CHUNKS_PER_VERSION * len(searched_ids)
        scope = Scope(collection=large_collection, version_ids=searched_ids, chunk_count=chunk_count)
        assert uses_index(scope) == is_index_expected


def test_scans_if_the_index_search_finds_too_few(large_collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends early if a filter excludes most of the nearest vectors."""
    query_vector, scope = vector_retrieval.vector_literal(random_vector()), Scope(collection=large_collection)
    search_index = vector_retrieval._search_index
    results = []
    for missing_count in (0, 1):
        monkeypatch.setattr(
            vector_retrieval,
            "_search_index",
            lambda *arguments, missing=missing_count: dict(list(search_index(*arguments).items())[missing:]),
        )
        with snapshot_transaction():
            results.append(vector_retrieval.nearest_chunks(scope, CHUNKS, query_vector, RESULT_COUNT))
    assert len(results[0]) == len(results[1]) == RESULT_COUNT
    assert list(results[0])[:3] == list(results[1])[:3]


def uses_index(scope: Scope) -> bool:
    return vector_indexes.index_name(scope.collection.pk, scope.collection.space_id) in explain_search(scope)


def explain_search(scope: Scope) -> str:
    statements: list[tuple[str, Any]] = []

    def record_statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append((sql, params))
        return execute(sql, params, many, context)

    with snapshot_transaction(), connection.cursor() as cursor:
        with connection.execute_wrapper(record_statement):
            vector_retrieval.nearest_chunks(
                scope, CHUNKS, vector_retrieval.vector_literal(random_vector()), RESULT_COUNT
            )
        sql, params = next(statement for statement in statements if "FROM chunk_vector" in statement[0])
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute("EXPLAIN " + sql, params)
        return "\n".join([line for (line,) in cursor.fetchall()])


@pytest.mark.django_db
def test_zero_vector_is_omitted(db: Any) -> None:
    """The cosine of a zero vector is undefined."""
    space = EmbeddingSpace.objects.create(provider="test", model="random", dimensions=3)
    collection = make_collection(space=space)
    document = Document.objects.create(collection=collection, doc_id="d")
    version = Version.objects.create(
        document=document, collection=collection, format="text", size=1, sha256="0" * 64, is_searched=True
    )
    for number, embedding in enumerate([[0, 0, 0], [1, 0, 0]]):
        chunk = Chunk.objects.create(
            version=version, collection=collection, number=number, text="x", char_start=0, char_end=1
        )
        ChunkVector.objects.create(
            chunk=chunk, space=space, collection=collection, version=version, dimensions=3, embedding=embedding
        )
    scores = vector_retrieval.nearest_chunks(Scope(collection=collection), 2, "[1,0,0]", 5)
    assert list(scores.values()) == [1.0]

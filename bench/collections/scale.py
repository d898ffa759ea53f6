"""Cost of a search among many chunks: CPU of the database, time, and recall."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import mean
from typing import Any

import django

from bench.collections.question_sets import ENGLISH_SETS, read_question_sets
from bench.collections.run import parse_arguments
from bench.collections.texts import FILTER_PERCENTAGES, InventedText, RewordedText, TextSource

django.setup()

from django.db import connection, transaction  # noqa: E402

from bench.collections.cost import measure_cost  # noqa: E402
from collections_app import embed  # noqa: E402
from collections_app.lexical import term_statistics  # noqa: E402
from collections_app.metadata.filter import Filter, parse_filter  # noqa: E402
from collections_app.models import Chunk, ChunkVector, Collection, Document, Version  # noqa: E402
from collections_app.search import keyword_retrieval, pipeline, vector_retrieval  # noqa: E402
from collections_app.search.scope import build_scopes, snapshot_transaction  # noqa: E402
from collections_app.vectors import vector_indexes  # noqa: E402

CHUNKS_PER_DOCUMENT = 10
QUESTION_COUNT = 60


def create_collection(name: str, source: TextSource, first_number: int, count: int, model: str = "") -> Collection:
    """Stores chunks as the product does, without the steps of a load that do not affect searches."""
    space = embed.local_space(model) if model else embed.default_space()
    collection = Collection.objects.create(name=name, space=space, text_configuration="english")
    embedder = embed.Embedder(collection.space)
    for start in range(first_number, first_number + count, CHUNKS_PER_DOCUMENT):
        numbers = range(start, min(start + CHUNKS_PER_DOCUMENT, first_number + count))
        texts = [source.chunk(number) for number in numbers]
        with transaction.atomic():
            _load_document(collection, start, texts, embedder.embed_documents(texts))
    return Collection.objects.select_related("space").get(pk=collection.pk)


def _load_document(collection: Collection, number: int, texts: list[str], vectors: list[list[float]]) -> None:
    document = Document.objects.create(collection=collection, doc_id=f"d{number}")
    version = Version.objects.create(
        document=document, collection=collection, format="text", size=1, sha256="0" * 64, state="ready",
        is_searched=True, chunks_count=len(texts), metadata={"share": number // CHUNKS_PER_DOCUMENT % 100, "tag": "x"},
    )  # fmt: skip
    chunks = Chunk.objects.bulk_create(
        Chunk(version=version, collection=collection, number=index, text=text, char_start=0, char_end=len(text))
        for index, text in enumerate(texts)
    )
    ChunkVector.objects.bulk_create(
        ChunkVector(
            chunk=chunk, space=collection.space, collection=collection, version=version, embedding=vector,
            dimensions=collection.space.dimensions,
        )
        for chunk, vector in zip(chunks, vectors, strict=True)
    )  # fmt: skip
    term_statistics.store_words(version.pk, collection.pk, collection.text_configuration)
    term_statistics.change_term_counts(version.pk, collection.pk, 1)


def recall(scores: dict[int, float], exact_scores: dict[int, float], count: int = 10) -> float:
    """The share of the best scores that was reached; chunks with equal scores are interchangeable."""
    if not exact_scores:
        return 1.0
    threshold = sorted(exact_scores.values(), reverse=True)[:count][-1]
    reached_count = sum(1 for score in sorted(scores.values(), reverse=True)[:count] if score >= threshold - 1e-6)
    return reached_count / min(count, len(exact_scores))


def measure_recalls(collection: Collection, filter_: Filter, questions: Sequence[str]) -> tuple[float, float]:
    """Recall of the ten best chunks by words and by vectors, compared with an exhaustive search."""
    keyword_recalls, vector_recalls = [], []
    embedder = embed.Embedder(collection.space)
    with snapshot_transaction():
        scope = build_scopes([collection], filter_)[0]
        for question in questions:
            query_terms = term_statistics.find_query_terms(question, [collection])[collection.pk]
            search = partial(keyword_retrieval.best_chunks, scope, query_terms, 100)
            exact_scores = _without_limit(keyword_retrieval, "MAX_CANDIDATES", search)
            keyword_recalls.append(recall(search(), exact_scores))
            vector = vector_retrieval.vector_literal(embedder.embed_query(question))
            search = partial(vector_retrieval.nearest_chunks, scope, query_terms.chunk_count, vector, 100)
            exact_scores = _without_limit(vector_indexes, "INDEX_THRESHOLD", search)
            vector_recalls.append(recall(search(), exact_scores))
    return mean(keyword_recalls), mean(vector_recalls)


def _without_limit(module: Any, limit_name: str, search: Callable[[], dict[int, float]]) -> dict[int, float]:
    """The result of a search without this limit of a module."""
    original_limit = getattr(module, limit_name)
    setattr(module, limit_name, 10**15)
    try:
        return search()
    finally:
        setattr(module, limit_name, original_limit)


def search_function(collection: Collection, filter_: Filter, mode: str) -> Callable[[str], Any]:
    return lambda query: pipeline.search(
        [collection], pipeline.SearchRequest(query=query, k=5, filter=filter_, mode=mode)
    )


def create_filter(max_share: int) -> Filter:
    return parse_filter("" if max_share == 100 else f"share<{max_share}")


def recalls_by_filter(name: str, questions: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The recalls in an existing collection."""
    collection = Collection.objects.select_related("space").get(name=name)
    return {
        filter_name: measure_recalls(collection, create_filter(max_share), questions)
        for filter_name, max_share in FILTER_PERCENTAGES.items()
    }


def report(collection: Collection, questions: Sequence[str]) -> None:
    print(f"{'filter':<8}{'mode':<9}{'wall ms':>9}{'database CPU ms':>17}{'recall, words':>15}{'recall, vectors':>17}")
    for name, max_share in FILTER_PERCENTAGES.items():
        filter_ = create_filter(max_share)
        keyword_recall, vector_recall = measure_recalls(collection, filter_, questions[:30])
        for mode in ("text", "vector", "hybrid"):
            cost = measure_cost(search_function(collection, filter_, mode), questions)
            recall_columns = f"{keyword_recall:>15.3f}{vector_recall:>17.3f}" if mode == "hybrid" else ""
            print(f"{name:<8}{mode:<9}{cost.wall_ms:>9.1f}{cost.cpu_ms:>17.1f}{recall_columns}", flush=True)


def main(argv: list[str]) -> None:
    arguments = parse_arguments(argv)
    started_at = time.perf_counter()
    count = arguments.scale // arguments.collections
    source: TextSource = InventedText()
    if arguments.data:
        source = RewordedText(read_question_sets(arguments.data, (arguments.sets or ENGLISH_SETS).split(",")))
    collections = [
        create_collection(f"c{number}", source, number * count, count, arguments.model)
        for number in range(arguments.collections)
    ]
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    elapsed_s = time.perf_counter() - started_at
    print(f"{arguments.scale:,} chunks in {arguments.collections} collections, created in {elapsed_s:.0f} s")
    started_at = time.perf_counter()
    if indexes := vector_indexes.maintain_indexes():
        print(f"{len(indexes)} vector indexes, built in {time.perf_counter() - started_at:.0f} s")
    vector_indexes.clear_cache()
    questions = list(source.questions(QUESTION_COUNT))
    report(collections[0], questions)


if __name__ == "__main__":
    main(sys.argv[1:])

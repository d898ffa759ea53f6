"""Cost of a search among many chunks: CPU of the database, time, and recall."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import mean
from typing import Any

import django

from bench.collections.run import options
from bench.collections.sets import sets
from bench.collections.texts import FILTERS, InventedText, RewordedText, Text

django.setup()

from django.db import connection, transaction  # noqa: E402

from bench.collections.cost import cost  # noqa: E402
from collections_app import embed  # noqa: E402
from collections_app.lexical import term_statistics  # noqa: E402
from collections_app.metadata.filter import Filter, parse_filter  # noqa: E402
from collections_app.models import Chunk, ChunkVector, Collection, Document, Version  # noqa: E402
from collections_app.search import keyword_retrieval, pipeline, vector_retrieval  # noqa: E402
from collections_app.search.scope import build_scopes, read_snapshot  # noqa: E402
from collections_app.vectors import vector_indexes  # noqa: E402

PER_DOCUMENT = 10
QUESTIONS = 60
# Sets whose words are looked up as those of English are.
ENGLISH = "en,covidqa"


def load(name: str, text: Text, first: int, count: int) -> Collection:
    """Chunks as the product stores them, without the steps of a load that cost no search anything."""
    collection = Collection.objects.create(name=name, space=embed.default_space(), text_configuration="english")
    embedder = embed.Embedder(collection.space)
    for start in range(first, first + count, PER_DOCUMENT):
        texts = [text.chunk(number) for number in range(start, min(start + PER_DOCUMENT, first + count))]
        with transaction.atomic():
            _load_document(collection, start, texts, embedder.embed_documents(texts))
    return Collection.objects.select_related("space").get(pk=collection.pk)


def _load_document(collection: Collection, number: int, texts: list[str], vectors: list[list[float]]) -> None:
    document = Document.objects.create(collection=collection, doc_id=f"d{number}")
    version = Version.objects.create(
        document=document, collection=collection, format="text", size=1, sha256="0" * 64, state="ready",
        is_searched=True, chunks_count=len(texts), metadata={"share": number // PER_DOCUMENT % 100, "tag": "x"},
    )  # fmt: skip
    chunks = Chunk.objects.bulk_create(
        Chunk(version=version, collection=collection, number=place, text=text, char_start=0, char_end=len(text))
        for place, text in enumerate(texts)
    )
    ChunkVector.objects.bulk_create(
        ChunkVector(
            chunk=one, space=collection.space, collection=collection, version=version, embedding=vector,
            dimensions=collection.space.dimensions,
        )
        for one, vector in zip(chunks, vectors, strict=True)
    )  # fmt: skip
    term_statistics.store_words(version.pk, collection.pk, collection.text_configuration)
    term_statistics.change_counts(version.pk, collection.pk, 1)


def recall(scores: dict[int, float], true: dict[int, float], count: int = 10) -> float:
    """Of the true best, the part whose score was reached: equal ones may stand for one another."""
    if not true:
        return 1.0
    least = sorted(true.values(), reverse=True)[:count][-1]
    reached = sum(1 for score in sorted(scores.values(), reverse=True)[:count] if score >= least - 1e-6)
    return reached / min(count, len(true))


def missed(collection: Collection, filter_: Filter, questions: Sequence[str]) -> tuple[float, float]:
    """Recall of the ten best by words and by vectors, against looking at everything."""
    words, vectors = [], []
    embedder = embed.Embedder(collection.space)
    with read_snapshot():
        scope = build_scopes([collection], filter_)[0]
        for question in questions:
            existing = term_statistics.find_query_terms(question, [collection])[collection.pk]
            by_words = partial(keyword_retrieval.best_chunks, scope, existing, 100)
            words.append(recall(by_words(), _exactly(keyword_retrieval, "MAX_CANDIDATES", by_words)))
            vector = vector_retrieval.vector_literal(embedder.embed_query(question))
            by_vectors = partial(vector_retrieval.nearest_chunks, scope, existing.chunks, vector, 100)
            vectors.append(recall(by_vectors(), _exactly(vector_indexes, "INDEX_THRESHOLD", by_vectors)))
    return mean(words), mean(vectors)


def _exactly(room: Any, limit: str, work: Callable[[], dict[int, float]]) -> dict[int, float]:
    """With the limit out of the way."""
    original = getattr(room, limit)
    setattr(room, limit, 10**15)
    try:
        return work()
    finally:
        setattr(room, limit, original)


def searched(collection: Collection, filter_: Filter, mode: str) -> Callable[[str], Any]:
    return lambda query: pipeline.search(
        [collection], pipeline.SearchRequest(query=query, k=5, filter=filter_, mode=mode)
    )


def report(collection: Collection, questions: Sequence[str]) -> None:
    print(f"{'filter':<8}{'mode':<9}{'wall ms':>9}{'database CPU ms':>17}{'recall, words':>15}{'recall, vectors':>17}")
    for name, below in FILTERS.items():
        filter_ = parse_filter("" if below == 100 else f"share<{below}")
        words, vectors = missed(collection, filter_, questions[:30])
        for mode in ("text", "vector", "hybrid"):
            result = cost(searched(collection, filter_, mode), questions)
            recalls = f"{words:>15.3f}{vectors:>17.3f}" if mode == "hybrid" else ""
            print(f"{name:<8}{mode:<9}{result.wall_ms:>9.1f}{result.cpu_ms:>17.1f}{recalls}", flush=True)


def main(words: list[str]) -> None:
    arguments = options(words)
    started = time.perf_counter()
    count = arguments.scale // arguments.collections
    text = (
        RewordedText(sets(arguments.data, (arguments.sets or ENGLISH).split(","))) if arguments.data else InventedText()
    )
    collections = [load(f"c{number}", text, number * count, count) for number in range(arguments.collections)]
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    elapsed_s = time.perf_counter() - started
    print(f"{arguments.scale:,} chunks in {arguments.collections} collections, created in {elapsed_s:.0f} s")
    started = time.perf_counter()
    if built := vector_indexes.maintain_indexes():
        print(f"{len(built)} vector indexes, made in {time.perf_counter() - started:.0f} s")
    vector_indexes.clear_cache()
    questions = list(text.questions(QUESTIONS))
    report(collections[0], questions)


if __name__ == "__main__":
    main(sys.argv[1:])

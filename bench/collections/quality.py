"""Quality of answers: question sets, loaded and searched with the code of the product."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from statistics import mean

import django

from bench.collections.measures import is_in_context, ndcg, recall
from bench.collections.run import options
from bench.collections.sets import QuestionSet, sets

django.setup()

from collections_app import embed  # noqa: E402
from collections_app.documents import storage  # noqa: E402
from collections_app.ingest import worker  # noqa: E402
from collections_app.metadata.filter import Filter  # noqa: E402
from collections_app.models import Collection, Version  # noqa: E402
from collections_app.search import pipeline  # noqa: E402

MODES = ("text", "vector", "hybrid")
# Enough for ten documents, of which several passages may be found.
PASSAGES = 40
# What hybrid search is held against, and how far below text alone it may fall.
AIMS = {"en": 0.965, "ru": 0.950, "zh": 0.93, "covidqa": 0.70}
MAX_LOST = 0.005


def load(each: QuestionSet) -> Collection:
    collection = Collection.objects.create(name=each.name, space=embed.default_space())
    for doc_id, text in each.documents.items():
        accepted = storage.store_document(
            collection=collection, data=text.encode(), filename="", format="text", metadata={}, doc_id=doc_id,
            on_duplicate="error", user_id="", takes_lease=True,
        )  # fmt: skip
        if worker.process_in_request(accepted).state != "ready":
            raise SystemExit(f"{doc_id} was not loaded")
    return Collection.objects.select_related("space").get(pk=collection.pk)


def scores(collection: Collection, each: QuestionSet, mode: str, alpha: float | None = None) -> dict[str, float]:
    """The means over the questions."""
    figures: dict[str, list[float]] = {"nDCG@10": [], "recall@10": [], "in 4,000": [], "ms": []}
    for question in each.questions:
        started = time.perf_counter()
        results = pipeline.search(
            [collection],
            pipeline.SearchRequest(query=question.text, k=PASSAGES, filter=Filter(), mode=mode, alpha=alpha),
        )
        figures["ms"].append(1000 * (time.perf_counter() - started))
        documents = [hit.doc_id for hit in results.hits]
        passages = [(hit.doc_id, hit.page_content) for hit in results.hits]
        figures["nDCG@10"].append(ndcg(documents, question.doc_id))
        figures["recall@10"].append(recall(documents, question.doc_id))
        figures["in 4,000"].append(is_in_context(passages, question.doc_id, question.answers))
    return {name: mean(values) for name, values in figures.items()}


def line(name: str, mode: str, figures: dict[str, float]) -> str:
    return f"{name:<9}{mode:<9}" + "".join([f"{value:>11.3f}" for value in figures.values()])


def verdict(each: QuestionSet, results: dict[str, dict[str, float]]) -> list[str]:
    measure = "in 4,000" if each.is_long else "nDCG@10"
    hybrid, text = results["hybrid"][measure], results["text"][measure]
    lines = []
    if each.name in AIMS:
        is_met = hybrid >= AIMS[each.name]
        lines.append(f"{'met   ' if is_met else 'MISSED'} {each.name} {measure} {hybrid:.3f}, aim {AIMS[each.name]}")
    if hybrid < text - MAX_LOST:
        lines.append(f"MISSED {each.name} hybrid {hybrid:.3f} below text alone {text:.3f}")
    return lines


def measure(every: Sequence[QuestionSet]) -> None:
    print(f"{'set':<9}{'mode':<9}{'nDCG@10':>11}{'recall@10':>11}{'in 4,000':>11}{'ms each':>11}")
    verdicts = []
    for each in every:
        started = time.perf_counter()
        collection = load(each)
        elapsed_s = time.perf_counter() - started
        results = {mode: scores(collection, each, mode) for mode in MODES}
        print("\n".join([line(each.name, mode, figures) for mode, figures in results.items()]))
        chunks = sum(Version.objects.filter(collection=collection).values_list("chunks_count", flat=True))
        about = f"{len(each.documents)} documents, {chunks} chunks, {len(each.questions)} questions"
        languages = Version.objects.filter(collection=collection).values_list("text_configuration", flat=True)
        language_counts = ", ".join(f"{name} {count}" for name, count in Counter(languages.order_by()).most_common())
        print(f"         {about}; languages {language_counts}; loaded in {elapsed_s:.1f} s", flush=True)
        verdicts += verdict(each, results)
    print("\n".join(["", *verdicts]))


def main(words: list[str]) -> None:
    arguments = options(words)
    measure(sets(arguments.data, [part for part in arguments.sets.split(",") if part], arguments.questions))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Search quality: question sets, loaded and searched with the code of the product."""

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from math import inf
from statistics import mean

import django

from bench.collections.measures import context_recall, recall
from bench.collections.question_sets import QuestionSet, read_question_sets
from bench.collections.run import parse_arguments

django.setup()

from collections_app import embed  # noqa: E402
from collections_app.documents import storage  # noqa: E402
from collections_app.evaluation.measures import ndcg  # noqa: E402
from collections_app.ingest import worker  # noqa: E402
from collections_app.metadata.filter import Filter  # noqa: E402
from collections_app.models import Chunk, Collection, Version  # noqa: E402
from collections_app.models.documents import VersionState  # noqa: E402
from collections_app.search import pipeline, weights  # noqa: E402
from collections_app.vectors import reembedding  # noqa: E402

SEARCH_MODES = ("text", "vector", "hybrid")
# Enough for ten documents with several passages each.
MAX_PASSAGES = 40
# The targets of hybrid search, and how far it may fall below keyword search.
TARGET_SCORES = {"en": 0.978, "ru": 0.962, "de": 0.955, "zh": 0.960, "covidqa": 0.775}
MAX_LOSS = 0.005


def load_question_set(question_set: QuestionSet, arguments: Namespace) -> Collection:
    chunk_size, chunk_overlap = map(int, arguments.chunks.split("/"))
    collection = Collection.objects.create(
        name=question_set.name,
        space=embed.local_space(arguments.model) if arguments.model else embed.default_space(),
        embedding_model_choice=arguments.model,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
    )
    for doc_id, text in question_set.documents.items():
        store_result = storage.store_document(
            collection=collection, data=text.encode(), filename="", format="text", metadata={}, doc_id=doc_id,
            on_duplicate="error", user_id="", takes_lease=True,
        )  # fmt: skip
        if worker.process_in_request(store_result).state != "ready":
            raise SystemExit(f"{doc_id} was not loaded")
    return change_model(Collection.objects.select_related("space", "next_space").get(pk=collection.pk))


def change_model(collection: Collection) -> Collection:
    """Embeds the passages with the model that the service chooses for their language, as the worker does."""
    if collection.next_space is None:
        return collection
    characters = sum(
        len(text) for text in Chunk.objects.filter(version__collection=collection).values_list("text", flat=True)
    )
    started_at, cpu_before_s = time.perf_counter(), time.process_time()
    # Nothing else is loaded. The worker, which does not run, would load the demo documents first.
    reembedding.BUSY_CHUNKS = sys.maxsize
    Version.objects.filter(state=VersionState.QUEUED).delete()
    reembedding.continue_reembedding(collection, inf)
    cpu_s = time.process_time() - cpu_before_s
    print(
        f"{collection}: {collection.next_space.model} embedded {characters:,} characters in "
        f"{time.perf_counter() - started_at:.1f} s; {characters / cpu_s:,.0f} characters per CPU second"
    )
    changed_collection = Collection.objects.select_related("space").get(pk=collection.pk)
    if changed_collection.next_space_id is not None:
        raise SystemExit(f"{collection} did not change: {changed_collection.reembed_error}")
    return changed_collection


def mean_scores(
    collection: Collection, question_set: QuestionSet, mode: str, alpha: float | None = None
) -> dict[str, float]:
    """The means over the questions."""
    scores: dict[str, list[float]] = {"nDCG@10": [], "recall@10": [], "in 4,000": [], "match>.3": [], "ms": []}
    for question in question_set.questions:
        started_at = time.perf_counter()
        search_results = pipeline.search(
            [collection],
            pipeline.SearchRequest(query=question.text, k=MAX_PASSAGES, filter=Filter(), mode=mode, alpha=alpha),
        )
        scores["ms"].append(1000 * (time.perf_counter() - started_at))
        doc_ids = [hit.doc_id for hit in search_results.hits]
        passages = [(hit.doc_id, hit.page_content) for hit in search_results.hits]
        scores["nDCG@10"].append(ndcg(doc_ids, {question.doc_id}))
        scores["recall@10"].append(recall(doc_ids, question.doc_id))
        matches = [hit.scores["match"] or 0.0 for hit in search_results.hits if hit.doc_id == question.doc_id]
        scores["match>.3"].append(max(matches, default=0.0) >= 0.3)
        scores["in 4,000"].append(context_recall(passages, question.doc_id, question.answers))
    return {name: mean(values) for name, values in scores.items()}


def table_row(name: str, mode: str, scores: dict[str, float]) -> str:
    return f"{name:<14}{mode:<9}" + "".join([f"{value:>11.3f}" for value in scores.values()])


def target_lines(question_set: QuestionSet, scores_by_mode: dict[str, dict[str, float]]) -> list[str]:
    metric = "in 4,000" if question_set.is_long else "nDCG@10"
    hybrid, keyword = scores_by_mode["hybrid"][metric], scores_by_mode["text"][metric]
    lines = []
    if question_set.name in TARGET_SCORES:
        is_met = hybrid >= TARGET_SCORES[question_set.name]
        comparison = f"{question_set.name} {metric} {hybrid:.3f}, target {TARGET_SCORES[question_set.name]}"
        lines.append(f"{'met   ' if is_met else 'MISSED'} {comparison}")
    if hybrid < keyword - MAX_LOSS:
        lines.append(f"MISSED {question_set.name} hybrid {hybrid:.3f} below keyword search alone {keyword:.3f}")
    return lines


def measure_sets(question_sets: Sequence[QuestionSet], arguments: Namespace) -> None:
    modes = ("hybrid",) if arguments.weights else SEARCH_MODES
    if arguments.weights:
        words, characters, vectors = map(float, arguments.weights.split(","))
        fixed = weights.Weights(words=words, characters=characters, vectors=vectors)
        weights.MODEL_WEIGHTS = dict.fromkeys(weights.MODEL_WEIGHTS, weights.ModelWeights(english=fixed, other=fixed))
    print(f"{'set':<14}{'mode':<9}{'nDCG@10':>11}{'recall@10':>11}{'in 4,000':>11}{'match>.3':>11}{'ms each':>11}")
    lines = []
    for question_set in question_sets:
        started_at = time.perf_counter()
        collection = load_question_set(question_set, arguments)
        elapsed_s = time.perf_counter() - started_at
        scores_by_mode = {mode: mean_scores(collection, question_set, mode) for mode in modes}
        print("\n".join([table_row(question_set.name, mode, scores) for mode, scores in scores_by_mode.items()]))
        chunks = sum(Version.objects.filter(collection=collection).values_list("chunks_count", flat=True))
        counts = f"{len(question_set.documents)} documents, {chunks} chunks, {len(question_set.questions)} questions"
        languages = Version.objects.filter(collection=collection).values_list("text_configuration", flat=True)
        language_counts = ", ".join(f"{name} {count}" for name, count in Counter(languages.order_by()).most_common())
        print(f"         {counts}; languages {language_counts}; loaded in {elapsed_s:.1f} s", flush=True)
        if not arguments.weights:
            lines += target_lines(question_set, scores_by_mode)
    print("\n".join(["", *lines]))


def main(argv: list[str]) -> None:
    arguments = parse_arguments(argv)
    names = [name for name in arguments.sets.split(",") if name]
    measure_sets(read_question_sets(arguments.data, names, arguments.questions), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Compares searches over HTTP with an earlier commit: both products have the same data and search in turn."""

import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, median
from typing import Any

from bench.collections.question_sets import ENGLISH_SETS, read_question_sets
from bench.collections.run import parse_arguments
from bench.collections.texts import FILTER_PERCENTAGES, RewordedText
from bench.tableapi.product import Product, check_out
from bench.tableapi.run import running_products
from config.env import ROOT

COLLECTION, LOGIN = "Benchmark", "admin"
# Passages overlap, so that a document of 7 texts has about 10.
CHUNKS_PER_DOCUMENT, TEXTS_PER_DOCUMENT = 10, 7
# Documents that may wait, because a user's queue is limited.
BATCH_SIZE = 5_000
LOADING_CLIENTS = 3
TIMEOUT_S = 7_200
ROUNDS, QUESTIONS_PER_ROUND = 6, 20
UNFINISHED_SQL = "SELECT count(*) = 0 FROM document_version WHERE state <> 'ready'"
INDEX_SQL = """
    SELECT count(*) > 0 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indisvalid AND starts_with(relname, 'chunk_vector_near_')
"""
CHUNKS_SQL = "SELECT sum(chunks_count) FROM document_version WHERE metadata ->> 'tag' = 'bench'"
# The smallest size for which this comparison expects an index.
MIN_INDEXED_CHUNKS = 60_000


def load_documents(product: Product, source: RewordedText, chunk_count: int) -> None:
    """Loads documents as clients do, and waits until the worker has also built the vector index."""

    def load(number: int) -> None:
        texts = [source.chunk(number * CHUNKS_PER_DOCUMENT + index) for index in range(TEXTS_PER_DOCUMENT)]
        body: dict[str, Any] = {
            "collection_name": COLLECTION, "text": "\n\n".join(texts), "doc_id": f"d{number}", "wait": False,
            "metadata": {"share": number % 100, "tag": "bench"},
        }  # fmt: skip
        product.call("POST", "/load_text_to_collection", json.dumps(body))

    started_at = time.monotonic()
    document_count = chunk_count // CHUNKS_PER_DOCUMENT
    load(0)  # creates the collection
    for start in range(1, document_count, BATCH_SIZE):
        with ThreadPoolExecutor(LOADING_CLIENTS) as pool:
            list(pool.map(load, range(start, min(start + BATCH_SIZE, document_count))))
        wait_for(product, UNFINISHED_SQL)
    with product.database() as connection:
        connection.execute("VACUUM ANALYZE")
        (stored_count,) = connection.execute(CHUNKS_SQL).fetchone() or (0,)
    if stored_count > MIN_INDEXED_CHUNKS:
        wait_for(product, INDEX_SQL)
    print(f"{stored_count:,} chunks, loaded and indexed in {time.monotonic() - started_at:.0f} s", flush=True)


def wait_for(product: Product, statement: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    with product.database() as connection:
        while not (connection.execute(statement).fetchone() or (False,))[0]:
            if time.monotonic() > deadline:
                raise SystemExit(f"{product.name}: loading or indexing took too long")
            time.sleep(1)


def search_function(product: Product, max_share: int) -> Callable[[str], Any]:
    parameters = {"collection_names": [COLLECTION], **({"metadata": f"share<{max_share}"} if max_share < 100 else {})}
    return lambda query: product.call(
        "POST", "/get_relevant_documents", json.dumps({**parameters, "query": query, "k": 5})
    )


def measure_ms(product: Product, max_share: int, queries: list[str]) -> float:
    """The database CPU of one search."""
    search = search_function(product, max_share)
    cpu_before_s = product.cpu_s()["postgres"]
    for query in queries:
        search(query)
    return 1000 * (product.cpu_s()["postgres"] - cpu_before_s) / len(queries)


def recalls(current: Product, queries: list[str]) -> dict[str, tuple[float, float]]:
    """The recalls by words and by vectors for each filter, compared with an exhaustive search."""
    code = (
        "import json; from bench.collections.scale import recalls_by_filter; "
        f"print(json.dumps(recalls_by_filter({COLLECTION!r}, {queries!r})))"
    )
    found: dict[str, tuple[float, float]] = json.loads(current.manage("shell", "-c", code).rpartition("\n")[2])
    return found


def report(current: Product, baseline: Product, queries: list[str]) -> None:
    found_recalls = recalls(current, queries[: ROUNDS * QUESTIONS_PER_ROUND // 2])
    print("Database CPU of a hybrid search, median ratio, recall of the current code")
    print(f"{'filter':<8}{'current ms':>12}{'before ms':>12}{'ratio':>8}{'words':>8}{'vectors':>9}")
    for name, max_share in FILTER_PERCENTAGES.items():
        for product in (current, baseline):
            measure_ms(product, max_share, queries[:QUESTIONS_PER_ROUND])  # reads what is not cached
        rounds = [
            [measure_ms(product, max_share, queries[number::ROUNDS]) for product in (current, baseline)]
            for number in range(ROUNDS)
        ]
        current_ms, baseline_ms = (mean(values) for values in zip(*rounds, strict=True))
        word_recall, vector_recall = found_recalls[name]
        ratio = median(current_value / baseline_value for current_value, baseline_value in rounds)
        print(
            f"{name:<8}{current_ms:>12.1f}{baseline_ms:>12.1f}{ratio:>8.2f}{word_recall:>8.3f}{vector_recall:>9.3f}",
            flush=True,
        )


def main(argv: list[str]) -> None:
    arguments = parse_arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the products run in their own sessions
    source = RewordedText(read_question_sets(arguments.data, (arguments.sets or ENGLISH_SETS).split(",")))
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as scratch_folder:
        folder = Path(scratch_folder)
        baseline = Product(check_out(arguments.against, folder / "code"), folder / "code", folder / "baseline")
        with running_products(baseline):
            baseline.key = baseline.manage("key", LOGIN, "bench").rpartition("\n")[2]
            load_documents(baseline, source, arguments.scale)
        # The current code upgrades a copy of the data. Its secrets are those of the baseline.
        shutil.copytree(baseline.data_folder, folder / "current", symlinks=True)
        current = Product("current", ROOT, folder / "current", SVC_SECRET_KEYS=baseline.env["SVC_SECRET_KEYS"])
        current.key = baseline.key
        with running_products(current, baseline):
            report(current, baseline, list(source.questions(ROUNDS * QUESTIONS_PER_ROUND)))


if __name__ == "__main__":
    main(sys.argv[1:])

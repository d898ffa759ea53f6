"""Cost of loading: each step of one text, one PDF, and many texts through the worker."""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import Any

import django
import psutil

from bench.collections.run import parse_arguments
from bench.collections.texts import InventedText

django.setup()

from django.db import connection  # noqa: E402

from bench.collections.cost import backend_cpu_s  # noqa: E402
from collections_app import embed  # noqa: E402
from collections_app.documents import storage  # noqa: E402
from collections_app.ingest import worker  # noqa: E402
from collections_app.ingest.steps import STEPS  # noqa: E402
from collections_app.models import Collection, Version  # noqa: E402
from collections_app.models.documents import UNFINISHED_STATES  # noqa: E402
from collections_app.queue import leases, worker_signals  # noqa: E402
from config.runtime.up import WORKER_COMMAND  # noqa: E402
from tests.collections_app.extract.samples import pdf_file  # noqa: E402

CHARACTERS_PER_CHUNK = 800  # the chunk size minus the overlap
TEXT_COUNT = 20
PAGE_COUNT, LINES_PER_PAGE, LINE_WIDTH = 30, 55, 90
TIMEOUT_S = 1_200


def invented_text(first_number: int, chunk_count: int) -> str:
    """A text of about this many chunks."""
    remaining_length, paragraphs, number = chunk_count * CHARACTERS_PER_CHUNK, [], first_number
    while remaining_length > 0:
        paragraphs.append(InventedText().chunk(number))
        remaining_length -= len(paragraphs[-1]) + 2
        number += 1
    return "\n\n".join(paragraphs)


def store_data(
    collection: Collection, data: bytes, *, format: str = "text", takes_lease: bool = True
) -> storage.StoreResult:
    return storage.store_document(
        collection=collection, data=data, filename="", format=format, metadata={}, doc_id=None, on_duplicate="skip",
        user_id="bench", takes_lease=takes_lease,
    )  # fmt: skip


def own_cpu_s() -> float:
    """CPU time of this process and of its children that have ended."""
    usages = [resource.getrusage(target) for target in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@contextmanager
def measure_step(costs: dict[str, list[float]], name: str) -> Iterator[None]:
    usage_before = (time.perf_counter(), own_cpu_s(), backend_cpu_s())
    yield
    usage_after = (time.perf_counter(), own_cpu_s(), backend_cpu_s())
    totals = costs.setdefault(name, [0.0, 0.0, 0.0])
    for index in range(3):
        totals[index] += usage_after[index] - usage_before[index]


def measure_steps(collection: Collection, chunk_count: int) -> None:
    store_result = store_data(collection, invented_text(0, chunk_count).encode())
    assert store_result.lease_token is not None
    costs: dict[str, list[float]] = {}
    with suppress(leases.LeaseLost):  # the version is ready, and its lease has ended
        while True:
            version = leases.leased_version(store_result.version.pk, store_result.lease_token)
            with measure_step(costs, version.state):
                STEPS[version.state](version, inf)
    count = version.chunks_count
    print(f"one text of {count:,} chunks")
    print(f"{'step':<12}{'wall s':>9}{'own CPU s':>11}{'database CPU s':>16}{'chunks/s':>10}")
    costs["total"] = [sum(cost[index] for cost in costs.values()) for index in range(3)]
    for name, (wall_s, process_s, database_s) in costs.items():
        print(f"{name:<12}{wall_s:>9.2f}{process_s:>11.2f}{database_s:>16.2f}{count / wall_s:>10.0f}", flush=True)


def measure_pdf(collection: Collection) -> None:
    words = invented_text(500_000, 400).split()
    lines = [" ".join(words[start : start + 12])[:LINE_WIDTH] for start in range(0, len(words), 12)]
    pages = ["\n".join(lines[page * LINES_PER_PAGE : (page + 1) * LINES_PER_PAGE]) for page in range(PAGE_COUNT)]
    data = pdf_file(pages)
    started_at = time.perf_counter()
    version = worker.process_in_request(store_data(collection, data, format="pdf"))
    elapsed_s = time.perf_counter() - started_at
    print(
        f"a PDF of {version.pages} pages, {len(data) / 1024:.0f} KB: {version.state} after {elapsed_s:.2f} s",
        flush=True,
    )


def measure_worker(collection: Collection, chunk_count: int) -> None:
    """Stores all texts, then starts the worker. The time counts from the first text that is ready."""
    for number in range(TEXT_COUNT + 2):
        text = invented_text(1_000_000 + number * chunk_count, chunk_count // TEXT_COUNT)
        store_data(collection, text.encode(), takes_lease=False)
    worker_process = subprocess.Popen(WORKER_COMMAND, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        worker_signals.request_processing()
        _report_worker(worker_process, collection)
    finally:
        worker_process.terminate()
        worker_process.wait(30)


def _report_worker(worker_process: Any, collection: Collection) -> None:
    versions = Version.objects.filter(collection=collection, format="text", size__lt=10**7).order_by()
    started_at, ready_at_start, max_memory_bytes, deadline = 0.0, 0, 0, time.monotonic() + TIMEOUT_S
    while versions.filter(state__in=UNFINISHED_STATES).exists():
        if time.monotonic() > deadline:
            raise SystemExit("the worker did not finish")
        if not started_at and (ready_count := _ready_chunk_count(versions)):
            started_at, ready_at_start = time.perf_counter(), ready_count
        processes = [psutil.Process(worker_process.pid), *psutil.Process(worker_process.pid).children(recursive=True)]
        max_memory_bytes = max(max_memory_bytes, sum(_rss_bytes(process) for process in processes))
        time.sleep(0.1)
    elapsed_s, count = time.perf_counter() - started_at, _ready_chunk_count(versions) - ready_at_start
    print(f"through the worker: {count:,} chunks in {elapsed_s:.1f} s, {count / elapsed_s:.0f} a second; "
          f"at most {max_memory_bytes / 2**20:.0f} MB of its processes together")  # fmt: skip


def _ready_chunk_count(versions: Any) -> int:
    return sum(versions.filter(state="ready").values_list("chunks_count", flat=True))


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def main(argv: list[str]) -> None:
    chunk_count = parse_arguments(argv).ingest
    space = embed.default_space()
    embed.Embedder(space).embed_query("warm")
    measure_steps(Collection.objects.create(name="steps", space=space), chunk_count)
    measure_pdf(Collection.objects.create(name="pdf", space=space))
    connection.close()
    measure_worker(Collection.objects.create(name="many", space=space), chunk_count)


if __name__ == "__main__":
    main(sys.argv[1:])

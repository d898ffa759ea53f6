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

from bench.collections.run import options
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
from tests.collections_app.extract.samples import pdf  # noqa: E402

OF_ONE_CHUNK = 800  # characters: the size less the overlap
TEXTS = 20
PAGES, LINES, WIDTH = 30, 55, 90
WITHIN_S = 1_200


def text(first: int, chunks: int) -> str:
    """Of about so many passages."""
    expected, results, number = chunks * OF_ONE_CHUNK, [], first
    while expected > 0:
        results.append(InventedText().chunk(number))
        expected -= len(results[-1]) + 2
        number += 1
    return "\n\n".join(results)


def accept(
    collection: Collection, data: bytes, *, format: str = "text", takes_lease: bool = True
) -> storage.StoreResult:
    return storage.store_document(
        collection=collection, data=data, filename="", format=format, metadata={}, doc_id=None, on_duplicate="skip",
        user_id="bench", takes_lease=takes_lease,
    )  # fmt: skip


def own_cpu_s() -> float:
    """Of this process and of those it started that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


@contextmanager
def counted(spent: dict[str, list[float]], name: str) -> Iterator[None]:
    before = (time.perf_counter(), own_cpu_s(), backend_cpu_s())
    yield
    after = (time.perf_counter(), own_cpu_s(), backend_cpu_s())
    result = spent.setdefault(name, [0.0, 0.0, 0.0])
    for place in range(3):
        result[place] += after[place] - before[place]


def by_step(collection: Collection, chunks: int) -> None:
    accepted = accept(collection, text(0, chunks).encode())
    assert accepted.lease_token is not None
    spent: dict[str, list[float]] = {}
    with suppress(leases.LeaseLost):  # it is ready, and nobody's any more
        while True:
            version = leases.leased_version(accepted.version.pk, accepted.lease_token)
            with counted(spent, version.state):
                STEPS[version.state](version, inf)
    count = version.chunks_count
    print(f"one text of {count:,} chunks")
    print(f"{'step':<12}{'wall s':>9}{'own CPU s':>11}{'database CPU s':>16}{'chunks/s':>10}")
    spent["in all"] = [sum(each[place] for each in spent.values()) for place in range(3)]
    for name, (wall, own, database) in spent.items():
        print(f"{name:<12}{wall:>9.2f}{own:>11.2f}{database:>16.2f}{count / wall:>10.0f}", flush=True)


def one_pdf(collection: Collection) -> None:
    words = text(500_000, 400).split()
    lines = [" ".join(words[start : start + 12])[:WIDTH] for start in range(0, len(words), 12)]
    pages = ["\n".join(lines[page * LINES : (page + 1) * LINES]) for page in range(PAGES)]
    data = pdf(pages)
    accept_and_load = [time.perf_counter()]
    version = worker.process_in_request(accept(collection, data, format="pdf"))
    elapsed_s = time.perf_counter() - accept_and_load[0]
    print(
        f"a PDF of {version.pages} pages, {len(data) / 1024:.0f} KB: {version.state} after {elapsed_s:.2f} s",
        flush=True,
    )


def through_worker(collection: Collection, chunks: int) -> None:
    """All accepted first; then the worker is started, and the clock with the first that is ready."""
    for number in range(TEXTS + 2):
        accept(collection, text(1_000_000 + number * chunks, chunks // TEXTS).encode(), takes_lease=False)
    worker = subprocess.Popen(WORKER_COMMAND, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        worker_signals.request_processing()
        _report_worker(worker, collection)
    finally:
        worker.terminate()
        worker.wait(30)


def _report_worker(worker: Any, collection: Collection) -> None:
    versions = Version.objects.filter(collection=collection, format="text", size__lt=10**7).order_by()
    started, at_first, memory, until = 0.0, 0, 0, time.monotonic() + WITHIN_S
    while versions.filter(state__in=UNFINISHED_STATES).exists():
        if time.monotonic() > until:
            raise SystemExit("the worker did not finish")
        if not started and (ready := _ready(versions)):
            started, at_first = time.perf_counter(), ready
        processes = [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)]
        memory = max(memory, sum(_rss(process) for process in processes))
        time.sleep(0.1)
    elapsed_s, count = time.perf_counter() - started, _ready(versions) - at_first
    print(f"through the worker: {count:,} chunks in {elapsed_s:.1f} s, {count / elapsed_s:.0f} a second; "
          f"at most {memory / 2**20:.0f} MB of its processes together")  # fmt: skip


def _ready(known: Any) -> int:
    return sum(known.filter(state="ready").values_list("chunks_count", flat=True))


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def main(words: list[str]) -> None:
    chunks = options(words).ingest
    space = embed.default_space()
    embed.Embedder(space).embed_query("warm")
    by_step(Collection.objects.create(name="steps", space=space), chunks)
    one_pdf(Collection.objects.create(name="pdf", space=space))
    connection.close()
    through_worker(Collection.objects.create(name="many", space=space), chunks)


if __name__ == "__main__":
    main(sys.argv[1:])

"""In charge of what is measured once a round: each case with the server, the clients and the requests it needs."""

import http.client
import json
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from bench.tableapi import cases, load, loop, report
from bench.tableapi.cases import LOOP, Case
from bench.tableapi.measure import Slice, measured, process_cpu_s
from bench.tableapi.report import Place
from bench.tableapi.stack import Stack, Web

# So many of a case's requests are run in its loop.
MOST_STATEMENTS = 100


@dataclass(frozen=True)
class Size:
    """One database with so many tasks: who answers from it, the key of its caller, the ids of some tasks."""

    rows: int
    database: str
    web: Web
    key: str
    tasks: list[str]
    hidden: list[str]

    @property
    def has_deep_pages(self) -> bool:
        """Nine of ten tasks are the caller's to read."""
        return self.rows * 0.9 > 20 * (cases.DEEP_PAGE + 1)


@dataclass(frozen=True)
class Turn:
    place: Place
    what: str
    slice: Callable[[float], Slice]


class Turns:
    """Makes the turns over the servers of one run."""

    def __init__(self, stack: Stack, pool: ProcessPoolExecutor, sizes: list[Size]) -> None:
        self.stack = stack
        self.pool = pool
        self.sizes = sizes
        self.postmaster = stack.postmaster

    def all(self, drf: Web, clients: list[int]) -> Iterator[Turn]:
        """Everything with the most rows, the reads also with fewer, and the reads as SQL alone."""
        most = self.sizes[-1]
        refuse_unequal(most, drf)
        own = [cases.least(), *cases.reads(most.tasks), *cases.absent(most.hidden), *cases.writes(most.tasks)]
        if most.has_deep_pages:
            own += cases.pages(cursor_path(most))
        for count in clients:
            yield from (self._over_http(most, most.web, case, count) for case in own)
            yield from (self._over_http(most, drf, case, count) for case in cases.idiomatic(most.tasks))
        for size in self.sizes[:-1]:
            yield from (self._over_http(size, size.web, each, report.CLIENTS) for each in cases.reads(size.tasks))
        for case in cases.reads(most.tasks):
            yield self._in_loop(most, case)

    def _over_http(self, size: Size, web: Web, case: Case, clients: int) -> Turn:
        requests = case.requests(web.port, size.key)

        def in_slice(seconds: float) -> Slice:
            job = load.Job(web.port, requests, case.status, clients, seconds)
            done = lambda: self.pool.submit(load.run, job).result()  # noqa: E731
            return measured(done, lambda _: process_cpu_s(web.process), self.postmaster)

        return Turn(Place(size.rows, clients, case.name, case.way), case.what, in_slice)

    def _in_loop(self, size: Size, case: Case) -> Turn:
        runs = self._runs(size, case)

        def in_slice(seconds: float) -> Slice:
            job = loop.LoopJob(self.stack.url(size.database), runs, seconds)
            done = lambda: self.pool.submit(loop.run, job).result()  # noqa: E731
            return measured(done, lambda found: found.cpu_s if found else 0.0, self.postmaster)

        return Turn(Place(size.rows, 1, case.name, LOOP), case.what, in_slice)

    def _runs(self, size: Size, case: Case) -> list[loop.Run]:
        """What the product runs to answer this."""
        file = self.stack.folder.root / "statements"
        asked = json.dumps({"key": size.key, "paths": list(case.paths[:MOST_STATEMENTS])})
        more = {"SVC_BASE_URL": f"http://127.0.0.1:{size.web.port}"}
        self.stack.manage(size.database, "benchmark_statements", str(file), given=asked, **more)
        found: list[loop.Run] = pickle.loads(file.read_bytes())
        return found


def fetched(web: Web, path: str, key: str) -> tuple[Any, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{path} answered {answer.status}: {body[:500].decode()}")
    return json.loads(body), answer.headers


def refuse_unequal(size: Size, drf: Web) -> None:
    """Both ways must answer the same, or their figures say nothing."""
    for ours, theirs in zip(cases.reads(size.tasks), cases.idiomatic(size.tasks), strict=False):
        if ours.name == "R3":
            continue  # the names of walked fields differ
        shown, _ = fetched(size.web, ours.paths[0], size.key)
        compared, _ = fetched(drf, theirs.paths[0], size.key)
        plain = json.loads(json.dumps(compared).replace(f":{drf.port}/", f":{size.web.port}/"))
        if plain.get("results", [plain]) != shown["data"]:
            raise SystemExit(f"the Table API and DRF answer {ours.name} differently")


def cursor_path(size: Size) -> str:
    """Where the link of a deep page leads."""
    _, headers = fetched(size.web, cases.deep_page(), size.key)
    found: str = headers["Link"].partition("<")[2].partition(">")[0]
    return found[found.index("/rest/") :]

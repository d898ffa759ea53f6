"""OpenAI-compatible providers: concurrent batches, retries, one deadline."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from . import vector_checks
from .batches import batched, wait_s
from .circuit_breaker import Breaker
from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .request import LONGEST_DIMENSIONS, EmbeddingRequest, Endpoint
from .vector_checks import Vectors

if TYPE_CHECKING:
    from .connection import Connection

TOO_MANY_DIMENSIONS = "too_many_dimensions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much at once, and how long."""

    batch: int = 64
    concurrency: int = 4
    connect_s: float = 5.0
    read_s: float = 30.0
    request_s: float = 60.0
    # Of all requests of one call together; and of the time in which one that failed is sent again.
    total_s: float = 120.0
    retry_s: float = 20.0
    first_wait_s: float = 0.5
    # A search waits no longer: without vectors it still finds words.
    query_s: float = 2.0
    queries: int = 4
    failures: int = 3
    open_s: float = 20.0
    # A request knows its own deadline; who waits for it gives it this much longer to say so.
    grace_s: float = 0.25


class ProviderConnection:
    """What the spaces of one process share on the way to one provider: connections, turns, and whether it is alive."""

    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        self._endpoint, self.limits = endpoint, limits
        self._turn = threading.Lock()
        self._connection = self._connect()
        # As many threads as there may be requests: who comes later waits. Searches do not wait behind documents.
        self.documents = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="embed")
        self.queries = ThreadPoolExecutor(limits.queries, thread_name_prefix="embed-query")
        self.breaker = Breaker(limits.failures, limits.open_s)

    def _connect(self) -> Connection:
        # Late: the client's modules take a second and 40 MB of each process, and most installations have no provider.
        from .connection import Connection  # noqa: PLC0415

        return Connection(self._endpoint, connect_s=self.limits.connect_s, read_s=self.limits.read_s)

    def ask(self, question: EmbeddingRequest, until: float) -> Vectors:
        body = self._connection.ask(question, until)
        return vector_checks.unit(vector_checks.read_answer(body, len(question.texts)), question.dimensions)

    def renew(self) -> None:
        """Hang up: a request outlived its deadline, a byte now and then keeping it up, or a name being looked up."""
        with self._turn:
            old, self._connection = self._connection, self._connect()
        old.close()

    def close(self) -> None:
        self.documents.shutdown(wait=False, cancel_futures=True)
        self.queries.shutdown(wait=False, cancel_futures=True)
        self._connection.close()


class OpenAICompatible:
    """A model of such a provider. `is_asked`: whether the number of dimensions is sent along; not all take it."""

    provider = "openai"

    def __init__(self, *, model: str, dimensions: int, is_asked: bool, line: Callable[[], ProviderConnection]) -> None:
        self.model = model
        self.dimensions = dimensions
        self._is_asked = is_asked
        self._line = line

    def embed_documents(self, texts: Sequence[str], *, within_s: float | None = None) -> Vectors:
        line = self._line()
        limits = line.limits
        until = time.monotonic() + min(within_s or limits.total_s, limits.total_s)
        batches = batched([vector_checks.readable(text) for text in texts], limits.batch)
        given_up = threading.Event()
        asked = [line.documents.submit(self._patiently, line, batch, until, given_up) for batch in batches]
        try:
            return [vector for future in asked for vector in _awaited(line, future, until)]
        finally:
            # When one batch failed, the others are of no use any more.
            given_up.set()
            for future in asked:
                future.cancel()

    def embed_query(self, text: str) -> list[float]:
        line = self._line()
        if wait := line.breaker.closed_in_s():
            raise EmbeddingUnavailable(retry_after_s=math.ceil(wait))
        until = time.monotonic() + line.limits.query_s
        future = line.queries.submit(self._once, line, [vector_checks.readable(text)], until)
        try:
            (vector,) = _awaited(line, future, until)
        except EmbeddingUnavailable:
            line.breaker.failed()
            raise
        except EmbeddingRefused:
            line.breaker.went_well()  # it answers; that is what this is about
            raise
        line.breaker.went_well()
        return vector

    def _once(self, line: ProviderConnection, texts: Sequence[str], until: float) -> Vectors:
        question = EmbeddingRequest(model=self.model, texts=texts, dimensions=self.dimensions, is_asked=self._is_asked)
        return line.ask(question, until)

    def _patiently(
        self, line: ProviderConnection, texts: Sequence[str], until: float, given_up: threading.Event
    ) -> Vectors:
        last_try = min(until, time.monotonic() + line.limits.retry_s)
        for attempt in count():
            try:
                return self._once(line, texts, min(until, time.monotonic() + line.limits.request_s))
            except EmbeddingMisconfigured:
                raise
            except EmbeddingUnavailable as error:
                wait = wait_s(line.limits.first_wait_s, attempt, error.retry_after_s, random.random())  # noqa: S311  (no secret)
                if time.monotonic() + wait > last_try or given_up.wait(wait):
                    raise
        raise AssertionError


def _awaited(line: ProviderConnection, future: Future[Vectors], until: float) -> Vectors:
    try:
        return future.result(timeout=max(0.0, until - time.monotonic()) + line.limits.grace_s)
    except TimeoutError:
        if not future.cancel():
            line.renew()
        raise EmbeddingUnavailable("The embedding provider did not answer in time.") from None


def native_dimensions(model: str, line: ProviderConnection, probe: str) -> int:
    """How many a model gives by itself."""
    until = time.monotonic() + line.limits.query_s
    future = line.queries.submit(line.ask, EmbeddingRequest(model=model, texts=[probe]), until)
    found = len(_awaited(line, future, until)[0])
    if found > LONGEST_DIMENSIONS:
        raise EmbeddingRefused(
            TOO_MANY_DIMENSIONS,
            f"The model gives {found} dimensions, more than the {LONGEST_DIMENSIONS} that can be stored. "
            "Ask for fewer with SVC_EMBEDDING_DIMENSIONS, or choose another model.",
        )
    return found

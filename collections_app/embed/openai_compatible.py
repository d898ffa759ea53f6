"""Embeds texts with an OpenAI-compatible provider: concurrent batches, retries, one deadline."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from collections_app.models import EmbeddingSpace

from . import vector_checks
from .errors import EmbeddingMisconfigured, EmbeddingUnavailable
from .request import MAX_DIMENSIONS, EmbeddingRequest, backoff_s, split_batches
from .vector_checks import Vectors

if TYPE_CHECKING:
    from .embedding_client import EmbeddingClient


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLimits:
    batch_size: int = 64
    concurrency: int = 4
    connect_s: float = 5.0
    read_s: float = 30.0
    request_s: float = 60.0
    # `total_s` limits all requests of one call together, `retry_s` the retries of one request.
    total_s: float = 120.0
    retry_s: float = 20.0
    first_backoff_s: float = 0.5
    # Short, because a search also works without vectors.
    query_s: float = 2.0
    query_concurrency: int = 4
    # Each request has its own deadline. A waiting caller allows this much more.
    grace_s: float = 0.25


class ProviderPool:
    """The connections and threads that all spaces of a process share."""

    def __init__(self, limits: ProviderLimits) -> None:
        self.limits = limits
        self._renewal_lock = threading.Lock()
        self._client = self._new_client()
        # One thread per concurrent request; further requests wait. Searches do not wait for documents.
        self.document_executor = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="embed")
        self.query_executor = ThreadPoolExecutor(limits.query_concurrency, thread_name_prefix="embed-query")

    def _new_client(self) -> "EmbeddingClient":
        # Imported late: the client takes a second and 40 MB, and most installations have no provider.
        from .embedding_client import EmbeddingClient  # noqa: PLC0415

        return EmbeddingClient(connect_s=self.limits.connect_s, read_s=self.limits.read_s)

    def embed(self, request: EmbeddingRequest, deadline: float) -> Vectors:
        body = self._client.send(request, deadline)
        return vector_checks.unit_vectors(vector_checks.parse_response(body, len(request.texts)), request.dimensions)

    def renew(self) -> None:
        """Replace the connections after a request exceeded its deadline, for example because bytes arrive slowly."""
        with self._renewal_lock:
            old_client, self._client = self._client, self._new_client()
        old_client.close()

    def close(self) -> None:
        self.document_executor.shutdown(wait=False, cancel_futures=True)
        self.query_executor.shutdown(wait=False, cancel_futures=True)
        self._client.close()


class OpenAIProvider:
    provider = "openai"

    def __init__(self, space: EmbeddingSpace, get_pool: Callable[[], ProviderPool]) -> None:
        self._space, self._get_pool = space, get_pool

    def embed_documents(self, texts: Sequence[str], *, timeout_s: float | None = None) -> Vectors:
        pool = self._get_pool()
        limits = pool.limits
        deadline = time.monotonic() + min(timeout_s or limits.total_s, limits.total_s)
        batches = split_batches([vector_checks.sendable_text(text) for text in texts], limits.batch_size)
        cancellation = threading.Event()
        futures = [
            pool.document_executor.submit(self._with_retries, pool, batch, deadline, cancellation) for batch in batches
        ]
        try:
            return [vector for future in futures for vector in _wait_for(pool, future, deadline)]
        finally:
            # If one batch fails, the others are useless.
            cancellation.set()
            for future in futures:
                future.cancel()

    def embed_query(self, text: str) -> list[float]:
        pool = self._get_pool()
        deadline = time.monotonic() + pool.limits.query_s
        future = pool.query_executor.submit(self._embed_once, pool, [vector_checks.sendable_text(text)], deadline)
        (vector,) = _wait_for(pool, future, deadline)
        return vector

    def _embed_once(self, pool: ProviderPool, texts: Sequence[str], deadline: float) -> Vectors:
        space = self._space
        request = EmbeddingRequest(
            model=space.model, texts=texts, dimensions=space.dimensions, sends_dimensions=space.asks_dimensions
        )
        return pool.embed(request, deadline)

    def _with_retries(
        self, pool: ProviderPool, texts: Sequence[str], deadline: float, cancellation: threading.Event
    ) -> Vectors:
        retry_deadline = min(deadline, time.monotonic() + pool.limits.retry_s)
        for attempt in count():
            try:
                return self._embed_once(pool, texts, min(deadline, time.monotonic() + pool.limits.request_s))
            except EmbeddingMisconfigured:
                raise
            except EmbeddingUnavailable as error:
                pause_s = backoff_s(pool.limits.first_backoff_s, attempt, error.retry_after_s, random.random())  # noqa: S311  (no secret)
                if time.monotonic() + pause_s > retry_deadline or cancellation.wait(pause_s):
                    raise
        raise AssertionError


def _wait_for(pool: ProviderPool, future: Future[Vectors], deadline: float) -> Vectors:
    try:
        return future.result(timeout=max(0.0, deadline - time.monotonic()) + pool.limits.grace_s)
    except TimeoutError:
        if not future.cancel():
            pool.renew()
        raise EmbeddingUnavailable("The embedding provider did not respond in time.") from None


def read_dimensions(model: str, pool: ProviderPool, probe_text: str) -> int:
    """Embeds a text to find out how many dimensions the model returns by default."""
    deadline = time.monotonic() + pool.limits.query_s
    future = pool.query_executor.submit(pool.embed, EmbeddingRequest(model=model, texts=[probe_text]), deadline)
    dimensions = len(_wait_for(pool, future, deadline)[0])
    if dimensions > MAX_DIMENSIONS:
        raise EmbeddingMisconfigured(
            f"The model returns {dimensions} dimensions, but at most {MAX_DIMENSIONS} can be stored. "
            "Set SVC_EMBEDDING_DIMENSIONS to a smaller number, or choose another model."
        )
    return dimensions

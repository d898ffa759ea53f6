"""One request to an OpenAI-compatible provider: with a deadline, limited in size, without secrets in errors."""

from __future__ import annotations

import math
import time

import httpx2
from openai import APIConnectionError, APITimeoutError, DefaultHttpxClient, OpenAI, OpenAIError, Timeout, omit

from system.outbound.errors import OutboundError
from system.outbound.trust import ssl_context

from .batches import retry_after_s
from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .request import EmbeddingRequest, Endpoint

# Before an answer began.
HUNG_UP = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
# What says that another form of the same request would be taken; anything else that is no success may pass.
REFUSALS = {
    400: "The embedding provider refused the texts (400): one may be longer than its model takes, or the number of "
    "dimensions may not be to its liking.",
    413: "The embedding provider found the texts too large (413).",
    422: "The embedding provider refused the texts (422).",
}
FOR_THE_OPERATOR = {
    401: "The embedding provider does not accept the key in OPENAI_API_KEY (401).",
    403: "The embedding provider does not allow this key to use the model (403).",
    404: "The embedding provider knows no such address or model (404): see OPENAI_BASE_URL and SVC_EMBEDDING_MODEL.",
}


class _Answered(Exception):
    """Another status than 200. Raised before the client reads what may be an endless body."""

    def __init__(self, status: int, retry_after: str | None) -> None:
        self.status = status
        self.retry_after = retry_after

    def as_error(self) -> EmbeddingUnavailable | EmbeddingRefused:
        if sentence := REFUSALS.get(self.status):
            return EmbeddingRefused(EmbeddingRefused.OF_THE_TEXTS, sentence)
        if sentence := FOR_THE_OPERATOR.get(self.status):
            return EmbeddingMisconfigured(sentence)
        if 300 <= self.status < 400:
            return EmbeddingMisconfigured(f"The embedding provider redirects ({self.status}): set its final address.")
        after_s = retry_after_s(self.retry_after)
        return EmbeddingUnavailable(
            f"The embedding provider does not answer just now ({self.status}).",
            retry_after_s=None if after_s is None else math.ceil(after_s),
        )


def _only_success(response: httpx2.Response) -> None:
    if response.status_code != 200:
        raise _Answered(response.status_code, response.headers.get("retry-after"))


class Connection:
    """Keeps its connections open between requests; for many threads."""

    def __init__(self, endpoint: Endpoint, *, connect_s: float, read_s: float) -> None:
        self._connect_s, self._read_s = connect_s, read_s
        try:
            trusted = ssl_context(endpoint.ca_bundle)
        except OutboundError as error:
            raise EmbeddingMisconfigured(str(error)) from None
        self._http = DefaultHttpxClient(
            verify=trusted,
            follow_redirects=False,  # they would take the key elsewhere
            event_hooks={"response": [_only_success]},
        )
        self._client = OpenAI(
            # Servers on one's own machine want none, but the client does.
            api_key=endpoint.api_key or "none",
            base_url=endpoint.base_url,
            max_retries=0,  # ours know the deadline of the whole
            http_client=self._http,
            default_headers={"Accept-Encoding": "identity"},  # nothing is unpacked, so there is no bomb to stop
        )

    def close(self) -> None:
        self._http.close()

    def ask(self, question: EmbeddingRequest, until: float) -> bytes:
        """The body of the answer; `until` is a moment of `time.monotonic`."""
        try:
            return self._ask_again_if_hung_up(question, until)
        except _Answered as answered:
            raise answered.as_error() from None
        # Nothing of what follows is handed on: it holds the request, with its texts and the key.
        except (APITimeoutError, httpx2.TimeoutException, TimeoutError):
            raise EmbeddingUnavailable("The embedding provider did not answer in time.") from None
        # A connection that another thread hung up shows as almost anything.
        except (OpenAIError, httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError, ValueError):
            raise EmbeddingUnavailable("No connection to the embedding provider, or it broke off.") from None

    def _ask_again_if_hung_up(self, question: EmbeddingRequest, until: float) -> bytes:
        """Once: a provider closes the connections that were idle for long, and may do so as one is used again."""
        try:
            return self._ask(question, until)
        except APIConnectionError as error:
            if not isinstance(error.__cause__, HUNG_UP):
                raise
        return self._ask(question, until)

    def _ask(self, question: EmbeddingRequest, until: float) -> bytes:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        with self._client.embeddings.with_streaming_response.create(
            input=list(question.texts),
            model=question.model,
            dimensions=question.dimensions if question.is_asked and question.dimensions else omit,
            encoding_format="float",  # what every server speaks
            timeout=Timeout(min(self._read_s, left), connect=min(self._connect_s, left)),
        ) as response:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise EmbeddingUnavailable("The embedding provider compressed its answer although asked not to.")
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) > question.most_bytes:
                    raise EmbeddingRefused("answer_too_large", "The embedding provider's answer is too large.")
                if time.monotonic() > until:
                    raise TimeoutError
            return bytes(body)

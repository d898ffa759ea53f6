"""Sends one request to an OpenAI-compatible provider, with a deadline, a size limit and no secrets in errors."""

import time
from typing import Any

import httpx2
from django.conf import settings
from openai import APIConnectionError, APITimeoutError, DefaultHttpxClient, OpenAI, OpenAIError, Timeout, omit

from system.outbound.errors import OutboundError
from system.outbound.trust import ssl_context

from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .request import EmbeddingRequest, parse_retry_after

# Errors raised before a response has begun.
DISCONNECT_ERRORS = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
# Statuses for texts that the provider refuses. Other errors may be temporary.
TEXT_ERROR_MESSAGES = {
    400: "The embedding provider refused the texts (HTTP 400). A text may be too long for the model, or the number of "
    "dimensions may not be supported.",
    413: "The embedding provider refused the texts because they are too large (HTTP 413).",
    422: "The embedding provider refused the texts (HTTP 422).",
}
CONFIGURATION_ERROR_MESSAGES = {
    401: "The embedding provider requires a valid key (HTTP 401). Check OPENAI_API_KEY.",
    403: "The embedding provider does not allow this key to use the model (HTTP 403).",
    404: "The embedding provider does not know this URL or model (HTTP 404). Check OPENAI_BASE_URL and "
    "SVC_EMBEDDING_MODEL.",
}


def _raise_for_status(response: httpx2.Response) -> None:
    """Raise an error for any status but 200, before the client reads the body, which may be endless."""
    status = response.status_code
    if message := TEXT_ERROR_MESSAGES.get(status):
        raise EmbeddingRefused(EmbeddingRefused.TEXTS_REFUSED_CODE, message)
    if message := CONFIGURATION_ERROR_MESSAGES.get(status):
        raise EmbeddingMisconfigured(message)
    if 300 <= status < 400:
        raise EmbeddingMisconfigured(
            f"The embedding provider redirects requests (HTTP {status}). Set OPENAI_BASE_URL to the final URL."
        )
    if status != 200:
        raise EmbeddingUnavailable(
            f"The embedding provider is unavailable (HTTP {status}).",
            retry_after_s=parse_retry_after(response.headers.get("retry-after")),
        )


class EmbeddingClient:
    """Sends requests to the configured provider over a pool of open connections; thread-safe."""

    def __init__(self, *, connect_s: float, read_s: float) -> None:
        options: dict[str, Any] = settings.EMBEDDING
        self._connect_s, self._read_s = connect_s, read_s
        try:
            tls_context = ssl_context(options["ca_bundle"])
        except OutboundError as error:
            raise EmbeddingMisconfigured(str(error)) from None
        self._http = DefaultHttpxClient(
            verify=tls_context,
            follow_redirects=False,  # a redirect would send the key to another server
            event_hooks={"response": [_raise_for_status]},
        )
        self._client = OpenAI(
            # Local servers need no key, but the client requires one.
            api_key=options["api_key"] or "none",
            base_url=options["base_url"],
            max_retries=0,  # the caller retries within its deadline
            http_client=self._http,
            default_headers={"Accept-Encoding": "identity"},  # prevents decompression bombs
        )

    def close(self) -> None:
        self._http.close()

    def send(self, request: EmbeddingRequest, deadline: float) -> bytes:
        """Send the request and return the body of the response; `deadline` is a time of `time.monotonic`."""
        try:
            return self._send_with_retry(request, deadline)
        # These exceptions contain the request with its texts and the key, so they are not chained.
        except (APITimeoutError, httpx2.TimeoutException, TimeoutError):
            raise EmbeddingUnavailable("The embedding provider did not respond in time.") from None
        # A connection closed by another thread can raise almost any of these.
        except (OpenAIError, httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError, ValueError):
            raise EmbeddingUnavailable("The connection to the embedding provider failed or was interrupted.") from None

    def _send_with_retry(self, request: EmbeddingRequest, deadline: float) -> bytes:
        """Retry once, because a provider may close an idle connection just as it is used again."""
        try:
            return self._send(request, deadline)
        except APIConnectionError as error:
            if not isinstance(error.__cause__, DISCONNECT_ERRORS):
                raise
        return self._send(request, deadline)

    def _send(self, request: EmbeddingRequest, deadline: float) -> bytes:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        with self._client.embeddings.with_streaming_response.create(
            input=list(request.texts),
            model=request.model,
            dimensions=request.dimensions if request.sends_dimensions and request.dimensions else omit,
            encoding_format="float",  # supported by every server
            timeout=Timeout(min(self._read_s, remaining_s), connect=min(self._connect_s, remaining_s)),
        ) as response:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise EmbeddingUnavailable(
                    "The embedding provider sent a compressed response, which was not requested."
                )
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) > request.max_response_bytes:
                    raise EmbeddingRefused("answer_too_large", "The embedding provider's response is too large.")
                if time.monotonic() > deadline:
                    raise TimeoutError
            return bytes(body)

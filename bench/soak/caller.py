"""Sends requests, and retries them until they are acknowledged. A refused write must not count as done."""

import http.client
import json
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from bench.soak.tally import NO_RESPONSE, RETRY_STATUSES, Tally

RETRY_TIMEOUT_S = 180.0
MAX_RETRY_WAIT_S = 1.0
# The first request with the same key is still running, or its process was killed and the server has not noticed yet.
IN_PROGRESS_CODE = "idempotency_in_progress"


@dataclass(frozen=True)
class Response:
    status: int
    body: Any
    retry_after_s: float = 0.0
    code: str = ""
    try_count: int = 1


@dataclass(frozen=True)
class Caller:
    port: int
    key: str
    tally: Tally

    def call(
        self, kind: str, method: str, path: str, body: Any = None, *,
        query: dict[str, Any] | None = None, headers: dict[str, str] | None = None,
    ) -> Response:  # fmt: skip
        """The first response that does not ask for a retry."""
        first_sent_at, try_count = time.monotonic(), 0
        while True:
            sent_at, try_count = time.monotonic(), try_count + 1
            response = self._send_once(method, path, body, query, headers)
            if response.status not in (*RETRY_STATUSES, NO_RESPONSE) and response.code != IN_PROGRESS_CODE:
                now = time.monotonic()
                self.tally.add_timing(kind, now - sent_at, now - first_sent_at)
                break
            self.tally.add_refusal(kind, response.status, sent_at)
            if sent_at > first_sent_at + RETRY_TIMEOUT_S:
                self.tally.add_error(
                    f"{kind} was not answered for {RETRY_TIMEOUT_S:.0f} s; the last status was {response.status}"
                )
                break
            time.sleep(min(MAX_RETRY_WAIT_S, response.retry_after_s or 0.2))
        return replace(response, try_count=try_count)

    def _send_once(
        self, method: str, path: str, body: Any, query: dict[str, Any] | None, headers: dict[str, str] | None
    ) -> Response:
        """Uses a new connection, because a server that shuts down may close an idle one."""
        target = quote(path) + ("?" + urlencode(query) if query else "")
        request_headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            try:
                connection.request(method, target, None if body is None else json.dumps(body), request_headers)
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException):
                return Response(NO_RESPONSE, None)
        retry_after_s = float(response.headers.get("Retry-After") or 0)
        return _parse_response(response.status, content, retry_after_s)


def _parse_response(status: int, content: bytes, retry_after_s: float) -> Response:
    try:
        body = json.loads(content) if content else None
    except ValueError:
        return Response(status, content[:200], retry_after_s)
    errors = body.get("errors") if isinstance(body, dict) else None
    return Response(status, body, retry_after_s, errors[0].get("code", "") if errors else "")

"""Sends one request until it is acknowledged, because nothing that was refused may count as done."""

import http.client
import json
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from bench.soak.tally import RETRY_LATER, UNREACHABLE, Tally

GIVEN_UP_AFTER_S = 180.0
MAX_WAIT_S = 1.0
# The first of two requests with one key still runs, or its process was killed and nobody knows yet.
STILL_RUNS = "idempotency_in_progress"


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    wait_s: float = 0.0
    code: str = ""
    tries: int = 1


@dataclass(frozen=True)
class Caller:
    port: int
    key: str
    tally: Tally

    def call(self, kind: str, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """The first answer that is not to come back later; `query` and `headers` may be given."""
        first, tries = time.monotonic(), 0
        while True:
            started, tries = time.monotonic(), tries + 1
            answer = self._once(method, path, body, more.get("query"), more.get("headers"))
            if answer.status not in (*RETRY_LATER, UNREACHABLE) and answer.code != STILL_RUNS:
                now = time.monotonic()
                self.tally.answered(kind, now - started, now - first)
                break
            self.tally.refused(kind, answer.status, started)
            if started > first + GIVEN_UP_AFTER_S:
                self.tally.is_wrong(f"{kind} was not answered for {GIVEN_UP_AFTER_S:.0f} s, at last {answer.status}")
                break
            time.sleep(min(MAX_WAIT_S, answer.wait_s or 0.2))
        return replace(answer, tries=tries)

    def _once(
        self, method: str, path: str, body: Any, query: dict[str, Any] | None, headers: dict[str, str] | None
    ) -> Answer:
        """On a connection of its own: one that was kept may be closed by a server that ends in good order."""
        address = quote(path) + ("?" + urlencode(query) if query else "")
        all_headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as link:
            try:
                link.request(method, address, None if body is None else json.dumps(body), all_headers)
                answer = link.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException):
                return Answer(UNREACHABLE, None)
        wait_s = float(answer.headers.get("Retry-After") or 0)
        return _read(answer.status, text, wait_s)


def _read(status: int, text: bytes, wait_s: float) -> Answer:
    try:
        body = json.loads(text) if text else None
    except ValueError:
        return Answer(status, text[:200], wait_s)
    errors = body.get("errors") if isinstance(body, dict) else None
    return Answer(status, body, wait_s, errors[0].get("code", "") if errors else "")

"""How long this process pauses after a failure of a provider: longer each time, for all documents.

Chosen: in memory. A restarted process sends one more request, which costs less than a shared row.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from system import process_cache

FIRST_S = 5.0
LONGEST_S = 120.0


Reason = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float
    until: float
    # Code and message of the failure, or None for the general ones.
    reason: Reason = (None, None)


_pauses: dict[int, Pause] = {}
_turn = threading.Lock()


def left_s(space_id: int) -> float:
    """The remaining pause of the space's provider; 0 if it can be called."""
    pause = _pauses.get(space_id)
    return max(0.0, pause.until - time.monotonic()) if pause else 0.0


def reason(space_id: int) -> Reason:
    """Of the pause, so that all who wait for its end can say what is to be mended."""
    pause = _pauses.get(space_id)
    return pause.reason if pause else (None, None)


def after_failure(space_id: int, asked_s: float | None, why: Reason = (None, None)) -> float:
    """How long to wait now; at least as long as the provider asks for."""
    with _turn:
        before = _pauses.get(space_id)
        if before is not None and before.until > time.monotonic():
            return left_s(space_id)  # it was not even asked, or another thread failed at the same time
        longer = min(LONGEST_S, before.seconds * 2) if before else FIRST_S
        seconds = max(longer, asked_s or 0.0)
        _pauses[space_id] = Pause(longer, time.monotonic() + seconds, why)
        return seconds


def went_well(space_id: int) -> None:
    _pauses.pop(space_id, None)


def forget() -> None:
    _pauses.clear()


# One for each embedding space, of which the operator makes few.
process_cache.register("pauses of embedding providers", forget)

"""What a request wants done with one record, and what a write answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .catalogue import Table
from .params import Shown
from .reading import RecordAnswer, Request

Body = dict[str, Any]


@dataclass(frozen=True)
class Change:
    request: Request
    table: Table
    body: Body
    shown: Shown
    by_display: bool = False
    # Whether If-Match names this version; None without the header.
    is_current: Callable[[int | None], bool] | None = None


@dataclass(frozen=True)
class Written:
    """`answer` is None when the caller may not read what became of the record."""

    sys_id: str
    answer: RecordAnswer | None

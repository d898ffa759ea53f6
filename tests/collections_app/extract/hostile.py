"""Hostile files, each with its format and its allowed outcomes.

`outcome` is a pattern for the code of `UnreadableFile`, or "text" when it is simply read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Case:
    format: str
    make: Callable[[], bytes]
    outcome: str
    limits: dict[str, Any] = field(default_factory=dict)


ARCHIVES: dict[str, Case] = {}
PDFS: dict[str, Case] = {}
TEXTS: dict[str, Case] = {}


def case(cases: dict[str, Case], format: str, outcome: str, **limits: Any) -> Callable[[Any], Any]:
    """Registers the decorated function under its name."""

    def enter(make: Callable[[], bytes]) -> Callable[[], bytes]:
        add(cases, format, make.__name__.replace("_", " "), make, outcome, **limits)
        return make

    return enter


def add(cases: dict[str, Case], format: str, name: str, make: Callable[[], bytes], outcome: str, **limits: Any) -> None:
    assert f"{format}: {name}" not in cases
    cases[f"{format}: {name}"] = Case(format=format, make=make, outcome=outcome, limits=limits)

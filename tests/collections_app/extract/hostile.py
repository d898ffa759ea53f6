"""Hostile files, each with its format and its allowed outcomes.

`outcome` is a pattern for the code of `UnreadableFile`, or "text" for a file that is read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class HostileFile:
    format: str
    build: Callable[[], bytes]
    outcome: str
    changed_limits: dict[str, Any] = field(default_factory=dict)


ARCHIVES: dict[str, HostileFile] = {}
PDFS: dict[str, HostileFile] = {}
TEXTS: dict[str, HostileFile] = {}


def hostile_file(registry: dict[str, HostileFile], format: str, outcome: str, **limits: Any) -> Callable[[Any], Any]:
    """Registers the decorated function as a hostile file with the name of the function."""

    def register(build: Callable[[], bytes]) -> Callable[[], bytes]:
        add_file(registry, format, build.__name__.replace("_", " "), build, outcome, **limits)
        return build

    return register


def add_file(
    registry: dict[str, HostileFile], format: str, name: str, build: Callable[[], bytes], outcome: str, **limits: Any
) -> None:
    assert f"{format}: {name}" not in registry
    registry[f"{format}: {name}"] = HostileFile(format=format, build=build, outcome=outcome, changed_limits=limits)

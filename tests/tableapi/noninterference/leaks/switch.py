"""Registers leaks and switches them on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from django.db import connection

from tableapi.query.expressions import ALWAYS, ResolvedPath
from tableapi.query.path_resolver import RuleScope

InstallFunction = Callable[[ExitStack], None]


@dataclass(frozen=True)
class Leak:
    """`finder` is the check that detects the leak; see FINDERS in `test_leaks`."""

    install: InstallFunction
    cases: tuple[str, ...]
    finder: str


LEAKS: dict[str, Leak] = {}


def leak(*cases: str, finder: str = "pairs") -> Callable[[InstallFunction], InstallFunction]:
    def register(install: InstallFunction) -> InstallFunction:
        LEAKS[install.__name__] = Leak(install, cases, finder)
        return install

    return register


@contextmanager
def active_leak(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        LEAKS[name].install(stack)
        yield


def replace_function(stack: ExitStack, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
    """Replace a function. The replacement is called with the original function and its arguments."""
    original = getattr(owner, name)

    def call_replacement(*args: Any, **kwargs: Any) -> Any:
        return replacement(original, *args, **kwargs)

    stack.enter_context(patch.object(owner, name, call_replacement))


def with_full_scope(original: Any, scope: Any, *args: Any, **kwargs: Any) -> Any:
    return original(RuleScope(scope.catalogue), *args, **kwargs)


def without_guard(path: ResolvedPath) -> ResolvedPath:
    return replace(path, guard=ALWAYS)


def row_count(table: str, sys_id: str = "") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM records."{table}" WHERE sys_id = %s OR %s', [sys_id, not sys_id])
        return int(cursor.fetchone()[0])

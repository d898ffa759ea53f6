"""The list of leaks, and how one is switched on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from django.db import connection

from tableapi.query.expressions import ALWAYS, ResolvedPath
from tableapi.query.path_resolver import RuleScope

Install = Callable[[ExitStack], None]


@dataclass(frozen=True)
class Leak:
    """`by` says how it shows: see FINDERS in `test_leaks`."""

    install: Install
    cases: tuple[str, ...]
    by: str


LEAKS: dict[str, Leak] = {}


def leak(*cases: str, by: str = "pairs") -> Callable[[Install], Install]:
    def add(found: Install) -> Install:
        LEAKS[found.__name__] = Leak(found, cases, by)
        return found

    return add


@contextmanager
def switched_on(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        LEAKS[name].install(stack)
        yield


def instead(stack: ExitStack, where: Any, name: str, wrap: Callable[..., Any]) -> None:
    """`wrap` stands there; it gets the right function first, then what that would get."""
    right = getattr(where, name)

    def wrong(*positional: Any, **named: Any) -> Any:
        return wrap(right, *positional, **named)

    stack.enter_context(patch.object(where, name, wrong))


def with_open_eyes(right: Any, eyes: Any, *rest: Any, **named: Any) -> Any:
    return right(RuleScope(eyes.catalogue), *rest, **named)


def unguarded(leaf: ResolvedPath) -> ResolvedPath:
    return replace(leaf, guard=ALWAYS)


def count_of(table: str, sys_id: str = "") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM records."{table}" WHERE sys_id = %s OR %s', [sys_id, not sys_id])
        return int(cursor.fetchone()[0])

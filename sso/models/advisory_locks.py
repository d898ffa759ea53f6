"""In charge of who waits for whom where no row could be locked: advisory locks, held to the end of a transaction."""

import hashlib

from django.db import connection

CONNECTIONS = 7_301_030
SIGN_OUTS = 7_301_031
REFUSALS = 7_301_032


def alone(lock: int) -> None:
    """Nobody else is behind this lock from here on."""
    _take("SELECT pg_advisory_xact_lock(%s)", [lock])


def alone_with(lock: int, name: str) -> None:
    """Nobody else who names the same."""
    _take("SELECT pg_advisory_xact_lock(%s, %s)", [lock, _number(name)])


def beside_others_with(lock: int, name: str) -> None:
    """Others may be here too, but nobody who wants to be alone with the same name."""
    _take("SELECT pg_advisory_xact_lock_shared(%s, %s)", [lock, _number(name)])


def _number(name: str) -> int:
    """Two names of one number wait for each other, which harms nobody."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)


def _take(statement: str, parameters: list[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)

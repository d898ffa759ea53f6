"""Advisory locks, held until the end of the transaction, for cases without a row to lock."""

import hashlib

from system.plain_sql import run_statement

CONNECTIONS_LOCK = 7_301_030
SIGN_OUTS_LOCK = 7_301_031
REFUSALS_LOCK = 7_301_032


def lock(key: int) -> None:
    run_statement("SELECT pg_advisory_xact_lock(%s)", [key])


def lock_named(key: int, name: str) -> None:
    """Exclusive among callers with the same name."""
    run_statement("SELECT pg_advisory_xact_lock(%s, %s)", [key, _lock_number(name)])


def lock_shared(key: int, name: str) -> None:
    """Shared with other shared locks, but not with `lock_named` of the same name."""
    run_statement("SELECT pg_advisory_xact_lock_shared(%s, %s)", [key, _lock_number(name)])


def _lock_number(name: str) -> int:
    """Names with the same number wait for each other, which is harmless."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)

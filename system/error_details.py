"""Describes errors for logs: class, SQLSTATE and traceback, but never the text, which can contain data."""

from traceback import format_tb
from typing import Any

# SQLSTATEs
DISK_FULL = "53100"
QUERY_CANCELED = "57014"


def sqlstate_of(error: BaseException) -> str:
    """PostgreSQL's error code; empty if the error did not come from PostgreSQL."""
    return getattr(error.__cause__, "sqlstate", None) or ""


def is_disk_full(error: BaseException) -> bool:
    return sqlstate_of(error) == DISK_FULL


def is_statement_timeout(error: BaseException) -> bool:
    """PostgreSQL uses one code for statement timeouts and for cancellations by an administrator; only the messages
    differ. If the messages of the server are not in English, both count as a timeout."""
    if sqlstate_of(error) != QUERY_CANCELED:
        return False
    cause: Any = error.__cause__
    return "user request" not in (cause.diag.message_primary or "")


def describe_safely(error: Exception) -> dict[str, str]:
    traceback_text = "".join(format_tb(error.__traceback__, limit=-12))
    return {"kind": type(error).__name__, "sqlstate": sqlstate_of(error), "where": traceback_text}

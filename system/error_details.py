"""What may be logged about an error: class, SQLSTATE and traceback, but never its text, which can contain data."""

from traceback import format_tb

DISK_FULL = "53100"  # a SQLSTATE


def sqlstate_of(error: BaseException) -> str:
    """PostgreSQL's error code; empty if the error did not come from PostgreSQL."""
    return getattr(error.__cause__, "sqlstate", None) or ""


def is_disk_full(error: BaseException) -> bool:
    return sqlstate_of(error) == DISK_FULL


def describe_safely(error: Exception) -> dict[str, str]:
    where = "".join(format_tb(error.__traceback__, limit=-12))
    return {"kind": type(error).__name__, "sqlstate": sqlstate_of(error), "where": where}

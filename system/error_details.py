"""What a log may say of an error: its kind, PostgreSQL's code and where, never its own words: they may hold data."""

from traceback import format_tb


def sqlstate_of(error: BaseException) -> str:
    """PostgreSQL's code of what went wrong; empty when it was not PostgreSQL."""
    return getattr(error.__cause__, "sqlstate", None) or ""


def describe_safely(error: Exception) -> dict[str, str]:
    where = "".join(format_tb(error.__traceback__, limit=-12))
    return {"kind": type(error).__name__, "sqlstate": sqlstate_of(error), "where": where}

"""The time zones that a user can choose: those that both Python and the database know."""

from collections.abc import Iterable
from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError

from system.plain_sql import fetch_rows


@cache
def names() -> tuple[str, ...]:
    database_names = {name for (name,) in fetch_rows("SELECT name FROM pg_timezone_names")}
    python_names = {name for name in available_timezones() if "/" in name and not name.startswith("Etc/")}
    return ("UTC", *sorted(python_names & database_names))


def check_name(name: str) -> None:
    if name != "UTC" and name not in names():
        raise ValidationError("Expected the name of a time zone, such as Europe/Berlin.")


@cache
def zone_of(name: str) -> tzinfo:
    """Returns UTC for a name that is no longer known."""
    return UTC if name == "UTC" or name not in names() else ZoneInfo(name)


def choices(current_name: str) -> list[tuple[str, str | list[tuple[str, str]]]]:
    """Choices of a select, with the current name even if it is no longer known."""
    return _group_by_area(dict.fromkeys((*names(), current_name)))


def _group_by_area(names: Iterable[str]) -> list[tuple[str, str | list[tuple[str, str]]]]:
    """Choices of a select, with a group for each continent or ocean.

    >>> _group_by_area(["UTC", "Asia/Hong_Kong", "Asia/Tokyo"])
    [('UTC', 'UTC'), ('Asia', [('Asia/Hong_Kong', 'Hong Kong'), ('Asia/Tokyo', 'Tokyo')])]
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        area, _, place = name.partition("/")
        groups.setdefault(area, []).append((name, place.replace("_", " ")))
    return [(area, places if places[0][1] else area) for area, places in groups.items()]

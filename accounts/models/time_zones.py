"""The time zones that a person can choose: those that Python and the database both know."""

from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError

from system.plain_sql import fetch_rows


@cache
def names() -> tuple[str, ...]:
    in_database = {name for (name,) in fetch_rows("SELECT name FROM pg_timezone_names")}
    places = {name for name in available_timezones() if "/" in name and not name.startswith("Etc/")}
    return ("UTC", *sorted(places & in_database))


def check_name(name: str) -> None:
    if name != "UTC" and name not in names():
        raise ValidationError("Expected the name of a time zone, such as Europe/Berlin.")


@cache
def zone_of(name: str) -> tzinfo:
    """A zone that is no longer known counts as UTC."""
    return UTC if name == "UTC" or name not in names() else ZoneInfo(name)

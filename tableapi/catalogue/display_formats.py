"""Formats and parses display values, for types whose display value differs from the stored value. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

YES_LABEL, NO_LABEL = "Yes", "No"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DISPLAY_TIME = re.compile(rf"([0-9]{{1,2}}) ({'|'.join(_MONTHS)}) ([0-9]{{4}})( [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}})?")
_UNIT_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(" ?".join(f"(?:([0-9]{{1,15}}){unit})?" for unit in _UNIT_SECONDS))
_PERCENT = re.compile(r"(.*[0-9]) ?%")
# Upper-case aliases cannot conflict with column names. The subselect computes the value only once.
_DURATION_SQL = """(SELECT CASE WHEN "S" = 0 THEN '0m' ELSE nullif(concat_ws(' ',
    nullif("S" / 86400, 0) || 'd', nullif(mod("S", 86400) / 3600, 0) || 'h',
    nullif(mod("S", 3600) / 60, 0) || 'm', nullif(mod("S", 60), 0) || 's'), '') END FROM (SELECT {} AS "S") "D")"""


@dataclass(frozen=True, slots=True)
class DisplayFormat:
    """`sql` computes the display value of a stored value. `parse` converts a display value to one that the reader of
    the type accepts, and returns anything else unchanged. `stored_texts` returns the stored values that have a display
    value, as PostgreSQL formats them.
    """

    sql: str
    parse: Callable[[Any], Any]
    stored_texts: Callable[[str], list[str]]


def value_with_label(label: Any, labeled_values: Sequence[tuple[str, Any]]) -> Any:
    """The value with this label, matched exactly, then ignoring case; None if there is no unique match.

    >>> value_with_label("yes", [("Yes", True), ("No", False)]), value_with_label("maybe", [("Yes", True)])
    (True, None)
    """
    if isinstance(label, bool) or not isinstance(label, str | int):
        return None
    text = str(label)
    exact_matches = [value for other, value in labeled_values if other == text]
    matches = exact_matches or [value for other, value in labeled_values if other.casefold() == text.casefold()]
    return matches[0] if len(matches) == 1 else None


def _to_boolean(value: Any) -> Any:
    boolean = value_with_label(value, [(YES_LABEL, True), (NO_LABEL, False)])
    return value if boolean is None else boolean


def _to_iso(value: Any) -> Any:
    """
    >>> _to_iso("9 May 2024 13:45:00"), _to_iso("9 May 2024"), _to_iso("2024-05-09")
    ('2024-05-09 13:45:00', '2024-05-09', '2024-05-09')
    """
    match = _DISPLAY_TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    day, month, year, time = match.groups()
    return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}{time or ''}"


def _to_seconds(value: Any) -> Any:
    """
    >>> _to_seconds("1d 2h 3m"), _to_seconds("90m"), _to_seconds("0m"), _to_seconds("2h 1d"), _to_seconds(90)
    (93780, 5400, 0, '2h 1d', 90)
    """
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None or not any(match.groups()):
        return value
    return sum(int(count or 0) * seconds for count, seconds in zip(match.groups(), _UNIT_SECONDS.values(), strict=True))


def duration_text(seconds: int) -> str:
    """The display value of a duration, as the database computes it.

    >>> duration_text(93_784), duration_text(0)
    ('1d 2h 3m 4s', '0m')
    """
    parts = []
    for unit, size in _UNIT_SECONDS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return " ".join(parts) or "0m"


def _to_number(value: Any) -> Any:
    """
    >>> _to_number("12.5%"), _to_number("12.5 %"), _to_number("%"), _to_number(5)
    ('12.5', '12.5', '%', 5)
    """
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else value


BOOLEAN = DisplayFormat(
    sql=f"CASE {{}} WHEN TRUE THEN '{YES_LABEL}' WHEN FALSE THEN '{NO_LABEL}' END",
    parse=_to_boolean,
    stored_texts=lambda text: {YES_LABEL: ["true"], NO_LABEL: ["false"]}.get(text, []),
)
DATE = DisplayFormat(sql="to_char({}, 'FMDD Mon YYYY')", parse=_to_iso, stored_texts=lambda text: [_to_iso(text)])
DATETIME = DisplayFormat(
    sql="to_char({} AT TIME ZONE 'UTC', 'FMDD Mon YYYY HH24:MI:SS')",
    parse=_to_iso,
    stored_texts=lambda text: [f"{_to_iso(text)}+00"],
)
DURATION = DisplayFormat(sql=_DURATION_SQL, parse=_to_seconds, stored_texts=lambda text: [str(_to_seconds(text))])
PERCENT = DisplayFormat(sql="({} || '%')", parse=_to_number, stored_texts=lambda text: [_to_number(text)])

"""In charge of values as people read them, on their way back: what is stored for what an answer shows. Pure.

`answers.shown` is the way there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from system.errors import Invalid
from tableapi.catalogue.definitions import Column

NAMED = 20
YES, NO = "Yes", "No"

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = re.compile(rf"([0-9]{{1,2}}) ({'|'.join(_MONTHS)}) ([0-9]{{4}})( [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}})?")
_TIMES = frozenset({"date", "datetime"})


def back(column: Column, given: Any) -> Any:
    """What `values.read` takes, for a value as people read it. References are looked up elsewhere."""
    if given is None or given == "":
        return given
    if column.type == "choice":
        found = _named(given, [(label, value) for value, label in column.choices])
        if found is None:
            raise Invalid(not_among([label for _, label in column.choices]), field=column.name)
        return found
    if column.type == "boolean":
        found = _named(given, [(YES, True), (NO, False)])
        return given if found is None else found
    return _as_iso(given) if column.type in _TIMES and isinstance(given, str) else given


def not_among(choices: Sequence[str]) -> str:
    """Names what there is, as far as it is short."""
    more = ", …" if len(choices) > NAMED else ""
    return f"This is not one of the column's choices: {', '.join(choices[:NAMED]) or 'it has none'}{more}."


def stored_texts(column: Column, shown: str) -> list[str]:
    """The texts, as PostgreSQL writes them, of the values of a display column that people read so."""
    if column.type == "choice":
        # A value that is no choice any more is shown as it is.
        labelled = [value for value, label in column.choices if label == shown]
        return labelled + ([shown] if shown not in dict(column.choices) else [])
    if column.type == "boolean":
        return {YES: ["true"], NO: ["false"]}.get(shown, [])
    if column.type == "date":
        return [_as_iso(shown)]
    if column.type == "datetime":
        return [f"{_as_iso(shown)}+00"]
    return [shown]


def _named(given: Any, values: list[tuple[str, Any]]) -> Any:
    """The one value of this label: as spelled, else otherwise spelled."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        return None
    text = str(given)
    exact = [value for label, value in values if label == text]
    found = exact or [value for label, value in values if label.casefold() == text.casefold()]
    return found[0] if len(found) == 1 else None


def _as_iso(text: str) -> str:
    """
    >>> _as_iso("9 May 2024 13:45:00"), _as_iso("9 May 2024"), _as_iso("2024-05-09")
    ('2024-05-09 13:45:00', '2024-05-09', '2024-05-09')
    """
    found = _TIME.fullmatch(text)
    if found is None:
        return text
    day, month, year, clock = found.groups()
    return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}{clock or ''}"

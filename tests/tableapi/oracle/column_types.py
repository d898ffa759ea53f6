"""The oracle's own definitions of the column types, independent of the product's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

NOW = datetime(2024, 5, 31, 12, 0, 30, tzinfo=UTC)

TEXT_SAMPLES = [
    "a", "A", "ab", "aB", "b", "B", "ba", "д", "Д", "é", "É", "1", "10", "9", "a b", " a",
    "%", "a%b", "_", "a_b", "\\", "a\\b", "x^y", "a)", "(a", "'", '"', "{", "}", "--",
]  # fmt: skip
WORD_VALUES = ["fox", "Fox", "red", "red fox", "RED ox", "ox", "redfox"]

INSTANT_VALUES = [
    datetime(2023, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 0, 30, tzinfo=UTC),
    datetime(2024, 4, 30, 12, 0, 30, tzinfo=UTC),
    datetime(2024, 5, 30, 12, 0, 30, tzinfo=UTC),
    datetime(2024, 5, 31, tzinfo=UTC),
    datetime(2024, 5, 31, 11, 0, 30, tzinfo=UTC),
    datetime(2024, 5, 31, 12, 0, 29, 999999, tzinfo=UTC),
    NOW,
    datetime(2024, 5, 31, 12, 0, 30, 500000, tzinfo=UTC),
    datetime(2024, 5, 31, 12, 0, 31, tzinfo=UTC),
    datetime(2024, 5, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 6, 1, tzinfo=UTC),
    datetime(2024, 12, 30, 6, 7, 8, tzinfo=UTC),
]
DATE_VALUES = [
    date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29), date(2024, 4, 30), date(2024, 5, 30),
    date(2024, 5, 31), date(2024, 6, 1), date(2024, 6, 30), date(2024, 12, 30),
]  # fmt: skip

CHOICE_VALUES = ["1", "2", "10", "a", "A", "д"]

NUMBER_VALUES = ["-1", "0", "1", "2", "9", "10"]
FRACTION_VALUES = ["1.0", "1.5"]
TIME_VALUES = [
    "2023-12-31", "2024-01-01", "2024-02-29", "2024-05-31", "2024-06-01", "2024-06-30", "2024-12-30",
    "2024-05-31 12:00:30", "2024-05-31 12:00", "2024-05-31T12:00:30.7Z", "2024-05-31T15:00:30+03:00",
    "2024-05-31 12:00:29", "2024-06-01T01:00:00+02:00", "2024-05-31 23:59:59", "2023-12-31 23:59:59",
    "javascript:gs.now()", "javascript:gs.beginningOfToday()", "javascript:gs.endOfToday()",
    "javascript:gs.hoursAgo(1)", "javascript:gs.daysAgoEnd(1)", "javascript:gs.monthsAgoStart(-1)",
]  # fmt: skip
CURRENT_USER = "javascript:gs.getUserID()"
URL_VALUES = ["https://a.example/x", "HTTPS://A.example/x", "http://b.example/?a=b&c", "http://a.example"]
EMAIL_VALUES = ["a@a.example", "A@a.example", "b@a.example", "a.b@b.example"]
INVALID_INTEGERS = ["a", "1.0", "1.5", "9223372036854775808", "javascript:gs.now()"]


@dataclass(frozen=True)
class TypeRow:
    """Columns of one family can be compared with each other. `stored_values` are values of records,
    `query_texts` are texts of values in queries, `refused_texts` are invalid for the type.
    """

    family: str
    stored_values: list[Any]
    query_texts: list[str]
    refused_texts: tuple[str, ...] = ()
    is_whole: bool = False
    is_sortable: bool = True


TEXT_VALUES = [*TEXT_SAMPLES, *WORD_VALUES, CURRENT_USER]
TYPE_ROWS = {
    "string": TypeRow("text", [None, "", *TEXT_SAMPLES], TEXT_VALUES, ("javascript:gs.now()",)),
    "text": TypeRow("text", [None, "", *TEXT_SAMPLES], TEXT_VALUES),
    "wysiwyg": TypeRow(
        "text", [None, "", "<p></p>", *(f"<p>{text}</p>" for text in TEXT_SAMPLES), "<b>a</b>b"], TEXT_VALUES
    ),
    "url": TypeRow("text", [None, *URL_VALUES], [*URL_VALUES, "a", "A", "https://"], ("javascript:gs.now()",)),
    "email": TypeRow("text", [None, *EMAIL_VALUES], [*EMAIL_VALUES, "a", "A", "@a.example"], ("javascript:gs.now()",)),
    "integer": TypeRow("number", [None, -1, 0, 1, 2, 10], NUMBER_VALUES, tuple(INVALID_INTEGERS), is_whole=True),
    "duration": TypeRow("number", [None, 0, 1, 2, 10, 3600], NUMBER_VALUES, ("1h", *INVALID_INTEGERS), is_whole=True),
    "decimal": TypeRow(
        "number",
        [None, *map(Decimal, ("-1", "0", "1", "1.5", "1.50", "2", "10"))],
        [*NUMBER_VALUES, *FRACTION_VALUES],
        ("1,5", "javascript:gs.now()"),
    ),
    "percent": TypeRow(
        "number",
        [None, *map(Decimal, ("0", "1", "1.5", "1.50", "10", "100"))],
        [*NUMBER_VALUES, *FRACTION_VALUES],
        ("1%", "1,5"),
    ),
    "boolean": TypeRow(
        "boolean", [None, True, False], ["true", "false", "1", "0"], ("yes", CURRENT_USER, "javascript:gs.now()")
    ),
    "datetime": TypeRow("time", [None, *INSTANT_VALUES], TIME_VALUES, ("2024-02-30", CURRENT_USER)),
    "date": TypeRow("time", [None, *DATE_VALUES], TIME_VALUES, ("a",)),
    "choice": TypeRow("choice", [None, *CHOICE_VALUES], [*CHOICE_VALUES, "B", "nosuch"]),
    # References take the ids of their world as values.
    "reference": TypeRow("id", [], [], ("javascript:gs.now()",)),
    "list": TypeRow("list", [], [], ("a,,b",), is_sortable=False),
    # No operator of these types takes a value, so any text is refused.
    "json": TypeRow("json", [None, "", [], {}, {"a": 1}, "a", 0, False, [1]], ["a"], is_sortable=False),
    "password": TypeRow("never", [None, "pa", "pb"], ["pa"], is_sortable=False),
    "secret": TypeRow("never", [None, "sa", "sb"], ["sa"], is_sortable=False),
}
STORED_VALUES = {name: row.stored_values for name, row in TYPE_ROWS.items() if row.stored_values}

"""Example values of each column type, as the Table API accepts and returns them and PostgreSQL stores them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

COMPARISONS = ("=", "!=", "<", "LIKE")
TEXT_OPERATORS = frozenset(COMPARISONS)
ORDER_OPERATORS = TEXT_OPERATORS - {"LIKE"}
NO_OPERATORS: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class TypeExample:
    """`values` are two accepted values in ascending order, as a response returns them.

    A display value of None means that it equals the value.
    """

    database_type: str
    values: tuple[Any, Any]
    display_values: tuple[Any, Any] = (None, None)
    refused_values: tuple[Any, ...] = ()
    operators: frozenset[str] = TEXT_OPERATORS
    query: str | None = None  # the first value in a query, if it differs
    default: str | None = None  # the first value as a default, if it differs
    schema: dict[str, Any] = field(default_factory=dict)  # a part of its schema in the OpenAPI document
    can_be_unique: bool = True

    @property
    def text_in_query(self) -> str:
        return self.query or str(self.values[0])


EXAMPLE_IDS = ("171000000000000001", "171000000000000002")

EXAMPLES = {
    "string": TypeExample(
        database_type="text", values=("a", "b"), refused_values=(True, []), schema={"type": ["string", "null"]}
    ),
    "text": TypeExample(database_type="text", values=("a", "b"), refused_values=(True,), can_be_unique=False),
    "wysiwyg": TypeExample(
        database_type="text", values=("<p>a</p>", "<p>b</p>"), refused_values=(True,), query="a", can_be_unique=False
    ),
    "url": TypeExample(
        database_type="text",
        values=("http://localhost:8080/a?b=c", "https://example.com/a"),
        refused_values=(
            "ftp://example.com",
            "javascript:alert(1)",
            "example.com",
            "https://",
            "https://a b",
            "http://a:x",
            5,
        ),
        schema={"type": ["string", "null"], "format": "uri"},
    ),
    "email": TypeExample(
        database_type="text",
        values=("a.b+c@example.com", "d@localhost"),
        refused_values=(
            "a",
            "@b",
            "a@",
            "a@b@c",
            "A <a@b.c>",
            "a@b.c, d@e.f",
            "a..b@c",
            "a@-b",
            "a" * 65 + "@b",
            "mailto:a@b",
            5,
        ),
        schema={"type": ["string", "null"], "format": "email"},
    ),
    "integer": TypeExample(
        database_type="bigint",
        values=(-1, 2),
        refused_values=(1.5, "a"),
        operators=ORDER_OPERATORS,
        schema={"type": ["integer", "null"], "format": "int64"},
    ),
    "duration": TypeExample(
        database_type="bigint",
        values=(0, 93_784),
        display_values=("0m", "1d 2h 3m 4s"),
        refused_values=(-1, 1.5, "1h", "1d 2h"),
        operators=ORDER_OPERATORS,
        schema={"type": ["integer", "null"], "format": "int64", "minimum": 0},
    ),
    "decimal": TypeExample(
        database_type="numeric",
        values=(1.5, 2),
        refused_values=("a",),
        operators=ORDER_OPERATORS,
        schema={"type": ["number", "null"]},
    ),
    "percent": TypeExample(
        database_type="numeric",
        values=(12.5, 100),
        display_values=("12.5%", "100%"),
        refused_values=(-0.1, 100.1, "5%", "a"),
        operators=ORDER_OPERATORS,
        schema={"type": ["number", "null"], "minimum": 0, "maximum": 100},
    ),
    "boolean": TypeExample(
        database_type="boolean",
        values=(False, True),
        display_values=("No", "Yes"),
        refused_values=("yes", 2),
        operators=frozenset({"=", "!="}),
        query="false",
        default="false",
        can_be_unique=False,
    ),
    "datetime": TypeExample(
        database_type="timestamp with time zone",
        values=("2024-05-09 13:45:00", "2024-05-19 13:45:00"),
        display_values=("9 May 2024 13:45:00", "19 May 2024 13:45:00"),
        refused_values=("today", 5),
        operators=ORDER_OPERATORS,
    ),
    "date": TypeExample(
        database_type="date",
        values=("2024-05-09", "2024-05-19"),
        display_values=("9 May 2024", "19 May 2024"),
        refused_values=("today", 5),
        operators=ORDER_OPERATORS,
        schema={"type": ["string", "null"], "format": "date"},
    ),
    "choice": TypeExample(
        database_type="text",
        values=("1", "2"),
        display_values=("New", "Done"),
        refused_values=("3", "New"),
        operators=TEXT_OPERATORS - {"<"},
        schema={"enum": ["1", "2", None]},
    ),
    "reference": TypeExample(
        database_type="character varying(32)",
        values=EXAMPLE_IDS,
        refused_values=("A",),
        operators=frozenset({"=", "!="}),
    ),
    "list": TypeExample(
        database_type="character varying(32)[]",
        values=([EXAMPLE_IDS[0]], [EXAMPLE_IDS[1]]),
        refused_values=("A",),
        operators=frozenset({"=", "!="}),
        query=EXAMPLE_IDS[0],
        can_be_unique=False,
    ),
    "json": TypeExample(
        database_type="jsonb", values=({"a": 1}, [1]), operators=NO_OPERATORS, default='{"a": 1}', can_be_unique=False
    ),
    "password": TypeExample(
        database_type="text",
        values=("top", "secret"),
        refused_values=("", 5),
        operators=NO_OPERATORS,
        can_be_unique=False,
    ),
    "secret": TypeExample(
        database_type="text",
        values=("top", "secret"),
        refused_values=("", 5),
        operators=NO_OPERATORS,
        can_be_unique=False,
    ),
}

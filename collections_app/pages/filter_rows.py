"""Conditions on metadata as rows of a form, and as the text of a filter."""

import re
from dataclasses import dataclass

from django.http import QueryDict

from system.encoded_query import METADATA, Condition, QueryError, parse

# In the order in which the page offers them.
OPERATOR_LABELS = {
    "=": "is", "!=": "is not", "LIKE": "contains", "<": "is less than", ">": "is greater than", "<=": "is at most",
    ">=": "is at least", "ISEMPTY": "is empty", "ISNOTEMPTY": "is not empty",
}  # fmt: skip
BARE_NAME = re.compile("[a-z_][a-z0-9_]*")
BARE_VALUE = re.compile(r"\w[\w -]*")


@dataclass(frozen=True, slots=True)
class FilterRow:
    key: str = ""
    operator: str = "="
    value: str = ""

    @property
    def text(self) -> str:
        """The condition in the query language.

        >>> FilterRow("type", "=", "manual").text, FilterRow("Room}", "LIKE", "a^b").text
        ('type=manual', '{Room}}}LIKE{a^b}')
        """
        value = "" if self.operator in ("ISEMPTY", "ISNOTEMPTY") else self.value
        return _quote(self.key, BARE_NAME) + self.operator + (_quote(value, BARE_VALUE) if value else "")


def _quote(text: str, bare: re.Pattern[str]) -> str:
    return text if bare.fullmatch(text) else "{" + text.replace("}", "}}") + "}"


def submitted_filter(query_params: QueryDict) -> str:
    """Returns the filter of a form: its rows and its advanced text, joined by "and"."""
    columns = (query_params.getlist(name) for name in ("key", "operator", "value"))
    rows = [
        FilterRow(key, operator if operator in OPERATOR_LABELS else "=", value.strip())
        for key, operator, value in zip(*columns, strict=False)
        if key
    ]
    advanced = query_params.get("filter", "").strip()
    if rows and "^NQ" in advanced:
        advanced = f"({advanced})"
    return "^".join([*(row.text for row in rows), *filter(None, [advanced])])


def split_filter(text: str) -> tuple[list[FilterRow], str]:
    """Returns the rows of a filter and, if rows cannot express it, its text instead.

    >>> split_filter("type=manual^priority<3")[0]
    [FilterRow(key='type', operator='=', value='manual'), FilterRow(key='priority', operator='<', value='3')]
    >>> split_filter("type=a^ORtype=b"), split_filter("type = a")
    (([], 'type=a^ORtype=b'), ([], 'type = a'))
    """
    try:
        query = parse(text, METADATA)
    except QueryError:
        return [], text
    rows = []
    terms = query.groups[0].terms if len(query.groups) == 1 and not query.order else ()
    for factors in (term.factors for term in terms):
        condition = factors[0]
        is_row = len(factors) == 1 and isinstance(condition, Condition) and len(condition.path) == 1
        if not is_row or not isinstance(condition, Condition) or condition.operator not in OPERATOR_LABELS:
            return [], text
        rows.append(FilterRow(condition.path[0], condition.operator, condition.value))
    return rows, "" if rows else text

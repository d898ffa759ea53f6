"""The reference of the language matches the code: operators, functions, limits and every example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from system.encoded_query import (
    FUNCTIONS,
    METADATA,
    OPERATORS,
    RECORDS,
    REFUSED_OPERATORS,
    ComparisonKind,
    Operator,
    QueryError,
    ValueKind,
    parse,
)
from tests.support.empty_values import empty_value_match

PAGE = (Path(__file__).parents[3] / "docs/reference/encoded-queries.md").read_text(encoding="utf-8")
READABLE_KINDS = set(ComparisonKind) - {"never"}
# The words of the page for the kinds of an operator. A sys_id is compared as an id and accepts text operators.
KIND_WORDS = {
    "texts": {"text", "id"},
    "choice": {"choice"},
    "numbers": {"integer", "decimal"},
    "dates": {"date", "datetime"},
    "reference": {"reference"},
    "list": {"list"},
}


def table_row(operator: Operator) -> str:
    """The row of this operator in the table of the page."""
    alias_text = " ".join(f"`{alias}`" for alias in operator.aliases)
    value_cell = "" if operator.kind is ValueKind.NONE else operator.kind.value.replace("|", "\\|")
    if operator.numbers:
        value_cell = f"{operator.numbers[0]} to {operator.numbers[-1]}"
    cells = [
        f"`{operator.name}`",
        alias_text,
        operator.description,
        value_cell,
        empty_value_match(operator.name),
        type_words(operator),
    ]
    return " ".join(f"| {cell}".rstrip() for cell in cells) + " |"


def type_words(operator: Operator) -> str:
    if operator.only_path:
        return f"the path `{'.'.join(operator.only_path)}`"
    if operator.column_kinds == READABLE_KINDS:
        return "all"
    if operator.column_kinds == READABLE_KINDS - {"json"}:
        return "all except json"
    words = [word for word, kinds in KIND_WORDS.items() if kinds <= operator.column_kinds]
    assert operator.column_kinds == set().union(*(KIND_WORDS[word] for word in words))
    return ", ".join(words)


def section_text(title: str) -> str:
    match = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match, f"no heading {title}"
    return match.group(1)


def examples(language: str) -> list[str]:
    lines = [line for block in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    assert lines, f"no example in {language}"
    return lines


def test_every_operator_is_documented() -> None:
    rows = [line for line in section_text("Operators").splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(table_row(operator) for operator in OPERATORS.values())


def test_every_function_is_documented() -> None:
    listed_functions = re.findall(r"`(\w+)\((n?)\)`", section_text("Value functions"))
    assert sorted(listed_functions) == sorted((row.name, "n" if row.unit else "") for row in FUNCTIONS.values())


def test_every_unsupported_operator_is_documented() -> None:
    assert [name for name in sorted(REFUSED_OPERATORS) if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("text", examples("query"))
def test_every_example_can_be_parsed(text: str) -> None:
    parse(text)


@pytest.mark.parametrize("text", examples("metadata"))
def test_every_metadata_example_can_be_parsed(text: str) -> None:
    parse(text, METADATA)


@pytest.mark.parametrize("text", examples("refused"))
def test_every_example_of_a_refused_query_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        parse(text)


def test_limits_match_the_code() -> None:
    assert (
        f"{RECORDS.max_bytes // 1024} KB of text, {RECORDS.max_conditions} conditions, "
        f"{RECORDS.max_list_values:,} values in a list, {RECORDS.max_hops} references in a path, "
        f"{RECORDS.max_depth} nested parentheses, and {RECORDS.max_sort_keys} sort keys."
    ) in " ".join(section_text("Limits").split())


def test_precedence_is_explained_first() -> None:
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE)[0] == "Read this first: `^OR` binds tighter than `^`"

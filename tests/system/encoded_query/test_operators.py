"""The table of operators is complete, and each negation is the complement of its operator."""

from __future__ import annotations

import pytest

from system.encoded_query import (
    ALIASES,
    OPERATORS,
    REFUSED_OPERATORS,
    ComparisonKind,
    Operator,
    ValueKind,
)
from system.encoded_query.operators import match_operator
from tests.support.empty_values import empty_value_match

COMMON_OPERATORS = ["=", "!=", "ISEMPTY", "ISNOTEMPTY", "ANYTHING", "NOTHING", "SAMEAS", "NSAMEAS"]
MATCHING_OPERATORS = ["IN", "NOT IN", "LIKE", "NOTLIKE", "STARTSWITH", "ENDSWITH"]
ORDERED_OPERATORS = ["IN", "NOT IN", ">", "<", ">=", "<=", "BETWEEN"]
FIELD_OPERATORS = ["GT_FIELD", "LT_FIELD", "GT_OR_EQUALS_FIELD", "LT_OR_EQUALS_FIELD"]
PART_OPERATORS = ["YEAR_IS", "QUARTER_IS", "MONTH_IS", "WEEK_IS", "DAY_IS", "DAY_OF_WEEK_IS", "HOUR_IS"]
RELATIVE_OPERATORS = ["RELATIVEGT", "RELATIVEGE", "RELATIVELT", "RELATIVELE", "RELATIVEEE"]
TIME_OPERATORS = ["ON", "NOTON", *PART_OPERATORS, *RELATIVE_OPERATORS, "MORETHAN", "LESSTHAN"]
TEXT_OPERATORS = [*COMMON_OPERATORS, *MATCHING_OPERATORS, "EMPTYSTRING", "BETWEEN", ">", "<", ">=", "<="]

# The operators of each kind of column; the code lists the kinds of each operator.
OPERATORS_BY_KIND = {
    "text": TEXT_OPERATORS,
    "id": TEXT_OPERATORS,
    "integer": [*COMMON_OPERATORS, *ORDERED_OPERATORS, *FIELD_OPERATORS],
    "decimal": [*COMMON_OPERATORS, *ORDERED_OPERATORS, *FIELD_OPERATORS],
    "date": [*COMMON_OPERATORS, *ORDERED_OPERATORS, *FIELD_OPERATORS, *TIME_OPERATORS],
    "datetime": [*COMMON_OPERATORS, *ORDERED_OPERATORS, *FIELD_OPERATORS, *TIME_OPERATORS],
    "boolean": COMMON_OPERATORS,
    "choice": [*COMMON_OPERATORS, *MATCHING_OPERATORS, "BETWEEN"],
    "reference": [*COMMON_OPERATORS, "IN", "NOT IN", "DYNAMIC", "ISNOT_DYNAMIC"],
    "list": [*COMMON_OPERATORS, "HAS", "HASNOT", "CONTAINS_DYNAMIC", "DOESNOTCONTAIN_DYNAMIC"],
    "json": ["ISEMPTY", "ISNOTEMPTY", "ANYTHING", "NOTHING"],
    "never": [],
}


@pytest.mark.parametrize("kind", ComparisonKind)
def test_column_supports_only_the_operators_of_its_kind(kind: ComparisonKind) -> None:
    assert {name for name in OPERATORS if OPERATORS[name].fits(kind, ("name",))} == set(OPERATORS_BY_KIND[kind])


def test_two_operators_apply_only_to_record_ids() -> None:
    record_operators = {operator.name for operator in OPERATORS.values() if operator.only_path}
    assert record_operators == {"ARE", "INSTANCEOF"}
    for name in record_operators:
        assert OPERATORS[name].fits(ComparisonKind.ID, ("sys_id",))
        assert not OPERATORS[name].fits(ComparisonKind.ID, ("parent", "sys_id"))


def test_operators_match_the_specification() -> None:
    assert set(OPERATORS) == {name for names in OPERATORS_BY_KIND.values() for name in names} | {"ARE", "INSTANCEOF"}
    assert ALIASES == {"CONTAINS": "LIKE", "NOT LIKE": "NOTLIKE"}


COMPLEMENTARY_OPERATORS = [operator for operator in OPERATORS.values() if operator.complement]


@pytest.mark.parametrize("operator", COMPLEMENTARY_OPERATORS, ids=lambda operator: operator.name)
def test_operator_and_negation_are_complementary(operator: Operator) -> None:
    negation = OPERATORS[operator.complement or ""]
    assert negation.complement == operator.name
    assert negation.name != operator.name
    assert {empty_value_match(name) for name in (operator.name, negation.name)} in (
        {"yes", "no"},
        {"if both are empty", "unless both are empty"},
    )
    assert (negation.kind, negation.column_kinds) == (operator.kind, operator.column_kinds)


def test_ten_operator_pairs_are_negations() -> None:
    assert {frozenset({operator.name, operator.complement}) for operator in COMPLEMENTARY_OPERATORS} == {
        frozenset(pair)
        for pair in [
            ("=", "!="),
            ("IN", "NOT IN"),
            ("LIKE", "NOTLIKE"),
            ("ISEMPTY", "ISNOTEMPTY"),
            ("ANYTHING", "NOTHING"),
            ("SAMEAS", "NSAMEAS"),
            ("ON", "NOTON"),
            ("DYNAMIC", "ISNOT_DYNAMIC"),
            ("HAS", "HASNOT"),
            ("CONTAINS_DYNAMIC", "DOESNOTCONTAIN_DYNAMIC"),
        ]
    }


def test_only_date_parts_have_numbers() -> None:
    for operator in OPERATORS.values():
        assert bool(operator.numbers) == (operator.kind is ValueKind.DATE_PART), operator.name


def test_longest_operator_name_wins() -> None:
    spellings = [*OPERATORS, *ALIASES, *REFUSED_OPERATORS]
    for spelling in spellings:
        assert match_operator(f"a{spelling}", 1) == spelling
        assert match_operator(f"a{spelling} x", 1) == max(
            (name for name in spellings if f"{spelling} x".startswith(name)), key=len
        )


def test_operator_words_begin_with_two_capitals() -> None:
    words = [spelling for spelling in [*OPERATORS, *ALIASES, *REFUSED_OPERATORS] if spelling[0].isalpha()]
    assert [word for word in words if not (word[:2].isalpha() and word[:2].isupper())] == []

"""The table of operators: complete, and every negation is the complement."""

from __future__ import annotations

import pytest

from system.encoded_query import ALIASES, OPERATORS, REFUSED, ComparisonKind, OnEmpty, Operator, ValueKind
from system.encoded_query.operators import spelling_at

EVERY = ["=", "!=", "ISEMPTY", "ISNOTEMPTY", "ANYTHING", "NOTHING", "SAMEAS", "NSAMEAS"]
MATCHING = ["IN", "NOT IN", "LIKE", "NOTLIKE", "STARTSWITH", "ENDSWITH"]
ORDERED = ["IN", "NOT IN", ">", "<", ">=", "<=", "BETWEEN"]
FIELDS = ["GT_FIELD", "LT_FIELD", "GT_OR_EQUALS_FIELD", "LT_OR_EQUALS_FIELD"]
PARTS = ["YEAR_IS", "QUARTER_IS", "MONTH_IS", "WEEK_IS", "DAY_IS", "DAY_OF_WEEK_IS", "HOUR_IS"]
RELATIVE = ["RELATIVEGT", "RELATIVEGE", "RELATIVELT", "RELATIVELE", "RELATIVEEE"]
TIMES = ["ON", "NOTON", *PARTS, *RELATIVE, "MORETHAN", "LESSTHAN"]
TEXTS = [*EVERY, *MATCHING, "EMPTYSTRING", "BETWEEN", ">", "<", ">=", "<="]

# The operators of each kind of column; the code lists the kinds of each operator.
BY_KIND = {
    "text": TEXTS,
    "id": TEXTS,
    "integer": [*EVERY, *ORDERED, *FIELDS],
    "decimal": [*EVERY, *ORDERED, *FIELDS],
    "date": [*EVERY, *ORDERED, *FIELDS, *TIMES],
    "datetime": [*EVERY, *ORDERED, *FIELDS, *TIMES],
    "boolean": EVERY,
    "choice": [*EVERY, *MATCHING, "BETWEEN"],
    "reference": [*EVERY, "IN", "NOT IN", "DYNAMIC", "ISNOT_DYNAMIC"],
    "list": [*EVERY, "HAS", "HASNOT", "CONTAINS_DYNAMIC", "DOESNOTCONTAIN_DYNAMIC"],
    "json": ["ISEMPTY", "ISNOTEMPTY", "ANYTHING", "NOTHING"],
    "never": [],
}

MATCH_EMPTY = {"!=", "NOT IN", "NOTLIKE", "ISEMPTY", "ANYTHING", "NOTON", "ISNOT_DYNAMIC", "HASNOT"}
MATCH_EMPTY |= {"DOESNOTCONTAIN_DYNAMIC"}


@pytest.mark.parametrize("kind", ComparisonKind)
def test_column_supports_only_the_operators_of_its_kind(kind: ComparisonKind) -> None:
    assert {name for name, row in OPERATORS.items() if row.fits(kind, ("name",))} == set(BY_KIND[kind])


def test_two_operators_apply_only_to_the_record_id() -> None:
    on_record = {row.name for row in OPERATORS.values() if row.only_path}
    assert on_record == {"ARE", "INSTANCEOF"}
    for name in on_record:
        assert OPERATORS[name].fits(ComparisonKind.ID, ("sys_id",))
        assert not OPERATORS[name].fits(ComparisonKind.ID, ("parent", "sys_id"))


def test_operators_are_those_of_the_contract() -> None:
    assert set(OPERATORS) == {name for names in BY_KIND.values() for name in names} | {"ARE", "INSTANCEOF"}
    assert ALIASES == {"CONTAINS": "LIKE", "NOT LIKE": "NOTLIKE"}


def test_empty_columns_match_as_specified() -> None:
    assert {name for name, row in OPERATORS.items() if row.on_empty is OnEmpty.YES} == MATCH_EMPTY
    assert OPERATORS["SAMEAS"].on_empty is OnEmpty.IF_BOTH_EMPTY
    assert OPERATORS["NSAMEAS"].on_empty is OnEmpty.UNLESS_BOTH_EMPTY


PAIRS = [row for row in OPERATORS.values() if row.complement]


@pytest.mark.parametrize("row", PAIRS, ids=[row.name for row in PAIRS])
def test_operator_and_negation_are_complementary(row: Operator) -> None:
    negation = OPERATORS[row.complement or ""]
    assert negation.complement == row.name
    assert negation.name != row.name
    assert negation.on_empty is row.on_empty.opposite
    assert row.on_empty.opposite.opposite is row.on_empty
    assert (negation.kind, negation.fits_kinds) == (row.kind, row.fits_kinds)


def test_ten_pairs_are_negations() -> None:
    assert {frozenset({row.name, row.complement}) for row in PAIRS} == {
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
    with_numbers = {row.name for row in OPERATORS.values() if row.allowed}
    assert with_numbers == {row.name for row in OPERATORS.values() if row.kind is ValueKind.DATE_PART}


def test_longest_operator_name_wins() -> None:
    spellings = [*OPERATORS, *ALIASES, *REFUSED]
    for spelling in spellings:
        assert spelling_at(f"a{spelling}", 1) == spelling
        assert spelling_at(f"a{spelling} x", 1) == max((s for s in spellings if f"{spelling} x".startswith(s)), key=len)


def test_operator_words_begin_with_two_capitals() -> None:
    words = [spelling for spelling in [*OPERATORS, *ALIASES, *REFUSED] if spelling[0].isalpha()]
    assert [word for word in words if not (word[:2].isalpha() and word[:2].isupper())] == []

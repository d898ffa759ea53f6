"""Every operator matches the same unusual metadata as the evaluator, and its negation all other metadata."""

import json
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collections_app.metadata import validation
from collections_app.metadata.filter import parse_filter
from collections_app.metadata.operators import RECORD_OPERATORS
from system.encoded_query import METADATA, OPERATORS, QueryError, ValueKind, parse

from .evaluator import MOMENT, filter_holds

pytestmark = pytest.mark.django_db
# Without shrinking, because a failure shows its filter and metadata.
PHASES = (Phase.explicit, Phase.generate)

SCALARS: list[Any] = [
    "", None, "3", 3, 3.0, 3.5, "3.50", "003", -1, 10, "10", 10**18, 1e22, 0, True, False, "TRUE", "false", "Open",
    "open", "OPEN", "ÄB", "äb", "a%_\\b", "don't", "2024-05-19", "2024-05-19T15:30:00Z", "2024-05-19T15:30:00.9+03:00",
    "2024-02-31", "2024-05-19 15:30", "1999-12-31T23:59:59Z", "infinity", "now", "NaN", "12:00", "東京", "2024-W01",
]  # fmt: skip
UNTYPED_FIELDS = ["n", "docType", "Größe", "file name", "a.b", "x"]
PATHS = [*UNTYPED_FIELDS, "x.n", "x.x", "n.n"]
QUOTED_PATHS = {"file name": "{file name}", "a.b": "{a.b}"}
TIME_TEXTS = [
    "2024-05-19T15:30:00Z",
    "2024-05-19T23:59:59.9-05:00",
    "2023-12-31T12:00:00Z",
    "2024-06-30T00:00:00+00:00",
]

scalar_values = st.sampled_from(SCALARS)
list_items = st.one_of(
    scalar_values,
    st.lists(scalar_values, max_size=2),
    st.dictionaries(st.sampled_from(["n", "x"]), scalar_values, max_size=2),
)
field_contents = st.one_of(
    scalar_values,
    scalar_values,
    st.lists(list_items, max_size=3),
    st.dictionaries(st.sampled_from(["n", "x"]), list_items),
)
typed_fields = {
    **{
        name: st.sampled_from(["Open", "open", "", "3", "ÄB", "2024-05-19", None])
        for name in ("sys_id", "status", "type")
    },
    "priority": st.sampled_from([3, -1, 10**18, 0, None]),
    "flag": st.sampled_from([True, False, None]),
    "created": st.sampled_from([*TIME_TEXTS, None]),
}
metadata_objects = st.fixed_dictionaries({}, optional={**typed_fields, **dict.fromkeys(UNTYPED_FIELDS, field_contents)})

text_operands = st.one_of(
    scalar_values.filter(lambda value: value not in ("", None)).map(
        lambda value: value if isinstance(value, str) else json.dumps(value)
    ),
    st.sampled_from(["javascript:gs.daysAgo(0)", "javascript:gs.beginningOfToday()"]),
)
OPERAND_STRATEGIES: dict[ValueKind, Any] = {
    ValueKind.NONE: st.just(""),
    ValueKind.TEXT: text_operands,
    ValueKind.LIST: st.lists(text_operands, min_size=1, max_size=3).map(",".join),
    ValueKind.RANGE: st.tuples(text_operands, text_operands).map("@".join),
    ValueKind.PATH: st.sampled_from([*typed_fields, *(QUOTED_PATHS.get(path, path) for path in PATHS)]),
    ValueKind.DAY: st.sampled_from(["2024-05-19", "x@2024-05-19 15:30:00@2024-06-30"]),
    ValueKind.DATE_PART: st.sampled_from(["1", "2", "5", "7", "15", "19", "20", "2024"]),
    ValueKind.RELATIVE: st.sampled_from(["@day@ago@0", "@month@ago@5", "@hour@ahead@2"]),
    ValueKind.DISTANCE: st.tuples(
        st.sampled_from(["created", "n", "docType"]),
        st.sampled_from(["day@after@3", "month@before@1", "quarter@after@1"]),
    ).map("@".join),
}
OPERATOR_NAMES = [name for name in OPERATORS if name not in RECORD_OPERATORS]


@st.composite
def conditions(draw: Any, operator_name: str) -> str:
    path = draw(st.sampled_from([*typed_fields, *(QUOTED_PATHS.get(known_path, known_path) for known_path in PATHS)]))
    value = draw(OPERAND_STRATEGIES[OPERATORS[operator_name].kind])
    return f"{path}{operator_name}{{{value}}}" if value else f"{path}{operator_name}"


def matching_indexes(filter_text: str, documents: list[Any]) -> list[int] | None:
    """The indexes of the documents that match according to the SQL, or None if the filter is refused."""
    try:
        condition, parameters = parse_filter(filter_text, MOMENT).sql("document.metadata")
    except QueryError:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT document.number - 1 FROM unnest(%s::jsonb[]) WITH ORDINALITY AS document (metadata, number)"
            f" WHERE {condition} ORDER BY document.number",
            [[json.dumps(metadata) for metadata in documents], *parameters],
        )
        return [number for (number,) in cursor.fetchall()]


def check_sql_matches_evaluator(filter_text: str, documents: list[Any]) -> list[int] | None:
    indexes = matching_indexes(filter_text, documents)
    if indexes is not None:
        query = parse(filter_text, METADATA)
        expected = [index for index, metadata in enumerate(documents) if filter_holds(query.groups, metadata)]
        assert indexes == expected, (filter_text, [documents[index] for index in {*indexes} ^ {*expected}])
    return indexes


def check_every_operator(draws: int, examples: int) -> None:
    """Runs `examples` rounds over some documents, each with `draws` conditions per operator."""
    texts_strategy = st.tuples(*(st.lists(conditions(name), min_size=draws, max_size=draws) for name in OPERATOR_NAMES))

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=PHASES
    )
    @given(st.lists(metadata_objects, min_size=8, max_size=16), texts_strategy)
    def check_operators(documents: list[Any], operator_texts: Any) -> None:
        for metadata in documents:
            validation.validate_metadata(metadata)
        for texts, name in zip(operator_texts, OPERATOR_NAMES, strict=True):
            for text in texts:
                indexes = check_sql_matches_evaluator(text, documents)
                negation = OPERATORS[name].complement
                if indexes is not None and negation:
                    complement = matching_indexes(text.replace(name, negation, 1), documents)
                    assert complement is not None and sorted(indexes + complement) == list(range(len(documents))), text

    check_operators()


def test_operator_and_negation_are_complementary() -> None:
    check_every_operator(draws=2, examples=12)


@pytest.mark.nightly
def test_operator_and_negation_are_complementary_for_many_values() -> None:
    check_every_operator(draws=3, examples=400)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=PHASES)
@given(
    st.lists(metadata_objects, min_size=6, max_size=12),
    st.lists(
        st.tuples(st.sampled_from(["^", "^OR", "^NQ"]), st.sampled_from(OPERATOR_NAMES).flatmap(conditions)),
        min_size=2,
        max_size=5,
    ),
)
def test_conditions_combine_as_specified(documents: list[Any], terms: list[tuple[str, str]]) -> None:
    text = "".join([conjunction + condition for conjunction, condition in terms])[len(terms[0][0]) :]
    check_sql_matches_evaluator(text, documents)
    last_conjunction, last_condition = terms[-1]
    check_sql_matches_evaluator(f"({text}){last_conjunction.replace('NQ', 'OR')}{last_condition}", documents)

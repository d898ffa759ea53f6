"""Parameters are parsed in the same way from the query string, a JSON body and a form."""

import json
from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given, settings
from hypothesis import strategies as st

from collections_app.http import parameters
from collections_app.http.parameters import TextValue, parse_parameters
from system.errors import BadRequest, ServiceError, TooLarge

Reader = Any
INVALID_METADATA: tuple[Any, ...] = (5, [], {"flag": "true"}, {"priority": True})


def text_value(*texts: str) -> TextValue:
    return TextValue(texts)


@pytest.mark.parametrize(
    ("reader", "value", "expected"),
    [
        (parameters.read_text, text_value("a"), "a"),
        (parameters.read_text, "a", "a"),
        (parameters.read_text, "", ""),
        (parameters.read_name, "Cafe\u0301", "Caf\u00e9"),
        (parameters.number_reader(1, 200), text_value("200"), 200),
        (parameters.number_reader(1, 200), 1, 1),
        (parameters.number_reader(0, 200), text_value("0"), 0),
        (parameters.read_weight, text_value("0.25"), 0.25),
        (parameters.read_weight, 0, 0.0),
        (parameters.read_weight, 1.0, 1.0),
        (parameters.read_boolean, text_value("TRUE"), True),
        (parameters.read_boolean, text_value("0"), False),
        (parameters.read_boolean, text_value(""), None),
        (parameters.read_boolean, False, False),
        (parameters.choice_reader(("a", "b")), text_value("b"), "b"),
        (parameters.read_collection_names, text_value("b", "a", "b"), ["b", "a"]),
        (parameters.read_collection_names, text_value("a,b"), ["a,b"]),
        (parameters.read_collection_names, text_value('["a", "b"]'), ["a", "b"]),
        (parameters.read_collection_names, "a", ["a"]),
        (parameters.read_collection_names, ["a", "a"], ["a"]),
        (parameters.read_collection_names, ["[a"], ["[a"]),
        (parameters.read_query, "how?", "how?"),
        (parameters.read_query, "ю" * 4096, "ю" * 4096),
        (parameters.read_metadata, text_value('{"type": "x"}'), {"type": "x"}),
        (parameters.read_metadata, text_value(""), {}),
        (parameters.read_metadata, {"n": 1}, {"n": 1}),
    ],
)
def test_valid_value_is_read(reader: Reader, value: Any, expected: Any):
    assert reader("field", value) == expected


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (parameters.read_text, 5),
        (parameters.read_text, ["a"]),
        (parameters.read_text, text_value("a", "b")),
        (parameters.read_text, text_value("a\x00")),
        (parameters.read_text, "\ud800"),
        (parameters.read_name, ""),
        (parameters.read_name, "a" * 201),
        (parameters.read_name, "a\nb"),
        *(
            (parameters.number_reader(1, 200), value) for value in (0, -1, 201, 10**9, True, 5.0, "5", [5], {"n": 5})
        ),  # C32
        *(
            (parameters.number_reader(1, 200), text_value(text))
            for text in ("0", "-1", "10**9", "five", "", "1.0", " 5", "\u0663", "1" * 99)
        ),
        *((parameters.read_weight, value) for value in (-0.1, 1.1, True, "0.5", None, float("nan"), 10**400)),
        *((parameters.read_weight, text_value(text)) for text in ("nan", "inf", "-0.1", "1.1", "", "1e-3", "\u0660")),
        *((parameters.read_boolean, value) for value in (1, 0, "true", [True])),
        *((parameters.read_boolean, text_value(text)) for text in ("yes", "2")),
        (parameters.choice_reader(("a", "b")), "c"),
        (parameters.choice_reader(("a", "b")), True),
        (parameters.read_collection_names, []),
        (parameters.read_collection_names, {}),
        (parameters.read_collection_names, 5),
        (parameters.read_collection_names, ["a", 5]),
        (parameters.read_collection_names, ["a\x00"]),
        (parameters.read_collection_names, [str(number) for number in range(51)]),  # C03
        (parameters.read_collection_names, text_value(*(str(number) for number in range(10_000)))),  # C03
        (parameters.read_collection_names, text_value("[]")),
        (parameters.read_collection_names, text_value("[1]")),
        (parameters.read_collection_names, text_value("[a")),
        (parameters.read_query, ""),  # C32
        (parameters.read_query, " \n"),
        (parameters.read_query, "a" * 8193),
        (parameters.read_query, "ю" * 4097),
        *(
            (parameters.read_metadata, text_value(text))
            for text in ("5", "[]", "{", '{"a": 1, "a": 2}', '{"a": NaN}', "null")
        ),
        *((parameters.read_metadata, value) for value in INVALID_METADATA),
    ],
)
def test_error_names_the_invalid_parameter(reader: Reader, value: Any):
    with pytest.raises(BadRequest) as exc_info:
        reader("field", value)
    assert exc_info.value.field in ("field", "metadata", "flag", "priority")


def test_too_long_text_is_reported():
    reader = parameters.long_text_reader(10)

    assert reader("text", "ю" * 5) == "ю" * 5
    with pytest.raises(TooLarge):
        reader("text", "ю" * 6)
    with pytest.raises(BadRequest):
        reader("text", "")


def test_equal_values_in_query_and_body_are_accepted():
    parsed_parameters = parse_parameters(
        QueryDict("k=3&collection_names=a&flag=1"),
        {"k": 3, "collection_names": ["a"]},
        ("k", "collection_names", "flag"),
    )

    assert parsed_parameters.get("k", parameters.number_reader(1, 9)) == 3
    assert parsed_parameters.get("collection_names", parameters.read_collection_names) == ["a"]
    assert parsed_parameters.get("flag", parameters.read_boolean) is True


@pytest.mark.parametrize(
    ("name", "reader", "query", "body_value"),
    [
        ("k", parameters.number_reader(1, 9), "k=3", 4),
        ("query", parameters.read_query, "query=a", "b"),
        ("wait", parameters.read_boolean, "wait=1", False),
        ("metadata", parameters.read_metadata, "metadata={}", {"n": 1}),
        # Equal values in Python, but not in JSON.
        ("metadata", parameters.read_metadata, 'metadata={"n": 1}', {"n": True}),
    ],
)
def test_two_different_values_are_refused_by_name(name: str, reader: Reader, query: str, body_value: Any):
    with pytest.raises(BadRequest) as exc_info:
        parse_parameters(QueryDict(query), {name: body_value}, (name,)).get(name, reader)
    assert (exc_info.value.code, exc_info.value.field) == ("contradiction", name)


def test_invalid_value_in_query_or_body_is_refused():
    with pytest.raises(BadRequest) as exc_info:
        parse_parameters(QueryDict("k=3"), {"k": "3"}, ("k",)).get("k", parameters.number_reader(1, 9))
    assert exc_info.value.code == "invalid_parameter"


def test_null_means_omitted():
    assert parse_parameters(QueryDict(""), {"k": None}, ("k",)).get("k", parameters.number_reader(1, 9)) is None
    assert parse_parameters(QueryDict("k=3"), {"k": None}, ("k",)).get("k", parameters.number_reader(1, 9)) == 3


def test_missing_required_parameter_is_refused():
    with pytest.raises(BadRequest) as exc_info:
        parse_parameters(QueryDict(""), {}, ("query",)).require("query", parameters.read_query)
    assert (exc_info.value.code, exc_info.value.field) == ("mandatory", "query")


def test_unknown_names_are_reported():
    with pytest.raises(BadRequest) as exc_info:
        parse_parameters(
            QueryDict("metdata=a&owner=me"), {"model": "x", "query": "y"}, ("query", "metadata")
        )  # C08, C28
    assert [item["field"] for item in exc_info.value.as_items()] == ["metdata", "owner", "model"]


def test_invalid_filter_names_the_position():
    parsed_parameters = parse_parameters(QueryDict("metadata=priority%3Dhigh"), {}, ("metadata",))

    with pytest.raises(BadRequest) as exc_info:
        parameters.read_filter(parsed_parameters, "metadata")
    assert (exc_info.value.code, exc_info.value.field, exc_info.value.position) == ("invalid_query", "metadata", 9)


def test_missing_or_empty_value_is_an_empty_filter():
    for query in ("", "metadata="):
        assert parameters.read_filter(parse_parameters(QueryDict(query), {}, ("metadata",)), "metadata").is_empty


JSON_STRATEGY: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
READERS = [
    parameters.read_text, parameters.read_name, parameters.number_reader(1, 200), parameters.read_weight,
    parameters.read_boolean, parameters.choice_reader(("a", "b")), parameters.read_collection_names,
    parameters.read_query, parameters.read_metadata, parameters.long_text_reader(100),
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(value=JSON_STRATEGY | st.lists(st.text(), min_size=1, max_size=3).map(lambda texts: TextValue(tuple(texts))))
def test_any_input_is_parsed_or_refused(value: Any):
    """Parsing a parsed value again gives the same result."""
    for reader in READERS:
        status, parsed_value = try_to_read(reader, value)
        assert status in (200, 400, 413)
        if status == 200 and parsed_value is not None:  # None counts as omitted
            assert json.dumps(reader("field", parsed_value)) == json.dumps(parsed_value)


def try_to_read(reader: Reader, value: Any) -> tuple[int, Any]:
    try:
        return 200, reader("field", value)
    except ServiceError as error:
        return error.status, None

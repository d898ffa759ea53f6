"""Valid metadata: six typed fields, any other fields, and limits."""

import json
from typing import Any

import pytest

from collections_app.metadata import validation
from system.errors import BadRequest

VALID_METADATA = {
    "sys_id": "161101105612345678",
    "status": "active",
    "priority": 3,
    "flag": True,
    "type": "manual",
    "created": "2024-05-19T15:30:00Z",
}


def refused_fields(metadata: Any) -> list[Any]:
    """The fields named in the refusal."""
    with pytest.raises(BadRequest) as exc_info:
        validation.validate_metadata(metadata)
    return [item.get("field") for item in exc_info.value.as_items()]


def test_typed_fields_and_any_others_are_stored_as_sent() -> None:
    metadata = VALID_METADATA | {"tags": ["a", {"b": None}], "n": 1.5, "Größe": "XL", "docType": ""}
    assert validation.validate_metadata(metadata) is metadata
    assert validation.parse_metadata(json.dumps(metadata)) == metadata
    assert validation.validate_metadata({}) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": ', 'Metadata must be a JSON object, such as {"type": "manual", "priority": 2}.'),
        ('{"a": 1, "a": 2}', "A JSON object contains the same name more than once."),
        ("[" * 70 + "]" * 70, "The metadata is nested more than 32 levels deep."),
    ],
)
def test_invalid_json_is_reported_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(validation.InvalidMetadata) as exc_info:
        validation.parse_metadata(text)
    assert exc_info.value.message == message


@pytest.mark.parametrize("field", sorted(VALID_METADATA))
def test_each_typed_field_may_be_omitted_or_null(field: str) -> None:
    validation.validate_metadata({name: value for name, value in VALID_METADATA.items() if name != field})
    validation.validate_metadata(VALID_METADATA | {field: None})


WRONG_VALUES: dict[str, list[Any]] = {
    "priority": [True, "5", 5.0, 10**20, 2**63, -(2**63) - 1, [], {}, ""],
    "flag": ["true", 1, 0, "", []],
    **{field: [1, True, ["a"], {}] for field in ("sys_id", "status", "type")},
    "created": [
        "2024-05-19T15:30:00", "2024-05-19", "yesterday", 1716132600, "", "2024-02-30T00:00:00Z",
        "2024-05-19T25:00:00Z", "0001-01-01T00:00:00+14:00", "2024-05-19T15:30:00 Z", "20240519T153000Z",
    ],
}  # fmt: skip


# C10
@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in WRONG_VALUES.items() for value in values]
)
def test_wrong_type_is_refused_and_names_the_field(field: str, value: Any) -> None:
    assert refused_fields({field: value}) == [field]


@pytest.mark.parametrize(
    "value",
    [
        "2024-05-19T15:30:00Z", "2024-05-19T15:30:00.123Z", "2024-05-19T15:30:00.1234567+03:00",
        "2024-05-19 15:30:00-0530", "2024-05-19T15:30Z", "2024-05-19T15:30:00+03",
    ],
)  # fmt: skip
def test_time_requires_a_zone_and_allows_fractions(value: str) -> None:
    assert validation.validate_metadata({"created": value})


def test_integers_have_at_most_64_bits() -> None:
    for value in (0, -1, 2**63 - 1, -(2**63)):
        assert validation.validate_metadata({"priority": value}) == {"priority": value}


def test_all_invalid_fields_are_reported_together() -> None:
    assert refused_fields({"priority": "5", "flag": "true", "status": 1}) == ["status", "priority", "flag"]


# C09
@pytest.mark.parametrize("value", [[], "text", 1, None, True])
def test_metadata_must_be_an_object(value: Any) -> None:
    assert refused_fields(value) == ["metadata"]


# C09
def test_five_levels_are_accepted_and_six_refused() -> None:
    nested_metadata: Any = {"a": {"b": [{"c": ["d"]}]}}
    assert validation.validate_metadata(nested_metadata) == nested_metadata
    assert refused_fields({"a": {"b": [{"c": [["d"]]}]}}) == ["metadata"]
    deeply_nested_value: Any = "x"
    for _ in range(10_000):
        deeply_nested_value = [deeply_nested_value]
    assert refused_fields({"a": deeply_nested_value}) == ["metadata"]


# C09
def test_sixteen_kilobytes_are_accepted_and_more_refused(settings: Any) -> None:
    max_bytes = settings.COLLECTIONS["metadata_limit"]
    text = "é" * ((max_bytes - len('{"a":""}')) // 2)
    assert validation.validate_metadata({"a": text})
    assert refused_fields({"a": text + "é"}) == ["metadata"]
    assert refused_fields({"a": "x" * 1_000_000}) == ["metadata"]


# C09
@pytest.mark.parametrize(
    "value",
    ["a\x00b", "\ud800", float("nan"), float("inf"), float("-inf")],
    ids=["NUL", "surrogate", "nan", "infinity", "minus infinity"],
)
def test_unstorable_text_is_refused_at_any_depth(value: Any) -> None:
    for metadata in ({"a": value}, {"a": [{"b": value}]}):
        assert refused_fields(metadata)
    if isinstance(value, str):
        assert refused_fields({value: 1})


# C09
@pytest.mark.parametrize(
    "form_text",
    [
        '{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 2}}', '{"a": NaN}', '{"a": Infinity}', '{"a": 1e999}', "{", "", "[]",
        '{"a": "\\ud800"}', '{"a": "\\u0000"}', "{'a': 1}", '{"a": 1} x', '{"a":' + "[" * 100_000,
    ],
)  # fmt: skip
def test_text_of_a_form_follows_the_same_rules(form_text: str) -> None:
    with pytest.raises(BadRequest) as exc_info:
        validation.parse_metadata(form_text)
    assert exc_info.value.as_items()[0]["field"] == "metadata"
    assert exc_info.value.code == "invalid_metadata"


def test_number_that_would_lose_precision_is_refused() -> None:
    with pytest.raises(BadRequest) as exc_info:
        validation.parse_metadata('{"amount": 99999999999999.99}')
    assert exc_info.value.field == "amount"
    assert validation.parse_metadata('{"amount": 99.90, "big": 123456789012345678901234567890}') == {
        "amount": 99.9,
        "big": 123456789012345678901234567890,
    }


def test_names_of_fields_have_one_to_two_hundred_characters() -> None:
    assert refused_fields({"": 1}) == ["metadata"]
    assert refused_fields({"x" * 201: 1}) == ["x" * 80]
    assert validation.validate_metadata({"x" * 200: 1})

"""Values of columns: what a body may contain for each type, and what is stored."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.hashers import check_password
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from system import encryption
from system.encoded_query import SAMPLE_MOMENT
from system.errors import InvalidInput
from tableapi.catalogue.column_types import COLUMN_TYPES
from tableapi.catalogue.definitions import Column
from tableapi.values import column_values, defaults, display_values

CHOICE_LABELS = (("1", "New"), ("2", "In progress"), ("done", "Done"), ("same", "Twice"), ("again", "twice"))
MAX_INTEGER = 2**63 - 1


def make_column(type: str, **attributes: Any) -> Column:
    choices = CHOICE_LABELS if type == "choice" else ()
    default_attributes = {"name": "it", "type": type, "owner": "task", "database_name": "it", "choices": choices}
    return Column(**default_attributes | attributes)


def utc_instant(*components: int) -> datetime:
    return datetime(*components, tzinfo=UTC)  # type: ignore[misc, arg-type]


VALID_VALUES: list[tuple[str, Any, Any]] = [
    ("string", "Printer", "Printer"),
    ("string", "", ""),
    ("string", "\u202eright to left \U0001f5a8", "\u202eright to left \U0001f5a8"),  # B35
    ("string", 5, "5"),
    ("string", 1.5, "1.5"),
    ("text", Decimal("1.50"), "1.50"),
    ("wysiwyg", "<b onclick=x>a</b>", "<b>a</b>"),
    ("wysiwyg", "", ""),
    ("choice", "1", "1"),
    ("choice", 1, "1"),
    ("choice", "", None),
    ("integer", 5, 5),
    ("integer", "-05", -5),
    ("integer", "+5", 5),
    ("integer", 5.0, 5),
    ("integer", Decimal("5.0"), 5),
    ("integer", "", None),
    ("integer", MAX_INTEGER, MAX_INTEGER),  # B71
    ("integer", str(-MAX_INTEGER - 1), -MAX_INTEGER - 1),
    ("decimal", 5, Decimal(5)),
    ("decimal", 0.1, Decimal("0.1")),
    ("decimal", 1e22, Decimal("1E+22")),
    ("decimal", "-12.50", Decimal("-12.50")),
    ("decimal", "1e-3", Decimal("0.001")),
    ("decimal", "9" * 1000, Decimal("9" * 1000)),
    ("decimal", "", None),
    ("boolean", True, True),
    ("boolean", 0, False),
    ("boolean", "true", True),
    ("boolean", "0", False),
    ("boolean", "", None),
    ("datetime", "2024-05-19 13:45:01", utc_instant(2024, 5, 19, 13, 45, 1)),
    ("datetime", "2024-05-19T13:45:01.999999Z", utc_instant(2024, 5, 19, 13, 45, 1)),
    ("datetime", "2024-05-19T13:45+05:30", utc_instant(2024, 5, 19, 8, 15)),
    ("datetime", "2024-05-19", utc_instant(2024, 5, 19)),
    ("datetime", "0001-01-01 00:00:00", utc_instant(1, 1, 1)),  # B71
    ("datetime", "9999-12-31 23:59:59", utc_instant(9999, 12, 31, 23, 59, 59)),
    ("datetime", "2024-02-29T23:59:59-23:59", utc_instant(2024, 3, 1, 23, 58, 59)),
    ("datetime", "", None),
    ("date", "2024-02-29", date(2024, 2, 29)),
    ("date", "0001-01-01", date(1, 1, 1)),
    ("date", "9999-12-31", date(9999, 12, 31)),
    ("date", "2024-05-19T23:30:00-01:00", date(2024, 5, 20)),
    ("reference", "171000000000000001", "171000000000000001"),
    ("reference", 17, "17"),
    ("reference", {"value": "17", "link": "http://x/17", "display_value": "Bob"}, "17"),
    ("reference", {"value": None}, None),
    ("reference", {"value": ""}, None),
    ("reference", "", None),
    ("list", ["2", "1", {"value": "2"}, 1], ["2", "1"]),
    ("list", "2, 1,2", ["2", "1"]),
    ("list", [], []),
    ("list", "", None),
    ("list", [str(number) for number in range(1000)], [str(number) for number in range(1000)]),
]


@pytest.mark.parametrize(("type", "value", "expected"), VALID_VALUES)
def test_valid_values_are_accepted(type: str, value: Any, expected: Any):
    parsed_value = column_values.parse(make_column(type), value)

    assert parsed_value == expected and parsed_value.__class__ is expected.__class__


INVALID_VALUES_BY_TYPE: dict[str, list[Any]] = {
    "string": [True, [], {}, ["a"], float("nan"), "a\x00b", "\ud800"],
    "wysiwyg": [True, {}, "\x00", "<div>" * 1000],
    "choice": ["3", "New", "DONE", " 1", True, 1.0, ["1"], {"value": "1"}],
    "integer": [
        *(True, 1.5, float("inf"), float("nan"), [], {}, MAX_INTEGER + 1, -MAX_INTEGER - 2, 1e19),  # B33, B71
        *("1_000", " 12", "12\n", "\u0663", "\xb2", "1.0", "1e3", "0x1", "9" * 31, "--1"),  # B36
    ],
    "decimal": [
        *(True, float("nan"), float("-inf"), Decimal("NaN"), Decimal("sNaN"), [], {}, 10**1000),  # B33
        *("NaN", "inf", "1_0", "\u0663.\u0665", ".5", "5.", "1e1000", "1e999999999", " 1", "1\n", "-"),
        *("9" * 1001, "1e-1001", "10e999", "0" * 100_000),
    ],
    "boolean": ["yes", "TRUE", 2, 1.0, -1, [], {}, " true"],
    "datetime": [
        *("0000-01-01", "10000-01-01", "infinity", "2024-06-30 23:59:60", "2023-02-29", "2024-05-19 24:00:00"),  # B71
        *("0001-01-01T00:00+00:01", "9999-12-31T23:59:59-00:01", "2024-05-19T10:00+24:00"),
        *(1716000000, True, [], "now", "2024-W01-1", "20240519", "2024-05-19\n"),
    ],
    "date": ["0000-01-01", "10000-01-01", "2023-02-29", "19.05.2024", "infinity", 20240519, True],  # B71
    "reference": [
        *("A", "1" * 33, "1\n", " 1", "-1", -1, 1.0, True, [], ["1"], "' OR 1=1"),  # B36
        *({}, {"link": "x"}, {"value": "1", "x": 1}, {"value": {"value": "1"}}, {"value": True}),
    ],
    "list": [
        *(5, {}, {"value": "1"}, [None], [""], [{"value": None}], ["1", "A"], "1,,2", ",", [["1"]], [True]),
        [str(number) for number in range(1001)],
    ],
    "password": ["", 5, True, []],
    "secret": ["", 5, {}, "\ud800"],
    "json": [{"a": ["\x00"]}],
}
INVALID_VALUES = [(type, value) for type, values in INVALID_VALUES_BY_TYPE.items() for value in values]


@pytest.mark.parametrize(("type", "value"), INVALID_VALUES, ids=lambda parameter: repr(parameter)[:40])
def test_invalid_values_are_refused(type: str, value: Any):
    with pytest.raises(InvalidInput) as exc_info:
        column_values.parse(make_column(type), value)

    error = exc_info.value
    assert (error.status, error.code, error.field) == (422, "invalid_value", "it")
    assert error.message[0].isupper() or error.message.startswith("true"), "messages start with a capital"


@pytest.mark.parametrize("type", sorted(COLUMN_TYPES))
def test_null_clears_a_value(type: str):
    assert column_values.parse(make_column(type), None) is None


@pytest.mark.parametrize("type", ["string", "text", "wysiwyg", "password", "secret"])
def test_text_length_is_limited_by_the_column(type: str):
    short_column = make_column(type, max_length=3)
    assert column_values.parse(short_column, "ééé")
    with pytest.raises(InvalidInput, match=r"at most 3 characters\.$"):
        column_values.parse(short_column, "éééé")


def test_html_length_is_that_of_its_plain_text():
    assert (
        column_values.parse(make_column("wysiwyg", max_length=3), "<p><b>a &amp; </b></p>") == "<p><b>a &amp; </b></p>"
    )


@pytest.mark.parametrize("value", [{"a": [1, None, True]}, [], {}, "", "text", 0, False, 1.5])
def test_any_json_is_accepted(value: Any):
    parsed_value = column_values.parse(make_column("json"), value)
    assert isinstance(parsed_value, Jsonb) and parsed_value.obj == value


def test_password_is_hashed_and_a_secret_encrypted():  # B28
    hashed_value, encrypted_value = (
        column_values.parse(make_column(type), "top secret") for type in ("password", "secret")
    )

    assert "top secret" not in hashed_value + encrypted_value
    assert check_password("top secret", hashed_value) and encryption.decrypt(encrypted_value) == "top secret"


SIGNIFICANT_TEXTS = ["1e5", "2024-05-19", "2024-05-19T10:00:00+14:00", "9" * 40, "1,2", "true", "<b>", "javascript:x"]
NAME_STRATEGY = st.sampled_from(["value", "link", "x"])
JSON_STRATEGY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.sampled_from(SIGNIFICANT_TEXTS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAME_STRATEGY, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=600, database=None)
@given(st.sampled_from(sorted(COLUMN_TYPES)), JSON_STRATEGY, st.booleans())
def test_json_value_is_accepted_or_invalid(type: str, value: Any, is_display_value: bool):
    json_column = make_column(type)
    try:
        stored_value = column_values.parse(
            json_column, display_values.parse_display_value(json_column, value) if is_display_value else value
        )
    except InvalidInput:
        return
    assert column_values.is_same(json_column, stored_value, stored_value) == (
        json_column.is_readable or stored_value is None
    )
    json.dumps(column_values.to_log_value(json_column, stored_value))


@settings(database=None)
@given(st.datetimes(timezones=st.just(UTC)))
def test_instant_round_trips(instant: datetime):  # B71
    instant_column = make_column("datetime")
    log_value = column_values.to_log_value(instant_column, instant)

    assert len(log_value) == len("2024-05-19 13:45:00")
    assert column_values.is_same(instant_column, instant, column_values.parse(instant_column, log_value))


@settings(database=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=6) | st.integers() | st.floats(-1e300, 1e300))
def test_number_round_trips(number: Any):
    decimal_column = make_column("decimal")
    assert column_values.parse(decimal_column, str(column_values.parse(decimal_column, number))) == Decimal(str(number))


EQUALITY_EXAMPLES: list[tuple[str, Any, Any, bool]] = [
    ("string", "a", "a", True),
    ("string", "a", "A", False),
    ("string", None, "", False),
    ("integer", None, None, True),
    ("integer", 0, None, False),
    ("decimal", Decimal("1.50"), Decimal("1.5"), True),
    ("datetime", utc_instant(2024, 5, 19, 1, 2, 3).replace(microsecond=9), utc_instant(2024, 5, 19, 1, 2, 3), True),
    ("datetime", utc_instant(2024, 5, 19, 1, 2, 3), utc_instant(2024, 5, 19, 1, 2, 4), False),
    ("list", ["1", "2"], ["1", "2"], True),
    ("list", ["1", "2"], ["2", "1"], False),
    ("list", None, [], False),
    ("json", {"a": 1, "b": [2]}, Jsonb({"b": [2.0], "a": 1}), True),
    ("json", {"a": 1}, Jsonb({"a": True}), False),
    ("json", [0], Jsonb([False]), False),
    ("json", [1], Jsonb([1, 2]), False),
    ("json", {"a": None}, Jsonb({}), False),
    ("json", "1", Jsonb(1), False),
    ("password", None, None, True),
    ("password", "x", "x", False),
    ("secret", "x", None, False),
]


@pytest.mark.parametrize(("type", "stored_value", "new_value", "is_equal"), EQUALITY_EXAMPLES)
def test_equality_depends_on_the_type(type: str, stored_value: Any, new_value: Any, is_equal: bool):
    assert column_values.is_same(make_column(type), stored_value, new_value) is is_equal


MERGE_PATCH_EXAMPLES = [  # appendix A of RFC 7396
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    (None, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
]


@pytest.mark.parametrize(("stored_value", "patch", "merged_value"), MERGE_PATCH_EXAMPLES)
def test_json_is_merged(stored_value: Any, patch: Any, merged_value: Any):
    json_before = json.dumps(stored_value)
    assert column_values.merge_patch(stored_value, patch) == merged_value
    assert json.dumps(stored_value) == json_before, "the stored value is not modified"


DISPLAY_EXAMPLES: list[tuple[str, Any, Any]] = [
    ("choice", "In progress", "2"),
    ("choice", "in PROGRESS", "2"),
    ("choice", "Twice", "same"),
    ("choice", "twice", "again"),
    ("choice", None, None),
    ("choice", "", ""),
    ("boolean", "Yes", True),
    ("boolean", "no", False),
    ("boolean", True, True),
    ("boolean", "maybe", "maybe"),
    ("date", "9 May 2024", "2024-05-09"),
    ("date", "2024-05-09", "2024-05-09"),
    ("date", "9 Mai 2024", "9 Mai 2024"),
    ("datetime", "31 Dec 1999 23:59:59", "1999-12-31 23:59:59"),
    ("datetime", 5, 5),
    ("string", "9 May 2024", "9 May 2024"),
    ("string", "Yes", "Yes"),
    ("reference", "Bob", "Bob"),
]


@pytest.mark.parametrize(("type", "display_value", "expected"), DISPLAY_EXAMPLES)
def test_display_values_are_parsed(type: str, display_value: Any, expected: Any):
    assert display_values.parse_display_value(make_column(type), display_value) == expected


@pytest.mark.parametrize("label", ["2", "TWICE", "Nothing", True, [], {}, 1.0])
def test_choice_label_must_be_unambiguous(label: Any):
    with pytest.raises(InvalidInput) as exc_info:
        display_values.parse_display_value(make_column("choice"), label)
    assert exc_info.value.field == "it"


@pytest.mark.parametrize(
    ("type", "default", "expected"),
    [
        ("string", "x", "x"),
        ("integer", "5", 5),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("choice", "1", "1"),
        ("choice", "gone", None),
        ("integer", "five", None),
        ("date", "2024-05-19", date(2024, 5, 19)),
        ("list", "1,2", ["1", "2"]),
        ("json", "{", None),
        ("password", "x", None),
        ("string", "", None),
    ],
)
def test_default_is_parsed_or_null_if_invalid(type: str, default: str, expected: Any):
    assert defaults.default_value(make_column(type, default=default), SAMPLE_MOMENT) == expected


def test_default_of_json_is_json():
    parsed_default = defaults.default_value(make_column("json", default='{"a": [1]}'), SAMPLE_MOMENT)
    assert isinstance(parsed_default, Jsonb) and parsed_default.obj == {"a": [1]}


@pytest.mark.parametrize("empty_value", [None, "", []])
def test_mandatory_column_requires_a_value(empty_value: Any):
    assert not defaults.lacks_mandatory_value(make_column("string"), empty_value)
    assert defaults.lacks_mandatory_value(make_column("string", mandatory=True), empty_value)


@pytest.mark.parametrize("value", [False, 0, Decimal(0), "0", ["1"], Jsonb({}), Jsonb(""), Jsonb([])])
def test_falsy_value_is_not_missing(value: Any):
    assert not defaults.lacks_mandatory_value(make_column("string", mandatory=True), value)


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        ("datetime", utc_instant(1, 2, 3, 4, 5, 6), "0001-02-03 04:05:06"),
        ("date", date(2024, 5, 19), "2024-05-19"),
        ("decimal", Decimal("1.50"), "1.50"),
        ("json", Jsonb({"a": 1}), {"a": 1}),
        ("list", ["1"], ["1"]),
        ("boolean", False, False),
        ("password", "hash", None),
        ("secret", "token", None),
        ("string", None, None),
    ],
)
def test_values_for_the_deletion_log_are_json(type: str, value: Any, expected: Any):
    assert column_values.to_log_value(make_column(type), value) == expected
    json.dumps(expected)


def test_html_is_converted_to_plain_text():
    assert column_values.plain_text("<p>a</p><p>b</p>") == "a\nb"
    assert column_values.plain_text(None) is None

"""JSON bodies are parsed strictly."""

import json
import time

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from system.outbound import OutboundFailed, OutboundResponse
from system.strict_json import MAX_DEPTH, MAX_DIGITS, InvalidJson, parse_json, refuse_deep_nesting

pytestmark = pytest.mark.usefixtures("routes_of_tests")

INVALID_BODIES = {
    "a name twice": b'{"a": 1, "a": 2}',
    "a name twice, deep": b'{"x": [{"a": 1, "a": 1}]}',
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "too large": b'{"a": 1e999}',
    "close to zero": b'{"a": 1e-401}',
    "far too close to zero": b'{"a": -1e-99999999999999999999}',
    "too large an exponent": b'{"a": [0e99999999999999999999]}',
    "too long": b'{"a": ' + b"9" * 5000 + b"}",
    "too deep": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "far too deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "a name twice, escaped once": b'{"a": [{"kid": 1, "\\u006bid": 2}]}',
    "UTF-16": '{"keys": []}'.encode("utf-16"),
    "HTML": b"<html>200 OK</html>",
    "text after the value": b'{"keys": []} trailing',
    "one digit too many": b'{"a": ' + b"9" * (MAX_DIGITS + 1) + b"}",
    "a reversed pair": b'["\\udc00\\ud800"]',
    "a line break in a string": b'"line\nbreak"',
    "NUL": b'{"a": "x\\u0000y"}',
    "NUL in a name": b'{"x\\u0000y": 1}',
    "half a pair": b'{"a": "\\ud800"}',
    "not UTF-8": b'{"a": "\xff"}',
    "overlong UTF-8": b'{"a": "\xc0\xaf"}',
    "a byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "half": b'{"a": ',
    "two values": b"{} {}",
    "a single quote": b"{'a': 1}",
}
# The end of the message, where it is not that of malformed JSON.
SAME_NAME = "A JSON object contains the same name more than once."
TOO_DEEP = f"The JSON is nested more than {MAX_DEPTH} levels deep."
NOT_UTF_8 = "The JSON is not valid UTF-8."
REASONS = {
    "a name twice": SAME_NAME, "a name twice, deep": SAME_NAME, "a name twice, escaped once": SAME_NAME,
    "NaN": "NaN is not a JSON number.", "Infinity": "-Infinity is not a JSON number.",
    "too large": "A number is too large.", "too long": "A number is too long.",
    "one digit too many": "A number is too long.", "too deep": TOO_DEEP, "far too deep": TOO_DEEP,
    "deep objects": TOO_DEEP, "UTF-16": NOT_UTF_8, "not UTF-8": NOT_UTF_8, "overlong UTF-8": NOT_UTF_8,
    "NUL": "A string contains a NUL character.", "NUL in a name": "A string contains a NUL character.",
    "half a pair": "A string contains an unpaired surrogate.",
    "a reversed pair": "A string contains an unpaired surrogate.",
}  # fmt: skip
# Refused in requests, whose numbers are stored exactly. Responses have floats.
INEXACT_NUMBERS = {"close to zero": 0.0, "far too close to zero": 0.0, "too large an exponent": [0.0]}


@pytest.mark.parametrize("body", INVALID_BODIES.values(), ids=INVALID_BODIES.keys())
def test_invalid_body_returns_400_with_a_reason(client: Client, body: bytes):
    response = client.post("/api/test/echo", body, content_type="application/json")

    assert response.status_code == 400
    assert response.json()["errors"][0]["code"] == "invalid_json"


@pytest.mark.parametrize("name", [name for name in INVALID_BODIES if name not in INEXACT_NUMBERS])
def test_invalid_response_of_a_provider_is_refused_with_a_reason(name: str):  # A29
    with pytest.raises(OutboundFailed) as exc_info:
        OutboundResponse(200, {}, INVALID_BODIES[name]).json()

    assert exc_info.value.code == "not_json"
    assert exc_info.value.message.startswith("The response cannot be parsed. ")
    assert exc_info.value.message.endswith(REASONS.get(name, "The JSON is malformed."))


@pytest.mark.parametrize("name", INEXACT_NUMBERS)
def test_response_of_a_provider_can_contain_numbers_that_are_not_exact(name: str):
    response = OutboundResponse(200, {}, INVALID_BODIES[name])

    assert response.json() == {"a": INEXACT_NUMBERS[name]}


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "multipart/form-data", ""],
)
def test_other_content_type_returns_415(client: Client, content_type: str):
    response = client.post("/api/test/echo", b'{"a": 1}', content_type=content_type)

    assert response.status_code == 415
    assert response.json()["errors"][0]["code"] == "unsupported_media_type"


def test_compressed_body_is_refused(client: Client):
    response = client.post(
        "/api/test/echo", b"{}", content_type="application/json", headers={"Content-Encoding": "gzip"}
    )

    assert response.status_code == 415


def test_valid_body_is_parsed_unchanged(client: Client):
    body: dict[str, object] = {"text": "grüße 🙂 \u202e", "list": [1, 2.5, None, True], "deep": [[[[]]]]}
    response = client.post("/api/test/echo", json.dumps(body), content_type="application/json; charset=UTF-8")

    assert response.json() == {"got": body}


PLAIN_TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
FLOAT_VALUES = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**50), 10**50) | FLOAT_VALUES | PLAIN_TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN_TEXTS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSON_VALUES, st.booleans())
def test_json_round_trips(value, ensure_ascii: bool):
    assert parse_json(json.dumps(value, ensure_ascii=ensure_ascii).encode()) == value


@pytest.mark.parametrize("body", [b"", b" "])
def test_empty_response_of_a_provider_is_refused(body: bytes):
    with pytest.raises(OutboundFailed):
        OutboundResponse(200, {}, body).json()


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(body: bytes):
    try:
        parse_json(body)
    except InvalidJson:
        pass


@given(st.integers(1, 200))
def test_depth_ignores_brackets_in_strings(depth: int):
    parse_json(json.dumps({"a": "[" * depth + '\\"'}).encode())
    nested_body = b"[" * depth + b"]" * depth
    if depth <= MAX_DEPTH:
        parse_json(nested_body)
    else:
        with pytest.raises(InvalidJson):
            parse_json(nested_body)


@pytest.mark.parametrize(
    ("text", "is_too_deep"),
    [
        ('["' + "[" * 99 + '"]', False),
        (r'"\\" ' + "[" * 99, True),  # the string has ended
        (r'"\" ' + "[" * 99, False),  # the quote is escaped
        ('"\\\n' + "[" * 99 + '"', False),
        ('"' + "[" * 99, False),  # an unterminated string
        ("]" * 9 + "[" * (MAX_DEPTH + 9), False),
        ("[]" * 99, False),
        ('["", {"a": ' * 17, True),
    ],
)
def test_depth_counts_brackets_outside_strings(text: str, is_too_deep: bool):
    try:
        refuse_deep_nesting(text)
    except InvalidJson:
        assert is_too_deep
    else:
        assert not is_too_deep


@pytest.mark.parametrize("text", ["x" * 3_000_000, "\u00fc" * 3_000_000, '\\"' * 1_000_000, '\\"' * 1_000_000 + "\\"])
def test_depth_check_is_linear(text: str):
    started_at = time.process_time()
    refuse_deep_nesting('"' + text)
    parse_json(json.dumps(text, ensure_ascii=False).encode())

    assert time.process_time() - started_at < 1

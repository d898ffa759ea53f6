"""Strict JSON: what is refused although Python would accept it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from system.outbound import OutboundFailed, parse_json
from system.outbound.strict_json import MAX_DEPTH


def nested_json(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


INVALID_BODIES = [
    (b"", "is not JSON"),
    (b"<html>200 OK</html>", "is not JSON"),
    (b"{'keys': []}", "is not JSON"),
    (b'{"keys": []} trailing', "is not JSON"),
    (b'{"a": "\xff"}', "is not JSON"),
    (b'\xef\xbb\xbf{"keys": []}', "is not JSON"),
    ('{"keys": []}'.encode("utf-16"), "is not JSON"),
    (b'"line\nbreak"', "is not JSON"),
    (b'{"kid": "a", "kid": "b"}', "a key is repeated"),
    (b'{"a": [{"kid": 1, "\\u006bid": 2}]}', "a key is repeated"),
    (b'{"exp": NaN}', "NaN is not a number"),
    (b'{"exp": Infinity}', "Infinity is not a number"),
    (b'{"exp": -Infinity}', "-Infinity is not a number"),
    (b'{"exp": 1e999}', "a number is too large"),
    (b'{"exp": -1e999}', "a number is too large"),
    (b'{"exp": 1' + b"0" * 100 + b"}", "a number is too large"),
    (b'{"exp": ' + b"9" * 100_000 + b"}", "a number is too large"),
    (nested_json(MAX_DEPTH + 1), "nested too deeply"),
    (nested_json(200_000), "nested too deeply"),
    (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, "nested too deeply"),
    (b'{"name": "a\\u0000b"}', "cannot be stored"),
    (b'{"a\\u0000b": 1}', "cannot be stored"),
    (b'["\\ud800"]', "cannot be stored"),
    (b'["\\udc00\\ud800"]', "cannot be stored"),
]


@pytest.mark.parametrize(("body", "fault"), INVALID_BODIES, ids=range(len(INVALID_BODIES)))
def test_invalid_body_is_refused_with_a_reason(body: bytes, fault: str) -> None:  # A29
    with pytest.raises(OutboundFailed) as exc_info:
        parse_json(body)
    assert exc_info.value.code == "not_json"
    assert fault in exc_info.value.message
    assert "html" not in exc_info.value.message


def test_deepest_allowed_body_is_read() -> None:
    assert parse_json(nested_json(MAX_DEPTH)) is not None


def test_escaped_character_outside_the_basic_plane_is_read() -> None:
    assert parse_json(b'"\\ud83d\\ude00"') == "\U0001f600"


storable_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**50), 10**50)
    | st.floats(allow_nan=False, allow_infinity=False)
    | storable_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(storable_texts, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(json_values, st.booleans())
def test_valid_json_round_trips(value: object, ascii_only: bool) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value

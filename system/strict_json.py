"""Parses untrusted JSON, and refuses anything that two parsers could read differently."""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from system import errors

MAX_DEPTH = 32
MAX_DIGITS = 400
# Brackets outside of strings, with everything before them. The pattern always matches, even in an unterminated string,
# and never backtracks: its time is linear in the length.
BRACKETS = re.compile(r'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+([\[\]{}]*+)', re.DOTALL)


class InvalidJson(errors.BadRequest):
    code = "invalid_json"
    message = "The JSON is malformed."


def object_with_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidJson("A JSON object contains the same name more than once.")
    return members


def refuse_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not a JSON number.")


def parse_float(text: str) -> float:
    if len(text) > MAX_DIGITS:
        raise InvalidJson("A number is too long.")
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise InvalidJson("A number is too large.")
    return number


def parse_exact_number(text: str) -> float | Decimal:
    """A float if it represents the number exactly as sent, else a decimal: amounts must not change.

    >>> parse_exact_number("0.1"), parse_exact_number("99999999999999.99")
    (0.1, Decimal('99999999999999.99'))
    """
    number = parse_float(text)
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise InvalidJson("The exponent of a number is too large.") from None
    if exact and exact.adjusted() < -MAX_DIGITS:
        raise InvalidJson("A number is too close to zero.")
    return number if Decimal(repr(number)) == exact else exact


def parse_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise InvalidJson("A number is too long.")
    return int(text)


def refuse_deep_nesting(text: str) -> None:
    """Count brackets before parsing, because Python's parser would hit its recursion limit.

    >>> refuse_deep_nesting('{"a": "[[[["}')
    """
    depth = 0
    for match in BRACKETS.finditer(text):
        for bracket in match[1]:
            depth += 1 if bracket in "[{" else -1
            if depth > MAX_DEPTH:
                raise InvalidJson(f"The JSON is nested more than {MAX_DEPTH} levels deep.")


def has_lone_surrogate(text: str) -> bool:
    """Whether the text contains half of a surrogate pair, which UTF-8 cannot encode.

    >>> has_lone_surrogate("\\ud800"), has_lone_surrogate("\U0001f642")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def refuse_unstorable(value: Any) -> None:
    """PostgreSQL cannot store NUL or lone surrogates as text."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\x00" in item:
                raise InvalidJson("A string contains a NUL character.")
            if not item.isascii() and has_lone_surrogate(item):
                raise InvalidJson("A string contains an unpaired surrogate.")
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def parse_json(raw: bytes, *, keeps_digits: bool = True) -> Any:
    """Strict JSON: UTF-8, no duplicate names, no NaN, bounded depth and numbers.

    With `keeps_digits`, a number that a float cannot hold exactly is a decimal.

    >>> parse_json(b'{"a": [1, true]}')
    {'a': [1, True]}
    """
    try:
        text = raw.decode("utf-8")
        # Only the few bodies with that many brackets need the exact count.
        if text.count("[") + text.count("{") > MAX_DEPTH:
            refuse_deep_nesting(text)
        value = json.loads(
            text,
            object_pairs_hook=object_with_unique_names,
            parse_constant=refuse_constant,
            parse_float=parse_exact_number if keeps_digits else parse_float,
            parse_int=parse_int,
        )
    except UnicodeDecodeError:
        raise InvalidJson("The JSON is not valid UTF-8.") from None
    except ValueError:
        raise InvalidJson from None
    refuse_unstorable(value)
    return value

"""Parses untrusted JSON and refuses anything that two parsers could read differently."""

import json
import re
from typing import Any, NoReturn

from .errors import OutboundFailed

MAX_DEPTH = 32
# PostgreSQL accepts neither NUL nor single surrogates; Python's parser accepts both.
_UNSTORABLE = re.compile("[\\0\ud800-\udfff]")


def parse_json(body: bytes) -> object:
    """The value in `body`: UTF-8, no repeated key, no NaN or infinity, `MAX_DEPTH` levels, only storable text.

    >>> parse_json(b'{"keys": []}')
    {'keys': []}
    >>> parse_json(b'{"kid": 1, "kid": 2}')
    Traceback (most recent call last):
    system.outbound.errors.OutboundFailed: The response is not valid JSON: a key is repeated.
    """
    try:
        text = body.decode()
        value = json.loads(
            text,
            object_pairs_hook=_read_object,
            parse_constant=_refuse_constant,
            parse_float=_read_float,
            parse_int=_read_int,
        )
        _check_contents(value)
    except _RefusedJson as error:
        raise OutboundFailed("not_json", f"The response is not valid JSON: {error}.") from None
    except RecursionError:
        raise OutboundFailed("not_json", "The response is not valid JSON: it is nested too deeply.") from None
    except ValueError:
        # Also for invalid UTF-8. The parser's message is left out, because it can quote the body.
        raise OutboundFailed("not_json", "The response is not JSON.") from None
    return value


class _RefusedJson(Exception):
    """Well-formed JSON that is refused."""


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise _RefusedJson("a key is repeated")
    return value


def _refuse_constant(constant: str) -> NoReturn:
    raise _RefusedJson(f"{constant} is not a number")


def _read_float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _RefusedJson("a number is too large")
    return number


def _read_int(digits: str) -> int:
    # `int` takes quadratic time, and Python's limit is 4300 digits.
    if len(digits) > 100:
        raise _RefusedJson("a number is too large")
    return int(digits)


def _check_contents(value: object) -> None:
    # A stack instead of recursion, because the sender chooses the depth.
    pending_items = [(value, 1)]
    while pending_items:
        item, depth = pending_items.pop()
        if isinstance(item, dict | list) and depth > MAX_DEPTH:
            raise _RefusedJson("it is nested too deeply")
        if isinstance(item, dict):
            pending_items.extend((part, depth + 1) for pair in item.items() for part in pair)
        elif isinstance(item, list):
            pending_items.extend((part, depth + 1) for part in item)
        elif isinstance(item, str) and _UNSTORABLE.search(item):
            raise _RefusedJson("a string contains a character that cannot be stored")

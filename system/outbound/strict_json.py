"""Reads JSON that a stranger sent, refusing what two readers could understand differently."""

import json
import re
from typing import Any, NoReturn

from .errors import OutboundFailed

MAX_DEPTH = 32
# PostgreSQL takes neither NUL nor half a surrogate pair; both pass Python's parser.
_NOT_STORABLE = re.compile("[\\0\ud800-\udfff]")


def parse_json(body: bytes) -> object:
    """The value in `body`: UTF-8, no repeated key, no NaN or infinity, `MAX_DEPTH` levels, only storable text.

    >>> parse_json(b'{"keys": []}')
    {'keys': []}
    >>> parse_json(b'{"kid": 1, "kid": 2}')
    Traceback (most recent call last):
    system.outbound.errors.OutboundFailed: The answer is not usable JSON: a key is repeated.
    """
    try:
        text = body.decode()
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
        )
        _check_contents(value)
    except _UnusableError as error:
        raise OutboundFailed("not_json", f"The answer is not usable JSON: {error}.") from None
    except RecursionError:
        raise OutboundFailed("not_json", "The answer is not usable JSON: it is nested too deep.") from None
    except ValueError:
        # Covers bad UTF-8 as well. The parser's own message is left out: it can quote the body.
        raise OutboundFailed("not_json", "The answer is not JSON.") from None
    return value


class _UnusableError(Exception):
    """Well-formed JSON of a kind we refuse."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise _UnusableError("a key is repeated")
    return value


def _refuse_constant(constant: str) -> NoReturn:
    raise _UnusableError(f"{constant} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _UnusableError("a number is too large")
    return number


def _whole(digits: str) -> int:
    # `int` takes quadratic time; Python's own guard begins at 4300 digits only.
    if len(digits) > 100:
        raise _UnusableError("a number is too large")
    return int(digits)


def _check_contents(value: object) -> None:
    # A list of open ends instead of recursion: the depth is the sender's choice.
    pending = [(value, 1)]
    while pending:
        found, depth = pending.pop()
        if isinstance(found, dict | list) and depth > MAX_DEPTH:
            raise _UnusableError("it is nested too deep")
        if isinstance(found, dict):
            pending.extend((part, depth + 1) for pair in found.items() for part in pair)
        elif isinstance(found, list):
            pending.extend((part, depth + 1) for part in found)
        elif isinstance(found, str) and _NOT_STORABLE.search(found):
            raise _UnusableError("a text holds a character that cannot be stored")

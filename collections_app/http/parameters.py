"""Reads the parameters of the eight endpoints from the query string, the JSON body or the form.

Each parameter may stand in any of them. Twice and the same is once; twice and different is refused, naming it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rest_framework.request import Request

from collections_app.extract.parsers.common.decoding import is_text
from collections_app.metadata import filter
from collections_app.metadata import validation as document_metadata
from collections_app.metadata.filter import Filter
from collections_app.models.collections import well_named
from system.encoded_query import QueryError
from system.errors import BadRequest, TooLarge, together
from system.http.request_body import InvalidJson, has_lone_surrogate, parse_json

MOST_COLLECTIONS = 50
LONGEST_QUERY_BYTES = 8 * 1024
LONGEST_FILTER_BYTES = 16 * 1024
DEFAULT_K = 5
MOST_K = 200
MODES = ("hybrid", "vector", "text")
ON_DUPLICATE = ("skip", "replace", "error")
SWITCH = {"true": True, "1": True, "false": False, "0": False}
# Three times, because JSON may spell each letter of a text as \uXXXX; and its quotes and other parameters.
ESCAPES = 3
ENVELOPE_BYTES = 256 * 1024

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value as text, from a query string or a form; in a JSON body it has its own type."""

    texts: tuple[str, ...]

    def one(self, name: str) -> str:
        if len(self.texts) > 1:
            raise refused(name, f"{name} was given more than once.")
        return self.texts[0]


@dataclass(frozen=True, slots=True)
class RequestParameters:
    """The parameters of one request, each with all that was said about it."""

    values: Mapping[str, Sequence[Any]]

    def get(self, name: str, read: Callable[[str, Any], Found | None]) -> Found | None:
        """The value that every place agrees on; None where none has it."""
        found = [each for value in self.values.get(name, ()) if (each := read(name, value)) is not None]
        # Written out, because to Python 1 and true are equal.
        if len({json.dumps(each, sort_keys=True, default=str) for each in found}) > 1:
            raise refused(name, f"{name} was given twice with different values.", code="contradiction")
        return found[0] if found else None

    def needed(self, name: str, read: Callable[[str, Any], Found]) -> Found:
        found = self.get(name, read)
        if found is None:
            raise refused(name, f"{name} is required.", code="mandatory")
        return found


def of_request(request: Request, known: Sequence[str]) -> RequestParameters:
    """From the query string and a JSON body, which may be left out."""
    return parse_parameters(request.query_params, body_of(request), known)


def body_of(request: Request) -> Mapping[str, Any]:
    """The JSON object that was sent; an empty one where there is no body."""
    body = request.data
    if not isinstance(body, Mapping):
        raise InvalidJson("The body must be a JSON object.")
    return body


def parse_parameters(query: Any, body: Mapping[str, Any], known: Sequence[str]) -> RequestParameters:
    """Chosen: a name that is no parameter is refused, in the query string too. A misspelled filter that is ignored
    would find more than was asked for.

    >>> from django.http import QueryDict
    >>> parse_parameters(QueryDict("k=3"), {"k": 3}, ("k",)).get("k", number(1, 9))
    3
    """
    refuse_unknown((*query, *body), known)
    values: dict[str, list[Any]] = {}
    for name in query:
        values.setdefault(name, []).append(TextValue(tuple(query.getlist(name))))
    for name, value in body.items():
        if value is not None:
            values.setdefault(name, []).append(value)
    return RequestParameters(values)


def refuse_unknown(names: Iterable[str], known: Sequence[str], about: str = "There is no parameter {}") -> None:
    """Says which there are: often another endpoint has the name."""
    there = f"; known are {', '.join(known)}." if known else "."
    unknown = [name[:80] for name in dict.fromkeys(names) if name not in known]
    if unknown:
        raise together(
            [BadRequest(about.format(name or '""') + there, code="unknown_field", field=name) for name in unknown]
        )


# What a parameter may be. Each reads what is spoken and what JSON gives, and says what is wrong.


def text(name: str, value: Any) -> str:
    found = value.one(name) if isinstance(value, TextValue) else value
    if not isinstance(found, str):
        raise refused(name, f"{name} must be a string.")
    return storable(name, found)


def storable(name: str, found: str) -> str:
    if "\x00" in found or has_lone_surrogate(found):
        raise refused(name, f"{name} contains a character that cannot be stored.")
    return found


def named(name: str, value: Any) -> str:
    """A text that calls something; whether there is such a thing, others know."""
    found = text(name, value)
    if not found:
        raise refused(name, f"{name} is empty.")
    return found


def name_of(name: str, value: Any) -> str:
    """What a new collection or document can be called, as it is stored."""
    try:
        return well_named(text(name, value))
    except ValueError as error:
        raise refused(name, str(error)) from None


def number(least: int, most: int) -> Callable[[str, Any], int]:
    """
    >>> number(1, 200)("k", 5), number(1, 200)("k", TextValue(("7",)))
    (5, 7)
    """

    def reading(name: str, value: Any) -> int:
        if isinstance(value, TextValue):
            spoken = value.one(name)
            value = int(spoken) if re.fullmatch("[0-9]{1,9}", spoken, re.ASCII) else None
        if type(value) is not int or not least <= value <= most:
            raise refused(name, f"{name} must be a whole number from {least} to {most:,}.")
        return value

    return reading


def share(name: str, value: Any) -> float:
    """
    >>> share("alpha", TextValue(("0.5",))), share("alpha", 1)
    (0.5, 1.0)
    """
    if isinstance(value, TextValue):
        spoken = value.one(name)
        value = float(spoken) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,18})?", spoken, re.ASCII) else None
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise refused(name, f"{name} must be a number from 0 to 1.")
    return float(value)


def switch(name: str, value: Any) -> bool | None:
    """None for an empty one, which means the default."""
    if isinstance(value, TextValue):
        spoken = value.one(name)
        if not spoken:
            return None
        value = SWITCH.get(spoken.lower())
    if type(value) is not bool:
        raise refused(name, f"{name} must be true or false.")
    return value


def choice(allowed: Sequence[str]) -> Callable[[str, Any], str]:
    def reading(name: str, value: Any) -> str:
        found = text(name, value)
        if found not in allowed:
            raise refused(name, f"{name} must be one of {', '.join(allowed)}.")
        return found

    return reading


def names(name: str, value: Any) -> list[str]:
    """Collections: an array, or one name; in a query string also several times. Twice the same counts once.

    >>> names("collection_names", TextValue(("b", "a", "b"))), names("collection_names", TextValue(('["a", "c"]',)))
    (['b', 'a'], ['a', 'c'])
    """
    if isinstance(value, TextValue):
        spoken = list(value.texts)
        value = json_text(name, spoken[0]) if len(spoken) == 1 and spoken[0].startswith("[") else spoken
    elif isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise refused(name, f"{name} must be an array of strings.")
    found = list(dict.fromkeys(named(name, each) for each in value))
    if not 1 <= len(found) <= MOST_COLLECTIONS:
        raise refused(name, f"{name} must have 1 to {MOST_COLLECTIONS} names.")
    return found


def query(name: str, value: Any) -> str:
    found = text(name, value)
    if not found.strip():
        raise refused(name, f"{name} is empty.")
    if len(found.encode()) > LONGEST_QUERY_BYTES:
        raise refused(name, f"{name} must have at most {LONGEST_QUERY_BYTES:,} bytes.")
    return found


def filter_text(name: str, value: Any) -> str:
    if not isinstance(value, TextValue | str):
        raise refused(name, f"{name} must be a filter, for example type=manual^priority<3.")
    return text(name, value)


def filter_in(given: RequestParameters, name: str) -> Filter:
    """The conditions on metadata; an empty text is none."""
    found = given.get(name, filter_text) or ""
    if len(found.encode()) > LONGEST_FILTER_BYTES:
        raise refused(name, f"{name} must have at most {LONGEST_FILTER_BYTES:,} bytes.")
    try:
        return filter.read(found)
    except QueryError as error:
        raise BadRequest(
            f"The filter cannot be understood: {error}.", code="invalid_query", field=name, position=error.position
        ) from None


def metadata(name: str, value: Any) -> dict[str, Any]:
    """An object, or its JSON as text, within what documents may have."""
    if isinstance(value, TextValue):
        value = value.one(name)
    if isinstance(value, str):
        return document_metadata.read(value) if value.strip() else {}
    return document_metadata.checked(value)


def long_text(limit: int) -> Callable[[str, Any], str]:
    def reading(name: str, value: Any) -> str:
        found = named(name, value)
        if len(found.encode()) > limit:
            raise TooLarge(f"{name} has at most {limit:,} bytes.", field=name)
        # Refused here, or a document would be kept that nobody can read.
        if not is_text(found, may_be_unknown=True):
            raise refused(name, f"{name} is not a text: it holds too many control characters.")
        return found

    return reading


def json_text(name: str, spoken: str) -> Any:
    try:
        return parse_json(storable(name, spoken).encode())
    except InvalidJson as error:
        raise refused(name, f"{name} is not valid JSON: {error.message}", code="invalid_json") from None


def refused(name: str, message: str, code: str = "invalid_parameter") -> BadRequest:
    return BadRequest(message, code=code, field=name)


def body_limit(text_limit: int) -> int:
    """Bytes of a JSON body whose text has at most so many."""
    return ESCAPES * text_limit + ENVELOPE_BYTES

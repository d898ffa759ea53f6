"""Reads the parameters of the eight endpoints from the query string, the JSON body or the form.

A parameter can come from any of them, and from several if the values are equal. Different values are an error.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rest_framework.request import Request

from collections_app.extract.parsers.common.decoding import is_text
from collections_app.metadata import validation as document_metadata
from collections_app.metadata.filter import Filter, parse_filter
from collections_app.models.collections import normalize_name
from system.encoded_query import QueryError
from system.errors import BadRequest, InvalidParameter, TooLarge, combine_errors
from system.http.uploads import Upload
from system.strict_json import InvalidJson, has_lone_surrogate, parse_json

MAX_COLLECTIONS = 50
MAX_QUERY_BYTES = 8 * 1024
MAX_FILTER_BYTES = 16 * 1024
DEFAULT_K = 5
# Also the maximum of all passages that several queries can ask for together.
MAX_K = 200
MAX_QUERIES = 20
MAX_CONTEXT = 5
MIN_CHARACTERS = 100
MAX_CHARACTERS = 1_000_000
SEARCH_MODES = {"hybrid": "keywords and meaning", "vector": "meaning", "text": "keywords"}
ON_DUPLICATE_CHOICES = {
    "skip": "return the existing document",
    "replace": "replace its content",
    "error": "respond with 409",
}
BOOLEAN_WORDS = {"true": True, "1": True, "false": False, "0": False}
# The body of a text load: JSON can escape each character as \uXXXX; the envelope holds quotes and other parameters.
ESCAPE_FACTOR = 3
ENVELOPE_BYTES = 256 * 1024

ParameterValue = TypeVar("ParameterValue")


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value from a query string or a form, where every value is text; in a JSON body it has its own type."""

    texts: tuple[str, ...]

    def single(self, name: str) -> str:
        if len(self.texts) > 1:
            raise InvalidParameter(f"{name} was given more than once.", field=name)
        return self.texts[0]


@dataclass(frozen=True, slots=True)
class RequestParameters:
    """The parameters of one request, each with its values from every source."""

    values: Mapping[str, Sequence[Any]]

    def get(self, name: str, reader: Callable[[str, Any], ParameterValue | None]) -> ParameterValue | None:
        """Returns the value that all sources agree on, or None."""
        values = [value for raw in self.values.get(name, ()) if (value := reader(name, raw)) is not None]
        # Compared as JSON, because 1 == True in Python.
        if len({json.dumps(value, sort_keys=True, default=str) for value in values}) > 1:
            message = f"{name} was given more than once with different values."
            raise BadRequest(message, code="contradiction", field=name)
        return values[0] if values else None

    def require(self, name: str, reader: Callable[[str, Any], ParameterValue]) -> ParameterValue:
        value = self.get(name, reader)
        if value is None:
            raise BadRequest(f"{name} is required.", code="mandatory", field=name)
        return value


def parse_request(request: Request, known_names: Sequence[str]) -> RequestParameters:
    return parse_parameters(request.query_params, json_body(request), known_names)


def json_body(request: Request) -> Mapping[str, Any]:
    body = request.data
    if not isinstance(body, Mapping):
        raise InvalidJson("The body must be a JSON object.")
    return body


def parse_form(request: Request, upload: Upload, known_names: Sequence[str]) -> RequestParameters:
    fields = {name: TextValue(texts) for name, texts in upload.fields.items()}
    return parse_parameters(request.query_params, fields, known_names)


def parse_parameters(query: Any, body: Mapping[str, Any], known_names: Sequence[str]) -> RequestParameters:
    """Combines query string and body. Refuses unknown names: a misspelled filter would return too many results.

    >>> from django.http import QueryDict
    >>> parse_parameters(QueryDict("k=3"), {"k": 3}, ("k",)).get("k", number_reader(1, 9))
    3
    """
    refuse_unknown((*query, *body), known_names)
    values: dict[str, list[Any]] = {}
    for name in query:
        values.setdefault(name, []).append(TextValue(tuple(query.getlist(name))))
    for name, value in body.items():
        if value is not None:
            values.setdefault(name, []).append(value)
    return RequestParameters(values)


def refuse_unknown(
    names: Iterable[str], known_names: Sequence[str], message: str = 'The parameter "{}" does not exist'
) -> None:
    hint = f". Expected one of: {', '.join(known_names)}." if known_names else "."
    unknown = [name[:80] for name in dict.fromkeys(names) if name not in known_names]
    if errors := [BadRequest(message.format(name) + hint, code="unknown_field", field=name) for name in unknown]:
        raise combine_errors(errors)


# Readers of single parameters, for text and JSON values. Each raises BadRequest with the reason.


def read_text(name: str, value: Any) -> str:
    value = value.single(name) if isinstance(value, TextValue) else value
    if not isinstance(value, str):
        raise InvalidParameter(f"{name} must be a string.", field=name)
    return require_storable(name, value)


def require_storable(name: str, value: str) -> str:
    if "\x00" in value or has_lone_surrogate(value):
        message = f"{name} contains a NUL character or an unpaired surrogate, which cannot be stored."
        raise InvalidParameter(message, field=name)
    return value


def read_nonempty_text(name: str, value: Any) -> str:
    content = read_text(name, value)
    if not content:
        raise InvalidParameter(f"{name} must not be empty.", field=name)
    return content


def read_name(name: str, value: Any) -> str:
    """Reads the name of a new collection or document; returns its stored form."""
    return normalize_name(read_text(name, value), name)


def number_reader(minimum: int, maximum: int) -> Callable[[str, Any], int]:
    """
    >>> number_reader(1, 200)("k", 5), number_reader(1, 200)("k", TextValue(("7",)))
    (5, 7)
    """

    def read(name: str, value: Any) -> int:
        if isinstance(value, TextValue):
            digits = value.single(name)
            value = int(digits) if re.fullmatch("[0-9]{1,9}", digits, re.ASCII) else None
        if type(value) is not int or not minimum <= value <= maximum:
            raise InvalidParameter(f"{name} must be a whole number from {minimum} to {maximum:,}.", field=name)
        return value

    return read


def read_weight(name: str, value: Any) -> float:
    """
    >>> read_weight("alpha", TextValue(("0.5",))), read_weight("alpha", 1)
    (0.5, 1.0)
    """
    if isinstance(value, TextValue):
        digits = value.single(name)
        value = float(digits) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,18})?", digits, re.ASCII) else None
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise InvalidParameter(f"{name} must be a number from 0 to 1.", field=name)
    return float(value)


def read_boolean(name: str, value: Any) -> bool | None:
    """Returns None for an empty value, which means the default."""
    if isinstance(value, TextValue):
        text = value.single(name)
        if not text:
            return None
        value = BOOLEAN_WORDS.get(text.lower())
    if type(value) is not bool:
        raise InvalidParameter(f"{name} must be true or false.", field=name)
    return value


def choice_reader(choices: Collection[str]) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        value_text = read_text(name, value)
        if value_text not in choices:
            raise InvalidParameter(f"{name} must be one of: {', '.join(choices)}.", field=name)
        return value_text

    return read


def read_collection_names(name: str, value: Any) -> list[str]:
    """Duplicates are dropped."""
    unique_names = list(dict.fromkeys(read_texts(name, value)))
    if not 1 <= len(unique_names) <= MAX_COLLECTIONS:
        raise InvalidParameter(f"{name} must contain 1 to {MAX_COLLECTIONS} names.", field=name)
    return unique_names


def read_queries(name: str, value: Any) -> list[str]:
    queries = [read_query(name, query) for query in read_texts(name, value)]
    if not 1 <= len(queries) <= MAX_QUERIES:
        raise InvalidParameter(f"{name} must contain 1 to {MAX_QUERIES} queries.", field=name)
    return queries


def read_texts(name: str, value: Any) -> list[str]:
    """Reads an array of texts, one text, or a repeated parameter of a query string.

    >>> read_texts("names", TextValue(("b", "a"))), read_texts("names", TextValue(('["a", "c"]',)))
    (['b', 'a'], ['a', 'c'])
    """
    if isinstance(value, TextValue):
        texts = list(value.texts)
        value = parse_json_text(name, texts[0]) if len(texts) == 1 and texts[0].startswith("[") else texts
    elif isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidParameter(f"{name} must be an array of strings.", field=name)
    if "" in value:
        raise InvalidParameter(f"{name} must not contain an empty string.", field=name)
    return [read_text(name, item) for item in value]


def read_query(name: str, value: Any) -> str:
    query = read_text(name, value)
    if not query.strip():
        raise InvalidParameter(f"{name} must not be empty.", field=name)
    if len(query.encode()) > MAX_QUERY_BYTES:
        raise InvalidParameter(f"{name} must not exceed {MAX_QUERY_BYTES:,} bytes.", field=name)
    return query


def read_filter_text(name: str, value: Any) -> str:
    if not isinstance(value, TextValue | str):
        raise InvalidParameter(f"{name} must be a filter string, such as type=manual^priority<3.", field=name)
    return read_text(name, value)


def read_filter(values: RequestParameters, name: str) -> Filter:
    """Reads a metadata filter; an empty string matches all documents."""
    encoded_query = values.get(name, read_filter_text) or ""
    if len(encoded_query.encode()) > MAX_FILTER_BYTES:
        raise InvalidParameter(f"{name} must not exceed {MAX_FILTER_BYTES:,} bytes.", field=name)
    try:
        return parse_filter(encoded_query)
    except QueryError as error:
        message = f"Invalid filter: {error}."
        raise BadRequest(message, code="invalid_query", field=name, position=error.position) from None


def read_metadata(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, TextValue):
        value = value.single(name)
    if isinstance(value, str):
        return document_metadata.parse_metadata(value) if value.strip() else {}
    return document_metadata.validate_metadata(value)


def long_text_reader(limit: int) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        content = read_nonempty_text(name, value)
        if len(content.encode()) > limit:
            raise TooLarge(f"{name} must not exceed {limit:,} bytes.", field=name)
        # Refused here; otherwise the document would be stored, but its text could never be extracted.
        if not is_text(content, allows_unassigned=True):
            raise InvalidParameter(f"{name} must be text, but it contains too many control characters.", field=name)
        return content

    return read


def parse_json_text(name: str, value: str) -> Any:
    try:
        return parse_json(require_storable(name, value).encode())
    except InvalidJson as error:
        raise InvalidJson(f"{name} cannot be parsed. {error.message}", field=name) from None

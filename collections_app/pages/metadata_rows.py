"""Metadata as rows of a form, each with the name, the type and the value of a field."""

import json
import re
from collections.abc import Iterable
from typing import Any

from django.http import QueryDict

from collections_app.metadata.validation import InvalidMetadata
from system.errors import combine_errors
from system.strict_json import InvalidJson, parse_json

VALUE_TYPES = {"text": "Text", "number": "Number", "boolean": "Yes or no", "list": "List of texts", "json": "JSON"}
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
BOOLEANS = {"true": "true", "yes": "true", "false": "false", "no": "false"}
EMPTY_ROWS = 2


def rows_context(rows: Iterable[dict[str, str]] = ()) -> dict[str, Any]:
    """Returns the context of `metadata_rows.html`, with empty rows for further fields."""
    empty_rows = [{"name": "", "type": "text", "value": ""}] * EMPTY_ROWS
    return {"metadata_rows": [*rows, *empty_rows], "value_types": VALUE_TYPES.items()}


def to_rows(metadata: dict[str, Any]) -> list[dict[str, str]]:
    """Returns a row for each field, from which `rows_json` restores the same value.

    >>> [(row["type"], row["value"]) for row in to_rows({"a": "x", "b": True, "c": 1.5, "d": ["x", "y"], "e": ["x,y"]})]
    [('text', 'x'), ('boolean', 'yes'), ('number', '1.5'), ('list', 'x, y'), ('json', '["x,y"]')]
    """
    return [{"name": name, **_typed_text(value)} for name, value in metadata.items()]


def _typed_text(value: Any) -> dict[str, str]:
    # A text field of a page drops line breaks.
    if isinstance(value, str) and not re.search(r"[\r\n]", value):
        return {"type": "text", "value": value}
    if isinstance(value, bool):
        return {"type": "boolean", "value": "yes" if value else "no"}
    if isinstance(value, list) and value and all(isinstance(item, str) and _is_list_item(item) for item in value):
        return {"type": "list", "value": ", ".join(value)}
    value_type = "number" if isinstance(value, int | float) else "json"
    return {"type": value_type, "value": json.dumps(value, ensure_ascii=False)}


def _is_list_item(text: str) -> bool:
    return bool(text) and text == text.strip() and not re.search(r"[,\r\n]", text)


def submitted_rows(form: QueryDict) -> list[dict[str, str]]:
    """Returns the rows that have a name or a value."""
    columns = (form.getlist(f"field_{column}") for column in ("name", "type", "value"))
    rows = [dict(zip(("name", "type", "value"), row, strict=True)) for row in zip(*columns, strict=False)]
    return [row for row in rows if row["name"] or row["value"]]


def rows_json(rows: Iterable[dict[str, str]]) -> str:
    """Returns the metadata as JSON; raises one error for all values that do not have their type.

    >>> rows_json([{"name": "tags", "type": "list", "value": "a, b"}, {"name": "n", "type": "number", "value": " 2"}])
    '{"tags": ["a", "b"], "n": 2}'
    """
    members, errors = [], []
    for row in rows:
        try:
            members.append(f"{json.dumps(row['name'])}: {_literal(row['type'], row['value'])}")
        except InvalidMetadata as error:
            errors.append(InvalidMetadata(f"{row['name'][:80]}: {error.message}", field="metadata"))
    if errors:
        raise combine_errors(errors)
    return f"{{{', '.join(members)}}}"


def _literal(value_type: str, value: str) -> str:
    stripped_value = value.strip()
    if value_type == "number":
        if not NUMBER.fullmatch(stripped_value):
            raise InvalidMetadata("a number is expected, such as 2 or 1.5.")
        return stripped_value
    if value_type == "boolean":
        if stripped_value.lower() not in BOOLEANS:
            raise InvalidMetadata("yes or no is expected.")
        return BOOLEANS[stripped_value.lower()]
    if value_type == "list":
        return json.dumps([item.strip() for item in value.split(",") if item.strip()], ensure_ascii=False)
    if value_type == "json":
        try:
            parse_json(value.encode("utf-8", "surrogatepass"))
        except InvalidJson as error:
            raise InvalidMetadata(error.message) from None
        return stripped_value
    return json.dumps(value, ensure_ascii=False)

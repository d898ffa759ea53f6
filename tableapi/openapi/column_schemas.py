"""OpenAPI schemas of the values of each column type, in responses and requests. Pure."""

from collections.abc import Mapping
from typing import Any

from system.openapi import Object, object_of
from tableapi.catalogue.definitions import Column

DATE_PATTERN = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
TIME_PATTERN = DATE_PATTERN[:-1] + " ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$"
EXAMPLE_ID = "179576012200000053"
# Without the link, which would reveal the name of a hidden table.
REFERENCE_EXAMPLE = {"value": EXAMPLE_ID}
ID_SCHEMA: Object = {"type": "string", "pattern": "^[0-9a-z]{1,32}$"}
NULL_SCHEMA: Object = {"type": "null"}
IMPORTED_ID_SCHEMA: Object = {
    "anyOf": [ID_SCHEMA, NULL_SCHEMA],
    "description": "The ID of an imported record. If omitted, the service generates an ID.",
    "examples": [None],
}

# Hundreds of columns refer to these schemas, which makes the document a third as long.
VALUE_SCHEMAS: Mapping[str, Object] = {
    "Time": {"type": "string", "pattern": TIME_PATTERN, "description": "In UTC.", "examples": ["2024-05-19 13:45:00"]},
    "TimeInput": {
        "anyOf": [{"type": "string", "pattern": TIME_PATTERN}, {"type": "string", "format": "date-time"}],
        "description": "In UTC, or with a time zone offset.",
        "examples": ["2024-05-19 13:45:00", "2024-05-19T15:45:00+02:00"],
    },
    "DateInput": {"type": "string", "pattern": DATE_PATTERN, "examples": ["2024-05-19"]},
    "Reference": {
        "anyOf": [
            object_of({"value": ID_SCHEMA, "link": {"type": "string", "format": "uri"}}, optional=("link",)),
            ID_SCHEMA,
        ]
    },
}


def response_schema(column: Column, target_label: str) -> Object:
    return _describe(dict(column.column_type.schema), column, target_label, REFERENCE_EXAMPLE)


def request_schema(column: Column, target_label: str) -> Object:
    """Return the schema of a value in a request; mandatory columns do not accept null."""
    column_type = column.column_type
    schema = dict(column_type.request_schema or column_type.schema)
    if column.mandatory:
        schema = _not_null(schema)
    # For HTML, the limit applies to its plain text.
    if column.max_length is not None and column_type.has_max_length and not column_type.is_html:
        schema["maxLength"] = column.max_length
    if column.mandatory and column_type.is_text:
        schema["minLength"] = 1
    return _describe(schema, column, target_label, EXAMPLE_ID if column.mandatory else None)


def _example(column: Column, reference_example: Any) -> Any:
    """A value that the column accepts. References in request bodies are empty if possible, as no ID always exists."""
    column_type = column.column_type
    if column.name == "sys_id":
        return EXAMPLE_ID
    if column.choices:
        return column.default if column.default in dict(column.choices) else column.choices[0][0]
    if column_type.is_list:
        return [] if reference_example is None else [reference_example]
    if column_type.is_reference:
        return reference_example
    return (
        column_type.example if column_type.example is not None else (column.label or column.name)[: column.max_length]
    )


def _not_null(schema: Object) -> Object:
    """
    >>> _not_null({"type": ["string", "null"]})
    {'type': 'string'}
    """
    if "anyOf" in schema:
        return schema | {"anyOf": [part for part in schema["anyOf"] if part != NULL_SCHEMA]}
    return schema | ({"type": schema["type"][0]} if "type" in schema else {})


def _describe(schema: Object, column: Column, target_label: str, reference_example: Any) -> Object:
    column_type = column.column_type
    if not column_type.is_write_only:
        schema["examples"] = [_example(column, reference_example)]
    schema["title"] = column.label or column.name
    if column.choices:
        schema["enum"] = [value for value, _ in column.choices]
        if isinstance(schema["type"], list):
            schema["enum"].append(None)
        schema["description"] = ", ".join(f"`{value}`: {label}" for value, label in column.choices)
    elif target_label:
        schema["description"] = f"{'References' if column_type.is_list else 'Reference'} to {target_label}."
    json_types = (column_type.request_schema or column_type.schema).get("type", ())
    is_plain_string = "string" in json_types and not column_type.is_html
    is_constant = bool(column.default) and "javascript:" not in column.default
    if is_constant and is_plain_string and column_type.has_default and not column.read_only:
        # Not as `default`, because generators of clients then treat the property as always present.
        schema["description"] = ". ".join(filter(None, (schema.get("description"), f"Default: `{column.default}`")))
    return schema

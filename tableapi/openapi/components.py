"""Components of the OpenAPI document that all tables share: parameters, schemas and headers. Pure."""

from system.openapi import Object, reference
from tableapi.query.parameters import DEFAULT_LIMIT, MAX_PAGED_RECORDS, MAX_RECORDS

from .column_schemas import VALUE_SCHEMAS


def parameter(name: str, schema: Object, description: str, location: str = "query") -> Object:
    described = {"name": name, "in": location, "schema": schema, "description": description}
    return described | ({"required": True} if location == "path" else {})


SWITCH_SCHEMA: Object = {"type": "string", "enum": ["0", "1", "false", "true"], "default": "0"}
PARAMETERS: dict[str, Object] = {
    "tableName": parameter("tableName", {"type": "string"}, "The name of a table.", "path"),
    "sysId": parameter("sys_id", {"type": "string", "pattern": "^[0-9a-z]{1,32}$"}, "The id of a record.", "path"),
    "query": parameter("sysparm_query", {"type": "string"}, "An encoded query: which records, in which order."),
    "limit": parameter(
        "sysparm_limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_RECORDS, "default": DEFAULT_LIMIT},
        "The maximum number of records.",
    ),
    "page": parameter(
        "sysparm_page",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGED_RECORDS, "default": 1},
        "The number of the page; limit times page is at most 1,000,000. Follow the cursor for more.",
    ),
    "cursor": parameter(
        "sysparm_cursor", {"type": "string"}, 'The next page, from `Link` with `rel="next"`; replaces the page number.'
    ),
    "count": parameter(
        "sysparm_count",
        {"type": "string", "enum": ["exact", "estimated"]},
        "Adds `X-Total-Count`; `estimated` counts up to 10,000.",
    ),
    "category": parameter("sysparm_query_category", {"type": "string"}, "`replica`: this read may go to a replica."),
    "display": parameter(
        "sysparm_display_value",
        SWITCH_SCHEMA | {"enum": [*SWITCH_SCHEMA["enum"], "all"]},
        "`0`: stored values; `1`: display values; `all`: both.",
    ),
    "links": parameter("sysparm_exclude_reference_link", SWITCH_SCHEMA, "`1`: references without their links."),
    "fields": parameter(
        "sysparm_fields", {"type": "string"}, "Field names, separated by commas; dots follow references."
    ),
    "view": parameter("sysparm_view", {"type": "string"}, "The name of a form view: the response has its fields."),
    "input": parameter(
        "sysparm_input_display_value", SWITCH_SCHEMA, "`1`: references and choices in the body are display values."
    ),
    "ifMatch": parameter(
        "If-Match", {"type": "string"}, "The ETag that was read; a record that has changed since is a 412.", "header"
    ),
    "ifNoneMatch": parameter(
        "If-None-Match", {"type": "string"}, "An ETag. If it still matches, the response is 304.", "header"
    ),
    "idempotencyKey": parameter(
        "Idempotency-Key",
        {"type": "string", "maxLength": 255},
        "The same request with the same key within 24 hours gets the first response.",
        "header",
    ),
}
OUTPUT_PARAMETERS = ("display", "links", "fields", "view")
LIST_PARAMETERS = ("query", "limit", "page", "cursor", *OUTPUT_PARAMETERS, "count", "category")
WRITE_PARAMETERS = (*OUTPUT_PARAMETERS, "input", "idempotencyKey")

SCHEMAS: dict[str, Object] = {
    **VALUE_SCHEMAS,
    "Record": {
        "type": "object",
        "description": "A record: a value for each field. With `sysparm_display_value`, values are display values "
        "or objects of both; the key of a field behind references is its path.",
        "additionalProperties": True,
    },
    "Records": {
        "type": "object",
        "required": ["status", "data"],
        "properties": {"status": {"const": "OK"}, "data": {"type": "array", "items": reference("schemas", "Record")}},
    },
    "NewValues": {
        "type": "object",
        "description": "Columns and values of exactly one record.",
        "additionalProperties": True,
    },
    "Deleted": {
        "type": "object",
        "required": ["status", "data"],
        "properties": {
            "status": {"const": "OK"},
            "data": {"type": "object", "required": ["description"], "properties": {"description": {"type": "string"}}},
        },
    },
}
RECORD_HEADERS = ("X-Ignored-Fields",)
LIST_HEADERS = ("Link", "X-Total-Count", *RECORD_HEADERS)
RESPONSE_HEADERS: dict[str, Object] = {
    name: {"description": description, "schema": {"type": "string"}}
    for name, description in {
        "Link": 'The next page, with `rel="next"`; absent on the last page.',
        "X-Total-Count": "The number of records, if `sysparm_count` asks for it.",
        "X-Ignored-Fields": "Names in `sysparm_fields` that do not exist.",
        "ETag": "The record's version and a hash of the response.",
        "Location": "The URL of the new record.",
    }.items()
}

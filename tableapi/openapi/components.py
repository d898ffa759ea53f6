"""What the operations of every table have in common in the OpenAPI document, each part said once and referred to."""

from __future__ import annotations

from tableapi.query.parameters import DEEPEST_RECORD, DEFAULT_LIMIT, MOST_RECORDS

from .column_schemas import TYPES, Object, reference


def parameter(name: str, schema: Object, about: str, place: str = "query") -> Object:
    found = {"name": name, "in": place, "schema": schema, "description": about}
    return found | ({"required": True} if place == "path" else {})


SWITCH: Object = {"type": "string", "enum": ["0", "1", "false", "true"], "default": "0"}
PARAMETERS: dict[str, Object] = {
    "tableName": parameter("tableName", {"type": "string"}, "The name of a table.", "path"),
    "sysId": parameter("sys_id", {"type": "string", "pattern": "^[0-9a-z]{1,32}$"}, "The id of a record.", "path"),
    "query": parameter("sysparm_query", {"type": "string"}, "An encoded query: which records, in which order."),
    "limit": parameter(
        "sysparm_limit",
        {"type": "integer", "minimum": 1, "maximum": MOST_RECORDS, "default": DEFAULT_LIMIT},
        "How many records at most.",
    ),
    "page": parameter(
        "sysparm_page",
        {"type": "integer", "minimum": 1, "maximum": DEEPEST_RECORD, "default": 1},
        "Which page; limit times page is at most 1,000,000. Follow the cursor for more.",
    ),
    "cursor": parameter(
        "sysparm_cursor", {"type": "string"}, 'Where a list goes on, from `Link` with `rel="next"`; in place of a page.'
    ),
    "count": parameter(
        "sysparm_count",
        {"type": "string", "enum": ["exact", "estimated"]},
        "Adds `X-Total-Count`; `estimated` counts up to 10,000.",
    ),
    "category": parameter("sysparm_query_category", {"type": "string"}, "`replica`: this read may go to a replica."),
    "display": parameter(
        "sysparm_display_value",
        SWITCH | {"enum": [*SWITCH["enum"], "all"]},
        "`0`: values as stored; `1`: as people read them; `all`: both.",
    ),
    "links": parameter("sysparm_exclude_reference_link", SWITCH, "`1`: references without their links."),
    "fields": parameter(
        "sysparm_fields", {"type": "string"}, "Names of fields, separated by commas; dots walk through references."
    ),
    "view": parameter("sysparm_view", {"type": "string"}, "The name of a form view, whose fields are answered."),
    "input": parameter(
        "sysparm_input_display_value", SWITCH, "`1`: references and choices in the body are as people read them."
    ),
    "ifMatch": parameter(
        "If-Match", {"type": "string"}, "The ETag that was read: a record changed since then is a 412.", "header"
    ),
    "ifNoneMatch": parameter("If-None-Match", {"type": "string"}, "An ETag: 304 while it is the same.", "header"),
    "idempotencyKey": parameter(
        "Idempotency-Key",
        {"type": "string", "maxLength": 255},
        "The same request with the same key within 24 hours gets the first answer.",
        "header",
    ),
}
SHOWN = ("display", "links", "fields", "view")
OF_LIST = ("query", "limit", "page", "cursor", *SHOWN, "count", "category")
OF_WRITE = (*SHOWN, "input", "idempotencyKey")

SCHEMAS: dict[str, Object] = {
    **TYPES,
    "Record": {
        "type": "object",
        "description": "A record: a value for each field. With `sysparm_display_value` values are as people read them, "
        "or objects of both; a field that was walked to is called by its path.",
        "additionalProperties": True,
    },
    "Records": {
        "type": "object",
        "required": ["status", "data"],
        "properties": {
            "status": {"const": "OK"},
            "data": {"type": "array", "items": reference("schemas", "Record")},
        },
    },
    "NewValues": {
        "type": "object",
        "description": "Columns and their values, exactly one record.",
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
OF_ANSWERED_RECORDS = ("X-Ignored-Fields", "X-Ignored-Parameters")
OF_ANSWERED_LISTS = ("Link", "X-Total-Count", *OF_ANSWERED_RECORDS, "X-Doubtful-Conditions")
HEADERS: dict[str, Object] = {
    name: {"description": about, "schema": {"type": "string"}}
    for name, about in {
        "Link": 'Where the list goes on, with `rel="next"`; absent at its end.',
        "X-Total-Count": "How many records there are, when it was asked for.",
        "X-Doubtful-Conditions": "Of an empty list: conditions whose value is no choice of the column, or no id.",
        "X-Ignored-Fields": "Names of `sysparm_fields` that are not there.",
        "X-Ignored-Parameters": "Parameters of the request that this operation does not know.",
        "ETag": "The record's version and a hash of the answer.",
        "Location": "Where the new record is.",
    }.items()
}

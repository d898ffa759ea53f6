"""Components of the OpenAPI document that all tables share: parameters, schemas and headers. Pure."""

from system.openapi import Object, reference
from tableapi.query.parameters import DEFAULT_LIMIT, MAX_CHANGES, MAX_PAGED_RECORDS, MAX_RECORDS
from tableapi.statistics.parameters import DEFAULT_GROUPS, FUNCTIONS

from .attached_schemas import ATTACHED_SCHEMAS
from .column_schemas import VALUE_SCHEMAS
from .other_schemas import OTHER_SCHEMAS, envelope_of


def parameter(name: str, schema: Object, description: str, location: str = "query") -> Object:
    described = {"name": name, "in": location, "schema": schema, "description": description}
    return described | ({"required": True} if location == "path" else {})


SWITCH_SCHEMA: Object = {"type": "string", "enum": ["0", "1", "false", "true"], "default": "0"}
PARAMETERS: dict[str, Object] = {
    "tableName": parameter("tableName", {"type": "string"}, "The name of a table.", "path"),
    "sysId": parameter("sys_id", {"type": "string", "pattern": "^[0-9a-z]{1,32}$"}, "The id of a record.", "path"),
    "query": parameter("sysparm_query", {"type": "string"}, "An encoded query that filters and sorts the records."),
    "limit": parameter(
        "sysparm_limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_RECORDS, "default": DEFAULT_LIMIT},
        "The maximum number of records.",
    ),
    "page": parameter(
        "sysparm_page",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGED_RECORDS, "default": 1},
        "The page number. `sysparm_limit` times `sysparm_page` is at most 1,000,000. To read more, use the cursor.",
    ),
    "cursor": parameter(
        "sysparm_cursor", {"type": "string"}, 'The cursor from `Link` with `rel="next"`, instead of a page number.'
    ),
    "count": parameter(
        "sysparm_count",
        {"type": "string", "enum": ["exact", "estimated"]},
        "Returns the number of matching records in `X-Total-Count`. `estimated` stops counting at 10,000.",
    ),
    "formulas": parameter("sysparm_keep_formulas", SWITCH_SCHEMA, "`1` leaves formulas in CSV as they are."),
    "category": parameter("sysparm_query_category", {"type": "string"}, "`replica` allows reading from a replica."),
    "display": parameter(
        "sysparm_display_value",
        SWITCH_SCHEMA | {"enum": [*SWITCH_SCHEMA["enum"], "all"]},
        "`0` returns stored values, `1` returns display values, and `all` returns both.",
    ),
    "links": parameter("sysparm_exclude_reference_link", SWITCH_SCHEMA, "`1` returns references without links."),
    "fields": parameter(
        "sysparm_fields", {"type": "string"}, "Fields to return, separated by commas. Use dots to follow references."
    ),
    "view": parameter("sysparm_view", {"type": "string"}, "The form view whose fields to return."),
    "input": parameter("sysparm_input_display_value", SWITCH_SCHEMA, "`1` if the body contains display values."),
    "entryLimit": parameter(
        "sysparm_limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_CHANGES, "default": DEFAULT_LIMIT},
        "The maximum number of entries.",
    ),
    "historyCursor": parameter("sysparm_cursor", {"type": "string"}, 'The cursor from `Link` with `rel="next"`.'),
    "since": parameter(
        "since", {"type": "string"}, "The cursor of the last response. Without it, the oldest changes are returned."
    ),
    "withCount": parameter("sysparm_count", SWITCH_SCHEMA, "`1` or `true` returns the number of records."),
    **{
        f"{function}Fields": parameter(
            f"sysparm_{function}_fields", {"type": "string"}, f"Columns, separated by commas, for `{function}`."
        )
        for function in FUNCTIONS
    },
    "groupBy": parameter(
        "sysparm_group_by",
        {"type": "string"},
        "Up to three columns to group by, separated by commas; a date with a period, such as `opened_at:month`.",
    ),
    "having": parameter(
        "sysparm_having", {"type": "string"}, "Conditions on groups, such as `count>5^sum(quantity)>=100`."
    ),
    "orderBy": parameter(
        "sysparm_order_by", {"type": "string"}, "Groups or aggregates to sort by, such as `-count,state`."
    ),
    "groupLimit": parameter(
        "sysparm_limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_RECORDS, "default": DEFAULT_GROUPS},
        "The maximum number of groups.",
    ),
    "import": parameter(
        "sysparm_import",
        SWITCH_SCHEMA,
        "`1` lets an administrator set the number, and when and by whom the record was created and changed.",
    ),
    "key": parameter("sysparm_key", {"type": "string"}, "The unique column. The body must have its value."),
    "onError": parameter(
        "on_error",
        {"type": "string", "enum": ["stop", "continue"], "default": "stop"},
        "`stop` writes nothing if a record fails. `continue` writes the others.",
    ),
    "entry": parameter("entry", {"type": "string", "pattern": "^[0-9a-z]{1,32}$"}, "The id of the entry.", "path"),
    "fileName": parameter("file_name", {"type": "string"}, "The name of the file, if the body is the file itself."),
    "unread": parameter("unread", SWITCH_SCHEMA, "`1` returns only what you have not read."),
    "ifMatch": parameter(
        "If-Match", {"type": "string"}, "The ETag you read. If it no longer matches, the response is 412.", "header"
    ),
    "ifNoneMatch": parameter(
        "If-None-Match", {"type": "string"}, "The ETag you read. If it still matches, the response is 304.", "header"
    ),
    "idempotencyKey": parameter(
        "Idempotency-Key",
        {"type": "string", "maxLength": 255},
        "A unique key for safe retries. Repeating the request within 24 hours returns the first response.",
        "header",
    ),
}
OUTPUT_PARAMETERS = ("display", "links", "fields", "view")
LIST_PARAMETERS = ("query", "limit", "page", "cursor", *OUTPUT_PARAMETERS, "count", "category", "formulas")
AGGREGATE_PARAMETERS = tuple(f"{function}Fields" for function in FUNCTIONS)
GROUP_PARAMETERS = ("groupBy", "having", "orderBy", "groupLimit", "display")
STATISTICS_PARAMETERS = ("query", "withCount", *AGGREGATE_PARAMETERS, *GROUP_PARAMETERS)
WRITE_PARAMETERS = (*OUTPUT_PARAMETERS, "input", "idempotencyKey")


SCHEMAS: dict[str, Object] = {
    **VALUE_SCHEMAS,
    "Record": {
        "type": "object",
        "description": "The fields of a record. `sysparm_display_value` decides whether they have stored values, "
        "display values or objects with both. The key of a field reached through references is its path.",
        "additionalProperties": True,
    },
    "Records": envelope_of({"type": "array", "items": reference("schemas", "Record")}),
    **OTHER_SCHEMAS,
    **ATTACHED_SCHEMAS,
    "NewValues": {
        "type": "object",
        "description": "Columns and values of exactly one record.",
        "additionalProperties": True,
    },
    "Deleted": envelope_of(
        {"type": "object", "required": ["description"], "properties": {"description": {"type": "string"}}}
    ),
}
RECORD_HEADERS = ("X-Ignored-Fields",)
LIST_HEADERS = ("Link", "X-Total-Count", *RECORD_HEADERS)
RESPONSE_HEADERS: dict[str, Object] = {
    name: {"description": description, "schema": {"type": "string"}}
    for name, description in {
        "Link": 'The URL of the next page, with `rel="next"`. Absent on the last page.',
        "X-Total-Count": "The number of matching records. Only returned if `sysparm_count` is set.",
        "X-Ignored-Fields": "Names in `sysparm_fields` that were ignored because they do not exist.",
        "ETag": "Identifies the version of the returned record. Send it in `If-Match` or `If-None-Match`.",
        "Location": "The URL of the new record.",
    }.items()
}

"""Parameters and headers of the OpenAPI document that all tables share. Pure."""

from dataclasses import Field, fields
from typing import Any

from system.openapi import Object
from tableapi.imports.options import ImportOptions
from tableapi.query.parameters import DEFAULT_LIMIT, MAX_CHANGES, MAX_PAGED_RECORDS, MAX_RECORDS
from tableapi.statistics.parameters import DEFAULT_GROUPS, FUNCTIONS

from .column_schemas import ID_SCHEMA
from .schemas import TEXT


def parameter(name: str, description: str, schema: Object = TEXT, location: str = "query") -> Object:
    definition = {"name": name, "in": location, "schema": schema, "description": description}
    return definition | ({"required": True} if location == "path" else {})


def limit_schema(maximum: int, default: int) -> Object:
    return {"type": "integer", "minimum": 1, "maximum": maximum, "default": default}


SWITCH_SCHEMA: Object = {"type": "string", "enum": ["0", "1", "false", "true"], "default": "0"}


def _option_parameter(option: Field[Any]) -> Object:
    schema: Object = SWITCH_SCHEMA if option.default is False else TEXT
    if choices := option.metadata["choices"]:
        schema = TEXT | {"enum": list(choices)} | ({"default": option.default} if option.default else {})
    return parameter(option.name, option.metadata["description"], schema)


PARAMETERS: dict[str, Object] = {
    "tableName": parameter("tableName", "The name of a table.", location="path"),
    "sysId": parameter("sys_id", "The ID of a record.", ID_SCHEMA, "path"),
    "query": parameter("sysparm_query", "An encoded query that filters and sorts the records."),
    "limit": parameter("sysparm_limit", "The maximum number of records.", limit_schema(MAX_RECORDS, DEFAULT_LIMIT)),
    "page": parameter(
        "sysparm_page",
        "The page number. `sysparm_limit` times `sysparm_page` is at most 1,000,000. To read more, use the cursor.",
        limit_schema(MAX_PAGED_RECORDS, 1),
    ),
    "cursor": parameter(
        "sysparm_cursor", 'The cursor from the `Link` header with `rel="next"`. Use it instead of a page number.'
    ),
    "count": parameter(
        "sysparm_count",
        "Returns the number of matching records in `X-Total-Count`. `estimated` stops counting at 10,000.",
        {"type": "string", "enum": ["exact", "estimated"]},
    ),
    "prune": parameter("prune", "`1` also deletes what the file omits from its sections.", SWITCH_SCHEMA),
    "formulas": parameter("sysparm_keep_formulas", "`1` leaves formulas in CSV unescaped.", SWITCH_SCHEMA),
    "category": parameter("sysparm_query_category", "`replica` allows reading from a replica."),
    "display": parameter(
        "sysparm_display_value",
        "`0` returns stored values, `1` returns display values, and `all` returns both.",
        SWITCH_SCHEMA | {"enum": [*SWITCH_SCHEMA["enum"], "all"]},
    ),
    "links": parameter("sysparm_exclude_reference_link", "`1` returns references without links.", SWITCH_SCHEMA),
    "fields": parameter("sysparm_fields", "Fields to return, separated by commas. Use dots to follow references."),
    "view": parameter("sysparm_view", "The form view whose fields are returned."),
    "input": parameter("sysparm_input_display_value", "`1` if the body contains display values.", SWITCH_SCHEMA),
    "entryLimit": parameter(
        "sysparm_limit", "The maximum number of entries.", limit_schema(MAX_CHANGES, DEFAULT_LIMIT)
    ),
    "historyCursor": parameter("sysparm_cursor", 'The cursor from `Link` with `rel="next"`.'),
    "since": parameter("since", "The cursor from the previous response. If omitted, the oldest changes are returned."),
    "withCount": parameter("sysparm_count", "`1` or `true` returns the number of records.", SWITCH_SCHEMA),
    **{
        f"{function}Fields": parameter(f"sysparm_{function}_fields", f"Columns for `{function}`, separated by commas.")
        for function in FUNCTIONS
    },
    "groupBy": parameter(
        "sysparm_group_by",
        "Up to three columns to group by, separated by commas. Dates can have a period: `opened_at:month`.",
    ),
    "having": parameter("sysparm_having", "Conditions on groups, such as `count>5^sum(quantity)>=100`."),
    "orderBy": parameter("sysparm_order_by", "Groups or aggregates to sort by, such as `-count,state`."),
    "groupLimit": parameter(
        "sysparm_limit", "The maximum number of groups.", limit_schema(MAX_RECORDS, DEFAULT_GROUPS)
    ),
    "import": parameter(
        "sysparm_import",
        "`1` lets an administrator set the number and the `sys_created_*` and `sys_updated_*` columns.",
        SWITCH_SCHEMA,
    ),
    "key": parameter(
        "sysparm_key", "The unique column that identifies the record. The body must contain a value for it."
    ),
    "onError": parameter(
        "on_error",
        "`stop` writes nothing if a record fails. `continue` writes the others.",
        {"type": "string", "enum": ["stop", "continue"], "default": "stop"},
    ),
    **{f"import_{option.name}": _option_parameter(option) for option in fields(ImportOptions)},
    "entry": parameter("entry", "The ID of the entry.", ID_SCHEMA, "path"),
    "fileName": parameter("file_name", "The name of the file, if the body is the file itself."),
    "unread": parameter("unread", "`1` returns only unread notifications.", SWITCH_SCHEMA),
    "ifMatch": parameter(
        "If-Match", "The ETag you read. If it no longer matches, the response is 412.", location="header"
    ),
    "ifNoneMatch": parameter(
        "If-None-Match", "The ETag you read. If it still matches, the response is 304.", location="header"
    ),
    "idempotencyKey": parameter(
        "Idempotency-Key",
        "A unique key for safe retries. Repeating the request within 24 hours returns the first response.",
        TEXT | {"maxLength": 255},
        "header",
    ),
}
OUTPUT_PARAMETERS = ("display", "links", "fields", "view")
LIST_PARAMETERS = ("query", "limit", "page", "cursor", *OUTPUT_PARAMETERS, "count", "category", "formulas")
AGGREGATE_PARAMETERS = tuple(f"{function}Fields" for function in FUNCTIONS)
GROUP_PARAMETERS = ("groupBy", "having", "orderBy", "groupLimit", "display")
STATISTICS_PARAMETERS = ("query", "withCount", *AGGREGATE_PARAMETERS, *GROUP_PARAMETERS)
WRITE_PARAMETERS = (*OUTPUT_PARAMETERS, "input", "idempotencyKey")
IMPORT_PARAMETERS = tuple(name for name in PARAMETERS if name.startswith("import_"))
RECORD_HEADERS = ("X-Ignored-Fields",)
RESPONSE_HEADERS: dict[str, Object] = {
    name: {"description": description, "schema": TEXT}
    for name, description in {
        "Link": 'The URL of the next page, with `rel="next"`. Absent on the last page.',
        "X-Total-Count": "The number of matching records. Only returned if `sysparm_count` is set.",
        "X-Ignored-Fields": "Names in `sysparm_fields` that were ignored because they do not exist.",
        "ETag": "Identifies the version of the returned record. Send it in `If-Match` or `If-None-Match`.",
        "Location": "The URL of the new record.",
    }.items()
}

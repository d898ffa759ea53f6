"""Schemas of the OpenAPI document for what is more than a record: history, changes, statistics, bulk, batch. Pure."""

from system.openapi import Object, reference
from tableapi.statistics.parameters import FUNCTIONS


def envelope_of(data: Object) -> Object:
    """The body of a success, with the schema of its data."""
    return {"type": "object", "required": ["status", "data"], "properties": {"status": {"const": "OK"}, "data": data}}


def array_of(items: Object) -> Object:
    return {"type": "array", "items": items}


ID_SCHEMA: Object = {"type": "string"}
RECORD_WITH_ID: Object = {
    "type": "object",
    "required": ["sys_id"],
    "properties": {"sys_id": ID_SCHEMA},
    "additionalProperties": True,
}
QUERY_SCHEMA: Object = {
    "type": "object",
    "required": ["sysparm_query", "expected"],
    "properties": {"sysparm_query": {"type": "string"}, "expected": {"type": "integer", "minimum": 0}},
}
OTHER_SCHEMAS: dict[str, Object] = {
    "History": envelope_of(
        {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["operation", "fields"],
                "properties": {
                    "operation": {"enum": ["create", "update"]},
                    "sys_version": {"type": "integer"},
                    "sys_updated_at": {"type": "string"},
                    "sys_updated_by": {"type": ["string", "null"]},
                    "fields": {
                        "type": "object",
                        "description": "The stored values of each changed column: `old` and `new`.",
                        "additionalProperties": {"type": "object"},
                    },
                },
            },
        }
    ),
    "Changes": {
        **envelope_of(
            {
                "type": "array",
                "items": reference("schemas", "Record"),
                "description": "Records as they are now. One that was deleted or that the caller may no longer read "
                "has only `sys_id` and `removed`.",
            }
        ),
        "required": ["status", "data", "cursor"],
    },
    "Statistics": envelope_of(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "group": {"type": "object", "additionalProperties": True},
                    "count": {"type": "integer"},
                    **{function: {"type": "object", "additionalProperties": True} for function in FUNCTIONS},
                },
            },
        }
    ),
    "NewRecords": array_of(reference("schemas", "NewValues")),
    "ChangedRecords": {
        "description": "Either an array of records with their ids, or a query with the number of records that it "
        "must match and the new values.",
        "oneOf": [
            array_of(RECORD_WITH_ID),
            QUERY_SCHEMA
            | {
                "required": ["sysparm_query", "expected", "values"],
                "properties": {**QUERY_SCHEMA["properties"], "values": reference("schemas", "NewValues")},
            },
        ],
    },
    "DeletedRecords": {"oneOf": [array_of(RECORD_WITH_ID), QUERY_SCHEMA]},
    "BulkWritten": envelope_of(
        array_of(
            {
                "type": "object",
                "required": ["sys_id", "status"],
                "properties": {
                    "sys_id": {"type": ["string", "null"]},
                    "status": {"type": "integer"},
                    "errors": array_of({"type": "object", "additionalProperties": True}),
                },
            }
        )
    ),
    "Batch": {
        "type": "object",
        "required": ["requests"],
        "properties": {
            "requests": array_of(
                {
                    "type": "object",
                    "required": ["method", "url"],
                    "properties": {
                        "id": {},
                        "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]},
                        "url": {"type": "string"},
                        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                        "body": {},
                    },
                    "additionalProperties": False,
                }
            ),
            "atomic": {"type": "boolean", "default": False},
        },
        "additionalProperties": False,
    },
    "BatchDone": envelope_of(
        array_of(
            {
                "type": "object",
                "required": ["id", "status", "headers", "body"],
                "properties": {
                    "id": {},
                    "status": {"type": "integer"},
                    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                    "body": {},
                },
            }
        )
    ),
}

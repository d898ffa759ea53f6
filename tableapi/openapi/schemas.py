"""Schemas of the OpenAPI document that all callers share: the bodies of requests and responses. Pure."""

from accounts.models.notification_choices import Reason
from system.openapi import Object, array_of, object_of, reference
from tableapi.statistics.parameters import FUNCTIONS

from .column_schemas import VALUE_SCHEMAS


def envelope_of(data: Object) -> Object:
    """Return the schema of a successful response body with this data."""
    return object_of({"status": {"const": "OK"}, "data": data})


TEXT: Object = {"type": "string"}
TEXT_OR_NULL: Object = {"type": ["string", "null"]}
INTEGER: Object = {"type": "integer"}
BOOLEAN: Object = {"type": "boolean"}
TEXT_ARRAY = array_of(TEXT)
ANY_OBJECT: Object = {"type": "object", "additionalProperties": True}
NO_OTHER_PROPERTIES: Object = {"additionalProperties": False}
ID = object_of({"sys_id": TEXT})
CREATION: Object = {"sys_created_at": TEXT, "sys_created_by": TEXT_OR_NULL}
RECORD = reference("schemas", "Record")
NEW_VALUES = reference("schemas", "NewValues")

HISTORY_ENTRY = object_of(
    {
        "operation": {"enum": ["create", "update", "clear"]},
        "sys_version": INTEGER,
        "sys_updated_at": TEXT,
        "sys_updated_by": TEXT_OR_NULL,
        "fields": {
            "type": "object",
            "description": "The stored values of each changed column: `old` and `new`.",
            "additionalProperties": {"type": "object"},
        },
    },
    optional=("sys_version", "sys_updated_at", "sys_updated_by"),
)
CHANGED_RECORDS: Object = {
    "type": "array",
    "items": RECORD,
    "description": "Records in their current state. Records that were deleted or that the caller can no longer read "
    "have only `sys_id` and `removed`.",
}
GROUP: Object = {"group": ANY_OBJECT, "count": INTEGER, **dict.fromkeys(FUNCTIONS, ANY_OBJECT)}
RECORDS_WITH_ID = array_of(ID | {"additionalProperties": True})
MATCHING_RECORDS: Object = {"sysparm_query": TEXT, "expected": INTEGER | {"minimum": 0}}
RECORD_OUTCOME = object_of(
    {"sys_id": TEXT_OR_NULL, "status": INTEGER, "errors": array_of(ANY_OBJECT)}, optional=("errors",)
)
HEADERS: Object = {"type": "object", "additionalProperties": TEXT}
INNER_REQUEST = object_of(
    {
        "id": {},
        "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]},
        "url": TEXT,
        "headers": HEADERS,
        "body": {},
    },
    optional=("id", "headers", "body"),
)
BATCH: Object = {"requests": array_of(INNER_REQUEST | NO_OTHER_PROPERTIES), "atomic": BOOLEAN | {"default": False}}
COMMENT: Object = {"sys_id": TEXT, "text": TEXT, "mentions": TEXT_ARRAY, **CREATION, "sys_updated_at": TEXT}
ATTACHMENT: Object = {
    "sys_id": TEXT, "file_name": TEXT, "content_type": TEXT, "size": INTEGER, "sha256": TEXT, **CREATION
}  # fmt: skip
NOTIFICATION = object_of(
    {
        "sys_id": TEXT,
        "reason": {"enum": Reason.values},
        "table": TEXT,
        "record": TEXT,
        "display_value": {"description": "The value of the display column, if the caller can read it."},
        "sys_created_at": TEXT,
        "read": BOOLEAN,
        "comment": reference("schemas", "Comment"),
        "columns": TEXT_ARRAY,
        "sys_updated_by": TEXT_OR_NULL,
    },
    optional=("comment", "columns", "sys_updated_by"),
)
LOST_REFERENCES_TEXT = (
    "Columns whose values could not be restored completely, for example because a referenced record no longer exists."
)
RESTORED: Object = {
    "sys_id": TEXT,
    "table": TEXT,
    "emptied_references": INTEGER | {"description": "The number of references that the deletion cleared."},
    "lost_references": TEXT_ARRAY | {"description": LOST_REFERENCES_TEXT},
}
IMPORT_TEXTS = ("sys_id", "table", "file_name", "mode", "key", "on_error", "sys_created_at")
IMPORT_COUNTS = ("lines", "processed", "created", "updated", "unchanged", "failed", "undone", "left")
IMPORT_STATE = object_of(
    {
        **dict.fromkeys(IMPORT_TEXTS, TEXT),
        **dict.fromkeys(("sysparm_import", "dry_run", "can_be_undone"), BOOLEAN),
        **dict.fromkeys(IMPORT_COUNTS, INTEGER),
        "state": {"enum": ["reading", "writing", "done", "failed", "cancelled", "undoing", "undone"]},
        "format": ANY_OBJECT,
        "columns": array_of(object_of({"name": TEXT, "type": TEXT, "column": TEXT_OR_NULL})),
        "error": {"type": ["array", "null"], "items": ANY_OBJECT},
        "line_errors": array_of(object_of({"line": INTEGER, "errors": array_of(ANY_OBJECT)})),
        "left_records": array_of(object_of({"sys_id": TEXT_OR_NULL, "errors": array_of(ANY_OBJECT)})),
        "finished_at": TEXT_OR_NULL,
    },
    optional=("undone", "left"),
)

SCHEMAS: dict[str, Object] = {
    **VALUE_SCHEMAS,
    "Record": {
        "type": "object",
        "description": "The fields of a record. `sysparm_display_value` determines whether they contain stored values, "
        "display values or objects with both. The key of a field reached through references is its path.",
        "additionalProperties": True,
    },
    "Records": envelope_of(array_of(RECORD)),
    "History": envelope_of(array_of(HISTORY_ENTRY)),
    "Changes": envelope_of(CHANGED_RECORDS) | {"required": ["status", "data", "cursor"]},
    "Statistics": envelope_of(array_of({"type": "object", "properties": GROUP})),
    "NewRecords": array_of(NEW_VALUES),
    "BulkUpdate": {
        "description": "Either an array of records with their IDs, or an object with a query, the number of records "
        "that it must match, and the new values.",
        "oneOf": [RECORDS_WITH_ID, object_of({**MATCHING_RECORDS, "values": NEW_VALUES})],
    },
    "BulkDeletion": {"oneOf": [RECORDS_WITH_ID, object_of(MATCHING_RECORDS)]},
    "BulkResult": envelope_of(array_of(RECORD_OUTCOME)),
    "Batch": object_of(BATCH, optional=("atomic",)) | NO_OTHER_PROPERTIES,
    "BatchResult": envelope_of(array_of(object_of({"id": {}, "status": INTEGER, "headers": HEADERS, "body": {}}))),
    "ImportState": envelope_of(array_of(IMPORT_STATE)),
    "Comment": object_of(COMMENT),
    "Attachment": object_of(ATTACHMENT),
    "Following": object_of({"following": BOOLEAN}),
    "Notification": NOTIFICATION,
    "Restored": object_of(RESTORED),
    "NewComment": object_of({"text": TEXT}),
    "Mark": object_of({"read": BOOLEAN}),
    "DesignSteps": envelope_of(
        array_of(
            object_of(
                {"action": TEXT, "kind": TEXT, "name": TEXT, "changes": {"type": "object"}}
                | {"widens_rights": BOOLEAN, "reason": TEXT}
            )
        )
    ),
    "EntryId": ID,
    "NewValues": {
        "type": "object",
        "description": "Columns and values of exactly one record.",
        "additionalProperties": True,
    },
    "Deleted": envelope_of(object_of({"description": TEXT})),
}

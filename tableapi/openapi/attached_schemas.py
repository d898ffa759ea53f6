"""Schemas of the OpenAPI document for comments, attachments, followers, notifications and restored records. Pure."""

from accounts.models.notification_choices import Reason
from system.openapi import Object, reference

from .other_schemas import array_of

TEXT: Object = {"type": "string"}
OPTIONAL_TEXT: Object = {"type": ["string", "null"]}
ID_LIST: Object = array_of(TEXT)
CREATION: Object = {"sys_created_at": TEXT, "sys_created_by": OPTIONAL_TEXT}
COMMENT: Object = {"sys_id": TEXT, "text": TEXT, "mentions": ID_LIST, **CREATION, "sys_updated_at": TEXT}
ATTACHMENT: Object = {
    "sys_id": TEXT, "file_name": TEXT, "content_type": TEXT, "size": {"type": "integer"}, "sha256": TEXT, **CREATION
}  # fmt: skip
NOTIFICATION: Object = {
    "sys_id": TEXT,
    "reason": {"enum": Reason.values},
    "table": TEXT,
    "record": TEXT,
    "display_value": {"description": "The value of the display column, if the caller can read it."},
    "sys_created_at": TEXT,
    "read": {"type": "boolean"},
    "comment": reference("schemas", "Comment"),
    "columns": ID_LIST,
    "sys_updated_by": OPTIONAL_TEXT,
}
RESTORED: Object = {
    "sys_id": TEXT,
    "table": TEXT,
    "emptied_references": {"type": "integer", "description": "References to the record that its deletion emptied."},
    "lost_references": {**ID_LIST, "description": "Columns that referred to records that no longer exist."},
}
OPTIONAL = {"comment", "columns", "sys_updated_by"}


def _object(properties: Object) -> Object:
    required = [name for name in properties if name not in OPTIONAL]
    return {"type": "object", "required": required, "properties": properties}


ATTACHED_SCHEMAS: dict[str, Object] = {
    "Comment": _object(COMMENT),
    "Attachment": _object(ATTACHMENT),
    "Following": _object({"following": {"type": "boolean"}}),
    "Notification": _object(NOTIFICATION),
    "Restored": _object(RESTORED),
    "NewComment": _object({"text": TEXT}),
    "Mark": _object({"read": {"type": "boolean"}}),
    "Identified": _object({"sys_id": TEXT}),
}

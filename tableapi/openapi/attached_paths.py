"""What is attached to records, notifications and restoring, in the OpenAPI document. Pure."""

from system import errors
from system.openapi import READ_ERRORS, Errors, Object, error_responses, json_response, operation, reference

from .other_schemas import array_of, envelope_of
from .paths import ANY_TABLE_NAME, API_PATH, CREATE_ERRORS, TABLE_API_TAG, headers_of, parameters_of

NOTIFICATIONS_PATH, RESTORE_PATH = "/rest/v1/notifications", "/rest/v1/restore/"
RECORD_PATH = f"{API_PATH}{ANY_TABLE_NAME}/{{sys_id}}"
WRITE_ERRORS: Errors = (*READ_ERRORS, errors.AccessDenied)

FILE_SCHEMA: Object = {"type": "string", "format": "binary"}
FILE_BODY: Object = {
    "multipart/form-data": {
        "schema": {"type": "object", "required": ["file"], "properties": {"file": FILE_SCHEMA}},
    },
    "application/octet-stream": {"schema": FILE_SCHEMA},
}


def attached_paths() -> Object:
    record = ("tableName", "sysId")
    entry = (*record, "entry")
    page = (*record, "entryLimit", "historyCursor")
    return {
        f"{RECORD_PATH}/comments": {
            "get": _operation("comments_list", "Read the comments of a record", "Comment", page),
            "post": _operation("comments_create", "Comment on a record", "Comment", record, "NewComment", "201"),
        },
        f"{RECORD_PATH}/comments/{{entry}}": {
            "patch": _operation("comments_update", "Change your comment", "Comment", entry, "NewComment"),
            "delete": _operation("comments_delete", "Delete your comment", "Identified", entry),
        },
        f"{RECORD_PATH}/attachments": {
            "get": _operation("attachments_list", "List the attachments of a record", "Attachment", page),
            "post": _operation("attachments_create", "Attach a file", "Attachment", (*record, "fileName"), "", "201")
            | {"requestBody": {"required": True, "content": FILE_BODY}},
        },
        f"{RECORD_PATH}/attachments/{{entry}}": {
            "delete": _operation("attachments_delete", "Delete an attachment", "Identified", entry)
        },
        f"{RECORD_PATH}/attachments/{{entry}}/content": {"get": _read_content(entry)},
        f"{RECORD_PATH}/followers/me": {
            "get": _operation("followers_read", "Read whether you follow a record", "Following", record),
            "put": _operation("followers_add", "Follow a record", "Following", record),
            "delete": _operation("followers_remove", "Stop following a record", "Following", record),
        },
        NOTIFICATIONS_PATH: {
            "get": _operation(
                "notifications_list", "Read your notifications", "Notification", ("unread", *page[len(record) :])
            ),
            "patch": _operation("notifications_mark_all", "Mark all as read or unread", "Mark", (), "Mark"),
        },
        f"{NOTIFICATIONS_PATH}/{{entry}}": {
            "patch": _operation("notifications_mark", "Mark as read or unread", "Notification", ("entry",), "Mark")
        },
        f"{RESTORE_PATH}{{entry}}": {
            "post": _operation("record_restore", "Restore a deleted record", "Restored", ("entry",), "", "201")
        },
    }


def _operation(
    operation_id: str, summary: str, result: str, parameters: tuple[str, ...], body: str = "", status: str = "200"
) -> Object:
    has_pages = "historyCursor" in parameters
    error_types = READ_ERRORS if has_pages else CREATE_ERRORS if body or status == "201" else WRITE_ERRORS
    schema = envelope_of(array_of(reference("schemas", result)))
    success = json_response(schema, "The result.", headers_of("Link") if has_pages else None)
    options: Object = {"parameters": parameters_of(*parameters)}
    if body:
        content = {"application/json": {"schema": reference("schemas", body)}}
        options["requestBody"] = {"required": True, "content": content}
    return operation(operation_id, summary, TABLE_API_TAG, error_responses(error_types) | {status: success}, **options)


def _read_content(parameters: tuple[str, ...]) -> Object:
    success = {"description": "The file.", "content": {"application/octet-stream": {"schema": FILE_SCHEMA}}}
    responses = error_responses(READ_ERRORS) | {"200": success}
    title = "Read the content of an attachment"
    return operation("attachments_content", title, TABLE_API_TAG, responses, parameters=parameters_of(*parameters))

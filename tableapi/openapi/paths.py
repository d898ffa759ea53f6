"""Paths of the OpenAPI document: those of one table, and those that are the same for all tables."""

from dataclasses import dataclass

from system import errors
from system.openapi import READ_ERRORS, WRITE_ERRORS, Errors, Object, array_of, object_of, reference
from tableapi.read.export import CSV, JSON_LINES
from tableapi.read.xlsx_writer import XLSX

from .components import (
    IMPORT_PARAMETERS,
    LIST_PARAMETERS,
    OUTPUT_PARAMETERS,
    RECORD_HEADERS,
    STATISTICS_PARAMETERS,
    WRITE_PARAMETERS,
)
from .operations import CHANGE_ERRORS, CREATE_ERRORS, TABLE_NAME, Names, Operation, json_content, json_success, paths_of
from .schemas import TEXT, envelope_of

FILE_SCHEMA: Object = {"type": "string", "format": "binary"}
FILE: Object = {"application/octet-stream": {"schema": FILE_SCHEMA}}
FILE_BODY: Object = {"multipart/form-data": {"schema": object_of({"file": FILE_SCHEMA})}, **FILE}
EXPORTS: Object = {
    **{media_type: {"schema": TEXT} for media_type in (CSV, JSON_LINES)},
    XLSX: {"schema": FILE_SCHEMA},
}
# Generators of clients know no other types of files. The file name tells the format.
IMPORT_FILE: Object = {**FILE, "multipart/form-data": FILE_BODY["multipart/form-data"]}
LIST_ERRORS: Errors = (*READ_ERRORS, errors.TooLarge)
DELETE_ERRORS: Errors = (*READ_ERRORS, *WRITE_ERRORS, errors.PreconditionFailed)
READ_PARAMETERS = (*OUTPUT_PARAMETERS, "ifNoneMatch")
CREATE_PARAMETERS = (*WRITE_PARAMETERS, "import")
CHANGE_PARAMETERS = ("ifMatch", *WRITE_PARAMETERS)
DELETE_PARAMETERS = ("ifMatch", "idempotencyKey")
RECORD_PATH = "/rest/v1/table/{tableName}/{sys_id}"
PAGE_PARAMETERS = ("entryLimit", "historyCursor")
BULK_PARAMETERS = ("onError", "input", "idempotencyKey")
UPSERT_PARAMETERS = ("key", "import", "ifMatch", *WRITE_PARAMETERS)
FEED_PARAMETERS = ("since", "entryLimit", *OUTPUT_PARAMETERS)
FEED_ERRORS: Errors = (*READ_ERRORS, errors.CursorExpired)
BULK_ERRORS: Errors = (*CHANGE_ERRORS, errors.TooLarge)
DESIGN_ERRORS: Errors = (*CREATE_ERRORS, errors.TooLarge)
YAML_FILE: Object = {"text/yaml": {"schema": TEXT}}
ENTRY_ERRORS: Errors = (*READ_ERRORS, errors.AccessDenied)
MARK, NEW_COMMENT = json_content("Mark"), json_content("NewComment")

HISTORY = json_success(reference("schemas", "History"), "The changes, newest first.", "Link")
CHANGES = json_success(reference("schemas", "Changes"), "The changed records.", "Link", *RECORD_HEADERS)
STATISTICS = json_success(reference("schemas", "Statistics"), "One entry for each group.")
BATCH_RESULT = json_success(reference("schemas", "BatchResult"))
CONTENT: Object = {"200": {"description": "The file.", "content": FILE}}


def _write(
    operation_id: str,
    summary: str,
    body: str,
    result: str = "BulkResult",
    parameters: Names = BULK_PARAMETERS,
    *,
    created: str = "",
) -> Operation:
    schema = reference("schemas", result)
    success = json_success(schema) | (json_success(schema, created, status="201") if created else {})
    return Operation(operation_id, summary, success, parameters, BULK_ERRORS, json_content(body))


def _page(operation_id: str, summary: str, entry: str, *parameters: str) -> Operation:
    success = json_success(envelope_of(array_of(reference("schemas", entry))), "The result.", "Link")
    return Operation(operation_id, summary, success, (*parameters, *PAGE_PARAMETERS))


def _entry(
    operation_id: str, summary: str, entry: str, body: Object | None = None, status: str = "200", parameters: Names = ()
) -> Operation:
    success = json_success(envelope_of(array_of(reference("schemas", entry))), status=status)
    error_types = CREATE_ERRORS if body or status == "201" else ENTRY_ERRORS
    return Operation(operation_id, summary, success, parameters, error_types, body)


def _import(operation_id: str, summary: str, body: Object | None = None, parameters: Names = ()) -> Operation:
    schema = reference("schemas", "ImportState")
    success = json_success(schema, "The import is finished.", "Location")
    success |= json_success(schema, "The import continues in the background.", "Location", status="202")
    return Operation(operation_id, summary, success, parameters, CREATE_ERRORS, body)


def _design(operation_id: str, summary: str) -> Operation:
    success = json_success(reference("schemas", "DesignSteps"), "The steps, those that widen rights first.")
    return Operation(operation_id, summary, success, ("prune",), DESIGN_ERRORS, FILE)


IMPORT_PATH = "/rest/v1/import/{tableName}"
RESTORE_PATH = "/rest/v1/restore/{entry}"
DESIGN_PATH = "/rest/v1/design"
# For administrators only.
ADMIN_PATHS = (RESTORE_PATH, DESIGN_PATH, f"{DESIGN_PATH}/plan", f"{DESIGN_PATH}/apply")
OPERATIONS: dict[tuple[str, str], Operation] = {
    ("post", "/rest/v1/bulk/{tableName}"): _write(
        "bulk_create",
        "Create many records",
        "NewRecords",
        parameters=("import", *BULK_PARAMETERS),
        created="All records were created.",
    ),
    ("patch", "/rest/v1/bulk/{tableName}"): _write("bulk_change", "Update many records", "BulkUpdate"),
    ("delete", "/rest/v1/bulk/{tableName}"): _write("bulk_delete", "Delete many records", "BulkDeletion"),
    ("post", "/rest/v1/upsert/{tableName}"): _write(
        "record_upsert",
        "Create or update a record by a unique column",
        "NewValues",
        "Records",
        UPSERT_PARAMETERS,
        created="The record was created.",
    ),
    ("post", IMPORT_PATH): _import(
        "import_start", "Import a file", IMPORT_FILE, ("fileName", "entryLimit", *IMPORT_PARAMETERS)
    ),
    ("get", f"{IMPORT_PATH}/{{entry}}"): Operation(
        "import_read",
        "Read the state of your import",
        json_success(reference("schemas", "ImportState")),
        ("entryLimit",),
    ),
    ("delete", f"{IMPORT_PATH}/{{entry}}"): _entry(
        "import_delete", "Cancel your import, or delete a finished one", "EntryId"
    ),
    ("post", f"{IMPORT_PATH}/{{entry}}/run"): _import(
        "import_run", "Run your import again with the same file", None, ("entryLimit", *IMPORT_PARAMETERS)
    ),
    ("post", f"{IMPORT_PATH}/{{entry}}/undo"): _import("import_undo", "Undo your import", None, ("entryLimit",)),
    ("post", "/rest/v1/batch"): Operation(
        "batch_run", "Run a batch of requests", BATCH_RESULT, (), BULK_ERRORS, json_content("Batch")
    ),
    ("get", f"{RECORD_PATH}/history"): Operation(
        "history_read", "Read the history of a record", HISTORY, PAGE_PARAMETERS
    ),
    ("get", "/rest/v1/changes/{tableName}"): Operation(
        "changes_read", "Read the changes to a table", CHANGES, FEED_PARAMETERS, FEED_ERRORS
    ),
    ("get", "/rest/v1/stats/{tableName}"): Operation(
        "statistics_read", "Read statistics about a table", STATISTICS, STATISTICS_PARAMETERS
    ),
    ("get", f"{RECORD_PATH}/comments"): _page("comments_list", "Read the comments of a record", "Comment"),
    ("post", f"{RECORD_PATH}/comments"): _entry(
        "comments_create", "Comment on a record", "Comment", NEW_COMMENT, "201"
    ),
    ("patch", f"{RECORD_PATH}/comments/{{entry}}"): _entry(
        "comments_update", "Edit your comment", "Comment", NEW_COMMENT
    ),
    ("delete", f"{RECORD_PATH}/comments/{{entry}}"): _entry("comments_delete", "Delete a comment", "EntryId"),
    ("get", f"{RECORD_PATH}/attachments"): _page("attachments_list", "List the attachments of a record", "Attachment"),
    ("post", f"{RECORD_PATH}/attachments"): _entry(
        "attachments_create", "Attach a file", "Attachment", FILE_BODY, "201", ("fileName",)
    ),
    ("delete", f"{RECORD_PATH}/attachments/{{entry}}"): _entry("attachments_delete", "Delete an attachment", "EntryId"),
    ("get", f"{RECORD_PATH}/attachments/{{entry}}/content"): Operation(
        "attachments_content", "Read the content of an attachment", CONTENT
    ),
    ("get", f"{RECORD_PATH}/followers/me"): _entry("followers_read", "Check whether you follow a record", "Following"),
    ("put", f"{RECORD_PATH}/followers/me"): _entry("followers_add", "Follow a record", "Following"),
    ("delete", f"{RECORD_PATH}/followers/me"): _entry("followers_remove", "Stop following a record", "Following"),
    ("get", "/rest/v1/notifications"): _page("notifications_list", "Read your notifications", "Notification", "unread"),
    ("patch", "/rest/v1/notifications"): _entry("notifications_mark_all", "Mark all as read or unread", "Mark", MARK),
    ("patch", "/rest/v1/notifications/{entry}"): _entry(
        "notifications_mark", "Mark a notification as read or unread", "Notification", MARK
    ),
    ("post", RESTORE_PATH): _entry("record_restore", "Restore a deleted record", "Restored", status="201"),
    ("get", DESIGN_PATH): Operation(
        "design_export",
        "Export the design",
        {"200": {"description": "The design file.", "content": YAML_FILE}},
        (),
        (*ENTRY_ERRORS, errors.Conflict),
    ),
    ("post", f"{DESIGN_PATH}/plan"): _design("design_plan", "Plan a design file"),
    ("post", f"{DESIGN_PATH}/apply"): _design("design_apply", "Apply a design file"),
}
# drf-spectacular skips the views of these paths.
PATH_PREFIXES = tuple(path.partition("{")[0] for _, path in OPERATIONS)


@dataclass(frozen=True)
class TableDescription:
    """A table to describe: its response schema, and the name of the body schema of each method."""

    name: str
    label: str
    response: Object
    bodies: dict[str, str]
    tag: str = "Table API"

    def success(self, description: str, *headers: str, status: str = "200") -> Object:
        return json_success(self.response, description, *headers, *RECORD_HEADERS, status=status)

    def operation(
        self, method: str, verb: str, title: str, success: Object, parameters: Names, error_types: Errors
    ) -> Operation:
        body = json_content(self.bodies[method]) if method in self.bodies else None
        if self.name == TABLE_NAME:
            return Operation(f"records_{verb}", f"{title} · any table", success, parameters, error_types, body)
        summary = f"{title} · {self.label}"
        return Operation(f"{verb}_{self.name}", summary, success, parameters, (), body, self.tag)


def table_paths(table: TableDescription, methods: set[str]) -> Object:
    """Return the list and record paths of a table, with operations for these methods."""
    list_success = table.success("A page of records, or all records as CSV or JSON Lines.", "Link", "X-Total-Count")
    list_success["200"]["content"] |= EXPORTS
    read_success = table.success("The record.", "ETag") | {"304": {"description": "The record has not changed."}}
    create_success = table.success(
        "The new record, with the fields that the caller can read.", "Location", "ETag", status="201"
    )
    change_success = table.success("The fields of the record that the caller can read.", "ETag")
    delete_success = json_success(reference("schemas", "Deleted"), "The record was deleted.")
    list_path = f"/rest/v1/table/{table.name}"
    record_path = f"{list_path}/{{sys_id}}"
    rows = {
        ("get", list_path): ("list", "List records", list_success, LIST_PARAMETERS, LIST_ERRORS),
        ("post", list_path): ("create", "Create a record", create_success, CREATE_PARAMETERS, CREATE_ERRORS),
        ("get", record_path): ("read", "Read a record", read_success, READ_PARAMETERS, READ_ERRORS),
        ("put", record_path): ("replace", "Replace a record", change_success, CHANGE_PARAMETERS, CHANGE_ERRORS),
        ("patch", record_path): ("change", "Update a record", change_success, CHANGE_PARAMETERS, CHANGE_ERRORS),
        ("delete", record_path): ("delete", "Delete a record", delete_success, DELETE_PARAMETERS, DELETE_ERRORS),
    }
    return paths_of(
        {(method, path): table.operation(method, *row) for (method, path), row in rows.items() if method in methods}
    )

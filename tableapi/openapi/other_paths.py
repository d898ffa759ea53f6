"""The other paths of a table in the OpenAPI document, with the table name as a parameter. Pure."""

from system import errors
from system.openapi import READ_ERRORS, Errors, Object, error_responses, json_response, operation, reference

from .components import OUTPUT_PARAMETERS, RECORD_HEADERS, STATISTICS_PARAMETERS, WRITE_PARAMETERS
from .paths import ANY_TABLE_NAME, API_PATH, CHANGE_ERRORS, TABLE_API_TAG, headers_of, parameters_of

CHANGES_PATH = "/rest/v1/changes/"
STATISTICS_PATH = "/rest/v1/stats/"
BULK_PATH = "/rest/v1/bulk/"
UPSERT_PATH = "/rest/v1/upsert/"
BATCH_PATH = "/rest/v1/batch"
# The views of these paths are described here.
PATHS = (API_PATH, CHANGES_PATH, STATISTICS_PATH, BULK_PATH, UPSERT_PATH, BATCH_PATH)

WRITE_ERRORS: Errors = (*CHANGE_ERRORS, errors.TooLarge)
BULK_PARAMETERS = ("tableName", "onError", "input", "idempotencyKey")
BULK_OPERATIONS = (
    ("post", "create", "NewRecords"),
    ("patch", "change", "ChangedRecords"),
    ("delete", "delete", "DeletedRecords"),
)


def other_paths() -> Object:
    history = _read(
        "history_read",
        "Read the history of a record",
        json_response(reference("schemas", "History"), "The changes, newest first.", headers_of("Link")),
        ("tableName", "sysId", "entryLimit", "historyCursor"),
    )
    changes = _read(
        "changes_read",
        "Read the changes of a table",
        json_response(reference("schemas", "Changes"), "What has changed.", headers_of("Link", *RECORD_HEADERS)),
        ("tableName", "since", "entryLimit", *OUTPUT_PARAMETERS),
        (*READ_ERRORS, errors.CursorExpired),
    )
    statistics = _read(
        "statistics_read",
        "Read statistics of a table",
        json_response(reference("schemas", "Statistics"), "One entry for each group."),
        ("tableName", *STATISTICS_PARAMETERS),
    )
    bulk = {
        method: _write(f"bulk_{verb}", f"{verb.capitalize()} many records", "BulkWritten", body, BULK_PARAMETERS)
        for method, verb, body in BULK_OPERATIONS
    }
    title = "Create or update a record by a unique column"
    upsert = _write("record_upsert", title, "Records", "NewValues", ("tableName", "key", *WRITE_PARAMETERS))
    batch = _write("batch_run", "Run many requests", "BatchDone", "Batch", ())
    return {
        f"{BULK_PATH}{ANY_TABLE_NAME}": bulk,
        f"{UPSERT_PATH}{ANY_TABLE_NAME}": {"post": upsert},
        BATCH_PATH: {"post": batch},
        f"{API_PATH}{ANY_TABLE_NAME}/{{sys_id}}/history": {"get": history},
        f"{CHANGES_PATH}{ANY_TABLE_NAME}": {"get": changes},
        f"{STATISTICS_PATH}{ANY_TABLE_NAME}": {"get": statistics},
    }


def _read(
    operation_id: str, summary: str, success: Object, parameters: tuple[str, ...], error_types: Errors = READ_ERRORS
) -> Object:
    responses = error_responses(error_types) | {"200": success}
    return operation(operation_id, summary, TABLE_API_TAG, responses, parameters=parameters_of(*parameters))


def _write(operation_id: str, summary: str, result: str, body: str, parameters: tuple[str, ...]) -> Object:
    success = {
        status: json_response(reference("schemas", result), description)
        for status, description in (("200", "The result."), ("201", "Everything was created."))
    }
    if body == "Batch":
        del success["201"]
    content = {"application/json": {"schema": reference("schemas", body)}}
    return operation(
        operation_id,
        summary,
        TABLE_API_TAG,
        error_responses(WRITE_ERRORS) | success,
        parameters=parameters_of(*parameters),
        requestBody={"required": True, "content": content},
    )

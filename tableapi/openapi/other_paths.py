"""Paths of a table beside its records in the OpenAPI document, with the table name as a parameter. Pure."""

from system import errors
from system.openapi import READ_ERRORS, Errors, Object, error_responses, json_response, operation, reference

from .components import OUTPUT_PARAMETERS, RECORD_HEADERS, STATISTICS_PARAMETERS
from .paths import ANY_TABLE_NAME, API_PATH, TABLE_API_TAG, headers_of, parameters_of

CHANGES_PATH = "/rest/v1/changes/"
STATISTICS_PATH = "/rest/v1/stats/"


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
    return {
        f"{API_PATH}{ANY_TABLE_NAME}/{{sys_id}}/history": {"get": history},
        f"{CHANGES_PATH}{ANY_TABLE_NAME}": {"get": changes},
        f"{STATISTICS_PATH}{ANY_TABLE_NAME}": {"get": statistics},
    }


def _read(
    operation_id: str, summary: str, success: Object, parameters: tuple[str, ...], error_types: Errors = READ_ERRORS
) -> Object:
    responses = error_responses(error_types) | {"200": success}
    return operation(operation_id, summary, TABLE_API_TAG, responses, parameters=parameters_of(*parameters))

"""The two paths of a table in the OpenAPI document, with their operations."""

from dataclasses import dataclass

from system import errors
from system.openapi import READ_ERRORS, WRITE_ERRORS, Errors, Object, reference
from tableapi.read.export import CSV, JSON_LINES
from tableapi.read.xlsx_writer import XLSX

from .components import LIST_PARAMETERS, OUTPUT_PARAMETERS, RECORD_HEADERS, WRITE_PARAMETERS
from .operations import CHANGE_ERRORS, CREATE_ERRORS, TABLE_NAME, Names, Operation, json_content, json_success, paths_of
from .schemas import TEXT

EXPORTS: Object = {
    **{media_type: {"schema": TEXT} for media_type in (CSV, JSON_LINES)},
    XLSX: {"schema": {"type": "string", "format": "binary"}},
}
LIST_ERRORS: Errors = (*READ_ERRORS, errors.TooLarge)
DELETE_ERRORS: Errors = (*READ_ERRORS, *WRITE_ERRORS, errors.PreconditionFailed)
READ_PARAMETERS = (*OUTPUT_PARAMETERS, "ifNoneMatch")
CREATE_PARAMETERS = (*WRITE_PARAMETERS, "import")
CHANGE_PARAMETERS = ("ifMatch", *WRITE_PARAMETERS)
DELETE_PARAMETERS = ("ifMatch", "idempotencyKey")


@dataclass(frozen=True)
class TableDescription:
    """A table to describe: its response schema, and the name of the body schema of each method."""

    name: str
    label: str
    response: Object
    bodies: dict[str, str]

    def success(self, description: str, *headers: str, status: str = "200") -> Object:
        return json_success(self.response, description, *headers, *RECORD_HEADERS, status=status)

    def operation(
        self, method: str, verb: str, title: str, success: Object, parameters: Names, error_types: Errors
    ) -> Operation:
        body = json_content(self.bodies[method]) if method in self.bodies else None
        if self.name == TABLE_NAME:
            return Operation(f"records_{verb}", f"{title} · any table", success, parameters, error_types, body)
        summary, tag = f"{title} · {self.label}", f"Table {self.name}"
        return Operation(f"{verb}_{self.name}", summary, success, parameters, (), body, tag)


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

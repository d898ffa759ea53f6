"""Opens a table for a caller and writes to it: the only way to write, for endpoints and pages."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from system.errors import AccessDenied
from tableapi.access.permissions import ADMIN, CATALOGUE_TABLES
from tableapi.catalogue.definitions import Catalogue
from tableapi.ddl import schema_editor
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller

from .write_request import WriteInput, WriteRequest

Result = TypeVar("Result")


def write(caller: Caller, table_name: str, change: WriteInput, operation: Callable[[WriteRequest], Result]) -> Result:
    """Open the table for the caller and write to it. Design changes run one at a time: each takes the lock before it
    loads the catalogue."""
    is_designer = table_name in CATALOGUE_TABLES and ADMIN in caller.role_names
    with schema_editor.design_lock() if is_designer else nullcontext():
        return _write(caller, table_name, change, operation)


@on_current_catalogue
def _write(
    catalogue: Catalogue,
    caller: Caller,
    table_name: str,
    change: WriteInput,
    operation: Callable[[WriteRequest], Result],
) -> Result:
    context = caller.context(catalogue)
    if change.is_import and not context.view.permissions.is_admin:
        raise AccessDenied("Only administrators can import records.", field="sysparm_import")
    return operation(change.for_table(context, context.view.open_table(table_name)))

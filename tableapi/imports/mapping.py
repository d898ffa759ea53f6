"""Matches the names in the header row with columns."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from system.errors import BadRequest, combine_errors
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.models.imports import Import, ImportMapping
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.write.payload import IMPORTED_COLUMNS

from .options import CREATE_MODE, ImportOptions, visible_column

# The column of each name in the header row; None if it is left out.
Mapped = dict[str, str | None]


@on_current_catalogue
def map_header(catalogue: Catalogue, caller: Caller, job: Import, options: ImportOptions) -> Mapped:
    """The mapping that was sent, completed with the one that was last sent for the same names, and by name or label."""
    header: Sequence[str] = job.description["header"]
    context = caller.context(catalogue)
    table = context.view.open_table(job.table)
    remembered = ImportMapping.objects.filter(**_key(job)).first()
    chosen: Mapping[str, str | None] = (remembered.mapping if remembered else {}) | dict(options.mapping or {})
    mapped: Mapped = {}
    unknown = []
    for name in filter(None, header):
        if name in chosen:
            mapped[name] = chosen[name] and visible_column(context, table, str(chosen[name])).name
            continue
        column = _column_named(context, table, name)
        if column is None:
            unknown.append(name)
        mapped[name] = None if column is None or not _is_writable(table, column, options) else column.name
    job.mapping = mapped  # shown even if names are unknown
    if unknown:
        raise combine_errors([unknown_name_error(name) for name in unknown])
    _check_columns(mapped, options)
    return mapped


def unknown_name_error(name: str) -> BadRequest:
    message = f'No column is named "{name[:80]}". Map the name to a column, or to null to leave it out.'
    return BadRequest(message, code="unknown_field", field=name[:80])


def remember(job: Import, options: ImportOptions) -> None:
    if options.mapping:
        ImportMapping.objects.update_or_create(**_key(job), defaults={"mapping": dict(options.mapping)})


def _key(job: Import) -> dict[str, Any]:
    header = "\0".join(sorted(job.description["header"]))
    return {"user_id": job.user_id, "table": job.table, "header_hash": hashlib.sha256(header.encode()).hexdigest()}


def _column_named(context: ReadContext, table: Table, name: str) -> Column | None:
    """The only visible column with this name or, if there is none, with this label."""
    key = name.casefold()
    columns = [column for column in table.columns.values() if context.view.permissions.can_see_column(table, column)]
    named = [column for column in columns if column.name == key]
    labelled = named or [column for column in columns if column.label.casefold() == key]
    return labelled[0] if len(labelled) == 1 else None


def _is_writable(table: Table, column: Column, options: ImportOptions) -> bool:
    """Columns that only the server writes, such as those of an export, are left out unless the mapping names them."""
    if options.is_import:
        return column.name == "sys_id" or column.name in IMPORTED_COLUMNS or not table.is_server_managed(column)
    return not table.is_server_managed(column) or (options.mode != CREATE_MODE and column.name == options.key)


def _check_columns(mapped: Mapped, options: ImportOptions) -> None:
    names = [name for name in mapped.values() if name]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest("Two names in the header row have the same column.", code="duplicate_field", field=twice)
    if not names:
        raise BadRequest("No name in the header row has a column.", code="unknown_field", field="mapping")
    if options.mode != CREATE_MODE and options.key not in names:
        raise BadRequest("The file has no column for the key.", code="mandatory", field=options.key)

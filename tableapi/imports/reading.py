"""Reads the file of an import in the sandbox, stores its rows in pieces, and matches its header row with columns."""

import json
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from system import sandbox
from system.errors import BadRequest, combine_errors
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.models.imports import MAX_PIECE_BYTES, Import, ImportMapping, ImportPiece
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.write.payload import IMPORTED_COLUMNS

from .options import CREATE_MODE, ImportOptions, visible_column
from .parser import MAX_COLUMNS

# The header of an exported column of another record, by its path or its labels. An import cannot write it.
EXPORTED_PATH = re.compile("[a-z][a-z0-9_]*(?:[.][a-z][a-z0-9_]*)+|.+ \u203a .+")
PARSER_PROGRAM = Path(__file__).parent / "parser.py"
# A million rows of a workbook take two minutes.
CPU_S, RUN_S = 600, 900.0
MEMORY_BYTES = 1024 * 1024 * 1024
LIMITS = sandbox.RunLimits(memory_bytes=MEMORY_BYTES, cpu_s=CPU_S, run_s=RUN_S, output_bytes=MAX_PIECE_BYTES)
FAILURES = {
    sandbox.RunStatus.TIMED_OUT: "Reading the file took too long.",
    sandbox.RunStatus.OUT_OF_MEMORY: "Reading the file required too much memory.",
    sandbox.RunStatus.TOO_LARGE: "The file has lines that are too long.",
}


class UnreadableFile(BadRequest):
    code = "unreadable_file"
    message = "The file is damaged."


def read_file(job: Import, options: ImportOptions) -> None:
    """Store the rows, and set `description`, `piece_count` and `line_count`. A repeated call starts again. The output
    of the parser is not trusted."""
    job.pieces(ImportPiece.Kind.ROWS)._raw_delete("default")
    paths = sysconfig.get_paths()
    arguments = [job.format, json.dumps(options.reading), *sorted({paths["purelib"], paths["platlib"]})]
    piece_count, output = 0, b"{}"
    with job.opened_file() as file:
        try:
            for part in sandbox.stream(PARSER_PROGRAM, arguments, file, LIMITS):
                if part.startswith(b"{"):
                    output = part
                else:
                    job.add_piece(ImportPiece.Kind.ROWS, piece_count, part)
                    piece_count += 1
        except sandbox.RunFailed as error:
            raise UnreadableFile(FAILURES.get(error.status)) from None
    description = json.loads(output)
    if message := description.get("error"):
        raise UnreadableFile(str(message)[:200])
    header = description.get("header")
    if not isinstance(header, list) or len(header) > MAX_COLUMNS or not all(isinstance(name, str) for name in header):
        raise UnreadableFile
    job.line_count, job.piece_count = int(description.pop("line_count")), piece_count
    job.description = description


@on_current_catalogue
def map_header(catalogue: Catalogue, caller: Caller, job: Import, options: ImportOptions) -> None:
    """Set the column of each name, or None to leave it out: as it was sent, or last sent for the table, or by name or
    label."""
    context = caller.context(catalogue)
    table = context.view.open_table(job.table)
    last = ImportMapping.objects.filter(user=job.user_id, table=job.table).first()
    remembered, sent = last.mapping if last else {}, options.mapping or {}
    errors = []
    job.mapping = {}  # shown even if names are unknown
    for name in filter(None, job.description["header"]):
        chosen = sent.get(name, remembered.get(name, name))
        column = _column_named(context, table, chosen) if chosen else None
        if name in sent:
            column = visible_column(context, table, chosen) if chosen else None
        elif chosen and column is None and not EXPORTED_PATH.fullmatch(chosen):
            message = f'No column is named "{name[:80]}". Map the name to a column, or to null to leave it out.'
            errors.append(BadRequest(message, code="unknown_field", field=name[:80]))
        elif column is not None and not _is_writable(table, column, options):
            column = None
        job.mapping[name] = column and column.name
    if errors:
        raise combine_errors(errors)
    _check_columns([name for name in job.mapping.values() if name], options)


def _column_named(context: ReadContext, table: Table, name: str) -> Column | None:
    """The only visible column with this name or, if there is none, with this label."""
    key = name.casefold()
    columns = [column for column in table.columns.values() if context.view.permissions.can_see_column(table, column)]
    named = [column for column in columns if column.name == key]
    labelled = named or [column for column in columns if column.label.casefold() == key]
    return labelled[0] if len(labelled) == 1 else None


def _is_writable(table: Table, column: Column, options: ImportOptions) -> bool:
    """Columns that only the server writes, such as those of an export, are left out unless the mapping names them."""
    if options.sysparm_import and (column.name == "sys_id" or column.name in IMPORTED_COLUMNS):
        return True
    is_key = options.mode != CREATE_MODE and column.name == options.key
    return is_key or not table.is_server_managed(column)


def _check_columns(names: Sequence[str], options: ImportOptions) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest("Two names in the header row have the same column.", code="duplicate_field", field=twice)
    if not names:
        raise BadRequest("No name in the header row has a column.", code="unknown_field", field="mapping")
    if options.mode != CREATE_MODE and options.key not in names:
        raise BadRequest("The file has no column for the key.", code="mandatory", field=options.key)

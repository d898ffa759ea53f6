"""Reads the file of an import in the sandbox, and stores its rows in pieces. The parser's output is not trusted."""

import json
import sysconfig
from pathlib import Path
from typing import Any

from django.db import transaction

from system import sandbox
from system.errors import BadRequest
from tableapi.models.imports import Import

from . import queue, storage
from .options import ImportOptions
from .parser import MAX_COLUMNS
from .storage import Kind

PARSER_PROGRAM = Path(__file__).parent / "parser.py"
# A million rows of a workbook take two minutes.
CPU_S, RUN_S = 600, 900.0
MEMORY_BYTES = 1024 * 1024 * 1024
PIECES_PER_COMMIT = 50
FAILURES = {
    sandbox.RunStatus.TIMED_OUT: "Reading the file took too long.",
    sandbox.RunStatus.OUT_OF_MEMORY: "Reading the file required too much memory.",
    sandbox.RunStatus.TOO_LARGE: "The file has lines that are too long.",
}
LIMITS = sandbox.RunLimits(memory_bytes=MEMORY_BYTES, cpu_s=CPU_S, run_s=RUN_S, output_bytes=storage.MAX_PIECE_BYTES)


class UnreadableFile(BadRequest):
    code = "unreadable_file"


def read_file(job: Import, options: ImportOptions) -> None:
    """Store the rows, and set `description`, `piece_count` and `line_count`. A repeated call starts again."""
    storage.delete_pieces(job, Kind.ROWS)
    names = ("delimiter", "encoding", "sheet", "date_order", "decimal")
    arguments = [job.format, json.dumps({name: getattr(options, name) for name in names})]
    paths = sysconfig.get_paths()
    arguments += sorted({paths["purelib"], paths["platlib"]})
    pieces: list[bytes] = []
    stored_count = 0
    with storage.opened_file(job) as file:
        try:
            for part in sandbox.stream(PARSER_PROGRAM, arguments, file, LIMITS):
                if part.startswith(b"{"):
                    _set_description(job, part)
                    continue
                pieces.append(part)
                if len(pieces) == PIECES_PER_COMMIT:
                    with transaction.atomic():
                        storage.add_pieces(job, Kind.ROWS, pieces, stored_count)
                        queue.renew(job)
                    stored_count, pieces = stored_count + len(pieces), []
        except sandbox.RunFailed as error:
            raise UnreadableFile(FAILURES.get(error.status, "The file is damaged.")) from None
    storage.add_pieces(job, Kind.ROWS, pieces, stored_count)
    job.piece_count = stored_count + len(pieces)


def _set_description(job: Import, part: bytes) -> None:
    description: dict[str, Any] = json.loads(part)
    if error := description.get("error"):
        raise UnreadableFile(str(error)[:200])
    header = description.get("header")
    if not isinstance(header, list) or len(header) > MAX_COLUMNS or not all(isinstance(name, str) for name in header):
        raise UnreadableFile("The file is damaged.")
    job.line_count = int(description.pop("line_count"))
    job.description = description

"""Stores the data of imports in pieces: the file, its rows, errors, and what to undo."""

import json
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from system.plain_sql import run_statement, server_binding_cursor
from tableapi.models.imports import Import, ImportPiece

Kind = ImportPiece.Kind
MAX_PIECE_BYTES = 64 * 1024 * 1024
INSERT = "INSERT INTO public.tableapi_import_piece (of_import_id, kind, number, data) VALUES (%s, %s, %s, %b)"
SELECT = "SELECT data FROM public.tableapi_import_piece WHERE of_import_id = %s AND kind = %s AND number = %s"


def add_pieces(job: Import, kind: Kind, pieces: Iterable[bytes], first_number: int = 0) -> None:
    with server_binding_cursor() as cursor:
        for number, piece in enumerate(pieces, first_number):
            cursor.execute(INSERT, [job.pk, kind.value, number, piece])


def add_entries(job: Import, kind: Kind, number: int, entries: list[Any]) -> None:
    if entries:
        add_pieces(job, kind, [zlib.compress(json.dumps(entries, ensure_ascii=False).encode(), 1)], number)


def read_piece(job: Import, kind: Kind, number: int) -> bytes | None:
    with server_binding_cursor() as cursor:
        row = cursor.execute(SELECT, [job.pk, kind.value, number], binary=True).fetchone()
    return None if row is None else bytes(row[0])


def read_entries(job: Import, kind: Kind, number: int) -> list[Any]:
    """The entries of a piece; none if it does not exist. The parser's output is not trusted, so its size is limited."""
    data = read_piece(job, kind, number)
    if data is None:
        return []
    entries = json.loads(zlib.decompressobj().decompress(data, MAX_PIECE_BYTES))
    if not isinstance(entries, list):
        raise ValueError("not a list")
    return entries


def first_entries(job: Import, kind: Kind, limit: int) -> list[Any]:
    entries: list[Any] = []
    pieces = ImportPiece.objects.filter(of_import=job, kind=kind).order_by("number")
    for number in pieces.values_list("number", flat=True):
        if len(entries) >= limit:
            break
        entries += read_entries(job, kind, number)
    return entries[:limit]


def delete_pieces(job: Import, *kinds: Kind) -> None:
    statement = "DELETE FROM public.tableapi_import_piece WHERE of_import_id = %s AND kind = ANY (%s)"
    run_statement(statement, [job.pk, [kind.value for kind in kinds]])


@contextmanager
def opened_file(job: Import) -> Iterator[IO[bytes]]:
    """The file in an unnamed temporary file, so that it is never held in memory."""
    with tempfile.TemporaryFile() as file:
        number = 0
        while (piece := read_piece(job, Kind.FILE, number)) is not None:
            file.write(piece)
            number += 1
        file.flush()
        yield file

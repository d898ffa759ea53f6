"""The program that reads an import file in the sandbox (`system.sandbox.child`). It imports no other product code.

Arguments: the format, the options as JSON, and the folders of the installed packages. The output is compressed batches
of rows, each a JSON array of `[line, cells]` or `[line, error]`, and then a JSON object that describes the file.
"""

import codecs
import csv
import datetime
import importlib
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

IS_STREAMING = True
BATCH_ROWS = 1_000
BATCH_CHARACTERS = 4_000_000
SAMPLE_BYTES = 256 * 1024
MAX_ROWS = 2_000_000
MAX_COLUMNS = 1_000
MAX_CELL_CHARACTERS = 1_000_000
MAX_ARCHIVE_BYTES = 2 * 1024**3
MAX_ARCHIVE_RATIO = 200
MIN_RATIO_BYTES = 10 * 1024 * 1024
# The candidates if a text is not Unicode. If several match equally well, the first is used.
ENCODINGS = ("cp1252", "cp1250", "cp1251", "iso8859_2", "cp1253", "cp1254", "cp932", "gb18030")
BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
UNICODE_ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
DELIMITERS = ",;\t|"
MONTH_FIRST_DATE = re.compile(r"\d{1,2}[/-](1[3-9]|2\d|3[01])[/-]\d{2,4}\b")
DECIMAL_COMMA = re.compile(r"[^,]*,(\d{1,2}|\d{4,})%?")
DATE_TEXT = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})|\d{1,2} [A-Z][a-z]+ \d{4}"
TYPES = (
    ("whole number", re.compile(r"[+-]?\d{1,18}")),
    ("number", re.compile(r"[+-]?(\d[\d .,'\xa0\u202f]*)?\d([eE][+-]?\d+)?%?")),
    ("yes or no", re.compile(r"(?i:yes|no|true|false|y|n)")),
    ("date", re.compile(DATE_TEXT)),
    ("date and time", re.compile(rf"({DATE_TEXT}),?[T ]\d.*")),
)  # fmt: skip

Row = tuple[int, Any]


class Unreadable(Exception):
    """The message is shown to the caller and quotes nothing of the file's content."""


def prepare(arguments: list[str]) -> Callable[[IO[bytes]], Iterator[bytes]]:
    """Return the function to run. Imports everything that it may need, because no file can be opened later."""
    format, options_json, *folders = arguments
    sys.path += folders
    options = json.loads(options_json)
    if format == "xlsx":
        for name in ("numpy", "PIL", "defusedxml"):  # optional, and slow to import
            sys.modules[name] = None  # type: ignore[assignment]
        _preload_workbooks()
    else:
        for encoding in (*ENCODINGS, *UNICODE_ENCODINGS, options["encoding"] or "ascii"):
            codecs.lookup(encoding)
        importlib.import_module("charset_normalizer").from_bytes("Größe".encode("cp1252"), cp_isolation=list(ENCODINGS))
    return lambda file: parse(format, file, options)


def parse(format: str, file: IO[bytes], options: dict[str, Any]) -> Iterator[bytes]:
    description: dict[str, Any] = {"header": [], "line_count": 0}
    sample: list[Row] = []
    try:
        rows = READERS[format](file, options, description)
        for batch in _batches(rows if format == "jsonl" else _below_header(rows, description)):
            description["line_count"] += len(batch)
            sample = sample or batch
            yield zlib.compress(json.dumps(batch, ensure_ascii=False).encode(), 1)
        if not description["header"]:
            raise Unreadable("The file has no header row.")
        description |= _guesses([cells for _, cells in sample if isinstance(cells, list)], description, options)
    except Unreadable as error:
        description = {"error": str(error)}
    except UnicodeError:
        description = {"error": f"The file is not valid {description.get('encoding', 'text')}. Set its encoding."}
    except MemoryError:
        description = {"error": "Reading the file required too much memory."}
    except Exception:  # a library may raise anything for a file that it cannot read
        description = {"error": "The file is damaged, or its content does not match its type."}
    yield json.dumps(description, ensure_ascii=False).encode()


def read_csv(file: IO[bytes], options: dict[str, Any], description: dict[str, Any]) -> Iterator[Row]:
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    text = _open_text(file, options, description)
    description["delimiter"] = options["delimiter"] or detect_delimiter(text.read(SAMPLE_BYTES))
    text.seek(0)
    reader = csv.reader(text, delimiter=description["delimiter"])
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error:
        raise Unreadable(
            f"Line {line} cannot be read, or has a value of more than {MAX_CELL_CHARACTERS:,} characters."
        ) from None


def read_json_lines(file: IO[bytes], options: dict[str, Any], description: dict[str, Any]) -> Iterator[Row]:
    """Each line is an object. A name that first occurs in a later line adds a column."""
    positions: dict[str, int] = {}
    for line, text in enumerate(_open_text(file, options, description), 1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            yield line, "The line is not a JSON object."
            continue
        for name in record:
            positions.setdefault(name.strip(), len(positions))
        _set_header(description, list(positions))
        cells: list[Any] = [None] * len(positions)
        for name, value in record.items():
            cells[positions[name.strip()]] = value
        yield line, cells


def read_workbook(file: IO[bytes], options: dict[str, Any], description: dict[str, Any]) -> Iterator[Row]:
    check_archive(file)
    openpyxl = sys.modules["openpyxl"]
    workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    description["sheets"] = [sheet.title for sheet in workbook.worksheets]
    description["sheet"] = options["sheet"] or description["sheets"][0]
    if description["sheet"] not in description["sheets"]:
        raise Unreadable("The workbook has no sheet with this name.")
    sheet = workbook[description["sheet"]]
    sheet.reset_dimensions()  # the declared size may be wrong
    for line, values in enumerate(sheet.iter_rows(values_only=True), 1):
        yield line, [format_cell(value) for value in values]


READERS: dict[str, Callable[[IO[bytes], dict[str, Any], dict[str, Any]], Iterator[Row]]] = {
    "csv": read_csv,
    "xlsx": read_workbook,
    "jsonl": read_json_lines,
}


def format_cell(value: Any) -> Any:
    """
    >>> format_cell(2.0), format_cell(True), format_cell(datetime.datetime(2024, 5, 1)), format_cell(None)
    (2, True, '2024-05-01', '')
    """
    if value is None:
        return ""
    if isinstance(value, int | float):
        return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ", "seconds")
    return str(value)


def check_archive(file: IO[bytes]) -> None:
    """Refuse archives that unpack to too much. `zipfile` reads at most the declared size of an entry."""
    compressed_size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > min(MAX_ARCHIVE_BYTES, max(MIN_RATIO_BYTES, compressed_size * MAX_ARCHIVE_RATIO)):
        raise Unreadable("The workbook unpacks to too much data.")


def detect_encoding(file: IO[bytes]) -> str:
    """Unicode if the whole file is valid; otherwise, the best match for the lines around the first other bytes."""
    file.seek(0)
    sample = file.read(SAMPLE_BYTES)
    if mark := next((encoding for mark, encoding in BYTE_ORDER_MARKS if sample.startswith(mark)), ""):
        return mark
    if b"\0" in sample:
        return "utf-16-be" if sample[:1] == b"\0" else "utf-16-le"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while sample:
            decoder.decode(sample)
            sample = file.read(SAMPLE_BYTES)
        decoder.decode(b"", final=True)
        return "utf-8"
    except UnicodeDecodeError:
        lines = b"\n".join([line for line in sample.split(b"\n") if not line.isascii()])[: SAMPLE_BYTES // 4]
    matches = list(sys.modules["charset_normalizer"].from_bytes(lines, cp_isolation=list(ENCODINGS)))
    best = [match for match in matches if match.chaos == matches[0].chaos and match.coherence == matches[0].coherence]
    names = {name for match in best for name in match.could_be_from_charset}
    return next((name for name in ENCODINGS if name in names), ENCODINGS[0])


def detect_delimiter(sample: str) -> str:
    """The delimiter that splits the first line into the most values.

    >>> detect_delimiter('\\na;"b, c";d\\n1,5;2;3\\n'), detect_delimiter("one\\ntwo\\n")
    (';', ',')
    """

    def column_count(delimiter: str) -> int:
        return len(next(csv.reader(io.StringIO(sample.lstrip("\r\n"), newline=""), delimiter=delimiter), []))

    return max(DELIMITERS, key=column_count)


def _open_text(file: IO[bytes], options: dict[str, Any], description: dict[str, Any]) -> io.TextIOWrapper:
    description["encoding"] = options["encoding"] or detect_encoding(file)
    file.seek(0)
    encoding = "utf-8-sig" if description["encoding"].lower() in ("utf-8", "utf8") else description["encoding"]
    return io.TextIOWrapper(file, encoding, newline="")


def _below_header(rows: Iterable[Row], description: dict[str, Any]) -> Iterator[Row]:
    """Take the first row that is not empty as the header, and skip empty rows."""
    header: list[str] | None = None
    for line, cells in rows:
        while cells and cells[-1] == "":
            cells.pop()
        if not any(cell != "" for cell in cells):
            continue
        if header is None:
            header = [str(cell).strip() for cell in cells]
            _set_header(description, header)
            names = [name.casefold() for name in header if name]
            if len(set(names)) < len(names):
                raise Unreadable("The header row contains a name more than once.")
        elif len(cells) > len(header):
            yield line, "The line has more values than the header row has names."
        else:
            yield line, cells


def _set_header(description: dict[str, Any], header: list[str]) -> None:
    if len(header) > MAX_COLUMNS:
        raise Unreadable(f"The file has more than {MAX_COLUMNS:,} columns.")
    if "\0" in "".join(header):
        raise Unreadable("The header row contains a character that cannot be stored.")
    description["header"] = header


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    characters = 0
    for number, row in enumerate(rows, 1):
        if number > MAX_ROWS:
            raise Unreadable(f"The file has more than {MAX_ROWS:,} lines.")
        batch.append(row)
        characters += sum(len(cell) for cell in row[1] if isinstance(cell, str))
        if len(batch) == BATCH_ROWS or characters > BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _guesses(sample: list[list[Any]], description: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Guess the types of the columns, the order of day and month, and the decimal sign."""
    columns = [
        [str(row[position]).strip() for row in sample if position < len(row) and row[position] not in ("", None)]
        for position in range(len(description["header"]))
    ]
    types = [
        next((name for name, pattern in TYPES if texts and all(map(pattern.fullmatch, texts))), "text")
        for texts in columns
    ]
    numbers = [text for texts, name in zip(columns, types, strict=True) if name == "number" for text in texts]
    has_month_first = any(MONTH_FIRST_DATE.match(text) for texts in columns for text in texts)
    return {
        "types": types,
        "date_order": options["date_order"] or ("mdy" if has_month_first else "dmy"),
        "decimal": options["decimal"] or ("," if any(map(DECIMAL_COMMA.fullmatch, numbers)) else "."),
    }


def _preload_workbooks() -> None:
    """Read a workbook, since the library imports some modules when it first reads one."""
    openpyxl = importlib.import_module("openpyxl")
    importlib.import_module("warnings").simplefilter("ignore")  # unknown parts of a workbook
    file = io.BytesIO()
    workbook = openpyxl.Workbook()
    workbook.active.append(["a", 1, datetime.date(2024, 5, 1)])
    workbook.save(file)
    list(read_workbook(file, {"sheet": ""}, {}))

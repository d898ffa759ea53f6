"""CSV files: each row as a line, its values with the names of their columns."""

from __future__ import annotations

import csv
import io
from typing import Any

from ..common import decoding
from ..common.table_rows import Rows
from ..common.text_writer import TextWriter
from .plain import read

DELIMITERS = ",;\t|"
# Whole lines of the beginning, few enough that the sniffer's patterns end soon.
SAMPLE = 8 * 1024


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    content = read(data)
    csv.field_size_limit(len(content) + 1)
    reader = csv.reader(io.StringIO(content, newline=""), dialect(content[:SAMPLE]), strict=False)
    Rows(text, limits["max_cells"]).add(reader)


def dialect(sample: str) -> type[csv.Dialect]:
    """How the file separates and quotes; the usual way when that cannot be told.

    >>> dialect("a;b;c\\n1;2;3\\n").delimiter, dialect("one\\ntwo\\n").delimiter
    (';', ',')
    """
    end = sample.rfind("\n")
    try:
        found = csv.Sniffer().sniff(sample[: end + 1] if end > 0 else sample, DELIMITERS)
    except csv.Error:
        return csv.excel
    # It takes quotes that are doubled for escaped ones when the sample has none.
    found.doublequote = True
    found.quotechar = found.quotechar or '"'
    return found


def prepare() -> None:
    decoding.prepare()

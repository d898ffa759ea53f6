"""CSV files: one table."""

import csv
import io
from typing import Any

from ..common.text_writer import CellCounter, TextWriter
from .plain import decode_text
from .plain import preload as preload

DELIMITERS = ",;\t|"
# Small, because the sniffer's patterns are slow.
SAMPLE_LENGTH = 8 * 1024


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    content = decode_text(data)
    csv.field_size_limit(len(content) + 1)
    reader = csv.reader(io.StringIO(content, newline=""), detect_dialect(content[:SAMPLE_LENGTH]), strict=False)
    writer.add_table(CellCounter(limits["max_cells"]).check(reader))


def detect_dialect(sample: str) -> type[csv.Dialect]:
    """Detects delimiter and quoting; falls back to the usual ones.

    >>> detect_dialect("a;b;c\\n1;2;3\\n").delimiter, detect_dialect("one\\ntwo\\n").delimiter
    (';', ',')
    """
    end = sample.rfind("\n")
    try:
        result = csv.Sniffer().sniff(sample[: end + 1] if end > 0 else sample, DELIMITERS)
    except csv.Error:
        return csv.excel
    # The sniffer does not detect doubled quotes if the sample has none.
    result.doublequote = True
    result.quotechar = result.quotechar or '"'
    return result

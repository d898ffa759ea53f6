"""Plain text in any encoding."""

from collections.abc import Callable, Iterator
from typing import Any

from ..common import decoding
from ..common.decoding import NotText, decode
from ..common.failures import damaged_error
from ..common.text_writer import TextWriter


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    writer.add_verbatim(decode_text(data))


def write_with_headings(
    data: bytes, writer: TextWriter, find_headings: Callable[[str], Iterator[tuple[int, int, str]]]
) -> None:
    """Writes the unchanged text; `find_headings` yields the offset, level and title of each heading in it."""
    content = writer.clean_text(decode_text(data))
    writer.add_verbatim(content)
    for offset, level, title in find_headings(content):
        writer.record_heading(offset, level, title)


def decode_text(data: bytes, declared_encoding: str = "") -> str:
    try:
        return decode(data, declared_encoding=declared_encoding)
    except NotText:
        raise damaged_error("The text encoding of the file was not recognized. Save the file as UTF-8.") from None


preload = decoding.preload

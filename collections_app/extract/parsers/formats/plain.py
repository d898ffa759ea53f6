"""Plain text in any encoding."""

from typing import Any

from ..common import decoding
from ..common.decoding import NotText, decode
from ..common.failures import damaged_error
from ..common.text_writer import TextWriter


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    writer.add_verbatim(decode_text(data))


def decode_text(data: bytes, declared_encoding: str = "") -> str:
    try:
        return decode(data, declared_encoding=declared_encoding)
    except NotText:
        raise damaged_error("The text encoding of the file was not recognized. Save the file as UTF-8.") from None


preload = decoding.preload

"""RTF files."""

import re
from typing import Any

from striprtf.striprtf import rtf_to_text

from ..common import decoding
from ..common.decoding import try_decode
from ..common.text_writer import TextWriter

CODE_PAGE = re.compile(rb"\\ansicpg(\d{1,9})")
INVALID_ESCAPE = re.compile(r"\\u-?\d{6,}")
WESTERN_CODE_PAGE = "cp1252"


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    declaration = CODE_PAGE.search(data)
    encoding = f"cp{declaration[1].decode()}" if declaration else WESTERN_CODE_PAGE
    if try_decode(b"", encoding, False) is None:
        data, encoding = CODE_PAGE.sub(rb"\\ansicpg1252", data), WESTERN_CODE_PAGE
    # RTF is nearly always ASCII; other bytes are in the declared code page.
    content = try_decode(data, encoding, False)
    content = INVALID_ESCAPE.sub("", data.decode("latin-1") if content is None else content)
    writer.add(plain_text(content))


def plain_text(content: str) -> str:
    """
    >>> plain_text("{\\\\rtf1 Hello \\\\b you}")
    'Hello you'
    """
    text: str = rtf_to_text(content, encoding=WESTERN_CODE_PAGE, errors="replace")  # type: ignore[no-untyped-call]
    return text.strip()


def preload() -> None:
    decoding.preload(loads_all=True)
    plain_text("{\\rtf1\\ansi\\ansicpg1251 \\'cf}")

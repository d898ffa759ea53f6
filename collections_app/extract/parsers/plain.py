"""In charge of plain text in whatever encoding."""

from __future__ import annotations

from typing import Any

from . import decoding
from .decoding import NotText, decode
from .refusals import damaged
from .writing import Text


def parse(data: bytes, text: Text, limits: dict[str, Any]) -> None:
    text.add_as_it_is(read(data))


def read(data: bytes) -> str:
    try:
        return decode(data)
    except NotText:
        raise damaged("The file is not text in any common encoding.") from None


def prepare() -> None:
    decoding.prepare()

"""The reasons for which a parser refuses a file."""

from __future__ import annotations

ENCRYPTED = "The file is protected by a password. Send it without one."
DAMAGED = "The file is damaged, or not what its name says."
DEEP = "The file is nested too deeply to be read."


class ParserRefused(Exception):
    """No text comes of this file. `code` is stable, the text a sentence without anything of the file's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def damaged(message: str = DAMAGED) -> ParserRefused:
    return ParserRefused("damaged", message)


def encrypted() -> ParserRefused:
    return ParserRefused("encrypted", ENCRYPTED)

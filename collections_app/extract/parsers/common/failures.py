"""The reasons for which a parser refuses a file."""

ENCRYPTED = "The file is protected by a password. Send it without a password."
DAMAGED = "The file is damaged, or its content does not match its name."
DEEP = "The file is nested too deeply to be read."


class ParserRefused(Exception):
    """The file cannot be read. `code` is stable; `message` is a sentence that quotes nothing from the file."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def damaged(message: str = DAMAGED) -> ParserRefused:
    return ParserRefused("damaged", message)


def encrypted() -> ParserRefused:
    return ParserRefused("encrypted", ENCRYPTED)

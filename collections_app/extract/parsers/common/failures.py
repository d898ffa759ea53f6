"""The errors with which a parser refuses a file."""

ENCRYPTED_MESSAGE = "The file is password-protected. Remove the password and send the file again."
DAMAGED_MESSAGE = "The file is damaged, or its content does not match its name."
TOO_DEEP_MESSAGE = "The file is nested too deeply to be read."


class ParserRefused(Exception):
    """The file cannot be read. `code` is stable; `message` is a sentence that quotes nothing from the file."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def damaged_error(message: str = DAMAGED_MESSAGE) -> ParserRefused:
    return ParserRefused("damaged", message)


def encrypted_error() -> ParserRefused:
    return ParserRefused("encrypted", ENCRYPTED_MESSAGE)

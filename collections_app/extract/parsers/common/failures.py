"""The errors for files that cannot be read."""

DAMAGED_MESSAGE = "The file is damaged, or its content does not match its name."
TOO_DEEP_MESSAGE = "The file is nested too deeply to be read."


class UnreadableFile(Exception):
    """No text can be extracted from this file; `message` is a sentence that quotes nothing from the file.

    `code` is damaged, encrypted, or limit_ with archive, cells, characters, memory, pages or time; for the only file of
    an archive also unsupported or empty. `is_temporary` is true if the machine was too busy, so a retry may succeed.
    """

    def __init__(self, code: str, message: str, *, is_temporary: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.is_temporary = is_temporary


def damaged_error(message: str = DAMAGED_MESSAGE) -> UnreadableFile:
    return UnreadableFile("damaged", message)


def too_much_text_error(max_characters: int) -> UnreadableFile:
    return UnreadableFile("limit_characters", f"The file contains more than {max_characters:,} characters of text.")


def encrypted_error() -> UnreadableFile:
    return UnreadableFile("encrypted", "The file is password-protected. Remove the password and send the file again.")

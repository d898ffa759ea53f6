"""Recognizes the format of a file; content, name and declared type must agree."""

import re
import zipfile
from io import BytesIO

from system.errors import UnsupportedMediaType

from .file_formats import ACCEPTED, ARCHIVE_TYPES, ARCHIVES, EXTENSIONS, FORMATS, GENERIC_TYPES, TYPES
from .parsers.common.decoding import NotText, decode
from .parsers.common.failures import ParserRefused

# How much of a text is examined.
SAMPLE = 64 * 1024
MAX_QUOTED = 40

# Possessive quantifiers prevent backtracking, so the time is linear in the length.
HTML_START = re.compile(
    r"\s*+(?:<\?xml[^>]*+>\s*+)?+(?:<!--[^-]*+(?:-(?!->)[^-]*+)*+-->\s*+)*+<(?:!doctype\s+html|html)[\s>]",
    re.IGNORECASE,
)
MAIL_START = re.compile(r"(From [^\n]*\n)?((?:[!-9;-~]{1,70}:[^\n]*\n(?:[ \t][^\n]*\n)*){2,})")
# The same where the sample ends within a header.
LONG_MAIL_START = re.compile(r"(From [^\n]*\n)?((?:[!-9;-~]{1,70}:[^\n]*(?:\n[ \t][^\n]*)*(?:\n|\Z))+)[!-9;-~]{0,70}")
MAIL_HEADER = re.compile(r"^(from|to|subject|date|received|message-id|mime-version|return-path):", re.I | re.M)
LONG_MAIL_HEADER = re.compile(
    MAIL_HEADER.pattern[:-2] + r"|cc|reply-to|references|in-reply-to|delivered-to|content-[a-z-]+|x-[\w-]+|list-[a-z-]+"
    r"|dkim-signature|arc-[a-z-]+|authentication-results):",
    re.I | re.M,
)
# The entry with the content identifies the format of an archive.
MAIN_ENTRIES = {"word/document.xml": "docx", "ppt/presentation.xml": "pptx", "xl/workbook.xml": "xlsx"}
ODT_TYPE = b"application/vnd.oasis.opendocument.text"
# Limits for archives. No file of these formats needs as much, and this code does not run in a child process.
MAX_ENTRIES = 2000
MAX_DIRECTORY_BYTES = 1024 * 1024
MAX_NAME_LENGTH = 200
ENTRY = re.compile(rb"PK\x03\x04.{22}(?P<length>.{2}).{2}", re.DOTALL)

OTHER_KINDS = {
    "ole": "an older Office file or one that is protected by a password",
    "binary": "neither text nor one of the accepted formats",
    "zip": "an archive of which only the beginning was examined",
    "archive": "an archive, and not one of the accepted formats",
    "eml": "an e-mail",
}


def recognise(head: bytes, filename: str, declared: str = "") -> str:
    """Returns the format's name; raises UnsupportedMediaType if content, name and type contradict each other.

    `head` is the whole file or at least its first 64 KB.

    >>> recognise(b"%PDF-1.7 ...", "Report.PDF", "application/pdf")
    'pdf'
    >>> recognise(b"<!DOCTYPE html><p>Hi", "report.pdf")
    Traceback (most recent call last):
    system.errors.UnsupportedMediaType: The file is named .pdf, but its content is HTML.
    """
    sniffed = sniff(head)
    by_type = format_of_type(declared)
    extension = extension_of(filename)
    if extension:
        format = EXTENSIONS.get(extension)
        if format is None:
            raise refused(f"Files named .{extension[:MAX_QUOTED]} are not accepted. Send {ACCEPTED}.")
    else:
        format = by_type if by_type in FORMATS else without_name(sniffed)
    if sniffed not in FORMATS[format].sniffed:
        named = f"named .{extension}" if extension else f"declared as {FORMATS[format].label}"
        hint = f" Accepted formats: {ACCEPTED}." if sniffed in OTHER_KINDS else ""
        raise refused(f"The file is {named}, but its content is {label(sniffed)}.{hint}")
    if by_type == "archive" and format in ARCHIVES:
        by_type = format
    if by_type is not None and by_type != format:
        raise refused(
            f"The file is {FORMATS[format].label}, but it was declared as {declared[:MAX_QUOTED]!r}. "
            "Declare its actual type, or application/octet-stream."
        )
    return format


def refused(message: str) -> UnsupportedMediaType:
    return UnsupportedMediaType(message)


def extension_of(filename: str) -> str:
    """The extension in lower case; a name that only begins with a dot has none.

    >>> extension_of("C:\\\\files\\\\Minutes.2024.DOCX"), extension_of("README"), extension_of(".md")
    ('docx', '', '')
    """
    name = re.split(r"[/\\]", filename)[-1].rstrip(". ")
    stem, dot, extension = name.rpartition(".")
    return extension.lower().strip() if dot and stem else ""


def format_of_type(declared: str) -> str | None:
    """The format of a content type; "archive", "other", or None for a generic type.

    >>> format_of_type("text/csv; charset=utf-8"), format_of_type("image/png"), format_of_type("text/plain")
    ('csv', 'other', None)
    """
    content_type = declared.partition(";")[0].strip().lower()
    if content_type in GENERIC_TYPES:
        return None
    if content_type in ARCHIVE_TYPES:
        return "archive"
    return TYPES.get(content_type, "other")


def without_name(sniffed: str) -> str:
    if sniffed not in FORMATS:
        raise refused(f"The content is {label(sniffed)}. Send {ACCEPTED}.")
    return sniffed


def label(sniffed: str) -> str:
    return OTHER_KINDS.get(sniffed) or FORMATS[sniffed].label


def sniff(head: bytes) -> str:
    """The kind of content, from its beginning only; nothing embedded further inside is examined.

    >>> sniff(b"{\\\\rtf1 Hello}"), sniff(b"Hello"), sniff(bytes(range(256)))
    ('rtf', 'text', 'binary')
    """
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n\t ").startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return kind_of_archive(head)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "ole"
    if head.startswith(b"{\\rtf"):
        return "rtf"
    try:
        is_cut = len(head) >= SAMPLE
        return kind_of_text(decode(head[:SAMPLE], is_cut=is_cut), is_cut=is_cut)
    except (NotText, ParserRefused):
        return "binary"


def kind_of_text(text: str, *, is_cut: bool) -> str:
    if HTML_START.match(text):
        return "html"
    text = text.replace("\r\n", "\n")
    mail = MAIL_START.match(text)
    if mail:
        return "eml" if MAIL_HEADER.search(mail.group(2)) else "text"
    long_mail = LONG_MAIL_START.fullmatch(text) if is_cut else None
    return "eml" if long_mail and LONG_MAIL_HEADER.search(long_mail.group(2)) else "text"


def kind_of_archive(head: bytes) -> str:
    """Identifies an archive by its entries: all of them, or those that begin in this part of the file."""
    names = entries(head)
    if names[:1] == ["mimetype"]:
        content = head[38 : 38 + len(ODT_TYPE) + 1]
        return "odt" if content.startswith(ODT_TYPE) and not content.endswith((b"-", b"m")) else "archive"
    kinds = {MAIN_ENTRIES[name] for name in names if name in MAIN_ENTRIES}
    return kinds.pop() if len(kinds) == 1 else "zip" if "[Content_Types].xml" in names and not kinds else "archive"


class LimitedReader(BytesIO):
    """Refuses large reads: `ZipFile` reads the list of entries at once when it opens an archive."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise too_many_entries()
        return super().read(size)


def too_many_entries() -> UnsupportedMediaType:
    return refused(f"The file is an archive of more than {MAX_ENTRIES:,} entries, or their names are too long.")


def entries(head: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(LimitedReader(head)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return names_in_part(head)
    if len(names) > MAX_ENTRIES:
        raise too_many_entries()
    return names


def names_in_part(head: bytes) -> list[str]:
    """The names of the entries that begin in this part of the file."""
    names = []
    position = 0
    for _ in range(MAX_ENTRIES):
        match = ENTRY.search(head, position)
        if match is None:
            break
        position = match.end() + int.from_bytes(match["length"], "little")
        if position - match.end() <= MAX_NAME_LENGTH:
            names.append(head[match.end() : position].decode("utf-8", "replace"))
    return names

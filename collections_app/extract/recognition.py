"""Recognizes the format of a file; content, name and declared type must agree."""

import re
import zipfile
from email.parser import HeaderParser
from io import BytesIO

from system.errors import UnsupportedMediaType

from .file_formats import ARCHIVE_FORMATS, ARCHIVE_TYPES, EXTENSIONS, FORMAT_LABELS, FORMATS, GENERIC_TYPES, MEDIA_TYPES
from .parsers.common.decoding import NotText, decode

# The part of a text that is examined.
SAMPLE_BYTES = 64 * 1024
MAX_QUOTED_LENGTH = 40

# Possessive quantifiers prevent backtracking, so the time is linear in the length.
HTML_START = re.compile(
    r"\s*+(?:<\?xml[^>]*+>\s*+)?+(?:<!--[^-]*+(?:-(?!->)[^-]*+)*+-->\s*+)*+<(?:!doctype\s+html|html)[\s>]",
    re.IGNORECASE,
)
MAIL_HEADERS = {"from", "to", "subject", "date", "received", "message-id", "mime-version", "return-path"}
# These suffice in a sample that ends before the other headers, because one is very long.
OTHER_MAIL_HEADER = re.compile(
    r"cc|reply-to|references|in-reply-to|delivered-to|content-[a-z-]+|x-[\w-]+|list-[a-z-]+|dkim-signature|arc-[a-z-]+"
    r"|authentication-results"
)
EPUB_ENTRY = "META-INF/container.xml"
# The entry with the content identifies the format of an archive.
MAIN_ENTRIES = {
    "word/document.xml": "docx", "ppt/presentation.xml": "pptx", "xl/workbook.xml": "xlsx", EPUB_ENTRY: "epub",
}  # fmt: skip
# The archives whose first entry has their media type.
TYPED_ARCHIVES = {b"application/vnd.oasis.opendocument.text": "odt", b"application/epub+zip": "epub"}
ARCHIVE_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
# Limits for archives. Real files stay far below them, and this code does not run in a child process.
MAX_ENTRIES = 2000
MAX_DIRECTORY_BYTES = 1024 * 1024
MAX_NAME_LENGTH = 200
ENTRY_HEADER = re.compile(rb"PK\x03\x04.{22}(?P<length>.{2}).{2}", re.DOTALL)

OTHER_KIND_LABELS = {
    "ole": "an older or password-protected Office file",
    "binary": "binary data in a format that is not accepted",
    "ooxml": "an Office file that could not be examined completely",
    "archive": "an archive in a format that is not accepted",
    "eml": "an email",
}


def recognize_format(head: bytes, filename: str, declared_type: str = "") -> str:
    """Returns the format's name; raises UnsupportedMediaType if content, name and type contradict each other.

    `head` is the whole file or at least its first 64 KB.

    >>> recognize_format(b"%PDF-1.7 ...", "Report.PDF", "application/pdf")
    'pdf'
    >>> recognize_format(b"<!DOCTYPE html><p>Hi", "report.pdf")
    Traceback (most recent call last):
    system.errors.UnsupportedMediaType: The file has the extension .pdf, but its content is HTML.
    """
    kind = sniff_kind(head)
    type_format = format_by_type(declared_type)
    extension = file_extension(filename)
    if extension and extension not in EXTENSIONS:
        quoted_extension = extension[:MAX_QUOTED_LENGTH]
        raise UnsupportedMediaType(f"The extension .{quoted_extension} is not accepted. Send one of: {FORMAT_LABELS}.")
    format = EXTENSIONS.get(extension) or (type_format if type_format in FORMATS else kind)
    if format not in FORMATS:
        raise UnsupportedMediaType(f"The content is {kind_label(kind)}. Send one of: {FORMAT_LABELS}.")
    if kind not in FORMATS[format].content_kinds:
        subject = f"has the extension .{extension}" if extension else f"is declared as {FORMATS[format].label}"
        hint = f" Accepted formats: {FORMAT_LABELS}." if kind in OTHER_KIND_LABELS else ""
        raise UnsupportedMediaType(f"The file {subject}, but its content is {kind_label(kind)}.{hint}")
    if type_format == "archive" and format in ARCHIVE_FORMATS:
        type_format = format
    if type_format is not None and type_format != format:
        raise UnsupportedMediaType(
            f"The file is {FORMATS[format].label}, but it was declared as {declared_type[:MAX_QUOTED_LENGTH]!r}. "
            "Declare its actual type, or application/octet-stream."
        )
    return format


def file_extension(filename: str) -> str:
    """The extension in lower case; a name that only begins with a dot has none.

    >>> file_extension("C:\\\\files\\\\Minutes.2024.DOCX"), file_extension("README"), file_extension(".md")
    ('docx', '', '')
    """
    name = re.split(r"[/\\]", filename)[-1].rstrip(". ")
    stem, dot, extension = name.rpartition(".")
    return extension.lower().strip() if dot and stem else ""


def format_by_type(declared_type: str) -> str | None:
    """Returns the format of a media type; "archive", "other", or None for a generic type.

    >>> format_by_type("text/csv; charset=utf-8"), format_by_type("image/png"), format_by_type("text/plain")
    ('csv', 'other', None)
    """
    content_type = declared_type.partition(";")[0].strip().lower()
    if content_type in GENERIC_TYPES:
        return None
    if content_type in ARCHIVE_TYPES:
        return "archive"
    return MEDIA_TYPES.get(content_type, "other")


def kind_label(kind: str) -> str:
    return OTHER_KIND_LABELS.get(kind) or FORMATS[kind].label


def sniff_kind(head: bytes) -> str:
    """Returns the kind of content, judged only by its beginning. Embedded content is not examined.

    >>> sniff_kind(b"{\\\\rtf1 Hello}"), sniff_kind(b"Hello"), sniff_kind(bytes(range(256)))
    ('rtf', 'text', 'binary')
    """
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n\t ").startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(ARCHIVE_STARTS):
        return sniff_archive(head)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "ole"
    if head.startswith(b"{\\rtf"):
        return "rtf"
    try:
        is_truncated = len(head) >= SAMPLE_BYTES
        return sniff_text(decode(head[:SAMPLE_BYTES], is_truncated=is_truncated), is_truncated=is_truncated)
    except NotText:
        return "binary"


def sniff_text(text: str, *, is_truncated: bool) -> str:
    if HTML_START.match(text):
        return "html"
    message = HeaderParser().parsestr(text)
    names = set(map(str.lower, message))
    if is_truncated and "\n" not in message.get_payload():
        is_mail = any(name in MAIL_HEADERS or OTHER_MAIL_HEADER.fullmatch(name) for name in names)
    else:
        is_mail = len(message) > 1 and not names.isdisjoint(MAIL_HEADERS)
    return "eml" if is_mail else "text"


def sniff_archive(head: bytes) -> str:
    """Identifies an archive by its entries, or by those that begin within `head` if the file continues."""
    names = entry_names(head)
    if names[:1] == ["mimetype"]:
        for media_type, kind in TYPED_ARCHIVES.items():
            content = head[38 : 38 + len(media_type) + 1]
            if content.startswith(media_type) and not content.endswith((b"-", b"m")):
                return kind
        return "epub" if EPUB_ENTRY in names else "archive"
    kinds = {MAIN_ENTRIES[name] for name in names if name in MAIN_ENTRIES}
    if len(kinds) == 1:
        return kinds.pop()
    return "archive" if kinds else "ooxml" if "[Content_Types].xml" in names else "zip"


class LimitedReader(BytesIO):
    """Refuses large reads, because `ZipFile` reads the whole list of entries into memory when it opens an archive."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise too_many_entries_error()
        return super().read(size)


def too_many_entries_error() -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"The file is an archive with more than {MAX_ENTRIES:,} entries or with entry names that are too long."
    )


def entry_names(head: bytes) -> list[str]:
    try:
        with zipfile.ZipFile(LimitedReader(head)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return partial_entry_names(head)
    if len(names) > MAX_ENTRIES:
        raise too_many_entries_error()
    return names


def partial_entry_names(head: bytes) -> list[str]:
    names = []
    position = 0
    for _ in range(MAX_ENTRIES):
        match = ENTRY_HEADER.search(head, position)
        if match is None:
            break
        position = match.end() + int.from_bytes(match["length"], "little")
        if position - match.end() <= MAX_NAME_LENGTH:
            names.append(head[match.end() : position].decode("utf-8", "replace"))
    return names

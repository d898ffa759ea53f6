"""Recognizes the media type of a file by its first bytes. Pure.

A browser shows images only; everything else is downloaded, so a coarse answer is enough.
"""

import mimetypes

SAMPLE_BYTES = 4096
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
ANY_BYTES, ANY_TEXT = "application/octet-stream", "text/plain"
# The types of these files cannot be told apart by their first bytes, so the name decides.
TYPES_BY_NAME = {
    "application/zip": ("application/vnd.openxmlformats-", "application/vnd.oasis.opendocument."),
    ANY_TEXT: ("text/csv", "application/json"),
}


def media_type(sample: bytes, file_name: str) -> str:
    """
    >>> media_type(b"GIF89a", "a.html"), media_type(b"a;b", "a.csv"), media_type(b"<html>", "a.html")
    ('image/gif', 'text/csv', 'text/plain')
    >>> media_type(b"PK\\x03\\x04", "a.docx")[-25:], media_type(bytes(9), "a.png")
    ('wordprocessingml.document', 'application/octet-stream')
    """
    found = next((kind for signature, kind in SIGNATURES if sample.startswith(signature)), None)
    if sample[:4] == b"RIFF" and sample[8:12] == b"WEBP":
        return "image/webp"
    found = found or (ANY_TEXT if _is_text(sample) else ANY_BYTES)
    by_name = mimetypes.guess_type(file_name)[0] or ""
    return by_name if by_name.startswith(TYPES_BY_NAME.get(found, ("?",))) else found


def _is_text(sample: bytes) -> bool:
    if b"\x00" in sample:
        return False
    try:
        sample[: SAMPLE_BYTES - 4].decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True

"""Detects the media type of a file from its first bytes. Pure.

Browsers display only images; all other files are downloaded, so a rough type is enough.
"""

import codecs
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
BINARY_TYPE, TEXT_TYPE = "application/octet-stream", "text/plain"
# The first bytes do not distinguish these types, so the file name decides.
TYPES_DECIDED_BY_NAME = {
    "application/zip": ("application/vnd.openxmlformats-", "application/vnd.oasis.opendocument."),
    TEXT_TYPE: ("text/csv", "application/json"),
}


def media_type(sample: bytes, file_name: str) -> str:
    """
    >>> media_type(b"GIF89a", "a.html"), media_type(b"a;b", "a.csv"), media_type(b"<html>", "a.html")
    ('image/gif', 'text/csv', 'text/plain')
    >>> media_type(b"PK\\x03\\x04", "a.docx")[-25:], media_type(bytes(9), "a.png")
    ('wordprocessingml.document', 'application/octet-stream')
    """
    detected_type = next((type_ for signature, type_ in SIGNATURES if sample.startswith(signature)), None)
    if sample[:4] == b"RIFF" and sample[8:12] == b"WEBP":
        return "image/webp"
    detected_type = detected_type or (TEXT_TYPE if _is_text(sample) else BINARY_TYPE)
    type_by_name = mimetypes.guess_type(file_name)[0] or ""
    return type_by_name if type_by_name.startswith(TYPES_DECIDED_BY_NAME.get(detected_type, ("?",))) else detected_type


def _is_text(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)  # the sample may end within a character
    except UnicodeDecodeError:
        return False
    return b"\x00" not in sample

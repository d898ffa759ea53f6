"""Emails: sender, recipients, subject, text, and the names of attachments."""

from email import policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.parser import BytesParser
from itertools import islice
from typing import Any

from ..common import decoding, visible_html
from ..common.decoding import NotText, decode
from ..common.text_writer import LINE_GAP, TextWriter

KEPT_HEADERS = ("Subject", "From", "To", "Cc", "Date")
# Longer raw headers, for example with many recipients, are truncated.
MAX_HEADER_LENGTH = 20_000
MAX_ATTACHMENTS = 200
SAMPLE_MESSAGE = (
    b"Subject: =?koi8-r?B?8NLJ18XU?=\nFrom: a@b.example\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n"
    b'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/html; charset=utf-8\n'
    b"Content-Transfer-Encoding: base64\n\nPGI+aGk8L2I+\n--x\nContent-Type: text/plain\n"
    b"Content-Disposition: attachment; filename*=utf-8''a%20b.txt\n"
    b"Content-Transfer-Encoding: quoted-printable\n\nhi=20\n--x--\n"
)


class TruncatingPolicy(policy.EmailPolicy):
    """Truncates headers, since the library's parsing takes quadratic time."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        return super().header_fetch_parse(name, value[:MAX_HEADER_LENGTH])


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    message: Any = BytesParser(_class=EmailMessage, policy=TruncatingPolicy()).parsebytes(data)
    # Mail programs show the first header of each name.
    headers = {name.title(): str(raw) for name, raw in reversed(list(message.raw_items()))}
    for name in KEPT_HEADERS:
        raw_header = headers.get(name, "")
        if len(raw_header) > MAX_HEADER_LENGTH:
            writer.warn(f"Only the first {MAX_HEADER_LENGTH:,} characters of the {name} header were kept.")
        if value := " ".join(writer.clean_text(decode_raw_header(raw_header)).split()):
            if name == "Subject":
                writer.record_heading(writer.length, 1, value)
            writer.add(f"{name}: {value}", LINE_GAP)
    body = message.get_body(preferencelist=("plain", "html"))
    if body is not None:
        add_body(body, writer)
    # The content of attachments is not part of the document.
    attachment_names = filter(None, (part.get_filename() for part in message.walk() if part is not body))
    if names := [" ".join(str(name).split())[:200] for name in islice(attachment_names, MAX_ATTACHMENTS)]:
        writer.add("Attachments: " + ", ".join(names))


def decode_raw_header(raw: str) -> str:
    """Decodes a raw header without parsing its addresses, which takes the library seconds if there are thousands.

    >>> decode_raw_header("=?utf-8?q?Gr=C3=B6=C3=9Fe?=\\n of it")
    'Größe of it'
    """
    raw = raw[:MAX_HEADER_LENGTH]
    try:
        # The library returns bytes beyond ASCII as surrogates.
        decoded = decode(raw.encode("ascii", "surrogateescape"))
        value = str(make_header(decode_header(decoded)))
    except (NotText, HeaderParseError, UnicodeError, LookupError, ValueError, OSError):
        value = raw
    return " ".join(value.split())


def add_body(body: Any, writer: TextWriter) -> None:
    content = body.get_payload(decode=True)
    if not isinstance(content, bytes) or not content.strip():
        return
    try:
        body_text = decode(content, declared_encoding=str(body.get_content_charset() or ""))
    except NotText:
        writer.warn("The body of the email was skipped because its text encoding was not recognized.")
        return
    if body.get_content_subtype() == "html":
        visible_html.write_visible_text(body_text, writer)
    else:
        writer.add(body_text.replace("\r\n", LINE_GAP).strip())


def preload() -> None:
    """Parses a sample, since the library imports decoders when it first needs them."""
    parse(SAMPLE_MESSAGE, TextWriter(len(SAMPLE_MESSAGE) * 2), {})
    decoding.preload(loads_all=True)

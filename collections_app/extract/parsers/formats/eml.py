"""Emails: sender, recipients, subject, text, and the names of attachments."""

from __future__ import annotations

from collections.abc import Iterator
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

from ..common import decoding, visible_html
from ..common.decoding import NotText, decode
from ..common.text_writer import LINE, TextWriter

HEADERS = ("Subject", "From", "To", "Cc", "Date")
# Of one header as it was sent; what is beyond it, such as more recipients, is left out.
LONGEST_HEADER = 20_000
MOST_ATTACHMENTS = 200
SAMPLE = (
    b"Subject: =?koi8-r?B?8NLJ18XU?=\nFrom: a@b.example\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n"
    b'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/html; charset=utf-8\n'
    b"Content-Transfer-Encoding: base64\n\nPGI+aGk8L2I+\n--x\nContent-Type: text/plain\n"
    b"Content-Disposition: attachment; filename*=utf-8''a%20b.txt\n"
    b"Content-Transfer-Encoding: quoted-printable\n\nhi=20\n--x--\n"
)


class ShortHeaders(policy.EmailPolicy):
    """The library's parsing of a header takes the square of its length."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        return super().header_fetch_parse(name, value[:LONGEST_HEADER])


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    message: Any = BytesParser(_class=EmailMessage, policy=ShortHeaders()).parsebytes(data)
    # The first of each name is the one that mail programs show.
    headers = {name.title(): raw for name, raw in reversed(list(message.raw_items()))}
    headers = {name: str(raw) for name, raw in headers.items() if name in HEADERS}
    for name in HEADERS:
        if len(headers.get(name, "")) > LONGEST_HEADER:
            text.warn(f"Only the first {LONGEST_HEADER:,} characters of the header {name} were kept.")
    headers = {name: shown(raw) for name, raw in headers.items()}
    text.heading(1, headers.get("Subject", ""), is_written=False)
    for name in HEADERS:
        if value := headers.get(name):
            text.add(f"{name}: {value}", LINE)
    body = message.get_body(preferencelist=("plain", "html"))
    if body is not None:
        add_body(body, text)
    if names := list(attachments(message, body)):
        text.add("Attachments: " + ", ".join(names))


def shown(raw: str) -> str:
    """A header as it was sent, decoded. The library's own parsing of addresses took seconds for thousands of them.

    >>> shown("=?utf-8?q?Gr=C3=B6=C3=9Fe?=\\n of it")
    'Größe of it'
    """
    raw = raw[:LONGEST_HEADER]
    try:
        # Bytes beyond ASCII come as surrogates.
        plain = decode(raw.encode("ascii", "surrogateescape"))
        found = str(make_header(decode_header(plain)))
    except (NotText, HeaderParseError, UnicodeError, LookupError, ValueError, OSError):
        found = raw
    return " ".join(found.split())


def add_body(body: Any, text: TextWriter) -> None:
    content = body.get_payload(decode=True)
    if not isinstance(content, bytes) or not content.strip():
        return
    try:
        words = decode(content, declared=str(body.get_content_charset() or ""))
    except NotText:
        text.warn("The text of the e-mail is in no common encoding.")
        return
    if body.get_content_subtype() == "html":
        visible_html.write(words, text)
    else:
        text.add(words.replace("\r\n", LINE).strip())


def attachments(message: Any, body: Any) -> Iterator[str]:
    """Only their names: what is in them was not sent as a document."""
    found = 0
    for part in message.walk():
        name = part.get_filename() if part is not body else None
        if name and found < MOST_ATTACHMENTS:
            found += 1
            yield " ".join(str(name).split())[:200]


def prepare() -> None:
    """Headers and bodies are decoded by what is imported when they are first met."""
    parse(SAMPLE, TextWriter(len(SAMPLE) * 2), {})
    decoding.prepare(is_declared=True)

"""Fetches a web page, following checked redirects, and loads it if its text has changed.

A page that cannot be fetched, cannot be read or has no text keeps its last text.
"""

import hashlib
import time
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from email.message import Message
from itertools import takewhile
from urllib.parse import quote, urldefrag, urljoin, urlsplit

from django.conf import settings

from collections_app import extract
from collections_app.extract import ocr
from collections_app.extract.file_formats import EXTENSIONS
from collections_app.extract.parsers.common.decoding import try_decode
from collections_app.extract.recognition import file_extension, format_by_type
from collections_app.models import ExtractedText, Source
from collections_app.models.documents import VersionState
from collections_app.sources import loads
from collections_app.sources.errors import SourceFailed
from system import outbound
from system.errors import UnsupportedMediaType
from system.outbound import OutboundError, OutboundFailed, OutboundResponse, Policy
from system.outbound.deadline import Deadline

MAX_REDIRECTS = 5
# Covers all redirects.
FETCH_TIMEOUT_S = 30.0
MAX_CONDITION_LENGTH = 500
# The time to find a scanned page that is legible. Otherwise the file does not replace the last text.
SCAN_BUDGET_S = 60.0
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
NOT_MODIFIED = 304
# The response headers that a conditional request sends back, and under which name.
CONDITION_HEADERS = {"etag": "if-none-match", "last-modified": "if-modified-since"}
# They take quadratic time, and are for host names only.
SLOW_ENCODINGS = {"idna", "punycode"}
FORBIDDEN_ADDRESS = "The address is not allowed. The operator can allow private networks with SVC_PRIVATE_WEB_PAGES."
TIMED_OUT = f"The page was not received within {FETCH_TIMEOUT_S:g} s."


def policy() -> Policy:
    limits = {"total_s": FETCH_TIMEOUT_S, "max_body_bytes": settings.COLLECTIONS["file_limit"]}
    return Policy(**{**limits, **settings.WEB_PAGE_POLICY}, allow_any_port=True)


def percent_encode(url: str | bytes) -> str:
    """
    >>> percent_encode("https://de.example.org/wiki/Müll%20a?b=ä")
    'https://de.example.org/wiki/M%C3%BCll%20a?b=%C3%A4'
    """
    return quote(url, safe="%/:=&?~#+!$,;'@()*[]")


def describe_error(error: OutboundError) -> str:
    """The message without addresses, because a name that an internal server knows may resolve to a private one."""
    return FORBIDDEN_ADDRESS if error.code == "address" else error.message


def refresh_page(source: Source) -> dict[str, object]:
    """Loads the page unless it is unchanged; returns the columns to store."""
    document = loads.find_document(source, source.doc_id)
    loaded = document.newest if document else None
    if loaded is not None and loaded.state == VersionState.FAILED:
        loaded = None  # it is loaded again, even if the page is unchanged
    conditions = source.conditions if loaded else {}
    try:
        url, response = fetch(source.address, conditions)
    except OutboundError as error:
        if error.status == NOT_MODIFIED and conditions:
            return {}
        raise SourceFailed(describe_error(error)) from None
    if response.status != 200:
        raise SourceFailed(f"The server responded with {response.status}.")
    body = _body_in_utf_8(response)
    if loaded is None or loaded.sha256 != hashlib.sha256(body).hexdigest():
        format, text = _read(url, body, response.headers.get("content-type", ""))
        # Many pages change in each response, but not their text.
        if loaded is None or not ExtractedText.objects.filter(version=loaded, text=text).exists():
            loads.load(source, source.doc_id, body, format=format)
    return {"conditions": _conditions(response.headers)}


def fetch(address: str, conditions: Mapping[str, str]) -> tuple[str, OutboundResponse]:
    """The response and the URL that it came from. Each redirect is checked like the first address."""
    url, deadline = address, Deadline.after(FETCH_TIMEOUT_S)
    headers = {"accept": "text/html, application/xhtml+xml, */*;q=0.8", **conditions}
    for _ in range(MAX_REDIRECTS + 1):
        try:
            return url, outbound.get(url, policy().limited_to(deadline.remaining_s()), headers=headers)
        except TimeoutError:
            raise SourceFailed(TIMED_OUT) from None
        except OutboundFailed as error:
            if error.status not in REDIRECT_STATUSES or not error.redirect_target:
                raise
            url = _redirect_url(url, error.redirect_target)
    raise SourceFailed(f"The page has more than {MAX_REDIRECTS} redirects.")


def _redirect_url(url: str, target: str) -> str:
    try:
        # Headers are decoded as Latin-1, but servers send UTF-8.
        return urldefrag(urljoin(url, percent_encode(target.encode("latin-1")))).url
    except ValueError:
        raise SourceFailed("The server responded with a redirect to an invalid address.") from None


def _body_in_utf_8(response: OutboundResponse) -> bytes:
    """The body, converted if it is a text in another encoding, which only the header declares."""
    header = Message()
    header["content-type"] = response.headers.get("content-type", "")
    encoding = header.get_content_charset("")
    is_text = header.get_content_maintype() == "text" or header.get_content_subtype() == "xhtml+xml"
    if not is_text or encoding in SLOW_ENCODINGS or try_decode(response.body, "utf-8", False) is not None:
        return response.body
    text = try_decode(response.body, encoding, False)
    return response.body if text is None else BOM_UTF8 + text.encode(errors="replace")


def _read(url: str, body: bytes, declared_type: str) -> tuple[str, str]:
    """The format and text of the page, read here so that an unreadable or empty page does not replace the last one."""
    if not body.strip():
        raise SourceFailed("The server responded with an empty page.")
    # The extension counts only if the type says nothing: /page.php and /report.pdf can be HTML.
    filename = urlsplit(url).path.rpartition("/")[2]
    if format_by_type(declared_type) is not None or file_extension(filename) not in EXTENSIONS:
        filename = ""
    try:
        format = extract.recognize_format(body, filename, declared_type)
        result = extract.extract(body, format)
        has_text = bool(result.text.strip()) or _has_legible_scan(body, result.scanned_pages)
    except (UnsupportedMediaType, extract.UnreadableFile) as error:
        raise SourceFailed(str(error)) from None
    if not has_text:
        raise SourceFailed("No text was found in the page.")
    return format, result.text


def _has_legible_scan(data: bytes, page_numbers: Iterable[int]) -> bool:
    """Whether OCR finds text. The pages are read again when the document is loaded."""
    deadline = time.monotonic() + SCAN_BUDGET_S
    numbers = takewhile(lambda _: time.monotonic() < deadline, page_numbers)
    try:
        return any(ocr.read_page(data, number) for number in numbers)
    except ocr.OcrUnavailable:
        return False


def _conditions(headers: Mapping[str, str]) -> dict[str, str]:
    values = {name: headers.get(header, "") for header, name in CONDITION_HEADERS.items()}
    return {
        name: value
        for name, value in values.items()
        if value and value.isascii() and value.isprintable() and len(value) <= MAX_CONDITION_LENGTH
    }

"""Web pages: what is loaded, what keeps the last text, and which addresses are never called."""

import gzip
from ipaddress import ip_network
from typing import Any

import pytest

from collections_app.extract import ocr
from collections_app.models import Collection, Document, Source, Version
from collections_app.sources import web_page
from tests.collections_app.extract.pdf_samples import paragraph, scanned_pdf
from tests.collections_app.http.calls import KeyCaller
from tests.collections_app.library import pdf
from tests.collections_app.sources.world import (
    HTML,
    Answer,
    Site,
    add_source,
    html,
    redirect,
    refresh,
    run_due,
    texts,
)
from tests.system.outbound.hostile import FakeResolver, responds_with, serving

pytestmark = pytest.mark.django_db
FORBIDDEN = web_page.FORBIDDEN_ADDRESS


@pytest.fixture
def page(site: Site, manager: KeyCaller, collection: Collection) -> Source:
    """A page that was loaded once."""
    site.answers["/guide"] = html("The toner is red.")
    source = add_source(manager, collection, "page", site.url(), doc_id="guide")
    run_due()
    assert texts(collection) == {"guide": "The toner is red."}
    return source.refreshed()


def test_changed_page_replaces_its_text(page: Source, site: Site, collection: Collection):
    assert (page.state, page.error, page.error_since) == ("ok", "", None)
    site.answers["/guide"] = html("The toner is blue.")
    run_due()  # not due yet
    assert texts(collection) == {"guide": "The toner is red."}
    refresh(page)
    assert texts(collection) == {"guide": "The toner is blue."}
    assert Document.objects.count() == 1


def test_page_with_the_same_text_is_not_loaded_again(page: Source, site: Site):
    site.answers["/guide"] = html("The toner is red.<!-- request 2 -->")
    assert refresh(page).state == "ok"
    assert Version.objects.count() == 1


def test_failed_document_is_loaded_again(page: Source, site: Site):
    site.answers["/guide"] = html("The toner is red.", "200 OK", 'ETag: "1"')
    refresh(page)
    Version.objects.update(state="failed")
    assert refresh(page).state == "ok"
    assert "if-none-match" not in site.last_request()
    assert Version.objects.get().state != "failed"


def test_deleted_document_is_loaded_again(page: Source, site: Site, collection: Collection, manager: KeyCaller):
    site.answers["/guide"] = html("The toner is red.", "200 OK", 'ETag: "1"')
    refresh(page)
    manager.delete(f"/api/collections/{collection.pk}/documents/{Document.objects.get().pk}")
    assert texts(collection) == {}
    refresh(page)
    assert "if-none-match" not in site.last_request()
    assert texts(collection) == {"guide": "The toner is red."}


def test_conditional_request_is_answered_without_a_body(page: Source, site: Site, collection: Collection):
    date = "Wed, 04 Nov 2026 10:00:00 GMT"
    site.answers["/guide"] = html("The toner is red.", "200 OK", 'ETag: W/"v1"', f"Last-Modified: {date}")
    refresh(page)
    site.answers["/guide"] = responds_with(b"", "304 Not Modified")
    assert refresh(page).state == "ok"
    assert (
        'if-none-match: w/"v1"' in site.last_request() and f"if-modified-since: {date.lower()}" in site.last_request()
    )
    assert texts(collection) == {"guide": "The toner is red."}


def test_unrequested_304_is_an_error(page: Source, site: Site):
    site.answers["/guide"] = responds_with(b"", "304 Not Modified")
    assert refresh(page).state == "failing"


def test_header_that_cannot_be_sent_back_is_ignored(page: Source, site: Site):
    site.answers["/guide"] = html("The toner is red.", "200 OK", "ETag: \xe9")
    assert refresh(page).conditions == {}
    assert refresh(page).state == "ok"


FAULTS: dict[str, tuple[Answer, str]] = {
    "error": (html("Sorry", "500 Internal Server Error"), "The server responded with 500."),
    "missing": (html("Not here", "404 Not Found"), "The server responded with 404."),
    "nothing": (responds_with(b"", "204 No Content"), "The server responded with 204."),
    "empty": (responds_with(b" \n", "200 OK", HTML), "The server responded with an empty page."),
    "no text": (html("<script>render()</script>"), "No text was found in the page."),
    "image": (responds_with(b"\x89PNG\r\n\x1a\n" + bytes(90), "200 OK", "Content-Type: image/png"), "The content is"),
    "wrong type": (responds_with(b"%PDF-1.7", "200 OK", HTML), "The file is declared as HTML, but"),
    "damaged": (responds_with(b"%PDF-1.7", "200 OK", "Content-Type: application/pdf"), ""),
    "compressed": (responds_with(gzip.compress(b"x"), "200 OK", "Content-Encoding: gzip"), "compressed response"),
    "endless redirect": (redirect("/guide"), "The page has more than 5 redirects."),
    "redirect nowhere": (redirect(""), "redirect"),
    "not HTTP": (lambda connection: connection.send(b"SSH-2.0-OpenSSH\r\n"), "did not send a valid HTTP response"),
    "huge": (responds_with(b"<html>" + b"a" * 1_200_000, "200 OK", HTML), "The response is larger than 1024 KB."),
    "endless": (lambda connection: _send_endlessly(connection), "The response is larger than 1024 KB."),
    "slow": (lambda connection: connection.drip(b"HTTP/1.1 200 OK\r\nX: x"[:1]), "respond within 0.4 s"),
}  # fmt: skip


def _send_endlessly(connection: Any) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    for _ in range(100):
        connection.send(b"<p>more</p>" * 10_000)


@pytest.mark.parametrize("fault", FAULTS)
def test_failing_page_keeps_its_text_and_says_since_when(
    page: Source, site: Site, collection: Collection, settings: Any, fault: str
):
    settings.COLLECTIONS = {**settings.COLLECTIONS, "file_limit": 1024 * 1024}
    settings.WEB_PAGE_POLICY["total_s"] = 0.4 if fault == "slow" else 5.0
    site.answers["/guide"], message = FAULTS[fault]
    failed = refresh(page)
    assert failed.state == "failing" and message in failed.error, failed.error
    since = failed.error_since
    assert since is not None and failed.succeeded_at == page.succeeded_at
    assert refresh(page).error_since == since
    assert texts(collection) == {"guide": "The toner is red."} and Version.objects.count() == 1
    site.answers["/guide"] = html("The toner is back.")
    recovered = refresh(page)
    assert (recovered.error, recovered.error_since) == ("", None)
    assert texts(collection) == {"guide": "The toner is back."}


@pytest.mark.parametrize(
    ("path", "content_type", "body", "text"),
    [
        ("/report.pdf", "application/pdf", pdf("Annual figures"), "Annual figures"),
        ("/download.php", "application/pdf", pdf("Annual figures"), "Annual figures"),
        ("/notes.md", "text/plain", b"# Notes\n\nA *short* one.", "Notes\n\nA *short* one."),
        ("/report.pdf", "text/html", b"<html><p>Sign in</p></html>", "Sign in"),
        ("/plain", "text/plain", b"Just words.", "Just words."),
        ("/table?format=1", "text/csv", b"a,b\n1,2\n", "a"),
    ],
)
def test_type_decides_the_format(
    site: Site, manager: KeyCaller, collection: Collection, path: str, content_type: str, body: bytes, text: str
):
    site.answers[path] = responds_with(body, "200 OK", f"Content-Type: {content_type}")
    source = add_source(manager, collection, "page", site.url(path))
    run_due()
    assert not source.refreshed().error
    (loaded_text,) = texts(collection).values()
    assert text.replace("Notes", "") in loaded_text.replace("# Notes", "")


TURKISH = "“Müdür” değişti, toner geçti."


@pytest.mark.parametrize(
    ("content_type", "encoding", "is_read"),
    [
        ("text/html; charset=ISO-8859-9", "cp1254", True),
        ('text/plain; charset="windows-1254"', "cp1254", True),
        ("text/html; charset=iso-8859-5", "utf-8", True),
        ("text/html; charset=none", "cp1254", False),
        ("text/html; charset=punycode", "cp1254", False),
        ("text/html; charset=hex", "cp1254", False),
    ],
)
def test_encoding_that_the_header_declares_is_used(
    site: Site, manager: KeyCaller, collection: Collection, content_type: str, encoding: str, is_read: bool
):
    start = "<!doctype html><p>" if "html" in content_type else ""
    site.answers["/guide"] = responds_with(
        f"{start}{TURKISH}".encode(encoding), "200 OK", f"Content-Type: {content_type}"
    )
    source = add_source(manager, collection, "page", site.url(), doc_id="guide")
    run_due()
    assert (texts(collection)["guide"] == TURKISH) == is_read
    assert refresh(source).state == "ok" and Version.objects.count() == 1


@pytest.mark.parametrize("has_ocr", [True, False])
def test_scan_is_loaded_if_ocr_can_read_it(
    site: Site, manager: KeyCaller, collection: Collection, monkeypatch: pytest.MonkeyPatch, has_ocr: bool
):
    read_pages = []

    def read_page(data: bytes, number: int) -> str:
        if not has_ocr:
            raise ocr.OcrUnavailable
        read_pages.append(number)
        return "Words of the scan."

    monkeypatch.setattr(ocr, "is_available", lambda: has_ocr)
    monkeypatch.setattr(ocr, "read_page", read_page)
    scan = scanned_pdf([paragraph("One")], resolution=20)
    site.answers["/scan"] = responds_with(scan, "200 OK", "Content-Type: application/pdf")
    source = add_source(manager, collection, "page", site.url("/scan"), doc_id="scan")
    run_due()
    assert texts(collection) == ({"scan": "Words of the scan."} if has_ocr else {})
    refreshed = refresh(source)  # the same bytes are not read again
    assert refreshed.error == ("" if has_ocr else "No text was found in the page.")
    assert Version.objects.count() == has_ocr and len(read_pages) == 2 * has_ocr


def test_scan_without_legible_text_keeps_the_last_text(
    page: Source, site: Site, collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ocr, "is_available", lambda: True)
    monkeypatch.setattr(ocr, "read_page", lambda data, number: "" if number < 4 else None)
    scan = scanned_pdf([paragraph(word) for word in ("One", "Two", "Three", "Four")], resolution=20)
    site.answers["/guide"] = responds_with(scan, "200 OK", "Content-Type: application/pdf")
    assert refresh(page).error == "No text was found in the page."
    assert texts(collection) == {"guide": "The toner is red."}


def test_redirects_are_followed(site: Site, manager: KeyCaller, collection: Collection):
    site.answers["/old"] = redirect("/M\xfcll#part")
    site.answers["/M%C3%BCll"] = redirect(site.url("/new", host="docs.example.com"))
    site.answers["/new"] = html("Moved here.")
    add_source(manager, collection, "page", site.url("/old"), doc_id="guide")
    run_due()
    assert texts(collection) == {"guide": "Moved here."}


REDIRECTS = {
    "private address": ("http://10.0.0.5/", FORBIDDEN),
    "metadata": ("http://169.254.169.254/latest/meta-data/", FORBIDDEN),
    "metadata in IPv6": ("http://[::ffff:a9fe:a9fe]/", FORBIDDEN),
    "other loopback": ("http://[::1]:{port}/secret", FORBIDDEN),
    "a number": ("http://2130706433:{port}/secret", "Enter a host name"),
    "credentials": ("http://user:secret@127.0.0.1:{port}/secret", "must not contain a user name or password"),
    "file": ("file:///etc/passwd", "must begin with"),
    "public address with http": ("http://93.184.216.34/", "must be called with https://"),
    "invalid": ("http://[::1/", "redirect to an invalid address"),
}


@pytest.mark.parametrize("target", REDIRECTS)
def test_redirects_to_other_networks_are_refused(page: Source, site: Site, collection: Collection, target: str):
    location, message = REDIRECTS[target]
    site.answers["/secret"] = html("Internal secret.")
    site.answers["/guide"] = redirect(location.format(port=site.server.port))
    failed = refresh(page)
    assert message in failed.error and "10.0.0.5" not in failed.error and "secret" not in failed.error
    assert not any(b"/secret" in request for request in site.server.requests)
    assert texts(collection) == {"guide": "The toner is red."}


def test_name_that_resolves_to_another_network_is_refused(page: Source, site: Site, settings: Any):
    """Also if its first answer was allowed (DNS rebinding), and without revealing the address."""
    settings.WEB_PAGE_POLICY["resolve"] = FakeResolver(["127.0.0.1"], ["10.1.2.3"])
    site.answers["/guide"] = redirect(site.url("/again", host="rebind.example.com"))
    site.answers["/again"] = redirect(site.url("/more", host="rebind.example.com"))
    assert refresh(page).error == FORBIDDEN
    assert not any(b"/more" in request for request in site.server.requests)


def test_loopback_is_not_called_without_the_setting(
    site: Site, manager: KeyCaller, collection: Collection, settings: Any
):
    settings.WEB_PAGE_POLICY = {"allow_private": False, "private_networks": (), "resolve": FakeResolver(["127.0.0.1"])}
    with serving(html("Internal secret.")) as server:
        add_source(manager, collection, "page", f"https://docs.example.com:{server.port}/")
        run_due()
        assert Source.objects.get().error == FORBIDDEN and server.connection_count == 0
    assert texts(collection) == {}


def test_listed_networks_never_include_metadata_services(page: Source, site: Site, settings: Any):
    settings.WEB_PAGE_POLICY["private_networks"] = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    site.answers["/guide"] = redirect("http://169.254.169.254/")
    assert refresh(page).error == FORBIDDEN


def test_request_has_no_credentials(page: Source, site: Site):
    request = site.last_request()
    assert "authorization" not in request and "cookie" not in request and "accept: text/html" in request


def test_replaced_document_keeps_its_metadata(page: Source, site: Site, manager: KeyCaller, collection: Collection):
    document = Document.objects.get()
    manager.patch(f"/api/collections/{collection.pk}/documents/{document.pk}", {"metadata": {"type": "manual"}})
    site.answers["/guide"] = html("The toner is blue.")
    refresh(page)
    assert Document.objects.select_related("newest").get().displayed_version().metadata == {"type": "manual"}

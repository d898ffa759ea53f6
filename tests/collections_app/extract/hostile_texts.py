"""CSV, e-mail, RTF, HTML, Markdown and text. Adds them to `hostile.TEXTS`."""

from functools import partial
from typing import Any

from tests.collections_app.extract.hostile import TEXTS, add, case

MB = 1024 * 1024
QUICK: dict[str, Any] = {"cpu_s": 3}
ANY = "text|damaged|limit_.*"
XHTML = (
    b'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY l "%b">]>'
    b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>kept &x;&l;&l;</p>%b</body></html>'
)


def text(format: str, name: str, content: bytes, outcome: str = ANY, **limits: Any) -> None:
    add(TEXTS, format, name, partial(bytes, content), outcome, **limits)


text("csv", "one line of 3 million characters", b"a" * 3_000_000, "limit_characters", max_characters=MB)
text("csv", "a quote that never ends", b'name;city\n"' + b"x;y\n" * 200_000, "text|damaged")
text("csv", "more cells than allowed", b"1,2,3\n" * 50_000, "limit_cells", max_cells=100_000)
text("csv", "quotes for the sniffer", b'"' * 20_000 + b",'" * 5_000, **QUICK)
text("csv", "commas", b"," * 2 * MB, **QUICK)
text("csv", "NUL", b"name,city\nAnn\0,Riga\n", "text")
text("csv", "lines that end in all ways", b"a,b\r1,2\r\n3,4\n\r\r5,6\x0b7,8", "text")
text("eml", "parts in parts, 1000 deep", b"".join(
    b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(1000)) + b"\nkept")  # fmt: skip
text("eml", "10000 parts", b'Subject: kept\nContent-Type: multipart/mixed; boundary="b"\n\n' + b"--b\n\nx\n" * 10_000,
     **QUICK)  # fmt: skip
text("eml", "a header of 3 MB", b"Subject: " + b"x " * 1_500_000 + b"\n\nkept", **QUICK)
text(
    "eml",
    "encoded words",
    b"Subject: " + b"=?utf-8?q?=41?= " * 30_000 + b"\nFrom: " + b"<" * 20_000 + b"\n\nkept",
    **QUICK,
)
text("eml", "addresses", b"To: " + b"a@b.example, " * 30_000 + b"\nSubject: kept\n\nkept", **QUICK)
text("eml", "comments in an address", b"From: " + b"(" * 50_000 + b"\nSubject: kept\n\nkept", **QUICK)
text("eml", "an encoding that nobody knows", b"Subject: kept\nContent-Type: text/plain; charset=x-no\n"
     b"Content-Transfer-Encoding: x-uuencode\n\nbegin 644 /etc/passwd\nkept\nend\n", "text")  # fmt: skip
text("eml", "no end of mails in mails", b"Subject: kept\nContent-Type: message/rfc822\n\n" * 2000 + b"kept")
text("eml", "an attachment by an evil name", b"Subject: kept\nContent-Type: text/plain\n"
     b'Content-Disposition: attachment; filename="../../etc/passwd"\n\nkept', "text")  # fmt: skip
text("rtf", "groups 300000 deep", b"{\\rtf1 kept" + b"{" * 300_000, **QUICK)
text("rtf", "groups that only close", b"{\\rtf1 kept" + b"}" * 300_000, **QUICK)
text(
    "rtf", "numbers beyond Unicode", b"{\\rtf1 kept \\u99999999999? \\u-55296? \\u55357? \\'zz \\bin99999999 x}", "text"
)
text("rtf", "fonts without end", b"{\\rtf1{\\fonttbl" + b"{\\f99999\\fcharset255 x;}" * 50_000 + b"}kept}", **QUICK)
text("rtf", "a page of code that is none", b"{\\rtf1\\ansi\\ansicpg99999 kept \\'e9}", "text")
text("html", "100000 elements deep", b"<html><body>" + b"<div>" * 100_000 + b"kept", **QUICK)
text("html", "100000 that are never closed", b"<html><body>" + b"<b><i>kept" * 100_000, **QUICK)
text("html", "an attribute of 5 MB", b'<html><body><p title="' + b"x" * 5 * MB + b'">kept</p>', **QUICK)
text("html", "tables in tables", b"<html><body>" + b"<table><tr><td>kept" * 2_000, **QUICK)
text("html", "entities of a file in XHTML", XHTML % (b"lol" * 1000, b"<p>kept</p>" * 30), "text|damaged")
text("html", "SVG with entities", XHTML % (b"", b'<svg><text>&x;</text><image href="file:///etc/passwd"/></svg>'),
     "text|damaged")  # fmt: skip
text("html", "an include", b'<html xmlns:xi="http://www.w3.org/2001/XInclude"><body><p>kept</p><xi:include '
     b'href="file:///etc/passwd" parse="text"/><iframe src="file:///etc/passwd"></iframe>', "text")  # fmt: skip
text("html", "script alone", b"<html><head><script>" + b"root:x()" * 200_000 + b"</script></head></html>", "text")
text("html", "an encoding that lies", b"<html><meta charset=utf-16><body><p>kept \xe4\xf6\xfc", "text")
text("html", "NUL everywhere", b"<html><body>" + b"<p>\0k\0e\0p\0t\0</p>" * 5, "text|damaged")
text("markdown", "100000 headings", b"".join(b"# heading %d\n\ntext\n\n" % n for n in range(100_000)), "text")
text("markdown", "brackets", b"# " + b"[" * MB + b"\n# " + b"![](" * 200_000, "text")
text("markdown", "stars", b"# kept" + b"*" * MB + b" _" * MB, "text")
text("markdown", "dashes", b"x\n" + b"-" * MB + b"\n" + b"---\n" * 200_000, "text")
text("markdown", "hashes", (b"#" * 6 + b" " + b"# " * 1000 + b"\n") * 500, "text")
text(
    "text",
    "NUL and halves of pairs",
    b"\xff\xfe" + f"{'kept ' * 50}\0 \ud800 \udc00".encode("utf-16-le", "surrogatepass"),
    "text",
)
text("text", "what looks like UTF-16", bytes(range(256)) * 40, "damaged")
text("text", "one line of 2 million characters", b"x" * 2_000_000, "limit_characters", max_characters=MB)
text("text", "marks of order alone", b"\xff\xfe\x00\x00" * 3, "text|damaged")


@case(TEXTS, "text", "text|damaged|limit_.*", **QUICK)
def every_byte_that_is_no_ascii() -> bytes:
    return bytes(range(128, 256)) * 20_000

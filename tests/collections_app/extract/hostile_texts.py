"""Adds CSV, email, RTF, HTML, Markdown, reStructuredText, notebook and text files to `hostile.TEXTS`."""

from functools import partial
from typing import Any

from tests.collections_app.extract.hostile import TEXTS, add_file, hostile_file

MB = 1024 * 1024
SHORT_CPU_LIMIT: dict[str, Any] = {"cpu_s": 3}
ANY_OUTCOME = "text|damaged|limit_.*"
XHTML = (
    b'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY l "%b">]>'
    b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>kept &x;&l;&l;</p>%b</body></html>'
)


def add_text(format: str, name: str, content: bytes, outcome: str = ANY_OUTCOME, **limits: Any) -> None:
    add_file(TEXTS, format, name, partial(bytes, content), outcome, **limits)


add_text("csv", "one line of 3 million characters", b"a" * 3_000_000, "limit_characters", max_characters=MB)
add_text("csv", "an unclosed quote", b'name;city\n"' + b"x;y\n" * 200_000, "text|damaged")
add_text("csv", "more cells than allowed", b"1,2,3\n" * 50_000, "limit_cells", max_cells=100_000)
add_text("csv", "quotes for the sniffer", b'"' * 20_000 + b",'" * 5_000, **SHORT_CPU_LIMIT)
add_text("csv", "commas", b"," * 2 * MB, **SHORT_CPU_LIMIT)
add_text("csv", "NUL", b"name,city\nAnn\0,Riga\n", "text")
add_text("csv", "every kind of line ending", b"a,b\r1,2\r\n3,4\n\r\r5,6\x0b7,8", "text")
add_text("eml", "parts 1000 deep", b"".join(
    b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (i, i) for i in range(1000)) + b"\nkept")  # fmt: skip
add_text("eml", "10000 parts",
     b'Subject: kept\nContent-Type: multipart/mixed; boundary="b"\n\n' + b"--b\n\nx\n" * 10_000,
     **SHORT_CPU_LIMIT)  # fmt: skip
add_text("eml", "a header of 3 MB", b"Subject: " + b"x " * 1_500_000 + b"\n\nkept", **SHORT_CPU_LIMIT)
add_text(
    "eml",
    "encoded words",
    b"Subject: " + b"=?utf-8?q?=41?= " * 30_000 + b"\nFrom: " + b"<" * 20_000 + b"\n\nkept",
    **SHORT_CPU_LIMIT,
)
add_text("eml", "addresses", b"To: " + b"a@b.example, " * 30_000 + b"\nSubject: kept\n\nkept", **SHORT_CPU_LIMIT)
add_text("eml", "comments in an address", b"From: " + b"(" * 50_000 + b"\nSubject: kept\n\nkept", **SHORT_CPU_LIMIT)
add_text("eml", "unknown encoding", b"Subject: kept\nContent-Type: text/plain; charset=x-no\n"
     b"Content-Transfer-Encoding: x-uuencode\n\nbegin 644 /etc/passwd\nkept\nend\n", "text")  # fmt: skip
add_text("eml", "emails 2000 deep", b"Subject: kept\nContent-Type: message/rfc822\n\n" * 2000 + b"kept")
add_text("eml", "an attachment with a path as its name", b"Subject: kept\nContent-Type: text/plain\n"
     b'Content-Disposition: attachment; filename="../../etc/passwd"\n\nkept', "text")  # fmt: skip
add_text("rtf", "groups 300000 deep", b"{\\rtf1 kept" + b"{" * 300_000, **SHORT_CPU_LIMIT)
add_text("rtf", "groups that only close", b"{\\rtf1 kept" + b"}" * 300_000, **SHORT_CPU_LIMIT)
add_text(
    "rtf", "numbers beyond Unicode", b"{\\rtf1 kept \\u99999999999? \\u-55296? \\u55357? \\'zz \\bin99999999 x}", "text"
)
add_text(
    "rtf",
    "50000 fonts",
    b"{\\rtf1{\\fonttbl" + b"{\\f99999\\fcharset255 x;}" * 50_000 + b"}kept}",
    **SHORT_CPU_LIMIT,
)
add_text("rtf", "an unknown code page", b"{\\rtf1\\ansi\\ansicpg99999 kept \\'e9}", "text")
add_text("html", "100000 elements deep", b"<html><body>" + b"<div>" * 100_000 + b"kept", **SHORT_CPU_LIMIT)
add_text("html", "100000 unclosed elements", b"<html><body>" + b"<b><i>kept" * 100_000, **SHORT_CPU_LIMIT)
add_text("html", "an attribute of 5 MB", b'<html><body><p title="' + b"x" * 5 * MB + b'">kept</p>', **SHORT_CPU_LIMIT)
add_text("html", "tables in tables", b"<html><body>" + b"<table><tr><td>kept" * 2_000, **SHORT_CPU_LIMIT)
add_text("html", "external entities in XHTML", XHTML % (b"lol" * 1000, b"<p>kept</p>" * 30), "text|damaged")
add_text("html", "SVG with entities", XHTML % (b"", b'<svg><text>&x;</text><image href="file:///etc/passwd"/></svg>'),
     "text|damaged")  # fmt: skip
add_text("html", "an include", b'<html xmlns:xi="http://www.w3.org/2001/XInclude"><body><p>kept</p><xi:include '
     b'href="file:///etc/passwd" parse="text"/><iframe src="file:///etc/passwd"></iframe>', "text")  # fmt: skip
add_text("html", "only a script", b"<html><head><script>" + b"root:x()" * 200_000 + b"</script></head></html>", "text")
add_text("html", "wrong encoding", b"<html><meta charset=utf-16><body><p>kept \xe4\xf6\xfc", "text")
add_text("html", "NUL everywhere", b"<html><body>" + b"<p>\0k\0e\0p\0t\0</p>" * 5, "text|damaged")
add_text(
    "markdown", "100000 headings", b"".join(b"# heading %d\n\ntext\n\n" % number for number in range(100_000)), "text"
)
add_text("markdown", "brackets", b"# " + b"[" * MB + b"\n# " + b"![](" * 200_000, "text")
add_text("markdown", "stars", b"# kept" + b"*" * MB + b" _" * MB, "text")
add_text("markdown", "dashes", b"x\n" + b"-" * MB + b"\n" + b"---\n" * 200_000, "text")
add_text("markdown", "hashes", (b"#" * 6 + b" " + b"# " * 1000 + b"\n") * 500, "text")
add_text("rst", "adornments", b"".join(b"x%d\n%b\n" % (i, b"=-~^"[i % 4 : i % 4 + 1] * 9) for i in range(50_000)),
         "text", **SHORT_CPU_LIMIT)  # fmt: skip
add_text("rst", "long lines of roles", (b":a.b:" * 200_000 + b"\n" + b"=" * MB + b"\n") * 3, "text", **SHORT_CPU_LIMIT)
add_text("ipynb", "arrays 100000 deep", b"[" * 100_000, "damaged")
add_text("ipynb", "a heading of a high level", b'{"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "heading", '
         b'"level": 9999999999, "source": "kept"}]}]}', "text")  # fmt: skip
for number, notebook in enumerate((b"[]", b"{}", b'{"nbformat": 4, "cells": 5}', b'{"nbformat": 4, "cells": [[]]}',
         b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1], "outputs": {}}]}', b"nothing")):  # fmt: skip
    add_text("ipynb", f"another structure, {number}", notebook, "damaged")
add_text("csv", "a table with many columns and few cells", b"\n".join(b"," * (i % 999) + b"x" for i in range(9_999)),
         ANY_OUTCOME, **SHORT_CPU_LIMIT)  # fmt: skip
add_text("html", "rows of tables that never end", b"<html>" + b"<table><tr><th>kept<td>" * 20_000, **SHORT_CPU_LIMIT)
add_text(
    "text",
    "NUL and unpaired surrogates",
    b"\xff\xfe" + f"{'kept ' * 50}\0 \ud800 \udc00".encode("utf-16-le", "surrogatepass"),
    "text",
)
add_text("text", "bytes that look like UTF-16", bytes(range(256)) * 40, "damaged")
add_text("text", "one line of 2 million characters", b"x" * 2_000_000, "limit_characters", max_characters=MB)
add_text("text", "only byte order marks", b"\xff\xfe\x00\x00" * 3, "text|damaged")


@hostile_file(TEXTS, "text", "text|damaged|limit_.*", **SHORT_CPU_LIMIT)
def all_non_ascii_bytes() -> bytes:
    return bytes(range(128, 256)) * 20_000

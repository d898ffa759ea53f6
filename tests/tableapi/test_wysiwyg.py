"""HTML that users write: scripts are removed, formatting is kept, and plain text is stored with it."""

import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tableapi.catalogue import html as wysiwyg
from tableapi.catalogue.html import (
    ALLOWED_STYLES,
    ALLOWED_URL_SCHEMES,
    HtmlTooComplex,
    extract_plain_text,
    sanitize_html,
)

PICTURE_HTML = '<img src="data:image/png;base64,iVBORw0KGgo=">'

ALLOWED_HTML = [
    "<p>one <b>two</b> <i>three</i> <u>four</u> <s>five</s></p>",
    "<h1>head</h1><ul><li>a</li></ul><ol><li>b</li></ol><blockquote>q</blockquote><pre>x  y\n z</pre>",
    '<table><tbody><tr><td colspan="2">a</td><th scope="row">b</th></tr></tbody></table>',
    '<a href="https://example.com/?a=1&amp;b=2" rel="noopener noreferrer">link</a>',
    '<a href="mailto:a@example.com" rel="noopener noreferrer">mail</a>',
    '<a href="/rest/" rel="noopener noreferrer">here</a>',
    '<img alt="a" src="https://example.com/a.png">',
    '<img src="/a.png">',
    PICTURE_HTML,
    '<span style="color:red;text-align:center">x</span>',
    '<p title="a &lt;b&gt; c">x</p>',
    '<a href="/?q=&lt;b&gt;" rel="noopener noreferrer">x</a>',
    "a &amp; b &lt; c",
    "",
]


@pytest.mark.parametrize("html", ALLOWED_HTML)
def test_formatting_is_kept(html: str):
    assert sanitize_html(html) == html


REMOVED_HTML = [  # B72
    ("<script>steal()</script>x", "x"),
    ("<SCRIPT SRC=//evil.example></SCRIPT>x", "x"),
    ("<style>p{}</style><title>t</title>x", "x"),
    ('<p onclick="steal()">x</p>', "<p>x</p>"),
    ("<img src=/a.png onerror=steal()>", '<img src="/a.png">'),
    ('<a href="javascript:steal()">x</a>', '<a rel="noopener noreferrer">x</a>'),
    ('<a href=" jAva\tscript:steal()">x</a>', '<a rel="noopener noreferrer">x</a>'),
    ('<a href="java&#10;script:steal()">x</a>', '<a rel="noopener noreferrer">x</a>'),
    ('<a href="vbscript:x">x</a>', '<a rel="noopener noreferrer">x</a>'),
    ('<a href="data:text/html,x">x</a>', '<a rel="noopener noreferrer">x</a>'),
    ('<a href=" d&#9;ata:text/html,x">x</a>', '<a rel="noopener noreferrer">x</a>'),
    (PICTURE_HTML.replace("img src", "a href"), '<a rel="noopener noreferrer"></a>'),
    ('<img src="data:image/svg+xml;base64,AAAA">', "<img>"),
    ('<img src="data:image/png;base64,AAAA\n,x">', "<img>"),
    ('<blockquote cite="data:image/png;base64,AAAA">x</blockquote>', "<blockquote>x</blockquote>"),
    ('<a href="/" rel="opener" target="_top">x</a>', '<a href="/" rel="noopener noreferrer">x</a>'),
    ('<p style="position:fixed;background:url(//evil.example);color:red">x</p>', '<p style="color:red">x</p>'),
    ('<p id="user" name="user" class="x">x</p>', "<p>x</p>"),
    ("<iframe src=/></iframe><object></object><embed><form><input><button>x</button></form>", "x"),
    ("<svg><a href=javascript:steal()>x</a></svg><math><mi>y</mi></math>", ""),
    ("<!-- c --><!DOCTYPE html><?xml x?><![endif]-->x", "x"),
    ("<!--[if mso]><b>a</b><![endif]-->x", "x"),
    ("<noscript><p title='</noscript><img src=x onerror=steal()>'></noscript>", None),
    ("<math><mtext><table><mglyph><style><img src=x onerror=steal()>", None),
    ("<svg></p><style><a title='</style><img src=x onerror=steal()>'>", None),
    ("<form><math><mtext></form><form><mglyph><style></math><img src onerror=steal()>", None),
]


@pytest.mark.parametrize(("html", "expected"), REMOVED_HTML)
def test_executable_content_is_removed(html: str, expected: str | None):
    sanitized = sanitize_html(html)

    check_no_executable_content(sanitized)
    assert expected is None or sanitized == expected


class ExecutableContentChecker(HTMLParser):
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in (
            "script",
            "style",
            "iframe",
            "object",
            "embed",
            "svg",
            "math",
            "base",
            "form",
            "meta",
            "link",
        )
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("srcset", "id", "name", "target")
            if name in ("href", "src", "cite"):
                scheme = re.match(r"\s*([a-z][a-z0-9+.-]*):", re.sub(r"[\x00-\x20]", "", value or ""), re.I)
                assert not scheme or scheme[1].lower() in ALLOWED_URL_SCHEMES
                assert scheme is None or scheme[1].lower() != "data" or (tag, name) == ("img", "src")
            if name == "style":
                properties = {declaration.partition(":")[0].strip() for declaration in (value or "").split(";")}
                assert properties - {""} <= ALLOWED_STYLES


def check_no_executable_content(html: str) -> None:
    assert "<script" not in html.lower()
    checker = ExecutableContentChecker()
    checker.feed(html)
    checker.close()


HTML_PIECES = [
    "<b>", "</b>", "<p>", "</p>", "<p title='", "'>", '">', "<a href=", '"java\nscript:x"', "javascript:x",
    "data:text/html,x",
    "<table>", "<tr>", "<td>", "</table>", "<svg>", "<math>", "<mtext>", "<style>", "</style>", "<script>", "</script>",
    "<!--", "-->", "<![CDATA[", "]]>", "<textarea>", "</textarea>", "<xmp>", "<noscript>", "<template>",
    "<pre>\n", "</pre>",
    "<img src=x onerror=x>", "onclick=", "<", ">", "/", "=", "'", '"', "&", "&lt;", "&#x3c;", "&nbsp;", "<br>", "</br>",
    "\n", " ", "\r", "\x0b", "x", "é", "<select>", "<option>", "<h1>", "<a>", "</a>", "<i style='color:red;x:y'>",
    "<li>", "<form>", "<foreignObject>", "<b title='a&lt;b'>", "<plaintext>", "</svg>", "</math>", "<details open>",
]  # fmt: skip
MARKUP_STRATEGY = st.lists(st.sampled_from(HTML_PIECES) | st.text(max_size=5), max_size=40).map("".join)


@settings(deadline=None, max_examples=400, database=None)
@given(MARKUP_STRATEGY)
def test_sanitising_is_safe_and_idempotent(html: str):
    html = html.encode("utf-8", "ignore").decode()
    sanitized = sanitize_html(html)

    check_no_executable_content(sanitized)
    assert sanitize_html(sanitized) == sanitized
    assert not re.search(r"<[a-zA-Z/]", extract_plain_text(re.sub("&lt;", "", sanitized)))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("one\ntwo\r\n\r\nthree", "one<br>two<br><br>three"),
        ("1 < 2 & x <y", "1 &lt; 2 &amp; x &lt;y"),
        ("<p>one\ntwo</p>", "<p>one\ntwo</p>"),
    ],
)
def test_text_without_a_tag_keeps_its_lines_and_characters(text: str, html: str):
    assert sanitize_html(text) == html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<div><div>one</div></div>two", "one\ntwo"),
        ("one<br>two<br><br><br><br>three", "one\ntwo\n\nthree"),
        ("<ul><li>one</li><li><p>two</p></li></ul>", "one\ntwo"),
        ("<table><tbody><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></tbody></table>", "a b\nc"),
        ("<pre>a  b\n  c</pre>", "a b\nc"),
        ("  a \n\t b&nbsp;&nbsp;c ", "a b c"),
        ("in<b>s</b>ide &lt;b&gt; &amp;amp; &eacute;", "inside <b> &amp; é"),
        ('<img alt="x" src="/a.png"><hr>', ""),
        ("", ""),
    ],
)
def test_plain_text_is_extracted(html: str, text: str):
    assert extract_plain_text(html) == text


@settings(deadline=None, max_examples=200, database=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="&")))
def test_plain_text_round_trips(text: str):
    assert extract_plain_text(sanitize_html(text)) == " ".join(text.split())


EXPENSIVE_HTML = {
    "unclosed tags": "<div>" * 100_000,
    "nested lists": "<ul><li>" * 50_000,
    "formatting that is repeated": "<p>" + "".join(f"<b title={i}>" for i in range(2_000)) + "x" + "<p>x" * 2_000,
    "one long attribute that is repeated": f"<p><b title='{'x' * 500_000}'>x" + "<p>x" * 10_000,
    "closed in a comment only": "<div><!--</div>-->" * 50_000,
    "closed in an attribute only": "<div title='></div>'>" * 50_000,
    "closed outside its scope": "<div><table></div></table>" * 10_000,
    "tags": "<br>" * 1_000_000,
    "lines": "\n" * 1_000_000,
    "ampersands": "&" * 1_000_000,
}
LONG_HTML = {
    "text": "x" * 5_000_000,
    "attributes": "<b" + "".join(f" a{i}" for i in range(200_000)) + ">",
    "comments": "<!--" * 500_000,
    "quotes": "<b a='" * 40_000,
    "a picture": PICTURE_HTML.replace("iVBORw0KGgo=", "A" * 4_000_000),
    "a large table": "<table>" + ("<tr>" + "<td style='color:red'>x</td>" * 10 + "</tr>") * 1_000 + "</table>",
}


@pytest.mark.parametrize("html", EXPENSIVE_HTML.values(), ids=EXPENSIVE_HTML.keys())
def test_expensive_input_is_refused_early(html: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wysiwyg, "CLEANER", SimpleNamespace(clean=lambda _: pytest.fail("sanitizing began")))
    with pytest.raises(HtmlTooComplex):
        sanitize_html(html)


@pytest.mark.parametrize("html", LONG_HTML.values(), ids=LONG_HTML.keys())
def test_long_input_is_accepted(html: str):
    """In quadratic time, each of these would take minutes."""
    sanitized = sanitize_html(html)
    assert sanitize_html(sanitized) == sanitized

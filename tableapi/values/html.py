"""In charge of HTML that people write: what of it is kept, and the plain text that stands beside it."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import nh3

# "scripts and event handlers go, formatting stays".
TAGS = nh3.ALLOWED_TAGS - {"area", "map"} | {"section", "tfoot"}
# No id and no name: on the page that shows it they would take the place of what the page's own scripts look for.
ATTRIBUTES = {
    "*": {"dir", "lang", "style", "title"},
    "a": {"href", "hreflang"},
    "blockquote": {"cite"},
    "col": {"align", "span"},
    "colgroup": {"align", "span"},
    "img": {"align", "alt", "height", "src", "width"},
    "ol": {"start"},
    "table": {"align", "summary"},
    "td": {"align", "colspan", "headers", "rowspan"},
    "th": {"align", "colspan", "headers", "rowspan", "scope"},
    "time": {"datetime"},
    "tr": {"align"},
}
# What editors write for the buttons of their bars; none of them loads anything or moves an element over the page.
STYLES = frozenset({"background-color", "color", "font-style", "font-weight", "text-align", "text-decoration"})
SCHEMES = frozenset({"http", "https", "mailto", "tel", "data"})
ADDRESSES = frozenset({"cite", "href", "src"})
# Pictures pasted into an editor. Not SVG, which is a document with scripts.
PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")

NAMES_OF_BLOCKS = """
    article aside blockquote caption center dd details div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header hr
    hgroup li nav ol p pre section summary table tbody tfoot thead tr ul
"""
BLOCKS = frozenset(NAMES_OF_BLOCKS.split())
NAMES_OF_VOID = "area base br col embed hr img input link meta param source track wbr"
VOID = frozenset(NAMES_OF_VOID.split())

# A tag that is not closed is repeated in what follows: measured, 27 KB of `<b a=1><b a=2>…` before as many `<p>` took
# 6 s and 1 GB, 200,000 attributes in one tag 36 s. So the work is bounded before: tags times the weight of all that
# is open. 10,000 cells of a table are half of it; 400 tags may stand in any disorder.
MOST_WORK = 200_000
# Each "&" copies the text around it: 290,000 of them took 7 s.
MOST_COPIED = 20_000_000_000
# Every "<" that the sanitiser will see begins a match, and every match reads there as here: quotes only around values,
# no tag within them, at most 32 attributes. What is no such tag is text. Possessive, so that it cannot be made slow.
MARKUP = re.compile(
    r"""
    (?P<dropped> <!-- (?s:.*?) (?:-->|\Z) | <[!?][^<>]*+> )
    | < (?P<close>/?) (?P<name>[a-zA-Z][a-zA-Z0-9:_-]*+)
        (?P<attributes>
            (?: [ \t\r\n\f]++ [^ \t\r\n\f"'<>/=]++
                (?: [ \t\r\n\f]*+ = [ \t\r\n\f]*+
                    (?: " [^"<]*+ (?: <(?![a-zA-Z/!?]) [^"<]*+ )*+ "
                      | ' [^'<]*+ (?: <(?![a-zA-Z/!?]) [^'<]*+ )*+ '
                      | [^ \t\r\n\f"'<>=`]++ )
                )?+
            ){0,32}+
        )
        [ \t\r\n\f]*+ /? >
    | (?P<stray> [<&] )
    """,
    re.VERBOSE,
)


class TooTangled(ValueError):
    """The HTML would take too long to put in order."""


def sanitised(html: str) -> str:
    """The HTML without what could run, load or cover something. What it gives back, it leaves as it is.

    >>> sanitised('<p onclick="steal()">Hello <b>you</b><script>steal()</script>')
    '<p>Hello <b>you</b></p>'
    >>> sanitised("1 <b:\\nsmoke")
    '1 &lt;b:<br>smoke'
    """
    for _ in range(5):
        cleaned = CLEANER.clean(_Tidied(html).text)
        if cleaned == html:
            return cleaned
        html = cleaned
    # Markup that reads differently each time it is written down is how filters are passed: only its words stay.
    return CLEANER.clean(_Tidied(escape(plain_text(html), quote=False)).text)


class _Tidied:
    """HTML whose every "<" is a tag, in one pass that bounds the work of the sanitiser."""

    def __init__(self, html: str) -> None:
        self.opened: list[tuple[str, int]] = []
        self.weight = self.heaviest = 1
        self.tags = self.markup = self.strays = 0
        self.words = len(html)
        self.text = MARKUP.sub(self._tidy, html)
        if self.strays * self.words > MOST_COPIED:
            raise TooTangled("The HTML has too many characters that are written as &…;.")
        if not self.tags:
            # "accept text": what has no tag at all keeps its lines.
            self.text = re.sub(r"\r\n?|\n", lambda _: self._counted("<br>"), self.text)

    def _counted(self, text: str) -> str:
        self.markup += 1
        if self.markup * self.heaviest > MOST_WORK:
            raise TooTangled("The HTML has too many tags, or too many that are not closed.")
        return text

    def _tidy(self, found: re.Match[str]) -> str:
        if found["dropped"]:
            return ""
        if found["stray"]:
            self.strays += 1
            return self._counted("&lt;" if found["stray"] == "<" else "&")
        self.tags += 1
        self.words -= len(found[0])
        name = found["name"].lower()
        if not found["close"]:
            self._open(name, found["attributes"])
        elif self.opened and self.opened[-1][0] == name:
            # Only a tag that closes the one before it counts as closing: never in favour of the writer.
            self.weight -= self.opened.pop()[1]
        return self._counted(found[0])

    def _open(self, name: str, attributes: str) -> None:
        if name in VOID:
            return
        weight = 1 + len(attributes) // 128 + len(attributes.split()) // 4
        self.opened.append((name, weight))
        self.weight += weight
        self.heaviest = max(self.heaviest, self.weight)


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """What stays of an attribute; the library has refused all other schemes before."""
    if (tag, attribute) == ("img", "src") and PICTURE.fullmatch(value):
        return value
    # Browsers take these characters out of an address before they read its scheme.
    if attribute in ADDRESSES and re.sub(r"[\x00-\x20]", "", value).lower().startswith("data:"):
        return None
    return value


CLEANER = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags={"script", "style", "title"},
    attributes=ATTRIBUTES,
    attribute_filter=_kept,
    url_schemes=SCHEMES,
    link_rel="noopener noreferrer",
    filter_style_properties=STYLES,
)


def plain_text(html: str) -> str:
    """The words of sanitised HTML: blocks and `<br>` begin a line, cells stand apart, white space is one space.

    >>> plain_text("<h1>Printer</h1><p>on&nbsp; fire &amp;<br>smoke</p>")
    'Printer\\non fire &\\nsmoke'
    """
    reader = _PlainText()
    reader.feed(html)
    reader.close()
    lines = "\n".join(" ".join("".join(line).split()) for line in reader.lines)
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


class _PlainText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[list[str]] = [[]]
        self.is_filled = False  # the last line
        self.preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.preformatted += tag == "pre"
        self._part(tag)

    def handle_endtag(self, tag: str) -> None:
        self.preformatted -= tag == "pre"
        self._part(tag)

    def _part(self, tag: str) -> None:
        if tag == "br" or (tag in BLOCKS and self.is_filled):
            self._begin_line()
        elif tag in ("td", "th"):
            self.lines[-1].append(" ")

    def _begin_line(self) -> None:
        self.lines.append([])
        self.is_filled = False

    def handle_data(self, data: str) -> None:
        for number, piece in enumerate(data.split("\n") if self.preformatted else [data]):
            if number:
                self._begin_line()
            self.lines[-1].append(piece)
            self.is_filled = self.is_filled or bool(piece.strip())

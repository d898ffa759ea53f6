"""Sanitizes the HTML of formatted text and extracts its plain text. Pure."""

import re
from html import escape
from html.parser import HTMLParser

import nh3

# "scripts and event handlers go, formatting stays".
ALLOWED_TAGS = nh3.ALLOWED_TAGS - {"area", "map"} | {"section", "tfoot"}
# No id or name: on a page, they would shadow elements that its scripts look up.
ALLOWED_ATTRIBUTES = {
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
# The styles that editor toolbars write. None of them loads a resource or moves an element over the page.
ALLOWED_STYLES = frozenset({"background-color", "color", "font-style", "font-weight", "text-align", "text-decoration"})
ALLOWED_URL_SCHEMES = frozenset({"http", "https", "mailto", "tel", "data"})
URL_ATTRIBUTES = frozenset({"cite", "href", "src"})
# Images pasted into an editor. SVG is excluded because it can contain scripts.
IMAGE_DATA_URL = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")

BLOCK_TAG_NAMES = """
    article aside blockquote caption center dd details div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header hr
    hgroup li nav ol p pre section summary table tbody tfoot thead tr ul
"""
BLOCK_TAGS = frozenset(BLOCK_TAG_NAMES.split())
VOID_TAG_NAMES = "area base br col embed hr img input link meta param source track wbr"
VOID_TAGS = frozenset(VOID_TAG_NAMES.split())

# HTML5 repeats an unclosed formatting tag in every following block. Measured with nh3 alone, 8 KB of
# `<p><b a=1><b a=2>…` and as many `<p>x` take 0.7 s and 130 MB, 64 KB take 45 s and 6.7 GB, so limiting the length of
# the input is not enough. This limits the work: the number of tags times the weight of all open tags. A table of 10,000
# cells needs half of it, and 400 tags can be nested in any way.
MAX_WORK = 200_000
# nh3 copies the surrounding text for each "&": 290,000 of them took 7 s.
MAX_COPIED_CHARACTERS = 20_000_000_000
# Every "<" that reaches the sanitizer starts a match, which nh3 parses in the same way: quotes only around values, no
# tags inside them, at most 32 attributes. Anything else is text. Possessive quantifiers keep matching linear.
MARKUP_PATTERN = re.compile(
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


class HtmlTooComplex(ValueError):
    """The HTML would take too long to sanitize."""


def sanitize_html(html: str) -> str:
    """Keep only the allowed tags, attributes, styles and URLs. Sanitizing the result again does not change it.

    >>> sanitize_html('<p onclick="steal()">Hello <b>you</b><script>steal()</script>')
    '<p>Hello <b>you</b></p>'
    >>> sanitize_html("1 <b:\\nsmoke")
    '1 &lt;b:<br>smoke'
    """
    for _ in range(5):
        cleaned = CLEANER.clean(_TidyHtml(html).text)
        if cleaned == html:
            return cleaned
        html = cleaned
    # Markup that changes each time it is serialized could bypass the filter, so only its plain text is kept.
    return CLEANER.clean(_TidyHtml(escape(extract_plain_text(html), quote=False)).text)


class _TidyHtml:
    """HTML rewritten in one pass: every "<" starts a tag, and the work of the sanitizer is limited."""

    def __init__(self, html: str) -> None:
        self.open_tags: list[tuple[str, int]] = []
        self.weight = self.max_weight = 1
        self.tag_count = self.markup_count = self.stray_count = 0
        self.text_length = len(html)
        self.text = MARKUP_PATTERN.sub(self._tidy, html)
        if self.stray_count * self.text_length > MAX_COPIED_CHARACTERS:
            raise HtmlTooComplex("The HTML contains too many < or & characters outside tags.")
        if not self.tag_count:
            # "accept text": a text without tags keeps its line breaks.
            self.text = re.sub(r"\r\n?|\n", lambda _: self._count_markup("<br>"), self.text)

    def _count_markup(self, text: str) -> str:
        self.markup_count += 1
        if self.markup_count * self.max_weight > MAX_WORK:
            raise HtmlTooComplex("The HTML has too many tags or too many unclosed tags.")
        return text

    def _tidy(self, match: re.Match[str]) -> str:
        if match["dropped"]:
            return ""
        if match["stray"]:
            self.stray_count += 1
            return self._count_markup("&lt;" if match["stray"] == "<" else "&")
        self.tag_count += 1
        self.text_length -= len(match[0])
        name = match["name"].lower()
        if not match["close"]:
            self._open(name, match["attributes"])
        elif self.open_tags and self.open_tags[-1][0] == name:
            # Only a tag that closes the last open one reduces the weight, so the weight is never too low.
            self.weight -= self.open_tags.pop()[1]
        return self._count_markup(match[0])

    def _open(self, name: str, attributes: str) -> None:
        if name in VOID_TAGS:
            return
        weight = 1 + len(attributes) // 128 + len(attributes.split()) // 4
        self.open_tags.append((name, weight))
        self.weight += weight
        self.max_weight = max(self.max_weight, self.weight)


def _safe_value(tag: str, attribute: str, value: str) -> str | None:
    """The attribute's value, or None to remove the attribute. nh3 has already checked the other schemes."""
    if (tag, attribute) == ("img", "src") and IMAGE_DATA_URL.fullmatch(value):
        return value
    # Browsers remove these characters from a URL before they read its scheme.
    if attribute in URL_ATTRIBUTES and re.sub(r"[\x00-\x20]", "", value).lower().startswith("data:"):
        return None
    return value


CLEANER = nh3.Cleaner(
    tags=ALLOWED_TAGS,
    clean_content_tags={"script", "style", "title"},
    attributes=ALLOWED_ATTRIBUTES,
    attribute_filter=_safe_value,
    url_schemes=ALLOWED_URL_SCHEMES,
    link_rel="noopener noreferrer",
    filter_style_properties=ALLOWED_STYLES,
)


def extract_plain_text(html: str) -> str:
    """The text of sanitized HTML: blocks and `<br>` start a line, cells are separated, white space is collapsed.

    >>> extract_plain_text("<h1>Printer</h1><p>on&nbsp; fire &amp;<br>smoke</p>")
    'Printer\\non fire &\\nsmoke'
    """
    reader = _PlainTextParser()
    reader.feed(html)
    reader.close()
    text = "\n".join(" ".join("".join(line).split()) for line in reader.lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


class _PlainTextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[list[str]] = [[]]
        self.last_line_has_text = False
        self.preformatted_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.preformatted_depth += tag == "pre"
        self._separate(tag)

    def handle_endtag(self, tag: str) -> None:
        self.preformatted_depth -= tag == "pre"
        self._separate(tag)

    def _separate(self, tag: str) -> None:
        if tag == "br" or (tag in BLOCK_TAGS and self.last_line_has_text):
            self._begin_line()
        elif tag in ("td", "th"):
            self.lines[-1].append(" ")

    def _begin_line(self) -> None:
        self.lines.append([])
        self.last_line_has_text = False

    def handle_data(self, data: str) -> None:
        for number, piece in enumerate(data.split("\n") if self.preformatted_depth else [data]):
            if number:
                self._begin_line()
            self.lines[-1].append(piece)
            self.last_line_has_text = self.last_line_has_text or bool(piece.strip())

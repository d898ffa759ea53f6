"""Renders the text of passages as HTML: Markdown without raw HTML and images, tables, and highlighted words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from collections_app.search.passages import START_MARK, STOP_MARK

# Per page. The slowest text of this length takes three seconds.
MAX_MARKDOWN_CHARACTERS = 100_000
# A passage with more is shown as plain text: 8 KB can describe a table of 78,000 cells.
MAX_TABLE_CELLS = 2000
MARKDOWN = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
# For the tables that are extracted from other formats, whose cells are plain text.
TABLES_ONLY = MarkdownIt("zero").enable("table")
TABLE = re.compile(r"((?:^\|.*\n?+){2,}+)", re.MULTILINE)
TAGS = {
    "paragraph": "p", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li", "blockquote": "blockquote",
    "em": "em", "strong": "strong", "s": "s", "thead": "thead", "tbody": "tbody", "tr": "tr", "th": "th", "td": "td",
}  # fmt: skip
MARKDOWN_FORMATS = {"markdown", "ipynb"}
# It can scroll, so it needs a name and the focus.
TABLE_HTML = '<div class="passage-table" role="group" aria-label="Table" tabindex="0"><table>{}</table></div>'
# Relative links would lead to pages of this service.
SAFE_LINK = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
# Addresses of links, in which words are not highlighted.
LINK_ADDRESS = re.compile(r"\]\([^)\n]{0,2000}\)|<[a-z]{1,10}:[^>\n]{0,2000}>|^ {0,3}\[[^\]\n]{1,300}\]:.*$", re.M)
TABLE_DELIMITER = re.compile(r"\|[ :|-]*-[ :|-]*$", re.M)
MARKED_PART = re.compile(f"{START_MARK}([^{STOP_MARK}]*){STOP_MARK}?")
MARK_CHARACTERS = {ord(START_MARK): "\ufffd", ord(STOP_MARK): "\ufffd"}


class PassageRenderer:
    """Renders the passages of one page; further ones are shown as plain text, because Markdown can be slow to parse.

    >>> str(PassageRenderer().render("**Red** <b> toner", "markdown", [(12, 17)]))
    '<p><strong>Red</strong> &lt;b&gt; <mark>toner</mark></p>'
    >>> str(PassageRenderer().render("**Red** <b> toner", "text", [(12, 17)]))
    '<p class="plain-text">**Red** &lt;b&gt; <mark>toner</mark></p>'
    """

    def __init__(self) -> None:
        self.remaining_characters = MAX_MARKDOWN_CHARACTERS

    def render(self, text: str, file_format: str, highlights: Iterable[Sequence[int]] = ()) -> str:
        """Returns safe HTML."""
        text = text.translate(MARK_CHARACTERS)
        if file_format in MARKDOWN_FORMATS:
            return self._markdown(text, MARKDOWN, highlights) or _plain_html(_mark(text, highlights))
        parts = TABLE.split(_mark(text, highlights))  # every second part is a table
        return format_html_join(
            "",
            "{}",
            (
                ((number % 2 and self._markdown(part, TABLES_ONLY)) or _plain_html(part.strip("\n")),)
                for number, part in enumerate(parts)
                if part.strip()
            ),
        )

    def _markdown(self, text: str, parser: MarkdownIt, highlights: Iterable[Sequence[int]] = ()) -> str:
        """Returns "" if parsing the text could be too slow."""
        if _table_size(text) > MAX_TABLE_CELLS:
            return ""
        self.remaining_characters -= len(text)
        return _markdown_html(text, parser, highlights) if self.remaining_characters >= 0 else ""


def _plain_html(marked_text: str) -> str:
    return format_html('<p class="plain-text">{}</p>', _with_marks(marked_text))


def _table_size(text: str) -> int:
    """The most cells that a table in the text can have: a short row is filled up to the number of columns."""
    lines = text.split("\n")
    return len(lines) * max(line.count("|") for line in lines)


def _markdown_html(text: str, parser: MarkdownIt, highlights: Iterable[Sequence[int]]) -> str:
    addresses = [match.span() for match in LINK_ADDRESS.finditer(text)]
    visible_highlights = [
        (start, end) for start, end in highlights if not any(start < stop and end > first for first, stop in addresses)
    ]
    return _render(SyntaxTreeNode(parser.parse(_with_table_header(_mark(text, visible_highlights)))))


def _with_table_header(text: str) -> str:
    """Adds an empty header to a passage that begins within a table, whose rows would be plain text without it.

    >>> _with_table_header("| a | b |\\n| c | d |").splitlines()
    ['| | |', '|---|---|', '| a | b |', '| c | d |']
    >>> _with_table_header("| a |\\n|---|"), _with_table_header("a|b")
    ('| a |\\n|---|', 'a|b')
    """
    first, _, second = text.partition("\n")
    if not first.startswith("|") or not second.startswith("|") or TABLE_DELIMITER.match(second):
        return text
    columns = first.strip().strip("|").count("|") + 1
    return f"|{' |' * columns}\n|{'---|' * columns}\n{text}"


def _mark(text: str, highlights: Iterable[Sequence[int]]) -> str:
    parts = split_at_highlights(text, highlights)
    return "".join(f"{START_MARK}{part}{STOP_MARK}" if is_marked else part for part, is_marked in parts)


def split_at_highlights(text: str, highlights: Iterable[Sequence[int]]) -> Iterator[tuple[str, bool]]:
    """Splits a text where its highlights begin and end; yields each part and whether it is highlighted.

    >>> list(split_at_highlights("Reset the <b>password", [(10, 21), (0, 5)]))
    [('Reset', True), (' the ', False), ('<b>password', True)]
    >>> [part for part, _ in split_at_highlights("overlap", [(0, 4), (2, 6), (9, 12)])]
    ['over', 'la', 'p']
    """
    position = 0
    for start, end in sorted((start, end) for start, end in highlights):
        start, end = max(start, position), min(end, len(text))
        if start >= end:
            continue
        if start > position:
            yield text[position:start], False
        yield text[start:end], True
        position = end
    if position < len(text):
        yield text[position:], False


def _with_marks(text: str) -> str:
    parts = enumerate(MARKED_PART.split(text))  # every second part is marked
    return format_html_join(
        "", "{}", ((format_html("<mark>{}</mark>", part) if number % 2 else _unmarked(part),) for number, part in parts)
    )


def _unmarked(text: str) -> str:
    return text.replace(STOP_MARK, "")


def _render(node: SyntaxTreeNode) -> str:
    if node.type == "text":
        return _with_marks(node.content)
    if node.type in ("code_block", "fence"):
        return format_html("<pre><code>{}</code></pre>", _with_marks(node.content))
    if node.type == "code_inline":
        return format_html("<code>{}</code>", _with_marks(node.content))
    if node.type in ("hr", "hardbreak"):
        return format_html("<hr>" if node.type == "hr" else "<br>")
    if node.type == "softbreak":
        return "\n"
    children = format_html_join("", "{}", ((_render(child),) for child in node.children))
    if node.type == "thead" and not re.sub("<[^>]*>", "", children):
        return ""
    if node.type == "heading":
        # Not a heading of the page, whose outline would depend on the passages.
        return format_html('<p class="passage-heading">{}</p>', children)
    if node.type == "table":
        return format_html(TABLE_HTML, children)
    if node.type == "link" and SAFE_LINK.match(address := str(node.attrs.get("href", ""))):
        return format_html('<a href="{}" rel="noopener noreferrer nofollow">{}</a>', address, children)
    if node.type in TAGS and not _is_hidden(node):
        start = node.attrs.get("start")
        attribute = format_html(' start="{}"', start) if start is not None else ""
        return format_html("<{0}{1}>{2}</{0}>", TAGS[node.type], attribute, children)
    return children


def _is_hidden(node: Any) -> bool:
    """Whether it is a paragraph of a list without blank lines."""
    return bool(node.nester_tokens and node.nester_tokens.opening.hidden)

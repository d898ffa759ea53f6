"""Passages as HTML: Markdown, highlights, and what an author of a document must not be able to do."""

import time

import pytest

from collections_app.pages.passage_html import MAX_MARKDOWN_CHARACTERS, PassageRenderer


def html(text: str, *words: str) -> str:
    highlights = [(text.index(word), text.index(word) + len(word)) for word in words]
    return str(PassageRenderer().render(text, "markdown", highlights))


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("From **9:00**", ["9:00"], "<p>From <strong><mark>9:00</mark></strong></p>"),
        ("# Toner\n\nRed", ["Toner"], '<p class="passage-heading"><mark>Toner</mark></p><p>Red</p>'),
        ("- red\n- blue", ["blue"], "<ul><li>red</li><li><mark>blue</mark></li></ul>"),
        ("3. red", [], '<ol start="3"><li>red</li></ol>'),
        ("`a<b`", ["a"], "<p><code><mark>a</mark>&lt;b</code></p>"),
        ("~~~\nred\n~~~", ["red"], "<pre><code><mark>red</mark>\n</code></pre>"),
        ("[red](https://a.example/red)", ["red"],
         '<p><a href="https://a.example/red" rel="noopener noreferrer nofollow"><mark>red</mark></a></p>'),
        ("<https://a.example/>", [],
         '<p><a href="https://a.example/" rel="noopener noreferrer nofollow">https://a.example/</a></p>'),
    ],
)  # fmt: skip
def test_markdown_and_highlights_are_rendered(text: str, words: list[str], expected: str):
    assert html(text, *words) == expected


def test_tables_are_rendered():
    table = html("| Badge | Room |\n|---|---|\n| red | 2 |", "red")
    assert "<th>Badge</th>" in table and "<td><mark>red</mark></td><td>2</td>" in table


def test_passage_that_begins_within_a_table_is_a_table():
    table = html("| red | 2 |\n| blue | 3 |\n", "red")
    assert "<tr><td><mark>red</mark></td><td>2</td></tr><tr><td>blue</td>" in table and "<th" not in table


def test_tables_of_other_formats_are_rendered_and_their_cells_are_plain_text():
    text = "Red *lamp*\n\n| Badge | *Room* |\n|---|---|\n| a\\|b | <b>2 |\n\nEnd"
    rendered = str(PassageRenderer().render(text, "xlsx", [(0, 3), (14, 19)]))

    assert rendered.startswith('<p class="plain-text"><mark>Red</mark> *lamp*</p><div class="passage-table"')
    assert "<th><mark>Badge</mark></th><th>*Room*</th>" in rendered
    assert "<td>a|b</td><td>&lt;b&gt;2</td>" in rendered and rendered.endswith('<p class="plain-text">End</p>')


def test_large_table_of_another_format_is_shown_as_text():
    text = "|a" * 50 + "|\n" + "|-" * 50 + "|\n" + "|b|\n" * 50
    assert "<table" not in str(PassageRenderer().render(text, "xlsx"))


def test_word_in_the_address_of_a_link_does_not_change_the_address():
    text = "[here](https://toner.example/toner) toner"
    addresses_and_word = [(15, 20), (29, 34), (36, 41)]
    rendered = str(PassageRenderer().render(text, "markdown", addresses_and_word))
    assert 'href="https://toner.example/toner"' in rendered and rendered.endswith("<mark>toner</mark></p>")


@pytest.mark.parametrize(
    "text",
    [
        "[a](javascript:alert(1))", "[a](JAVASCRIPT:alert(1))", "[a](data:text/html,x)", "[a](/admin/)", "[a](//evil/)",
        "[a](vbscript:x)", "![a](https://evil/x.png)", "<img src=x>", "<script>x</script>",
        "<a name='x' onclick=y>z</a>",
        '[a](https://a.example/"onmouseover="x")', "[a]: javascript:x\n\n[a]", "\ue000<b>\ue001",
    ],
)  # fmt: skip
def test_nothing_of_a_document_becomes_markup(text: str):
    rendered = html(text)
    assert not any(part in rendered for part in ("<img", "<script", "<b>", "onclick=y>", "<a name", '"onmouseover'))
    assert "href=" not in rendered or 'href="https://a.example/' in rendered


@pytest.mark.parametrize(
    "text",
    ["[" * 8000, "![" * 4000, "*a " * 2600, ">" * 8000, "`a" * 4000, "](" * 4000, "[a](<" * 1600,
     "|a" * 20 + "\n" + "|-" * 20 + "\n" + "|\n" * 3900],
)  # fmt: skip
def test_hostile_text_is_rendered_quickly(text: str):
    started_at = time.process_time()
    html(text)
    PassageRenderer().render(text, "xlsx")
    assert time.process_time() - started_at < 3


def test_only_the_first_passages_of_a_page_are_parsed():
    renderer = PassageRenderer()
    text = "**bold** " * 1000
    rendered = [str(renderer.render(text, "markdown")) for _ in range(MAX_MARKDOWN_CHARACTERS // len(text) + 1)]
    assert "<strong>" in rendered[0] and "**bold**" in rendered[-1]

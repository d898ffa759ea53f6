"""Passages of a text: properties that hold for any text, and examples."""

import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from collections_app.chunk.splitter import (
    MAX_PASSAGES,
    MAX_WORD_LENGTH,
    SEPARATORS,
    SHORT_SECTION_DIVISOR,
    TITLE_MARKUP,
    TooManyPassages,
    indexed_text,
    split_into_passages,
)
from collections_app.chunk.tables import find_tables
from config.env import ROOT
from tests.collections_app import library


@dataclass(frozen=True)
class Heading:
    offset: int
    path: tuple[str, ...]


# Few pieces, so that texts contain repetitions, and every kind of separator.
TEXT_PIECES = [
    "a",
    "bb ",
    "word ",
    "漢字",
    "。",
    "\n",
    "\n\n",
    " ",
    "\t",
    "\u3000",
    "x" * 45,
    "😀",
    "a a a a a ",
    "!",
    "\r\n",
]
TEXT_STRATEGY = st.lists(st.one_of(st.sampled_from(TEXT_PIECES), st.text(max_size=12)), max_size=60).map("".join)
SIZE_STRATEGY = st.integers(2, 120).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@given(TEXT_STRATEGY, SIZE_STRATEGY)
@example("bb bb ", (2, 1))  # the second of the three passages of the library lies within the third
def test_passages_cover_the_text_and_respect_the_sizes(text: str, sizes: tuple[int, int]):
    size, overlap = sizes
    passages = split_into_passages(text, size=size, overlap=overlap, page_starts=None, headings=())

    assert passages == split_into_passages(text, size=size, overlap=overlap, page_starts=None, headings=())
    assert [passage.number for passage in passages] == list(range(len(passages)))
    covered_offsets: set[int] = set()
    for passage in passages:
        assert passage.text == text[passage.char_start : passage.char_end]
        assert 0 < len(passage.text) <= size
        assert passage.text == passage.text.strip()
        covered_offsets.update(range(passage.char_start, passage.char_end))
    assert all(offset in covered_offsets or character.isspace() for offset, character in enumerate(text))
    for passage, next_passage in pairwise(passages):
        assert passage.char_start < next_passage.char_start
        assert passage.char_end < next_passage.char_end
        assert passage.char_end - next_passage.char_start <= overlap


@given(TEXT_STRATEGY, SIZE_STRATEGY)
def test_passages_are_those_of_the_library(text: str, sizes: tuple[int, int]):
    """Apart from offsets, and from passages within another one, which are omitted."""
    size, overlap = sizes
    cut_pattern = f"(?s:.{{1,{max(1, min(MAX_WORD_LENGTH, size // 4))}}})"
    splitter = RecursiveCharacterTextSplitter(
        separators=[*SEPARATORS, cut_pattern], is_separator_regex=True, chunk_size=size, chunk_overlap=overlap
    )

    remaining_texts, previous_text = (
        deque(passage.text for passage in split_into_passages(text, size=size, overlap=overlap)),
        "",
    )
    for library_text in splitter.split_text(text):
        if remaining_texts and remaining_texts[0] == library_text:
            previous_text = remaining_texts.popleft()
        else:
            assert previous_text.endswith(library_text) or remaining_texts[0].startswith(library_text)
    assert not remaining_texts


OFFSET_STRATEGY = st.lists(st.integers(0, 300), max_size=8).map(sorted)


@given(TEXT_STRATEGY, OFFSET_STRATEGY, SIZE_STRATEGY)
def test_passages_under_headings_cover_the_text(text: str, offsets: list[int], sizes: tuple[int, int]):
    size, overlap = sizes
    headings = [Heading(offset, ("A", f"H{number}")) for number, offset in enumerate(offsets)]
    passages = split_into_passages(text, size=size, overlap=overlap, headings=headings)

    covered_offsets: set[int] = set()
    for passage in passages:
        assert passage.text == text[passage.char_start : passage.char_end]
        assert 0 < len(passage.text) <= size
        covered_offsets.update(range(passage.char_start, passage.char_end))
    assert all(offset in covered_offsets or character.isspace() for offset, character in enumerate(text))
    for passage, next_passage in pairwise(passages):
        assert passage.char_start < next_passage.char_start
        assert passage.char_end < next_passage.char_end


@given(TEXT_STRATEGY, OFFSET_STRATEGY)
def test_passage_does_not_cross_into_the_next_section(text: str, offsets: list[int]):
    """The exception is a short text before the heading."""
    headings = [Heading(offset, (f"H{number}",)) for number, offset in enumerate(offsets)]
    starts = {0, *offsets}

    for passage in split_into_passages(text, size=20, overlap=5, headings=headings):
        previous_starts = [start for start in starts if start <= passage.char_start]
        inner_starts = [start for start in starts if passage.char_start < start < passage.char_end]
        if inner_starts and text[max(previous_starts) : passage.char_start].strip():
            assert min(inner_starts) - max(previous_starts) < 20 // SHORT_SECTION_DIVISOR


@given(TEXT_STRATEGY, OFFSET_STRATEGY, OFFSET_STRATEGY)
def test_pages_and_headings_are_those_at_the_offsets(text: str, starts: list[int], offsets: list[int]):
    page_starts = [0, *[min(start, len(text)) for start in starts]]
    headings = [Heading(offset, (f"H{number}",)) for number, offset in enumerate(offsets)]

    for passage in split_into_passages(text, size=20, overlap=5, page_starts=page_starts, headings=headings):
        page, page_end = passage.page, passage.page_end
        assert page is not None and page_end is not None
        assert page == max(number for number, start in enumerate(page_starts, 1) if start <= passage.char_start)
        assert page_end == max(number for number, start in enumerate(page_starts, 1) if start < passage.char_end)
        text_offsets = [
            offset for offset in range(passage.char_start, passage.char_end) if text[offset] not in TITLE_MARKUP
        ]
        heading_paths = {last_heading(headings, offset) for offset in text_offsets or [passage.char_end - 1]}
        assert passage.heading_path == (heading_paths.pop() if len(heading_paths) == 1 else ())


def last_heading(headings: list[Heading], offset: int) -> tuple[str, ...]:
    preceding_headings = [heading for heading in headings if heading.offset <= offset]
    return preceding_headings[-1].path if preceding_headings else ()


def test_repetitive_text_is_covered_to_its_end():
    """The library searches for its passages in the text, and omits the last 150 characters of this one."""
    text = "-" * 5000
    passages = split_into_passages(text, size=1000, overlap=190)

    assert passages[-1].char_end == len(text)
    assert all(next_passage.char_start <= passage.char_end + 1 for passage, next_passage in pairwise(passages))


def test_text_without_spaces_is_split_at_sentences():
    sentence = "これは日本語の文章です。"
    passages = split_into_passages(sentence * 20, size=50, overlap=0)

    assert {passage.text for passage in passages} == {sentence * 4}


@pytest.mark.parametrize("text", ["漢" * 5000, "A" * 5000, "😀" * 5000, "นี่คือข้อความ" * 400])
def test_text_without_separators_is_split_by_length(text: str):
    passages = split_into_passages(text, size=1000, overlap=200)

    assert all(950 < len(passage.text) <= 1000 for passage in passages[:-1])
    assert all(passage.char_end - next_passage.char_start == 200 for passage, next_passage in pairwise(passages))


def test_passage_knows_its_pages_and_headings():
    text = "One.\n\nTwo.\n\nThree."
    headings = [Heading(0, ("A",)), Heading(12, ("A", "B"))]
    passages = split_into_passages(text, size=11, overlap=0, page_starts=(0, 6, 12), headings=headings)

    assert [(passage.text, passage.page, passage.page_end, passage.heading_path) for passage in passages] == [
        ("One.\n\nTwo.", 1, 2, ("A",)),
        ("Three.", 3, 3, ("A", "B")),
    ]


SECTION_BODY = "It waits for a signal.\n\n" * 3


def passages_of_sections(size: int, *sections: tuple[tuple[str, ...], str]) -> list[tuple[tuple[str, ...], str]]:
    """The headings and texts of the passages of a Markdown text with these sections."""
    text, headings = "", []
    for path, body in sections:
        headings.append(Heading(len(text), path))
        text += f"{'#' * len(path)} {path[-1]}\n\n{body}\n\n"
    return [
        (passage.heading_path, passage.text)
        for passage in split_into_passages(text, size=size, overlap=20, headings=headings)
    ]


def test_section_does_not_get_the_heading_of_the_previous_one():
    passages = passages_of_sections(100, (("Upgrade", "Signals"), SECTION_BODY * 2), (("Backup",), SECTION_BODY))

    assert passages[-1] == (("Backup",), f"# Backup\n\n{SECTION_BODY.strip()}")
    assert {path for path, _ in passages[:-1]} == {("Upgrade", "Signals")}
    assert all("Backup" not in text for _, text in passages[:-1])


def test_short_sections_share_a_passage_under_their_common_heading():
    assert [
        path for path, _ in passages_of_sections(100, (("FAQ", "Where?"), "Here."), (("FAQ", "When?"), "Now."))
    ] == [("FAQ",)]


TITLE_STRATEGY = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 60)), min_size=1, max_size=6)


@given(TITLE_STRATEGY, st.sampled_from(["word ", "one line.\n", "A paragraph.\n\n", "x"]))
def test_no_passage_is_only_a_title_with_text_below_it(sections: list[tuple[int, int]], text_piece: str):
    text, headings = "", []
    for number, (level, length) in enumerate(sections):
        headings.append(Heading(len(text), ("Top", f"T{number}")))
        text += f"{'#' * level} T{number}\n\n{text_piece * length}\n\n"
    passages = split_into_passages(text, size=60, overlap=10, headings=headings)

    covered_offsets = {offset for passage in passages for offset in range(passage.char_start, passage.char_end)}
    assert all(offset in covered_offsets or character.isspace() for offset, character in enumerate(text))
    assert all(0 < len(passage.text) <= 60 for passage in passages)
    for passage, next_passage in pairwise(passages):
        has_only_titles = all(line.startswith("#") for line in passage.text.splitlines() if line)
        assert not has_only_titles or next_passage.text.startswith("#"), passage


def test_title_stays_with_a_paragraph_longer_than_a_passage():
    passages = passages_of_sections(100, (("Keys",), "It turns them. " * 30), (("Keys", "Old"), "word " * 3))

    assert passages[0][1].startswith("# Keys\n\nIt turns") and len(passages[0][1]) > 80
    assert passages[-1] == (("Keys", "Old"), "## Old\n\nword word word")


def test_title_without_text_is_joined_with_the_next_section():
    passages = passages_of_sections(200, (("Manual",), ""), (("Manual", "Paper"), SECTION_BODY * 4))

    assert passages[0][1].startswith("# Manual\n\n\n\n## Paper\n\nIt waits")
    assert {path for path, _ in passages} == {("Manual", "Paper")}


TABLE_HEADER = "| Part | Price |\n|---|---|\n"
ROWS = "".join(f"| part {number} | {number * 7} |\n" for number in range(60))


def test_each_passage_of_a_long_table_repeats_its_header():
    before = "A sentence before it. " * 3
    text = f"Prices\n\n{before}\n\n{TABLE_HEADER}{ROWS}\nAfter."
    passages = split_into_passages(text, size=200, overlap=40, headings=[Heading(0, ("Prices",))])
    table_passages = [passage for passage in passages if "part" in passage.text]

    assert len(table_passages) > 5
    for passage in table_passages:
        assert passage.text.startswith(TABLE_HEADER) and len(passage.text) <= 200
        assert passage.text.removeprefix(TABLE_HEADER) == text[passage.char_start : passage.char_end].removeprefix(
            TABLE_HEADER
        )
        assert set(passage.text.removeprefix(TABLE_HEADER).splitlines()) <= set(ROWS.splitlines())
    assert {row for passage in table_passages for row in passage.text.splitlines()} >= set(ROWS.splitlines())
    assert [passages[0].text, passages[-1].text] == [f"Prices\n\n{before}".strip(), "After."]


def test_short_text_stays_with_the_long_table_below_it():
    first, second, *_ = split_into_passages(f"Prices\n\nBefore.\n\n{TABLE_HEADER}{ROWS}", size=200, overlap=0)

    assert first.text.startswith(f"Prices\n\nBefore.\n\n{TABLE_HEADER}| part 0 |")
    assert second.text.startswith(f"{TABLE_HEADER}| part ")


@pytest.mark.parametrize(
    "header", ["|  |  |\n|---|---|\n", f"| {'long ' * 30} | b |\n|---|---|\n", "| no line of dashes | x |\n"]
)
def test_header_that_is_empty_or_long_is_not_repeated(header: str):
    text = header + ROWS

    for passage in split_into_passages(text, size=200, overlap=40):
        assert passage.text == text[passage.char_start : passage.char_end]


@pytest.mark.parametrize(
    "text",
    ["|" * 100_000, ("|" + " " * 999) * 200, "|-" * 50_000 + "x", "| a |\n" * 50_000,
     "| a |\n|" + "-" * 100_000 + "x\n", TABLE_HEADER * 5_000],
)  # fmt: skip
def test_lines_that_look_like_tables_are_examined_quickly(text: str):
    started_at = time.process_time()
    list(find_tables(text))
    assert time.process_time() - started_at < 1


ROW_STRATEGY = st.lists(st.sampled_from(["| a | 1 |\n", "| bb bb bb bb |\n", "|  | x |\n", "| " + "z" * 90 + " |\n"]))


@given(TEXT_STRATEGY, ROW_STRATEGY, TEXT_STRATEGY, SIZE_STRATEGY, OFFSET_STRATEGY)
def test_passages_of_tables_cover_the_text(
    before: str, rows: list[str], after: str, sizes: tuple[int, int], offsets: list[int]
):
    text = f"{before}\n{TABLE_HEADER}{''.join(rows)}\n{after}"
    headings = [Heading(offset, ("A", f"H{number}")) for number, offset in enumerate(offsets)]
    passages = split_into_passages(text, size=sizes[0], overlap=sizes[1], headings=headings)

    covered_offsets: set[int] = set()
    for passage in passages:
        span_text = text[passage.char_start : passage.char_end]
        assert passage.text in (span_text, TABLE_HEADER + span_text)
        assert 0 < len(passage.text) <= sizes[0]
        covered_offsets.update(range(passage.char_start, passage.char_end))
    assert all(offset in covered_offsets or character.isspace() for offset, character in enumerate(text))
    for passage, next_passage in pairwise(passages):
        assert passage.char_start < next_passage.char_start
        assert passage.char_end < next_passage.char_end


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\u3000\t" * 5000])
def test_text_of_white_space_has_no_passages(text: str):
    assert split_into_passages(text, size=100, overlap=20) == []


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (1, 0), (10, 10), (10, 11), (10, -1)])
def test_invalid_sizes_are_refused(size: int, overlap: int):
    with pytest.raises(ValueError, match="at least 2"):
        split_into_passages("text", size=size, overlap=overlap)


def test_number_of_passages_is_limited():
    with pytest.raises(TooManyPassages, match="more than 200,000 passages"):
        split_into_passages("a" * MAX_PASSAGES * 2 + "b", size=2, overlap=0)


@pytest.mark.django_db
def test_document_with_too_many_passages_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("collections_app.chunk.splitter.MAX_PASSAGES", 2)
    version = library.add_document(library.make_library_collection(), "Many words. " * 500).newest
    assert version is not None
    assert (version.state, version.error_code, version.attempt) == ("failed", "limit_chunks", 1)


def test_indexed_text_begins_with_the_headings():
    assert indexed_text((), "text") == "text"
    assert indexed_text(("A", "B"), "text") == "A\nB\ntext"


@settings(max_examples=5, deadline=None)
@given(st.sampled_from(["a ", "\n", "a", "漢", "ab\n\n"]), st.sampled_from([(8000, 7999), (8000, 4000), (2, 1)]))
def test_no_text_takes_much_longer_to_split_than_others(piece: str, sizes: tuple[int, int]):
    """Counts the work instead of the time: it must not grow faster than the lengths."""
    passages = split_into_passages(piece * 20_000, size=sizes[0], overlap=sizes[1])

    assert sum(len(passage.text) for passage in passages[:5]) <= 5 * sizes[0]


def test_splitter_imports_no_django_and_the_library_only_when_it_splits():
    command = (
        "import sys; import collections_app.chunk.splitter as splitter\n"
        "def loaded(*names): return [name for name in names if name in sys.modules]\n"
        "assert not loaded('django', 'langchain_text_splitters', 'psycopg', 'celery')\n"
        "splitter.split_into_passages('text', size=10, overlap=0)\n"
        "assert not loaded('django', 'psycopg', 'celery', 'torch', 'transformers', 'nltk', 'spacy')\n"
    )
    process = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert process.returncode == 0, process.stderr

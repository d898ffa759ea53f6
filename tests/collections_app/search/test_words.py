"""Preparation of text: which words it contains, and their offsets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collections_app.lexical.tokens import (
    MAX_TEXT_LENGTH,
    MAX_WORD_LENGTH,
    is_single_character,
    prepare_index_words,
    prepare_words,
    prepare_words_with_spans,
)

CASES = {
    "The “ZX-200” — and/or don\u2019t": ["the", "zx", "200", "and", "or", "don", "t"],
    "end.Start v1.2.3 3.14 U.S. x.": ["end", "start", "v1.2.3", "3.14", "u", "s", "x"],
    "a_b@c.org -5 10:30": ["a", "b", "c", "org", "5", "10", "30"],
    "ﬁle Ⅳ ＡＢＣ１２ e\u0301té": ["file", "iv", "abc12", "été"],  # noqa: RUF001
    "exam\u00adple zero\u200bwidth": ["example", "zerowidth"],
    "東京大学": ["東京", "京大", "大学"],
    "水": ["水"],
    "한국어 X": ["한국", "국어", "x"],
    "Häuser ЁЖ İzmir": ["häuser", "ёж", "izmir"],
    "नमस्ते दुनिया": ["नमस्ते", "दुनिया"],
    "": [],
    " \n\t…!": [],
}
# One character of each kind that the steps treat differently, so that random texts combine them.
UNUSUAL_CHARACTERS = "ab Z-1.9,_“”é\u0301ﬁ①Ａ！가각\u1100\u1161\u11a8ｶﾞ東京都ก็ำİßΣ\u00ad\u200bनमस्ते😀\ue000\x00\n"  # noqa: RUF001


@pytest.mark.parametrize("text", CASES)
def test_text_is_split_into_words(text: str) -> None:
    assert prepare_words(text).split() == CASES[text]


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(alphabet=UNUSUAL_CHARACTERS, max_size=60), st.text(max_size=60)))
def test_offsets_belong_to_the_same_words(text: str) -> None:
    prepared_text = prepare_words_with_spans(text)
    assert prepared_text.text == prepare_words(text)
    assert len(prepared_text.text) == len(prepared_text.starts) == len(prepared_text.ends)
    spans = zip(prepared_text.starts, prepared_text.ends, strict=True)
    assert all(0 <= start < stop <= len(text) for start, stop in spans)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(alphabet=UNUSUAL_CHARACTERS, max_size=60), st.text(max_size=60)))
def test_each_single_character_word_is_indexed_and_highlighted_at_any_position(text: str) -> None:
    single_characters = frozenset(filter(is_single_character, UNUSUAL_CHARACTERS))
    words = prepare_words(text).split()
    prepared_text = prepare_words_with_spans(text, single_characters)
    assert prepare_index_words(text).split()[: len(words)] == prepared_text.text.split()[: len(words)] == words
    assert len(prepared_text.text) == len(prepared_text.starts) == len(prepared_text.ends)
    spans = zip(prepared_text.starts, prepared_text.ends, strict=True)
    assert all(0 <= start < stop <= len(text) for start, stop in spans)
    further_words = prepared_text.text.split()[len(words) :]
    for character in single_characters:
        assert prepare_index_words(text).split().count(character) == further_words.count(character)


# C24
def test_long_words_and_texts_are_cut() -> None:
    assert prepare_words("x" * 5_000) == "x" * MAX_WORD_LENGTH
    assert prepare_words_with_spans("x" * 5_000).text == "x" * MAX_WORD_LENGTH
    assert len(prepare_words("ab " * 10_000)) <= MAX_TEXT_LENGTH

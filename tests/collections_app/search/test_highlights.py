"""Highlights: the spans of query words in any text."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from collections_app.documents import deletion
from collections_app.lexical import term_statistics
from collections_app.search.passages import HighlightRequest, find_highlights

from .searches import add_document, make_collection

CASES = [
    ("english", "Running foxes, a fox\u2019s run — “FOX”.", "fox", ["foxes", "fox", "FOX"]),
    ("english", "The ZX-200 and the zx 200", "zx-200", ["ZX", "200", "zx", "200"]),
    ("english", "a ﬁle is a file", "files", ["ﬁle", "file"]),
    ("english", "exam\u00adple", "example", ["exam\u00adple"]),
    ("german", "Die Häuser. Das Haus!", "Haus", ["Häuser", "Haus"]),
    ("russian", "Дома стоят; дом упал", "дом", ["Дома", "дом"]),
    ("simple", "东京大学在东京。", "东京大学", ["东京大学", "东京"]),
    ("simple", "东京大学在东京。", "京", ["京", "京"]),
    ("simple", "东京大学在东京。", "京 大学", ["京大学", "京"]),
    ("simple", "の水の", "の", []),
    ("simple", "cafe\u0301 au lait", "CAFÉ", ["cafe\u0301"]),
    ("english", "Bold <b>fox</b> http://fox.example/fox &amp; fox", "fox", ["fox"] * 4),
    ("english", "\ue000fox\ue001", "fox", ["fox"]),
    ("english", "nothing of it", "the of", []),
    ("english", "", "fox", []),
]


def find_lexemes(configuration: str, text: str) -> list[str]:
    collection = make_collection(configuration, text_configuration=configuration)
    add_document(collection, "one", "A document of this language.")
    query_words = term_statistics.find_query_terms(text, [collection])[collection.pk].words
    deletion.delete_collection(collection)
    return [word.lexeme for word in query_words]


def find_spans(configuration: str, text: str, query: str) -> list[list[int]]:
    query_lexemes = find_lexemes(configuration, query)
    return find_highlights([HighlightRequest(text=text, configuration=configuration, lexemes=query_lexemes)])[0]


@pytest.mark.django_db
@pytest.mark.parametrize(("configuration", "text", "query", "expected"), CASES)
def test_forms_of_query_words_are_highlighted(configuration: str, text: str, query: str, expected: list[str]) -> None:
    assert [text[start:stop] for start, stop in find_spans(configuration, text, query)] == expected


@pytest.mark.django_db
@pytest.mark.parametrize("filler", ["a dog barks ", "没有墨粉。"])
def test_end_of_a_joined_passage_is_highlighted(filler: str) -> None:
    text = filler * 8_000 + "The fox."
    assert [text[start:stop] for start, stop in find_spans("english", text, "fox")] == ["fox"]


@pytest.mark.django_db
def test_many_passages_are_highlighted_in_one_call_each_in_its_language(db: Any) -> None:
    requests = [
        HighlightRequest(text="the houses", configuration="english", lexemes=["hous"]),
        HighlightRequest(text="no query words", configuration="english", lexemes=[]),
        HighlightRequest(text="die Häuser", configuration="german", lexemes=["haus"]),
    ]
    assert find_highlights(requests) == [[[4, 10]], [], [[4, 10]]]


TEXT_STRATEGY = st.text(alphabet="ab fox-FOX ﬁé\u0301東京。“”<>&'\\\ue000\ue001\u00ad1.2\n", max_size=80)


@pytest.mark.django_db
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(TEXT_STRATEGY, TEXT_STRATEGY)
@example("京京", "京")
def test_each_highlight_lies_in_the_text_and_is_a_query_word(text: str, query: str) -> None:
    spans = find_spans("english", text, query)
    assert all(0 <= start < stop <= len(text) for start, stop in spans)
    assert all(span[1] < next_span[0] for span, next_span in pairwise(spans))
    query_lexemes = set(find_lexemes("english", query))
    for start, stop in spans:
        # One highlight may join pairs of characters that overlap, or characters next to each other, of which each is in
        # the query.
        assert query_lexemes & {*find_lexemes("english", text[start:stop]), *text[start:stop]}

"""Comparison of characters: other forms of words, languages that were not recognized, and bounded cost."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from collections_app.models import Collection
from collections_app.search import character_comparison
from collections_app.search.character_comparison import MAX_QUERY_CHARACTERS, character_scores

from .searches import add_document, hit_ids, make_collection, run_search


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("Rechnungen", "Die Rechnung liegt bei.", "Die Zeichnung liegt bei."),
        ("кошками", "Наша кошка спит.", "Наша собака спит."),
        ("printre", "The print shop", "The car shop"),
        ("ÉCOLE", "l'e\u0301cole", "l'ecole"),
        ("東京大学", "東京の大学", "京都の寺"),
        ("ＺＸ２００", "Model zx200", "Model zy200"),  # noqa: RUF001
    ],
)
def test_passage_that_shares_more_sequences_is_better(query: str, better: str, worse: str) -> None:
    scores = character_scores(query, {1: worse, 2: better, 3: "другое 其他 other"})
    assert scores[2] > scores[1] >= scores[3] == 0.0


@given(st.text(max_size=40), st.lists(st.text(st.characters(exclude_characters="\0"), max_size=60), max_size=5))
def test_any_text_can_be_compared(query: str, texts: list[str]) -> None:
    numbered_texts = dict(enumerate(texts))
    scores = character_scores(query, numbered_texts)
    assert all(score >= 0.0 for score in scores.values())
    assert scores == character_scores(query, dict(reversed(numbered_texts.items())))


def test_no_sequence_spans_two_texts() -> None:
    scores = character_scores("abcd", {1: "ab", 2: "cd", 3: "abcd"})
    assert scores[1] == scores[2] == 0.0 < scores[3]


@pytest.mark.parametrize("query", ["", "fox", "水", " - "])
def test_query_shorter_than_a_sequence_is_not_compared(query: str) -> None:
    assert character_scores(query, {1: query, 2: "fox"}) == {}


def test_end_of_a_long_query_is_not_compared() -> None:
    query = "word " * (MAX_QUERY_CHARACTERS // 5)
    assert character_scores(f"{query} elephant", {1: "elephant", 2: "word"})[1] == 0.0


@pytest.mark.django_db
def test_only_the_best_passages_within_the_limit_are_compared(
    help_collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(character_comparison, "MAX_COMPARED_CHARACTERS", 150)
    hits = run_search(help_collection, "printer lamp").hits
    assert [hit.scores["characters"] is None for hit in hits] == [False, False, True, True]


@pytest.mark.django_db
def test_searches_by_vector_read_no_texts_to_compare(help_collection: Collection) -> None:
    with CaptureQueriesContext(connection) as queries:
        hits = run_search(help_collection, "printer lamp", mode="vector").hits
    assert {hit.scores["characters"] for hit in hits} == {None}
    assert not [query for query in queries if "total_length" in query["sql"]]


@pytest.mark.django_db
def test_words_of_an_unrecognized_language_are_found_in_another_form(db: Any) -> None:
    collection = make_collection(text_configuration="")
    add_document(collection, "bill", "Rechnungsnummer 17, Zahlungsziel 30")
    add_document(collection, "sheet", "Zeichnungsnummer 17, Format 30")
    assert hit_ids(run_search(collection, "Rechnungen 17", mode="text")) == ["bill", "sheet"]

"""`scores.match`: nonsense is low, answers are high, and `min_score` leaves out what is lower."""

import pytest

from collections_app.lexical.term_statistics import QueryTerms, QueryWord, find_query_terms
from collections_app.models import Collection, EmbeddingSpace
from collections_app.search.match import match_score
from tests.collections_app.search.searches import add_document, hit_ids, make_collection, run_search

pytestmark = pytest.mark.django_db
MODES = ("hybrid", "text", "vector")


def best_match(collection: Collection, query: str, mode: str) -> float:
    return max((hit.scores["match"] or 0.0 for hit in run_search(collection, query, mode=mode).hits), default=0.0)


@pytest.mark.parametrize("mode", MODES)
def test_answers_match_better_than_nonsense(help_collection: Collection, mode: str):
    answer = best_match(help_collection, "When do I replace the toner of the printer?", mode)
    nonsense = best_match(help_collection, "xyzzy flurb grok", mode)
    assert nonsense < 0.3 < answer <= 1


@pytest.mark.parametrize("mode", MODES)
def test_min_score_leaves_out_what_is_lower(help_collection: Collection, mode: str):
    hits = run_search(help_collection, "toner of the printer", mode=mode).hits
    for limit in (0.0, 0.3, 0.6, 1.0):
        kept = run_search(help_collection, "toner of the printer", mode=mode, min_score=limit).hits
        assert kept == [hit for hit in hits if (hit.scores["match"] or 0.0) >= limit]
    assert hit_ids(run_search(help_collection, "xyzzy flurb grok", mode=mode, min_score=0.3)) == []


def test_match_does_not_depend_on_synonyms():
    space = EmbeddingSpace(provider="local", model="unknown", dimensions=1)
    asked, added = (
        QueryWord(lexeme=lexeme, position=1, term=1, chunk_count=1, is_asked=is_asked)
        for lexeme, is_asked in (("printer", True), ("mfp", False))
    )
    matches = [
        match_score(space, QueryTerms(chunk_count=9, words=words), vector_score=None, text_score=1.0)
        for words in ((asked,), (asked, added))
    ]
    assert matches[0] == matches[1] > 0


def test_synonyms_are_not_asked_words():
    collection = make_collection(synonyms="printer, multifunction device", text_configuration="english")
    add_document(collection, "a", "The multifunction device.")
    terms = find_query_terms("The printer", [collection], {collection.pk: "multifunction device"})[collection.pk]
    assert {word.lexeme: word.is_asked for word in terms.words} == {
        "printer": True,
        "multifunct": False,
        "devic": False,
    }

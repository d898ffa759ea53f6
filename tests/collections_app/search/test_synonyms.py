"""Synonyms of a collection: which queries they extend, in which languages, and that they stay in their collection."""

import pytest
from django.core.exceptions import ValidationError

from collections_app.lexical.synonyms import MAX_SYNONYMS_LENGTH, check_synonyms, find_synonyms, without_lone_letters
from collections_app.models import Collection
from tests.collections_app.search.searches import add_document, make_collection, run_search

pytestmark = pytest.mark.django_db


def keyword_hits(query: str, *collections: Collection) -> list[str]:
    return [hit.doc_id for hit in run_search(collections, query, mode="text").hits if hit.scores["text"]]


def make_help(name: str = "help", **columns: str) -> Collection:
    collection = make_collection(name, synonyms="printer, MFP, multifunction device\nholiday, vacation", **columns)
    add_document(collection, "mfp", "The MFP on the third floor is broken.")
    add_document(collection, "device", "A multifunction device scans too.")
    add_document(collection, "leave", "Your vacations are approved by the manager.")
    return collection


@pytest.mark.parametrize(
    ("query", "doc_ids"),
    [
        ("Printers!", {"mfp", "device"}),
        ("multifunction   DEVICES", {"mfp", "device"}),
        ("multifunction car devices", {"device"}),  # not the phrase
        ("my holidays", {"leave"}),
        ("car", set()),
    ],
)
def test_query_finds_synonyms(query: str, doc_ids: set[str]):
    assert set(keyword_hits(query, make_help())) == doc_ids


def test_synonyms_are_highlighted():
    hit = run_search(make_help(), "holiday", mode="text").hits[0]
    assert [hit.page_content[start:end] for start, end in hit.highlights] == ["vacations"]


def test_synonyms_are_compared_by_characters():
    """Otherwise a passage that shares only letters with the query would come before one with a synonym."""
    collection = make_collection(synonyms="furnace, boiler")
    add_document(collection, "letters", "Furnishing is described in annex four.")
    add_document(collection, "synonym", "The warranty of the boiler ends in March.")
    other = make_collection("other")
    add_document(other, "foreign", "The boiler was repaired.")
    hits = run_search([collection, other], "furnace").hits
    assert hits[0].doc_id == "synonym"
    scores = {hit.doc_id: hit.scores["characters"] or 0.0 for hit in hits}
    assert scores["synonym"] > scores["letters"] > 0.0 == scores["foreign"]


def test_letters_of_a_phrase_are_not_searched():
    collection = make_collection(synonyms="O-ring, gasket\nC++, compiled language")
    add_document(collection, "ring", "Rings of rubber are in the drawer.")
    add_document(collection, "letter", "Building O is behind the gate.")
    add_document(collection, "code", "Written in C, with comments.")
    assert keyword_hits("gasket", collection) == ["ring"]
    assert keyword_hits("compiled language", collection) == ["code"]
    assert keyword_hits("building O-ring", collection) == ["letter", "ring"], "the letter is in the query"


@pytest.mark.parametrize("term", ["किताब की दुकान", "cafe\u0301 e\u0301te\u0301", "水 管", "가 방", "U.S.", "a"])
def test_words_that_look_like_letters_are_kept(term: str):
    assert without_lone_letters(term) == term


def test_synonyms_of_other_languages():
    collection = make_collection(synonyms="Drucker, принтер, 打印机", text_configuration="")
    add_document(collection, "ru", "Сломались все принтеры, вызовите мастера как можно скорее.")
    add_document(collection, "zh", "三楼的打印机没有墨粉了。请尽快更换。否则无法打印文件。")
    assert set(keyword_hits("Drucker", collection)) == {"ru", "zh"}


def test_synonyms_stay_in_their_collection():
    own = make_collection("own")
    add_document(own, "mfp", "The MFP is broken.")
    assert keyword_hits("printer", own) == []
    theirs = make_help("theirs")
    assert keyword_hits("printer", own) == []
    assert find_synonyms("printer", [own, theirs]).keys() == {theirs.pk}


@pytest.mark.parametrize("text", ["printer", "a, b\nprinter,", "printer, …", "a," * MAX_SYNONYMS_LENGTH])
def test_invalid_synonyms_are_refused(text: str):
    with pytest.raises(ValidationError):
        check_synonyms(text)


def test_stored_synonyms_can_be_saved_again():
    """The length of what is stored is limited, which has a space after each comma."""
    longest_text = check_synonyms(",".join(["ab"] * 5_000))
    assert check_synonyms(longest_text) == longest_text
    with pytest.raises(ValidationError):
        check_synonyms(",".join(["ab"] * 5_001))

"""Arranged results: without copies, one of each document, joined with neighbours, cut to a length."""

from itertools import pairwise
from typing import Any

import pytest

from collections_app.models import Collection, ExtractedText
from collections_app.search.arrangement import Arrangement
from collections_app.search.passages import Hit
from tests.collections_app.search.searches import add_document, hit_ids, make_collection, run_search

pytestmark = pytest.mark.django_db

STORY = " ".join(f"Sentence {number} tells of the lamp number {number}." for number in range(40))


@pytest.fixture
def stories() -> Collection:
    collection = make_collection(chunk_size=200, chunk_overlap=40)
    add_document(collection, "long", STORY)
    add_document(collection, "copy", STORY.replace(" ", "  ").upper())
    add_document(collection, "other", "A lamp is a lamp is a lamp.")
    return collection


def arranged(collection: Collection, query: str = "lamp number 7", k: int = 5, **wishes: Any) -> list[Hit]:
    return run_search(collection, query, k, arrangement=Arrangement(**wishes), mode="text").hits


def test_copies_are_collapsed_to_the_best():
    collection = make_collection()
    for doc_id, text in {"a": "The lamp is red.", "b": "the  LAMP is\nred.", "c": "The lamp is green."}.items():
        add_document(collection, doc_id, text)
    assert len(hit_ids(run_search(collection, "red lamp"))) == 3
    collapsed = run_search(collection, "red lamp", arrangement=Arrangement(collapses_copies=True)).hits
    assert [hit.doc_id for hit in collapsed] in (["a", "c"], ["b", "c"])
    assert len(run_search(collection, "red lamp", k=2, arrangement=Arrangement(collapses_copies=True)).hits) == 2


def test_one_passage_of_each_document(stories: Collection):
    plain, grouped = arranged(stories), arranged(stories, by_document=True)
    assert len({hit.doc_id for hit in plain}) < 3
    assert sorted(hit.doc_id for hit in grouped) == ["copy", "long", "other"]
    best = {hit.doc_id: hit for hit in reversed(arranged(stories, k=100))}
    assert all(hit.chunk_index == best[hit.doc_id].chunk_index for hit in grouped)
    assert [hit.score for hit in grouped] == sorted((hit.score for hit in grouped), reverse=True)


def test_copy_of_a_document_is_left_out():
    """Not even by its second passage, whose text the other document has too."""
    collection = make_collection(chunk_size=200, chunk_overlap=40)
    for doc_id, text in {"story": STORY, "copy": STORY.upper(), "other": "A lamp is a lamp."}.items():
        add_document(collection, doc_id, text)
    hits = arranged(collection, by_document=True, collapses_copies=True)
    assert sorted(hit.doc_id for hit in hits) in (["other", "story"], ["copy", "other"])


@pytest.mark.parametrize("context", [0, 1, 3])
def test_text_of_joined_passages_is_that_of_the_document(stories: Collection, context: int):
    texts = {
        text.version.document.doc_id: text.text
        for text in ExtractedText.objects.select_related("version__document").all()
    }
    hits = arranged(stories, context=context)
    parts = sorted((hit.doc_id, hit.char_start, hit.char_end) for hit in hits)
    assert all(hit.page_content == texts[hit.doc_id][hit.char_start : hit.char_end] for hit in hits)
    assert all(doc_id != other or end < start for (doc_id, _, end), (other, start, _) in pairwise(parts))
    words = {hit.page_content[start:end].lower() for hit in hits for start, end in hit.highlights}
    assert words == {"lamp", "number", "7"}


def test_joined_rows_of_a_table_keep_its_header():
    header = "| Lamp | Price |\n|---|---|\n"
    rows = "".join(f"| lamp{number} | {number} |\n" for number in range(60))
    collection = make_collection(chunk_size=200, chunk_overlap=0)
    add_document(collection, "table", header + rows)
    (plain,), (wide,) = (arranged(collection, "lamp30", k=1, **wishes) for wishes in ({}, {"context": 1}))
    for hit in (plain, wide):
        assert hit.page_content == header + (header + rows)[hit.char_start : hit.char_end]
    assert wide.char_start < plain.char_start and plain.char_end < wide.char_end


def test_separate_parts_of_documents_have_their_own_texts(stories: Collection):
    hits = arranged(stories, "3 15 36", k=6, context=1)
    texts = dict(ExtractedText.objects.values_list("version__document__doc_id", "text"))
    doc_ids = [hit.doc_id for hit in hits]
    assert max(map(doc_ids.count, doc_ids)) > 1 and len(set(doc_ids)) > 1
    for hit in hits:
        assert hit.page_content == texts[hit.doc_id][hit.char_start : hit.char_end]


def test_cut_within_the_header_of_a_table_ends_where_the_passage_starts():
    header = f"| Lamp | {'Price ' * 25}|\n|---|---|\n"
    rows = "".join(f"| lamp{number} | {number} |\n" for number in range(60))
    collection = make_collection(chunk_size=400, chunk_overlap=0)
    add_document(collection, "table", header + rows)
    (hit,) = run_search(collection, "lamp50", 1, mode="text", max_characters=100).hits
    assert hit.page_content == header[:100]
    assert hit.char_end == hit.char_start > 0


def test_context_adds_neighbours_within_the_document(stories: Collection):
    (plain,), (wide,) = (
        arranged(stories, "sentence 0", k=1, **wishes) for wishes in ({}, {"context": 1, "by_document": True})
    )
    assert (wide.doc_id, wide.chunk_index, wide.id) == (plain.doc_id, plain.chunk_index, plain.id)
    assert plain.chunk_index == 0 == wide.char_start
    assert wide.page_content.startswith(plain.page_content) and len(wide.page_content) > len(plain.page_content)


def test_results_are_cut_to_a_length(stories: Collection):
    plain = arranged(stories, k=5)
    limit = len(plain[0].page_content) + len(plain[1].page_content)
    request: dict[str, Any] = {"query": "lamp number 7", "k": 5, "mode": "text"}
    assert run_search(stories, **request, max_characters=limit).hits == plain[:2]
    assert run_search(stories, **request, max_characters=limit - 1).hits == plain[:1]
    (cut,) = run_search(stories, **request, max_characters=100).hits
    assert cut.page_content == plain[0].page_content[:100] and cut.char_end == cut.char_start + 100
    assert all(end <= 100 for _, end in cut.highlights)

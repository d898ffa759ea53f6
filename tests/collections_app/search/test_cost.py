"""The cost of a search is bounded for any query and collection."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from collections_app.lexical.term_statistics import QueryTerms, QueryWord
from collections_app.models import Collection
from collections_app.search import keyword_retrieval, passages, scope
from collections_app.search.passages import MAX_HIGHLIGHTED_CHARACTERS, HighlightRequest, find_highlights

from .searches import add_document, hit_ids, make_collection, run_search

pytestmark = pytest.mark.django_db


def test_queued_documents_are_not_scanned(help_collection: Collection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {scope.UNSEARCHED_SQL}", [[help_collection.pk]])
        plan = "\n".join([line for (line,) in cursor.fetchall()])
    assert "document_version_hidden" in plan and "chunk_" not in plan.replace("chunks_count", "")


def test_single_character_search_reads_the_index_and_a_limited_number_of_passages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collection = make_collection(text_configuration="simple")
    for number in range(3):
        add_document(collection, f"d{number}", f"三楼有饮水机{number}。")
    monkeypatch.setattr(keyword_retrieval, "MAX_CANDIDATES", 1)
    monkeypatch.setattr(keyword_retrieval, "MAX_SCORED_CHUNKS", 2)
    monkeypatch.setattr(
        keyword_retrieval, "BEST_OF_MANY_SQL", keyword_retrieval.BEST_OF_MANY_SQL.replace("LIMIT 10000", "LIMIT 2")
    )
    with CaptureQueriesContext(connection) as queries:
        assert hit_ids(run_search(collection, "水", mode="text")) == ["d0", "d1"]
    (statement,) = [query["sql"] for query in queries if "words.terms" in query["sql"]]
    with connection.cursor() as cursor:
        # With few rows and the statistics of other tests, a scan may seem the cheapest plan.
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        cursor.execute(f"EXPLAIN {statement}")
        assert "chunk_words_terms" in "\n".join([line for (line,) in cursor.fetchall()])


def test_with_alpha_1_other_chunks_are_ordered_by_vector(help_collection: Collection) -> None:
    add_document(help_collection, "letters", "Electronic letters reach the inbox.")  # nearest, but loaded last
    hits = run_search(help_collection, "toner", alpha=1.0).hits
    cosines = [hit.scores["vector"] or 0.0 for hit in hits if hit.score == 0.0]
    assert len(cosines) >= 2 and cosines == sorted(cosines, reverse=True)
    ids_by_cosine = hit_ids(run_search(help_collection, "xyzzyq", alpha=1.0))
    assert ids_by_cosine == hit_ids(run_search(help_collection, "xyzzyq", mode="vector"))


def test_only_passages_of_the_result_are_read_with_their_documents(db: Any) -> None:
    collection = make_collection()
    for number in range(12):
        add_document(collection, f"d{number:02}", "The same words everywhere.")
    with CaptureQueriesContext(connection) as queries:
        result = run_search(collection, "same words", k=2)
    assert hit_ids(result) == ["d00", "d01"]
    (statement,) = [query["sql"] for query in queries if "chunk.text, chunk.heading_path" in query["sql"]]
    assert statement.rpartition("ANY(")[2].count(",") == 1


def test_only_the_rarest_known_words_of_a_query_are_marked() -> None:
    known_words = tuple(
        [QueryWord(lexeme=f"w{number}", position=number, term=number, chunk_count=number) for number in range(1, 200)]
    )
    query_terms = QueryTerms(
        chunk_count=200, words=(QueryWord(lexeme="unknown", position=1, term=0, chunk_count=0), *known_words)
    )
    hit: Any = passages.Hit(
        collection_id="c", collection_name="c", configuration="simple", document_id="d", doc_id="d", metadata="{}",
        filename="", chunks_count=1, chunk_index=0, page_content="x", heading_path=[], page=None, page_end=None,
        page_label=None, page_label_end=None, is_ocr=False,
        char_start=0, char_end=1, generation=1, format="text",
    )  # fmt: skip
    assert list(passages._highlight_request(hit, query_terms).lexemes) == [
        f"w{number}" for number in range(1, passages.MAX_LEXEMES + 1)
    ]


def test_highlighting_of_long_passages_is_limited_in_time() -> None:
    long_request = HighlightRequest(
        text=("fox " * MAX_HIGHLIGHTED_CHARACTERS)[: MAX_HIGHLIGHTED_CHARACTERS // 2],
        configuration="english",
        lexemes=["fox"],
    )
    first_spans, second_spans, third_spans = find_highlights([long_request] * 3)
    assert first_spans and first_spans == second_spans and third_spans == []

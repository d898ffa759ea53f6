"""The content of other collections changes neither the response nor the statements that produce it."""

import itertools
import json
from dataclasses import asdict
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collections_app.lexical import term_statistics
from collections_app.models import ChunkWords, Collection
from collections_app.search import scope
from collections_app.search.arrangement import Arrangement
from collections_app.search.pipeline import SearchResult

from .searches import PRINTER_DOCUMENTS, add_document, make_collection, run_search

pytestmark = pytest.mark.django_db
QUERIES = ("printer paper", "red lamp", "xyzzy", "message space for more")
ARRANGED = Arrangement(collapses_copies=True, by_document=True, context=1)
FOREIGN_WORDS = ["printer", "paper", "lamp", "red", "toner", "mail", "the", "xyzzy", "fox"]

foreign_texts = st.lists(st.sampled_from(FOREIGN_WORDS), min_size=1, max_size=30).map(" ".join)
foreign_worlds = st.lists(st.tuples(st.sampled_from(["their", "others"]), foreign_texts), min_size=1, max_size=6)


class Rollback(Exception):
    """Raised to roll back a world."""


def results_with_foreign_documents(foreign_documents: list[tuple[str, str]], removed_count: int = 0) -> bytes:
    """The search results in our own collection while others load and delete documents."""
    results = b""
    try:
        with transaction.atomic():
            results = _load_and_search(foreign_documents, removed_count)
            raise Rollback
    except Rollback:
        return results


def _load_and_search(foreign_documents: list[tuple[str, str]], removed_count: int) -> bytes:
    foreign_collections: dict[str, Collection] = {}
    own_collection = make_collection()
    remaining_documents = iter(foreign_documents)
    for number, (doc_id, text) in enumerate(PRINTER_DOCUMENTS.items()):
        for name, foreign_text in itertools.islice(remaining_documents, 2):
            if name not in foreign_collections:
                foreign_collections[name] = make_collection(name, synonyms="printer, xyzzy\nlamp, fox")
            collection = foreign_collections[name]
            add_document(collection, f"{doc_id}{number}{len(foreign_text)}", foreign_text, status="open")
        add_document(own_collection, doc_id, text, status="open" if number % 2 else "closed")
    for collection in list(foreign_collections.values())[:removed_count]:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM chunk WHERE collection_id = %s", [collection.pk])
    hits = [
        comparable_hits(run_search(own_collection, query, mode=mode, filter=condition, arrangement=arrangement))
        for query in QUERIES
        for mode, arrangement in (*((mode, Arrangement()) for mode in ("hybrid", "text", "vector")), ("text", ARRANGED))
        for condition in ("", "status=open")
    ]
    return json.dumps(hits).encode()


def comparable_hits(result: SearchResult) -> list[dict[str, Any]]:
    """The hits without internal ids, which responses do not contain."""
    internal_fields = ("collection_id", "document_id")
    return [
        {"id": hit.id} | {name: value for name, value in asdict(hit).items() if name not in internal_fields}
        for hit in result.hits
    ]


# C04 C51
@settings(
    max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate]
)
@given(foreign_worlds, st.integers(0, 2))
def test_data_of_others_does_not_change_results(foreign_documents: list[tuple[str, str]], removed_count: int) -> None:
    assert results_with_foreign_documents(foreign_documents, removed_count) == results_with_foreign_documents([])


# C04
@pytest.mark.nightly
@settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate]
)
@given(foreign_worlds, st.integers(0, 2))
def test_results_are_equal_in_many_worlds(foreign_documents: list[tuple[str, str]], removed_count: int) -> None:
    assert results_with_foreign_documents(foreign_documents, removed_count) == results_with_foreign_documents([])


def test_comparison_detects_a_leak() -> None:
    """The same text in our own collection changes scores, so the comparison would detect a leak."""
    collection = make_collection()
    add_document(collection, "a", "printer paper")
    hits_before = comparable_hits(run_search(collection, "printer paper lamp", mode="text"))
    add_document(collection, "b", "printer lamp")
    assert comparable_hits(run_search(collection, "printer paper lamp", mode="text")) != hits_before


# C04
def test_hash_collision_with_another_collection_is_not_found(help_collection: Collection) -> None:
    """A user who knows the id of a collection could construct words with the same hash."""
    other_collection = make_collection("theirs")
    foreign_version = add_document(other_collection, "secret", "printer paper lamp")
    query_terms = term_statistics.find_query_terms("printer paper", [help_collection])
    terms = [word.term for word in query_terms[help_collection.pk].words]
    ChunkWords.objects.filter(version=foreign_version).update(terms=terms)
    hits_with_collision = comparable_hits(run_search(help_collection, "printer paper", mode="text"))
    assert "secret" not in [hit["doc_id"] for hit in hits_with_collision]
    ChunkWords.objects.filter(version=foreign_version).delete()
    assert comparable_hits(run_search(help_collection, "printer paper", mode="text")) == hits_with_collision


# C52
def test_no_statement_scans_rows_of_others(help_collection: Collection) -> None:
    other_collection = make_collection("theirs")
    for number in range(5):
        add_document(other_collection, f"d{number}", "printer paper lamp " * 20)
    with CaptureQueriesContext(connection) as queries:
        run_search(help_collection, "printer paper lamp")
        run_search(help_collection, "printer paper lamp", filter="statusISEMPTY")
    plans = []
    with connection.cursor() as cursor:
        cursor.execute(scope.SNAPSHOT_SQL.partition(";")[2])
        for query in queries.captured_queries:
            if "SELECT" in query["sql"]:
                cursor.execute("EXPLAIN " + query["sql"])
                plans.append("\n".join([line for (line,) in cursor.fetchall()]))
    assert len(plans) > 10
    for plan in plans:
        for table in ("chunk", "chunk_words", "chunk_vector", "document_version", "term_count"):
            assert f"Seq Scan on {table} " not in plan, plan

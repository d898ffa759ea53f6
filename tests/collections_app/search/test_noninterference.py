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
from collections_app.search.pipeline import SearchResult

from .searches import PRINTERS, ask, make, put

pytestmark = pytest.mark.django_db
QUERIES = ("printer paper", "red lamp", "xyzzy", "message space for more")
WORDS = ["printer", "paper", "lamp", "red", "toner", "mail", "the", "xyzzy", "fox"]

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
worlds = st.lists(st.tuples(st.sampled_from(["their", "others"]), texts), min_size=1, max_size=6)


class Undone(Exception):
    """Takes a world back."""


def answers(foreign: list[tuple[str, str]], removed: int = 0) -> bytes:
    """What the owner of the printers is told while others load this beside them, and take some of it away."""
    message = b""
    try:
        with transaction.atomic():
            message = _answers(foreign, removed)
            raise Undone
    except Undone:
        return message


def _answers(foreign: list[tuple[str, str]], removed: int) -> bytes:
    theirs: dict[str, Collection] = {}
    own = make()
    others = iter(foreign)
    for number, (doc_id, text) in enumerate(PRINTERS.items()):
        for name, other in itertools.islice(others, 2):
            collection = theirs.get(name) or theirs.setdefault(name, make(name))
            put(collection, f"{doc_id}{number}{len(other)}", other, status="open")
        put(own, doc_id, text, status="open" if number % 2 else "closed")
    for collection in list(theirs.values())[:removed]:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM chunk WHERE collection_id = %s", [collection.pk])
    result = [
        told(ask(own, query, mode=mode, filter=wanted))
        for query in QUERIES
        for mode in ("hybrid", "text", "vector")
        for wanted in ("", "status=open")
    ]
    return json.dumps(result).encode()


def told(found: SearchResult) -> list[dict[str, Any]]:
    """All but the inner ids, which no answer shows."""
    inner = ("collection_id", "document_id")
    return [
        {"id": hit.id} | {name: value for name, value in asdict(hit).items() if name not in inner} for hit in found.hits
    ]


# C04 C51
@settings(
    max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate]
)
@given(worlds, st.integers(0, 2))
def test_data_of_others_does_not_change_results(foreign: list[tuple[str, str]], removed: int) -> None:
    assert answers(foreign, removed) == answers([])


# C04
@pytest.mark.nightly
@settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate]
)
@given(worlds, st.integers(0, 2))
def test_results_are_equal_in_many_worlds(foreign: list[tuple[str, str]], removed: int) -> None:
    assert answers(foreign, removed) == answers([])


def test_test_detects_a_leak() -> None:
    """The same text in the own collection changes scores, so an answer that depended on others' would differ."""
    collection = make()
    put(collection, "a", "printer paper")
    before = told(ask(collection, "printer paper lamp", mode="text"))
    put(collection, "b", "printer lamp")
    assert told(ask(collection, "printer paper lamp", mode="text")) != before


# C04
def test_hash_collision_with_another_collection_is_not_found(printers: Collection) -> None:
    """Who knows the id of a collection could look for such words."""
    other = make("theirs")
    theirs = put(other, "secret", "printer paper lamp")
    terms = [word.term for word in term_statistics.find_query_terms("printer paper", [printers])[printers.pk].words]
    ChunkWords.objects.filter(version=theirs).update(terms=terms)
    before = told(ask(printers, "printer paper", mode="text"))
    assert "secret" not in [word["doc_id"] for word in before]
    ChunkWords.objects.filter(version=theirs).delete()
    assert told(ask(printers, "printer paper", mode="text")) == before


# C52
def test_no_statement_scans_rows_of_others(printers: Collection) -> None:
    other = make("theirs")
    for number in range(5):
        put(other, f"d{number}", "printer paper lamp " * 20)
    with CaptureQueriesContext(connection) as queries:
        ask(printers, "printer paper lamp")
        ask(printers, "printer paper lamp", filter="statusISEMPTY")
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

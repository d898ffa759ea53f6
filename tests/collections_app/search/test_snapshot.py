"""Searches while documents are replaced and deleted: each sees the old or the new content, never both or none."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections

from collections_app.documents import deletion
from collections_app.models import Collection
from collections_app.search.pipeline import SearchResult

from .searches import ask, make, put

pytestmark = pytest.mark.django_db(transaction=True)


def meanwhile(collection: Collection, work: Callable[[], Any]) -> list[SearchResult]:
    """What searches find while the work is done beside them, at least some before, during and after."""
    search_results: list[SearchResult] = []
    failed: list[BaseException] = []
    is_over = threading.Event()

    def looking() -> None:
        try:
            while not is_over.is_set() or len(search_results) < 5:
                search_results.append(ask(collection, "state of the turbine", mode="hybrid"))
        except BaseException as error:
            failed.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=looking)
    thread.start()
    try:
        work()
    finally:
        is_over.set()
        thread.join(60)
    assert failed == []
    return search_results


# C41 C45
def test_search_finds_a_document_once_while_it_is_replaced_again_and_again() -> None:
    collection = make()
    put(collection, "turbine", "The state of the turbine is 0.")

    def replacing() -> None:
        for turn in range(1, 12):
            put(collection, "turbine", f"The state of the turbine is {turn}.")

    for found in meanwhile(collection, replacing):
        (hit,) = found.hits
        assert hit.page_content.startswith("The state of the turbine is")
    assert ask(collection, "turbine").hits[0].page_content.endswith("11.")


# C45
def test_search_sees_a_document_or_not_while_it_is_deleted() -> None:
    collection = make()
    for number in range(6):
        put(collection, f"turbine{number}", f"The state of turbine {number}.")

    def deleting() -> None:
        for number in range(6):
            deletion.delete_document(collection, f"turbine{number}")

    counts = [len(found.hits) for found in meanwhile(collection, deleting)]
    assert counts == sorted(counts, reverse=True)
    assert ask(collection, "turbine").hits == []


def test_all_of_a_search_is_read_in_one_snapshot_that_cannot_write() -> None:
    collection = make()
    put(collection, "turbine", "The state of the turbine.")
    seen_values: list[str] = []

    def noting(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if "chunk" in sql:
            row = connection.connection.execute(
                "SELECT current_setting('transaction_isolation') || current_setting('transaction_read_only')"
            ).fetchone()
            seen_values.append(row[0])
        return result

    with connection.execute_wrapper(noting):
        ask(collection, "turbine")
    assert len(seen_values) >= 4 and set(seen_values) == {"repeatable readon"}

"""A search during replacements and deletions sees either the old or the new content, never both or neither."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections

from collections_app.documents import deletion
from collections_app.models import Collection
from collections_app.search.pipeline import SearchResult

from .searches import add_document, make_collection, run_search

pytestmark = pytest.mark.django_db(transaction=True)


def results_during(collection: Collection, change: Callable[[], Any]) -> list[SearchResult]:
    """The results of searches before, during and after a concurrent change."""
    search_results: list[SearchResult] = []
    errors: list[BaseException] = []
    is_over = threading.Event()

    def search_repeatedly() -> None:
        try:
            while not is_over.is_set() or len(search_results) < 5:
                search_results.append(run_search(collection, "state of the turbine", mode="hybrid"))
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=search_repeatedly)
    thread.start()
    try:
        change()
    finally:
        is_over.set()
        thread.join(60)
    assert errors == []
    return search_results


# C41 C45
def test_search_finds_a_document_once_while_it_is_replaced_repeatedly() -> None:
    collection = make_collection()
    add_document(collection, "turbine", "The state of the turbine is 0.")

    def replace_repeatedly() -> None:
        for number in range(1, 12):
            add_document(collection, "turbine", f"The state of the turbine is {number}.")

    for result in results_during(collection, replace_repeatedly):
        (hit,) = result.hits
        assert hit.page_content.startswith("The state of the turbine is")
    assert run_search(collection, "turbine").hits[0].page_content.endswith("11.")


# C45
def test_search_never_finds_a_document_again_after_its_deletion() -> None:
    collection = make_collection()
    for number in range(6):
        add_document(collection, f"turbine{number}", f"The state of turbine {number}.")

    def delete_repeatedly() -> None:
        for number in range(6):
            deletion.delete_document(collection, f"turbine{number}")

    hit_counts = [len(result.hits) for result in results_during(collection, delete_repeatedly)]
    assert hit_counts == sorted(hit_counts, reverse=True)
    assert run_search(collection, "turbine").hits == []


def test_search_reads_everything_in_one_read_only_snapshot() -> None:
    collection = make_collection()
    add_document(collection, "turbine", "The state of the turbine.")
    transaction_modes: list[str] = []

    def record_statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if "chunk" in sql:
            mode_row = connection.connection.execute(
                "SELECT current_setting('transaction_isolation') || current_setting('transaction_read_only')"
            ).fetchone()
            transaction_modes.append(mode_row[0])
        return result

    with connection.execute_wrapper(record_statement):
        run_search(collection, "turbine")
    assert len(transaction_modes) >= 4 and set(transaction_modes) == {"repeatable readon"}

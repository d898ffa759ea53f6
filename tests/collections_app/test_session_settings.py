"""Database settings of a request end with its transaction, since connections are reused."""

from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from collections_app.metadata.filter import Filter
from collections_app.search import pipeline, vector_retrieval
from collections_app.vectors import vector_indexes
from tests.collections_app.builders import DocumentLoader
from tests.collections_app.vector_rows import run_statement
from tests.tableapi.world import api, data_of, errors_of


def session_settings() -> dict[str, str]:
    """The settings that differ from a new session, without those of the transaction."""
    rows = run_statement("SELECT name, setting FROM pg_settings WHERE source = 'session' OR name LIKE 'servicebase.%'")
    return {name: setting for name, setting in rows if setting and not name.startswith("transaction_")}


def search_in_every_mode(collection: Any) -> None:
    for mode in ("text", "vector", "hybrid"):
        pipeline.search(
            [collection], pipeline.SearchRequest(query="printer", k=3, filter=Filter(), mode=mode, alpha=None)
        )


@pytest.mark.usefixtures("vector_index_cleanup")
def test_requests_leave_the_database_session_unchanged(  # X14
    transactional_db: Any, document_loader: DocumentLoader, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
):
    connection.close()
    initial_settings = session_settings()
    version = document_loader()
    collection = version.document.collection
    search_in_every_mode(collection)
    monkeypatch.setattr(vector_indexes, "INDEX_THRESHOLD", 0)
    monkeypatch.setattr(vector_retrieval, "VISIT_COST", 0.001)
    assert vector_indexes.maintain_indexes()
    search_in_every_mode(collection)
    (device,) = data_of(api(alice).post("sys_db_table", {"name": "device", "label": "Device"}))
    data_of(
        api(alice).post(
            "sys_db_column", {"table": device["sys_id"], "name": "size", "label": "Size", "type": "integer"}
        )
    )
    for user in (alice, bob):
        assert errors_of(api(user).post("sys_db_column", {"table": device["sys_id"], "name": "no name"}))
        api(user).get("device", sysparm_query="size>1^ORDERBYsize")
        api(user).get("device", sysparm_query="size>>1")

    assert session_settings() == initial_settings

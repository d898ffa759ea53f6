"""Fixtures of document collections: a collection, and documents that searches find."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from collections_app.documents import storage
from collections_app.ingest import worker
from collections_app.models import Collection, Version
from collections_app.vectors import vector_indexes
from tests.collections_app.builders import DocumentLoader, make_collection
from tests.collections_app.vector_rows import run_statement
from tests.support.users import make_user, signed_in_client


@pytest.fixture
def vector_index_cleanup(transactional_db: Any) -> Iterator[None]:
    """Drops vector indexes after the test, because a rollback does not."""
    vector_indexes.clear_cache()
    yield
    for (name,) in run_statement("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'chunk_vector_near_%'"):
        run_statement(f"DROP INDEX {name}")


@pytest.fixture
def collection(db: Any) -> Collection:
    """An empty collection with chunks of 200 characters."""
    return make_collection("manuals")


@pytest.fixture
def document_loader(collection: Collection, carl: User) -> DocumentLoader:
    """Loads a text, by default into `collection`, and processes it immediately."""

    def load_document(
        text: str = "The printer is out of paper.", *, target: Collection | None = None, **options: Any
    ) -> Version:
        columns: dict[str, Any] = {
            "filename": "", "format": "text", "metadata": {}, "doc_id": None, "on_duplicate": "skip", **options
        }  # fmt: skip
        store_result = storage.store_document(
            collection=target or collection, data=text.encode(), user_id=carl.pk, takes_lease=True, **columns
        )
        return worker.process_in_request(store_result)

    return load_document


@pytest.fixture
def as_carl(carl: User) -> Client:
    return signed_in_client(carl)


@pytest.fixture
def as_rita(db: Any) -> Client:
    """A browser of a user with the role `itil`."""
    return signed_in_client(make_user("rita", "itil"))

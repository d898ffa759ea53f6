"""A small collection with known documents."""

from typing import Any

import pytest

from collections_app.models import Collection
from tests.collections_app.search.searches import PRINTER_DOCUMENTS, add_document, make_collection


@pytest.fixture
def help_collection(db: Any) -> Collection:
    collection = make_collection()
    for doc_id, text in PRINTER_DOCUMENTS.items():
        add_document(collection, doc_id, text)
    return collection

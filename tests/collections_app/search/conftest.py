"""A collection that is small enough to reason about."""

from typing import Any

import pytest

from collections_app.models import Collection
from tests.collections_app.search.searches import PRINTERS, make, put


@pytest.fixture
def printers(db: Any) -> Collection:
    collection = make()
    for doc_id, text in PRINTERS.items():
        put(collection, doc_id, text)
    return collection

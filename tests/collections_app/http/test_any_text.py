"""Any text as a query or filter leads to passages or a refusal, never to a server error."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collections_app.models import Collection
from tests.collections_app.http.calls import BY_TAG_PATH, SEARCH_PATH, KeyCaller
from tests.collections_app.library import add_document, make_library_collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def collection(manager: KeyCaller) -> Collection:
    manuals = make_library_collection("manuals")
    add_document(manuals, doc_id="one", metadata={"type": "manual"})
    return manuals


TEXTS = st.text(max_size=40) | st.sampled_from(["type=manual", "priority>1", "^", "=", "%", "'", "\\", "typeINa,b"])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(query=TEXTS, filter=TEXTS, mode=st.sampled_from(["hybrid", "text", "vector"]))
def test_any_query_is_searched_or_refused(
    manager: KeyCaller, collection: Collection, query: str, filter: str, mode: str
):
    parameters = {"collection_names": ["manuals"], "query": query, "metadata": filter, "mode": mode}

    assert manager.post(SEARCH_PATH, parameters).status_code in (200, 400)
    assert manager.post(BY_TAG_PATH, {"collection_name": "manuals", "tag_info": filter}).status_code in (200, 400)

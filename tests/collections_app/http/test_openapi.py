"""The description of the endpoints says what they do."""

from typing import Any

import pytest
import schemathesis
from django.test import Client
from drf_spectacular.validation import validate_schema

from accounts.models import User
from collections_app import loading, openapi, views
from collections_app.openapi_parts import PARAMETERS, SCHEMAS
from collections_app.urls import ENDPOINTS
from tests.collections_app.http.calls import (
    BY_TAG,
    DELETE,
    DELETE_DOCUMENT,
    EIGHT,
    LIST,
    LOAD_TEXT,
    MANAGED,
    RELEVANT,
    Caller,
    by_key,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def schema() -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/api/schema").json()
    return found


def test_the_document_is_valid_and_has_each_endpoint_once(schema: dict[str, Any]):
    validate_schema(schema)
    paths = [path for path in schema["paths"] if "collection" in path or path in EIGHT]
    assert set(EIGHT) <= set(paths) and len(paths) == len({path.rstrip("/") for path in paths})
    ids = [operation["operationId"] for found in schema["paths"].values() for operation in found.values()]
    assert len(ids) == len(set(ids))


def test_what_is_for_everybody_stands_before_the_single_tables(carl: User):
    first = ["Credentials", "Table API", "Document collections", "Management of collections"]
    seen = by_key(carl).get("/api/schema").json()
    used = {tag for found in seen["paths"].values() for operation in found.values() for tag in operation["tags"]}

    assert [each["name"] for each in seen["tags"]] == first
    assert {tag for tag in used if not tag.startswith("Table ") or tag in first} == set(first)


def test_the_methods_are_those_that_are_taken(schema: dict[str, Any]):
    for name, view in ENDPOINTS.items():
        assert set(schema["paths"][f"/{name}"]) == set(view.http_method_names) - {"head"}


def test_every_parameter_of_a_view_is_described(schema: dict[str, Any]):
    for name, view in ENDPOINTS.items():
        for operation in schema["paths"][f"/{name}"].values():
            described = {each["name"] for each in operation.get("parameters", ())}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                described |= set(content["schema"]["properties"])
            known = set(view.known) | ({"file", *loading.KNOWN} if view is views.LoadDocument else set())
            assert described == known, name


def test_every_error_is_described(schema: dict[str, Any]):
    reads = {"200", "400", "401", "404", "414", "429", "503"}
    bodies = {"408", "411", "413", "415"}
    found = {path: {method: set(each["responses"]) for method, each in schema["paths"][path].items()} for path in EIGHT}

    assert found[RELEVANT] == {"get": reads, "post": reads | bodies | {"422"}}
    assert found[LOAD_TEXT]["post"] == reads | bodies | {"201", "202", "403", "409", "422"}
    assert found[DELETE]["delete"] == reads | {"403"}
    for path, operations in schema["paths"].items():
        if path.startswith(MANAGED):
            assert all({"401", "404", "503"} <= set(each["responses"]) for each in operations.values()), path


def conforms(answer: Any, name: str) -> None:
    """Every field that is promised, and no other."""
    items = answer.json() if isinstance(answer.json(), list) else [answer.json()]
    assert items
    for item in items:
        assert list(item) == SCHEMAS[name]["required"], name


def test_answers_are_as_described(manager: Caller):
    conforms(
        manager.post(LOAD_TEXT, {"text": "The toner is red.", "doc_id": "one"}, collection_name="manuals"), "Loaded"
    )
    conforms(manager.get(RELEVANT, collection_names="manuals", query="toner"), "Passage")
    conforms(manager.get(BY_TAG, collection_name="manuals"), "Content")
    conforms(manager.get(LIST), "Collection")
    conforms(manager.delete(DELETE_DOCUMENT, collection_name="manuals", id_value="one"), "DeletedDocument")
    conforms(manager.delete(DELETE, collection_name="manuals"), "DeletedCollection")


def test_no_parameter_chooses_a_provider():  # C28
    assert not [name for name in PARAMETERS if "model" in name or "url" in name or "provider" in name]
    assert not [view for view in ENDPOINTS.values() if set(view.known) - set(PARAMETERS)]


def test_schemathesis_understands_every_operation(schema: dict[str, Any]):
    found: list[Any] = list(schemathesis.openapi.from_dict(schema).get_all_operations())

    assert all(isinstance(each, schemathesis.core.result.Ok) for each in found)
    assert {each.ok().path for each in found} >= set(openapi.PATHS)

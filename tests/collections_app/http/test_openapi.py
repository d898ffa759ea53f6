"""The OpenAPI description matches the endpoints."""

from typing import Any

import pytest
import schemathesis
from django.test import Client
from drf_spectacular.validation import validate_schema
from rest_framework.serializers import Serializer

from accounts.models import User
from collections_app.http import endpoints, load_requests, serializers
from collections_app.models import Collection, Document, Version
from collections_app.urls import ENDPOINTS
from tests.collections_app.http.calls import (
    BY_TAG,
    DELETE,
    DELETE_DOCUMENT,
    EIGHT,
    LIST,
    LOAD_FILE,
    LOAD_TEXT,
    MANAGED,
    RELEVANT,
    Caller,
    by_key,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def schema() -> dict[str, Any]:
    body: dict[str, Any] = Client().get("/api/schema").json()
    return body


def test_document_is_valid_and_has_each_endpoint_once(schema: dict[str, Any]):
    validate_schema(schema)
    paths = [path for path in schema["paths"] if "collection" in path or path in EIGHT]
    assert set(EIGHT) <= set(paths) and len(paths) == len({path.rstrip("/") for path in paths})
    ids = [operation["operationId"] for found in schema["paths"].values() for operation in found.values()]
    assert len(ids) == len(set(ids))


def test_general_endpoints_come_before_tables(carl: User):
    first = ["Credentials", "Table API", "Document collections", "Collection management"]
    body = by_key(carl).get("/api/schema").json()
    used = {tag for path in body["paths"].values() for operation in path.values() for tag in operation["tags"]}

    assert [tag["name"] for tag in body["tags"]] == first
    assert {tag for tag in used if not tag.startswith("Table ") or tag in first} == set(first)


def test_described_methods_are_the_allowed_ones(schema: dict[str, Any]):
    for name, view in ENDPOINTS.items():
        assert set(schema["paths"][f"/{name}"]) == set(view.http_method_names) - {"head"}


def test_every_parameter_of_a_view_is_described(schema: dict[str, Any]):
    for name, view in ENDPOINTS.items():
        for operation in schema["paths"][f"/{name}"].values():
            described = {parameter["name"] for parameter in operation.get("parameters", ())}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                body = schema["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                assert body["additionalProperties"] is False
                described |= set(body["properties"])
            known = set(view.known) | (
                {"file", *load_requests.PARAMETER_NAMES} if view is endpoints.LoadDocument else set()
            )
            assert described == known, name


def test_every_error_is_described(schema: dict[str, Any]):
    reads = {"200", "400", "401", "404", "414", "422", "429", "503"}
    bodies = {"408", "411", "413", "415"}
    result = {
        path: {method: set(operation["responses"]) for method, operation in schema["paths"][path].items()}
        for path in EIGHT
    }

    assert result[RELEVANT] == {"get": reads, "post": reads | bodies}
    assert result[LOAD_TEXT]["post"] == reads | bodies | {"201", "202", "403", "409"}
    assert result[DELETE]["delete"] == reads | {"403"}
    for path, operations in schema["paths"].items():
        if path.startswith(MANAGED):
            assert all({"401", "404", "503"} <= set(operation["responses"]) for operation in operations.values()), path


def conforms(response: Any, serializer: type[Serializer[Any]]) -> None:
    """Every field that is described, and no other."""
    items = response.json() if isinstance(response.json(), list) else [response.json()]
    assert items
    for item in items:
        assert list(item) == list(serializer().fields), serializer


def test_responses_match_the_description(manager: Caller):
    conforms(
        manager.post(LOAD_TEXT, {"text": "The toner is red.", "doc_id": "one"}, collection_name="manuals"),
        serializers.LoadedSerializer,
    )
    conforms(manager.get(RELEVANT, collection_names="manuals", query="toner"), serializers.PassageSerializer)
    conforms(manager.get(BY_TAG, collection_name="manuals"), serializers.ContentSerializer)
    conforms(manager.get(LIST), serializers.CollectionSerializer)
    conforms(
        manager.delete(DELETE_DOCUMENT, collection_name="manuals", id_value="one"),
        serializers.DeletedDocumentSerializer,
    )
    conforms(manager.delete(DELETE, collection_name="manuals"), serializers.DeletedCollectionSerializer)


HEADERS = {"ETag", "X-Total-Count", "X-Next-Offset", "X-Search-Mode"}


def declared(schema: dict[str, Any], method: str, path: str, at: str) -> set[str]:
    """The names of what the description says that this request takes there."""
    return {
        parameter["name"] for parameter in schema["paths"][path][method].get("parameters", ()) if parameter["in"] == at
    }


def test_answers_under_management_have_the_headers_that_are_declared(manager: Caller, schema: dict[str, Any]):
    one, document = f"{MANAGED}/{{sys_id}}", f"{MANAGED}/{{sys_id}}/documents/{{document}}"
    response = manager.post(MANAGED, {"collection_name": "manuals"})
    manager.post(MANAGED, {"collection_name": "other"})
    for doc_id in ("one", "two"):
        manager.load(f"The toner of {doc_id}.", doc_id=doc_id)
    ids = {"sys_id": response.json()["sys_id"], "document": Document.objects.get(doc_id="one").pk}

    def sent(method: str, path: str, body: Any = None, **query: Any) -> set[str]:
        response = manager.send(method.upper(), path.format(**ids), body, **query)
        described = schema["paths"][path][method]["responses"][str(response.status_code)]
        assert HEADERS & set(described.get("headers", ())) == HEADERS & set(response.headers), (method, path)
        return HEADERS & set(response.headers)

    assert response["ETag"] and "ETag" in schema["paths"][MANAGED]["post"]["responses"]["201"]["headers"]
    for path in (MANAGED, f"{one}/documents"):
        assert sent("get", path, limit=1) == {"X-Total-Count", "X-Next-Offset"}
    for path, change in ((one, {"alpha": 0.5}), (document, {"metadata": {}})):
        assert sent("get", path) == sent("patch", path, change) == {"ETag"}
        assert declared(schema, "patch", path, "header") == declared(schema, "delete", path, "header") == {"If-Match"}
        for method in ("patch", "delete"):
            assert {"400", "412"} <= set(schema["paths"][path][method]["responses"])
    assert sent("post", f"{document}/reload") == set()
    Version.objects.update(state="failed")
    assert sent("post", f"{document}/retry") == {"ETag"}
    assert sent("delete", document) == sent("delete", one) == set()


@pytest.mark.parametrize("query", [{"limit": "0"}, {"ordering": "zz"}, {"foo": "1"}, {"offset": "-1"}])
def test_refusals_of_lists_are_declared(manager: Caller, schema: dict[str, Any], query: dict[str, str]):
    created = manager.post(MANAGED, {"collection_name": "manuals"}).json()["sys_id"]
    for path in (MANAGED, f"{MANAGED}/{{sys_id}}/documents"):
        response = manager.get(path.format(sys_id=created), **query)
        assert response.status_code == 400 and "400" in schema["paths"][path]["get"]["responses"]


@pytest.mark.parametrize(
    ("path", "body", "query"),
    [
        (
            LOAD_TEXT,
            {"text": "New."},
            {"doc_id": "a", "metadata": '{"n": 1}', "on_duplicate": "error", "wait": "false"},
        ),
        (LOAD_FILE, None, {"doc_id": "a", "metadata": '{"n": 1}', "on_duplicate": "error", "wait": "false"}),
        (
            f"{MANAGED}/{{sys_id}}/documents",
            None,
            {"doc_id": "a", "metadata": '{"n": 1}', "on_duplicate": "error", "wait": "false"},
        ),
        (
            RELEVANT,
            {"query": "toner", "collection_names": ["manuals"]},
            {"k": 1, "metadata": "n=2", "mode": "text", "alpha": "0.5"},
        ),
        (f"{MANAGED}/{{sys_id}}/search", {"query": "toner"}, {"k": 1, "metadata": "n=2", "mode": "text", "alpha": 1}),
        (BY_TAG, {"collection_name": "manuals"}, {"tag_info": "n=2", "limit": 1, "offset": 0}),
    ],
)
def test_declared_query_parameters_work_beside_a_body(
    manager: Caller, schema: dict[str, Any], path: str, body: Any, query: dict[str, Any]
):
    manager.load("The toner.", doc_id="there", metadata={"n": 2})
    target = path.format(sys_id=Collection.objects.get().pk)
    named = {"collection_name": "manuals"} if path in (LOAD_TEXT, LOAD_FILE) else {}
    assert declared(schema, "post", path, "query") == {*query, *named}

    if body is None:
        response = manager.upload(b"New.", "a.txt", to=target, **named, **query)
    else:
        response = manager.post(target, body, **named, **query)
    if "wait" in query:
        assert (response.status_code, response.json()["doc_id"], response.json()["metadata"]) == (202, "a", {"n": 1})
    else:
        assert [document["doc_id"] for document in response.json()] == ["there"]


def test_no_default_in_the_query_string_contradicts_a_body(schema: dict[str, Any]):
    for path in (*EIGHT, f"{MANAGED}/{{sys_id}}/search", f"{MANAGED}/{{sys_id}}/documents"):
        for parameter in schema["paths"][path].get("post", {}).get("parameters", ()):
            assert "default" not in parameter["schema"], (path, parameter["name"])


def test_no_parameter_chooses_a_provider():  # C28
    names = {name for view in ENDPOINTS.values() for name in view.known} | set(load_requests.PARAMETER_NAMES)
    assert {"query", "text", "doc_id"} <= names
    assert not [name for name in names if "model" in name or "url" in name or "provider" in name]


def test_schemathesis_loads_every_operation(schema: dict[str, Any]):
    result: list[Any] = list(schemathesis.openapi.from_dict(schema).get_all_operations())

    assert all(isinstance(operation, schemathesis.core.result.Ok) for operation in result)
    assert {operation.ok().path for operation in result} >= set(EIGHT)

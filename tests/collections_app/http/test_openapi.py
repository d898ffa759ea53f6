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
    API_PATH,
    BY_TAG_PATH,
    COLLECTION_LIST_PATH,
    DELETE_COLLECTION_PATH,
    DELETE_DOCUMENT_PATH,
    ENDPOINT_PATHS,
    LOAD_FILE_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    KeyCaller,
    make_key_caller,
)

ARRANGEMENT = {
    "collapse": "true", "group_by": "document", "context": 0, "max_characters": 1000, "min_score": 0, "rerank": "false",
}  # fmt: skip
pytestmark = pytest.mark.django_db


@pytest.fixture
def schema() -> dict[str, Any]:
    body: dict[str, Any] = Client().get("/api/schema").json()
    return body


def test_document_is_valid_and_has_each_endpoint_once(schema: dict[str, Any]):
    validate_schema(schema)
    paths = [path for path in schema["paths"] if "collection" in path or path in ENDPOINT_PATHS]
    assert set(ENDPOINT_PATHS) <= set(paths) and len(paths) == len({path.rstrip("/") for path in paths})
    operation_ids = [operation["operationId"] for path in schema["paths"].values() for operation in path.values()]
    assert len(operation_ids) == len(set(operation_ids))


def test_general_endpoints_come_before_tables(carl: User):
    expected_tags = ["Credentials", "Table API", "Document collections", "Collection management"]
    body = make_key_caller(carl).get("/api/schema").json()
    used_tags = {tag for path in body["paths"].values() for operation in path.values() for tag in operation["tags"]}

    tags = [tag["name"] for tag in body["tags"]]
    assert tags[:4] == expected_tags and set(tags) == used_tags
    is_product_tag = [tag.startswith("Product table ") for tag in tags[4:]]
    assert is_product_tag == sorted(is_product_tag) and set(is_product_tag) == {False, True}
    assert [tag for group in body["x-tagGroups"] for tag in group["tags"]] == tags


def test_described_methods_equal_the_allowed_methods(schema: dict[str, Any]):
    for name, view in ENDPOINTS.items():
        assert set(schema["paths"][f"/{name}"]) == {method.lower() for method in view().allowed_methods}


def test_every_parameter_of_a_view_is_described(schema: dict[str, Any]):
    for name, view in ENDPOINTS.items():
        for operation in schema["paths"][f"/{name}"].values():
            described_parameters = {parameter["name"] for parameter in operation.get("parameters", ())}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                body = schema["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                assert body["additionalProperties"] is False
                described_parameters |= set(body["properties"])
            known_parameters = set(view.parameter_names) | (
                {"file", *load_requests.PARAMETER_NAMES} if view is endpoints.LoadDocument else set()
            )
            assert described_parameters == known_parameters, name


def test_every_error_is_described(schema: dict[str, Any]):
    read_statuses = {"200", "400", "401", "404", "414", "422", "429", "503"}
    body_statuses = {"408", "411", "413", "415"}
    statuses = {
        path: {method: set(operation["responses"]) for method, operation in schema["paths"][path].items()}
        for path in ENDPOINT_PATHS
    }

    assert statuses[SEARCH_PATH] == {"get": read_statuses, "post": read_statuses | body_statuses}
    assert statuses[LOAD_TEXT_PATH]["post"] == read_statuses | body_statuses | {"201", "202", "403", "409"}
    assert statuses[DELETE_COLLECTION_PATH]["delete"] == read_statuses | {"403"}
    for path, operations in schema["paths"].items():
        if path.startswith(API_PATH):
            assert all({"401", "404", "503"} <= set(operation["responses"]) for operation in operations.values()), path


def check_conformance(response: Any, serializer: type[Serializer[Any]]) -> None:
    """Checks that a response has exactly the described fields."""
    items = response.json() if isinstance(response.json(), list) else [response.json()]
    assert items
    for item in items:
        assert list(item) == list(serializer().fields), serializer


def test_responses_match_the_description(manager: KeyCaller):
    check_conformance(
        manager.post(LOAD_TEXT_PATH, {"text": "The toner is red.", "doc_id": "one"}, collection_name="manuals"),
        serializers.LoadResponseSerializer,
    )
    check_conformance(
        manager.get(SEARCH_PATH, collection_names="manuals", query="toner"), serializers.PassageSerializer
    )
    check_conformance(manager.get(BY_TAG_PATH, collection_name="manuals"), serializers.ContentSerializer)
    check_conformance(manager.get(COLLECTION_LIST_PATH), serializers.CollectionSerializer)
    check_conformance(
        manager.delete(DELETE_DOCUMENT_PATH, collection_name="manuals", id_value="one"),
        serializers.DeletedDocumentSerializer,
    )
    check_conformance(
        manager.delete(DELETE_COLLECTION_PATH, collection_name="manuals"), serializers.DeletedCollectionSerializer
    )


DECLARED_HEADERS = {"ETag", "X-Total-Count", "X-Next-Offset", "X-Search-Mode"}


def declared_parameters(schema: dict[str, Any], method: str, path: str, location: str) -> set[str]:
    """The names of the described parameters at this location."""
    return {
        parameter["name"]
        for parameter in schema["paths"][path][method].get("parameters", ())
        if parameter["in"] == location
    }


def test_management_responses_have_the_declared_headers(manager: KeyCaller, schema: dict[str, Any]):
    collection_path, document_path = f"{API_PATH}/{{sys_id}}", f"{API_PATH}/{{sys_id}}/documents/{{document}}"
    response = manager.post(API_PATH, {"collection_name": "manuals"})
    manager.post(API_PATH, {"collection_name": "other"})
    for doc_id in ("one", "two"):
        manager.load(f"The toner of {doc_id}.", doc_id=doc_id)
    path_parameters = {"sys_id": response.json()["sys_id"], "document": Document.objects.get(doc_id="one").pk}

    def check_headers(method: str, path: str, body: Any = None, **query: Any) -> set[str]:
        response = manager.send(method.upper(), path.format(**path_parameters), body, **query)
        declared_response = schema["paths"][path][method]["responses"][str(response.status_code)]
        assert DECLARED_HEADERS & set(declared_response.get("headers", ())) == DECLARED_HEADERS & set(
            response.headers
        ), (method, path)
        return DECLARED_HEADERS & set(response.headers)

    assert response["ETag"] and "ETag" in schema["paths"][API_PATH]["post"]["responses"]["201"]["headers"]
    for path in (API_PATH, f"{collection_path}/documents"):
        assert check_headers("get", path, limit=1) == {"X-Total-Count", "X-Next-Offset"}
    for path, body in ((collection_path, {"alpha": 0.5}), (document_path, {"metadata": {}})):
        assert check_headers("get", path) == check_headers("patch", path, body) == {"ETag"}
        assert (
            declared_parameters(schema, "patch", path, "header")
            == declared_parameters(schema, "delete", path, "header")
            == {"If-Match"}
        )
        for method in ("patch", "delete"):
            assert {"400", "412"} <= set(schema["paths"][path][method]["responses"])
    assert check_headers("post", f"{document_path}/reload") == set()
    Version.objects.update(state="failed")
    assert check_headers("post", f"{document_path}/retry") == {"ETag"}
    assert check_headers("delete", document_path) == check_headers("delete", collection_path) == set()


@pytest.mark.parametrize("query", [{"limit": "0"}, {"ordering": "zz"}, {"foo": "1"}, {"offset": "-1"}])
def test_refusals_of_lists_are_declared(manager: KeyCaller, schema: dict[str, Any], query: dict[str, str]):
    sys_id = manager.post(API_PATH, {"collection_name": "manuals"}).json()["sys_id"]
    for path in (API_PATH, f"{API_PATH}/{{sys_id}}/documents"):
        response = manager.get(path.format(sys_id=sys_id), **query)
        assert response.status_code == 400 and "400" in schema["paths"][path]["get"]["responses"]


@pytest.mark.parametrize(
    ("path", "body", "query"),
    [
        (
            LOAD_TEXT_PATH,
            {"text": "New."},
            {"doc_id": "a", "metadata": '{"n": 1}', "on_duplicate": "error", "wait": "false"},
        ),
        (LOAD_FILE_PATH, None, {"doc_id": "a", "metadata": '{"n": 1}', "on_duplicate": "error", "wait": "false"}),
        (
            f"{API_PATH}/{{sys_id}}/documents",
            None,
            {"doc_id": "a", "metadata": '{"n": 1}', "on_duplicate": "error", "wait": "false"},
        ),
        (
            SEARCH_PATH,
            {"query": "toner", "collection_names": ["manuals"]},
            {"k": 1, "metadata": "n=2", "mode": "text", "alpha": "0.5", **ARRANGEMENT},
        ),
        (
            f"{API_PATH}/{{sys_id}}/search",
            {"query": "toner"},
            {"k": 1, "metadata": "n=2", "mode": "text", "alpha": 1, **ARRANGEMENT},
        ),
        (BY_TAG_PATH, {"collection_name": "manuals"}, {"tag_info": "n=2", "limit": 1, "offset": 0}),
    ],
)
def test_declared_query_parameters_work_together_with_a_body(
    manager: KeyCaller, schema: dict[str, Any], path: str, body: Any, query: dict[str, Any]
):
    manager.load("The toner.", doc_id="there", metadata={"n": 2})
    url = path.format(sys_id=Collection.objects.get().pk)
    parameters = {"collection_name": "manuals"} if path in (LOAD_TEXT_PATH, LOAD_FILE_PATH) else {}
    assert declared_parameters(schema, "post", path, "query") == {*query, *parameters}

    if body is None:
        response = manager.upload(b"New.", "a.txt", path=url, **parameters, **query)
    else:
        response = manager.post(url, body, **parameters, **query)
    if "wait" in query:
        assert (response.status_code, response.json()["doc_id"], response.json()["metadata"]) == (202, "a", {"n": 1})
    else:
        assert [document["doc_id"] for document in response.json()] == ["there"]


def test_described_defaults_do_not_contradict_a_body(schema: dict[str, Any]):
    for path in (*ENDPOINT_PATHS, f"{API_PATH}/{{sys_id}}/search", f"{API_PATH}/{{sys_id}}/documents"):
        for parameter in schema["paths"][path].get("post", {}).get("parameters", ()):
            assert "default" not in parameter["schema"], (path, parameter["name"])


def test_no_parameter_chooses_a_provider():  # C28
    names = {name for view in ENDPOINTS.values() for name in view.parameter_names} | set(load_requests.PARAMETER_NAMES)
    assert {"query", "text", "doc_id"} <= names
    assert not [name for name in names if "model" in name or "url" in name or "provider" in name]


def test_schemathesis_loads_every_operation(schema: dict[str, Any]):
    results: list[Any] = list(schemathesis.openapi.from_dict(schema).get_all_operations())

    assert all(isinstance(result, schemathesis.core.result.Ok) for result in results)
    assert {result.ok().path for result in results} >= set(ENDPOINT_PATHS)

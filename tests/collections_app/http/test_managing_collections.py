"""/api/collections: collections and their settings."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from collections_app import embed
from collections_app.models import Collection, EmbeddingSpace, Version
from tests.collections_app.http.calls import API_PATH, LOAD_TEXT_PATH, KeyCaller, error_of, make_key_caller
from tests.collections_app.library import make_library_collection, role_id
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
RESPONSE_FIELDS = {
    "sys_id", "collection_name", "chunk_size", "chunk_overlap", "alpha", "language", "synonyms", "doc_id_from_filename",
    "reader_roles", "writer_roles",
    "documents_count", "chunks_count", "documents_by_status", "embedding_model", "embedding_model_choice",
    "embedding_progress", "next_embedding_model", "created_at", "updated_at", "rights",
}  # fmt: skip


def collection_path(collection: Collection, suffix: str = "") -> str:
    return f"{API_PATH}/{collection.pk}{suffix}"


def test_collection_is_created_with_settings(manager: KeyCaller, carl: User):
    role_id("crew")
    request_body = {
        "collection_name": "Cafe\u0301", "chunk_size": 500, "chunk_overlap": 50, "alpha": 0.5, "language": "german",
        "reader_roles": ["crew", role_id("crew")], "writer_roles": ["collection_admin"],
    }  # fmt: skip
    response = manager.post(API_PATH, request_body)
    body = response.json()

    assert response.status_code == 201 and set(body) == RESPONSE_FIELDS and response["ETag"]
    assert body.items() >= {
        **request_body, "collection_name": "Caf\u00e9", "reader_roles": ["crew"], "rights": ["manage", "read", "write"]
    }.items()  # fmt: skip
    stored_collection = Collection.objects.get()
    assert (stored_collection.reader_roles, stored_collection.text_configuration, stored_collection.sys_created_by) == (
        [role_id("crew")],
        "german",
        carl.pk,
    )
    assert manager.get(collection_path(stored_collection)).json() == body and manager.get(API_PATH).json() == [body]


def test_collection_name_is_unique(manager: KeyCaller):
    make_library_collection("manuals", writers=("crew",))

    assert error_of(manager.post(API_PATH, {"collection_name": "manuals"})) == (
        409,
        "name_taken",
        "collection_name",
    )
    other_collection = make_library_collection("other")
    refusal = manager.patch(collection_path(other_collection), {"collection_name": "manuals"})
    assert error_of(refusal) == (409, "name_taken", "collection_name") and other_collection.refreshed().name == "other"


def test_permissions_to_create_change_and_delete(stranger: KeyCaller, manager: KeyCaller):
    collection = make_library_collection("manuals", readers=("crew",), writers=("chiefs",))
    reader, writer = make_key_caller(make_user("dora", "crew")), make_key_caller(make_user("emil", "chiefs"))
    requests: list[Any] = [
        lambda caller: caller.patch(collection_path(collection), {"alpha": 0.1}),
        lambda caller: caller.delete(collection_path(collection)),
        lambda caller: caller.post(collection_path(collection, "/reembed")),
    ]
    for send_request in requests:
        assert error_of(send_request(stranger))[:2] == error_of(send_request(manager))[:2] == (404, "not_found")
        assert error_of(send_request(reader))[:2] == error_of(send_request(writer))[:2] == (403, "access_denied")
    for caller in (stranger, reader, writer):
        assert error_of(caller.post(API_PATH, {"collection_name": "new"}))[:2] == (403, "access_denied")
    assert (
        reader.get(collection_path(collection)).json()["rights"],
        writer.get(collection_path(collection)).json()["rights"],
    ) == (
        ["read"],
        ["read", "write"],
    )
    assert stranger.get(collection_path(collection)).content == stranger.get(f"{API_PATH}/1").content  # C02
    assert stranger.get(API_PATH).json() == []


def test_settings_are_changed_one_by_one(manager: KeyCaller):
    collection = make_library_collection("manuals")
    initial_response = manager.get(collection_path(collection))
    response = manager.patch(collection_path(collection), {"alpha": 0.25, "reader_roles": ["itil"]})

    assert response.status_code == 200 and response["ETag"] != initial_response["ETag"]
    stored_collection = collection.refreshed()
    assert (stored_collection.alpha, stored_collection.reader_roles, stored_collection.chunk_size) == (
        0.25,
        [role_id("itil")],
        1000,
    )
    assert stored_collection.history.count() == 2


def test_if_match_prevents_lost_updates(manager: KeyCaller):
    collection = make_library_collection("manuals")
    etag = manager.get(collection_path(collection))["ETag"]

    assert manager.patch(collection_path(collection), {"alpha": 0.25}, headers={"If-Match": etag}).status_code == 200
    stale_response = manager.patch(collection_path(collection), {"alpha": 0.75}, headers={"If-Match": etag})
    assert error_of(stale_response)[:2] == (412, "stale") and collection.refreshed().alpha == 0.25
    for malformed_tag in ("", "x", '"x', "W/x", '"a",'):
        response = manager.patch(collection_path(collection), {"alpha": 0.75}, headers={"If-Match": malformed_tag})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "If-Match"), malformed_tag
    assert manager.patch(collection_path(collection), {"alpha": 0.5}, headers={"If-Match": "*"}).status_code == 200


def test_removing_ones_own_write_access_is_reported(manager: KeyCaller):
    collection = make_library_collection("manuals")
    role_id("crew")
    response = manager.patch(collection_path(collection), {"writer_roles": ["crew"]})

    assert response.json()["rights"] == [] and response.json()["writer_roles"] == ["crew"]
    assert manager.get(collection_path(collection)).status_code == 404


def test_language_can_be_set_for_new_documents(manager: KeyCaller):
    collection = make_library_collection("manuals")
    manager.load("The toner is on the shelf, and it is red.")
    assert manager.patch(collection_path(collection), {"language": "french"}).status_code == 200
    manager.load("The toner is on the table, and it is blue.")

    languages = Version.objects.order_by("pk").values_list("text_configuration", flat=True)
    assert list(languages) == ["english", "french"]


def test_deletion_response_counts_deleted_documents(manager: KeyCaller):
    manager.load("A text.")
    response = manager.delete(collection_path(Collection.objects.get()))

    assert response.json()["deleted_documents"] == 1 and manager.get(API_PATH).json() == []


def test_list_supports_filter_order_and_limit(manager: KeyCaller):
    for name in ("b", "a", "ab", "c"):
        make_library_collection(name)

    def list_names(**query: Any) -> list[str]:
        return [collection["collection_name"] for collection in manager.get(API_PATH, **query).json()]

    assert list_names() == ["a", "ab", "b", "c"]
    assert list_names(collection_name="A") == ["a", "ab"]
    assert list_names(ordering="-collection_name", limit=2) == ["c", "b"]
    page = manager.get(API_PATH, limit=3)
    assert (page["X-Total-Count"], page["X-Next-Offset"]) == ("4", "3")
    assert list_names(limit=3, offset=3) == ["c"] and "X-Next-Offset" not in manager.get(API_PATH, offset=3)


@pytest.mark.parametrize(
    ("query", "expected_error"),
    [
        ({"ordering": "secret"}, (400, "invalid_parameter", "ordering")),
        ({"limit": "0"}, (400, "invalid_parameter", "limit")),
        ({"limit": "501"}, (400, "invalid_parameter", "limit")),
        ({"offset": "-1"}, (400, "invalid_parameter", "offset")),
        ({"offset": "abc"}, (400, "invalid_parameter", "offset")),
        ({"collection_nam": "a"}, (400, "unknown_field", "collection_nam")),
    ],
)
def test_invalid_list_parameter_is_refused(manager: KeyCaller, query: dict[str, str], expected_error: Any):
    response = manager.get(API_PATH, **query)

    assert error_of(response) == expected_error
    if "ordering" in query:
        assert "-collection_name" in response.json()["errors"][0]["message"]


def test_all_invalid_settings_are_reported(manager: KeyCaller):
    refusal = manager.post(API_PATH, {"collection_name": "a", "alpha": 2, "chunk_size": 1, "language": "klingon"})

    assert {error["field"] for error in refusal.json()["errors"]} == {"alpha", "chunk_size", "language"}


def test_list_runs_a_constant_number_of_queries(manager: KeyCaller):
    def count_statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert manager.get(API_PATH).status_code == 200
        return len([query for query in queries if '"document' in query["sql"] or '"sys_role"' in query["sql"]])

    make_library_collection("a", readers=("crew",))
    initial_count = count_statements()
    for number in range(10):
        make_library_collection(f"more {number}", readers=(f"role {number}",))
    assert count_statements() == initial_count <= 5


def test_reembedding_uses_the_configured_model(manager: KeyCaller):
    collection = make_library_collection("manuals")
    other_space = EmbeddingSpace.objects.create(provider="openai", model="other", dimensions=8)
    Collection.objects.filter(pk=collection.pk).update(space=other_space)
    response = manager.post(collection_path(collection, "/reembed"))

    assert response.status_code == 202
    assert response.json()["embedding_model"] == "other"
    assert response.json()["next_embedding_model"] == embed.default_space().model


def test_search_equals_the_search_endpoint(manager: KeyCaller):
    manager.load("The toner is red.", metadata={"type": "manual"})
    collection = Collection.objects.get()
    parameters = {"query": "toner", "k": 3, "metadata": "type=manual", "mode": "hybrid", "alpha": 0.4}
    response = manager.post(collection_path(collection, "/search"), parameters)

    expected_response = manager.post("/get_relevant_documents", {**parameters, "collection_names": ["manuals"]})
    assert response.content == expected_response.content and len(response.json()) == 1
    assert error_of(manager.post(collection_path(collection, "/search"), {"query": ""})) == (
        400,
        "invalid_parameter",
        "query",
    )
    assert (
        error_of(manager.post(collection_path(collection, "/search"), {**parameters, "collection_names": ["x"]}))[1]
        == "unknown_field"
    )


def test_session_requires_a_csrf_token(carl: User):
    collection = make_library_collection("manuals")
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(carl)
    assert browser.get(API_PATH).status_code == 200
    refusal: Any = browser.patch(collection_path(collection), '{"alpha": 0.1}', content_type="application/json")
    assert error_of(refusal)[:2] == (403, "access_denied") and collection.refreshed().alpha == 0.7

    browser.get("/account/")  # a page with a form sets the CSRF cookie
    csrf_headers = {"X-CSRFToken": browser.cookies["servicebase_csrf"].value}
    response = browser.patch(
        collection_path(collection), '{"alpha": 0.1}', content_type="application/json", headers=csrf_headers
    )
    assert response.status_code == 200 and collection.refreshed().sys_updated_by == carl.pk
    form = {"file": b"x", "csrfmiddlewaretoken": csrf_headers["X-CSRFToken"]}
    form_refusal: Any = browser.post(collection_path(collection, "/documents"), form)
    assert error_of(form_refusal)[:2] == (403, "access_denied"), (
        "the token must be in a header, because the body is not read for it"
    )


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_missing_credentials_are_401(method: str, db: Any):  # C01
    for path in (
        API_PATH,
        f"{API_PATH}/1",
        f"{API_PATH}/1/documents",
        f"{API_PATH}/1/documents/1",
        f"{API_PATH}/1/search",
    ):
        assert Client().generic(method, path, b"{", content_type="application/json").status_code == 401


def test_changed_settings_apply_only_to_later_loads(manager: KeyCaller):
    manager.load("A text of forty characters or so it is. " * 30)
    collection = Collection.objects.get()
    initial_count = manager.get(collection_path(collection)).json()["chunks_count"]
    manager.patch(collection_path(collection), {"chunk_size": 200, "chunk_overlap": 0})

    assert manager.get(collection_path(collection)).json()["chunks_count"] == initial_count
    response = manager.post(LOAD_TEXT_PATH, {"text": "Another text. " * 100}, collection_name="manuals")
    assert response.json()["chunks_count"] > initial_count

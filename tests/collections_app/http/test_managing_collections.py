"""/api/collections: collections and their settings."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from collections_app import embed
from collections_app.models import Collection, EmbeddingSpace, Version
from tests.collections_app.http.calls import LOAD_TEXT, MANAGED, Caller, by_key, failed
from tests.collections_app.library import make, role
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
SHOWN = {
    "sys_id", "collection_name", "chunk_size", "chunk_overlap", "alpha", "language", "reader_roles", "writer_roles",
    "documents_count", "chunks_count", "documents_by_status", "embedding_model", "next_embedding_model", "created_at",
    "updated_at", "rights",
}  # fmt: skip


def one(collection: Collection, rest: str = "") -> str:
    return f"{MANAGED}/{collection.pk}{rest}"


def test_collection_is_created_with_settings(manager: Caller, carl: User):
    role("crew")
    sent = {
        "collection_name": "Cafe\u0301", "chunk_size": 500, "chunk_overlap": 50, "alpha": 0.5, "language": "german",
        "reader_roles": ["crew", role("crew")], "writer_roles": ["collection_admin"],
    }  # fmt: skip
    response = manager.post(MANAGED, sent)
    body = response.json()

    assert response.status_code == 201 and set(body) == SHOWN and response["ETag"]
    assert body.items() >= {
        **sent, "collection_name": "Caf\u00e9", "reader_roles": ["crew"], "rights": ["manage", "read", "write"]
    }.items()  # fmt: skip
    stored = Collection.objects.get()
    assert (stored.reader_roles, stored.text_configuration, stored.sys_created_by) == (
        [role("crew")],
        "german",
        carl.pk,
    )
    assert manager.get(one(stored)).json() == body and manager.get(MANAGED).json() == [body]


def test_collection_name_is_unique(manager: Caller):
    make("manuals", writers=("crew",))

    assert failed(manager.post(MANAGED, {"collection_name": "manuals"})) == (409, "name_taken", "collection_name")
    other = make("other")
    renamed = manager.patch(one(other), {"collection_name": "manuals"})
    assert failed(renamed) == (409, "name_taken", "collection_name") and other.refreshed().name == "other"


def test_permissions_to_create_change_and_delete(stranger: Caller, manager: Caller):
    place = make("manuals", readers=("crew",), writers=("chiefs",))
    reader, writer = by_key(make_user("dora", "crew")), by_key(make_user("emil", "chiefs"))
    calls: list[Any] = [
        lambda caller: caller.patch(one(place), {"alpha": 0.1}),
        lambda caller: caller.delete(one(place)),
        lambda caller: caller.post(one(place, "/reembed")),
    ]
    for call in calls:
        assert failed(call(stranger))[:2] == failed(call(manager))[:2] == (404, "not_found")
        assert failed(call(reader))[:2] == failed(call(writer))[:2] == (403, "access_denied")
    for caller in (stranger, reader, writer):
        assert failed(caller.post(MANAGED, {"collection_name": "new"}))[:2] == (403, "access_denied")
    assert (reader.get(one(place)).json()["rights"], writer.get(one(place)).json()["rights"]) == (
        ["read"],
        ["read", "write"],
    )
    assert stranger.get(one(place)).content == stranger.get(f"{MANAGED}/1").content  # C02
    assert stranger.get(MANAGED).json() == []


def test_settings_are_changed_one_by_one(manager: Caller):
    place = make("manuals")
    before = manager.get(one(place))
    response = manager.patch(one(place), {"alpha": 0.25, "reader_roles": ["itil"]})

    assert response.status_code == 200 and response["ETag"] != before["ETag"]
    stored = place.refreshed()
    assert (stored.alpha, stored.reader_roles, stored.chunk_size) == (0.25, [role("itil")], 1000)
    assert stored.history.count() == 2


def test_if_match_prevents_lost_updates(manager: Caller):
    place = make("manuals")
    tag = manager.get(one(place))["ETag"]

    assert manager.patch(one(place), {"alpha": 0.25}, headers={"If-Match": tag}).status_code == 200
    late = manager.patch(one(place), {"alpha": 0.75}, headers={"If-Match": tag})
    assert failed(late)[:2] == (412, "stale") and place.refreshed().alpha == 0.25
    for malformed in ("", "x", '"x', "W/x", '"a",'):
        response = manager.patch(one(place), {"alpha": 0.75}, headers={"If-Match": malformed})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "If-Match"), malformed
    assert manager.patch(one(place), {"alpha": 0.5}, headers={"If-Match": "*"}).status_code == 200


def test_losing_own_write_access_is_reported(manager: Caller):
    place = make("manuals")
    role("crew")
    response = manager.patch(one(place), {"writer_roles": ["crew"]})

    assert response.json()["rights"] == [] and response.json()["writer_roles"] == ["crew"]
    assert manager.get(one(place)).status_code == 404


def test_language_can_be_set_for_new_documents(manager: Caller):
    place = make("manuals")
    manager.load("The toner is on the shelf, and it is red.")
    assert manager.patch(one(place), {"language": "french"}).status_code == 200
    manager.load("The toner is on the table, and it is blue.")

    rows = Version.objects.order_by("pk").values_list("text_configuration", flat=True)
    assert list(rows) == ["english", "french"]


def test_deletion_response_lists_what_was_deleted(manager: Caller):
    manager.load("A text.")
    response = manager.delete(one(Collection.objects.get()))

    assert response.json()["deleted_documents"] == 1 and manager.get(MANAGED).json() == []


def test_list_supports_filter_order_and_limit(manager: Caller):
    for name in ("b", "a", "ab", "c"):
        make(name)

    def names(**query: Any) -> list[str]:
        return [collection["collection_name"] for collection in manager.get(MANAGED, **query).json()]

    assert names() == ["a", "ab", "b", "c"]
    assert names(collection_name="A") == ["a", "ab"]
    assert names(ordering="-collection_name", limit=2) == ["c", "b"]
    page = manager.get(MANAGED, limit=3)
    assert (page["X-Total-Count"], page["X-Next-Offset"]) == ("4", "3")
    assert names(limit=3, offset=3) == ["c"] and "X-Next-Offset" not in manager.get(MANAGED, offset=3)


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ({"ordering": "secret"}, (400, "invalid_parameter", "ordering")),
        ({"limit": "0"}, (400, "invalid_parameter", "limit")),
        ({"limit": "501"}, (400, "invalid_parameter", "limit")),
        ({"offset": "-1"}, (400, "invalid_parameter", "offset")),
        ({"offset": "abc"}, (400, "invalid_parameter", "offset")),
        ({"collection_nam": "a"}, (400, "unknown_field", "collection_nam")),
    ],
)
def test_limit_is_respected(manager: Caller, query: dict[str, str], refusal: Any):
    response = manager.get(MANAGED, **query)

    assert failed(response) == refusal
    if "ordering" in query:
        assert "-collection_name" in response.json()["errors"][0]["message"]


def test_all_invalid_settings_are_reported(manager: Caller):
    wrong = manager.post(MANAGED, {"collection_name": "a", "alpha": 2, "chunk_size": 1, "language": "klingon"})

    assert {error["field"] for error in wrong.json()["errors"]} == {"alpha", "chunk_size", "language"}


def test_list_runs_a_constant_number_of_queries(manager: Caller):
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert manager.get(MANAGED).status_code == 200
        return len([query for query in queries if '"document' in query["sql"] or '"sys_role"' in query["sql"]])

    make("a", readers=("crew",))
    few = statements()
    for number in range(10):
        make(f"more {number}", readers=(f"role {number}",))
    assert statements() == few <= 5


def test_reembedding_uses_the_configured_model(manager: Caller):
    place = make("manuals")
    other = EmbeddingSpace.objects.create(provider="openai", model="other", dimensions=8)
    Collection.objects.filter(pk=place.pk).update(space=other)
    response = manager.post(one(place, "/reembed"))

    assert response.status_code == 202
    assert response.json()["embedding_model"] == "other"
    assert response.json()["next_embedding_model"] == embed.default_space().model


def test_search_equals_the_search_endpoint(manager: Caller):
    manager.load("The toner is red.", metadata={"type": "manual"})
    place = Collection.objects.get()
    query = {"query": "toner", "k": 3, "metadata": "type=manual", "mode": "hybrid", "alpha": 0.4}
    response = manager.post(one(place, "/search"), query)

    expected = manager.post("/get_relevant_documents", {**query, "collection_names": ["manuals"]})
    assert response.content == expected.content and len(response.json()) == 1
    assert failed(manager.post(one(place, "/search"), {"query": ""})) == (400, "invalid_parameter", "query")
    assert failed(manager.post(one(place, "/search"), {**query, "collection_names": ["x"]}))[1] == "unknown_field"


def test_session_requires_a_csrf_token(carl: User):
    place = make("manuals")
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(carl)
    assert browser.get(MANAGED).status_code == 200
    refused: Any = browser.patch(one(place), '{"alpha": 0.1}', content_type="application/json")
    assert failed(refused)[:2] == (403, "access_denied") and place.refreshed().alpha == 0.7

    browser.get("/account/")  # a page with forms sets the token
    token = {"X-CSRFToken": browser.cookies["servicebase_csrf"].value}
    done = browser.patch(one(place), '{"alpha": 0.1}', content_type="application/json", headers=token)
    assert done.status_code == 200 and place.refreshed().sys_updated_by == carl.pk
    form = {"file": b"x", "csrfmiddlewaretoken": token["X-CSRFToken"]}
    unread: Any = browser.post(one(place, "/documents"), form)
    assert failed(unread)[:2] == (403, "access_denied"), "the token is a header: a body is not read for it"


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_missing_credentials_are_401(method: str, db: Any):  # C01
    for path in (MANAGED, f"{MANAGED}/1", f"{MANAGED}/1/documents", f"{MANAGED}/1/documents/1", f"{MANAGED}/1/search"):
        assert Client().generic(method, path, b"{", content_type="application/json").status_code == 401


def test_loads_and_lists_continue_while_settings_change(manager: Caller):
    """Settings count for what is loaded from then on."""
    manager.load("A text of forty characters or so it is. " * 30)
    place = Collection.objects.get()
    before = manager.get(one(place)).json()["chunks_count"]
    manager.patch(one(place), {"chunk_size": 200, "chunk_overlap": 0})

    assert manager.get(one(place)).json()["chunks_count"] == before
    response = manager.post(LOAD_TEXT, {"text": "Another text. " * 100}, collection_name="manuals")
    assert response.json()["chunks_count"] > before

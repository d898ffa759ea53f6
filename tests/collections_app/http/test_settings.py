"""Settings of a collection, at creation and later; a refused request changes nothing."""

from importlib import import_module
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from collections_app.models import Collection
from tests.collections_app.http.calls import API_PATH, LOAD_TEXT_PATH, KeyCaller, error_of
from tests.collections_app.library import make_library_collection

pytestmark = pytest.mark.django_db
OVERLAP_CHECK = "document_collection_overlap CHECK (chunk_size >= chunk_overlap * 2)"


def collection_path(collection: Collection) -> str:
    return f"{API_PATH}/{collection.pk}"


@pytest.mark.parametrize(
    ("settings", "expected_error"),
    [
        ({}, (422, "mandatory", "collection_name")),
        ({"collection_name": "a\n"}, (400, "invalid_parameter", "collection_name")),
        ({"collection_name": 5, "chunk_size": "x"}, (422, "invalid_value", "chunk_size")),
        ({"chunk_size": 99}, (422, "invalid_value", "chunk_size")),
        ({"chunk_size": 8001}, (422, "invalid_value", "chunk_size")),
        ({"chunk_size": 100, "chunk_overlap": 51}, (422, "invalid_value", "chunk_overlap")),
        ({"chunk_size": 399, "chunk_overlap": 200}, (422, "invalid_value", "chunk_overlap")),
        ({"alpha": 2}, (422, "invalid_value", "alpha")),
        ({"alpha": "nan"}, (422, "invalid_value", "alpha")),
        ({"language": "klingon"}, (422, "invalid_value", "language")),
        ({"reader_roles": ["nobody"]}, (422, "missing", "reader_roles")),
        ({"reader_roles": "admin"}, (422, "wrong", "reader_roles")),
        ({"embedding_model": "other"}, (400, "unknown_field", "embedding_model")),  # C28
        ({"sys_id": "1"}, (400, "unknown_field", "sys_id")),
    ],
)
def test_invalid_settings_create_nothing(manager: KeyCaller, settings: Any, expected_error: Any):
    status, _, field = error_of(manager.post(API_PATH, {"collection_name": "a", **settings} if settings else {}))

    assert (status, field) == (expected_error[0], expected_error[2])
    assert not Collection.objects.exists()


@pytest.mark.parametrize("body", [[], [{"collection_name": "a"}], "a", 5, True])
def test_settings_must_be_one_json_object(manager: KeyCaller, body: Any):
    collection = make_library_collection("manuals")
    for response in (
        manager.post(API_PATH, body),
        manager.patch(collection_path(collection), body),
        manager.patch(collection_path(collection), b"null"),
    ):
        assert error_of(response) == (400, "invalid_json", None)
        assert response.json()["errors"][0]["message"] == "The body must be a JSON object."


def test_refusals_have_no_empty_field_names(manager: KeyCaller):
    responses = [
        manager.post(API_PATH, {"collection_name": "a", "": 1}),
        manager.get(API_PATH, **{"": "1"}),
        manager.post(LOAD_TEXT_PATH, {"text": "a", "": 1}, collection_name="a"),
        manager.post(LOAD_TEXT_PATH, {"text": "a", "metadata": {"": 1}}, collection_name="a"),
        manager.post(LOAD_TEXT_PATH, b'{"text": "a", "metadata": {"": 99999999999999.99}}', collection_name="a"),
    ]
    for response in responses:
        assert response.status_code == 400
        assert all(error.get("field", "none") for error in response.json()["errors"]), response.content


def test_overlap_is_at_most_half_of_a_chunk(manager: KeyCaller):
    settings = {"collection_name": "a", "chunk_size": 101, "chunk_overlap": 50}
    assert manager.post(API_PATH, settings).status_code == 201
    collections = Collection.objects.filter(name="a")
    with pytest.raises(IntegrityError), transaction.atomic():
        collections.update(chunk_overlap=51)
    collections.update(chunk_overlap=50, chunk_size=100)


@pytest.mark.parametrize(("size", "overlap"), [(100, 20), (200, 40), (399, 79), (400, 200), (8000, 200), (None, 200)])
def test_default_overlap_fits_the_chunk_size(manager: KeyCaller, size: int | None, overlap: int):
    response = manager.post(API_PATH, {"collection_name": "a"} | ({"chunk_size": size} if size else {}))

    assert response.status_code == 201 and Collection.objects.get().chunk_overlap == overlap


def test_error_names_the_conflicting_setting(manager: KeyCaller):
    collection = make_library_collection("manuals")
    for change, field, message in (
        ({"chunk_size": 200}, "chunk_size", "chunk_overlap is 200"),
        ({"chunk_overlap": 501}, "chunk_overlap", "chunk_size is 1000"),
    ):
        refusal = manager.patch(collection_path(collection), change)
        assert error_of(refusal) == (422, "invalid_value", field) and message in refusal.json()["errors"][0]["message"]
    assert manager.patch(collection_path(collection), {"chunk_size": 400}).json()["chunk_overlap"] == 200


def test_existing_overlap_is_reduced_to_the_limit():
    collection, other_collection = make_library_collection("manuals"), make_library_collection("other")
    migration = import_module("collections_app.migrations.0005_overlap_at_most_half")
    drop_statement = "ALTER TABLE document_collection DROP CONSTRAINT document_collection_overlap"
    with connection.cursor() as cursor:
        # ALTER TABLE fails while checks of the new rows are pending.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        cursor.execute(drop_statement)
        Collection.objects.filter(pk=collection.pk).update(chunk_size=101, chunk_overlap=100)
        cursor.execute(migration.CUT)
        cursor.execute(f"ALTER TABLE document_collection ADD CONSTRAINT {OVERLAP_CHECK}")
    assert collection.refreshed().chunk_overlap == 50
    assert other_collection.chunk_overlap == other_collection.refreshed().chunk_overlap

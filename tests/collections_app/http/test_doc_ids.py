"""Documents that are loaded without an ID get a number or, if the collection says so, their file name."""

from typing import Any

import pytest

from collections_app.models import Collection
from tests.collections_app.http.calls import API_PATH, DOCUMENT_NAMES_PATH, KeyCaller, error_of
from tests.collections_app.library import make_library_collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def files(manager: KeyCaller) -> Collection:
    collection = make_library_collection("files")
    settings = {"doc_id_from_filename": True}
    assert manager.patch(f"{API_PATH}/{collection.pk}", settings).json()["doc_id_from_filename"] is True
    return collection


def load_file(caller: KeyCaller, content: str, filename: str = "notes.txt", **options: Any) -> Any:
    return caller.upload(content.encode(), filename, collection_name="files", **options)


def test_file_name_is_the_id(manager: KeyCaller, files: Collection):
    assert load_file(manager, "First.").json()["doc_id"] == "notes.txt"
    assert load_file(manager, "Second.").json()["doc_id"] == "notes.txt (2)"
    assert load_file(manager, "Third.").json()["doc_id"] == "notes.txt (3)"
    again = load_file(manager, "Second.")
    assert (again.status_code, again.json()["doc_id"]) == (200, "notes.txt (2)")
    named = load_file(manager, "Fourth.", doc_id="mine").json()["doc_id"]
    text = manager.load("A text has no file name.", "files")["doc_id"]
    names = manager.get(DOCUMENT_NAMES_PATH, collection_name="files").json()
    assert names == ["notes.txt", "notes.txt (2)", "notes.txt (3)", named, text] and text.isdigit()


def test_on_duplicate_decides_about_the_name(manager: KeyCaller, files: Collection):
    load_file(manager, "First.")
    assert error_of(load_file(manager, "Second.", on_duplicate="skip")) == (409, "duplicate", "doc_id")
    replaced = load_file(manager, "Second.", on_duplicate="replace")
    assert (replaced.status_code, replaced.json()["doc_id"]) == (201, "notes.txt")
    assert load_file(manager, "Third.", "other.txt", on_duplicate="error").json()["doc_id"] == "other.txt"


def test_long_and_deleted_names(manager: KeyCaller, files: Collection):
    name = "ü" * 300 + ".txt"
    first, second = (load_file(manager, text, name).json()["doc_id"] for text in ("First.", "Second."))
    assert second == f"{first} (2)" and len(second) <= 200


def test_number_is_the_default(manager: KeyCaller):
    make_library_collection("files")
    assert load_file(manager, "First.").json()["doc_id"].isdigit()

"""Valid collection names, and searches by name."""

import pytest
from django.test import Client

from collections_app.models import Collection
from tests.collections_app.http.calls import (
    API_PATH,
    BY_TAG_PATH,
    DELETE_COLLECTION_PATH,
    DELETE_DOCUMENT_PATH,
    DOCUMENT_NAMES_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    KeyCaller,
    error_of,
)
from tests.collections_app.library import make_library_collection

pytestmark = pytest.mark.django_db
NAMES_WITH_WHITE_SPACE = [" walk ", " walk", "walk\u00a0", "\u2003walk"]
INVALID_NAME_ERROR = (400, "invalid_parameter", "collection_name")


def stored_names() -> set[str]:
    return set(Collection.objects.values_list("name", flat=True))


@pytest.mark.parametrize("name", NAMES_WITH_WHITE_SPACE)
def test_names_cannot_begin_or_end_with_white_space(manager: KeyCaller, name: str):
    collection = make_library_collection("walk")
    for response in (
        manager.post(LOAD_TEXT_PATH, {"text": "a"}, collection_name=name),
        manager.upload(b"a", "a.txt", collection_name=name),
        manager.post(API_PATH, {"collection_name": name}),
        manager.patch(f"{API_PATH}/{collection.pk}", {"collection_name": name}),
    ):
        assert error_of(response) == INVALID_NAME_ERROR and "whitespace" in response.json()["errors"][0]["message"]
    assert stored_names() == {"walk"}


@pytest.mark.parametrize("name", NAMES_WITH_WHITE_SPACE)
def test_pages_trim_names(as_carl: Client, name: str):
    assert as_carl.post("/collections/", {"name": name}).status_code == 302
    assert stored_names() == {"walk"}


@pytest.mark.parametrize("name", NAMES_WITH_WHITE_SPACE)
def test_existing_name_with_white_space_keeps_working(manager: KeyCaller, name: str):
    collection = make_library_collection(name)
    manager.load("A text.", name, doc_id="one")
    response = manager.patch(f"{API_PATH}/{collection.pk}", {"collection_name": name, "alpha": 0.5})

    assert response.status_code == 200 and manager.get(DOCUMENT_NAMES_PATH, collection_name=name).json() == ["one"]
    assert error_of(manager.get(DOCUMENT_NAMES_PATH, collection_name=name.strip()))[:2] == (404, "not_found")
    assert manager.delete(DELETE_COLLECTION_PATH, collection_name=name).status_code == 200


def test_lists_match_part_of_a_name_and_endpoints_the_whole_name(manager: KeyCaller):
    collection = make_library_collection("Handbooks of É")
    manager.upload(b"A text.", "Über Toner.TXT", collection_name=collection.name, doc_id="Toner")
    list_path = f"{API_PATH}/{collection.pk}/documents"

    def count_matches(path: str, **query: str) -> int:
        return len(manager.get(path, **query).json())

    assert [count_matches(API_PATH, collection_name=name) for name in ("hANDBOOKS", "of É", "shelf")] == [1, 1, 0]
    assert [count_matches(list_path, filename=name) for name in ("toner.txt", "ÜBER", "über", "paper")] == [1, 1, 1, 0]
    assert [count_matches(list_path, doc_id=doc_id) for doc_id in ("Toner", "Tone", "toner")] == [1, 0, 0]
    for name in ("Handbooks", "handbooks of É"):
        assert error_of(manager.get(DOCUMENT_NAMES_PATH, collection_name=name))[:2] == (404, "not_found")
    for doc_id in ("Tone", "toner"):
        refusal = manager.delete(DELETE_DOCUMENT_PATH, collection_name=collection.name, id_value=doc_id)
        assert error_of(refusal)[:2] == (404, "not_found")


def test_empty_name_is_refused_everywhere(manager: KeyCaller, stranger: KeyCaller):
    make_library_collection("manuals")
    for caller in (manager, stranger):
        for response in (
            caller.post(LOAD_TEXT_PATH, {"text": "a"}, collection_name=""),
            caller.upload(b"a", "a.txt", collection_name=""),
            caller.get(BY_TAG_PATH, collection_name=""),
            caller.post(BY_TAG_PATH, {"collection_name": ""}),
            caller.get(DOCUMENT_NAMES_PATH, collection_name=""),
            caller.delete(DELETE_COLLECTION_PATH, collection_name=""),
            caller.delete(DELETE_DOCUMENT_PATH, collection_name="", id_value="a"),
        ):
            assert error_of(response) == INVALID_NAME_ERROR
            assert response.json()["errors"][0]["message"] == "collection_name must not be empty."
        for empty_names in ("", ["manuals", ""], '["manuals", ""]'):
            response = caller.get(SEARCH_PATH, collection_names=empty_names, query="a")
            assert error_of(response) == (400, "invalid_parameter", "collection_names")
        response = caller.post(SEARCH_PATH, {"collection_names": [""], "query": "a"})
        assert error_of(response) == (400, "invalid_parameter", "collection_names")


INVISIBLE_NAMES = ["wa\u200blk", "walk\u200d", "\ufeffwalk", "walk\u202egnp", "\u2066walk\u2069", "wa\u00adlk",
          "wa\nlk", "wa\u2028lk", "walk\ufe0f", "wa\u2060lk", "wa\u3164lk", "walk\x85s", "walk\U000e0041"]  # fmt: skip


@pytest.mark.parametrize("name", INVISIBLE_NAMES, ids=ascii)
def test_invisible_characters_are_refused_in_new_names(manager: KeyCaller, name: str):
    collection = make_library_collection("walk")
    for response in (
        manager.post(LOAD_TEXT_PATH, {"text": "a", "collection_name": name}),
        manager.upload(b"a", "a.txt", collection_name=name),
        manager.post(API_PATH, {"collection_name": name}),
        manager.patch(f"{API_PATH}/{collection.pk}", {"collection_name": name}),
    ):
        assert error_of(response) == INVALID_NAME_ERROR and "control" in response.json()["errors"][0]["message"]
    assert stored_names() == {"walk"}


@pytest.mark.parametrize(
    "name", [name for name in INVISIBLE_NAMES if name.isprintable() or "\u200b" in name], ids=ascii
)
def test_existing_name_with_invisible_characters_keeps_working(manager: KeyCaller, name: str):
    collection = make_library_collection(name)
    manager.load("A text.", name, doc_id="one")
    response = manager.patch(f"{API_PATH}/{collection.pk}", {"collection_name": name, "alpha": 0.5})

    assert response.status_code == 200 and manager.get(DOCUMENT_NAMES_PATH, collection_name=name).json() == ["one"]
    assert manager.delete(DELETE_COLLECTION_PATH, collection_name=name).status_code == 200


@pytest.mark.parametrize(
    "name", ["w\u0430lk", "W\u0391LK", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u5e2e\u52a9", "a & b"], ids=ascii
)
def test_letters_that_look_like_others_are_allowed(manager: KeyCaller, name: str):
    assert manager.post(API_PATH, {"collection_name": name}).status_code == 201

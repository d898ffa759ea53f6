"""Valid names of collections, and searches by name."""

import pytest
from django.test import Client

from collections_app.models import Collection
from tests.collections_app.http.calls import (
    BY_TAG,
    DELETE,
    DELETE_DOCUMENT,
    LOAD_TEXT,
    MANAGED,
    NAMES,
    RELEVANT,
    Caller,
    failed,
)
from tests.collections_app.library import make

pytestmark = pytest.mark.django_db
BLANK_ENDED = [" walk ", " walk", "walk\u00a0", "\u2003walk"]
REFUSED = (400, "invalid_parameter", "collection_name")


def names() -> set[str]:
    return set(Collection.objects.values_list("name", flat=True))


@pytest.mark.parametrize("name", BLANK_ENDED)
def test_names_cannot_begin_or_end_with_white_space(manager: Caller, name: str):
    place = make("walk")
    for response in (
        manager.post(LOAD_TEXT, {"text": "a"}, collection_name=name),
        manager.upload(b"a", "a.txt", collection_name=name),
        manager.post(MANAGED, {"collection_name": name}),
        manager.patch(f"{MANAGED}/{place.pk}", {"collection_name": name}),
    ):
        assert failed(response) == REFUSED and "whitespace" in response.json()["errors"][0]["message"]
    assert names() == {"walk"}


@pytest.mark.parametrize("name", BLANK_ENDED)
def test_pages_trim_names(as_carl: Client, name: str):
    assert as_carl.post("/collections/", {"name": name}).status_code == 302
    assert names() == {"walk"}


@pytest.mark.parametrize("name", BLANK_ENDED)
def test_existing_name_with_white_space_keeps_working(manager: Caller, name: str):
    place = make(name)
    manager.load("A text.", name, doc_id="one")
    changed = manager.patch(f"{MANAGED}/{place.pk}", {"collection_name": name, "alpha": 0.5})

    assert changed.status_code == 200 and manager.get(NAMES, collection_name=name).json() == ["one"]
    assert failed(manager.get(NAMES, collection_name=name.strip()))[:2] == (404, "not_found")
    assert manager.delete(DELETE, collection_name=name).status_code == 200


def test_lists_match_part_of_a_name_and_endpoints_the_whole(manager: Caller):
    place = make("Handbooks of É")
    manager.upload(b"A text.", "Über Toner.TXT", collection_name=place.name, doc_id="Toner")
    documents = f"{MANAGED}/{place.pk}/documents"

    def found(path: str, **query: str) -> int:
        return len(manager.get(path, **query).json())

    assert [found(MANAGED, collection_name=name) for name in ("hANDBOOKS", "of É", "shelf")] == [1, 1, 0]
    assert [found(documents, filename=name) for name in ("toner.txt", "ÜBER", "über", "paper")] == [1, 1, 1, 0]
    assert [found(documents, doc_id=doc_id) for doc_id in ("Toner", "Tone", "toner")] == [1, 0, 0]
    for name in ("Handbooks", "handbooks of É"):
        assert failed(manager.get(NAMES, collection_name=name))[:2] == (404, "not_found")
    for doc_id in ("Tone", "toner"):
        refused = manager.delete(DELETE_DOCUMENT, collection_name=place.name, id_value=doc_id)
        assert failed(refused)[:2] == (404, "not_found")


def test_empty_name_is_refused_everywhere(manager: Caller, stranger: Caller):
    make("manuals")
    for caller in (manager, stranger):
        for response in (
            caller.post(LOAD_TEXT, {"text": "a"}, collection_name=""),
            caller.upload(b"a", "a.txt", collection_name=""),
            caller.get(BY_TAG, collection_name=""),
            caller.post(BY_TAG, {"collection_name": ""}),
            caller.get(NAMES, collection_name=""),
            caller.delete(DELETE, collection_name=""),
            caller.delete(DELETE_DOCUMENT, collection_name="", id_value="a"),
        ):
            assert failed(response) == REFUSED
            assert response.json()["errors"][0]["message"] == "collection_name must not be empty."
        for empty in ("", ["manuals", ""], '["manuals", ""]'):
            response = caller.get(RELEVANT, collection_names=empty, query="a")
            assert failed(response) == (400, "invalid_parameter", "collection_names")
        response = caller.post(RELEVANT, {"collection_names": [""], "query": "a"})
        assert failed(response) == (400, "invalid_parameter", "collection_names")


UNSEEN = ["wa\u200blk", "walk\u200d", "\ufeffwalk", "walk\u202egnp", "\u2066walk\u2069", "wa\u00adlk", "wa\nlk",
          "wa\u2028lk", "walk\ufe0f", "wa\u2060lk", "wa\u3164lk", "walk\x85s", "walk\U000e0041"]  # fmt: skip


@pytest.mark.parametrize("name", UNSEEN, ids=ascii)
def test_invisible_characters_are_refused_in_new_names(manager: Caller, name: str):
    place = make("walk")
    for response in (
        manager.post(LOAD_TEXT, {"text": "a", "collection_name": name}),
        manager.upload(b"a", "a.txt", collection_name=name),
        manager.post(MANAGED, {"collection_name": name}),
        manager.patch(f"{MANAGED}/{place.pk}", {"collection_name": name}),
    ):
        assert failed(response) == REFUSED and "control" in response.json()["errors"][0]["message"]
    assert names() == {"walk"}


@pytest.mark.parametrize("name", [name for name in UNSEEN if name.isprintable() or "\u200b" in name], ids=ascii)
def test_existing_name_with_such_characters_is_reachable(manager: Caller, name: str):
    place = make(name)
    manager.load("A text.", name, doc_id="one")
    changed = manager.patch(f"{MANAGED}/{place.pk}", {"collection_name": name, "alpha": 0.5})

    assert changed.status_code == 200 and manager.get(NAMES, collection_name=name).json() == ["one"]
    assert manager.delete(DELETE, collection_name=name).status_code == 200


@pytest.mark.parametrize(
    "name", ["w\u0430lk", "W\u0391LK", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u5e2e\u52a9", "a & b"], ids=ascii
)
def test_letters_that_look_like_others_are_allowed(manager: Caller, name: str):
    assert manager.post(MANAGED, {"collection_name": name}).status_code == 201

"""The tabs Access and Settings, for managers only."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from collections_app import embed
from collections_app.models import Collection, EmbeddingSpace, Version
from tests.collections_app import library
from tests.collections_app.test_pages import page_html

pytestmark = pytest.mark.django_db

PAGES = ("collection-access-page", "collection-settings-page", "collection-reembed-page")
SETTINGS = {"name": "Manuals", "text_configuration": "", "chunk_size": "500", "chunk_overlap": "50", "alpha": "0.5"}


def page_path(collection: Collection, name: str) -> str:
    return reverse(f"collection-{name}-page", args=[collection.pk])


def save(browser: Client, collection: Collection, name: str, values: dict[str, Any], version: int | None = None) -> Any:
    sys_version = collection.refreshed().sys_version if version is None else version
    return browser.post(page_path(collection, name), {"sys_version": sys_version, **values})


def test_manager_changes_readers_and_writers(as_carl: Client):
    collection = library.make_library_collection()
    itil, manager = library.role_id("itil"), library.role_id("collection_admin")
    page = page_html(as_carl.get(page_path(collection, "access")))
    assert "Leave empty for writers only." in page and f'value="{itil}"' in page
    response = save(as_carl, collection, "access", {"reader_roles": [itil], "writer_roles": [manager]})
    assert response["Location"] == page_path(collection, "access")
    changed_collection = collection.refreshed()
    assert (changed_collection.reader_roles, changed_collection.writer_roles) == ([itil], [manager])
    assert changed_collection.history.count() == 2
    save(as_carl, collection, "access", {"reader_roles": [], "writer_roles": [manager]})
    assert collection.refreshed().reader_roles == []


def test_manager_changes_settings(as_carl: Client):
    collection = library.make_library_collection()
    library.add_document(collection, "A long enough text about the toner of the printers in this house.")
    assert save(as_carl, collection, "settings", {**SETTINGS, "text_configuration": "russian"}).status_code == 302
    changed_collection = collection.refreshed()
    assert (changed_collection.name, changed_collection.chunk_size, changed_collection.alpha) == ("Manuals", 500, 0.5)
    assert changed_collection.text_configuration == "russian" and Version.objects.get().text_configuration == "english"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Taken"}, "A collection with this name already exists."),
        ({"name": "a\x07b"}, "must not contain control characters"),
        ({"chunk_overlap": "251"}, "The overlap must be at most half of the chunk size."),
        ({"chunk_size": "99"}, "100"),
        ({"alpha": "1.1"}, "1.0"),
        ({"text_configuration": "klingon"}, "no text search configuration"),
    ],
    ids=str,
)
def test_invalid_settings_are_reported(as_carl: Client, changes: dict[str, str], message: str):
    library.make_library_collection("Taken")
    collection = library.make_library_collection()
    response = save(as_carl, collection, "settings", {**SETTINGS, **changes})
    assert response.status_code == 400 and message in page_html(response)
    assert collection.refreshed().name == "Handbooks"


def test_unknown_role_is_reported(as_carl: Client):
    response = save(as_carl, library.make_library_collection(), "access", {"reader_roles": ["nobody"]})
    assert response.status_code == 400 and "nobody" in page_html(response)


def test_second_save_does_not_overwrite_the_first(as_carl: Client):
    collection = library.make_library_collection()
    version = collection.refreshed().sys_version
    assert save(as_carl, collection, "settings", {**SETTINGS, "alpha": "0.1"}, version).status_code == 302
    response = save(as_carl, collection, "settings", {**SETTINGS, "alpha": "0.9"}, version)
    page = page_html(response)
    assert response.status_code == 400 and "Another user changed this collection" in page and 'value="0.9"' in page
    assert collection.refreshed().alpha == 0.1
    assert f'name="sys_version" value="{collection.refreshed().sys_version}"' in page  # saving again overwrites


def test_removing_own_access_shows_a_warning(as_carl: Client):
    collection = library.make_library_collection()
    values = {"writer_roles": [library.role_id("itil")]}
    response = as_carl.post(
        page_path(collection, "access"), {"sys_version": collection.refreshed().sys_version, **values}, follow=True
    )
    assert response.redirect_chain == [("/collections/", 302)]
    assert "You can no longer change this collection" in page_html(response)


@pytest.mark.parametrize("name", PAGES)
def test_only_managers_may_open_the_pages(as_rita: Client, as_bob: Client, as_carl: Client, name: str):  # C02
    collection = library.make_library_collection(readers=("itil",), writers=("desk",))
    path = reverse(name, args=[collection.pk])
    for browser, status in ((as_rita, 403), (as_bob, 404), (as_carl, 404)):
        assert browser.post(path, {"confirmed": "yes", **SETTINGS}).status_code == status
        assert browser.get(path).status_code in (status, 405)
    assert collection.refreshed().name == "Handbooks"


class TestReembedding:
    @pytest.fixture
    def retired_space(self) -> EmbeddingSpace:
        return EmbeddingSpace.objects.create(provider="retired", model="old", dimensions=8)

    def test_reembedding_is_offered_if_the_model_differs(self, as_carl: Client, retired_space: EmbeddingSpace):
        collection = library.make_library_collection()
        path = page_path(collection, "settings")
        assert "/reembed/" not in page_html(as_carl.get(path))
        for columns in ({"next_space": retired_space}, {"space": retired_space, "next_space": None}):
            Collection.objects.filter(pk=collection.pk).update(**columns)
            assert "/reembed/" in page_html(as_carl.get(path)), columns

    def test_reembedding_is_confirmed_and_then_started(self, as_carl: Client, retired_space: EmbeddingSpace):
        collection = library.make_library_collection()
        library.add_document(collection)
        # The document makes the model for English due.
        Collection.objects.filter(pk=collection.pk).update(space=retired_space, next_space=None)
        page = page_html(as_carl.post(page_path(collection, "reembed")))
        assert "Embed 1 passage of" in page and "retired/old (8)" in page
        assert collection.refreshed().next_space is None
        response = as_carl.post(page_path(collection, "reembed"), {"confirmed": "yes"}, follow=True)
        assert str(collection.refreshed().next_space) == "local/all-MiniLM-L6-v2 (384)"
        assert "Re-embedding started." in page_html(response) and "being re-embedded with" in page_html(response)

    def test_reembedding_with_another_model_can_be_canceled(self, as_carl: Client, retired_space: EmbeddingSpace):
        collection = library.make_library_collection()
        collection.next_space = retired_space
        collection.save()
        assert "Cancel the re-embedding with retired/old (8)?" in page_html(
            as_carl.post(page_path(collection, "reembed"))
        )
        response = as_carl.post(page_path(collection, "reembed"), {"confirmed": "yes"}, follow=True)
        assert "Re-embedding canceled." in page_html(response) and collection.refreshed().next_space is None

    def test_progress_and_error_are_shown(self, as_carl: Client, retired_space: EmbeddingSpace):
        collection = library.make_library_collection()
        library.add_document(collection)
        # Until searches change to the model, at least one passage is left.
        for space in (retired_space, collection.space):
            Collection.objects.filter(pk=collection.pk).update(next_space=space, reembed_error="It is away.")
            page = page_html(as_carl.get(page_path(collection, "settings")))
            assert f"Changing to the embedding model {space.model}: 1 of 1 passage left." in page
            assert "It is away." in page

    @pytest.mark.parametrize(("dimensions", "is_offered"), [(None, True), (8, True), (9, False)])
    def test_offer_does_not_call_the_provider(self, settings: Any, dimensions: int | None, is_offered: bool):
        provider_settings = {"provider": "openai", "model": "m", "dimensions": dimensions}
        settings.EMBEDDING = {**settings.EMBEDDING, **provider_settings}
        space = EmbeddingSpace(provider="openai", model="m", dimensions=8)
        assert embed.is_default(space) is is_offered
        assert not embed.is_default(EmbeddingSpace(provider="retired", model="m", dimensions=8))

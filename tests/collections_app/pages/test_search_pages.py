"""Searching with filter rows, weaker results, and several collections at once."""

import re
from typing import Any

import pytest
from django.test import Client

from collections_app.models import Collection
from collections_app.pages import search_pages
from collections_app.search import known_metadata
from tests.collections_app import library
from tests.collections_app.test_pages import collection_page_path, page_html

pytestmark = pytest.mark.django_db

SEARCH_PATH = "/collections/search/"


def add_notes(collection: Collection) -> None:
    for name, metadata in (("old", {"type": "old", "tags": ["a", "b"]}), ("new", {"type": "new model", "priority": 2})):
        library.add_document(collection, f"Toner of {name}", metadata=metadata, filename=f"{name}.txt", format="text")


class TestFilterRows:
    @pytest.mark.parametrize(
        ("row", "expected_filter"),
        [
            (("type", "=", "new model"), "type=new model"),
            (("priority", ">", "1"), "priority>1"),
            (("tags", "ISEMPTY", ""), "tagsISEMPTY"),
            (("type", "LIKE", "new^model"), "typeLIKE{new^model}"),
        ],
    )
    def test_rows_become_a_filter_in_the_url(self, as_carl: Client, row: Any, expected_filter: str):
        collection = library.make_library_collection()
        add_notes(collection)
        parameters = {"query": "toner", "key": [row[0], ""], "operator": [row[1], "="], "value": [row[2], ""]}
        response = as_carl.get(collection_page_path(collection), parameters, follow=True)
        assert response.context["form"].filter == expected_filter and response.status_code == 200
        page = page_html(response)
        assert "old.txt" not in page and f'value="{row[2]}"' in page and f"<option selected>{row[0]}</option>" in page

    def test_rows_and_advanced_filter_are_combined(self, as_carl: Client):
        collection = library.make_library_collection()
        parameters = {"query": "x", "key": "type", "operator": "=", "value": "a", "filter": "n=1^NQn=2"}
        response = as_carl.get(collection_page_path(collection), parameters, follow=True)
        assert response.context["form"].filter == "type=a^(n=1^NQn=2)"
        assert 'name="filter" value="type=a^(n=1^NQn=2)"' in page_html(response)

    def test_fields_and_values_of_the_collection_are_offered(self, as_carl: Client):
        collection = library.make_library_collection()
        add_notes(collection)
        library.add_document(library.make_library_collection("Other"), metadata={"secret": "x"})
        page = page_html(as_carl.get(collection_page_path(collection)))
        assert re.findall(r'data-field="(\w+)">(.*?)</datalist>', page) == [
            ("priority", '<option value="2"></option>'),
            ("tags", '<option value="a"></option><option value="b"></option>'),
            ("type", '<option value="new model"></option><option value="old"></option>'),
        ]
        assert "secret" not in page

    def test_offered_values_are_limited(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(known_metadata, "MAX_FIELDS", 1)
        monkeypatch.setattr(known_metadata, "MAX_VALUES", 1)
        monkeypatch.setattr(known_metadata, "MAX_VALUE_LENGTH", 3)
        collection = library.make_library_collection()
        library.add_document(collection, metadata={"a": ["long text", "y", "x"], "b": {"c": 1}, "d": None, "e": 1})
        assert known_metadata.known_fields([collection.pk]) == {"a": ["x"]}


class TestWeakResults:
    def test_results_far_below_the_best_are_folded(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection, "Toner, red toner and blue toner.", filename="toner.txt", format="text")
        for number in range(3):
            library.add_document(
                collection, f"Note {number} of the mailbox, parking and lunch.", filename=f"{number}.txt", format="text"
            )
        page = page_html(as_carl.get(collection_page_path(collection), {"query": "red toner"}))
        results, _, weaker_results = page.partition('<details id="weak-results">')
        assert "toner.txt" in results and "0.txt" not in results and "0.txt" in weaker_results
        assert "Show 3 weaker results" in page and "below 25% of the best one" in page


class TestOneResultPerDocument:
    @pytest.mark.parametrize("path", ["", SEARCH_PATH])
    def test_passages_and_copies_are_left_out(self, as_carl: Client, path: str):
        collection = library.make_library_collection()
        text = "# Toner\n\nThe toner is red.\n\n# Paper\n\n" + "The paper and the toner are in the drawer. " * 40
        for name in ("a.md", "copy of a.md"):
            library.add_document(collection, text, filename=name, doc_id=name)
        library.add_document(collection, "Toner again.", filename="b.txt", format="text")
        url, parameters = path or collection_page_path(collection), {"query": "toner", "k": "2"}
        counts = [
            page_html(as_carl.get(url, {**parameters, "k": "9", **options})).count('<li id="hit-')
            for options in ({}, {"group_by": "document"})
        ]
        assert counts[0] > 3 and counts[1] == 2, "the passages of three documents, and one document without its copy"
        page = page_html(as_carl.get(url, {**parameters, "group_by": "document"}))
        assert 'name="group_by" value="document" checked' in page and "&amp;group_by=document&amp;k=4" in page

    def test_option_stays_when_filter_rows_become_text(self, as_carl: Client):
        parameters = {"query": "toner", "group_by": "document", "key": "type", "operator": "=", "value": "a"}
        response = as_carl.get(collection_page_path(library.make_library_collection()), parameters)
        assert "group_by=document" in response["Location"]


class TestSeveralCollections:
    @pytest.fixture
    def collections(self) -> list[Collection]:
        collections = [library.make_library_collection(name, readers=("itil",)) for name in ("First", "Second")]
        for collection in (*collections, library.make_library_collection("Secret plans")):
            library.add_document(collection, f"Toner of {collection.name}", metadata={collection.name: "x"})
        return collections

    def test_all_readable_collections_are_searched(self, as_rita: Client, collections: list[Collection]):  # C06
        page = page_html(as_rita.get(SEARCH_PATH, {"query": "toner"}))
        for collection in collections:
            assert f'in <a href="{collection_page_path(collection)}">{collection.name}</a>' in page
            assert f'data-field="{collection.name}"' in page
        assert "Secret plans" not in page and page.count('<li id="hit-') == 2

    def test_chosen_collections_are_searched(self, as_rita: Client, collections: list[Collection]):
        page = page_html(as_rita.get(SEARCH_PATH, {"query": "toner", "in": collections[1].pk, "k": "1"}))
        assert "of Second" in page.replace("<mark>", "") and "Toner</mark> of First" not in page
        assert page.count('name="in"') == 2 and page.count(" checked> ") == 1
        assert f"?in={collections[1].pk}&amp;query=toner" in page  # Show more

    def test_other_collections_are_ignored_whether_they_exist_or_not(
        self, as_rita: Client, collections: list[Collection]
    ):  # C02
        secret_id = Collection.objects.get(name="Secret plans").pk
        responses = [as_rita.get(SEARCH_PATH, {"query": "toner", "in": sys_id}) for sys_id in (secret_id, "0" * 18)]
        assert [response.status_code for response in responses] == [400, 400]
        pages = [
            re.sub('value="[^"]{64}"', "", page_html(response)) for response in responses
        ]  # without the CSRF token
        assert pages[0] == pages[1] and search_pages.NO_COLLECTIONS in page_html(responses[0])

    def test_number_of_collections_is_limited(
        self, as_rita: Client, collections: list[Collection], monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(search_pages, "MAX_COLLECTIONS", 1)
        page = page_html(as_rita.get(SEARCH_PATH, {"query": "toner"}))
        assert "You can read more than 1 collections." in page and page.count('<li id="hit-') == 1

    def test_user_without_collections_is_told_so(self, as_bob: Client, collections: list[Collection]):
        page = page_html(as_bob.get(SEARCH_PATH, {"query": "toner"}))
        assert "You don't have access to any collections." in page and "First" not in page

"""Collections and documents in the administration: visibility, changes, and the dashboard tile."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Role, User
from collections_app import embed
from collections_app.models import Collection, Document, Version
from system.admin_site.name_lists import MAX_NAMES_SHOWN
from tests.collections_app import library

pytestmark = pytest.mark.django_db

COLLECTION_LIST_PATH, DOCUMENT_LIST_PATH = "/admin/collections_app/collection/", "/admin/collections_app/document/"


def page_html(response: Any) -> str:
    html: str = response.content.decode()
    return html


def page_path(record: Any, action: str = "change") -> str:
    return f"/admin/collections_app/{record._meta.model_name}/{record.pk}/{action}/"


class TestCollections:
    """The pages of a collection change it; the administration lists collections and their history."""

    def test_list_shows_counts(self, as_carl: Client):
        collection = library.make_library_collection("<b>Handbooks</b>")
        library.add_document(collection)
        library.add_failing_document(collection)
        page = page_html(as_carl.get(COLLECTION_LIST_PATH))
        assert "&lt;b&gt;Handbooks&lt;/b&gt;" in page and "<b>Handbooks" not in page and str(collection.space) in page

    @pytest.mark.parametrize("action", ["change", "delete", "reembed"])
    def test_former_forms_lead_to_the_settings(self, as_carl: Client, as_alice: Client, action: str):
        collection = library.make_library_collection()
        settings_path = f"/collections/{collection.pk}/settings/"
        assert as_carl.get(page_path(collection, action))["Location"] == settings_path
        assert as_carl.post(page_path(collection, action), {"post": "yes"})["Location"] == settings_path
        shared_collection = library.make_library_collection("Shared", readers=("collection_admin",), writers=("itil",))
        assert as_carl.get(page_path(shared_collection, action))["Location"] == f"/collections/{shared_collection.pk}/"
        assert Collection.objects.filter(deleted_at=None).count() == 2
        assert as_alice.get(COLLECTION_LIST_PATH + "add/")["Location"] == "/collections/"

    def test_history_is_shown(self, as_carl: Client):
        assert as_carl.get(page_path(library.make_library_collection(), "history")).status_code == 200

    def test_collections_cannot_be_deleted_from_the_list(self, as_carl: Client):
        collection = library.make_library_collection()
        form = {"action": "delete_selected", "_selected_action": [collection.pk], "post": "yes"}
        as_carl.post(COLLECTION_LIST_PATH, form)
        assert collection.refreshed().deleted_at is None

    def test_deleting_a_role_names_its_collections(self, as_alice: Client):
        library.make_library_collection("For the desk", readers=("desk",))
        role = Role.objects.get(name="desk")
        assert "For the desk" in page_html(as_alice.get(f"/admin/accounts/role/{role.pk}/delete/"))


class TestForeignCollections:
    """A collection administrator without the roles of a collection cannot see it."""

    def test_unreadable_collection_is_hidden(self, as_carl: Client):  # C02 C06
        plans = library.make_library_collection("Secret plans", readers=("itil",), writers=("itil",))
        document = library.add_document(plans, "The secret", filename="secret.txt", format="text")
        for path in (COLLECTION_LIST_PATH, DOCUMENT_LIST_PATH, "/admin/"):
            assert "ecret" not in page_html(as_carl.get(path)), path
        for path in (page_path(plans), page_path(plans, "delete"), page_path(plans, "history"), page_path(document)):
            assert as_carl.get(path).status_code != 200, path
        entry = plans.history.first()
        assert as_carl.get(f"{page_path(plans, 'history')}{entry.pk}/").status_code == 404
        assert as_carl.post(page_path(plans, "reembed")).status_code == 404
        form = {"action": "delete_selected", "_selected_action": [document.pk], "post": "yes"}
        as_carl.post(DOCUMENT_LIST_PATH, form)
        as_carl.post(DOCUMENT_LIST_PATH, {**form, "action": "try_again"})
        assert Document.objects.filter(deleted_at=None).count() == 1

    @pytest.mark.parametrize("path", [COLLECTION_LIST_PATH, DOCUMENT_LIST_PATH, COLLECTION_LIST_PATH + "add/"])
    def test_users_without_the_role_cannot_open_pages(self, as_bob: Client, path: str):
        assert as_bob.get(path).status_code in (302, 403)


class TestDocuments:
    def test_documents_can_be_filtered_and_searched(self, as_carl: Client):
        first_collection, second_collection = (
            library.make_library_collection("First"),
            library.make_library_collection("Second"),
        )
        library.add_document(first_collection, filename="<b>good.md")
        failed_document = library.add_failing_document(second_collection)
        assert failed_document.newest is not None
        page = page_html(as_carl.get(DOCUMENT_LIST_PATH))
        assert "&lt;b&gt;good.md" in page and failed_document.newest.error in page
        for query, expected_names in (
            ("state=failed", ["broken.pdf"]),
            ("state=ready", ["&lt;b&gt;good.md"]),
            (f"in={second_collection.pk}", ["broken.pdf"]),
            ("q=broken", ["broken.pdf"]),
            (f"q={failed_document.newest.sha256}", ["broken.pdf"]),
            ("state=nonsense", []),
        ):
            result_list = page_html(as_carl.get(f"{DOCUMENT_LIST_PATH}?{query}")).partition("result_list")[2]
            assert [name for name in ("&lt;b&gt;good.md", "broken.pdf") if name in result_list] == expected_names, query

    def test_page_shows_properties_but_no_text(self, as_carl: Client):
        document = library.add_document(library.make_library_collection(), metadata={"type": "<i>manual</i>"})
        page = page_html(as_carl.get(page_path(document)))
        assert "&lt;i&gt;manual&lt;/i&gt;" in page and "<i>manual" not in page and "the system" in page
        assert "toner" not in page
        assert as_carl.post(page_path(document), {"doc_id": "mine"}).status_code == 403
        assert as_carl.get(DOCUMENT_LIST_PATH + "add/").status_code == 403

    def test_document_has_the_name_of_its_file_which_can_be_downloaded(self, as_carl: Client):
        document_with_file, document_without_file = (
            library.add_document(library.make_library_collection()),
            library.add_document(library.make_library_collection("Texts"), filename="", doc_id="faq"),
        )
        response = as_carl.get(page_path(document_with_file))
        assert response.context["title"] == "handbook.md"
        match = re.search(r'href="([^"]+/content)" download>Download<', page_html(response))
        assert match is not None and as_carl.get(match[1]).content.decode() == library.HANDBOOK
        assert as_carl.get(page_path(document_without_file)).context["title"] == "faq"

    def test_page_links_to_the_page_of_the_collection(self, as_carl: Client):
        document = library.add_document(library.make_library_collection())
        match = re.search(r'href="([^"]+)">Open in the collection<', page_html(as_carl.get(page_path(document))))
        assert match is not None
        assert "<h1>handbook.md</h1>" in page_html(as_carl.get(match[1]))

    def test_documents_cannot_be_changed_or_deleted_here(self, as_carl: Client, as_alice: Client):
        document = library.add_document(library.make_library_collection())
        for browser in (as_carl, as_alice):
            assert browser.post(page_path(document, "delete"), {"post": "yes"}).status_code == 403
            form = {"action": "delete_selected", "_selected_action": [document.pk], "post": "yes"}
            browser.post(DOCUMENT_LIST_PATH, form)
            assert "_selected_action" not in page_html(browser.get(DOCUMENT_LIST_PATH))
        document.refresh_from_db()
        assert document.deleted_at is None


class TestManyCollections:
    """Pages list the first collections or documents and the number of further ones."""

    @pytest.fixture(autouse=True)
    def many_collections(self) -> list[Collection]:
        collections = [Collection(name=f"coll-{number:03}", space=embed.default_space()) for number in range(60)]
        Collection.objects.bulk_create(collections)
        return list(Collection.objects.order_by("name"))

    @staticmethod
    def count_names(response: Any) -> int:
        return len(set(re.findall(r"(?:coll|docu)-[0-9]{3}", page_html(response))))

    def test_filter_names_the_first_collections_and_the_chosen_one(
        self, as_carl: Client, many_collections: list[Collection]
    ):
        response = as_carl.get(DOCUMENT_LIST_PATH)
        assert self.count_names(response) == MAX_NAMES_SHOWN and f"(first {MAX_NAMES_SHOWN})" in page_html(response)
        for collection in (many_collections[0], many_collections[-1]):
            response = as_carl.get(f"{DOCUMENT_LIST_PATH}?in={collection.pk}")
            assert collection.name in page_html(response) and self.count_names(response) <= MAX_NAMES_SHOWN + 1

    def test_deleting_a_role_names_the_first_of_its_collections(self, as_alice: Client):
        role_id = library.role_id("desk")
        Collection.objects.update(reader_roles=[role_id], writer_roles=[role_id])
        page = page_html(as_alice.get(f"/admin/accounts/role/{role_id}/delete/"))
        for permission in ("readers", "writers"):
            assert page.count(f"whose {permission} will no longer include this role") == MAX_NAMES_SHOWN
        assert page.count("… and 10 more") == 2


class TestDashboardTile:
    def find_tile(self, browser: Client) -> Any:
        return next(tile for tile in browser.get("/admin/").context["tiles"] if tile.title == "Documents")

    def test_tile_counts_readable_collections(self, as_carl: Client, as_alice: Client):
        collection = library.make_library_collection()
        library.add_document(collection)
        library.add_document(collection, "Other", is_loaded=False)
        library.add_document(library.make_library_collection("Secret", writers=("itil",)))
        carl_tile, alice_tile = self.find_tile(as_carl), self.find_tile(as_alice)
        assert carl_tile.figure == "1" and not carl_tile.warnings
        assert "1 in progress, 0 failed, in 1 collection." in carl_tile.description
        assert (
            alice_tile.figure == "2"
            and alice_tile.description.startswith("documents ready, 0 empty,")
            and "in 2 collections" in alice_tile.description
        )

    def test_tile_warns_about_failures(self, as_carl: Client):
        library.add_failing_document(library.make_library_collection())
        library.add_document(library.make_library_collection("Blank"), " \n")
        tile = self.find_tile(as_carl)
        # The number of ready documents would be red.
        assert "1 empty" in tile.description and not tile.needs_attention
        assert '<span class="sb-tile-description sb-tile-warnings">1 failed.</span>' in page_html(
            as_carl.get("/admin/")
        )
        assert tile.warnings == "1 failed." and "failed" not in tile.description and tile.url.endswith("?state=failed")

    def test_tile_warns_about_an_old_queue(self, as_carl: Client):
        document = library.add_document(library.make_library_collection(), is_loaded=False)
        assert not self.find_tile(as_carl).warnings
        Version.objects.filter(document=document).update(created_at=timezone.now() - timedelta(minutes=20))
        tile = self.find_tile(as_carl)
        assert tile.warnings == "The oldest queued document has been waiting for 20\xa0minutes."
        assert not tile.needs_attention

    def test_users_without_the_role_do_not_see_the_tile(self, sonja: User):
        client = Client()
        client.force_login(sonja)
        assert "Documents" not in [tile.title for tile in client.get("/admin/").context["tiles"]]

"""The collection pages: what each user sees, searching, deleting, retrying; user content stays text."""

import re
from typing import Any, ClassVar

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from collections_app.ingest import loading
from collections_app.models import Collection, Document, Version
from collections_app.pages import document_actions
from system.admin_site.name_lists import MAX_NAMES_SHOWN
from system.errors import Conflict
from tests.collections_app import library
from tests.support.users import make_user, signed_in_client

pytestmark = pytest.mark.django_db

HTMX_HEADERS = {"HX-Request": "true"}


def collection_page_path(collection: Collection, suffix: str = "") -> str:
    return reverse("collection", args=[collection.pk]) + suffix


def documents_page_path(collection: Collection, suffix: str = "") -> str:
    return reverse("documents-page", args=[collection.pk]) + suffix


def settings_page_path(collection: Collection) -> str:
    return reverse("collection-settings-page", args=[collection.pk])


def document_path(document: Document, action: str) -> str:
    return reverse(f"document-{action}", args=[document.collection_id, document.pk])


def all_documents_path(collection: Collection, action: str, query: str = "") -> str:
    return reverse(f"documents-{action}", args=[collection.pk]) + query


def page_html(response: Any) -> str:
    html: str = response.content.decode()
    return html


class TestCollectionList:
    @pytest.mark.parametrize("path", ["/collections/", "/collections/0000000001/"])
    def test_anonymous_user_is_redirected_to_the_sign_in_page(self, path: str):
        response = Client().get(path)
        assert response.status_code == 302 and response["Location"] == f"/login/?next={path}"

    def test_list_contains_only_readable_collections(self, as_rita: Client, as_bob: Client):  # C06
        library.add_document(library.make_library_collection("For all of itil", readers=("itil",)))
        library.make_library_collection("Secret plans")
        page = page_html(as_rita.get("/collections/"))
        assert "For all of itil" in page and "1 document, 1 passage<" in page and "1 ready" in page
        assert "Secret plans" not in page
        assert "You don't have access to any collections." in page_html(as_bob.get("/collections/"))

    def test_empty_list_explains_what_to_do(self, as_bob: Client, as_carl: Client):
        reader_page, admin_page = (page_html(client.get("/collections/")) for client in (as_bob, as_carl))
        assert "Ask an administrator for a role" in reader_page and "Create one" not in reader_page
        assert '<a href="#id_name">Create one below</a>' in admin_page and 'id="id_name"' in admin_page
        assert "Ask an" not in admin_page

    def test_list_refreshes_itself_while_documents_are_loaded(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection, is_loaded=False)
        response = as_carl.get("/collections/", headers={**HTMX_HEADERS, "HX-Target": "collections"})
        assert (
            "every 3s" in page_html(response)
            and "1 queued" in page_html(response)
            and "<html" not in page_html(response)
        )
        library.add_document(collection, doc_id=Document.objects.get().doc_id, metadata={"type": "done"})
        assert "every" not in page_html(as_carl.get("/collections/"))

    def test_long_list_is_paged(self, as_carl: Client):
        for number in range(21):
            library.make_library_collection(f"Collection {number:02}")
        first_page, second_page = (page_html(as_carl.get(f"/collections/?page={number}")) for number in (1, 2))
        assert "Collection 19" in first_page and "Collection 20" not in first_page and "Page 1 of 2" in first_page
        assert "Collection 20" in second_page and "Collection 19" not in second_page

    def test_collection_is_found_by_part_of_its_name(self, as_carl: Client):
        for number in range(42):
            library.make_library_collection(f"Collection {number:02}")
        assert 'id="find"' in page_html(as_carl.get("/collections/"))
        exact_page, first_page = (
            page_html(as_carl.get("/collections/", {"name": name})) for name in ("TION 07", "tion")
        )
        assert "Collection 07" in exact_page and "Collection 08" not in exact_page and 'value="TION 07"' in exact_page
        assert "name=tion&amp;page=2" in first_page
        empty_page = page_html(as_carl.get("/collections/", {"name": 'a\x00"b'}))
        assert "No matching collections." in empty_page and 'value="a&quot;b"' in empty_page

    def test_short_list_has_no_search_field(self, as_carl: Client):
        library.make_library_collection("Only one")
        assert 'id="find"' not in page_html(as_carl.get("/collections/"))

    def test_unreadable_collections_are_not_found_by_name(self, as_bob: Client):  # C06
        library.make_library_collection("Secret plans")
        assert "Secret plans" not in page_html(as_bob.get("/collections/?name=plans"))


class TestCreation:
    def test_collection_admin_creates_a_collection(self, as_carl: Client):
        response = as_carl.post("/collections/", {"name": "Cafe\u0301"}, follow=True)
        collection = Collection.objects.get()
        assert collection.name == "Café" and response.redirect_chain == [(documents_page_path(collection), 302)]
        assert "Collection “Café” created." in page_html(response)

    @pytest.mark.parametrize(
        ("name", "message"),
        [("", "required"), ("a\x07b", "control characters"), ("x" * 201, "200"), ("Handbooks", "already")],
        ids=["empty", "control", "long", "taken"],
    )
    def test_invalid_name_is_reported(self, as_carl: Client, name: str, message: str):  # C11
        library.make_library_collection()
        response = as_carl.post("/collections/", {"name": name})
        assert response.status_code in (400, 409) and message in page_html(response)
        assert Collection.objects.count() == 1

    def test_users_without_the_role_cannot_create_collections(self, as_bob: Client):
        assert "New collection" not in page_html(as_bob.get("/collections/"))
        assert as_bob.post("/collections/", {"name": "Mine"}).status_code == 403
        assert not Collection.objects.exists()


class TestPermissions:
    def test_unreadable_and_missing_collections_give_the_same_404(self, as_bob: Client):  # C02
        collection = library.make_library_collection("Secret plans")
        responses = [as_bob.get(path) for path in (collection_page_path(collection), "/collections/0000000001/")]
        assert [response.status_code for response in responses] == [404, 404]
        assert responses[0].content == responses[1].content

    def test_readers_search_and_change_nothing(self, as_rita: Client):
        collection = library.make_library_collection(readers=("itil",))
        document = library.add_document(collection)
        assert "What are you looking for?" in page_html(as_rita.get(collection_page_path(collection)))
        page = page_html(as_rita.get(documents_page_path(collection)))
        assert "handbook.md" in page and not any(f">{tab}</a>" in page for tab in ("Access", "Settings"))
        assert not any(word in page for word in ("Add documents", "Delete handbook.md", "Delete collection"))
        for action in ("delete", "retry", "reprocess"):
            for path in (document_path(document, action), all_documents_path(collection, action)):
                assert as_rita.post(path, {"confirmed": "yes"}).status_code == 403
        delete_path = reverse("collection-delete", args=[collection.pk])
        assert as_rita.post(delete_path, {"confirmed": "yes"}).status_code == 403
        assert Document.objects.filter(deleted_at=None).count() == 1

    def test_writers_load_and_delete_documents_and_managers_the_collection(self, as_carl: Client):
        collection = library.make_library_collection(writers=("itil",))
        writer_page = page_html(signed_in_client(make_user("wim", "itil")).get(documents_page_path(collection)))
        assert "Add documents" in writer_page and ">Settings</a>" not in writer_page
        assert as_carl.get(collection_page_path(collection)).status_code == 404
        own_collection = library.make_library_collection("Own")
        admin_page = page_html(as_carl.get(documents_page_path(own_collection)))
        assert "Add documents" in admin_page and ">Settings</a>" in admin_page
        assert "Delete collection" in page_html(as_carl.get(settings_page_path(own_collection)))


class TestSearching:
    def search(self, browser: Client, collection: Collection, **parameters: str) -> Any:
        return browser.get(collection_page_path(collection), parameters)

    def test_passages_show_their_location_and_highlights(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection)
        response = self.search(as_carl, collection, query="red toner")
        page = page_html(response)
        assert response.status_code == 200
        assert "<mark>toner</mark>" in page and "<mark>red</mark>" in page
        assert "handbook.md" in page and "Printers" in page and "score 1.00" in page

    def test_results_without_keyword_matches_are_labelled(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection)
        semantic_page, keyword_page = (
            page_html(self.search(as_carl, collection, query=query)) for query in ("zzzzqqq", "red zzzzqqq")
        )
        assert "No keyword matches." in semantic_page and '<li id="hit-1"' in semantic_page
        assert "No keyword matches" not in keyword_page

    def test_text_of_documents_is_never_markup(self, as_carl: Client):  # C25 C26 C27
        collection = library.make_library_collection("<b>Odd</b>")
        hostile_text = "toner <script>alert(1)</script> ![x](http://evil.example/?q=1) <img src=x onerror=alert(2)>"
        library.add_document(collection, hostile_text, filename="<i>evil.md", doc_id='"><svg onload=alert(3)>')
        for path in (
            collection_page_path(collection),
            collection_page_path(collection, "?query=toner"),
            documents_page_path(collection),
            "/collections/",
        ):
            page = page_html(as_carl.get(path))
            assert not re.search(r"<(script>|svg onload|img src=x|b>Odd|i>evil)", page), path
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page_html(self.search(as_carl, collection, query="toner"))

    def test_unavailable_model_is_not_reported_as_a_user_error(self, as_carl: Client):
        collection = library.with_retired_model(library.make_library_collection())
        for response in (
            self.search(as_carl, collection, query="toner", mode="vector"),
            as_carl.get(collection_page_path(collection), {"query": "toner", "mode": "vector"}),
        ):
            assert response.status_code == 503 and "Semantic search is unavailable" in page_html(response)

    def test_filter_and_mode_are_applied(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(
            collection, "Toner for the old printer", metadata={"type": "old"}, filename="old.txt", format="text"
        )
        library.add_document(
            collection, "Toner for the new printer", metadata={"type": "new"}, filename="new.txt", format="text"
        )
        for mode in ("hybrid", "text", "vector"):
            page = page_html(self.search(as_carl, collection, query="toner", filter="type=new", mode=mode))
            assert "new.txt" in page and "old.txt" not in page, mode

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"query": " "}, "Enter a search query."),
            ({"query": "toner", "filter": "type=new^"}, "position 9"),
            ({"query": "x" * 8193}, "8,192 bytes"),
            ({"query": "a\x00b"}, "cannot be stored"),
        ],
        ids=["empty", "filter", "long", "nul"],
    )
    def test_invalid_search_is_reported(self, as_carl: Client, parameters: dict[str, str], message: str):  # C07 C32
        response = self.search(as_carl, library.make_library_collection(), **parameters)
        assert response.status_code == 400 and message in page_html(response)

    @pytest.mark.parametrize("k", ["0", "-1", "9999", "many", "2"])
    def test_number_of_passages_is_clamped(self, as_carl: Client, k: str):
        collection = library.make_library_collection()
        library.add_document(collection)
        assert "<mark>" in page_html(self.search(as_carl, collection, query="toner mailbox", k=k))

    def test_more_passages_are_offered_until_none_are_left(self, as_carl: Client):
        collection = library.make_library_collection()
        for number in range(12):
            library.add_document(collection, f"Toner number {number}", filename=f"{number}.txt", format="text")
        first_page, full_page = (page_html(self.search(as_carl, collection, query="toner", k=k)) for k in ("", "20"))
        assert first_page.count("<mark>") == 5 and "Show more" in first_page and "k=10" in first_page
        assert full_page.count("<mark>") == 12 and "Show more" not in full_page

    def test_page_states_that_semantic_search_was_unavailable(self, as_carl: Client):  # C29
        collection = library.make_library_collection()
        library.add_document(collection)
        library.with_retired_model(collection)
        page = page_html(self.search(as_carl, collection, query="toner"))
        assert "Semantic search is unavailable" in page and "<mark>toner</mark>" in page

    @pytest.mark.parametrize("stored_name", ["caf\u00e9.txt", "cafe\u0301.txt"])
    def test_document_name_filter_ignores_unicode_composition(self, as_carl: Client, stored_name: str):
        collection = library.make_library_collection()
        library.add_document(collection, "Toner", filename="a.txt", format="text")
        Version.objects.update(filename=stored_name)
        for name in ("caf\u00e9", "cafe\u0301"):
            assert stored_name in page_html(as_carl.get(documents_page_path(collection), {"name": name}))

    def test_empty_result_mentions_documents_being_loaded(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection, is_loaded=False)
        page = page_html(self.search(as_carl, collection, query="toner"))
        assert "No results. 1 document is still being processed." in page


class TestDocuments:
    def document_list(self, browser: Client, collection: Collection, **parameters: str) -> str:
        return page_html(
            browser.get(documents_page_path(collection), parameters, headers={**HTMX_HEADERS, "HX-Target": "documents"})
        )

    def test_each_document_shows_its_state(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection, filename="good.md")
        library.add_document(collection, filename="waiting.md", metadata={"type": "other"}, is_loaded=False)
        failed_document = library.add_failing_document(collection)
        page = self.document_list(as_carl, collection)
        assert "3 documents, 1 passage " in page and "1 ready" in page and "1 failed" in page and "1 queued" in page
        assert (
            failed_document.newest is not None and failed_document.newest.error and failed_document.newest.error in page
        )
        assert page.index("broken.pdf") < page.index("waiting.md") < page.index("good.md")
        assert "every 2s" in page

    def test_list_does_not_refresh_when_nothing_is_loaded(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection)
        assert "every" not in self.document_list(as_carl, collection)

    def test_failed_replacement_explains_which_version_is_searched(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection, doc_id="handbook")
        library.add_failing_document(collection, doc_id="handbook")
        assert "Searches use the previous version." in self.document_list(as_carl, collection)

    def test_only_writers_get_advice_on_unreadable_files(self, as_rita: Client, as_carl: Client):
        own_collection, readable_collection = (
            library.make_library_collection(),
            library.make_library_collection("Read", readers=("itil",)),
        )
        for collection in (own_collection, readable_collection):
            library.add_failing_document(collection)
        assert "Fix the file and replace it." in self.document_list(as_carl, own_collection)
        assert "Fix the file" not in self.document_list(as_rita, readable_collection)

    def test_readers_can_download_originals(self, as_rita: Client):
        collection = library.make_library_collection(readers=("itil",))
        library.add_document(collection)
        assert 'aria-label="Download handbook.md">Download</a>' in self.document_list(as_rita, collection)

    def test_documents_are_paged_and_filtered_by_name_and_state(self, as_carl: Client):
        collection = library.make_library_collection()
        for number in range(21):
            library.add_document(collection, f"Text {number}", filename=f"file {number:02}.md", is_loaded=False)
        first_page, second_page = (
            self.document_list(as_carl, collection),
            self.document_list(as_carl, collection, page="2"),
        )
        assert "file 20.md" in first_page and "file 00.md" not in first_page and "file 00.md" in second_page
        filtered_page = self.document_list(as_carl, collection, name="e 07", state="queued")
        assert (
            "file 07.md" in filtered_page
            and "file 08.md" not in filtered_page
            and "name=e+07&amp;state=queued&amp;page=1" in filtered_page
        )
        assert "No documents match this name and state." in self.document_list(
            as_carl, collection, name="a\x00b", state="ready"
        )
        assert "file 20.md" in self.document_list(as_carl, collection, state="nonsense", page="nonsense")

    def test_page_is_reloaded_after_the_session_has_ended(self, carl: User):
        response = Client().get(
            documents_page_path(library.make_library_collection()), headers={**HTMX_HEADERS, "HX-Target": "documents"}
        )
        assert response["HX-Refresh"] == "true" and not response.content


class TestDeleting:
    def test_deletion_without_scripts_is_confirmed(self, as_carl: Client):
        document = library.add_document(library.make_library_collection())
        path = document_path(document, "delete")
        response = as_carl.post(path)
        assert response.status_code == 200 and "This cannot be undone" in page_html(response)
        assert not Document.objects.filter(deleted_at__isnull=False).exists()
        list_page = as_carl.post(path, {"confirmed": "yes"}, follow=True)
        assert "was deleted." in page_html(list_page) and "No documents yet." in page_html(list_page)
        assert not Document.objects.filter(deleted_at=None).exists()

    def test_deletion_with_scripts_returns_the_list(self, as_carl: Client):
        collection = library.make_library_collection()
        remaining_document, deleted_document = (
            library.add_document(collection, filename="kept.md"),
            library.add_document(collection, "Other", filename="gone.md"),
        )
        headers = {**HTMX_HEADERS, "HX-Target": "documents"}
        response = as_carl.post(
            document_path(deleted_document, "delete") + "?name=.md&page=1", {"confirmed": "yes"}, headers=headers
        )
        assert (
            "kept.md" in page_html(response)
            and "gone.md" not in page_html(response)
            and "<html" not in page_html(response)
        )
        assert remaining_document.pk in page_html(response)
        assert (
            as_carl.post(document_path(deleted_document, "delete"), {"confirmed": "yes"}, headers=headers).status_code
            == 404
        )

    def test_document_is_deleted_only_through_its_own_collection(self, as_carl: Client):  # C12
        document, other_collection = (
            library.add_document(library.make_library_collection()),
            library.make_library_collection("Other"),
        )
        path = reverse("document-delete", args=[other_collection.pk, document.pk])
        assert as_carl.post(path, {"confirmed": "yes"}).status_code == 404
        assert Document.objects.filter(deleted_at=None).count() == 1

    def test_deleting_a_collection_deletes_its_documents(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection)
        path = reverse("collection-delete", args=[collection.pk])
        assert "and all its documents? This cannot be undone." in page_html(as_carl.post(path))
        response = as_carl.post(path, {"confirmed": "yes"}, headers={**HTMX_HEADERS, "HX-Target": ""})
        assert response["HX-Redirect"] == "/collections/"
        assert "” deleted." in page_html(as_carl.get("/collections/"))
        assert as_carl.get(documents_page_path(collection)).status_code == 404
        assert as_carl.post(path, {"confirmed": "yes"}).status_code == 404

    @pytest.mark.parametrize(
        "name",
        [
            *("document-delete", "document-retry", "document-reprocess", "document-metadata"),
            *("documents-delete", "documents-retry", "documents-reprocess", "collection-delete", "collections"),
        ],
    )
    def test_forms_of_another_site_are_refused(self, carl: User, name: str):
        document = library.add_document(library.make_library_collection())
        arguments = [document.collection_id, document.pk] if name.startswith("document-") else [document.collection_id]
        path = reverse(name, args=[] if name == "collections" else arguments)
        response = signed_in_client(carl, enforce_csrf_checks=True).post(path, {"confirmed": "yes", "name": "Forged"})
        assert response.status_code == 403
        assert (
            Document.objects.filter(deleted_at=None).count() == Collection.objects.filter(deleted_at=None).count() == 1
        )

    def test_get_of_an_action_path_changes_nothing(self, as_carl: Client):
        document = library.add_document(library.make_library_collection())
        assert as_carl.get(document_path(document, "delete") + "?confirmed=yes").status_code == 405


class TestMetadata:
    """Invalid metadata would affect every filter."""

    def form_etag(self, browser: Client, document: Document) -> str:
        """The ETag that the metadata form contains."""
        page = page_html(browser.get(document_path(document, "metadata")))
        match = re.search(r'name="tag" value="([^"]+)"', page)
        assert match is not None
        return match[1].replace("&quot;", '"')

    def test_writer_changes_metadata(self, as_carl: Client):
        document = library.add_document(
            library.make_library_collection(), metadata={"type": "old", "title": "Drücken </textarea>"}
        )
        url = document_path(document, "metadata") + "?name=hand&page=1"
        page = page_html(as_carl.get(url))
        assert "&quot;title&quot;: &quot;Drücken &lt;/textarea&gt;&quot;" in page
        form = {"metadata": '{"type": "new",\r\n "number": 9007199254740993}', "tag": self.form_etag(as_carl, document)}
        response = as_carl.post(url, form, follow=True)
        assert response.redirect_chain == [(documents_page_path(document.collection, "?name=hand&page=1"), 302)]
        assert "Metadata of “handbook.md” saved." in page_html(response) and "type: new" in page_html(response)
        assert Document.objects.get().newest.metadata == {"type": "new", "number": 9007199254740993}  # type: ignore[union-attr]

        form_without_metadata = {"metadata": " ", "tag": self.form_etag(as_carl, document)}
        assert as_carl.post(url, form_without_metadata).status_code == 302
        assert Document.objects.get().newest.metadata == {}  # type: ignore[union-attr]

    def test_invalid_metadata_is_reported_and_the_input_is_kept(self, as_carl: Client):
        document = library.add_document(library.make_library_collection(), metadata={"type": "old"})
        form = {"metadata": '{"priority": "high", "flag": 1}', "tag": self.form_etag(as_carl, document)}
        response = as_carl.post(document_path(document, "metadata"), form)
        page = page_html(response)
        assert (
            response.status_code == 400
            and "priority must be a whole number" in page
            and "flag must be true or false" in page
        )
        assert 'aria-invalid="true"' in page and "&quot;priority&quot;: &quot;high&quot;" in page
        assert as_carl.post(document_path(document, "metadata"), {**form, "metadata": "{"}).status_code == 400
        assert Document.objects.get().newest.metadata == {"type": "old"}  # type: ignore[union-attr]

    def test_concurrent_change_is_not_overwritten(self, as_carl: Client):
        document = library.add_document(library.make_library_collection(), metadata={"type": "old"})
        etag = self.form_etag(as_carl, document)
        url = document_path(document, "metadata")
        assert as_carl.post(url, {"metadata": '{"type": "theirs"}', "tag": etag}).status_code == 302
        response = as_carl.post(url, {"metadata": '{"type": "mine"}', "tag": etag})
        page = page_html(response)
        assert response.status_code == 412 and "it was changed in the meantime" in page
        assert "&quot;theirs&quot;" in page and "&quot;mine&quot;" in page
        assert as_carl.post(url, {"metadata": '{"type": "mine"}'}).status_code == 400
        assert Document.objects.get().newest.metadata == {"type": "theirs"}  # type: ignore[union-attr]

    def test_readers_have_no_link_and_no_access(self, as_rita: Client, as_bob: Client):
        document = library.add_document(library.make_library_collection(readers=("itil",)))
        url = document_path(document, "metadata")
        assert url not in page_html(as_rita.get(documents_page_path(document.collection)))
        for browser, status in ((as_rita, 403), (as_bob, 404)):
            assert browser.get(url).status_code == status
            assert browser.post(url, {"metadata": "{}", "tag": "*"}).status_code == status


class TestRetry:
    def test_failed_document_is_queued_again(self, as_carl: Client):
        document = library.add_failing_document(library.make_library_collection())
        Version.objects.update(error_code="limit_time")
        assert f'id="retry-{document.pk}"' in page_html(as_carl.get(documents_page_path(document.collection)))
        assert "is being processed again." in page_html(as_carl.post(document_path(document, "retry"), follow=True))
        document.refresh_from_db()
        assert document.newest is not None and document.newest.state == "queued"

    def test_retry_is_not_offered_for_unreadable_files(self, as_carl: Client):
        document = library.add_failing_document(library.make_library_collection())
        page = page_html(as_carl.get(documents_page_path(document.collection)))
        assert "Fix the file and replace it." in page and "retry-" not in page


class TestReprocess:
    def test_document_is_queued_again_and_searched_in_the_meantime(self, as_carl: Client):
        document = library.add_document(library.make_library_collection())
        assert f'id="reprocess-{document.pk}"' in page_html(as_carl.get(documents_page_path(document.collection)))
        response = as_carl.post(document_path(document, "reprocess"), follow=True)
        assert "is being reprocessed with the current settings." in page_html(response)
        assert "Searches use the previous version." in page_html(response)
        document.refresh_from_db()
        assert document.newest is not None
        assert (document.newest.generation, document.newest.state) == (2, "queued")

    def test_reprocessing_is_not_offered_for_queued_documents(self, as_carl: Client):
        document = library.add_document(library.make_library_collection())
        as_carl.post(document_path(document, "reprocess"))
        assert f'id="reprocess-{document.pk}"' not in page_html(as_carl.get(documents_page_path(document.collection)))


class TestAllDocuments:
    """Actions on all documents in the list."""

    CONFIRMED: ClassVar[dict[str, str]] = {"confirmed": "yes"}

    def test_failed_documents_are_retried(self, as_carl: Client):
        collection = library.make_library_collection()
        good_document, failed_document = library.add_document(collection), library.add_failing_document(collection)
        page = page_html(as_carl.post(all_documents_path(collection, "retry"), self.CONFIRMED, follow=True))
        assert "1 document queued again." in page
        for document, state in ((good_document, "ready"), (failed_document, "queued")):
            document.refresh_from_db()
            assert document.newest is not None and document.newest.state == state

    def test_all_documents_are_reprocessed(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection), library.add_failing_document(collection)
        page = page_html(as_carl.post(all_documents_path(collection, "reprocess"), self.CONFIRMED, follow=True))
        assert "2 documents queued for reprocessing with the current settings." in page
        states = Document.objects.values_list("newest__generation", "newest__state")
        assert list(states) == [(2, "queued"), (2, "queued")]

    def test_only_documents_that_match_the_filter_are_deleted(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection, filename="keep.md")
        library.add_document(collection, "Other", filename="gone.md")
        library.add_document(library.make_library_collection("Second"), filename="gone.md")
        as_carl.post(all_documents_path(collection, "delete", "?name=gone"), self.CONFIRMED)
        titles = [document.page_title() for document in Document.objects.filter(deleted_at=None).order_by("pk")]
        assert titles == ["keep.md", "gone.md"]
        assert not Version.objects.filter(is_searched=True, filename="gone.md", collection=collection).exists()

    @pytest.mark.parametrize("action", ["delete", "retry", "reprocess"])
    def test_action_without_scripts_is_confirmed(self, as_carl: Client, action: str):
        collection = library.make_library_collection()
        library.add_failing_document(collection)
        response = as_carl.post(all_documents_path(collection, action))
        assert f"{action.title()} 1 document?" in page_html(response)
        assert f">{action.title()}</button>" in page_html(response)
        assert Version.objects.get().state == "failed" and Document.objects.get().deleted_at is None

    def test_action_on_no_documents_is_reported(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection)
        assert ">Retry failed</button>" not in page_html(as_carl.get(documents_page_path(collection)))
        assert "No documents match." in page_html(
            as_carl.post(all_documents_path(collection, "retry"), self.CONFIRMED, follow=True)
        )

    def test_documents_beyond_the_queue_limit_are_refused_and_named(self, as_carl: Client, settings: Any):
        settings.COLLECTIONS = {**settings.COLLECTIONS, "waiting_limit": 1}
        collection = library.make_library_collection()
        for number in range(3):
            library.add_document(collection, f"Text {number}.")
        path = all_documents_path(collection, "reprocess")
        page = page_html(as_carl.post(path, self.CONFIRMED, headers={**HTMX_HEADERS, "HX-Target": "documents"}))
        assert page.count("You have reached the limit of 1 queued") == 2
        assert list(Document.objects.values_list("newest__state", flat=True)).count("queued") == 1

    def test_refusal_names_the_first_documents(self, as_carl: Client, monkeypatch: pytest.MonkeyPatch):
        def raise_refusal(*_: Any) -> None:
            raise Conflict("Not now.")

        monkeypatch.setattr(loading, "reprocess", raise_refusal)
        collection = library.make_library_collection()
        Document.objects.bulk_create(
            Document(collection=collection, doc_id=f"docu-{number:03}") for number in range(60)
        )
        response = as_carl.post(all_documents_path(collection, "reprocess"), self.CONFIRMED, follow=True)
        messages = [str(message) for message in response.context["messages"]]
        assert len(messages) == MAX_NAMES_SHOWN + 1 and messages[-1] == "… and 10 more"

    def test_selected_documents_are_deleted_after_a_confirmation_with_their_number(self, as_carl: Client):
        collection = library.make_library_collection()
        documents = [library.add_document(collection, text, filename=f"{text}.md") for text in ("a", "b", "c")]
        other_document = library.add_document(library.make_library_collection("Other"))
        path = all_documents_path(collection, "delete")
        form = {"selection": "yes", "document": [documents[0].pk, documents[2].pk, other_document.pk, "x"]}
        page = page_html(as_carl.post(path, form))
        assert (
            "Delete 2 documents? This cannot be undone." in page
            and Document.objects.filter(deleted_at=None).count() == 4
        )
        assert all(f'name="document" value="{pk}"' in page for pk in (documents[0].pk, documents[2].pk))
        assert 'name="selection"' in page
        assert "2 documents deleted." in page_html(as_carl.post(path, {**form, **self.CONFIRMED}, follow=True))
        remaining = Document.objects.filter(deleted_at=None).values_list("pk", flat=True)
        assert set(remaining) == {documents[1].pk, other_document.pk}

    def test_empty_selection_deletes_nothing(self, as_carl: Client):
        collection = library.make_library_collection()
        library.add_document(collection)
        path = all_documents_path(collection, "delete")
        for form in ({"selection": "yes"}, {"selection": "yes", **self.CONFIRMED}):
            assert "Select at least one document." in page_html(as_carl.post(path, form, follow=True))
        assert Document.objects.filter(deleted_at=None).count() == 1

    def test_request_changes_a_limited_number_of_documents(self, as_carl: Client, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(document_actions, "MAX_DOCUMENTS", 2)
        collection = library.make_library_collection()
        Document.objects.bulk_create(Document(collection=collection, doc_id=f"docu-{number}") for number in range(3))
        page = page_html(as_carl.post(all_documents_path(collection, "delete"), self.CONFIRMED, follow=True))
        assert "2 documents deleted." in page and "The action was applied only to the first 2 documents." in page
        assert Document.objects.filter(deleted_at=None).count() == 1


def test_file_size_limit_is_shown_as_a_round_number(as_carl: Client):
    assert "Up to 32\xa0MB per file" in page_html(as_carl.get(documents_page_path(library.make_library_collection())))


def test_page_has_no_inline_script_or_style(as_carl: Client):
    collection = library.make_library_collection()
    library.add_failing_document(collection)
    page = page_html(as_carl.get(collection_page_path(collection), {"query": "toner"}))
    assert "style=" not in page and not re.search(r"\son[a-z]+=", page) and "hx-on" not in page
    assert all("src=" in script for script in re.findall(r"<script[^>]*>", page))


def test_start_page_links_to_collections(as_bob: Client):
    assert 'href="/collections/"' in page_html(as_bob.get("/"))

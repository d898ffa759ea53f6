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
from tests.support.users import make_user, signed_in

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def page_of(collection: Collection, part: str = "") -> str:
    return reverse("collection", args=[collection.pk]) + part


def place_of(document: Document, what: str) -> str:
    return reverse(f"document-{what}", args=[document.collection_id, document.pk])


def all_of(collection: Collection, what: str, query: str = "") -> str:
    return reverse(f"documents-{what}", args=[collection.pk]) + query


def text_of(response: Any) -> str:
    page: str = response.content.decode()
    return page


class TestTheList:
    @pytest.mark.parametrize("path", ["/collections/", "/collections/0000000001/"])
    def test_it_asks_to_sign_in(self, path: str):
        response = Client().get(path)
        assert response.status_code == 302 and response["Location"] == f"/login/?next={path}"

    def test_it_names_what_this_person_may_read_and_nothing_else(self, as_rita: Client, as_bob: Client):  # C06
        library.add(library.make("For all of itil", readers=("itil",)))
        library.make("Secret plans")
        page_text = text_of(as_rita.get("/collections/"))
        assert "For all of itil" in page_text and "1 document, 1 passage<" in page_text and "1 ready" in page_text
        assert "Secret plans" not in page_text
        assert "You don't have access to any collections." in text_of(as_bob.get("/collections/"))

    def test_where_there_is_none_it_says_what_to_do(self, as_bob: Client, as_carl: Client):
        reader, maker = (text_of(client.get("/collections/")) for client in (as_bob, as_carl))
        assert "Ask an administrator for a role" in reader and "Create one" not in reader
        assert '<a href="#id_name">Create one below</a>' in maker and 'id="id_name"' in maker and "Ask an" not in maker

    def test_it_looks_again_by_itself_while_something_is_loaded(self, as_carl: Client):
        collection = library.make()
        library.add(collection, is_loaded=False)
        response = as_carl.get("/collections/", headers={**HTMX, "HX-Target": "collections"})
        assert "every 3s" in text_of(response) and "1 queued" in text_of(response) and "<html" not in text_of(response)
        library.add(collection, doc_id=Document.objects.get().doc_id, metadata={"type": "done"})
        assert "every" not in text_of(as_carl.get("/collections/"))

    def test_many_collections_have_pages(self, as_carl: Client):
        for number in range(21):
            library.make(f"Collection {number:02}")
        first, second = (text_of(as_carl.get(f"/collections/?page={page}")) for page in (1, 2))
        assert "Collection 19" in first and "Collection 20" not in first and "Page 1 of 2" in first
        assert "Collection 20" in second and "Collection 19" not in second

    def test_one_of_many_is_found_by_a_part_of_its_name(self, as_carl: Client):
        for number in range(42):
            library.make(f"Collection {number:02}")
        assert 'id="find"' in text_of(as_carl.get("/collections/"))
        named, twice = (text_of(as_carl.get("/collections/", {"name": name})) for name in ("TION 07", "tion"))
        assert "Collection 07" in named and "Collection 08" not in named and 'value="TION 07"' in named
        assert "name=tion&amp;page=2" in twice
        none = text_of(as_carl.get("/collections/", {"name": 'a\x00"b'}))
        assert "No matching collections." in none and 'value="a&quot;b"' in none

    def test_few_need_not_be_found(self, as_carl: Client):
        library.make("Only one")
        assert 'id="find"' not in text_of(as_carl.get("/collections/"))

    def test_what_may_not_be_read_is_not_found_either(self, as_bob: Client):  # C06
        library.make("Secret plans")
        assert "Secret plans" not in text_of(as_bob.get("/collections/?name=plans"))


class TestMakingOne:
    def test_who_runs_collections_makes_one(self, as_carl: Client):
        response = as_carl.post("/collections/", {"name": "Cafe\u0301"}, follow=True)
        collection = Collection.objects.get()
        assert collection.name == "Café" and response.redirect_chain == [(page_of(collection), 302)]
        assert "Collection “Café” created." in text_of(response)

    @pytest.mark.parametrize(
        ("name", "said"),
        [("", "required"), ("a\x07b", "control characters"), ("x" * 201, "200"), ("Handbooks", "already")],
        ids=["empty", "control", "long", "taken"],
    )
    def test_unfit_name_is_told(self, as_carl: Client, name: str, said: str):  # C11
        library.make()
        response = as_carl.post("/collections/", {"name": name})
        assert response.status_code in (400, 409) and said in text_of(response)
        assert Collection.objects.count() == 1

    def test_others_make_none(self, as_bob: Client):
        assert "New collection" not in text_of(as_bob.get("/collections/"))
        assert as_bob.post("/collections/", {"name": "Mine"}).status_code == 403
        assert not Collection.objects.exists()


class TestWhoSeesACollection:
    def test_one_that_cannot_be_read_is_as_one_that_is_not_there(self, as_bob: Client):  # C02
        secret = library.make("Secret plans")
        responses = [as_bob.get(path) for path in (page_of(secret), "/collections/0000000001/")]
        assert [response.status_code for response in responses] == [404, 404]
        assert responses[0].content == responses[1].content

    def test_readers_search_and_change_nothing(self, as_rita: Client):
        collection = library.make(readers=("itil",))
        document = library.add(collection)
        page_text = text_of(as_rita.get(page_of(collection)))
        assert "handbook.md" in page_text and "What are you looking for?" in page_text
        assert not any(word in page_text for word in ("Add documents", "Delete handbook.md", "Delete collection"))
        for name in ("delete", "retry", "reprocess"):
            for path in (place_of(document, name), all_of(collection, name)):
                assert as_rita.post(path, {"confirmed": "yes"}).status_code == 403
        delete = reverse("collection-delete", args=[collection.pk])
        assert as_rita.post(delete, {"confirmed": "yes"}).status_code == 403
        assert Document.objects.filter(deleted_at=None).count() == 1

    def test_writers_load_and_delete_documents_and_managers_the_collection(self, as_carl: Client):
        collection = library.make(writers=("itil",))
        writer = text_of(signed_in(make_user("wim", "itil")).get(page_of(collection)))
        assert "Add documents" in writer and "Delete collection" not in writer
        assert as_carl.get(page_of(collection)).status_code == 404
        own = text_of(as_carl.get(page_of(library.make("Own"))))
        assert "Add documents" in own and "Delete collection" in own and ">Settings</a>" in own


class TestSearching:
    def ask(self, browser: Client, collection: Collection, **asked: str) -> Any:
        return browser.get(page_of(collection), asked, headers={**HTMX, "HX-Target": "results"})

    def test_passages_show_where_they_stand_and_which_words_were_found(self, as_carl: Client):
        collection = library.make()
        library.add(collection)
        response = self.ask(as_carl, collection, query="red toner")
        page_text = text_of(response)
        assert response.status_code == 200 and "<html" not in page_text
        assert "<mark>toner</mark>" in page_text and "<mark>red</mark>" in page_text
        assert "handbook.md" in page_text and "Printers" in page_text and "score 1.00" in page_text

    def test_passages_that_are_only_near_are_called_so(self, as_carl: Client):
        collection = library.make()
        library.add(collection)
        near, found = (text_of(self.ask(as_carl, collection, query=query)) for query in ("zzzzqqq", "red zzzzqqq"))
        assert "No keyword matches." in near and "<li>" in near
        assert "No keyword matches" not in found

    def test_without_scripts_the_whole_page_answers(self, as_carl: Client):
        collection = library.make()
        library.add(collection)
        page_text = text_of(as_carl.get(page_of(collection), {"query": "toner"}))
        assert "<mark>toner</mark>" in page_text and "<html" in page_text and 'value="toner"' in page_text

    def test_text_of_documents_is_never_markup(self, as_carl: Client):  # C25 C26 C27
        collection = library.make("<b>Odd</b>")
        evil = "toner <script>alert(1)</script> ![x](http://evil.example/?q=1) <img src=x onerror=alert(2)>"
        library.add(collection, evil, filename="<i>evil.md", doc_id='"><svg onload=alert(3)>')
        for path in (page_of(collection), page_of(collection, "?query=toner"), "/collections/"):
            page_text = text_of(as_carl.get(path))
            assert not re.search(r"<(script>|svg|img src=x|b>Odd|i>evil)", page_text), path
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text_of(self.ask(as_carl, collection, query="toner"))

    def test_model_that_is_away_is_no_fault_of_who_asks(self, as_carl: Client):
        collection = library.with_a_model_that_is_gone(library.make())
        for response in (
            self.ask(as_carl, collection, query="toner", mode="vector"),
            as_carl.get(page_of(collection), {"query": "toner", "mode": "vector"}),
        ):
            assert response.status_code == 503 and "Semantic search is unavailable" in text_of(response)

    def test_filter_and_mode_count(self, as_carl: Client):
        collection = library.make()
        library.add(
            collection, "Toner for the old printer", metadata={"type": "old"}, filename="old.txt", format="text"
        )
        library.add(
            collection, "Toner for the new printer", metadata={"type": "new"}, filename="new.txt", format="text"
        )
        for mode in ("hybrid", "text", "vector"):
            page_text = text_of(self.ask(as_carl, collection, query="toner", filter="type=new", mode=mode))
            assert "new.txt" in page_text and "old.txt" not in page_text, mode

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            ({"query": " "}, "Enter a search query."),
            ({"query": "toner", "filter": "type=new^"}, "position 9"),
            ({"query": "x" * 8193}, "8,192 bytes"),
            ({"query": "a\x00b"}, "cannot be stored"),
        ],
        ids=["empty", "filter", "long", "nul"],
    )
    def test_what_cannot_be_asked_is_told(self, as_carl: Client, asked: dict[str, str], said: str):  # C07 C32
        response = self.ask(as_carl, library.make(), **asked)
        assert response.status_code == 400 and said in text_of(response)

    @pytest.mark.parametrize("k", ["0", "-1", "9999", "many", "2"])
    def test_any_number_of_passages_is_brought_within_its_bounds(self, as_carl: Client, k: str):
        collection = library.make()
        library.add(collection)
        assert "<mark>" in text_of(self.ask(as_carl, collection, query="toner mailbox", k=k))

    def test_there_is_more_as_long_as_there_may_be(self, as_carl: Client):
        collection = library.make()
        for number in range(12):
            library.add(collection, f"Toner number {number}", filename=f"{number}.txt", format="text")
        five, all_of_them = (text_of(self.ask(as_carl, collection, query="toner", k=k)) for k in ("", "20"))
        assert five.count("<mark>") == 5 and "Show more" in five and "k=10" in five
        assert all_of_them.count("<mark>") == 12 and "Show more" not in all_of_them

    def test_it_says_when_meaning_was_not_compared(self, as_carl: Client):  # C29
        collection = library.make()
        library.add(collection)
        library.with_a_model_that_is_gone(collection)
        page_text = text_of(self.ask(as_carl, collection, query="toner"))
        assert "Semantic search is unavailable" in page_text and "<mark>toner</mark>" in page_text

    @pytest.mark.parametrize("stored", ["caf\u00e9.txt", "cafe\u0301.txt"])
    def test_document_is_found_by_its_name_however_it_is_composed(self, as_carl: Client, stored: str):
        collection = library.make()
        library.add(collection, "Toner", filename="a.txt", format="text")
        Version.objects.update(filename=stored)
        for name in ("caf\u00e9", "cafe\u0301"):
            assert stored in text_of(as_carl.get(f"/collections/{collection.pk}/", {"name": name}))

    def test_nothing_found_says_what_is_still_being_loaded(self, as_carl: Client):
        collection = library.make()
        library.add(collection, is_loaded=False)
        page_text = text_of(self.ask(as_carl, collection, query="toner"))
        assert "No results. 1 document is still being processed." in page_text


class TestDocuments:
    def part(self, browser: Client, collection: Collection, **asked: str) -> str:
        return text_of(browser.get(page_of(collection), asked, headers={**HTMX, "HX-Target": "documents"}))

    def test_each_says_how_far_it_has_come(self, as_carl: Client):
        collection = library.make()
        library.add(collection, filename="good.md")
        library.add(collection, filename="waiting.md", metadata={"type": "other"}, is_loaded=False)
        failed = library.add_failing(collection)
        actual = self.part(as_carl, collection)
        assert (
            "3 documents, 1 passage " in actual
            and "1 ready" in actual
            and "1 failed" in actual
            and "1 queued" in actual
        )
        assert failed.newest is not None and failed.newest.error and failed.newest.error in actual
        assert actual.index("broken.pdf") < actual.index("waiting.md") < actual.index("good.md")
        assert "every 2s" in actual

    def test_it_is_quiet_when_nothing_is_loaded(self, as_carl: Client):
        collection = library.make()
        library.add(collection)
        assert "every" not in self.part(as_carl, collection)

    def test_failed_replacement_says_what_searches_see(self, as_carl: Client):
        collection = library.make()
        library.add(collection, doc_id="handbook")
        library.add_failing(collection, doc_id="handbook")
        assert "Searches use the previous version." in self.part(as_carl, collection)

    def test_file_at_fault_is_not_only_tried_again(self, as_rita: Client, as_carl: Client):
        own, read = library.make(), library.make("Read", readers=("itil",))
        for collection in (own, read):
            library.add_failing(collection)
        assert "Fix the file, upload it again and delete this entry." in self.part(as_carl, own)
        assert "Fix the file" not in self.part(as_rita, read)

    def test_readers_download_too(self, as_rita: Client):
        collection = library.make(readers=("itil",))
        library.add(collection)
        assert 'aria-label="Download handbook.md">Download</a>' in self.part(as_rita, collection)

    def test_they_have_pages_and_are_found_by_name_and_state(self, as_carl: Client):
        collection = library.make()
        for number in range(21):
            library.add(collection, f"Text {number}", filename=f"file {number:02}.md", is_loaded=False)
        first, second = self.part(as_carl, collection), self.part(as_carl, collection, page="2")
        assert "file 20.md" in first and "file 00.md" not in first and "file 00.md" in second
        named = self.part(as_carl, collection, name="e 07", state="queued")
        assert "file 07.md" in named and "file 08.md" not in named and "name=e+07&amp;state=queued&amp;page=1" in named
        assert "No documents match this name and state." in self.part(as_carl, collection, name="a\x00b", state="ready")
        assert "file 20.md" in self.part(as_carl, collection, state="nonsense", page="nonsense")

    def test_after_the_session_has_ended_the_page_is_loaded_anew(self, carl: User):
        response = Client().get(page_of(library.make()), headers={**HTMX, "HX-Target": "documents"})
        assert response["HX-Refresh"] == "true" and not response.content


class TestDeleting:
    def test_without_scripts_it_is_asked_first(self, as_carl: Client):
        document = library.add(library.make())
        path = place_of(document, "delete")
        response = as_carl.post(path)
        assert response.status_code == 200 and "This cannot be undone" in text_of(response)
        assert not Document.objects.filter(deleted_at__isnull=False).exists()
        answer = as_carl.post(path, {"confirmed": "yes"}, follow=True)
        assert "was deleted." in text_of(answer) and "No documents yet." in text_of(answer)
        assert not Document.objects.filter(deleted_at=None).exists()

    def test_with_scripts_the_list_comes_back(self, as_carl: Client):
        collection = library.make()
        remaining, gone = (
            library.add(collection, filename="kept.md"),
            library.add(collection, "Other", filename="gone.md"),
        )
        headers = {**HTMX, "HX-Target": "documents"}
        response = as_carl.post(place_of(gone, "delete") + "?name=.md&page=1", {"confirmed": "yes"}, headers=headers)
        assert (
            "kept.md" in text_of(response) and "gone.md" not in text_of(response) and "<html" not in text_of(response)
        )
        assert remaining.pk in text_of(response)
        assert as_carl.post(place_of(gone, "delete"), {"confirmed": "yes"}, headers=headers).status_code == 404

    def test_document_is_deleted_through_its_own_collection_only(self, as_carl: Client):  # C12
        document, other = library.add(library.make()), library.make("Other")
        path = reverse("document-delete", args=[other.pk, document.pk])
        assert as_carl.post(path, {"confirmed": "yes"}).status_code == 404
        assert Document.objects.filter(deleted_at=None).count() == 1

    def test_collection_goes_with_its_documents(self, as_carl: Client):
        collection = library.make()
        library.add(collection)
        path = reverse("collection-delete", args=[collection.pk])
        assert "with all its documents? This cannot be undone." in text_of(as_carl.post(path))
        response = as_carl.post(path, {"confirmed": "yes"}, headers={**HTMX, "HX-Target": ""})
        assert response["HX-Redirect"] == "/collections/"
        assert "” deleted." in text_of(as_carl.get("/collections/"))
        assert as_carl.get(page_of(collection)).status_code == 404
        assert as_carl.post(path, {"confirmed": "yes"}).status_code == 404

    @pytest.mark.parametrize(
        "name",
        [
            *("document-delete", "document-retry", "document-reprocess", "document-metadata"),
            *("documents-delete", "documents-retry", "documents-reprocess", "collection-delete", "collections"),
        ],
    )
    def test_another_site_does_nothing_here(self, carl: User, name: str):
        document = library.add(library.make())
        words = [document.collection_id, document.pk] if name.startswith("document-") else [document.collection_id]
        path = reverse(name, args=[] if name == "collections" else words)
        response = signed_in(carl, enforce_csrf_checks=True).post(path, {"confirmed": "yes", "name": "Forged"})
        assert response.status_code == 403
        assert (
            Document.objects.filter(deleted_at=None).count() == Collection.objects.filter(deleted_at=None).count() == 1
        )

    def test_looking_at_such_an_address_changes_nothing(self, as_carl: Client):
        document = library.add(library.make())
        assert as_carl.get(place_of(document, "delete") + "?confirmed=yes").status_code == 405


class TestMetadata:
    """Wrong once, they would be wrong in every filter."""

    def open(self, browser: Client, document: Document) -> str:
        """What a change of these metadata, as they are shown, is sent with."""
        page_text = text_of(browser.get(place_of(document, "metadata")))
        match = re.search(r'name="tag" value="([^"]+)"', page_text)
        assert match is not None
        return match[1].replace("&quot;", '"')

    def test_writer_changes_them(self, as_carl: Client):
        document = library.add(library.make(), metadata={"type": "old", "title": "Drücken </textarea>"})
        place = place_of(document, "metadata") + "?name=hand&page=1"
        page_text = text_of(as_carl.get(place))
        assert "&quot;title&quot;: &quot;Drücken &lt;/textarea&gt;&quot;" in page_text
        sent = {"metadata": '{"type": "new",\r\n "number": 9007199254740993}', "tag": self.open(as_carl, document)}
        response = as_carl.post(place, sent, follow=True)
        assert response.redirect_chain == [(page_of(document.collection, "?name=hand&page=1"), 302)]
        assert "Metadata of “handbook.md” saved." in text_of(response) and "type: new" in text_of(response)
        assert Document.objects.get().newest.metadata == {"type": "new", "number": 9007199254740993}  # type: ignore[union-attr]

        emptied = {"metadata": " ", "tag": self.open(as_carl, document)}
        assert as_carl.post(place, emptied).status_code == 302
        assert Document.objects.get().newest.metadata == {}  # type: ignore[union-attr]

    def test_what_is_wrong_is_said_beside_the_field_with_what_was_typed(self, as_carl: Client):
        document = library.add(library.make(), metadata={"type": "old"})
        sent = {"metadata": '{"priority": "high", "flag": 1}', "tag": self.open(as_carl, document)}
        response = as_carl.post(place_of(document, "metadata"), sent)
        page_text = text_of(response)
        assert (
            response.status_code == 400
            and "priority must be a whole number" in page_text
            and "flag must be true or false" in page_text
        )
        assert 'aria-invalid="true"' in page_text and "&quot;priority&quot;: &quot;high&quot;" in page_text
        assert as_carl.post(place_of(document, "metadata"), {**sent, "metadata": "{"}).status_code == 400
        assert Document.objects.get().newest.metadata == {"type": "old"}  # type: ignore[union-attr]

    def test_nobody_overwrites_what_they_have_not_seen(self, as_carl: Client):
        document = library.add(library.make(), metadata={"type": "old"})
        tag = self.open(as_carl, document)
        place = place_of(document, "metadata")
        assert as_carl.post(place, {"metadata": '{"type": "theirs"}', "tag": tag}).status_code == 302
        response = as_carl.post(place, {"metadata": '{"type": "mine"}', "tag": tag})
        page_text = text_of(response)
        assert response.status_code == 412 and "the metadata has changed since you opened this page" in page_text
        assert "&quot;theirs&quot;" in page_text and "&quot;mine&quot;" in page_text
        assert as_carl.post(place, {"metadata": '{"type": "mine"}'}).status_code == 400
        assert Document.objects.get().newest.metadata == {"type": "theirs"}  # type: ignore[union-attr]

    def test_readers_are_not_led_there_and_not_let_in(self, as_rita: Client, as_bob: Client):
        document = library.add(library.make(readers=("itil",)))
        place = place_of(document, "metadata")
        assert place not in text_of(as_rita.get(page_of(document.collection)))
        for browser, status in ((as_rita, 403), (as_bob, 404)):
            assert browser.get(place).status_code == status
            assert browser.post(place, {"metadata": "{}", "tag": "*"}).status_code == status


class TestTryingAgain:
    def test_what_failed_is_queued(self, as_carl: Client):
        document = library.add_failing(library.make())
        Version.objects.update(error_code="limit_time")
        assert f'id="retry-{document.pk}"' in text_of(as_carl.get(page_of(document.collection)))
        assert "is being processed again." in text_of(as_carl.post(place_of(document, "retry"), follow=True))
        document.refresh_from_db()
        assert document.newest is not None and document.newest.state == "queued"

    def test_it_is_not_offered_where_the_file_is_at_fault(self, as_carl: Client):
        document = library.add_failing(library.make())
        page_text = text_of(as_carl.get(page_of(document.collection)))
        assert "Fix the file, upload it again" in page_text and "retry-" not in page_text


class TestReprocessing:
    def test_document_is_queued_again_and_searched_in_the_meantime(self, as_carl: Client):
        document = library.add(library.make())
        assert f'id="reprocess-{document.pk}"' in text_of(as_carl.get(page_of(document.collection)))
        response = as_carl.post(place_of(document, "reprocess"), follow=True)
        assert "is being reprocessed with the current settings." in text_of(response)
        assert "Searches use the previous version." in text_of(response)
        document.refresh_from_db()
        assert document.newest is not None
        assert (document.newest.generation, document.newest.state) == (2, "queued")

    def test_it_is_not_offered_for_a_document_that_is_queued(self, as_carl: Client):
        document = library.add(library.make())
        as_carl.post(place_of(document, "reprocess"))
        assert f'id="reprocess-{document.pk}"' not in text_of(as_carl.get(page_of(document.collection)))


class TestAllDocuments:
    """Actions on all documents that the list shows."""

    CONFIRMED: ClassVar[dict[str, str]] = {"confirmed": "yes"}

    def test_failed_ones_are_retried(self, as_carl: Client):
        collection = library.make()
        good, failed = library.add(collection), library.add_failing(collection)
        page_text = text_of(as_carl.post(all_of(collection, "retry"), self.CONFIRMED, follow=True))
        assert "1 document queued again." in page_text
        for document, state in ((good, "ready"), (failed, "queued")):
            document.refresh_from_db()
            assert document.newest is not None and document.newest.state == state

    def test_all_are_reprocessed(self, as_carl: Client):
        collection = library.make()
        library.add(collection), library.add_failing(collection)
        page_text = text_of(as_carl.post(all_of(collection, "reprocess"), self.CONFIRMED, follow=True))
        assert "2 documents queued with the current settings." in page_text
        states = Document.objects.values_list("newest__generation", "newest__state")
        assert list(states) == [(2, "queued"), (2, "queued")]

    def test_only_those_that_match_the_list_are_deleted(self, as_carl: Client):
        collection = library.make()
        library.add(collection, filename="keep.md")
        library.add(collection, "Other", filename="gone.md")
        library.add(library.make("Second"), filename="gone.md")
        as_carl.post(all_of(collection, "delete", "?name=gone"), self.CONFIRMED)
        titles = [document.page_title() for document in Document.objects.filter(deleted_at=None).order_by("pk")]
        assert titles == ["keep.md", "gone.md"]
        assert not Version.objects.filter(is_searched=True, filename="gone.md", collection=collection).exists()

    @pytest.mark.parametrize("what", ["delete", "retry", "reprocess"])
    def test_without_scripts_it_asks_first(self, as_carl: Client, what: str):
        collection = library.make()
        library.add_failing(collection)
        response = as_carl.post(all_of(collection, what))
        assert f"{what.title()} 1 document?" in text_of(response)
        assert f">{what.title()}</button>" in text_of(response)
        assert Version.objects.get().state == "failed" and Document.objects.get().deleted_at is None

    def test_nothing_to_do_is_said(self, as_carl: Client):
        collection = library.make()
        library.add(collection)
        assert ">Retry failed</button>" not in text_of(as_carl.get(page_of(collection)))
        assert "No documents match." in text_of(as_carl.post(all_of(collection, "retry"), self.CONFIRMED, follow=True))

    def test_more_than_may_be_queued_are_refused_and_named(self, as_carl: Client, settings: Any):
        settings.COLLECTIONS = {**settings.COLLECTIONS, "waiting_limit": 1}
        collection = library.make()
        for number in range(3):
            library.add(collection, f"Text {number}.")
        path = all_of(collection, "reprocess")
        page_text = text_of(as_carl.post(path, self.CONFIRMED, headers={**HTMX, "HX-Target": "documents"}))
        assert page_text.count("You have reached the limit of 1 queued") == 2
        assert list(Document.objects.values_list("newest__state", flat=True)).count("queued") == 1

    def test_refusals_name_the_first_of_them(self, as_carl: Client, monkeypatch: pytest.MonkeyPatch):
        def refuse(*_: Any) -> None:
            raise Conflict("Not now.")

        monkeypatch.setattr(loading, "reprocess", refuse)
        collection = library.make()
        Document.objects.bulk_create(Document(collection=collection, doc_id=f"docu-{n:03}") for n in range(60))
        response = as_carl.post(all_of(collection, "reprocess"), self.CONFIRMED, follow=True)
        lines = [str(message) for message in response.context["messages"]]
        assert len(lines) == MAX_NAMES_SHOWN + 1 and lines[-1] == "… and 10 more"

    def test_a_request_changes_a_limited_number(self, as_carl: Client, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(document_actions, "MAX_DOCUMENTS", 2)
        collection = library.make()
        Document.objects.bulk_create(Document(collection=collection, doc_id=f"docu-{n}") for n in range(3))
        page_text = text_of(as_carl.post(all_of(collection, "delete"), self.CONFIRMED, follow=True))
        assert "2 documents deleted." in page_text and "Only the first 2 documents were changed." in page_text
        assert Document.objects.filter(deleted_at=None).count() == 1


def test_limit_of_a_file_is_a_round_number(as_carl: Client):
    assert "up to 32\xa0MB each" in text_of(as_carl.get(page_of(library.make())))


def test_page_holds_no_script_or_style_of_its_own(as_carl: Client):
    collection = library.make()
    library.add_failing(collection)
    page_text = text_of(as_carl.get(page_of(collection), {"query": "toner"}))
    assert "style=" not in page_text and not re.search(r"\son[a-z]+=", page_text) and "hx-on" not in page_text
    assert all("src=" in script for script in re.findall(r"<script[^>]*>", page_text))


def test_start_page_leads_here(as_bob: Client):
    assert 'href="/collections/"' in text_of(as_bob.get("/"))

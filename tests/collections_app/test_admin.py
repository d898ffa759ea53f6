"""Collections and documents in the administration: visibility, changes, and the dashboard tile."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Role, User
from collections_app import embed
from collections_app.models import Collection, Document, EmbeddingSpace, Version
from system.admin_site.name_lists import MAX_NAMES_SHOWN
from system.models import DeletionLogEntry
from tests.collections_app import library

pytestmark = pytest.mark.django_db

LIST, DOCUMENTS = "/admin/collections_app/collection/", "/admin/collections_app/document/"
FORM = {"name": "Manuals", "text_configuration": "", "chunk_size": "500", "chunk_overlap": "50", "alpha": "0.5"}


@pytest.fixture
def as_carl(carl: User) -> Client:
    client = Client()
    client.force_login(carl)
    return client


def text_of(response: Any) -> str:
    page: str = response.content.decode()
    return page


def page_of(record: Any, page: str = "change") -> str:
    return f"/admin/collections_app/{record._meta.model_name}/{record.pk}/{page}/"


class TestCollections:
    def test_who_runs_collections_makes_and_changes_one(self, as_carl: Client):
        itil = library.role("itil")
        response = as_carl.post(LIST + "add/", {**FORM, "reader_roles": [itil]}, follow=True)
        collection = Collection.objects.get()
        assert response.status_code == 200 and (collection.name, collection.chunk_size, collection.reader_roles) == (
            "Manuals",
            500,
            [itil],
        )
        assert collection.space == library.make("Other").space
        sent = {**FORM, "alpha": "0.9", "writer_roles": [library.role("collection_admin")]}
        assert as_carl.post(page_of(collection), sent).status_code == 302
        collection = collection.refreshed()
        assert (collection.alpha, collection.reader_roles, len(collection.writer_roles)) == (0.9, [], 1)
        assert collection.history.count() == 2
        assert "Keyword weight" in text_of(as_carl.get(page_of(collection)))

    def test_list_counts(self, as_carl: Client):
        collection = library.make("<b>Handbooks</b>")
        library.add(collection)
        library.add_failing(collection)
        page_text = text_of(as_carl.get(LIST))
        assert "&lt;b&gt;Handbooks&lt;/b&gt;" in page_text and "<b>Handbooks" not in page_text
        page = text_of(as_carl.get(page_of(collection)))
        assert "2 (1 ready, 1 failed), 1 passage" in page and str(collection.space) in page

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"name": "Taken"}, "A collection with this name already exists."),
            ({"name": "a\x07b"}, "must not contain control characters"),
            ({"chunk_overlap": "251"}, "The overlap must be at most half of the chunk size."),
            ({"chunk_size": "99"}, "100"),
            ({"alpha": "1.1"}, "1.0"),
            ({"text_configuration": "klingon"}, "no text search configuration"),
            ({"reader_roles": ["nobody"]}, "nobody"),
        ],
        ids=str,
    )
    def test_what_cannot_be_is_told(self, as_carl: Client, changed: dict[str, Any], said: str):
        library.make("Taken")
        response = as_carl.post(LIST + "add/", {**FORM, **changed})
        assert response.status_code == 200 and said in text_of(response)
        assert Collection.objects.count() == 1

    @pytest.mark.parametrize("path", ["add", "change"])
    def test_who_gives_his_right_away_is_warned(self, as_carl: Client, path: str):
        address = LIST + "add/" if path == "add" else page_of(library.make("Manuals"))
        text = "You can no longer change this collection"
        response = as_carl.post(address, {**FORM, "writer_roles": [library.role("collection_admin")]}, follow=True)
        assert response.status_code == 200 and text not in text_of(response)
        sent = {**FORM, "name": "Manuals" if path == "change" else "Others", "writer_roles": [library.role("itil")]}
        assert text in text_of(as_carl.post(address, sent, follow=True))

    def test_name_of_a_deleted_one_is_free(self, as_carl: Client):
        old = library.make("Manuals")
        as_carl.post(page_of(old, "delete"), {"post": "yes"})
        assert as_carl.post(LIST + "add/", FORM).status_code == 302
        assert Collection.objects.filter(name="Manuals", deleted_at=None).count() == 1

    def test_language_can_be_chosen_for_what_comes(self, as_carl: Client):
        collection = library.make("Manuals")
        library.add(collection, "A long enough text about the toner of the printers in this house.")
        as_carl.post(page_of(collection), {**FORM, "text_configuration": "russian"})
        assert collection.refreshed().text_configuration == "russian"
        assert Version.objects.get().text_configuration == "english"

    def test_its_page_says_what_an_empty_language_means(self, as_carl: Client):
        page = text_of(as_carl.get(page_of(library.make("Manuals"))))
        assert "Leave empty for writers only." in page and "Leave empty to detect it for each document" in page

    def test_deleting_one_deletes_its_documents(self, as_carl: Client, carl: User):
        collection = library.make()
        library.add(collection)
        assert "with 1 document<" in text_of(as_carl.get(page_of(collection, "delete")))
        assert as_carl.post(page_of(collection, "delete"), {"post": "yes"}).status_code == 302
        assert collection.refreshed().deleted_at is not None
        assert not Version.objects.filter(is_searched=True, collection__deleted_at=None).exists()
        entry = DeletionLogEntry.objects.get(table="document_collection")
        assert (entry.display_value, entry.deleted_by) == ("Handbooks", carl.pk)
        assert "Handbooks" not in text_of(as_carl.get(LIST)).partition("result_list")[2]

    def test_several_are_deleted_from_the_list(self, as_carl: Client):
        keys = [library.make(name).pk for name in ("One", "Two")]
        sent = {"action": "delete_selected", "_selected_action": keys, "post": "yes"}
        assert as_carl.post(LIST, sent).status_code == 302
        assert not Collection.objects.filter(deleted_at=None).exists()

    def test_role_that_is_deleted_names_its_collections(self, as_alice: Client):
        library.make("For the desk", readers=("desk",))
        role = Role.objects.get(name="desk")
        assert "For the desk" in text_of(as_alice.get(f"/admin/accounts/role/{role.pk}/delete/"))


class TestOfOthers:
    """Of a collection whose roles were given to others, who runs collections sees nothing."""

    def test_it_is_not_there(self, as_carl: Client):  # C02 C06
        secret = library.make("Secret plans", readers=("itil",), writers=("itil",))
        document = library.add(secret, "The secret", filename="secret.txt", format="text")
        for path in (LIST, DOCUMENTS, "/admin/"):
            assert "ecret" not in text_of(as_carl.get(path)), path
        for path in (page_of(secret), page_of(secret, "delete"), page_of(secret, "history"), page_of(document)):
            assert as_carl.get(path).status_code != 200, path
        old = secret.history.first()
        assert as_carl.get(f"{page_of(secret, 'history')}{old.pk}/").status_code == 404
        assert as_carl.post(page_of(secret, "reembed")).status_code == 404
        sent = {"action": "delete_selected", "_selected_action": [document.pk], "post": "yes"}
        as_carl.post(DOCUMENTS, sent)
        as_carl.post(DOCUMENTS, {**sent, "action": "try_again"})
        assert Document.objects.filter(deleted_at=None).count() == 1

    def test_one_that_can_only_be_read_is_shown_and_never_changed(self, as_carl: Client):
        shared = library.make("Shared", readers=("collection_admin",), writers=("itil",))
        document = library.add_failing(shared)
        assert "Shared" in text_of(as_carl.get(page_of(shared)))
        for path in (page_of(shared), page_of(shared, "delete"), page_of(shared, "reembed")):
            assert as_carl.post(path, {**FORM, "post": "yes"}).status_code == 403, path
        document.refresh_from_db()
        assert shared.refreshed().name == "Shared" and document.newest is not None
        assert (document.newest.state, document.deleted_at) == ("failed", None)

    @pytest.mark.parametrize("path", [LIST, DOCUMENTS, LIST + "add/"])
    def test_others_open_no_page(self, as_bob: Client, path: str):
        assert as_bob.get(path).status_code in (302, 403)


class TestDocuments:
    def test_they_are_listed_by_state_and_collection_and_found(self, as_carl: Client):
        first, second = library.make("First"), library.make("Second")
        library.add(first, filename="<b>good.md")
        failed = library.add_failing(second)
        assert failed.newest is not None
        page_text = text_of(as_carl.get(DOCUMENTS))
        assert "&lt;b&gt;good.md" in page_text and failed.newest.error in page_text
        for query, expected in (
            ("state=failed", ["broken.pdf"]),
            ("state=ready", ["&lt;b&gt;good.md"]),
            (f"in={second.pk}", ["broken.pdf"]),
            ("q=broken", ["broken.pdf"]),
            (f"q={failed.newest.sha256}", ["broken.pdf"]),
            ("state=nonsense", []),
        ):
            table = text_of(as_carl.get(f"{DOCUMENTS}?{query}")).partition("result_list")[2]
            assert [name for name in ("&lt;b&gt;good.md", "broken.pdf") if name in table] == expected, query

    def test_page_shows_facts_and_no_text(self, as_carl: Client):
        document = library.add(library.make(), metadata={"type": "<i>manual</i>"})
        page_text = text_of(as_carl.get(page_of(document)))
        assert "&lt;i&gt;manual&lt;/i&gt;" in page_text and "<i>manual" not in page_text and "the system" in page_text
        assert "toner" not in page_text
        assert as_carl.post(page_of(document), {"doc_id": "mine"}).status_code == 403
        assert as_carl.get(DOCUMENTS + "add/").status_code == 403

    def test_it_is_called_by_its_file_which_can_be_downloaded(self, as_carl: Client):
        numbered, named = library.add(library.make()), library.add(library.make("Texts"), filename="", doc_id="faq")
        response = as_carl.get(page_of(numbered))
        assert response.context["title"] == "handbook.md"
        match = re.search(r'href="([^"]+/content)" download>Download<', text_of(response))
        assert match is not None and as_carl.get(match[1]).content.decode() == library.HANDBOOK
        assert as_carl.get(page_of(named)).context["title"] == "faq"

    def test_they_are_changed_on_the_page_of_their_collection(self, as_carl: Client):
        document = library.add(library.make())
        match = re.search(
            r'href="([^"]+)#documents-title">Change in the collection<', text_of(as_carl.get(page_of(document)))
        )
        assert match is not None
        assert f'id="delete-{document.pk}"' in text_of(as_carl.get(match[1]))

    def test_nobody_changes_or_deletes_them_here(self, as_carl: Client, as_alice: Client):
        document = library.add(library.make())
        for browser in (as_carl, as_alice):
            assert browser.post(page_of(document, "delete"), {"post": "yes"}).status_code == 403
            sent = {"action": "delete_selected", "_selected_action": [document.pk], "post": "yes"}
            browser.post(DOCUMENTS, sent)
            assert "_selected_action" not in text_of(browser.get(DOCUMENTS))
        document.refresh_from_db()
        assert document.deleted_at is None


class TestThousands:
    """Of collections and documents: a page names some, and says how many more there are."""

    @pytest.fixture(autouse=True)
    def collections(self) -> list[Collection]:
        collections = [Collection(name=f"coll-{number:03}", space=embed.default_space()) for number in range(60)]
        Collection.objects.bulk_create(collections)
        return list(Collection.objects.order_by("name"))

    @staticmethod
    def named_in(response: Any) -> int:
        return len(set(re.findall(r"(?:coll|docu)-[0-9]{3}", text_of(response))))

    def test_filter_names_the_first_of_them_and_the_chosen_one(self, as_carl: Client, collections: list[Collection]):
        response = as_carl.get(DOCUMENTS)
        assert self.named_in(response) == MAX_NAMES_SHOWN and f"(first {MAX_NAMES_SHOWN})" in text_of(response)
        for chosen in (collections[0], collections[-1]):
            address = f"{DOCUMENTS}?in={chosen.pk}"
            assert address in text_of(as_carl.get(page_of(chosen)))
            response = as_carl.get(address)
            assert chosen.name in text_of(response) and self.named_in(response) <= MAX_NAMES_SHOWN + 1

    def test_question_names_the_first_of_them(self, as_carl: Client, collections: list[Collection]):
        keys = [collection.pk for collection in collections]
        response = as_carl.post(LIST, {"action": "delete_selected", "_selected_action": keys})
        assert self.named_in(response) == MAX_NAMES_SHOWN and "… and 10 more" in text_of(response)

    def test_role_that_is_deleted_names_the_first_of_its_collections(self, as_alice: Client):
        role = library.role("desk")
        Collection.objects.update(reader_roles=[role], writer_roles=[role])
        page_text = text_of(as_alice.get(f"/admin/accounts/role/{role}/delete/"))
        for what in ("readers", "writers"):
            assert page_text.count(f"which will lose this role from its {what}") == MAX_NAMES_SHOWN
        assert page_text.count("… and 10 more") == 2


class TestEmbeddingAgain:
    def test_it_is_offered_where_there_is_something_to_do(self, as_carl: Client):
        collection = library.make()
        same = text_of(as_carl.get(page_of(collection)))
        assert "/reembed/" not in same and "Search this collection, add documents" in same
        before = EmbeddingSpace.objects.create(provider="retired", model="old", dimensions=8)
        for columns in ({"next_space": before}, {"space": before, "next_space": None}):
            Collection.objects.filter(pk=collection.pk).update(**columns)
            assert "/reembed/" in text_of(as_carl.get(page_of(collection))), columns

    @pytest.mark.parametrize(("dimensions", "is_it"), [(None, True), (8, True), (9, False)])
    def test_provider_is_not_asked_for_it(self, settings: Any, dimensions: int | None, is_it: bool):
        query = {"provider": "openai", "model": "m", "dimensions": dimensions}
        settings.EMBEDDING = {**settings.EMBEDDING, **query}
        space = EmbeddingSpace(provider="openai", model="m", dimensions=8)
        assert embed.is_default(space) is is_it
        assert not embed.is_default(EmbeddingSpace(provider="retired", model="m", dimensions=8))

    def test_it_is_asked_first_and_then_done(self, as_carl: Client):
        collection = library.make()
        library.add(collection)
        before = EmbeddingSpace.objects.create(provider="retired", model="old", dimensions=8)
        Collection.objects.filter(pk=collection.pk).update(space=before)
        page_text = text_of(as_carl.get(page_of(collection, "reembed")))
        assert "1 passage of" in page_text and "retired/old (8)" in page_text
        assert collection.refreshed().next_space is None
        assert as_carl.post(page_of(collection, "reembed")).status_code == 302
        assert collection.refreshed().next_space == library.make("New").space
        page = text_of(as_carl.get(page_of(collection)))
        assert "being re-embedded with" in page

    def test_how_far_it_is_and_what_holds_it_up_is_shown(self, as_carl: Client):
        collection = library.make()
        library.add(collection)
        assert "not running" in text_of(as_carl.get(page_of(collection)))
        target = EmbeddingSpace.objects.create(provider="other", model="new", dimensions=8)
        for space, filled in ((target, 0), (collection.space, 1)):
            Collection.objects.filter(pk=collection.pk).update(next_space=space, reembed_error="It is away.")
            page = text_of(as_carl.get(page_of(collection)))
            assert f"{filled} of 1 vectors of {space} are stored." in page and "It is away." in page


class TestTheTile:
    def tile(self, browser: Client) -> Any:
        (result,) = [tile for tile in browser.get("/admin/").context["tiles"] if tile.title == "Documents"]
        return result

    def test_it_counts_what_this_person_may_read(self, as_carl: Client, as_alice: Client):
        collection = library.make()
        library.add(collection)
        library.add(collection, "Other", is_loaded=False)
        library.add(library.make("Secret", writers=("itil",)))
        carl, alice = self.tile(as_carl), self.tile(as_alice)
        assert (
            carl.figure == "1" and "1 in progress, 0 failed, in 1 collection." in carl.description and not carl.warnings
        )
        assert (
            alice.figure == "2"
            and alice.description.startswith("documents ready, 0 empty,")
            and "in 2 collections" in alice.description
        )

    def test_it_worries_about_failures(self, as_carl: Client):
        library.add_failing(library.make())
        library.add(library.make("Blank"), " \n")
        result = self.tile(as_carl)
        # Red would be the figure, of what is ready.
        assert "1 empty" in result.description and not result.needs_attention
        assert '<span class="sb-tile-about sb-worries">1 failed.</span>' in text_of(as_carl.get("/admin/"))
        assert (
            result.warnings == "1 failed."
            and "failed" not in result.description
            and result.url.endswith("?state=failed")
        )

    def test_it_worries_about_an_old_queue(self, as_carl: Client):
        document = library.add(library.make(), is_loaded=False)
        assert not self.tile(as_carl).warnings
        Version.objects.filter(document=document).update(created_at=timezone.now() - timedelta(minutes=20))
        result = self.tile(as_carl)
        assert (
            result.warnings == "The oldest queued document has waited for 20\xa0minutes." and not result.needs_attention
        )

    def test_others_do_not_see_it(self, sonja: User):
        client = Client()
        client.force_login(sonja)
        assert "Documents" not in [tile.title for tile in client.get("/admin/").context["tiles"]]

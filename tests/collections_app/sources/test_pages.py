"""The tab Sources, for managers only, and the list of sources in the administration."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from collections_app.models import Collection, Document, Source
from tests.collections_app.library import make_library_collection
from tests.collections_app.sources.world import Site, html, run_due, texts
from tests.support.users import signed_in_client

pytestmark = pytest.mark.django_db


def path_of(collection: Collection) -> str:
    return reverse("collection-sources-page", args=[collection.pk])


def page_html(response: Any) -> str:
    return str(response.content.decode())


def add(browser: Client, collection: Collection, kind: str, address: str | Path, **values: str) -> Any:
    fields = {"kind": kind, "address": str(address), "interval_minutes": "60", **values}
    return browser.post(path_of(collection), fields)


@pytest.fixture
def page(collection: Collection) -> Source:
    source = Source(collection=collection, kind="page", address="https://docs.example.com/secret", doc_id="guide")
    source.save()
    return source


def test_page_is_added_and_its_state_is_shown(as_carl: Client, site: Site, collection: Collection):
    assert "No sources yet." in page_html(as_carl.get(path_of(collection)))
    site.answers["/guide"] = html("The toner is red.")
    assert add(as_carl, collection, "page", site.url(), doc_id="guide").status_code == 302
    shown = page_html(as_carl.get(path_of(collection)))
    assert "never loaded" in shown and "document guide" in shown
    run_due()
    document_url = reverse("document-page", args=[collection.pk, Document.objects.get().pk])
    shown = page_html(as_carl.get(path_of(collection)))
    assert site.url() in shown and "last success" in shown and "next refresh" in shown and "Failing" not in shown
    assert f'<a href="{document_url}">guide</a>' in shown
    assert texts(collection) == {"guide": "The toner is red."}


def test_error_is_shown_with_its_time(as_carl: Client, collection: Collection, page: Source):
    Source.objects.update(error="The server responded with <500>.", error_since=timezone.now())
    shown = page_html(as_carl.get(path_of(collection)))
    assert "First failed" in shown and "responded with &lt;500&gt;." in shown


def test_folders_depend_on_the_setting(as_carl: Client, collection: Collection, settings: Any, watched: Path):
    assert add(as_carl, collection, "folder", watched).status_code == 302
    assert str(watched.parent) in page_html(as_carl.get(path_of(collection)))
    assert "already watches a folder" in page_html(add(as_carl, collection, "folder", watched))
    (watched / "a.png").write_text("x")
    run_due()
    assert "The extension .png is not accepted." in page_html(as_carl.get(path_of(collection)))
    settings.WATCH_DIRS = ()
    assert "Watched folders are off." in page_html(as_carl.get(path_of(collection)))


@pytest.mark.parametrize(
    ("kind", "address", "message"),
    [
        ("page", "", "This field is required."),
        ("page", "https://10.0.0.5/", "SVC_PRIVATE_WEB_PAGES"),
        ("page", "https://user:pw@docs.example.com/", "must not contain a user name"),
        ("folder", "/etc", "Enter the path of one of these folders"),
        ("other", "/etc", "Select a valid choice."),
    ],
)
def test_invalid_form_is_shown_again(
    as_carl: Client, collection: Collection, watched: Path, kind: str, address: str, message: str
):
    response = add(as_carl, collection, kind, address)
    assert response.status_code == 400 and message in page_html(response)
    assert not Source.objects.exists()


def test_refresh_and_delete(as_carl: Client, collection: Collection, page: Source):
    before = page.refreshed().next_at
    as_carl.post(reverse("source-refresh", args=[collection.pk, page.pk]))
    assert page.refreshed().next_at > before
    delete_path = reverse("source-delete", args=[collection.pk, page.pk])
    assert "Its documents" not in page_html(as_carl.post(delete_path)) and Source.objects.count() == 1
    assert as_carl.post(delete_path, {"confirmed": "yes"})["Location"] == path_of(collection)
    assert not Source.objects.exists()


def test_others_do_not_see_sources(as_rita: Client, bob: User, collection: Collection, page: Source):
    shown = page_html(as_rita.get(reverse("collection", args=[collection.pk])))
    assert "Sources" not in shown
    for browser, status in ((as_rita, 403), (signed_in_client(bob), 404)):
        assert browser.get(path_of(collection)).status_code == status
        assert add(browser, collection, "page", "https://docs.example.com/").status_code == status
        for action in ("refresh", "delete"):
            url = reverse(f"source-{action}", args=[collection.pk, page.pk])
            assert browser.post(url, {"confirmed": "yes"}).status_code == status
    assert Source.objects.count() == 1


def test_administration_lists_sources_of_own_collections_only(as_carl: Client, page: Source):  # C02 C06
    shared = make_library_collection("Shared", readers=("collection_admin",), writers=("itil",))
    foreign = Source(collection=shared, kind="page", address="https://foreign.example.com/", error="Broken.")
    foreign.save()
    listed = page_html(as_carl.get("/admin/collections_app/source/"))
    assert page.address in listed and "foreign" not in listed
    assert as_carl.get(f"/admin/collections_app/source/{page.pk}/history/").status_code == 200
    assert as_carl.get(f"/admin/collections_app/source/{page.pk}/change/").status_code == 200
    for action in ("history", "change"):
        assert "foreign.example" not in page_html(as_carl.get(f"/admin/collections_app/source/{foreign.pk}/{action}/"))
    entry = foreign.history.first()
    assert as_carl.get(f"/admin/collections_app/source/{foreign.pk}/history/{entry.pk}/").status_code == 404
    assert "cannot be refreshed" not in page_html(as_carl.get("/admin/"))


def test_administrators_are_warned_on_the_dashboard(as_alice: Client, page: Source):
    Source.objects.update(error="Broken.")
    shown = page_html(as_alice.get("/admin/"))
    assert "1 source cannot be refreshed." in shown
    tile = shown[: shown.index("1 source cannot be refreshed.")].rpartition("<a ")[2]
    assert 'href="/admin/collections_app/source/"' in tile

"""The endpoints of sources: what they accept, what they return, and that only managers learn of sources."""

from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from collections_app.models import Collection, Source
from collections_app.sources import creation
from system.models import DeletionLogEntry
from tests.collections_app.http.calls import API_PATH, KeyCaller, error_of, make_key_caller
from tests.collections_app.library import make_library_collection
from tests.collections_app.sources.world import Site, add_source, html, run_due, sources_path
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


def test_page_is_added_listed_refreshed_and_deleted(site: Site, manager: KeyCaller, collection: Collection):
    site.answers["/guide?token=1"] = html("The toner is red.")
    address = site.url("/guide?token=1")
    body = manager.post(sources_path(collection), {"kind": "page", "address": address, "interval_minutes": 60}).json()
    assert body["address"] == address and body["interval_minutes"] == 60 and body["state"] == "waiting"
    assert body["doc_id"] == address.removeprefix("http://").removesuffix("?token=1")
    assert body["last_success"] is None and body["error"] is None and body["problems"] == []
    run_due()
    (listed,) = manager.get(sources_path(collection)).json()
    assert listed["state"] == "ok" and listed["last_success"] == listed["last_refresh"] < listed["next_refresh"]
    refreshed = manager.post(sources_path(collection, body["sys_id"], "refresh"))
    assert refreshed.status_code == 202 and refreshed.json()["next_refresh"] < listed["next_refresh"]
    run_due()
    assert len(site.server.requests) == 2
    assert manager.get(sources_path(collection, body["sys_id"])).json()["state"] == "ok"
    deleted = manager.delete(sources_path(collection, body["sys_id"]))
    assert deleted.json() == {"status": "OK", "sys_id": body["sys_id"], "deleted": True}
    assert manager.get(sources_path(collection)).json() == []
    assert error_of(manager.delete(sources_path(collection, body["sys_id"])))[0] == 404


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"kind": "feed"}, "kind"),
        ({"address": ""}, "address"),
        ({"address": "docs.example.com"}, "address"),
        ({"address": "file:///etc/passwd"}, "address"),
        ({"address": "https://user:secret@docs.example.com/"}, "address"),
        ({"address": "https://docs.example.com/#part"}, "address"),
        ({"address": "https://10.0.0.5/"}, "address"),
        ({"address": "https://[::ffff:169.254.169.254]/"}, "address"),
        ({"address": "https://localhost/"}, "address"),
        ({"address": "https://docs.example.com:99999/"}, "address"),
        ({"address": "https://docs.example.com/" + "a" * 2000}, "address"),
        ({"address": "https://docs.exa\tmple.com/"}, "address"),
        ({"address": 5}, None),
        ({"doc_id": "a\nb"}, "doc_id"),
        ({"doc_id": "a" * 201}, "doc_id"),
        ({"interval_minutes": 4}, "interval_minutes"),
        ({"interval_minutes": 10**9}, "interval_minutes"),
        ({"interval_minutes": "often"}, "interval_minutes"),
        ({"folder": "x"}, "folder"),
        ({"kind": "folder", "address": "/srv/handbooks"}, "address"),
        ({"kind": "folder", "address": "/srv/handbooks", "doc_id": "a"}, "doc_id"),
    ],
    ids=str,
)
def test_invalid_sources_are_refused(manager: KeyCaller, collection: Collection, values: Any, field: str | None):
    body = {"kind": "page", "address": "https://docs.example.com/guide", **values}
    response = manager.post(sources_path(collection), body)
    status, _, error_field = error_of(response)
    assert status in (400, 422) and field in (error_field, None), response.content
    assert "secret" not in response.content.decode() and not Source.objects.exists()


@pytest.mark.parametrize("path", ["/", "/etc", "{allowed}/../outside", "{allowed}-2", "allowed", "~/x"])
def test_folder_outside_of_the_allowed_ones_is_refused(
    watched: Path, manager: KeyCaller, collection: Collection, path: str
):
    address = path.format(allowed=watched.parent)
    response = manager.post(sources_path(collection), {"kind": "folder", "address": address})
    assert error_of(response)[::2] == (400, "address") and not Source.objects.exists()


def test_watching_says_that_it_is_off(manager: KeyCaller, collection: Collection):
    response = manager.post(sources_path(collection), {"kind": "folder", "address": "/srv/handbooks"})
    assert "Watched folders are off" in response.json()["errors"][0]["message"]


def test_allowed_folder_and_those_below_may_be_watched(watched: Path, manager: KeyCaller, collection: Collection):
    assert add_source(manager, collection, "folder", f"{watched.parent}/").address == str(watched.parent)
    response = manager.post(sources_path(collection), {"kind": "folder", "address": str(watched)})
    assert error_of(response) == (409, "duplicate", "kind")


def test_two_pages_cannot_have_one_document(manager: KeyCaller, collection: Collection):
    add_source(manager, collection, "page", "https://docs.example.com/guide?a=1")
    response = manager.post(sources_path(collection), {"kind": "page", "address": "https://docs.example.com/guide/"})
    assert error_of(response) == (409, "duplicate", "doc_id")


def test_number_of_sources_is_limited(manager: KeyCaller, collection: Collection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(creation, "MAX_SOURCES", 1)
    add_source(manager, collection, "page", "https://docs.example.com/guide")
    response = manager.post(sources_path(collection), {"kind": "page", "address": "https://docs.example.com/other"})
    assert error_of(response)[:2] == (409, "too_many_sources")


@pytest.fixture
def page(collection: Collection, carl: User) -> Source:
    source = Source(collection=collection, kind="page", address="https://docs.example.com/secret", doc_id="guide")
    source.save()
    return source


def requests(caller: KeyCaller, collection: Collection, source_id: str) -> list[tuple[int, bytes]]:
    path = sources_path(collection, source_id)
    responses = [
        caller.get(sources_path(collection)),
        caller.post(sources_path(collection), {"kind": "page", "address": "https://docs.example.com/guide"}),
        caller.post(sources_path(collection), {"kind": "folder", "address": "/srv"}),
        caller.get(path),
        caller.delete(path),
        caller.post(f"{path}/refresh"),
    ]
    return [(response.status_code, response.content) for response in responses]


def test_readers_and_writers_learn_nothing_of_sources(collection: Collection, page: Source):
    """The same responses as in a collection without sources."""
    Collection.objects.filter(pk=collection.pk).update(
        writer_roles=make_library_collection("w", writers=("desk",)).writer_roles
    )
    other_collection = make_library_collection("Other", readers=("itil",), writers=("desk",))
    for user in (make_user("rita", "itil"), make_user("wim", "desk"), make_user("colin", "itil", "collection_admin")):
        caller = make_key_caller(user)
        responses = requests(caller, collection, page.pk)
        assert responses == requests(caller, other_collection, "171612345600000099")
        assert {status for status, _ in responses} == {403}
        detail = caller.get(f"{API_PATH}/{collection.pk}").content + caller.get(API_PATH).content
        assert b"secret" not in detail and b"source" not in detail
    assert Source.objects.count() == 1


def test_strangers_get_the_404_of_a_missing_collection(collection: Collection, page: Source, bob: User):
    caller = make_key_caller(bob)
    responses = requests(caller, collection, page.pk)
    missing = Collection(sys_id="171612345600000099")
    assert responses == requests(caller, missing, page.pk) and {status for status, _ in responses} == {404}


def test_source_is_found_only_in_its_collection(page: Source, manager: KeyCaller):
    other_collection = make_library_collection("Other")
    path = sources_path(other_collection, page.pk)
    assert {manager.get(path).status_code, manager.delete(path).status_code} == {404}
    assert Source.objects.count() == 1


def test_changes_are_recorded(collection: Collection, manager: KeyCaller, carl: User):
    source = add_source(manager, collection, "page", "https://docs.example.com/guide")
    assert [(entry.history_type, entry.history_user_id) for entry in source.history.all()] == [("+", carl.pk)]
    manager.delete(sources_path(collection, source.pk))
    entry = DeletionLogEntry.objects.get(table="document_source")
    assert "https://docs.example.com/guide" in str(entry.payload) and "lease" not in str(entry.payload)

"""Features of all lists and pages of the administration: texts of empty lists, counters, titles."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from accounts.models import Company, Group, Role, User
from sso.models import SignIn
from system.models import DeletionLogEntry


def plain_text(page: Any) -> str:
    assert page.status_code == 200
    return " ".join(strip_tags(page.content.decode()).split())


def empty_list_text(page: Any) -> str:
    """The text of the box that an empty list shows."""
    (_, _, after_list) = page.content.decode().partition('id="empty-list">')
    return after_list.partition("</form>")[0]


def test_empty_list_has_an_explanation_and_an_add_link(as_alice: Client):
    box = empty_list_text(as_alice.get("/admin/accounts/group/"))

    assert "There are no groups yet." in box and "People who work together." in box
    assert 'href="/admin/accounts/group/add/"' in box and "Add the first group" in box
    assert "Show all" not in plain_text(as_alice.get("/admin/accounts/group/"))


@pytest.mark.parametrize("query", ["?q=zzz", "?active__exact=0", "?name=zzz"])
def test_filtered_list_has_a_link_to_all_records(as_alice: Client, query: str):
    Group.objects.create(name="Desk")
    box = empty_list_text(as_alice.get(f"/admin/accounts/group/{query}"))

    assert "No group matches the current search and filters." in box
    assert 'href="/admin/accounts/group/"' in box and "yet" not in box and "the first" not in box


def test_list_without_add_permission_has_no_add_link(as_alice: Client):
    box = empty_list_text(as_alice.get("/admin/tableapi/deferredrecord/"))

    assert "There are no deferred records yet." in box and "<a" not in box


@pytest.mark.parametrize(
    ("path", "singular", "plural"),
    [
        ("/admin/system/deletionlogentry/", "1 deleted record", "2 deleted records"),
        ("/admin/sso/signin/", "1 sign-in", "2 sign-ins"),
        ("/admin/accounts/company/", "1 company", "2 companies"),
    ],
)
def test_list_counter_uses_the_singular_or_plural_noun(as_alice: Client, path: str, singular: str, plural: str):
    factories = {
        "/admin/system/deletionlogentry/": lambda: DeletionLogEntry.objects.create(table="company", record_id="1"),
        "/admin/sso/signin/": lambda: SignIn.objects.create(outcome=SignIn.OK),
        "/admin/accounts/company/": lambda: Company.objects.create(name=str(Company.objects.count())),
    }
    for counter_text in (singular, plural):
        factories[path]()
        assert re.search(rf"{counter_text}(?!\w)", plain_text(as_alice.get(path)))


def test_list_title_names_its_records(as_alice: Client):
    assert "<title> Access keys | Servicebase" in " ".join(
        as_alice.get("/admin/accounts/accesskey/").content.decode().replace("<title>", "<title> ").split()
    )


def test_page_title_names_record_and_kind(as_alice: Client, bob: User):
    Role.objects.create(name="ITIL desk").delete()
    entry = DeletionLogEntry.objects.get()
    titles = {
        f"/admin/accounts/user/{bob.pk}/": "User bob",
        f"/admin/system/deletionlogentry/{entry.pk}/": "Deleted record ITIL desk of sys_role",
    }
    for path, title in titles.items():
        page = as_alice.get(f"{path}change/").content.decode()
        assert f"<title>{title} | Servicebase</title>" in " ".join(page.split()).replace("<title> ", "<title>")
        assert title in strip_tags(page.partition("<h1")[2].partition("</h1>")[0])
    assert "Delete User bob" in as_alice.get(f"/admin/accounts/user/{bob.pk}/delete/").content.decode()
    assert "History of User bob" in as_alice.get(f"/admin/accounts/user/{bob.pk}/history/").content.decode()


def test_times_have_no_fractions(as_alice: Client):
    sign_in = SignIn.objects.create(outcome=SignIn.OK)
    page = plain_text(as_alice.get(f"/admin/sso/signin/{sign_in.pk}/change/"))

    at = sign_in.sys_updated_at
    assert f"{at.day} {at:%b %Y, %H:%M}" in page
    assert not re.search(r"\d\d:\d\d:\d\d", page)

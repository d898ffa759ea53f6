"""Access keys in the administration: created for a user, shown once, revoked by deleting."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, Role, User
from tests.accounts.callers import ask, bearer, only_key

LIST = "/admin/accounts/accesskey/"
SECRET = re.compile(r"sb_[\w-]{43}")


def shown(page: Any) -> list[str]:
    return SECRET.findall(page.content.decode())


def make(browser: Client, user: User, /, **given: Any) -> Any:
    return browser.post(f"{LIST}add/", {"user": user.pk, "name": "script"} | given, follow=True)


def page_of(key: AccessKey, page: str = "change") -> str:
    return f"{LIST}{key.pk}/{page}/"


def test_key_can_be_created_for_a_user(as_alice: Client, alice: User, bob: User):
    (secret,) = shown(make(as_alice, bob))

    assert ask(bearer(secret)).json()["login"] == "bob"
    assert AccessKey.objects.values("user", "kind", "sys_created_by").get() == {
        "user": bob.pk,
        "kind": "named",
        "sys_created_by": alice.pk,
    }


@pytest.mark.parametrize("button", ["_save", "_continue", "_addanother", "_popup"])
def test_key_is_shown_once_after_every_save_button(as_alice: Client, bob: User, button: str):
    page = make(as_alice, bob, **{button: "1"})
    (secret,) = shown(page)
    key = only_key()

    assert "no-store" in page["Cache-Control"]
    assert all(secret not in cookie.value for cookie in as_alice.cookies.values())
    assert secret not in str(dict(as_alice.session))
    assert secret not in str(LogEntry.objects.values())
    for later in (LIST, page_of(key), page_of(key, "history"), page_of(key, "delete"), "/admin/"):
        assert shown(as_alice.get(later)) == [], later


def test_reloading_the_page_creates_no_second_key(as_alice: Client, bob: User):
    page = make(as_alice, bob)

    shown_on, _ = page.redirect_chain[-1]
    assert shown(as_alice.get(shown_on)) == []
    assert AccessKey.objects.count() == 1


def test_default_lifetime_is_90_days(as_alice: Client):
    form = as_alice.get(f"{LIST}add/").context["adminform"].form

    expires_at = form.get_initial_for_field(form.fields["expires_at"], "expires_at")
    assert timedelta(days=89) < expires_at - timezone.now() <= timedelta(days=90)


def test_hash_is_never_shown(as_alice: Client, bob: User):
    access_keys.create_key(bob, "script", expires_at=None)
    key = only_key()

    for page in (LIST, page_of(key), page_of(key, "history"), page_of(key, "delete")):
        content = as_alice.get(page).content.decode()
        assert key.prefix in content or key.name in content
        assert key.digest not in content


def test_scope_and_lifetime_can_be_chosen(as_alice: Client, alice: User):
    tomorrow = timezone.now() + timedelta(days=1)
    values = {"expires_at_0": f"{tomorrow:%Y-%m-%d}", "expires_at_1": "12:00:00"}
    (secret,) = shown(make(as_alice, alice, scope=[Role.objects.get(name="itil").pk], **values))

    assert ask(bearer(secret)).json()["roles"] == ["itil"]
    assert only_key().expires_at.date() == tomorrow.date()


@pytest.mark.parametrize("wrong", [{"name": ""}, {"user": "1"}, {"scope": ["1"]}, {"expires_at_0": "soon"}])
def test_invalid_form_creates_no_key(as_alice: Client, bob: User, wrong: dict[str, Any]):
    page = make(as_alice, bob, **wrong)

    assert page.status_code == 200 and page.context["errors"]
    assert shown(page) == [] and not AccessKey.objects.exists()


def test_user_and_secret_of_a_key_cannot_be_changed(as_alice: Client, alice: User, bob: User):
    secret = access_keys.create_key(bob, "script", expires_at=None)
    key = only_key()
    before = AccessKey.objects.values("user", "digest", "prefix", "kind").get()
    sent = {"name": "renamed", "user": alice.pk, "digest": "0" * 64, "prefix": "sb_", "kind": "login"}

    assert as_alice.post(page_of(key), sent).status_code == 302
    assert key.refreshed().name == "renamed"
    assert AccessKey.objects.values("user", "digest", "prefix", "kind").get() == before
    assert ask(bearer(secret)).json()["login"] == "bob"


def test_scope_can_be_narrowed_later(as_alice: Client, alice: User):
    secret = access_keys.create_key(alice, "script", expires_at=None)
    key = only_key()
    assert ask(bearer(secret)).json()["roles"] == ["admin"]
    as_alice.post(page_of(key), {"name": "script", "scope": [Role.objects.get(name="itil").pk]})

    assert ask(bearer(secret)).json()["roles"] == ["itil"]


@pytest.mark.parametrize("from_list", [True, False])
def test_deleting_revokes_the_key(as_alice: Client, bob: User, from_list: bool):
    secret = access_keys.create_key(bob, "script", expires_at=None)
    assert ask(bearer(secret)).status_code == 200
    key = only_key()
    if from_list:
        as_alice.post(LIST, {"action": "delete_selected", "_selected_action": key.pk, "post": "yes"})
    else:
        as_alice.post(page_of(key, "delete"), {"post": "yes"})

    assert ask(bearer(secret)).status_code == 401


def test_confirmation_explains_revoking(as_alice: Client, bob: User):
    for name in ("script", "other"):
        access_keys.create_key(bob, name, expires_at=None)
    key, other = AccessKey.objects.order_by("sys_id")
    page = as_alice.get(page_of(key)).content.decode()
    assert f'href="{page_of(key, "delete")}"' in page and "Delete" not in re.sub(r"Deleted records", "", page)
    assert "Revoke selected access keys" in as_alice.get(LIST).content.decode()

    page = as_alice.get(page_of(key, "delete")).content.decode()
    assert page.count("Revoke this key?") == 2, "in the title and on the page"
    assert "“script”" in page and "of bob, never used" in page
    assert "Scripts that use it will stop working within a second. It cannot be restored." in page
    chosen = {"action": "delete_selected", "_selected_action": [key.pk, other.pk]}
    page = as_alice.post(LIST, chosen).content.decode()
    assert "Scripts that use them will stop working within a second. They cannot be restored." in page
    assert "“script”" in page and "“other”" in page and AccessKey.objects.count() == 2

    assert "2 access keys were revoked." in as_alice.post(LIST, {**chosen, "post": "yes"}, follow=True).content.decode()
    assert not AccessKey.objects.exists() and LogEntry.objects.count() == 2
    access_keys.create_key(bob, "third", expires_at=None)
    page = as_alice.post(page_of(only_key(), "delete"), {"post": "yes"}, follow=True).content.decode()
    assert "The key third" in page and "was revoked" in page


def test_key_name_is_escaped(as_alice: Client, bob: User):
    page = make(as_alice, bob, name="<script>alert(1)</script>")

    assert b"<script>alert" not in page.content and b"&lt;script&gt;alert" in page.content


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"expires_at_0": "31.12.2030", "expires_at_1": "12:00"},
            "Enter a date in the format YYYY-MM-DD, for example 2030-12-31.",
        ),
        (
            {"expires_at_0": "2030-12-31", "expires_at_1": "noon"},
            "Enter a time in the format HH:MM:SS, for example 23:59:00.",
        ),
    ],
)
def test_invalid_expiry_date_names_the_format(as_alice: Client, bob: User, given: dict[str, str], said: str):
    page = make(as_alice, bob, **given)

    assert said in page.content.decode() and not AccessKey.objects.exists()

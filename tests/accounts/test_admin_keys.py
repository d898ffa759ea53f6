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
from tests.accounts.callers import bearer_auth, get_me, only_access_key

LIST_PATH = "/admin/accounts/accesskey/"
SECRET_PATTERN = re.compile(r"sb_[\w-]{43}")


def shown_secrets(page: Any) -> list[str]:
    return SECRET_PATTERN.findall(page.content.decode())


def create_key(browser: Client, user: User, /, **form: Any) -> Any:
    return browser.post(f"{LIST_PATH}add/", {"user": user.pk, "name": "script"} | form, follow=True)


def key_page_path(key: AccessKey, page: str = "change") -> str:
    return f"{LIST_PATH}{key.pk}/{page}/"


def test_key_can_be_created_for_a_user(as_alice: Client, alice: User, bob: User):
    (secret,) = shown_secrets(create_key(as_alice, bob))

    assert get_me(bearer_auth(secret)).json()["login"] == "bob"
    assert AccessKey.objects.values("user", "kind", "sys_created_by").get() == {
        "user": bob.pk,
        "kind": "named",
        "sys_created_by": alice.pk,
    }


@pytest.mark.parametrize("button", ["_save", "_continue", "_addanother", "_popup"])
def test_key_is_shown_once_after_every_save_button(as_alice: Client, bob: User, button: str):
    page = create_key(as_alice, bob, **{button: "1"})
    (secret,) = shown_secrets(page)
    key = only_access_key()

    assert "no-store" in page["Cache-Control"]
    assert all(secret not in cookie.value for cookie in as_alice.cookies.values())
    assert secret not in str(dict(as_alice.session))
    assert secret not in str(LogEntry.objects.values())
    for path in (LIST_PATH, key_page_path(key), key_page_path(key, "history"), key_page_path(key, "delete"), "/admin/"):
        assert shown_secrets(as_alice.get(path)) == [], path


def test_reloading_the_page_creates_no_second_key(as_alice: Client, bob: User):
    page = create_key(as_alice, bob)

    redirect_path, _ = page.redirect_chain[-1]
    assert shown_secrets(as_alice.get(redirect_path)) == []
    assert AccessKey.objects.count() == 1


def test_default_lifetime_is_90_days(as_alice: Client):
    form = as_alice.get(f"{LIST_PATH}add/").context["adminform"].form

    expires_at = form.get_initial_for_field(form.fields["expires_at"], "expires_at")
    assert timedelta(days=89) < expires_at - timezone.now() <= timedelta(days=90)


def test_hash_is_never_shown(as_alice: Client, bob: User):
    access_keys.create_key(bob, "script", expires_at=None)
    key = only_access_key()

    for path in (LIST_PATH, key_page_path(key), key_page_path(key, "history"), key_page_path(key, "delete")):
        content = as_alice.get(path).content.decode()
        assert key.prefix in content or key.name in content
        assert key.digest not in content


def test_scope_and_lifetime_can_be_chosen(as_alice: Client, alice: User):
    expires_at = timezone.now() + timedelta(days=1)
    expiry_fields = {"expires_at_0": f"{expires_at:%Y-%m-%d}", "expires_at_1": "12:00:00"}
    (secret,) = shown_secrets(create_key(as_alice, alice, scope=[Role.objects.get(name="itil").pk], **expiry_fields))

    assert get_me(bearer_auth(secret)).json()["roles"] == ["itil"]
    assert only_access_key().expires_at.date() == expires_at.date()


@pytest.mark.parametrize("invalid_form", [{"name": ""}, {"user": "1"}, {"scope": ["1"]}, {"expires_at_0": "soon"}])
def test_invalid_form_creates_no_key(as_alice: Client, bob: User, invalid_form: dict[str, Any]):
    page = create_key(as_alice, bob, **invalid_form)

    assert page.status_code == 200 and page.context["errors"]
    assert shown_secrets(page) == [] and not AccessKey.objects.exists()


def test_user_and_secret_of_a_key_cannot_be_changed(as_alice: Client, alice: User, bob: User):
    secret = access_keys.create_key(bob, "script", expires_at=None)
    key = only_access_key()
    columns_before = AccessKey.objects.values("user", "digest", "prefix", "kind").get()
    form = {"name": "renamed", "user": alice.pk, "digest": "0" * 64, "prefix": "sb_", "kind": "login"}

    assert as_alice.post(key_page_path(key), form).status_code == 302
    assert key.refreshed().name == "renamed"
    assert AccessKey.objects.values("user", "digest", "prefix", "kind").get() == columns_before
    assert get_me(bearer_auth(secret)).json()["login"] == "bob"


def test_scope_can_be_narrowed_later(as_alice: Client, alice: User):
    secret = access_keys.create_key(alice, "script", expires_at=None)
    key = only_access_key()
    assert get_me(bearer_auth(secret)).json()["roles"] == ["admin"]
    as_alice.post(key_page_path(key), {"name": "script", "scope": [Role.objects.get(name="itil").pk]})

    assert get_me(bearer_auth(secret)).json()["roles"] == ["itil"]


@pytest.mark.parametrize("is_deleted_from_list", [True, False])
def test_deleting_revokes_the_key(as_alice: Client, bob: User, is_deleted_from_list: bool):
    secret = access_keys.create_key(bob, "script", expires_at=None)
    assert get_me(bearer_auth(secret)).status_code == 200
    key = only_access_key()
    if is_deleted_from_list:
        as_alice.post(LIST_PATH, {"action": "delete_selected", "_selected_action": key.pk, "post": "yes"})
    else:
        as_alice.post(key_page_path(key, "delete"), {"post": "yes"})

    assert get_me(bearer_auth(secret)).status_code == 401


def test_confirmation_page_explains_revoking(as_alice: Client, bob: User):
    for name in ("script", "other"):
        access_keys.create_key(bob, name, expires_at=None)
    key, other_key = AccessKey.objects.order_by("sys_id")
    page = as_alice.get(key_page_path(key)).content.decode()
    assert f'href="{key_page_path(key, "delete")}"' in page and "Delete" not in re.sub(r"Deleted records", "", page)
    assert "Revoke selected access keys" in as_alice.get(LIST_PATH).content.decode()

    page = as_alice.get(key_page_path(key, "delete")).content.decode()
    assert page.count("Revoke this key?") == 2, "in the title and on the page"
    assert "“script”" in page and "of bob, never used" in page
    assert "Scripts that use this key will stop working within a second. This cannot be undone." in page
    form = {"action": "delete_selected", "_selected_action": [key.pk, other_key.pk]}
    page = as_alice.post(LIST_PATH, form).content.decode()
    assert "Scripts that use these keys will stop working within a second. This cannot be undone." in page
    assert "“script”" in page and "“other”" in page and AccessKey.objects.count() == 2

    assert (
        "2 access keys were revoked." in as_alice.post(LIST_PATH, {**form, "post": "yes"}, follow=True).content.decode()
    )
    assert not AccessKey.objects.exists() and LogEntry.objects.count() == 2
    access_keys.create_key(bob, "third", expires_at=None)
    page = as_alice.post(key_page_path(only_access_key(), "delete"), {"post": "yes"}, follow=True).content.decode()
    assert "The key third" in page and "was revoked" in page


def test_key_name_is_escaped(as_alice: Client, bob: User):
    page = create_key(as_alice, bob, name="<script>alert(1)</script>")

    assert b"<script>alert" not in page.content and b"&lt;script&gt;alert" in page.content


@pytest.mark.parametrize(
    ("expiry_fields", "message"),
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
def test_expiry_date_error_states_the_format(as_alice: Client, bob: User, expiry_fields: dict[str, str], message: str):
    page = create_key(as_alice, bob, **expiry_fields)

    assert message in page.content.decode() and not AccessKey.objects.exists()

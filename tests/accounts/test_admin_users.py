"""Users in the administration: creating, changing, roles, passwords, sessions."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils.html import strip_tags

from accounts.authentication import access_keys
from accounts.models import AccessKey, Group, Role, Session, User, UserGroup, UserRole
from system import properties
from system.models import DeletionLogEntry
from system.records import acting_user
from tests.accounts.admin_forms import inline_form, stored_rows, submit_user_form, user_page_path
from tests.accounts.callers import ME_PATH, bearer_auth, get_me, sign_in, try_password
from tests.support.users import PASSWORD, make_user

NEW_PASSWORD = "another horse 43"
EMPTY_INLINES = {**inline_form("grants", [], []), **inline_form("memberships", [], [])}


def form_errors(page: Any) -> str:
    """Every error message of an admin page."""
    assert page.status_code == 200, page.status_code
    return str(page.context["errors"])


def test_user_can_be_created_with_a_password(as_alice: Client, alice: User):
    form = {
        "login": "dora",
        "usable_password": "true",
        "password1": NEW_PASSWORD,
        "password2": NEW_PASSWORD,
        **EMPTY_INLINES,
    }
    assert as_alice.post(user_page_path("add"), form).status_code == 302

    assert try_password("dora", NEW_PASSWORD) == 200
    dora = User.objects.get(login="dora")
    assert dora.sys_created_by == alice.pk
    assert not dora.is_staff and not dora.grants.exists()


def test_user_can_be_created_without_a_password(as_alice: Client):
    """A user who will sign in through a provider, or a technical user who only has keys."""
    assert (
        as_alice.post(user_page_path("add"), {"login": "dora", "usable_password": "false", **EMPTY_INLINES}).status_code
        == 302
    )

    assert not User.objects.get(login="dora").has_usable_password()


@pytest.mark.parametrize(
    ("invalid_columns", "message"),
    [
        ({"login": "bob"}, "This login is already in use."),
        ({"login": "d:ora"}, "must not contain a colon"),
        ({"login": "do\u200bra"}, "invisible"),
        ({"login": ""}, "required"),
        ({"password2": "other"}, "match"),
        ({"password1": "short", "password2": "short"}, "too short"),
        ({"password1": "x1" * 300, "password2": "x1" * 300}, "at most 512"),
        *(
            (
                {"login": "dora.long", "password1": similar_password, "password2": similar_password},
                "The password is too similar to the login.",
            )
            for similar_password in ("dora.long1", "Long.Dora1", "1234Dora5678", "dora2longer")
        ),
    ],
)
def test_invalid_new_user_is_reported(as_alice: Client, bob: User, invalid_columns: dict[str, str], message: str):
    form = {
        "login": "dora",
        "usable_password": "true",
        "password1": NEW_PASSWORD,
        "password2": NEW_PASSWORD,
        **EMPTY_INLINES,
        **invalid_columns,
    }

    assert message in form_errors(as_alice.post(user_page_path("add"), form))
    assert User.objects.count() == 2


def test_user_page_shows_no_hash(as_alice: Client, bob: User):
    page = as_alice.get(user_page_path(bob.pk, "change")).content.decode()

    assert bob.login in page
    assert bob.password not in page and bob.password.rpartition("$")[2] not in page


def test_time_zone_is_a_choice_that_keeps_an_unknown_name(as_alice: Client, bob: User):
    User.objects.filter(pk=bob.pk).update(time_zone="Old/Zone")
    page = as_alice.get(user_page_path(bob.pk, "change")).content.decode()

    assert '<option value="Europe/Berlin">Berlin</option>' in page
    assert '<option value="Old/Zone" selected>Zone</option>' in page


def test_columns_can_be_changed_and_sessions_stay(as_alice: Client, bob: User):
    browser = sign_in("bob")
    assert submit_user_form(as_alice, bob, first_name="Bob", email="bob@example.org").status_code == 302

    assert (bob.refreshed().first_name, bob.email) == ("Bob", "bob@example.org")
    assert browser.get(ME_PATH).status_code == 200


@pytest.mark.parametrize("column", ["password", "last_login", "sys_id", "sys_created_by", "sys_version", "source"])
def test_read_only_columns_are_ignored(as_alice: Client, bob: User, column: str):
    column_names = ("password", "last_login", "sys_id", "sys_created_by")
    columns_before = User.objects.values(*column_names).get(login="bob")
    form: dict[str, Any] = {column: "12345"}
    submit_user_form(as_alice, bob, **form)

    assert User.objects.values(*column_names).get(login="bob") == columns_before
    assert bob.refreshed().sys_version == 1


def test_deactivation_ends_all_access(as_alice: Client, bob: User):
    key, browser = access_keys.create_key(bob, "script", expires_at=None), sign_in("bob")
    assert get_me(bearer_auth(key)).status_code == 200
    submit_user_form(as_alice, bob, active="off")

    assert get_me(bearer_auth(key)).status_code == 401
    assert try_password("bob", PASSWORD) == 401
    assert browser.get(ME_PATH).status_code == 401


def test_role_can_be_granted_and_revoked(as_alice: Client, alice: User, bob: User):
    assert submit_user_form(as_alice, bob, granted_roles=("itil",)).status_code == 302
    assert UserRole.objects.values("role__name", "source", "sys_created_by").get(user=bob) == {
        "role__name": "itil",
        "source": "manual",
        "sys_created_by": alice.pk,
    }
    assert submit_user_form(as_alice, bob, revoked_roles=("itil",)).status_code == 302
    assert not bob.grants.exists()


def test_role_can_be_revoked_and_granted_in_one_save(as_alice: Client, bob: User):
    submit_user_form(as_alice, bob, granted_roles=("itil",))

    assert submit_user_form(as_alice, bob, granted_roles=("itil",), revoked_roles=("itil",)).status_code == 302
    assert bob.grants.count() == 1


def test_duplicate_role_is_reported(as_alice: Client, bob: User):
    assert "The same role was added more than once." in form_errors(
        submit_user_form(as_alice, bob, granted_roles=("itil", "itil"))
    )
    assert not bob.grants.exists()


def test_removed_new_row_is_ignored(as_alice: Client, bob: User):
    row = {"role": Role.objects.get(name="itil").pk, "user": bob.pk}
    form = {"login": "bob", "active": "on", **inline_form("memberships", [], [])}
    form |= inline_form("grants", [], [{**row, "DELETE": "on"}, row, {"role": "", "user": bob.pk}])

    assert as_alice.post(user_page_path(bob.pk, "change"), form).status_code == 302
    assert bob.grants.count() == 1


def test_new_user_can_get_each_role_once(as_alice: Client):
    row = {"role": Role.objects.get(name="itil").pk}
    form = {"login": "dora", "usable_password": "false", **EMPTY_INLINES}

    assert "more than once" in form_errors(
        as_alice.post(user_page_path("add"), {**form, **inline_form("grants", [], [row, row])})
    )
    assert as_alice.post(user_page_path("add"), {**form, **inline_form("grants", [], [row])}).status_code == 302
    assert User.objects.get(login="dora").role_names == {"itil"}


def test_role_granted_by_another_administrator_is_reported(as_alice: Client, bob: User):
    """The role was granted after the page had been opened."""
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    form = {"login": "bob", "active": "on", **inline_form("memberships", [], [])}
    form |= inline_form("grants", [], [{"role": Role.objects.get(name="itil").pk, "user": bob.pk}])
    page = as_alice.post(user_page_path(bob.pk, "change"), form)

    assert "The same role was added more than once." in form_errors(page)
    assert bob.grants.count() == 1


def test_provider_role_can_also_be_granted_manually(as_alice: Client, bob: User):
    """Without the manual grant, the next sign-in through the provider could remove the role."""
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"), source=UserRole.PROVIDER)

    assert submit_user_form(as_alice, bob, granted_roles=("itil",)).status_code == 302
    assert set(bob.grants.values_list("source", flat=True)) == {"manual", "provider"}


def test_stored_grant_cannot_change_its_role(as_alice: Client, bob: User, alice: User):
    """Exchanging the roles of two grants would violate the unique constraint."""
    for name in ("itil", "monitoring"):
        UserRole.objects.create(user=bob, role=Role.objects.get(name=name))
    rows = stored_rows(bob.grants)
    for row, name in zip(rows, ("monitoring", "itil"), strict=True):
        row |= {"role": Role.objects.get(name=name).pk, "user": alice.pk, "source": "provider"}
    form = {"login": "bob", "active": "on", **inline_form("grants", rows, []), **inline_form("memberships", [], [])}
    grants_before = list(UserRole.objects.order_by("sys_id").values())

    assert as_alice.post(user_page_path(bob.pk, "change"), form).status_code == 302
    assert list(UserRole.objects.order_by("sys_id").values()) == grants_before


def test_grant_of_another_user_cannot_be_changed_on_this_page(as_alice: Client, bob: User, sonja: User):
    grant_of_sonja = {"sys_id": sonja.grants.get().pk, "user": bob.pk, "DELETE": "on"}
    form = {
        "login": "bob",
        "active": "on",
        **inline_form("grants", [grant_of_sonja], []),
        **inline_form("memberships", [], []),
    }

    as_alice.post(user_page_path(bob.pk, "change"), form)
    assert sonja.grants.exists()
    assert not DeletionLogEntry.objects.exists(), "no history entry was created"


def test_duplicate_group_is_reported(as_alice: Client, bob: User):
    group = Group.objects.create(name="Desk")
    form = {"login": "bob", "active": "on", **inline_form("grants", [], [])}
    form |= inline_form("memberships", [], [{"group": group.pk, "user": bob.pk}] * 2)

    assert "duplicate" in form_errors(as_alice.post(user_page_path(bob.pk, "change"), form))
    assert not UserGroup.objects.exists()


def test_duplicate_member_is_reported(as_alice: Client, bob: User):
    group = Group.objects.create(name="Desk")
    UserGroup.objects.create(user=bob, group=group)
    form = {"name": "Desk", "active": "on", **inline_form("memberships", [], [{"group": group.pk, "user": bob.pk}])}

    assert "The same user was added more than once." in form_errors(
        as_alice.post(f"/admin/accounts/group/{group.pk}/change/", form)
    )


def set_password(browser: Client, user: User, **columns: str) -> Any:
    form = {
        "usable_password": "true",
        "password1": NEW_PASSWORD,
        "password2": NEW_PASSWORD,
        "set-password": "1",
        **columns,
    }
    return browser.post(user_page_path(user.pk, "password"), form)


def test_setting_a_password_ends_sessions_and_sign_in_keys(as_alice: Client, bob: User):
    browser = sign_in("bob")
    login_key, named_key = access_keys.create_login_key(bob), access_keys.create_key(bob, "script", expires_at=None)
    assert get_me(bearer_auth(login_key)).status_code == 200
    assert set_password(as_alice, bob).status_code == 302

    assert (try_password("bob", PASSWORD), try_password("bob", NEW_PASSWORD)) == (401, 200)
    assert browser.get(ME_PATH).status_code == 401 and not Session.objects.filter(user=bob).exists()
    assert [get_me(bearer_auth(key)).status_code for key in (login_key, named_key)] == [401, 200]
    assert LogEntry.objects.get().get_change_message() == "Changed password."


def test_administrator_can_remove_a_password(as_alice: Client, bob: User):
    browser = sign_in("bob")
    form = {"usable_password": "false", "password1": "", "password2": "", "unset-password": "1"}
    assert as_alice.post(user_page_path(bob.pk, "password"), form).status_code == 302

    assert try_password("bob", PASSWORD) == 401
    assert browser.get(ME_PATH).status_code == 401


def test_setting_your_own_password_keeps_only_the_current_session(alice: User):
    browser, other_browser = sign_in("alice"), sign_in("alice")
    set_password(browser, alice)

    assert browser.get(ME_PATH).status_code == 200
    assert other_browser.get(ME_PATH).status_code == 401


def test_weak_password_changes_nothing(as_alice: Client, bob: User):
    browser = sign_in("bob")

    assert set_password(as_alice, bob, password2="other").status_code == 200
    assert try_password("bob", PASSWORD) == 200 and browser.get(ME_PATH).status_code == 200


def test_password_similar_to_a_user_attribute_is_refused(as_alice: Client):
    lena = make_user("lena.bergstrom", first_name="Magdalena", email="info@bergwerk.example")

    for similar_password, attribute in (
        ("lena.bergstrom", "login"), ("lenabergstrom", "login"), ("magdalena123", "first name"),
        ("bergwerk2026", "email"),
    ):  # fmt: skip
        message = form_errors(set_password(as_alice, lena, password1=similar_password, password2=similar_password))
        assert f"The password is too similar to the {attribute}." in message
    assert (
        set_password(as_alice, lena, password1="lena likes staples", password2="lena likes staples").status_code == 302
    )


def test_administrator_sees_and_ends_one_session(as_alice: Client, bob: User):
    browser, other_browser = sign_in("bob", REMOTE_ADDR="192.0.2.7"), sign_in("bob", HTTP_USER_AGENT="Phone")
    page = as_alice.get(user_page_path(bob.pk, "change")).content.decode()
    assert "from 192.0.2.7" in page and "Phone" in page and page.count('name="session"') == 2
    key = Session.objects.get(browser="Phone").session_key
    as_alice.post(user_page_path(bob.pk, "sessions/end"), {"session": key})

    assert other_browser.get(ME_PATH).status_code == 401
    assert browser.get(ME_PATH).status_code == 200


def test_only_administrators_end_sessions_of_others(
    as_bob: Client, as_sonja: Client, as_alice: Client, alice: User, bob: User
):
    key = Session.objects.get(user=alice).session_key
    assert as_sonja.post(user_page_path(alice.pk, "sessions/end")).status_code == 403
    assert as_bob.post(user_page_path(alice.pk, "sessions/end")).status_code == 302
    assert as_alice.get(user_page_path(bob.pk, "sessions/end")).status_code == 405
    as_alice.post(user_page_path(bob.pk, "sessions/end"), {"session": key})  # not a session of Bob

    assert as_alice.get(ME_PATH).status_code == as_bob.get(ME_PATH).status_code == 200


def test_administrator_can_end_all_sessions(as_alice: Client, bob: User):
    browser, key = sign_in("bob"), access_keys.create_login_key(bob)
    assert "End all sessions" in as_alice.get(user_page_path(bob.pk, "change")).content.decode()
    as_alice.post(user_page_path(bob.pk, "sessions/end"))

    assert browser.get(ME_PATH).status_code == 401
    assert get_me(bearer_auth(key)).status_code == 401
    assert as_alice.get(ME_PATH).status_code == 200


def test_deleting_a_user_deletes_keys_roles_and_sessions(as_alice: Client, bob: User):
    access_keys.create_key(bob, "script", expires_at=None)
    sign_in("bob")
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    assert as_alice.post(user_page_path(bob.pk, "delete"), {"post": "yes"}).status_code == 302

    assert not User.objects.filter(login="bob").exists()
    assert not AccessKey.objects.exists() and not UserRole.objects.filter(role__name="itil").exists()
    assert Session.objects.count() == 1


@pytest.mark.parametrize("pk", ["1", "x", "a_5F", "%00", "9" * 300])
def test_missing_user_causes_no_server_error(as_alice: Client, pk: str):
    for page in ("change", "password", "history", "delete"):
        assert as_alice.get(user_page_path(pk, page)).status_code in (302, 404)


class TestSharedEmail:
    """A provider sign-in that matches by email is refused for both users."""

    @pytest.fixture
    def dora(self, bob: User) -> User:
        return make_user("dora", email="bob@example.com")

    def test_form_warns(self, as_alice: Client, bob: User, dora: User):
        for user, other_login in ((bob, "dora"), (dora, "bob")):
            page = as_alice.get(user_page_path(user.pk, "change")).content.decode()
            assert f"Other accounts have the same email: {other_login}." in page

    @pytest.mark.parametrize("button", ["_save", "_continue"])
    def test_saving_warns(self, as_alice: Client, bob: User, button: str):
        dora = make_user("dora")
        assert "have the same email" not in as_alice.get(user_page_path(dora.pk, "change")).content.decode()
        columns: dict[str, Any] = {"email": "bob@example.com", button: "1"}
        response = submit_user_form(as_alice, dora, **columns)
        page = as_alice.get(response["Location"]).content.decode()

        assert page.count("Other accounts have the same email") == 1

    def test_comparison_follows_the_case_property(self, as_alice: Client, bob: User):
        make_user("dora", email="BOB@example.com")
        path = user_page_path(bob.pk, "change")
        assert "have the same email" not in as_alice.get(path).content.decode()
        properties.put(properties.CASE_SENSITIVE, "false")

        assert "same email: dora." in as_alice.get(path).content.decode()

    def test_empty_emails_are_not_compared(self, as_alice: Client):
        user, _ = make_user("one"), make_user("two")

        assert "have the same email" not in as_alice.get(user_page_path(user.pk, "change")).content.decode()


def test_page_shows_who_granted_a_role(as_alice: Client, alice: User, bob: User):
    with acting_user.acting_as(alice.pk):
        UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    UserRole.objects.create(user=bob, role=Role.objects.get(name="monitoring"))

    page = as_alice.get(f"/admin/accounts/user/{bob.pk}/change/").content.decode()

    cells = [strip_tags(cell).strip() for cell in re.findall(r"field-granted_by[^>]*>(.*?)</td>", page, re.DOTALL)]
    assert ["alice" in cells[0], "the system" in cells[1]] == [True, True], cells


class TestSimilarUsers:
    """A possible duplicate causes a warning, not an error."""

    SIMILARITY_WARNING = "may be a duplicate of"

    @pytest.mark.parametrize(
        ("columns", "is_similar"),
        [
            ({"first_name": "bob", "last_name": "MARLEY"}, True),
            ({"first_name": "Bob Mar", "last_name": "ley"}, True),
            ({"login": "B ob"}, True),
            ({"first_name": "Bob"}, False),
            ({"phone": "1"}, False),
        ],
    )
    def test_users_are_compared_by_login_and_by_name(
        self, as_alice: Client, bob: User, columns: dict[str, Any], is_similar: bool
    ):
        bob.first_name, bob.last_name = "Bob", "Marley"
        bob.save()
        response = submit_user_form(as_alice, make_user("dora"), **columns)
        page = as_alice.get(response["Location"]).content.decode()

        assert (self.SIMILARITY_WARNING in page, "Bob Marley (bob)" in page) == (is_similar, is_similar)

    def test_changed_login_is_compared(self, as_alice: Client, bob: User):
        form = {
            "login": "BOB",
            "usable_password": "false",
            **inline_form("grants", [], []),
            **inline_form("memberships", [], []),
        }
        page = as_alice.post(user_page_path("add"), form, follow=True).content.decode()

        assert User.objects.filter(login="BOB").exists() and self.SIMILARITY_WARNING in page


def test_form_explains_users_without_a_password(as_alice: Client):
    page = as_alice.get(user_page_path("add")).content.decode()

    assert "LDAP" not in page and "sign in only through an identity provider" in page


def test_deletion_page_lists_the_records_to_be_deleted(as_alice: Client, alice: User, bob: User):
    for name in ("Bobby", "Rob"):
        submit_user_form(as_alice, bob, first_name=name)
    page = as_alice.get(user_page_path(alice.pk, "delete")).content.decode()

    assert "Log entries of the user&#x27;s changes" in page
    assert "The history of the user&#x27;s changes is kept." in page
    deleted_id = alice.pk
    alice.delete()
    assert bob.history.filter(history_user_id=deleted_id).count() == 2


def test_user_page_links_to_the_password_form(as_alice: Client, bob: User):
    def user_page_text() -> str:
        return " ".join(strip_tags(as_alice.get(user_page_path(bob.pk, "change")).content.decode()).split())

    assert "set · change it" in user_page_text()
    bob.set_unusable_password()
    bob.save()
    assert "not set · set one" in user_page_text()


def test_administration_uses_the_sign_out_of_the_service(as_alice: Client):
    page = as_alice.get("/admin/").content.decode()
    assert "Sign out" in page and "Log out" not in page

"""The admin's pages of users: making, changing, roles, passwords, sessions."""

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
from tests.accounts.admin_forms import change, inline, stored, users
from tests.accounts.callers import ME, ask, bearer, guess, sign_in
from tests.conftest import PASSWORD, make_user

NEW = "another horse 43"


NONE = {**inline("grants", [], []), **inline("memberships", [], [])}


def errors(page: Any) -> str:
    """All that a page of the admin complains about."""
    assert page.status_code == 200, page.status_code
    return str(page.context["errors"])


def test_a_user_is_made_with_a_password(as_alice: Client, alice: User):
    sent = {"login": "dora", "usable_password": "true", "password1": NEW, "password2": NEW, **NONE}
    assert as_alice.post(users("add"), sent).status_code == 302

    assert guess("dora", NEW) == 200
    dora = User.objects.get(login="dora")
    assert dora.sys_created_by == alice.pk
    assert not dora.is_staff and not dora.grants.exists()


def test_a_user_is_made_without_a_password(as_alice: Client):
    """One who will sign in by a provider, or a technical one with keys alone."""
    assert as_alice.post(users("add"), {"login": "dora", "usable_password": "false", **NONE}).status_code == 302

    assert not User.objects.get(login="dora").has_usable_password()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"login": "bob"}, "This login is already in use."),
        ({"login": "d:ora"}, "must not contain a colon"),
        ({"login": "do\u200bra"}, "invisible"),
        ({"login": ""}, "required"),
        ({"password2": "other"}, "match"),
        ({"password1": "short", "password2": "short"}, "too short"),
        ({"password1": "x1" * 300, "password2": "x1" * 300}, "at most 512"),
        *(
            ({"login": "dora.long", "password1": near, "password2": near}, "The password is too similar to the login.")
            for near in ("dora.long1", "Long.Dora1", "1234Dora5678", "dora2longer")
        ),
    ],
)
def test_what_is_wrong_with_a_new_user_is_said(as_alice: Client, bob: User, wrong: dict[str, str], said: str):
    sent = {"login": "dora", "usable_password": "true", "password1": NEW, "password2": NEW, **NONE, **wrong}

    assert said in errors(as_alice.post(users("add"), sent))
    assert User.objects.count() == 2


def test_the_page_of_a_user_shows_no_hash(as_alice: Client, bob: User):
    page = as_alice.get(users(bob.pk, "change")).content.decode()

    assert bob.login in page
    assert bob.password not in page and bob.password.rpartition("$")[2] not in page


def test_columns_are_changed_and_sessions_stay(as_alice: Client, bob: User):
    browser = sign_in("bob")
    assert change(as_alice, bob, first_name="Bob", email="bob@example.org").status_code == 302

    assert (bob.refreshed().first_name, bob.email) == ("Bob", "bob@example.org")
    assert browser.get(ME).status_code == 200


@pytest.mark.parametrize("column", ["password", "last_login", "sys_id", "sys_created_by", "sys_version", "source"])
def test_columns_that_are_only_shown_cannot_be_sent(as_alice: Client, bob: User, column: str):
    kept = ("password", "last_login", "sys_id", "sys_created_by")
    before = User.objects.values(*kept).get(login="bob")
    sent: dict[str, Any] = {column: "12345"}
    change(as_alice, bob, **sent)

    assert User.objects.values(*kept).get(login="bob") == before
    assert bob.refreshed().sys_version == 1


def test_deactivating_stops_everything(as_alice: Client, bob: User):
    key, browser = access_keys.create(bob, "script", expires_at=None), sign_in("bob")
    assert ask(bearer(key)).status_code == 200
    change(as_alice, bob, active="off")

    assert ask(bearer(key)).status_code == 401
    assert guess("bob", PASSWORD) == 401
    assert browser.get(ME).status_code == 401


def test_a_role_is_given_and_taken(as_alice: Client, alice: User, bob: User):
    assert change(as_alice, bob, give=("itil",)).status_code == 302
    assert UserRole.objects.values("role__name", "source", "sys_created_by").get(user=bob) == {
        "role__name": "itil",
        "source": "manual",
        "sys_created_by": alice.pk,
    }
    assert change(as_alice, bob, take=("itil",)).status_code == 302
    assert not bob.grants.exists()


def test_a_role_is_taken_and_given_at_once(as_alice: Client, bob: User):
    change(as_alice, bob, give=("itil",))

    assert change(as_alice, bob, give=("itil",), take=("itil",)).status_code == 302
    assert bob.grants.count() == 1


def test_a_role_that_stands_twice_is_a_sentence(as_alice: Client, bob: User):
    assert "The same role was added more than once." in errors(change(as_alice, bob, give=("itil", "itil")))
    assert not bob.grants.exists()


def test_a_new_row_that_was_thrown_away_again_counts_for_nothing(as_alice: Client, bob: User):
    row = {"role": Role.objects.get(name="itil").pk, "user": bob.pk}
    sent = {"login": "bob", "active": "on", **inline("memberships", [], [])}
    sent |= inline("grants", [], [{**row, "DELETE": "on"}, row, {"role": "", "user": bob.pk}])

    assert as_alice.post(users(bob.pk, "change"), sent).status_code == 302
    assert bob.grants.count() == 1


def test_a_new_user_is_given_roles_at_once_but_none_twice(as_alice: Client):
    row = {"role": Role.objects.get(name="itil").pk}
    sent = {"login": "dora", "usable_password": "false", **NONE}

    assert "more than once" in errors(as_alice.post(users("add"), {**sent, **inline("grants", [], [row, row])}))
    assert as_alice.post(users("add"), {**sent, **inline("grants", [], [row])}).status_code == 302
    assert User.objects.get(login="dora").role_names == {"itil"}


def test_a_role_that_somebody_else_gave_meanwhile_is_a_sentence(as_alice: Client, bob: User):
    """The page was open before; it does not know of the stored one."""
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    sent = {"login": "bob", "active": "on", **inline("memberships", [], [])}
    sent |= inline("grants", [], [{"role": Role.objects.get(name="itil").pk, "user": bob.pk}])
    page = as_alice.post(users(bob.pk, "change"), sent)

    assert "The same role was added more than once." in errors(page)
    assert bob.grants.count() == 1


def test_a_role_from_the_provider_may_be_given_by_hand_too(as_alice: Client, bob: User):
    """Else it would go with the next sign-in, whatever the administrator meant."""
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"), source=UserRole.PROVIDER)

    assert change(as_alice, bob, give=("itil",)).status_code == 302
    assert set(bob.grants.values_list("source", flat=True)) == {"manual", "provider"}


def test_a_stored_grant_cannot_be_turned_into_another(as_alice: Client, bob: User, alice: User):
    """Two grants that change places would collide in the database."""
    for name in ("itil", "monitoring"):
        UserRole.objects.create(user=bob, role=Role.objects.get(name=name))
    rows = stored(bob.grants)
    for row, name in zip(rows, ("monitoring", "itil"), strict=True):
        row |= {"role": Role.objects.get(name=name).pk, "user": alice.pk, "source": "provider"}
    sent = {"login": "bob", "active": "on", **inline("grants", rows, []), **inline("memberships", [], [])}
    before = list(UserRole.objects.order_by("sys_id").values())

    assert as_alice.post(users(bob.pk, "change"), sent).status_code == 302
    assert list(UserRole.objects.order_by("sys_id").values()) == before


def test_another_users_grant_cannot_be_taken_on_this_page(as_alice: Client, bob: User, sonja: User):
    other = {"sys_id": sonja.grants.get().pk, "user": bob.pk, "DELETE": "on"}
    sent = {"login": "bob", "active": "on", **inline("grants", [other], []), **inline("memberships", [], [])}

    as_alice.post(users(bob.pk, "change"), sent)
    assert sonja.grants.exists()
    assert not DeletionLogEntry.objects.exists(), "nor is it logged as if it were"


def test_a_group_that_stands_twice_is_a_sentence(as_alice: Client, bob: User):
    group = Group.objects.create(name="Desk")
    sent = {"login": "bob", "active": "on", **inline("grants", [], [])}
    sent |= inline("memberships", [], [{"group": group.pk, "user": bob.pk}] * 2)

    assert "duplicate" in errors(as_alice.post(users(bob.pk, "change"), sent))
    assert not UserGroup.objects.exists()


def test_a_member_that_stands_twice_is_a_sentence(as_alice: Client, bob: User):
    group = Group.objects.create(name="Desk")
    UserGroup.objects.create(user=bob, group=group)
    sent = {"name": "Desk", "active": "on", **inline("memberships", [], [{"group": group.pk, "user": bob.pk}])}

    assert "The same user was added more than once." in errors(
        as_alice.post(f"/admin/accounts/group/{group.pk}/change/", sent)
    )


def set_password(browser: Client, user: User, **more: str) -> Any:
    sent = {"usable_password": "true", "password1": NEW, "password2": NEW, "set-password": "1", **more}
    return browser.post(users(user.pk, "password"), sent)


def test_an_administrator_sets_a_password_and_what_the_old_one_opened_ends(as_alice: Client, bob: User):
    browser = sign_in("bob")
    from_login, named = access_keys.create_for_login(bob), access_keys.create(bob, "script", expires_at=None)
    assert ask(bearer(from_login)).status_code == 200
    assert set_password(as_alice, bob).status_code == 302

    assert (guess("bob", PASSWORD), guess("bob", NEW)) == (401, 200)
    assert browser.get(ME).status_code == 401 and not Session.objects.filter(user=bob).exists()
    assert [ask(bearer(key)).status_code for key in (from_login, named)] == [401, 200]
    assert LogEntry.objects.get().get_change_message() == "Changed password."


def test_an_administrator_takes_the_password_away(as_alice: Client, bob: User):
    browser = sign_in("bob")
    sent = {"usable_password": "false", "password1": "", "password2": "", "unset-password": "1"}
    assert as_alice.post(users(bob.pk, "password"), sent).status_code == 302

    assert guess("bob", PASSWORD) == 401
    assert browser.get(ME).status_code == 401


def test_setting_ones_own_password_there_keeps_the_own_session_alone(alice: User):
    here, there = sign_in("alice"), sign_in("alice")
    set_password(here, alice)

    assert here.get(ME).status_code == 200
    assert there.get(ME).status_code == 401


def test_a_bad_password_changes_nothing(as_alice: Client, bob: User):
    browser = sign_in("bob")

    assert set_password(as_alice, bob, password2="other").status_code == 200
    assert guess("bob", PASSWORD) == 200 and browser.get(ME).status_code == 200


def test_a_password_like_its_user_is_refused_there_too(as_alice: Client):
    lena = make_user("lena.bergstrom", first_name="Magdalena", email="info@bergwerk.example")

    for near, like in (
        ("lena.bergstrom", "login"), ("lenabergstrom", "login"), ("magdalena123", "first name"),
        ("bergwerk2026", "email"),
    ):  # fmt: skip
        said = errors(set_password(as_alice, lena, password1=near, password2=near))
        assert f"The password is too similar to the {like}." in said
    assert (
        set_password(as_alice, lena, password1="lena likes staples", password2="lena likes staples").status_code == 302
    )


def test_an_administrator_ends_sessions(as_alice: Client, bob: User):
    browser, key = sign_in("bob"), access_keys.create_for_login(bob)
    page = as_alice.get(users(bob.pk, "change")).content.decode()
    button = "accounts_user_save_and_end_sessions"
    assert f'name="{button}"' in page
    sent: dict[str, Any] = {button: "1"}
    change(as_alice, bob, **sent)

    assert browser.get(ME).status_code == 401
    assert ask(bearer(key)).status_code == 401
    assert as_alice.get(ME).status_code == 200


def test_a_deleted_user_takes_everything_along(as_alice: Client, bob: User):
    access_keys.create(bob, "script", expires_at=None)
    sign_in("bob")
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    assert as_alice.post(users(bob.pk, "delete"), {"post": "yes"}).status_code == 302

    assert not User.objects.filter(login="bob").exists()
    assert not AccessKey.objects.exists() and not UserRole.objects.filter(role__name="itil").exists()
    assert Session.objects.count() == 1


@pytest.mark.parametrize("pk", ["1", "x", "a_5F", "%00", "9" * 300])
def test_a_user_that_is_not_there_is_no_fault(as_alice: Client, pk: str):
    for page in ("change", "password", "history", "delete"):
        assert as_alice.get(users(pk, page)).status_code in (302, 404)


class TestASharedEmail:
    """Who signs in through a provider and is found by email is let into neither."""

    @pytest.fixture
    def dora(self, bob: User) -> User:
        return make_user("dora", email="bob@example.com")

    def test_the_form_says_so(self, as_alice: Client, bob: User, dora: User):
        for user, other in ((bob, "dora"), (dora, "bob")):
            page = as_alice.get(users(user.pk, "change")).content.decode()
            assert "Other accounts have the same email" in page and f"Also: {other}." in page

    @pytest.mark.parametrize("button", ["_save", "_continue"])
    def test_so_does_the_save_that_makes_it(self, as_alice: Client, bob: User, button: str):
        dora = make_user("dora")
        assert "only account" not in as_alice.get(users(dora.pk, "change")).content.decode()
        columns: dict[str, Any] = {"email": "bob@example.com", button: "1"}
        answer = change(as_alice, dora, **columns)
        page = as_alice.get(answer["Location"]).content.decode()

        assert page.count("Other accounts have the same email") == 1

    def test_by_the_rules_on_upper_and_lower_case(self, as_alice: Client, bob: User):
        make_user("dora", email="BOB@example.com")
        path = users(bob.pk, "change")
        assert "only account" not in as_alice.get(path).content.decode()
        properties.put(properties.CASE_SENSITIVE, "false")

        assert "Also: dora." in as_alice.get(path).content.decode()

    def test_no_email_is_shared_with_nobody(self, as_alice: Client):
        one, _ = make_user("one"), make_user("two")

        assert "only account" not in as_alice.get(users(one.pk, "change")).content.decode()


def test_who_gave_a_role_is_said(as_alice: Client, alice: User, bob: User):
    with acting_user.acting_as(alice.pk):
        UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    UserRole.objects.create(user=bob, role=Role.objects.get(name="monitoring"))

    page = as_alice.get(f"/admin/accounts/user/{bob.pk}/change/").content.decode()

    cells = [strip_tags(cell).strip() for cell in re.findall(r"field-granted_by[^>]*>(.*?)</td>", page, re.DOTALL)]
    assert ["alice" in cells[0], "the system" in cells[1]] == [True, True], cells


class TestSomebodyLikeAnother:
    """May be there twice: said, not refused."""

    DOUBT = "may be a duplicate of"

    @pytest.mark.parametrize(
        ("columns", "is_like"),
        [
            ({"first_name": "bob", "last_name": "MARLEY"}, True),
            ({"first_name": "Bob Mar", "last_name": "ley"}, True),
            ({"login": "B ob"}, True),
            ({"first_name": "Bob"}, False),
            ({"phone": "1"}, False),
        ],
    )
    def test_by_login_or_by_name(self, as_alice: Client, bob: User, columns: dict[str, Any], is_like: bool):
        bob.first_name, bob.last_name = "Bob", "Marley"
        bob.save()
        answer = change(as_alice, make_user("dora"), **columns)
        page = as_alice.get(answer["Location"]).content.decode()

        assert (self.DOUBT in page, "Bob Marley (bob)" in page) == (is_like, is_like)

    def test_a_new_login_too(self, as_alice: Client, bob: User):
        sent = {"login": "BOB", "usable_password": "false", **inline("grants", [], []), **inline("memberships", [], [])}
        page = as_alice.post(users("add"), sent, follow=True).content.decode()

        assert User.objects.filter(login="BOB").exists() and self.DOUBT in page


def test_the_form_says_in_plain_words_what_no_password_means(as_alice: Client):
    text = as_alice.get(users("add")).content.decode()

    assert "LDAP" not in text and "sign in only through an identity provider" in text


def test_deleting_an_administrator_says_what_goes_and_what_stays(as_alice: Client, alice: User, bob: User):
    for name in ("Bobby", "Rob"):
        change(as_alice, bob, first_name=name)
    page = as_alice.get(users(alice.pk, "delete")).content.decode()

    assert "Log entries of their changes" in page
    assert "History entries of their changes are kept" in page
    gone = alice.pk
    alice.delete()
    assert bob.history.filter(history_user_id=gone).count() == 2


def test_the_page_of_a_user_leads_to_the_password_in_fitting_words(as_alice: Client, bob: User):
    def state() -> str:
        return " ".join(strip_tags(as_alice.get(users(bob.pk, "change")).content.decode()).split())

    assert "set · change it" in state()
    bob.set_unusable_password()
    bob.save()
    assert "not set · set one" in state()


def test_one_signs_out_of_the_administration_as_elsewhere(as_alice: Client):
    page = as_alice.get("/admin/").content.decode()
    assert "Sign out" in page and "Log out" not in page

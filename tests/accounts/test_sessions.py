"""Sessions are stored under a hash of their cookie; users can list and end their sessions."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import Session, User
from accounts.models.sessions import SessionStore, describe_user_agent, hash_session_key
from tests.accounts.callers import ME_PATH, sign_in


def session_cookie(browser: Client) -> str:
    return str(browser.cookies["servicebase_session"].value)


def end_session(browser: Client, session_hash: str) -> Any:
    return browser.post(f"/account/sessions/{session_hash}/end/")


def test_database_holds_only_a_hash_of_the_cookie(bob: User):
    browser = sign_in("bob", HTTP_USER_AGENT="Firefox", REMOTE_ADDR="192.0.2.7")
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(stored)::text FROM accounts_session AS stored")
        rows = [row for (row,) in cursor.fetchall()]

    assert len(rows) == 1
    assert session_cookie(browser) not in rows[0]
    assert hash_session_key(session_cookie(browser)) in rows[0]


def test_stored_hash_is_not_accepted_as_a_cookie(bob: User):
    sign_in("bob")
    thief = Client()
    thief.cookies["servicebase_session"] = Session.objects.get().session_key

    assert thief.get(ME_PATH).status_code == 401


def test_session_records_user_address_and_browser(bob: User):
    sign_in("bob", HTTP_USER_AGENT="F" * 300, REMOTE_ADDR="192.0.2.7")
    session = Session.objects.get()

    assert (session.user, session.address, session.browser) == (bob, "192.0.2.7", "F" * 200)


def test_start_time_does_not_change(bob: User):
    browser = sign_in("bob")
    started_at_before = Session.objects.get().started_at
    session = browser.session
    session["more"] = 1
    session.save()

    assert Session.objects.get().started_at == started_at_before


def test_page_lists_own_sessions_and_marks_the_current_one(bob: User, alice: User):
    browser = sign_in("bob", HTTP_USER_AGENT="Firefox at home")
    sign_in("bob", HTTP_USER_AGENT="Phone")
    sign_in("alice", HTTP_USER_AGENT="Browser of alice")
    page = browser.get("/account/").content.decode()

    assert "Firefox at home" in page and "Phone" in page and "Browser of alice" not in page
    assert page.count("this session") == 1
    assert session_cookie(browser) not in page


def test_session_shows_browser_and_system_but_not_the_user_agent(bob: User):
    user_agent = (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/605.1.15"
    )
    page = sign_in("bob", HTTP_USER_AGENT=user_agent, REMOTE_ADDR="192.0.2.7").get("/account/").content.decode()

    assert "Safari on macOS" in page and "Mozilla" not in page
    assert re.search(r"from 192\.0\.2\.7\s[^,]*used in the last few minutes, signed in <time [^>]*>now</time>", page)


@pytest.mark.parametrize(
    ("user_agent", "description"),
    [
        ("Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/126.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) CriOS/126.0 Mobile Safari/604.1", "Chrome on iPhone"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/126.0 Safari/537.36", "Chrome on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/126.0 Safari/537.36 OPR/111.0", "Opera on Windows"),
        ("python-requests/2.32", "python-requests"),
        ("Mozilla/5.0 (compatible)", "Unknown browser"),
        ("<script>", "Unknown browser"),
        ("", "Unknown browser"),
    ],
)
def test_known_user_agents_are_recognized(user_agent: str, description: str):
    assert describe_user_agent(user_agent) == description


def test_own_session_can_be_ended(bob: User):
    browser, other_browser = sign_in("bob"), sign_in("bob")
    assert end_session(browser, hash_session_key(session_cookie(other_browser)))["Location"] == "/account/"

    assert other_browser.get(ME_PATH).status_code == 401
    assert browser.get(ME_PATH).status_code == 200


def test_all_other_sessions_can_be_ended(bob: User, alice: User):
    browser, other_browsers, browser_of_alice = sign_in("bob"), [sign_in("bob"), sign_in("bob")], sign_in("alice")
    assert "End all others" in browser.get("/account/").content.decode()
    page = browser.post("/account/sessions/end-others/", follow=True).content.decode()

    assert "2 other sessions ended." in page and "End all others" not in page
    assert [other.get(ME_PATH).status_code for other in other_browsers] == [401, 401]
    assert browser.get(ME_PATH).status_code == browser_of_alice.get(ME_PATH).status_code == 200


def test_last_use_is_recorded_once_in_five_minutes(bob: User):
    browser = sign_in("bob")
    long_ago = timezone.now() - timedelta(days=2)
    Session.objects.update(last_used_at=long_ago)
    browser.get(ME_PATH)
    recorded_at = Session.objects.get().last_used_at
    browser.get(ME_PATH)

    assert recorded_at > long_ago and Session.objects.get().last_used_at == recorded_at
    Session.objects.update(last_used_at=long_ago)
    assert re.search(r"last used <time [^>]*>2\xa0days ago</time>", sign_in("bob").get("/account/").content.decode())


def test_buttons_that_end_sessions_have_different_names(bob: User):
    browser = sign_in("bob")
    for address in ("192.0.2.7", "192.0.2.8"):
        sign_in("bob", REMOTE_ADDR=address, HTTP_USER_AGENT="Firefox")
    names = re.findall('aria-label="(End the session [^"]*)"', browser.get("/account/").content.decode())

    assert len(names) == len(set(names)) == 2 and "from 192.0.2.7" in "".join(names)


def test_session_of_another_user_cannot_be_ended(bob: User, alice: User):
    browser, browser_of_alice = sign_in("bob"), sign_in("alice")
    end_session(browser, hash_session_key(session_cookie(browser_of_alice)))

    assert browser_of_alice.get(ME_PATH).status_code == 200


@pytest.mark.parametrize("session_hash", ["x", "a" * 40, "a" * 5000])
def test_ending_a_missing_session_is_harmless(bob: User, session_hash: str):
    browser = sign_in("bob")

    assert end_session(browser, session_hash).status_code == 302
    assert browser.get(ME_PATH).status_code == 200


def test_running_request_does_not_revive_an_ended_session(bob: User):
    """A request that loaded the session before it ended must not save it again."""
    from django.contrib.sessions.backends.base import UpdateError

    loaded_session = SessionStore(session_cookie(sign_in("bob")))
    loaded_session["more"] = 1
    Session.objects.all().delete()

    with pytest.raises(UpdateError):
        loaded_session.save()
    assert not Session.objects.exists()


def test_expired_session_is_refused(bob: User):
    browser = sign_in("bob")
    Session.objects.update(expire_date=timezone.now())

    assert browser.get(ME_PATH).status_code == 401


def test_session_data_with_a_wrong_signature_is_refused(bob: User):
    browser = sign_in("bob")
    session = Session.objects.get()
    encoded_data, signature = session.session_data.rsplit(":", 1)
    session.session_data = f"{encoded_data}:{signature.swapcase()}"
    session.save()

    assert browser.get(ME_PATH).status_code == 401


def test_anonymous_visitor_gets_no_session(client: Client, db: None):
    client.get("/login/")
    client.get("/")
    client.get(ME_PATH)

    assert not Session.objects.exists()
    assert "servicebase_session" not in client.cookies

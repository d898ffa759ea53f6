"""`GET /api/me`."""

from django.test import Client

from accounts.authentication import access_keys
from accounts.models import Role, User
from tests.accounts.callers import ME, ask, basic, bearer


def test_a_password_says_who_is_calling(alice: User):
    answer = ask(basic("alice"))

    assert answer.status_code == 200
    assert answer.json() == {"login": "alice", "email": "alice@example.com", "roles": ["admin"]}


def test_a_key_says_who_is_calling(bob: User):
    answer = ask(bearer(access_keys.create(bob, "script", expires_at=None)))

    assert answer.json() == {"login": "bob", "email": "bob@example.com", "roles": []}


def test_a_session_says_who_is_calling(as_bob: Client):
    assert as_bob.get(ME).json()["login"] == "bob"


def test_the_roles_are_sorted_and_hold_contained_ones(sonja: User):
    contained = [Role.objects.create(name=name).pk for name in ("zebra", "anteater")]
    Role.objects.filter(name="sso_admin").update(contains=contained)

    assert ask(basic("sonja")).json()["roles"] == ["anteater", "sso_admin", "zebra"]


def test_a_wrong_header_is_not_made_good_by_a_session(as_bob: Client):
    """Who sends credentials means them: falling back to the cookie would answer as somebody else."""
    for headers in (basic("alice", "wrong"), bearer("sb_wrong"), {"Authorization": "Digest abc"}):
        assert as_bob.get(ME, headers=headers).status_code == 401


def test_a_header_counts_more_than_a_session(as_bob: Client, alice: User):
    assert as_bob.get(ME, headers=basic("alice")).json()["login"] == "alice"


def test_without_credentials_the_answer_is_401_with_a_challenge(db: None):
    answer = ask()

    assert answer.status_code == 401
    assert answer.json() == {
        "status": "ERROR",
        "error_type": "SERVER",
        "errors": [{"message": "Authentication is required.", "code": "unauthenticated"}],
    }
    assert "Bearer" in answer["WWW-Authenticate"]
    assert "Basic" in answer["WWW-Authenticate"]


def test_it_is_only_read(as_bob: Client):
    answer = as_bob.post(ME)

    assert answer.status_code == 405
    assert answer["Allow"] == "GET, HEAD, OPTIONS"


def test_the_answer_is_not_kept_by_caches(bob: User):
    assert ask(basic("bob"))["Cache-Control"] == "no-store"

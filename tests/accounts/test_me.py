"""`GET /api/me`."""

from django.test import Client

from accounts.authentication import access_keys
from accounts.models import Role, User
from tests.accounts.callers import ME, ask, basic, bearer


def test_basic_credentials_identify_the_user(alice: User):
    response = ask(basic("alice"))

    assert response.status_code == 200
    assert response.json() == {"login": "alice", "email": "alice@example.com", "roles": ["admin"]}


def test_key_identifies_the_user(bob: User):
    response = ask(bearer(access_keys.create_key(bob, "script", expires_at=None)))

    assert response.json() == {"login": "bob", "email": "bob@example.com", "roles": []}


def test_session_identifies_the_user(as_bob: Client):
    assert as_bob.get(ME).json()["login"] == "bob"


def test_roles_are_sorted_and_include_contained_ones(sonja: User):
    contained = [Role.objects.create(name=name).pk for name in ("zebra", "anteater")]
    Role.objects.filter(name="sso_admin").update(contains=contained)

    assert ask(basic("sonja")).json()["roles"] == ["anteater", "sso_admin", "zebra"]


def test_invalid_header_is_refused_despite_a_session(as_bob: Client):
    """Who sends credentials means them: falling back to the cookie would answer as somebody else."""
    for headers in (basic("alice", "wrong"), bearer("sb_wrong"), {"Authorization": "Digest abc"}):
        assert as_bob.get(ME, headers=headers).status_code == 401


def test_header_takes_precedence_over_a_session(as_bob: Client, alice: User):
    assert as_bob.get(ME, headers=basic("alice")).json()["login"] == "alice"


def test_missing_credentials_are_401_with_a_challenge(db: None):
    response = ask()

    assert response.status_code == 401
    assert response.json() == {
        "status": "ERROR",
        "error_type": "SERVER",
        "errors": [{"message": "Authentication is required.", "code": "unauthenticated"}],
    }
    assert "Bearer" in response["WWW-Authenticate"]
    assert "Basic" in response["WWW-Authenticate"]


def test_only_get_is_allowed(as_bob: Client):
    response = as_bob.post(ME)

    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD, OPTIONS"


def test_response_is_not_cached(bob: User):
    assert ask(basic("bob"))["Cache-Control"] == "no-store"

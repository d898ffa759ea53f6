"""`GET /api/me`."""

from django.test import Client

from accounts.authentication import access_keys
from accounts.models import Role, User
from tests.accounts.callers import ME_PATH, basic_auth, bearer_auth, get_me


def test_basic_credentials_identify_the_user(alice: User):
    response = get_me(basic_auth("alice"))

    assert response.status_code == 200
    assert response.json() == {"login": "alice", "email": "alice@example.com", "roles": ["admin"]}


def test_key_identifies_the_user(bob: User):
    response = get_me(bearer_auth(access_keys.create_key(bob, "script", expires_at=None)))

    assert response.json() == {"login": "bob", "email": "bob@example.com", "roles": []}


def test_session_identifies_the_user(as_bob: Client):
    assert as_bob.get(ME_PATH).json()["login"] == "bob"


def test_roles_are_sorted_and_include_contained_ones(sonja: User):
    contained_ids = [Role.objects.create(name=name).pk for name in ("zebra", "anteater")]
    Role.objects.filter(name="sso_admin").update(contains=contained_ids)

    assert get_me(basic_auth("sonja")).json()["roles"] == ["anteater", "sso_admin", "zebra"]


def test_invalid_header_is_refused_despite_a_session(as_bob: Client):
    """Falling back to the cookie could respond for a different user than the credentials name."""
    for headers in (basic_auth("alice", "wrong"), bearer_auth("sb_wrong"), {"Authorization": "Digest abc"}):
        assert as_bob.get(ME_PATH, headers=headers).status_code == 401


def test_header_takes_precedence_over_a_session(as_bob: Client, alice: User):
    assert as_bob.get(ME_PATH, headers=basic_auth("alice")).json()["login"] == "alice"


def test_missing_credentials_give_401_with_a_challenge(db: None):
    response = get_me()

    assert response.status_code == 401
    assert response.json() == {
        "status": "ERROR",
        "error_type": "SERVER",
        "errors": [{"message": "Authentication is required.", "code": "unauthenticated"}],
    }
    assert "Bearer" in response["WWW-Authenticate"]
    assert "Basic" in response["WWW-Authenticate"]


def test_only_get_is_allowed(as_bob: Client):
    response = as_bob.post(ME_PATH)

    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD, OPTIONS"


def test_response_is_not_cached(bob: User):
    assert get_me(basic_auth("bob"))["Cache-Control"] == "no-store"

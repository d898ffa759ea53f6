"""Read-only keys: every route refuses a writing method, except those that read by POST."""

from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from accounts.authentication import access_keys
from accounts.models import AccessKey, User
from tests.accounts.callers import API_SIGN_IN_PATH, bearer_auth, get_me
from tests.project.access import callers, world

WRITING_METHODS = ("POST", "PUT", "PATCH", "DELETE")
# Routes that read by POST, because their parameters can be long.
READING_ROUTES = ("/get_relevant_documents", "/get_content_by_tag", "/search", "/mcp")
PROGRAM_PREFIXES = ("rest/", "^rest/", "^mcp/", "api/", "metrics", *(f"^{name}/" for name in world.REQUIRED_PARAMETERS))


def row_counts() -> dict[str, int]:
    """The rows of every table, except those that count requests and uses of keys."""
    models = [model for model in apps.get_models() if model._meta.managed and not model._meta.proxy]
    return {model._meta.db_table: model._default_manager.count() for model in models}


@pytest.fixture
def read_only_admin(alice: User) -> dict[str, str]:
    return bearer_auth(access_keys.create_key(alice, "reports", expires_at=None, read_only=True))


def test_every_route_refuses_writes_of_a_read_only_key(db: None, read_only_admin: dict[str, str]):
    ids = world.create_example_objects()
    routes = [route for route in dict.fromkeys(world.routes()) if route.startswith(PROGRAM_PREFIXES)]
    routes = [route for route in routes if not route.startswith(("rest/v1/auth", "api/docs", "api/schema"))]
    caller = callers.MatrixCaller("read-only", read_only_admin)
    counts = row_counts()

    refusals = {}
    for route in routes:
        path = world.example_path(route, ids)
        for method in WRITING_METHODS:
            response = caller.request(method, path)
            refusals[path, method] = response.status_code, response.content.decode()

    assert len(routes) > 35 and counts == row_counts()
    reading = {
        (path, method)
        for path, method in refusals
        if method == "POST" and path.partition("?")[0].endswith(READING_ROUTES)
    }
    assert len(reading) == 4
    assert all(refusals[request][0] in (200, 400) for request in reading), [refusals[request] for request in reading]
    others = {request: refusal for request, refusal in refusals.items() if request not in reading}
    assert {status for status, _ in others.values()} == {403}
    assert all('"code": "read_only_key"' in body for _, body in others.values())


def test_the_same_key_without_the_flag_may_write(alice: User, read_only_admin: dict[str, str]):
    key = AccessKey.objects.get()
    response = Client().post("/rest/v1/table/company", {"name": "A"}, "application/json", headers=read_only_admin)
    assert response.status_code == 403 and response.json()["errors"][0]["message"] == "This access key is read-only."

    key.read_only = False
    key.save()
    response = Client().post("/rest/v1/table/company", {"name": "A"}, "application/json", headers=read_only_admin)
    assert response.status_code == 201


def test_keys_can_write_unless_they_are_created_read_only(bob: User):
    access_keys.create_key(bob, "script", expires_at=None)
    access_keys.create_login_key(bob)
    assert not AccessKey.objects.filter(read_only=True).exists()


def test_read_only_key_reads(read_only_admin: dict[str, str]):
    for path in ("/api/me", "/rest/v1/table/user", "/rest/v1/stats/user?sysparm_count=1", "/api/collections"):
        assert Client().get(path, headers=read_only_admin).status_code == 200, path
    assert Client().head("/rest/v1/table/user", headers=read_only_admin).status_code == 200


def test_batch_is_a_write_even_if_it_only_reads(read_only_admin: dict[str, str]):
    body = {"requests": [{"method": "GET", "url": "/rest/v1/table/user"}]}
    response = Client().post("/rest/v1/batch", body, "application/json", headers=read_only_admin)
    assert response.status_code == 403


def test_header_cannot_turn_a_read_into_a_write(read_only_admin: dict[str, str]):
    headers = read_only_admin | {"X-HTTP-Method-Override": "DELETE"}
    assert Client().get("/rest/v1/table/user", headers=headers).status_code == 200
    assert User.objects.exists()


def test_page_creates_a_read_only_key_and_lists_it(as_bob: Client, bob: User):
    as_bob.post("/account/keys/", {"name": "reports", "days": "30", "read_only": "on"})
    page = as_bob.get("/account/").content.decode()

    assert AccessKey.objects.get(user=bob).read_only
    assert '<span class="tag">read-only</span>' in page


def test_administration_creates_a_read_only_key(as_alice: Client, bob: User):
    form: dict[str, Any] = {"user": bob.pk, "name": "reports", "read_only": "on"}
    as_alice.post("/admin/accounts/accesskey/add/", form)
    key = AccessKey.objects.get(user=bob)
    assert key.read_only

    as_alice.post(f"/admin/accounts/accesskey/{key.pk}/change/", form | {"read_only": ""})
    key.refresh_from_db()
    assert not key.read_only


def test_sign_in_for_a_key_ignores_a_read_only_key(bob: User, read_only_admin: dict[str, str]):
    """Only the password counts there, so the read-only key grants nothing."""
    body = {"username": "bob", "password": "wrong"}
    assert Client().post(API_SIGN_IN_PATH, body, "application/json", headers=read_only_admin).status_code == 401
    assert get_me(read_only_admin).status_code == 200

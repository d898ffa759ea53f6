"""The eight endpoints are for programs: credentials in each request, and errors as JSON."""

from typing import Any

import pytest
from django.test import Client
from django.urls import resolve

from accounts.authentication.schemes import BasicAuthentication, BearerAuthentication
from accounts.models import User
from tests.accounts.callers import basic_auth
from tests.collections_app.http.calls import (
    BY_TAG,
    DELETE,
    DELETE_DOCUMENT,
    EIGHT,
    LIST,
    NAMES,
    RELEVANT,
    Caller,
    failed,
)

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# "GET and POST for the two retrieval ones; HEAD where GET."
TAKEN = {
    "/load_document_to_collection": {"POST"},
    "/load_text_to_collection": {"POST"},
    RELEVANT: {"GET", "HEAD", "POST"},
    BY_TAG: {"GET", "HEAD", "POST"},
    NAMES: {"GET", "HEAD"},
    LIST: {"GET", "HEAD"},
    DELETE_DOCUMENT: {"DELETE"},
    DELETE: {"DELETE"},
}


@pytest.mark.parametrize("path", EIGHT)
def test_no_view_accepts_a_session(path: str):  # B57
    view: Any = resolve(path).func

    assert set(view.cls.authentication_classes) == {BearerAuthentication, BasicAuthentication}


def test_session_is_refused(as_alice: Client):  # B57, C01
    for path in (*EIGHT, *(f"{path}/" for path in EIGHT)):
        for method in METHODS:
            refused = as_alice.generic(method, path, b"{}", content_type="application/json")
            assert refused.status_code == 401 and "servicebase_session" not in refused.cookies, (method, path)


@pytest.mark.parametrize("path", EIGHT)
def test_credentials_are_checked_before_the_body(path: str, db: Any):  # C01
    """Neither a wrong one nor one of another type is looked at."""
    method = sorted(TAKEN[path] - {"HEAD"})[-1]
    for content_type in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        response = Client().generic(method, path, Unread(), content_type=content_type)
        assert failed(response) == (401, "unauthenticated", None)


class Unread(bytes):
    """A body that is 100 bytes long and is not read."""

    def __len__(self) -> int:
        return 100


@pytest.mark.parametrize("path", EIGHT)
def test_basic_credentials_are_accepted(path: str, bob: User):
    method = sorted(TAKEN[path] - {"HEAD"})[-1]

    assert Client().generic(method, path, headers=basic_auth("bob")).status_code not in (401, 403)


def test_only_its_methods_are_allowed(stranger: Caller):
    for path, taken in TAKEN.items():
        for method in METHODS:
            for address in (path, f"{path}/"):
                status = stranger.send(method, address).status_code
                assert (status != 405) == (method in taken), (method, address, status)
        assert set(stranger.send("PUT", path)["Allow"].split(", ")) == taken


@pytest.mark.parametrize("path", EIGHT)
def test_error_is_json_for_a_browser_too(path: str, stranger: Caller):
    response = stranger.send("PUT", path, headers={"Accept": "text/html"})

    assert response["Content-Type"] == "application/json" and response["Cache-Control"] == "no-store"
    assert Client().get("/get_list_of_collections", headers={"Accept": "text/html"}).status_code == 404


def test_metrics_label_each_endpoint(stranger: Caller):
    for path in EIGHT:
        assert resolve(path).view_name == resolve(f"{path}/").view_name == path[1:]

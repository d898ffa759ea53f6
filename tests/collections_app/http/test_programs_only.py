"""The eight endpoints are for programs: each request has credentials, and errors are JSON."""

from typing import Any

import pytest
from django.test import Client
from django.urls import resolve

from accounts.authentication.schemes import BasicAuthentication, BearerAuthentication
from accounts.models import User
from tests.accounts.callers import basic_auth
from tests.collections_app.http.calls import (
    BY_TAG_PATH,
    COLLECTION_LIST_PATH,
    DELETE_COLLECTION_PATH,
    DELETE_DOCUMENT_PATH,
    DOCUMENT_NAMES_PATH,
    ENDPOINT_PATHS,
    SEARCH_PATH,
    KeyCaller,
    error_of,
)

ALL_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# "GET and POST for the two retrieval ones; HEAD where GET."
ALLOWED_METHODS = {
    "/load_document_to_collection": {"POST"},
    "/load_text_to_collection": {"POST"},
    SEARCH_PATH: {"GET", "HEAD", "POST"},
    BY_TAG_PATH: {"GET", "HEAD", "POST"},
    DOCUMENT_NAMES_PATH: {"GET", "HEAD"},
    COLLECTION_LIST_PATH: {"GET", "HEAD"},
    DELETE_DOCUMENT_PATH: {"DELETE"},
    DELETE_COLLECTION_PATH: {"DELETE"},
}


@pytest.mark.parametrize("path", ENDPOINT_PATHS)
def test_no_view_accepts_a_session(path: str):  # B57
    view: Any = resolve(path).func

    assert set(view.cls.authentication_classes) == {BearerAuthentication, BasicAuthentication}


def test_session_is_refused(as_alice: Client):  # B57, C01
    for path in (*ENDPOINT_PATHS, *(f"{path}/" for path in ENDPOINT_PATHS)):
        for method in ALL_METHODS:
            refusal = as_alice.generic(method, path, b"{}", content_type="application/json")
            assert refusal.status_code == 401 and "servicebase_session" not in refusal.cookies, (method, path)


@pytest.mark.parametrize("path", ENDPOINT_PATHS)
def test_credentials_are_checked_before_the_body(path: str, db: Any):  # C01
    """Neither an invalid body nor one of another type is read."""
    method = sorted(ALLOWED_METHODS[path] - {"HEAD"})[-1]
    for content_type in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        response = Client().generic(method, path, UnreadBody(), content_type=content_type)
        assert error_of(response) == (401, "unauthenticated", None)


class UnreadBody(bytes):
    """A body of 100 bytes that must not be read."""

    def __len__(self) -> int:
        return 100


@pytest.mark.parametrize("path", ENDPOINT_PATHS)
def test_basic_credentials_are_accepted(path: str, bob: User):
    method = sorted(ALLOWED_METHODS[path] - {"HEAD"})[-1]

    assert Client().generic(method, path, headers=basic_auth("bob")).status_code not in (401, 403)


def test_endpoint_allows_only_its_methods(stranger: KeyCaller):
    for path, allowed_methods in ALLOWED_METHODS.items():
        for method in ALL_METHODS:
            for url in (path, f"{path}/"):
                status = stranger.send(method, url).status_code
                assert (status != 405) == (method in allowed_methods), (method, url, status)
        assert set(stranger.send("PUT", path)["Allow"].split(", ")) == allowed_methods


@pytest.mark.parametrize("path", ENDPOINT_PATHS)
def test_error_is_json_for_a_browser_too(path: str, stranger: KeyCaller):
    response = stranger.send("PUT", path, headers={"Accept": "text/html"})

    assert response["Content-Type"] == "application/json" and response["Cache-Control"] == "no-store"
    assert Client().get("/get_list_of_collections", headers={"Accept": "text/html"}).status_code == 404


def test_metrics_label_each_endpoint(stranger: KeyCaller):
    for path in ENDPOINT_PATHS:
        assert resolve(path).view_name == resolve(f"{path}/").view_name == path[1:]

"""Error responses for programs and for browsers."""

import pytest
from django.test import Client

HTML_HEADERS = {"Accept": "text/html"}

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("routes_of_tests")]


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("away", 503, "unavailable"),
        ("disk-full", 503, "unavailable"),
        ("bug", 500, "internal"),
        ("conflict", 409, "duplicate"),
    ],
)
@pytest.mark.parametrize("path", ["/api/test/raise/", "/test/page/"])
def test_all_errors_have_the_same_shape(client: Client, path: str, name: str, status: int, code: str):
    response = client.get(path + name)

    assert response.status_code == status
    body = response.json()
    assert (body["status"], body["error_type"]) == ("ERROR", "SERVER")
    assert body["errors"][0]["code"] == code
    assert body["errors"][0]["message"]


def test_error_names_its_field(client: Client):
    error = client.get("/api/test/raise/conflict").json()["errors"][0]

    assert error == {"message": "Another one has this name.", "code": "duplicate", "field": "name"}


@pytest.mark.parametrize("name", ["away", "bug"])
@pytest.mark.parametrize("path", ["/api/test/raise/", "/test/page/"])
def test_no_sql_host_or_trace_reaches_the_caller(client: Client, path: str, name: str):
    for headers in ({}, HTML_HEADERS):
        text = client.get(path + name, headers=headers).content.decode()
        assert not any(word in text for word in ("SELECT", "secret", "10.1.2.3", "Traceback", "RuntimeError"))


def test_unavailable_database_returns_retry_after(client: Client):
    assert int(client.get("/api/test/raise/away")["Retry-After"]) > 0
    assert int(client.get("/test/page/away", headers=HTML_HEADERS)["Retry-After"]) > 0


def test_browser_gets_an_error_page(client: Client):
    response = client.get("/test/page/conflict", headers=HTML_HEADERS)

    assert response.status_code == 409
    assert "Another one has this name." in response.content.decode()
    assert response["Content-Type"].startswith("text/html")


def test_unknown_path_returns_404_with_the_same_shape(client: Client):
    assert client.get("/api/nowhere").json()["errors"][0]["code"] == "not_found"
    assert client.get("/nowhere", headers=HTML_HEADERS).status_code == 404


def test_unsupported_method_lists_the_allowed_methods(client: Client):
    response = client.get("/rest/v1/auth/login")

    assert response.status_code == 405
    assert "POST" in response["Allow"]
    assert response.json()["errors"][0]["code"] == "method_not_allowed"


def test_api_has_no_browsable_interface(client: Client, alice):  # X22
    client.force_login(alice)
    response = client.get("/api/me", headers=HTML_HEADERS)

    assert response["Content-Type"] == "application/json"
    assert client.get("/api/me?format=api").json()["login"] == "alice"

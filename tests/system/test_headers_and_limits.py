"""Headers of every response, and requests that are refused before their body is read."""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from system.http.error_responses import own_url
from system.http.steps import POLICY_TEMPLATE, SECURITY_HEADERS

HTML_HEADERS = {"Accept": "text/html"}


def paths_of(patterns: list, prefix: str = "/") -> list[str]:
    """One path for each route of the product, with example values for parameters."""
    paths = []
    for pattern in patterns:
        route = prefix + str(pattern.pattern).lstrip("^").replace("$", "")
        if isinstance(pattern, URLResolver):
            paths += paths_of(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and "(" not in route:
            paths.append(
                route.replace("<path:object_id>", "1").replace("<slug:sys_id>", "1").replace("<slug:session_key>", "1")
            )
    return paths


def route_paths() -> list[str]:
    return [path for path in paths_of(get_resolver().url_patterns) if "<" not in path]


def test_every_route_answers_with_the_security_headers(as_alice: Client):  # X23
    paths = [*route_paths(), "/nowhere", "/static/nowhere.css", "/static/servicebase/pages.css"]
    assert len(paths) > 60

    for path in paths:
        for client in (Client(raise_request_exception=False), as_alice):
            response = client.get(path, headers=HTML_HEADERS)
            missing_headers = [
                name for name in (*SECURITY_HEADERS, "Content-Security-Policy", "X-Request-ID") if name not in response
            ]
            assert missing_headers == [], path
            assert response.status_code < 500, path
            for closer in vars(response)[
                "_resource_closers"
            ]:  # a static file; close() would also end the test's connection
                closer()


def test_content_security_policy_allows_no_external_sources(as_alice: Client):
    page_policy = as_alice.get("/account/")["Content-Security-Policy"]
    admin_policy = as_alice.get("/admin/")["Content-Security-Policy"]

    assert page_policy == POLICY_TEMPLATE.format(script="", style="")
    assert "unsafe-eval" in admin_policy
    assert "unsafe-inline" not in admin_policy.partition("script-src")[2].partition(";")[0]
    assert not any(word in page_policy + admin_policy for word in ("http:", "https:", "*"))


def test_responses_are_not_cached(as_alice: Client):
    for path in ("/", "/account/", "/api/me", "/admin/", "/nowhere"):
        assert "no-store" in as_alice.get(path)["Cache-Control"], path


@pytest.mark.parametrize("path", ["/", "/api/me", "/rest/v1/table/task", "/api/schema"])
def test_cross_origin_scripts_cannot_read_responses(client: Client, path: str, db):  # B69
    headers = {"Origin": "https://evil.example.com", "Access-Control-Request-Method": "GET"}
    for response in (client.get(path, headers=headers), client.options(path, headers=headers)):
        assert not [name for name in response.headers if name.lower().startswith("access-control-")]


def test_https_adds_transport_security(client: Client, settings, db):
    assert "Strict-Transport-Security" not in client.get("/healthz")
    settings.SECURE_HSTS_SECONDS = 60
    assert client.get("/healthz")["Strict-Transport-Security"] == "max-age=60"


def test_query_string_over_the_limit_returns_414(client: Client, db):
    assert client.get("/healthz?" + "a" * 16 * 1024).status_code == 200
    response = client.get("/healthz?" + "a" * (16 * 1024 + 1))

    assert response.status_code == 414
    assert response.json()["errors"][0]["code"] == "query_too_long"


def test_content_length_over_the_limit_returns_413(client: Client, db):
    response = client.post(
        "/rest/v1/auth/login", b"{}", content_type="application/json", CONTENT_LENGTH=str(10 * 1024 * 1024 + 1)
    )

    assert response.status_code == 413


def test_body_without_a_length_returns_411(client: Client, db):
    response = client.generic("POST", "/rest/v1/auth/login", CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked")

    assert response.status_code == 411


def test_invalid_content_length_returns_400(client: Client, db):
    assert client.post("/rest/v1/auth/login", b"{}", content_type="text/plain", CONTENT_LENGTH="x").status_code == 400


def test_foreign_host_name_is_refused(client: Client, db):
    assert client.get("/login/", headers={"Host": "evil.example.com"}).status_code == 400


class TestProxies:
    """X-Forwarded-For and -Proto count only from trusted addresses."""

    @pytest.fixture(autouse=True)
    def trusted_proxies(self, settings, db) -> None:
        import ipaddress

        settings.TRUSTED_PROXIES = (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("2001:db8::/32"))

    def remote_address(self, client: Client, peer: str, **headers: str) -> str:
        """The IP address of the caller, as the service determines it."""
        return client.get("/login/", REMOTE_ADDR=peer, headers=headers).wsgi_request.META["REMOTE_ADDR"]

    def test_headers_of_an_untrusted_peer_are_ignored(self, client: Client):
        assert self.remote_address(client, "203.0.113.9", **{"X-Forwarded-For": "192.0.2.1"}) == "203.0.113.9"

    def test_client_is_the_last_untrusted_address(self, client: Client):
        headers = {"X-Forwarded-For": "192.0.2.66, 198.51.100.7, 10.0.0.5"}

        assert self.remote_address(client, "10.0.0.1", **headers) == "198.51.100.7"

    def test_client_in_a_chain_of_trusted_proxies_is_the_first_address(self, client: Client):
        assert self.remote_address(client, "10.0.0.1", **{"X-Forwarded-For": "10.0.0.7"}) == "10.0.0.7"

    @pytest.mark.parametrize("header", ["unknown", "1.2.3", "192.0.2.1, , x", "' OR 1=1", "[::1]:80"])
    def test_malformed_header_from_a_trusted_proxy_is_refused(self, client: Client, header: str):
        response = client.get("/login/", REMOTE_ADDR="10.0.0.1", headers={"X-Forwarded-For": header})

        assert response.status_code == 400

    @pytest.mark.parametrize(("peer", "is_secure"), [("10.0.0.1", True), ("203.0.113.9", False)])
    def test_scheme_is_accepted_only_from_a_trusted_proxy(self, client: Client, peer: str, is_secure: bool):
        response = client.get("/login/", REMOTE_ADDR=peer, headers={"X-Forwarded-Proto": "https"})

        assert response.wsgi_request.is_secure() is is_secure


def test_absolute_urls_use_the_base_url_or_the_request(rf, settings):
    request = rf.get("/x", headers={"Host": "localhost:8000"})
    assert own_url(request, "/a") == "http://localhost:8000/a"

    settings.BASE_URL = "https://service.example.com"
    assert own_url(request, "/a") == "https://service.example.com/a"

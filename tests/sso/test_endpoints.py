"""Discovery from provider URL and Realm, against an HTTP server that may misbehave."""

import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from sso.provider.discovery import (
    WELL_KNOWN_PATH,
    Endpoints,
    EndpointsNotFound,
    discover,
    issuer_candidates,
    provider_policy,
)
from system.outbound.deadline import Deadline
from tests.providers.behaviours import (
    hangs_up,
    redirects_to,
    responds_with,
    responds_with_error,
    responds_with_html,
    responds_with_huge_body,
    stays_silent,
)
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT

ISSUER_URL = "https://idp.example.com"


def discover_endpoints(provider: HostileProvider, url_idp: str = "", realm: str = "") -> Endpoints:
    return discover(url_idp or provider.url_idp, realm or provider.realm, provider_policy(), Deadline.after(8))


def discovery_error(provider: HostileProvider, url_idp: str = "", realm: str = "") -> EndpointsNotFound:
    with pytest.raises(EndpointsNotFound) as exc_info:
        discover_endpoints(provider, url_idp, realm)
    return exc_info.value


class TestIssuerCandidates:
    def test_candidates_are_in_the_specified_order(self):
        paths = ("realms/r", "auth/realms/r", "realm/r", "r/v2.0", "application/o/r/", "oauth2/r", "r", "")
        assert issuer_candidates(ISSUER_URL, "r") == [f"{ISSUER_URL}/{path}" if path else ISSUER_URL for path in paths]

    def test_a_url_that_ends_in_the_realm_comes_first(self):
        assert issuer_candidates(f"{ISSUER_URL}/realms/r", "r")[0] == f"{ISSUER_URL}/realms/r"
        assert issuer_candidates(f"{ISSUER_URL}/realms/r/", "r")[0] == f"{ISSUER_URL}/realms/r"
        assert issuer_candidates(f"{ISSUER_URL}/other", "r")[0] == f"{ISSUER_URL}/other/realms/r", (
            "the realm must be a whole path segment"
        )
        assert issuer_candidates(f"{ISSUER_URL}/xr", "r")[0] == f"{ISSUER_URL}/xr/realms/r"

    def test_a_well_known_url_is_the_only_candidate(self):
        assert issuer_candidates(f"{ISSUER_URL}/deep/er{WELL_KNOWN_PATH}", "r") == [f"{ISSUER_URL}/deep/er"]

    def test_candidates_are_unique(self):
        assert len(issuer_candidates(f"{ISSUER_URL}/r", "r")) == len(set(issuer_candidates(f"{ISSUER_URL}/r", "r")))


class TestDiscovery:
    @pytest.mark.parametrize(
        "layout",
        ["/realms/{realm}", "/auth/realms/{realm}", "/realm/{realm}", "/{realm}/v2.0", "/application/o/{realm}/",
         "/oauth2/{realm}", "/{realm}", ""],
    )  # fmt: skip
    def test_each_layout_is_found(self, allow_http: None, layout: str):
        with HostileProvider(layout=layout.rstrip("/")) as provider:
            issuer = provider.url_idp + layout.format(realm=provider.realm)
            provider.discovery = {"issuer": issuer}
            assert discover_endpoints(provider).issuer == issuer

    def test_all_required_values_are_read(self, provider: HostileProvider):
        provider.algorithms = ["RS256", "ES256", 7]
        provider.discovery = {
            "authorization_response_iss_parameter_supported": True,
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }
        assert discover_endpoints(provider) == Endpoints(
            issuer=provider.issuer,
            authorization_endpoint=provider.url("auth"),
            token_endpoint=provider.url("token"),
            jwks_uri=provider.url("certs"),
            userinfo_endpoint=provider.url("userinfo"),
            end_session_endpoint=provider.url("logout"),
            algorithms=("RS256", "ES256"),
            token_auth_methods=("client_secret_post",),
            iss_in_response=True,
        )

    def test_missing_endpoints_are_empty(self, provider: HostileProvider):
        missing_names = ("userinfo_endpoint", "end_session_endpoint", "id_token_signing_alg_values_supported")
        provider.discovery = dict.fromkeys(missing_names, ABSENT)
        assert (
            discover_endpoints(provider).userinfo_endpoint,
            discover_endpoints(provider).end_session_endpoint,
            discover_endpoints(provider).algorithms,
        ) == (
            "",
            "",
            (),
        )

    def test_one_trailing_slash_may_differ(self, provider: HostileProvider):
        provider.discovery = {"issuer": provider.issuer + "/"}
        assert discover_endpoints(provider).issuer == provider.issuer + "/"
        provider.discovery = {"issuer": provider.issuer + "//"}
        assert "issuer is" in discovery_error(provider).message

    @pytest.mark.parametrize("issuer", ["https://other.example.com", "", None, 7, ["x"], "x" * 5000, "a\nb"], ids=repr)
    def test_a_document_of_another_issuer_is_reported_and_not_adopted(self, provider: HostileProvider, issuer: Any):
        provider.discovery = {"issuer": issuer}
        message = discovery_error(provider).message
        assert message.startswith("The provider's issuer is ") and len(message) < 300 and "\n" not in message
        paths = [request.path for request in provider.requests]
        assert not any("/protocol/" in path for path in paths), "the path pattern must not bypass a refused document"

    @pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"])
    @pytest.mark.parametrize(
        "value",
        [
            "http://169.254.169.254/latest",
            "file:///etc/passwd",
            "https://user@idp.example.com/",
            "ftp://a",
            "//x",
            7,
            {},
        ],
        ids=str,
    )
    def test_an_endpoint_that_must_not_be_called_refuses_the_document(  # A24
        self, provider: HostileProvider, name: str, value: Any
    ):
        provider.discovery = {name: value}
        assert name in discovery_error(provider).message

    def test_required_endpoints_must_be_present(self, provider: HostileProvider):
        for name in ("authorization_endpoint", "jwks_uri"):
            provider.discovery = {name: ABSENT}
            assert name in discovery_error(provider).message

    @pytest.mark.parametrize(
        "behaviour",
        [
            responds_with_error(500),
            responds_with_html(200),
            redirects_to("http://169.254.169.254/"),
            responds_with_huge_body(),
            hangs_up(),
            responds_with([1]),
            responds_with({}),
        ],
        ids=["500", "html", "redirect", "huge", "hangs up", "a list", "an empty object"],
    )
    def test_an_invalid_document_is_skipped(self, provider: HostileProvider, behaviour: Any):  # A26 A28
        provider.serve(f"/realms/{provider.realm}{WELL_KNOWN_PATH}", behaviour)
        provider.serve(
            f"/{provider.realm}{WELL_KNOWN_PATH}",
            responds_with({**provider.discovery_document(), "issuer": f"{provider.url_idp}/main"}),
        )
        assert discover_endpoints(provider).issuer == f"{provider.url_idp}/main"

    def test_a_redirect_is_reported_if_nothing_else_is_found(self, provider: HostileProvider):
        provider.serve("discovery", redirects_to("https://elsewhere.example.com/"))
        assert "Redirects are not followed" in discovery_error(provider).message
        assert len([request for request in provider.requests if request.endpoint == "discovery"]) == 1


class TestPathPattern:
    def test_the_pattern_is_used_if_unknown_paths_redirect(self, allow_http: None):
        with HostileProvider(layout="/realm/{realm}") as provider:
            for issuer in issuer_candidates(provider.url_idp, provider.realm):
                path = urlsplit(issuer.rstrip("/") + WELL_KNOWN_PATH).path
                provider.serve(path, redirects_to("/login"))
            provider.serve("discovery", redirects_to("/login"))
            assert discover_endpoints(provider).jwks_uri == provider.url("certs")

    def test_the_pattern_is_used_if_it_has_a_key_set(self, allow_http: None):
        with HostileProvider(layout="/realm/{realm}") as provider:
            provider.serve("discovery", responds_with_error(404))
            realm_url = f"{provider.url_idp}/realm/main"
            endpoint_prefix = f"{realm_url}/protocol/openid-connect"
            endpoints = discover_endpoints(provider)
            assert (endpoints.issuer, endpoints.authorization_endpoint, endpoints.jwks_uri) == (
                realm_url,
                f"{endpoint_prefix}/auth",
                f"{endpoint_prefix}/certs",
            )
            assert (endpoints.token_endpoint, endpoints.userinfo_endpoint) == (
                f"{endpoint_prefix}/token",
                f"{endpoint_prefix}/userinfo",
            )
            assert endpoints.end_session_endpoint == f"{endpoint_prefix}/logout"
            assert "RS256" in endpoints.algorithms

    def test_without_a_key_set_nothing_is_found(self, allow_http: None):
        with HostileProvider(layout="/realm/{realm}") as provider:
            provider.serve("discovery", responds_with_error(404))
            invalid_key_sets: list[Any] = [{}, {"keys": []}, []]
            for provider.jwks in invalid_key_sets:
                error = discovery_error(provider)
                assert error.message.startswith("No discovery document was found for realm")
                assert error.requested_urls[0].endswith(f"/realms/main{WELL_KNOWN_PATH}") and error.requested_urls[
                    -1
                ].endswith("/certs")


class TestDeadline:
    def test_the_first_connection_failure_ends_discovery(self, allow_http: None):
        with pytest.raises(EndpointsNotFound) as exc_info:
            discover("http://127.0.0.1:9", "r", provider_policy(), Deadline.after(8))
        assert (
            len(exc_info.value.requested_urls) == 1 and "The connection to 127.0.0.1 failed" in exc_info.value.message
        )

    def test_a_forbidden_address_ends_discovery(self):
        with pytest.raises(EndpointsNotFound) as exc_info:
            discover("https://169.254.169.254", "r", provider_policy(), Deadline.after(8))
        assert len(exc_info.value.requested_urls) == 1 and "metadata" in exc_info.value.message

    def test_a_url_with_a_query_ends_discovery(self):
        with pytest.raises(EndpointsNotFound, match="query"):
            discover("https://idp.example.com/?next=https://evil.example", "r", provider_policy(), Deadline.after(8))

    def test_a_silent_provider_takes_no_longer_than_the_deadline(self, provider: HostileProvider):  # A61
        provider.serve("discovery", stays_silent())
        started_at = time.monotonic()
        with pytest.raises(EndpointsNotFound) as exc_info:
            discover(provider.url_idp, provider.realm, provider_policy(), Deadline.after(0.5))
        assert time.monotonic() - started_at < 4
        assert "within" in exc_info.value.message and len(exc_info.value.requested_urls) == 1


class TestMovedEndpoints:
    KNOWN_ENDPOINTS = Endpoints(
        issuer=ISSUER_URL,
        authorization_endpoint=f"{ISSUER_URL}/auth",
        token_endpoint=f"{ISSUER_URL}/token",
        jwks_uri="https://keys.example.com/certs",
    )

    @pytest.mark.parametrize(
        "changes",
        [{"token_endpoint": f"{ISSUER_URL}/other"}, {"userinfo_endpoint": f"{ISSUER_URL}/me"},
         {"end_session_endpoint": "https://keys.example.com/out"},
         {"algorithms": ("ES256",)}, {"iss_in_response": True}],
        ids=str,
    )  # fmt: skip
    def test_another_path_or_a_new_endpoint_is_harmless(self, changes: Any):
        assert replace(self.KNOWN_ENDPOINTS, **changes).risky_change_since(self.KNOWN_ENDPOINTS) == ""

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"issuer": "https://other.example.com"}, "issuer is now https://other.example.com"),
            ({"token_endpoint": "https://other.example.com/token"}, "token endpoint is now at other.example.com"),
            ({"token_endpoint": "https://keys.example.com/token"}, "token endpoint is now at keys.example.com"),
            ({"jwks_uri": "https://idp.example.com:8443/certs"}, "jwks endpoint is now at idp.example.com:8443"),
            ({"userinfo_endpoint": "https://other.example.com/me"}, "userinfo endpoint is now at other.example.com"),
        ],
        ids=str,
    )
    def test_another_issuer_or_host_is_reported(self, changes: Any, message: str):
        assert message in replace(self.KNOWN_ENDPOINTS, **changes).risky_change_since(self.KNOWN_ENDPOINTS)

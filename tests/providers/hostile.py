"""An identity provider that can misbehave in ways that real ones do not: over http, in a thread, deterministic.

    with HostileProvider() as provider:
        provider.jwks = {"keys": []}                        # the content of its key set
        provider.serve("certs", responds_with_error(500), times=1)  # the behaviour of an endpoint, once or from now on
        provider.id_token = lambda claims: provider.sign({**claims, "aud": "another"})
        callback = provider.authorize(location)             # what a browser would get from the authorization endpoint

`serve` accepts the names of `ENDPOINTS`, and other paths with a leading slash.
"""

import base64
import hashlib
import ssl
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from itertools import count
from threading import Event, Thread
from typing import Any, Self
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from tests.providers.behaviours import MAX_RESPONSE_S, Behaviour, RecordedRequest
from tests.providers.serving import LoopbackServer
from tests.providers.signing import ABSENT, base64url, half_hash, jwk, sign_token, without_absent

ENDPOINTS = ("auth", "token", "certs", "userinfo", "logout")
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


class HostileProvider:
    """Responds correctly until a test changes its attributes or sets a behaviour."""

    def __init__(self, realm: str = "main", layout: str = "/realms/{realm}", tls: ssl.SSLContext | None = None) -> None:
        self.realm = realm
        self.path = layout.format(realm=realm)
        self.requests: list[RecordedRequest] = []
        self.client_id, self.client_secret = "servicebase", "client-secret-canary"
        """An empty secret makes it a public client."""
        self.person: dict[str, Any] = {"sub": "sub-ann", "email": "ann@example.com", "preferred_username": "ann"}
        self.claims: dict[str, Any] = {}
        """Replace the correct claims of each ID token."""
        self.userinfo: dict[str, Any] = {}
        """Replace the claims of the person in each userinfo response."""
        self.jwks: Any = {"keys": [jwk("rsa-1")]}
        self.algorithms: Any = ["RS256"]
        self.discovery: dict[str, Any] = {}
        """Replace the correct values of the discovery document."""
        self.id_token: Callable[[dict[str, Any]], str] = self.sign
        self.now: Callable[[], float] = time.time
        self._authorization_requests: dict[str, dict[str, str]] = {}
        self._codes = count(1)
        self._next_behaviours: dict[str, list[Behaviour]] = {}
        self._default_behaviours: dict[str, Behaviour] = {}
        self._stop = Event()
        self._server = LoopbackServer(_handler(self))
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url_idp = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"
        self.issuer = self.url_idp + self.path

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for fault in self._server.faults:
            raise fault

    def url(self, endpoint: str) -> str:
        if endpoint == "discovery":
            return f"{self.issuer}/.well-known/openid-configuration"
        return f"{self.issuer}/protocol/openid-connect/{endpoint}"

    def serve(self, endpoint: str, behaviour: Behaviour, times: int = 0) -> None:
        """Sets the behaviour of an endpoint or path for the next `times` requests, or without `times` for all."""
        if times:
            self._next_behaviours.setdefault(endpoint, []).extend([behaviour] * times)
        else:
            self._default_behaviours[endpoint] = behaviour

    def behave_correctly(self, endpoint: str) -> None:
        """Removes every configured behaviour of the endpoint."""
        self._default_behaviours.pop(endpoint, None)
        self._next_behaviours.pop(endpoint, None)

    def requests_to(self, endpoint: str) -> list[RecordedRequest]:
        return [request for request in self.requests if request.endpoint == endpoint]

    def hold(self, endpoint: str) -> Event:
        """Makes requests wait until the returned event is set; then they get the correct response."""
        release = Event()

        def behave(request: RecordedRequest) -> None:
            deadline = time.monotonic() + MAX_RESPONSE_S
            while not release.wait(0.01) and not request.stop.is_set() and time.monotonic() < deadline:
                pass
            self.respond_correctly(request)

        self.serve(endpoint, behave)
        return release

    def discovery_document(self) -> dict[str, Any]:
        defaults = {
            "issuer": self.issuer,
            "authorization_endpoint": self.url("auth"),
            "token_endpoint": self.url("token"),
            "jwks_uri": self.url("certs"),
            "userinfo_endpoint": self.url("userinfo"),
            "end_session_endpoint": self.url("logout"),
            "id_token_signing_alg_values_supported": self.algorithms,
            "response_types_supported": ["code", "id_token", "id_token token"],
            "subject_types_supported": ["public"],
        }
        return without_absent({**defaults, **self.discovery})

    def sign(self, claims: dict[str, Any] | bytes, **options: Any) -> str:
        """See `signing.sign_token`."""
        return sign_token(claims, **options)

    def valid_claims(self, nonce: Any = ABSENT, access_token: str = "") -> dict[str, Any]:
        now = int(self.now())
        defaults = {
            **self.person,
            "iss": self.issuer,
            "aud": self.client_id,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
        }
        hash_claims = {"at_hash": half_hash(access_token)} if access_token else {}
        return {**defaults, **hash_claims, **self.claims}

    def logout_token(self, sign_options: dict[str, Any] | None = None, **changes: Any) -> str:
        """A token for back-channel logout; `changes` replace claims."""
        now = int(self.now())
        time_claims = {"iat": now, "exp": now + 120, "jti": f"jti-{time.time_ns()}"}
        defaults = {"iss": self.issuer, "aud": self.client_id, "sub": self.person["sub"], "events": {LOGOUT_EVENT: {}}}
        return self.sign({**defaults, **time_claims, **changes}, **{"typ": "logout+jwt", **(sign_options or {})})

    def authorize(self, location: str) -> str:
        """Accepts the authorization request at `location`; returns the URL to which the browser is redirected."""
        query = dict(parse_qsl(urlsplit(location).query, keep_blank_values=True))
        response_parameters: dict[str, str] = {"state": query["state"], "session_state": "session-state-1"}
        code = f"code-{next(self._codes)}"
        self._authorization_requests[code] = query
        if query["response_type"] == "code":
            return query["redirect_uri"] + "?" + urlencode({**response_parameters, "code": code})
        access_token = f"access-{code}" if "token" in query["response_type"].split() else ""
        response_parameters["id_token"] = self.id_token(self.valid_claims(query.get("nonce", ABSENT), access_token))
        if access_token:
            response_parameters |= {"access_token": access_token, "token_type": "Bearer", "expires_in": "300"}
        return query["redirect_uri"] + "#" + urlencode(response_parameters)

    def respond(self, request: RecordedRequest) -> None:
        self.requests.append(request)
        for name in (request.endpoint, request.path):
            if self._next_behaviours.get(name):
                return self._next_behaviours[name].pop(0)(request)
            if name in self._default_behaviours:
                return self._default_behaviours[name](request)
        return self.respond_correctly(request)

    def respond_correctly(self, request: RecordedRequest) -> None:
        match request.endpoint:
            case "discovery":
                request.respond(200, self.discovery_document())
            case "certs":
                request.respond(200, self.jwks)
            case "auth":
                request.respond(302, b"", location=self.authorize(request.path + "?" + urlencode(request.query)))
            case "token":
                request.respond(*self._redeem(request))
            case "userinfo":
                has_token = request.headers.get("authorization", "").startswith("Bearer access-")
                userinfo = without_absent({**self.person, **self.userinfo})
                request.respond(*((200, userinfo) if has_token else (401, {})))
            case "logout" if "post_logout_redirect_uri" in request.query:
                state_parameters = {name: request.query[name] for name in ("state",) if name in request.query}
                query = "?" + urlencode(state_parameters) if state_parameters else ""
                request.respond(302, b"", location=request.query["post_logout_redirect_uri"] + query)
            case _:
                request.respond(404, {"error": "not_found"})

    def _redeem(self, request: RecordedRequest) -> tuple[int, object]:
        """A code is valid once, and only for the client, redirect URI and verifier of its authorization request."""
        authorization_request = self._authorization_requests.pop(request.form.get("code", ""), None)
        if self._client_credentials(request) != (self.client_id, self.client_secret):
            return 401, {"error": "invalid_client"}
        if authorization_request is None or authorization_request["redirect_uri"] != request.form.get("redirect_uri"):
            return 400, {"error": "invalid_grant"}
        verifier_digest = hashlib.sha256(request.form.get("code_verifier", "").encode()).digest()
        expected_challenge = {"code_challenge_method": "S256", "code_challenge": base64url(verifier_digest)}
        if not expected_challenge.items() <= authorization_request.items():
            return 400, {"error": "invalid_grant"}
        access_token = f"access-{request.form['code']}"
        id_token = self.id_token(self.valid_claims(authorization_request.get("nonce", ABSENT), access_token))
        return 200, {"access_token": access_token, "token_type": "Bearer", "expires_in": 300, "id_token": id_token}

    def _client_credentials(self, request: RecordedRequest) -> tuple[str, str]:
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        if scheme == "Basic":
            client_id, _, client_secret = base64.b64decode(credentials).decode().partition(":")
            return unquote_plus(client_id), unquote_plus(client_secret)
        return request.form.get("client_id", ""), request.form.get("client_secret", "")

    def parse_request(self, handler: BaseHTTPRequestHandler) -> RecordedRequest:
        url = urlsplit(handler.path)
        endpoint = next((name for name in ("discovery", *ENDPOINTS) if urlsplit(self.url(name)).path == url.path), "")
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(int(headers.get("content-length", "0")))
        form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        return RecordedRequest(endpoint, str(handler.command), url.path, query, headers, form, handler, self._stop)


def _handler(provider: HostileProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = MAX_RESPONSE_S

        def do_GET(self) -> None:
            self.close_connection = True
            provider.respond(provider.parse_request(self))

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nothing is logged: tests read `requests`."""

    return Handler

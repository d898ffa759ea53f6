"""A provider that deliberately does what real ones never do: http on loopback, in a thread, deterministic.

    with HostileProvider() as provider:
        provider.jwks = {"keys": []}                        # what its key set holds
        provider.serve("certs", fails(500), times=1)        # how an endpoint answers, for ever or so many times
        provider.id_token = lambda claims: provider.sign({**claims, "aud": "another"})
        callback = provider.authorize(location)             # what the browser would do at the authorization endpoint

Endpoints have the names of `ENDPOINTS`; any other path is served by naming it with its slash.
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

from tests.providers.behaviours import MAX_RESPONSE_S, Behaviour, Visit
from tests.providers.serving import LoopbackServer
from tests.providers.signing import ABSENT, encoded_part, half_hash, jwk, token, without_absent

ENDPOINTS = ("auth", "token", "certs", "userinfo", "logout")
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


class HostileProvider:
    """Everything about it may be set; as it is made, it is right."""

    def __init__(self, realm: str = "main", layout: str = "/realms/{realm}", tls: ssl.SSLContext | None = None) -> None:
        self.realm = realm
        self.path = layout.format(realm=realm)
        self.requests: list[Visit] = []
        self.client_id, self.client_secret = "servicebase", "client-secret-canary"
        """An empty secret makes it a public client."""
        self.person: dict[str, Any] = {"sub": "sub-ann", "email": "ann@example.com", "preferred_username": "ann"}
        self.claims: dict[str, Any] = {}
        """Go into each ID token in place of the right ones."""
        self.userinfo: dict[str, Any] = {}
        """Go into each userinfo answer in place of the person's."""
        self.jwks: Any = {"keys": [jwk("rsa-1")]}
        self.algorithms: Any = ["RS256"]
        self.discovery: dict[str, Any] = {}
        """Go into the discovery document in place of the right ones."""
        self.id_token: Callable[[dict[str, Any]], str] = self.sign
        self.now: Callable[[], float] = time.time
        self._requests: dict[str, dict[str, str]] = {}
        self._codes = count(1)
        self._behaviours: dict[str, list[Behaviour]] = {}
        self._always: dict[str, Behaviour] = {}
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
        """From now on, or for so many requests; `endpoint` may be a path of its own."""
        if times:
            self._behaviours.setdefault(endpoint, []).extend([behaviour] * times)
        else:
            self._always[endpoint] = behaviour

    def behave_correctly(self, endpoint: str) -> None:
        """Well again."""
        self._always.pop(endpoint, None)
        self._behaviours.pop(endpoint, None)

    def requests_to(self, endpoint: str) -> list[Visit]:
        return [visit for visit in self.requests if visit.endpoint == endpoint]

    def hold(self, endpoint: str) -> Event:
        """Requests wait until the event is set, then are answered well."""
        release = Event()

        def behave(visit: Visit) -> None:
            deadline = time.monotonic() + MAX_RESPONSE_S
            while not release.wait(0.01) and not visit.stop.is_set() and time.monotonic() < deadline:
                pass
            self.respond_correctly(visit)

        self.serve(endpoint, behave)
        return release

    def document(self) -> dict[str, Any]:
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
        """See `signing.token`."""
        return token(claims, **options)

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

    def logout_token(self, how: dict[str, Any] | None = None, **changes: Any) -> str:
        """For back-channel logout; `how` goes to `sign`, the changes into the claims."""
        now = int(self.now())
        times = {"iat": now, "exp": now + 120, "jti": f"jti-{time.time_ns()}"}
        defaults = {"iss": self.issuer, "aud": self.client_id, "sub": self.person["sub"], "events": {LOGOUT_EVENT: {}}}
        return self.sign({**defaults, **times, **changes}, **{"typ": "logout+jwt", **(how or {})})

    def authorize(self, location: str) -> str:
        """The address that the browser is sent back to, from the address that it was sent to."""
        values = dict(parse_qsl(urlsplit(location).query, keep_blank_values=True))
        parameters: dict[str, str] = {"state": values["state"], "session_state": "session-state-1"}
        code = f"code-{next(self._codes)}"
        self._requests[code] = values
        if values["response_type"] == "code":
            return values["redirect_uri"] + "?" + urlencode({**parameters, "code": code})
        access = f"access-{code}" if "token" in values["response_type"].split() else ""
        parameters["id_token"] = self.id_token(self.valid_claims(values.get("nonce", ABSENT), access))
        if access:
            parameters |= {"access_token": access, "token_type": "Bearer", "expires_in": "300"}
        return values["redirect_uri"] + "#" + urlencode(parameters)

    def respond(self, visit: Visit) -> None:
        self.requests.append(visit)
        for name in (visit.endpoint, visit.path):
            if self._behaviours.get(name):
                return self._behaviours[name].pop(0)(visit)
            if name in self._always:
                return self._always[name](visit)
        return self.respond_correctly(visit)

    def respond_correctly(self, visit: Visit) -> None:
        match visit.endpoint:
            case "discovery":
                visit.respond(200, self.document())
            case "certs":
                visit.respond(200, self.jwks)
            case "auth":
                visit.respond(302, b"", location=self.authorize(visit.path + "?" + urlencode(visit.query)))
            case "token":
                visit.respond(*self._redeem(visit))
            case "userinfo":
                has_token = visit.headers.get("authorization", "").startswith("Bearer access-")
                visit.respond(200, without_absent({**self.person, **self.userinfo})) if has_token else visit.respond(
                    401, {}
                )
            case "logout" if "post_logout_redirect_uri" in visit.query:
                state_parameters = {name: visit.query[name] for name in ("state",) if name in visit.query}
                query = "?" + urlencode(state_parameters) if state_parameters else ""
                visit.respond(302, b"", location=visit.query["post_logout_redirect_uri"] + query)
            case _:
                visit.respond(404, {"error": "not_found"})

    def _redeem(self, visit: Visit) -> tuple[int, object]:
        """A code is good once, for the client, redirect address and verifier it was made for."""
        request = self._requests.pop(visit.form.get("code", ""), None)
        if self._client_of(visit) != (self.client_id, self.client_secret):
            return 401, {"error": "invalid_client"}
        if request is None or request["redirect_uri"] != visit.form.get("redirect_uri"):
            return 400, {"error": "invalid_grant"}
        verifier = hashlib.sha256(visit.form.get("code_verifier", "").encode()).digest()
        if request.get("code_challenge_method") != "S256" or request.get("code_challenge") != encoded_part(verifier):
            return 400, {"error": "invalid_grant"}
        access = f"access-{visit.form['code']}"
        id_token = self.id_token(self.valid_claims(request.get("nonce", ABSENT), access))
        return 200, {"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": id_token}

    def _client_of(self, visit: Visit) -> tuple[str, str]:
        scheme, _, pair = visit.headers.get("authorization", "").partition(" ")
        if scheme == "Basic":
            login, _, secret = base64.b64decode(pair).decode().partition(":")
            return unquote_plus(login), unquote_plus(secret)
        return visit.form.get("client_id", ""), visit.form.get("client_secret", "")

    def read_visit(self, handler: BaseHTTPRequestHandler) -> Visit:
        parts = urlsplit(handler.path)
        endpoint = next((name for name in ("discovery", *ENDPOINTS) if urlsplit(self.url(name)).path == parts.path), "")
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(int(headers.get("content-length", "0")))
        form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return Visit(endpoint, str(handler.command), parts.path, query, headers, form, handler, self._stop)


def _handler(provider: HostileProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = MAX_RESPONSE_S

        def do_GET(self) -> None:
            self.close_connection = True
            provider.respond(provider.read_visit(self))

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Silence: what failed is in `requests`."""

    return Handler

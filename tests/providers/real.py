"""Runs a certified OpenID provider (npm oidc-provider), and a browser that signs in to it.

with RealProvider() as provider:
    provider.register(client_registration("http://testserver/sso/callback/"))
    callback_url = Visitor(provider).sign_in(location, "anna")
    provider.rotate("main", overlap=False)
"""

import html
import json
import re
import secrets
import select
import ssl
import subprocess
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from tests.providers.node import FOLDER, node

START_TIMEOUT_S = 60.0
PASSWORD = "provider password 7"
# A client is registered for each of these signature algorithms.
ALGORITHMS = ("PS256", "ES256", "EdDSA")
PEOPLE = (
    {"sub": "sub-anna", "login": "anna", "email": "anna@example.com", "given_name": "Anna", "family_name": "Ahlgren",
     "name": "Anna Ahlgren", "roles": ["itil", "surveyor"]},
    {"sub": "sub-ben", "login": "ben", "email": "ben@example.com", "roles": ["admin", "itil"]},
    {"sub": "sub-chris", "login": "chris", "email": "chris@example.com", "email_verified": False},
)  # fmt: skip
REALMS = (
    {"name": "main", "path": "/realms/main"},
    {"name": "first", "path": "/realm/first"},
    {"name": "undiscovered", "path": "/alone/realm/undiscovered", "hides_discovery": True},
    {"name": "plain", "path": "", "follows_scope": True, "token_auth": ["client_secret_post", "none"]},
)
CLIENT_ID, CLIENT_SECRET = "servicebase", "secret of the client"


def client_registration(callback: str, **members: Any) -> dict[str, Any]:
    """A confidential client of the code flow for the product with this callback URL."""
    url = urlsplit(callback)
    product_url = urlunsplit((url.scheme, url.netloc, "", "", ""))
    return {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uris": [callback],
        "post_logout_redirect_uris": [f"{product_url}/sso/logout/"],
        "backchannel_logout_uri": f"{product_url}/sso/backchannel-logout/",
        "backchannel_logout_session_required": True,
        **members,
    }


def public_registration(callback: str, **members: Any) -> dict[str, Any]:
    client = client_registration(callback, client_id="servicebase-pkce", token_endpoint_auth_method="none", **members)
    client.pop("client_secret")
    return client


def fragment_registration(callback: str, **members: Any) -> dict[str, Any]:
    """A public client that receives the ID token in the fragment."""
    response_and_grant_types = {"response_types": ["id_token", "id_token token"], "grant_types": ["implicit"]}
    return {**public_registration(callback), **response_and_grant_types, "client_id": "servicebase-fragment", **members}


class RealProvider:
    """A provider process with several realms. It ends with `stop`, or together with this process."""

    def __init__(self, *, tls: tuple[Path, Path] | None = None, ca: Path | None = None, **settings: Any) -> None:
        self._control = secrets.token_hex(16)
        people = [{"password": PASSWORD, **person} for person in PEOPLE]
        self.settings = {"realms": REALMS, "people": people, "control": self._control, **settings}
        if tls:
            self.settings["tls"] = {"cert": str(tls[0]), "key": str(tls[1])}
        self.trust = ssl.create_default_context(cafile=str(ca)) if ca else None
        # For calls of the provider to a product whose certificate belongs to the tests.
        self._environment = {"NODE_EXTRA_CA_CERTS": str(ca)} if ca else {}
        self.url = ""

    def start(self) -> Self:
        self._process = subprocess.Popen(
            [node(), str(FOLDER / "provider.mjs"), json.dumps(self.settings)],
            stdin=subprocess.PIPE,  # closed when this process ends, which ends the provider
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/bin:/bin", **self._environment},
        )
        assert self._process.stdout and self._process.stderr
        is_ready, _, _ = select.select([self._process.stdout], [], [], START_TIMEOUT_S)
        ready_line = self._process.stdout.readline() if is_ready else ""
        if not ready_line:
            self._process.kill()
            error_output = self._process.stderr.read().strip()
            self.stop()
            raise RuntimeError(f"the identity provider did not start: {error_output[-2000:]}")
        self.url = json.loads(ready_line)["url"]
        return self

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait(self) -> int:
        return self._process.wait()

    def issuer(self, realm: str) -> str:
        return self.url + next(str(entry["path"]) for entry in REALMS if entry["name"] == realm)

    def register(self, *clients: dict[str, Any]) -> None:
        """Replaces the clients of every realm."""
        self._send_command({"do": "register", "clients": clients})

    def rotate(self, realm: str, *, overlap: bool) -> list[str]:
        """Creates new signing keys; with overlap, the old keys stay in the set. Returns the kids of the set."""
        kids: list[str] = self._send_command({"do": "rotate", "realm": realm, "overlap": overlap})
        return kids

    def end_sessions(self, realm: str, login: str) -> list[str]:
        """Sends back-channel logouts; returns the ids of the clients that accepted one."""
        client_ids: list[str] = self._send_command({"do": "end_sessions", "realm": realm, "login": login})
        return client_ids

    def _send_command(self, command: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self.url + "/control", json.dumps(command).encode(), {"X-Control": self._control}, method="POST"
        )
        handler = urllib.request.HTTPSHandler(context=self.trust)
        with urllib.request.build_opener(urllib.request.ProxyHandler({}), handler).open(
            request, timeout=30
        ) as response:
            return json.load(response)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Visitors follow redirects themselves, to see the targets."""


class Visitor:
    """The browser of one user: keeps cookies, and follows redirects within the provider."""

    def __init__(self, provider: RealProvider) -> None:
        self.provider = provider
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=provider.trust),
            urllib.request.HTTPCookieProcessor(CookieJar()),
            _NoRedirects,
        )

    def sign_in(self, location: str, login: str, password: str = PASSWORD) -> str:
        """Signs in unless the user is already signed in; returns the URL to which the provider redirects."""
        url, page_html = self.follow(location)
        if not url.startswith(self.provider.url):
            return url
        assert 'name="password"' in page_html, page_html
        return self.follow(url, {"login": login, "password": password})[0]

    def sign_out(self, location: str, form: dict[str, str] | None = None) -> str:
        url, page_html = self.follow(location, form)
        if not url.startswith(self.provider.url):
            return url
        action_match = re.search(r'action="([^"]+)"', page_html)
        xsrf_match = re.search(r'name="xsrf" value="([^"]+)"', page_html)
        assert action_match and xsrf_match, page_html
        return self.follow(html.unescape(action_match[1]), {"xsrf": xsrf_match[1], "logout": "yes"})[0]

    def follow(self, location: str, form: dict[str, str] | None = None) -> tuple[str, str]:
        """Returns the first URL outside the provider, or the URL and content of the last page within it."""
        form_data = urlencode(form).encode() if form else None
        while location.startswith(self.provider.url):
            try:
                with self._opener.open(location, form_data, timeout=30) as response:
                    return location, response.read().decode()
            except HTTPError as error:
                with error:
                    if error.code not in (302, 303):
                        return location, error.read().decode()
                    location, form_data = urljoin(location, error.headers["Location"]), None
        return location, ""

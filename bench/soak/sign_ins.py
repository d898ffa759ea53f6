"""Signs in new users through a provider, like a browser that waits and retries when a page requests it."""

import http.client
import itertools
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.config.stack import Stack, manage
from tests.providers.hostile import HostileProvider

SIGN_IN_TIMEOUT_S = 300
RETRY_WAIT_S = 0.5
REFUSAL_CODE = re.compile(r"<code>(\w+)</code>")
CREATE_CONNECTION_SCRIPT = """
from sso.connections import certificate_updates
from sso.models import OidcSetting
setting = OidcSetting.objects.create(
    name="Bench", url_idp={url_idp!r}, realm={realm!r}, authorization_type="pkce", client_id={client_id!r},
    user_field="login", redirect_uri={redirect_uri!r}, scope="openid", active=True, enable_user_creation=True,
    issuer={issuer!r}, authorization_endpoint={auth!r}, token_endpoint={token!r}, jwks_uri={certs!r},
    algorithms=["RS256"],
)
certificate_updates.refresh_certificates(setting, trigger="form")
"""


class Browser:
    """Signs in one user through the provider; retries like the waiting page, and starts over if a page requests it."""

    def __init__(self, stack: Stack) -> None:
        self.port = stack.port
        self.cookies: dict[str, str] = {}
        self.restart_reasons: list[str] = []
        """The refusal codes of the pages that required another sign-in."""

    def get(self, path: str) -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        cookie_header = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request("GET", path, headers={"Cookie": cookie_header, "Accept": "text/html"})
        response = connection.getresponse()
        page = response.read().decode()
        for header in response.headers.get_all("Set-Cookie", []):
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value
        connection.close()
        return response, page

    def sign_in(self, idp: HostileProvider) -> float:
        """Signs in and returns the duration in seconds."""
        started_at = time.monotonic()
        deadline = started_at + SIGN_IN_TIMEOUT_S
        while time.monotonic() < deadline:
            start_response, _ = self.get("/sso/start/")
            if start_response.status == 503:
                self.restart_reasons.append("at its start")
                time.sleep(RETRY_WAIT_S)
                continue
            if start_response.status != 302:
                raise SystemExit(f"the start of a sign-in was answered with {start_response.status}")
            callback_url = urlsplit(idp.authorize(start_response.headers["Location"]))
            refusal_code = self.finish_sign_in(f"{callback_url.path}?{callback_url.query}", deadline)
            if not refusal_code:
                return time.monotonic() - started_at
            self.restart_reasons.append(refusal_code)
        raise SystemExit("a sign-in did not finish")

    def finish_sign_in(self, path: str, deadline: float) -> str:
        """Requests the callback; returns "" after a sign-in, else the code of a refusal that needs another one."""
        is_retry = False
        while time.monotonic() < deadline:
            response, page = self.get(path)
            if response.status == 302:
                return ""
            refusal_code = "".join(REFUSAL_CODE.findall(page)[:1])
            # A state can be used once. The database may have failed after the state was used and before the sign-in.
            if is_retry and refusal_code == "state_unknown":
                return refusal_code
            if response.status != 503:
                raise SystemExit(f"a sign-in was answered with {response.status} {refusal_code}")
            if "Retry-After" not in response.headers:
                return refusal_code
            time.sleep(int(response.headers["Retry-After"]))
            is_retry = True
        return "late"


def create_connection(stack: Stack, idp: HostileProvider) -> None:
    values = {
        "url_idp": idp.url_idp, "realm": idp.realm, "client_id": idp.client_id, "issuer": idp.issuer,
        "redirect_uri": f"{stack.url}/sso/callback/", "auth": idp.url("auth"), "token": idp.url("token"),
        "certs": idp.url("certs"),
    }  # fmt: skip
    completed = manage("shell", "-c", CREATE_CONNECTION_SCRIPT.format(**values), env=stack.env)
    if completed.returncode != 0:
        raise SystemExit(completed.stderr)


@contextmanager
def provider_with_new_users(stack: Stack) -> Iterator[HostileProvider]:
    """A provider that is connected to the product and signs in a new user each time."""
    user_numbers = itertools.count(1)
    with HostileProvider() as idp:

        def sign_new_user_token(claims: dict[str, object]) -> str:
            name = f"person{next(user_numbers)}"
            user_claims = {"sub": f"sub-{name}", "preferred_username": name, "email": f"{name}@example.com"}
            return idp.sign({**claims, **user_claims, "at_hash": ...})

        idp.client_secret = ""
        create_connection(stack, idp)
        idp.id_token = sign_new_user_token
        yield idp

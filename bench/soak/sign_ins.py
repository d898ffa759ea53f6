"""Signs new people in through a provider, as a browser does that waits and retries when told to."""

import http.client
import itertools
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.config.stack import Stack, manage
from tests.providers.hostile import HostileProvider

GIVEN_UP_AFTER_S = 300
AWAY_AGAIN_S = 0.5
CODE = re.compile(r"<code>(\w+)</code>")
CONNECT = """
from sso.connections import certificate_updates
from sso.models import OidcSetting
setting = OidcSetting.objects.create(
    name="Bench", url_idp={url_idp!r}, realm={realm!r}, authorization_type="pkce", client_id={client_id!r},
    user_field="login", redirect_uri={redirect_uri!r}, scope="openid", active=True, enable_user_creation=True,
    issuer={issuer!r}, authorization_endpoint={auth!r}, token_endpoint={token!r}, jwks_uri={certs!r},
    algorithms=["RS256"],
)
certificate_updates.refresh_certificates(setting, reason="form")
"""


class Browser:
    """One person's way to the provider and back; retries as the waiting page does, starts over when told to."""

    def __init__(self, stack: Stack) -> None:
        self.port = stack.port
        self.cookies: dict[str, str] = {}
        self.started_again: list[str] = []
        """Why: the codes of the pages that said so."""

    def get(self, path: str) -> tuple[http.client.HTTPResponse, str]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        cookie_header = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        link.request("GET", path, headers={"Cookie": cookie_header, "Accept": "text/html"})
        answer = link.getresponse()
        page = answer.read().decode()
        for each in answer.headers.get_all("Set-Cookie", []):
            name, _, value = each.partition(";")[0].partition("=")
            self.cookies[name] = value
        link.close()
        return answer, page

    def sign_in(self, idp: HostileProvider) -> float:
        """How long it took."""
        start_time = time.monotonic()
        until = start_time + GIVEN_UP_AFTER_S
        while time.monotonic() < until:
            started, _ = self.get("/sso/start/")
            if started.status == 503:
                self.started_again.append("at its start")
                time.sleep(AWAY_AGAIN_S)
                continue
            if started.status != 302:
                raise SystemExit(f"the start of a sign-in was answered with {started.status}")
            back = urlsplit(idp.authorize(started.headers["Location"]))
            code = self.come(f"{back.path}?{back.query}", until)
            if not code:
                return time.monotonic() - start_time
            self.started_again.append(code)
        raise SystemExit("a sign-in did not come to an end")

    def come(self, path: str, until: float) -> str:
        """The code of a refusal that says to try again shortly; nothing when somebody is signed in."""
        is_again = False
        while time.monotonic() < until:
            answer, page = self.get(path)
            if answer.status == 302:
                return ""
            code = "".join(CODE.findall(page)[:1])
            # A state counts once: the database may have gone away between taking it and signing somebody in.
            if is_again and code == "state_unknown":
                return code
            if answer.status != 503:
                raise SystemExit(f"a sign-in was answered with {answer.status} {code}")
            if "Retry-After" not in answer.headers:
                return code
            time.sleep(int(answer.headers["Retry-After"]))
            is_again = True
        return "late"


def connect(stack: Stack, idp: HostileProvider) -> None:
    result = {
        "url_idp": idp.url_idp, "realm": idp.realm, "client_id": idp.client_id, "issuer": idp.issuer,
        "redirect_uri": f"{stack.url}/sso/callback/", "auth": idp.url("auth"), "token": idp.url("token"),
        "certs": idp.url("certs"),
    }  # fmt: skip
    done = manage("shell", "-c", CONNECT.format(**result), env=stack.env)
    if done.returncode != 0:
        raise SystemExit(done.stderr)


@contextmanager
def provider_of_new_people(stack: Stack) -> Iterator[HostileProvider]:
    """The product's connection leads to it, and each sign-in is somebody's who was never there."""
    numbers = itertools.count(1)
    with HostileProvider() as idp:

        def somebody_else(claims: dict[str, object]) -> str:
            name = f"person{next(numbers)}"
            who = {"sub": f"sub-{name}", "preferred_username": name, "email": f"{name}@example.com"}
            return idp.sign({**claims, **who, "at_hash": ...})

        idp.client_secret = ""
        connect(stack, idp)
        idp.id_token = somebody_else
        yield idp

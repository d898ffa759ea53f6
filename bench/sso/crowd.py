"""In charge of many people who sign in at once through a provider that takes its time, and of who only reads a page."""

import http.client
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median, quantiles
from urllib.parse import urlsplit

from tests.config.stack import Stack, manage
from tests.providers.behaviours import Visit
from tests.providers.hostile import HostileProvider

GIVEN_UP_AFTER_S = 300
CONNECT = """
from sso import certificates
from sso.models import OidcSetting
made = OidcSetting.objects.create(
    name="Bench", url_idp={url_idp!r}, realm={realm!r}, authorization_type="pkce", client_id={client_id!r},
    user_field="login", redirect_uri={redirect_uri!r}, scope="openid", active=True, enable_user_creation=True,
    issuer={issuer!r}, authorization_endpoint={auth!r}, token_endpoint={token!r}, jwks_uri={certs!r},
    algorithms=["RS256"],
)
certificates.refresh(*made.pair, {certs!r}, reason="form")
"""


class Browser:
    """Somebody's way to the provider and back, asking again as the page that waits does."""

    def __init__(self, stack: Stack) -> None:
        self.port = stack.port
        self.cookies: dict[str, str] = {}

    def get(self, path: str) -> http.client.HTTPResponse:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        shown = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        link.request("GET", path, headers={"Cookie": shown, "Accept": "text/html"})
        answer = link.getresponse()
        answer.read()
        for each in answer.headers.get_all("Set-Cookie", []):
            name, _, value = each.partition(";")[0].partition("=")
            self.cookies[name] = value
        link.close()
        return answer

    def sign_in(self, idp: HostileProvider) -> float:
        began = time.monotonic()
        started = self.get("/sso/start/")
        back = urlsplit(idp.authorize(started.headers["Location"]))
        while time.monotonic() - began < GIVEN_UP_AFTER_S:
            answer = self.get(f"{back.path}?{back.query}")
            if answer.status == 302:
                return time.monotonic() - began
            if answer.status != 503:
                raise SystemExit(f"a sign-in was answered with {answer.status}")
            time.sleep(int(answer.headers["Retry-After"]))
        raise SystemExit("a sign-in did not come to an end")


def reader(stack: Stack, ended: threading.Event, found: list[float]) -> None:
    """Opens the sign-in page ten times a second meanwhile."""
    while not ended.wait(0.1):
        began = time.monotonic()
        status = Browser(stack).get("/login/?local=1").status
        if status != 200:
            raise SystemExit(f"the sign-in page was answered with {status}")
        found.append(1000 * (time.monotonic() - began))


def connect(stack: Stack, idp: HostileProvider) -> None:
    known = {
        "url_idp": idp.url_idp, "realm": idp.realm, "client_id": idp.client_id, "issuer": idp.issuer,
        "redirect_uri": f"{stack.url}/sso/callback/", "auth": idp.url("auth"), "token": idp.url("token"),
        "certs": idp.url("certs"),
    }  # fmt: skip
    done = manage("shell", "-c", CONNECT.format(**known), env=stack.env)
    if done.returncode != 0:
        raise SystemExit(done.stderr)


def measure(stack: Stack, people: int, slow_s: float) -> None:
    with HostileProvider() as idp:
        numbers = itertools.count(1)

        def somebody_else(claims: dict[str, object]) -> str:
            name = f"person{next(numbers)}"
            who = {"sub": f"sub-{name}", "preferred_username": name, "email": f"{name}@example.com"}
            return idp.sign({**claims, **who, "at_hash": ...})

        def slowly(visit: Visit) -> None:
            time.sleep(slow_s)
            idp.answer_well(visit)

        idp.client_secret = ""
        connect(stack, idp)
        idp.id_token = somebody_else
        idp.serve("token", slowly)
        pages: list[float] = []
        ended = threading.Event()
        watching = threading.Thread(target=reader, args=(stack, ended, pages))
        watching.start()
        began = time.monotonic()
        with ThreadPoolExecutor(people) as crowd:
            took = list(crowd.map(lambda browser: browser.sign_in(idp), [Browser(stack) for _ in range(people)]))
        ended.set()
        watching.join()
        print(f"\n{people} sign-ins at once, the provider takes {slow_s:g} s for a token; two web processes")
        print(f"  all signed in after  {time.monotonic() - began:8.1f} s")
        print(f"  each, median / last  {median(took):8.1f} s {max(took):8.1f} s")
        late = quantiles(pages, n=100)[94]
        print(f"  the sign-in page     {median(pages):8.1f} ms median {late:8.1f} ms p95 {max(pages):8.1f} ms longest")

"""A running product and a Chromium for it; what a page logs as an error or loads from outside fails the test."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import chromium
from tests.browser.collection_pages import make_collection
from tests.browser.identity_provider import Certificates, Pairing, SecureStack, Traveller
from tests.config.stack import Stack, eventually, manage
from tests.providers.real import RealProvider

PASSWORD = "correct horse 42"
ROLES = {"sonja": "sso_admin", "carl": "collection_admin", "alice": "admin", "bob": ""}
MAKE_PEOPLE = """
from accounts.models import Role, User, UserRole
for login, role in {roles!r}.items():
    user = User.objects.create_user(login, {password!r})
    if role:
        UserRole.objects.create(user=user, role=Role.objects.get(name=role))
"""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK = {"width": 1280, "height": 850}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack(tmp_path_factory.mktemp("product") / "data").start().wait_until_up()
    people = manage("shell", "-c", MAKE_PEOPLE.format(roles=ROLES, password=PASSWORD), env=made.env)
    assert people.returncode == 0, people.stderr
    eventually(lambda: made.get("/readyz") == 200)
    yield made
    made.stop()
    made.end()


def has_many_roles(product: Stack) -> None:
    names = ["w" * 100, *(f"team {number:03}" for number in range(150))]
    made = f"from accounts.models import Role\nfor name in {names!r}: Role.objects.get_or_create(name=name)"
    assert manage("shell", "-c", made, env=product.env).returncode == 0


@pytest.fixture(scope="package")  # ends with this folder: its event loop would disturb Django elsewhere
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield started
        started.close()


class Visitor:
    """Somebody with a browser window of their own."""

    def __init__(self, browser: Browser, product: Stack, *, viewport: Any, scheme: Any = "light") -> None:
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme, base_url=product.url)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        self.page.on("request", lambda request: self._check_inside(request.url, product.url))

    def _hear(self, message) -> None:
        if message.type == "error" and "status of 4" not in message.text:
            self.complaints.append(f"{self.page.url}: {message.text}")

    def _check_inside(self, url: str, own: str) -> None:
        if not url.startswith((own, "data:", "blob:")):
            self.complaints.append(f"from outside: {url}")

    def sign_in(self, login: str, password: str = PASSWORD) -> "Visitor":
        self.page.goto("/login/")
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/")
        return self

    def open(self, path: str) -> int:
        answer = self.page.goto(path, wait_until="load")
        assert answer is not None
        return answer.status

    def overflow(self) -> int:
        """How many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.fixture(params=["desk", "phone"])
def visitor(request: pytest.FixtureRequest, browser: Browser, product: Stack) -> Iterator[Visitor]:
    """On a desk in light mode, and on a phone in dark mode."""
    is_desk = request.param == "desk"
    made = Visitor(browser, product, viewport=DESK if is_desk else PHONE, scheme="light" if is_desk else "dark")
    yield made
    made.context.close()
    assert made.complaints == []


@pytest.fixture
def at_desk(browser: Browser, product: Stack) -> Iterator[Visitor]:
    made = Visitor(browser, product, viewport=DESK)
    yield made
    made.context.close()
    assert made.complaints == []


@pytest.fixture
def at_manuals(visitor: Visitor) -> Visitor:
    """Carl, on the page of an empty collection of his."""
    visitor.sign_in("carl")
    make_collection(visitor.page)
    return visitor


@pytest.fixture(scope="package")
def pairing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pairing]:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    product = SecureStack(tmp_path_factory.mktemp("secure") / "data", certificates)
    product.start().wait_until_up()
    provider = RealProvider(tls=(certificates.certificate, certificates.key), ca=certificates.ca)
    try:
        people = manage("shell", "-c", MAKE_PEOPLE.format(roles=ROLES, password=PASSWORD), env=product.env)
        assert people.returncode == 0, people.stderr
        with provider:
            yield Pairing(product, provider, ("alice", PASSWORD))
        product.stop()
    finally:
        product.end()


@pytest.fixture
def travel(browser: Browser, pairing: Pairing) -> Iterator[Any]:
    """Makes travellers, and looks through their complaints in the end."""
    made: list[Traveller] = []

    def start() -> Traveller:
        made.append(Traveller(browser, pairing.product.url, pairing.provider.url))
        return made[-1]

    yield start
    for each in made:
        each.context.close()
        assert each.complaints == []

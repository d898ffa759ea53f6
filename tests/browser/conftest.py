"""A running product and Chromium. An error in the console or a request to another host fails the test."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import chromium
from tests.browser.collection_pages import make_collection
from tests.browser.identity_provider import Certificates, Pairing, SecureStack, Traveller
from tests.browser.visitor import DESK, PHONE, Visitor
from tests.config.stack import Stack, eventually, manage
from tests.providers.real import RealProvider
from tests.support.users import PASSWORD

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


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("product") / "data").start().wait_until_up()
    people = manage("shell", "-c", MAKE_PEOPLE.format(roles=ROLES, password=PASSWORD), env=stack.env)
    assert people.returncode == 0, people.stderr
    eventually(lambda: stack.get("/readyz") == 200)
    yield stack
    stack.stop()
    stack.end()


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="package")  # ends with this folder: its event loop would disturb Django elsewhere
def browser(certificates: Certificates) -> Iterator[Browser]:
    # Trusted by its key. If Chromium ignored the error instead, it would repeat requests, and now and then give up.
    trust = f"--ignore-certificate-errors-spki-list={certificates.key_hash}"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS, trust])
        yield started
        started.close()


@pytest.fixture(params=["desk", "phone"])
def visitor(request: pytest.FixtureRequest, browser: Browser, product: Stack) -> Iterator[Visitor]:
    """On a desk in light mode, and on a phone in dark mode."""
    is_desk = request.param == "desk"
    visitor = Visitor(browser, product, viewport=DESK if is_desk else PHONE, scheme="light" if is_desk else "dark")
    yield visitor
    visitor.context.close()
    assert visitor.complaints == []


@pytest.fixture
def at_desk(browser: Browser, product: Stack) -> Iterator[Visitor]:
    visitor = Visitor(browser, product, viewport=DESK)
    yield visitor
    visitor.context.close()
    assert visitor.complaints == []


@pytest.fixture
def at_manuals(visitor: Visitor) -> Visitor:
    """Carl, on the page of an empty collection of his."""
    visitor.sign_in("carl")
    make_collection(visitor.page)
    return visitor


@pytest.fixture(scope="package")
def pairing(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Pairing]:
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
    travellers: list[Traveller] = []

    def start() -> Traveller:
        travellers.append(Traveller(browser, pairing.product.url, pairing.provider.url))
        return travellers[-1]

    yield start
    for each in travellers:
        each.context.close()
        assert each.complaints == []

"""A running product and Chromium. An error in the console or a request to another host fails the test."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import CHROMIUM_FLAGS, chromium
from tests.browser.collection_pages import create_collection
from tests.browser.sso_setup import Certificates, SecureStack, SsoSetup, SsoVisitor
from tests.browser.visitor import DESKTOP_SIZE, PHONE_SIZE, Visitor
from tests.config.stack import Stack, eventually, manage
from tests.providers.real import RealProvider
from tests.support.users import PASSWORD

ROLES_BY_LOGIN = {"sonja": "sso_admin", "carl": "collection_admin", "alice": "admin", "bob": ""}
CREATE_USERS = f"""
from accounts.models import Role, User, UserRole
for login, role in {ROLES_BY_LOGIN!r}.items():
    user = User.objects.create_user(login, {PASSWORD!r})
    if role:
        UserRole.objects.create(user=user, role=Role.objects.get(name=role))
"""


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("product") / "data").start().wait_until_up()
    completed = manage("shell", "-c", CREATE_USERS, env=stack.env)
    assert completed.returncode == 0, completed.stderr
    eventually(lambda: stack.get("/readyz") == 200)
    yield stack
    stack.stop()
    stack.end()


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="package")  # ends after this package, because its event loop would disturb Django in other tests
def browser(certificates: Certificates) -> Iterator[Browser]:
    # Trusts the certificate by its key. If Chromium ignored the error, it would repeat requests and sometimes give up.
    trust_flag = f"--ignore-certificate-errors-spki-list={certificates.key_hash}"
    with sync_playwright() as playwright:
        chromium_browser = playwright.chromium.launch(executable_path=chromium(), args=[*CHROMIUM_FLAGS, trust_flag])
        yield chromium_browser
        chromium_browser.close()


@pytest.fixture(params=["desktop", "phone"])
def visitor(request: pytest.FixtureRequest, browser: Browser, product: Stack) -> Iterator[Visitor]:
    """Runs the test twice: in a desktop browser in light mode, and on a phone in dark mode."""
    is_desktop = request.param == "desktop"
    viewport, color_scheme = (DESKTOP_SIZE, "light") if is_desktop else (PHONE_SIZE, "dark")
    visitor = Visitor(browser, product, viewport=viewport, color_scheme=color_scheme)
    yield visitor
    visitor.context.close()
    assert visitor.problems == []


@pytest.fixture
def desktop_visitor(browser: Browser, product: Stack) -> Iterator[Visitor]:
    visitor = Visitor(browser, product, viewport=DESKTOP_SIZE)
    yield visitor
    visitor.context.close()
    assert visitor.problems == []


@pytest.fixture
def collection_visitor(visitor: Visitor) -> Visitor:
    """The user carl on the page of a new, empty collection."""
    visitor.sign_in("carl")
    create_collection(visitor.page)
    return visitor


@pytest.fixture(scope="package")
def sso_setup(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[SsoSetup]:
    product = SecureStack(tmp_path_factory.mktemp("secure") / "data", certificates)
    product.start().wait_until_up()
    provider = RealProvider(tls=(certificates.certificate, certificates.key), ca=certificates.ca)
    try:
        completed = manage("shell", "-c", CREATE_USERS, env=product.env)
        assert completed.returncode == 0, completed.stderr
        with provider:
            yield SsoSetup(product, provider, ("alice", PASSWORD))
        product.stop()
    finally:
        product.end()


@pytest.fixture
def visitor_factory(browser: Browser, sso_setup: SsoSetup) -> Iterator[Any]:
    """Creates visitors, and checks at the end that they had no problems."""
    visitors: list[SsoVisitor] = []

    def open_visitor() -> SsoVisitor:
        visitors.append(SsoVisitor(browser, sso_setup.product.url, sso_setup.provider.url))
        return visitors[-1]

    yield open_visitor
    for visitor in visitors:
        visitor.context.close()
        assert visitor.problems == []

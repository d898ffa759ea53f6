"""A person with a browser window of their own."""

from typing import Any

from playwright.sync_api import Browser, Page

from tests.config.stack import Stack, manage
from tests.support.users import PASSWORD

DESK = {"width": 1280, "height": 850}
PHONE = {"width": 390, "height": 844}


def has_many_roles(product: Stack) -> None:
    names = ["w" * 100, *(f"team {number:03}" for number in range(150))]
    text = f"from accounts.models import Role\nfor name in {names!r}: Role.objects.get_or_create(name=name)"
    assert manage("shell", "-c", text, env=product.env).returncode == 0


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

"""A user with a browser window."""

from typing import Any

from playwright.sync_api import Browser, Page

from tests.config.stack import Stack, manage
from tests.support.users import PASSWORD

DESKTOP_SIZE: Any = {"width": 1280, "height": 850}
PHONE_SIZE: Any = {"width": 390, "height": 844}


def create_many_roles(product: Stack) -> None:
    names = ["w" * 100, *(f"team {number:03}" for number in range(150))]
    script = f"from accounts.models import Role\nfor name in {names!r}: Role.objects.get_or_create(name=name)"
    assert manage("shell", "-c", script, env=product.env).returncode == 0


class Visitor:
    """A user with their own browser window, which may only open pages of the product."""

    def __init__(self, browser: Browser, product: Stack, *, viewport: Any, color_scheme: Any = "light") -> None:
        self.context = browser.new_context(viewport=viewport, color_scheme=color_scheme, base_url=product.url)
        self.page: Page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("console", self._record_console_error)
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("request", lambda request: self._check_url(request.url, product.url))

    def _record_console_error(self, message) -> None:
        if message.type == "error" and "status of 4" not in message.text:
            self.problems.append(f"{self.page.url}: {message.text}")

    def _check_url(self, url: str, product_url: str) -> None:
        if not url.startswith((product_url, "data:", "blob:")):
            self.problems.append(f"request to another host: {url}")

    def sign_in(self, login: str, password: str = PASSWORD) -> "Visitor":
        self.page.goto("/login/")
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/")
        return self

    def open(self, path: str) -> int:
        response = self.page.goto(path, wait_until="load")
        assert response is not None
        return response.status

    def overflow_px(self) -> int:
        """How many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

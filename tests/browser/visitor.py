"""A user with a browser window."""

from typing import Any

from playwright.sync_api import Browser, Page

from tests.config.stack import Stack, manage
from tests.support.users import PASSWORD

DESKTOP_SIZE: Any = {"width": 1280, "height": 850}
PHONE_SIZE: Any = {"width": 390, "height": 844}

SESSIONS: dict[tuple[str, str], list[Any]] = {}
"""The cookies of each signed-in user of each product."""


def create_many_roles(product: Stack) -> None:
    names = ["w" * 100, *(f"team {number:03}" for number in range(150))]
    script = f"from accounts.models import Role\nfor name in {names!r}: Role.objects.get_or_create(name=name)"
    assert manage("shell", "-c", script, env=product.env).returncode == 0


class Visitor:
    """A user with their own browser window, which may only open pages of the product."""

    def __init__(self, browser: Browser, product: Stack, *, viewport: Any, color_scheme: Any = "light") -> None:
        self.context = browser.new_context(viewport=viewport, color_scheme=color_scheme, base_url=product.url)
        self.product_url = product.url
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
        """Signs in without opening pages, or takes the session of an earlier visitor with this login."""
        request, session_key = self.context.request, (self.product_url, login)
        self.context.add_cookies(SESSIONS.get(session_key, []))
        if session_key not in SESSIONS or request.get("/api/me").status != 200:
            request.get("/login/")
            tokens = {cookie["name"]: cookie["value"] for cookie in self.context.cookies()}
            form: dict[str, str | float | bool] = {
                "login": login,
                "password": password,
                "csrfmiddlewaretoken": tokens["servicebase_csrf"],
            }
            response = request.post("/login/", form=form, headers={"Referer": self.product_url}, max_redirects=0)
            assert response.status == 302, response.status
            SESSIONS[session_key] = self.context.cookies()
        return self

    def open(self, path: str) -> int:
        response = self.page.goto(path, wait_until="load")
        assert response is not None
        return response.status

    def overflow_px(self) -> int:
        """How many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

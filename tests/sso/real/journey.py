"""A browser that combines Django's test client for the product with real requests to the provider."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from tests.providers.real import RealProvider, Visitor

HTML_HEADERS = {"Accept": "text/html"}


class Journey:
    """The browser of one user, with the cookies of product and provider."""

    def __init__(self, provider: RealProvider) -> None:
        self.client = Client()
        self.visitor = Visitor(provider)

    def start(self, **parameters: str) -> str:
        """Starts a sign-in; returns the authorization URL to which `/sso/start/` redirects."""
        response = self.client.get("/sso/start/", parameters, headers=HTML_HEADERS)
        assert response.status_code == 302, response.content
        return str(response["Location"])

    def return_to(self, url: str) -> Any:
        parts = urlsplit(url)
        assert parts.netloc == "testserver", url
        if not parts.fragment:
            return self.client.get(f"{parts.path}?{parts.query}", headers=HTML_HEADERS)
        page = self.client.get(parts.path, headers=HTML_HEADERS)
        assert page.status_code == 200, page
        form = {name: value for name, value in parse_qsl(parts.fragment) if name in page.context["names"]}
        return self.client.post(parts.path, form, headers=HTML_HEADERS)

    def sign_in(self, login: str, **parameters: str) -> Any:
        return self.return_to(self.visitor.sign_in(self.start(**parameters), login))

    def sign_out(self) -> Any:
        """Signs out of product and provider; returns the response to the redirect back."""
        page = self.client.post("/logout/", headers=HTML_HEADERS)
        assert page.status_code == 200, page
        return self.return_to(self.visitor.sign_out(page.context["url"], dict(page.context["fields"])))

    @property
    def login(self) -> str | None:
        """The login of the signed-in user."""
        response = self.client.get("/account/")
        return str(response.context["user"].login) if response.status_code == 200 else None

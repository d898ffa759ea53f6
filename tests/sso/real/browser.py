"""A browser that combines Django's test client for the product with real requests to the provider."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from tests.providers.real import RealProvider, Visitor

HTML_HEADERS = {"Accept": "text/html"}


class Browser:
    """The browser of one user, with the cookies of product and provider."""

    def __init__(self, provider: RealProvider) -> None:
        self.client = Client()
        self.visitor = Visitor(provider)

    def start(self, **parameters: str) -> str:
        """Starts a sign-in; returns the authorization URL to which `/sso/start/` redirects."""
        response = self.client.get("/sso/start/", parameters, headers=HTML_HEADERS)
        assert response.status_code == 302, response.content
        return str(response["Location"])

    def follow_redirect(self, url: str) -> Any:
        parsed_url = urlsplit(url)
        assert parsed_url.netloc == "testserver", url
        if not parsed_url.fragment:
            return self.client.get(f"{parsed_url.path}?{parsed_url.query}", headers=HTML_HEADERS)
        page = self.client.get(parsed_url.path, headers=HTML_HEADERS)
        assert page.status_code == 200, page
        form = {name: value for name, value in parse_qsl(parsed_url.fragment) if name in page.context["names"]}
        return self.client.post(parsed_url.path, form, headers=HTML_HEADERS)

    def sign_in(self, login: str, **parameters: str) -> Any:
        return self.follow_redirect(self.visitor.sign_in(self.start(**parameters), login))

    def sign_out(self) -> Any:
        """Signs out of product and provider; returns the response after the redirect back to the product."""
        page = self.client.post("/logout/", headers=HTML_HEADERS)
        assert page.status_code == 200, page
        return self.follow_redirect(self.visitor.sign_out(page.context["url"], dict(page.context["fields"])))

    @property
    def login(self) -> str | None:
        """The login of the signed-in user."""
        response = self.client.get("/account/")
        return str(response.context["user"].login) if response.status_code == 200 else None

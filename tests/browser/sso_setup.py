"""A product and a certified identity provider, both over https, with browsers for both."""

import base64
import hashlib
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from playwright.sync_api import Browser, Page

from tests.config.stack import Stack
from tests.providers.real import (
    CLIENT_ID,
    CLIENT_SECRET,
    PASSWORD,
    RealProvider,
    client_registration,
    fragment_registration,
    public_registration,
)
from tests.system.outbound.certificates import CertificateWithKey, make_certificate

PUBLIC_CLIENT = {"authorization_type": "pkce", "client_id": "servicebase-pkce"}
FRAGMENT_CLIENT = {"authorization_type": "pkce", "client_id": "servicebase-fragment", "response_type": "id_token token"}


class Certificates:
    """A certificate authority, and its certificate for 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        authority_pair = make_certificate("Authority of the tests")
        server_pair = make_certificate("127.0.0.1", issuer=authority_pair, addresses=("127.0.0.1",))
        self.ca = self._write(folder / "ca.pem", authority_pair)
        self.certificate = self._write(folder / "certificate.pem", server_pair)
        public_key = server_pair.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.key_hash = base64.b64encode(hashlib.sha256(public_key).digest()).decode()
        self.key = folder / "key.pem"
        self.key.write_bytes(
            server_pair.key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )

    def _write(self, path: Path, pair: CertificateWithKey) -> Path:
        path.write_bytes(pair.certificate.public_bytes(serialization.Encoding.PEM))
        return path


class SecureStack(Stack):
    """A running product that uses https and trusts the authority of the tests."""

    def __init__(self, data_folder: Path, certificates: Certificates) -> None:
        super().__init__(
            data_folder,
            SVC_TLS_CERT=str(certificates.certificate),
            SVC_TLS_KEY=str(certificates.key),
            SVC_CA_BUNDLE=str(certificates.ca),
            SVC_ALLOW_HTTP_IDP="1",  # for loopback, and for ports other than 443
        )
        self.tls_context = ssl.create_default_context(cafile=str(certificates.ca))

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


class SsoSetup:
    """A product that is a client of a provider. Connections are created through the Table API."""

    def __init__(self, product: SecureStack, provider: RealProvider, credentials: tuple[str, str]) -> None:
        self.product, self.provider = product, provider
        self._authorization = "Basic " + base64.b64encode(":".join(credentials).encode()).decode()
        callback_url = product.url + "/sso/callback/"
        post_options = {"client_id": "servicebase-post", "token_endpoint_auth_method": "client_secret_post"}
        post_client = client_registration(callback_url, **post_options)
        provider.register(
            client_registration(callback_url),
            post_client,
            public_registration(callback_url),
            fragment_registration(callback_url),
        )

    def connect(self, realm: str = "main", **columns: Any) -> None:
        """Creates an active connection and deletes all others."""
        self.disconnect()
        payload = {
            "name": "Company account",
            "url_idp": self.provider.url,
            "realm": realm,
            "client_id": CLIENT_ID,
            "redirect_uri": self.product.url + "/sso/callback/",
            "active": True,
            "enable_user_creation": True,
            "authorization_type": "code",
            "user_field": "email",
            **columns,
        }
        if payload["authorization_type"] == "code":
            payload["client_secret"] = CLIENT_SECRET
        self._send("POST", "", payload)

    def disconnect(self) -> None:
        for record in self.connections():
            self._send("DELETE", f"/{record['sys_id']}")

    def connections(self) -> list[dict[str, Any]]:
        connections: list[dict[str, Any]] = self._send("GET", "")["data"]
        return connections

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.product.url}/rest/v1/table/oidc_setting{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": self._authorization, "Content-Type": "application/json"},
            method=method,
        )
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.product.tls_context)
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=30) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from None


class SsoVisitor:
    """A user with their own browser window, which may only open pages of the product and the provider."""

    def __init__(self, browser: Browser, product_url: str, provider_url: str) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 850}, base_url=product_url)
        self.page: Page = self.context.new_page()
        self.product_url, self.provider_url = product_url, provider_url
        self.problems: list[str] = []
        self.requested_urls: list[str] = []
        self.page.on("console", self._record_console_error)
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("request", lambda request: self._record_request(request.url))

    def _record_console_error(self, message: Any) -> None:
        if message.type == "error" and "status of 4" not in message.text and "status of 503" not in message.text:
            self.problems.append(f"{self.page.url}: {message.text} ({message.location['url']})")

    def _record_request(self, url: str) -> None:
        self.requested_urls.append(url)
        if not url.startswith((self.product_url, self.provider_url, "data:", "blob:")):
            self.problems.append(f"request to another host: {url}")

    def sign_in(self, login: str, password: str = PASSWORD) -> "SsoVisitor":
        """Signs in with the form of the provider."""
        self.page.goto("/")
        self.page.wait_for_url(f"{self.provider_url}/**")
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Continue").click()
        self.page.wait_for_url(f"{self.product_url}/**")
        return self

    def sign_in_locally(self, login: str, password: str) -> "SsoVisitor":
        self.page.goto("/login/?local=1")
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/")
        return self

    def check_greeting(self, name: str) -> bool:
        self.page.goto("/")
        self.page.get_by_role("heading", name=f"Hello, {name}").wait_for()
        return True


def fill_connection(page: Any, name: str, sso_setup: SsoSetup) -> None:
    page.locator("#id_name").fill(name)
    page.locator("#id_url_idp").fill(sso_setup.provider.url)
    page.locator("#id_realm").fill("main")
    page.locator("#id_client_id").fill("servicebase")
    page.locator("#id_client_secret").fill(CLIENT_SECRET)

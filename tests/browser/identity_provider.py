"""A product and a certified identity provider, both over https, with browsers that visit both."""

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

PUBLIC = {"authorization_type": "pkce", "client_id": "servicebase-pkce"}
FRAGMENT = {"authorization_type": "pkce", "client_id": "servicebase-fragment", "response_type": "id_token token"}


class Certificates:
    """One authority, and a certificate for 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        authority = make_certificate("Authority of the tests")
        leaf = make_certificate("127.0.0.1", issuer=authority, addresses=("127.0.0.1",))
        self.ca = self._write(folder / "ca.pem", authority)
        self.certificate = self._write(folder / "certificate.pem", leaf)
        public_key = leaf.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.key_hash = base64.b64encode(hashlib.sha256(public_key).digest()).decode()
        self.key = folder / "key.pem"
        self.key.write_bytes(
            leaf.key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )

    def _write(self, path: Path, pair: CertificateWithKey) -> Path:
        path.write_bytes(pair.certificate.public_bytes(serialization.Encoding.PEM))
        return path


class SecureStack(Stack):
    """A running product that speaks https and trusts the authority of the tests."""

    def __init__(self, data: Path, certificates: Certificates) -> None:
        super().__init__(
            data,
            SVC_TLS_CERT=str(certificates.certificate),
            SVC_TLS_KEY=str(certificates.key),
            SVC_CA_BUNDLE=str(certificates.ca),
            SVC_ALLOW_HTTP_IDP="1",  # for loopback, and for ports beside 443
        )
        self.trust = ssl.create_default_context(cafile=str(certificates.ca))

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


class Pairing:
    """The product as the provider's client; connections are made through the Table API."""

    def __init__(self, product: SecureStack, provider: RealProvider, administrator: tuple[str, str]) -> None:
        self.product, self.provider = product, provider
        self._basic = "Basic " + base64.b64encode(":".join(administrator).encode()).decode()
        callback = product.url + "/sso/callback/"
        in_form = client_registration(
            callback, client_id="servicebase-post", token_endpoint_auth_method="client_secret_post"
        )
        provider.register(
            client_registration(callback), in_form, public_registration(callback), fragment_registration(callback)
        )

    def connect(self, realm: str = "main", **columns: Any) -> None:
        """The only connection, active."""
        self.disconnect()
        values = {
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
        if values["authorization_type"] == "code":
            values["client_secret"] = CLIENT_SECRET
        self._ask("POST", "", values)

    def disconnect(self) -> None:
        for record in self.connections():
            self._ask("DELETE", f"/{record['sys_id']}")

    def connections(self) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self._ask("GET", "")["data"]
        return result

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.product.url}/rest/v1/table/oidc_setting{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": self._basic, "Content-Type": "application/json"},
            method=method,
        )
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.product.trust)
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=30) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from None


class Traveller:
    """Somebody with a browser window of their own, at the product and at the provider, nowhere else."""

    def __init__(self, browser: Browser, product: str, provider: str) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 850}, base_url=product)
        self.page: Page = self.context.new_page()
        self.product, self.provider = product, provider
        self.complaints: list[str] = []
        self.addresses: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        self.page.on("request", lambda request: self._note(request.url))

    def _hear(self, message: Any) -> None:
        if message.type == "error" and "status of 4" not in message.text and "status of 503" not in message.text:
            self.complaints.append(f"{self.page.url}: {message.text} ({message.location['url']})")

    def _note(self, url: str) -> None:
        self.addresses.append(url)
        if not url.startswith((self.product, self.provider, "data:", "blob:")):
            self.complaints.append(f"from outside: {url}")

    def sign_in(self, login: str, password: str = PASSWORD) -> "Traveller":
        """From `/` by way of the provider's form."""
        self.page.goto("/")
        self.page.wait_for_url(f"{self.provider}/**")
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Continue").click()
        self.page.wait_for_url(f"{self.product}/**")
        return self

    def sign_in_locally(self, login: str, password: str) -> "Traveller":
        self.page.goto("/login/?local=1")
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/")
        return self

    def greets(self, name: str) -> bool:
        self.page.goto("/")
        self.page.get_by_role("heading", name=f"Hello, {name}").wait_for()
        return True


def fill_connection(page: Any, name: str, pairing: Pairing) -> None:
    page.locator("#id_name").fill(name)
    page.locator("#id_url_idp").fill(pairing.provider.url)
    page.locator("#id_realm").fill("main")
    page.locator("#id_client_id").fill("servicebase")
    page.locator("#id_client_secret").fill(CLIENT_SECRET)

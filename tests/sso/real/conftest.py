"""The certified provider with the product as its client, and a browser for both."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from sso.connections.saving import save_connection
from sso.models import OidcSetting
from sso.scripts import mapping_script
from system import encryption
from tests.providers.real import (
    ALGORITHMS,
    CLIENT_ID,
    CLIENT_SECRET,
    RealProvider,
    client_registration,
    fragment_registration,
    public_registration,
)
from tests.sso.connections import CALLBACK_URL, VALID_COLUMNS
from tests.sso.real.browser import Browser


def register_clients(provider: RealProvider) -> None:
    algorithm_registrations = [
        client_registration(CALLBACK_URL, client_id=f"servicebase-{name.lower()}", id_token_signed_response_alg=name)
        for name in ALGORITHMS
    ]
    post_registration = client_registration(
        CALLBACK_URL, client_id="servicebase-post", token_endpoint_auth_method="client_secret_post"
    )
    provider.register(
        client_registration(CALLBACK_URL),
        post_registration,
        public_registration(CALLBACK_URL),
        fragment_registration(CALLBACK_URL),
        *algorithm_registrations,
    )


@pytest.fixture(autouse=True)
def long_script_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the time limit of scripts, which includes the start of a process and is too short on a busy machine."""
    monkeypatch.setattr(mapping_script, "MAX_RUN_S", 10.0)


@pytest.fixture(scope="package")
def running_provider() -> Iterator[RealProvider]:
    with RealProvider() as provider:
        yield provider


@pytest.fixture
def real_provider(running_provider: RealProvider, allow_http: None) -> RealProvider:
    """The provider with the same registered clients for every test."""
    register_clients(running_provider)
    return running_provider


@pytest.fixture
def browser(real_provider: RealProvider, db: None) -> Browser:
    return Browser(real_provider)


@pytest.fixture
def make_real_connection(real_provider: RealProvider, db: None, django_capture_on_commit_callbacks: Any) -> Any:
    """Saves an active connection to a realm as an administrator would, which looks up the endpoints."""

    def save_for_realm(realm: str = "main", **columns: Any) -> OidcSetting:
        setting = OidcSetting(
            **{
                **VALID_COLUMNS,
                # At any other URL, the provider without realms would be found.
                "url_idp": real_provider.url + ("/alone" if realm == "undiscovered" else ""),
                "realm": realm,
                "active": True,
                "authorization_type": "code",
                "client_id": CLIENT_ID,
                "enable_user_creation": True,
                **columns,
            }
        )
        if setting.authorization_type == "code":
            setting.client_secret = encryption.encrypt(CLIENT_SECRET)
        with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
            save_connection(setting)
        return OidcSetting.objects.get(pk=setting.pk)

    return save_for_realm

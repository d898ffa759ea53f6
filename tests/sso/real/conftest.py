"""The certified provider with the product registered as its client, and a browser between the two."""

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
    client,
    fragment_client,
    public_client,
)
from tests.sso.connections import CALLBACK, RIGHT
from tests.sso.real.journey import Journey


def register(provider: RealProvider) -> None:
    others = [
        client(CALLBACK, client_id=f"servicebase-{name.lower()}", id_token_signed_response_alg=name)
        for name in ALGORITHMS
    ]
    in_form = client(CALLBACK, client_id="servicebase-post", token_endpoint_auth_method="client_secret_post")
    provider.register(client(CALLBACK), in_form, public_client(CALLBACK), fragment_client(CALLBACK), *others)


@pytest.fixture(autouse=True)
def patient_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second that a script has is one of the clock; a busy machine of tests needs more to start its process."""
    monkeypatch.setattr(mapping_script, "MAX_RUN_S", 10.0)


@pytest.fixture(scope="package")
def running() -> Iterator[RealProvider]:
    with RealProvider() as real_provider:
        yield real_provider


@pytest.fixture
def real(running: RealProvider, http_allowed: None) -> RealProvider:
    """In the state in which every test finds it."""
    register(running)
    return running


@pytest.fixture
def journey(real: RealProvider, db: None) -> Journey:
    return Journey(real)


@pytest.fixture
def connect(real: RealProvider, db: None, django_capture_on_commit_callbacks: Any) -> Any:
    """Saves an active connection to a realm, as an administrator does: the endpoints are found by the save."""

    def make(realm: str = "main", **columns: Any) -> OidcSetting:
        setting = OidcSetting(
            **{
                **RIGHT,
                # Elsewhere the provider without realms would be found.
                "url_idp": real.url + ("/alone" if realm == "undiscovered" else ""),
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

    return make

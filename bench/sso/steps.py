"""In charge of what a sign-in costs on our side, step by step, and a refresh of many keys; runs inside the product."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402  (the apps must be loaded)
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from accounts.models import User  # noqa: E402
from sso.connections import certificate_updates  # noqa: E402
from sso.models import OidcSetting  # noqa: E402
from sso.provider import token_client  # noqa: E402
from sso.scripts import mapping_script  # noqa: E402
from sso.tokens import token_check  # noqa: E402
from system import encryption  # noqa: E402
from tests.providers.hostile import HostileProvider  # noqa: E402
from tests.providers.signing import jwk  # noqa: E402

TIMES = 40
MANY = 64
CALLBACK = "http://testserver/sso/callback/"


class Clock:
    """Milliseconds by step, for each sign-in."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[name] += 1000 * (time.perf_counter() - began)

    def around(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*positional: Any, **named: Any) -> Any:
            with self.step(name):
                return work(*positional, **named)

        return timed

    def query(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        with self.step("database"):
            return execute(*arguments)


def connected(idp: HostileProvider) -> OidcSetting:
    return OidcSetting.objects.create(
        name="Bench", url_idp=idp.url_idp, realm=idp.realm, authorization_type="code", client_id=idp.client_id,
        client_secret=encryption.encrypt(idp.client_secret), user_field="login", redirect_uri=CALLBACK, scope="openid",
        active=True, issuer=idp.issuer, authorization_endpoint=idp.url("auth"), token_endpoint=idp.url("token"),
        jwks_uri=idp.url("certs"), userinfo_endpoint=idp.url("userinfo"), end_session_endpoint=idp.url("logout"),
        algorithms=["RS256"],
    )  # fmt: skip


def one_sign_in(idp: HostileProvider, clock: Clock) -> None:
    client = Client()
    with clock.step("start"):
        location = client.get("/sso/start/")["Location"]
    back = urlsplit(idp.authorize(location))
    with connection.execute_wrapper(clock.query), clock.step("callback"):
        answer = client.get(f"{back.path}?{back.query}")
    if answer.status_code != 302:
        raise SystemExit(f"a sign-in was answered with {answer.status_code}")


def by_steps(idp: HostileProvider) -> None:
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(TIMES + 5):
        clock = Clock()
        with (
            patch.object(token_client, "redeem", clock.around("provider: token", token_client.redeem)),
            patch.object(token_client, "userinfo", clock.around("provider: userinfo", token_client.userinfo)),
            patch.object(token_check, "check", clock.around("token check", token_check.check)),
            patch.object(mapping_script, "run", clock.around("script", mapping_script.run)),
        ):
            one_sign_in(idp, clock)
        if number >= 5:
            for name, spent in clock.spent.items():
                found[name].append(spent)
    print(f"\nA sign-in, median of {TIMES}, milliseconds")
    for name, each in found.items():
        print(f"  {name:<20} {median(each):8.2f}")
    inside = [name for name in found if name not in ("start", "callback")]
    rest = median(found["callback"]) - sum(median(found[name]) for name in inside)
    print(f"  {'all other of ours':<20} {rest:8.2f}")


def of_certificates(idp: HostileProvider, setting: OidcSetting) -> None:
    print(f"\nA refresh of certificates, {MANY} keys, milliseconds")
    for what, names in (
        ("all new", [f"p256-a{number}" for number in range(MANY)]),
        ("nothing new", [f"p256-a{number}" for number in range(MANY)]),
        ("all others", [f"p256-b{number}" for number in range(MANY)]),
    ):
        idp.jwks = {"keys": [jwk(name) for name in names]}
        began = time.perf_counter()
        outcome = certificate_updates.refresh(*setting.pair, idp.url("certs"), reason=certificate_updates.FORM)
        print(f"  {what:<20} {1000 * (time.perf_counter() - began):8.1f}   {outcome}")


def main() -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    with HostileProvider() as idp:
        User.objects.create_user("ann", email="ann@example.com")
        setting = connected(idp)
        certificate_updates.refresh(*setting.pair, idp.url("certs"), reason=certificate_updates.FORM)
        by_steps(idp)
        of_certificates(idp, setting)
        setting.delete()


if __name__ == "__main__":
    main()

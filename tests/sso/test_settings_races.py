"""Connections changed concurrently in every way, with separate database connections."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.connections.saving import save_connection
from sso.models import IdpCertificate, OidcSetting, activation
from tests.sso.connections import CALLBACK, address, make, typed, welcome_page
from tests.sso.test_certificate_races import together
from tests.tableapi.test_write_concurrency import PATIENCE_S, beside, result, settle, stopping
from tests.tableapi.world import api

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 8
ROUNDS = [0, 1, 2, *(pytest.param(number, marks=pytest.mark.nightly) for number in range(3, 25))]


def at_once(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    waiting = list(jobs)
    return together(lambda: waiting.pop()(), len(jobs))


def by_form(user: User, setting: OidcSetting, **columns: Any) -> int:
    browser = Client()
    browser.force_login(user)
    return int(browser.post(address(setting), {**typed(setting, **columns), "_save": "1"}).status_code)


def by_api(user: User, setting: OidcSetting, **columns: Any) -> int:
    return int(api(user).patch(f"oidc_setting/{setting.pk}", columns).status_code)


def by_script(setting: OidcSetting, **columns: Any) -> int:
    mine = OidcSetting.objects.get(pk=setting.pk)
    for name, value in columns.items():
        setattr(mine, name, value)
    save_connection(mine)
    return 0


@pytest.fixture
def settings_made(transactional_db: Any) -> list[OidcSetting]:
    return [make(name=f"number {number}", realm=f"r{number}") for number in range(AT_ONCE)]


@pytest.mark.parametrize("turn", ROUNDS)
def test_concurrent_activations_all_succeed(  # A37
    settings_made: list[OidcSetting], alice: User, sonja: User, turn: int
):
    ways = (partial(by_form, alice), partial(by_form, sonja), partial(by_api, alice), partial(by_api, sonja), by_script)
    make(name="before", active=True)
    jobs = [
        partial(ways[(number + turn) % len(ways)], setting, active=True) for number, setting in enumerate(settings_made)
    ]
    statuses = at_once(jobs)

    assert set(statuses) <= {0, 200, 302}
    assert OidcSetting.objects.filter(active=True).count() == 1
    assert welcome_page() == CALLBACK


@pytest.mark.parametrize("turn", ROUNDS)
def test_concurrent_activation_deactivation_and_deletion(settings_made: list[OidcSetting], alice: User, turn: int):
    first, second, third, *_ = settings_made
    by_script(first, active=True)
    jobs: list[Callable[[], Any]] = [
        partial(by_api, alice, first, active=False),
        partial(by_form, alice, second, active=True),
        lambda: api(alice).delete(f"oidc_setting/{first.pk}").status_code,
        lambda: OidcSetting.objects.filter(pk=third.pk).delete() and 0,
        partial(by_api, alice, second, name="renamed"),
    ]
    statuses = at_once(jobs)

    assert set(statuses) <= {0, 200, 302, 404}
    assert OidcSetting.objects.filter(active=True).count() == 1 and welcome_page() == CALLBACK


def test_the_table_api_waits_before_locking_a_record(settings_made: list[OidcSetting], alice: User, monkeypatch: Any):
    """Otherwise it would hold the record that the one before it is about to deactivate, and both would wait."""
    first, second, *_ = settings_made
    by_script(first, active=True)
    reached, go = stopping(monkeypatch, activation, "deactivate_others")
    activating = beside(lambda: by_script(second, active=True))
    assert reached.wait(PATIENCE_S)
    changing = beside(lambda: by_api(alice, first, name="renamed"))
    assert settle(changing), "it waits for its turn"
    go.set()

    assert result(activating) == 0 and result(changing) == 200
    assert [connection.name for connection in OidcSetting.objects.filter(active=True)] == [second.name]
    assert first.refreshed().name == "renamed"


@pytest.mark.parametrize("turn", ROUNDS)
def test_two_records_of_one_pair_deleted_at_once_leave_no_certificate(
    transactional_db: Any, alice: User, turn: int
):  # A36
    pair = [make(name="first"), make(name="second")]
    IdpCertificate.objects.create(kid="k", url_idp=pair[0].url_idp, realm=pair[0].realm, json={"kty": "RSA"})
    statuses = at_once([pair[0].delete, lambda: api(alice).delete(f"oidc_setting/{pair[1].pk}").status_code])

    assert 200 in statuses
    assert not IdpCertificate.objects.exists()


@pytest.mark.parametrize("turn", ROUNDS)
def test_one_connection_leaves_a_pair_while_another_joins_it(transactional_db: Any, turn: int):
    """Either the keys stay for the one that came, or they went before: never a leftover of a pair nobody has."""
    leaving, coming = make(name="leaving"), make(name="coming", realm="other")
    IdpCertificate.objects.create(kid="k", url_idp=leaving.url_idp, realm=leaving.realm, json={"kty": "RSA"})
    IdpCertificate.objects.create(kid="k", url_idp=coming.url_idp, realm=coming.realm, json={"kty": "RSA"})
    at_once([partial(by_script, leaving, realm="third"), partial(by_script, coming, realm="acme")])

    assert {row.realm for row in IdpCertificate.objects.all()} <= {"acme"}

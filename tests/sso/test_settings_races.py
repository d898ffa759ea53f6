"""Concurrent changes of connections on every route, with separate database connections."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.connections.saving import save_connection
from sso.models import IdpCertificate, OidcSetting
from tests.sso.connections import CALLBACK_URL, connection_path, form_data, make_connection, welcome_page
from tests.sso.test_active_connection import store_keys
from tests.sso.test_certificate_races import run_concurrently
from tests.tableapi.test_write_concurrency import (
    THREAD_TIMEOUT_S,
    paused_call,
    result_of,
    run_in_thread,
    waits_for_lock,
)
from tests.tableapi.world import api

pytestmark = pytest.mark.django_db(transaction=True)

THREAD_COUNT = 8
REPETITIONS = [0, 1, 2, *(pytest.param(number, marks=pytest.mark.nightly) for number in range(3, 25))]


def run_jobs(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    pending_jobs = list(jobs)
    return run_concurrently(lambda: pending_jobs.pop()(), len(jobs))


def save_by_form(user: User, setting: OidcSetting, **columns: Any) -> int:
    browser = Client()
    browser.force_login(user)
    return int(browser.post(connection_path(setting), {**form_data(setting, **columns), "_save": "1"}).status_code)


def save_by_api(user: User, setting: OidcSetting, **columns: Any) -> int:
    return int(api(user).patch(f"oidc_setting/{setting.pk}", columns).status_code)


def save_by_script(setting: OidcSetting, **columns: Any) -> int:
    stored_setting = OidcSetting.objects.get(pk=setting.pk)
    for name, value in columns.items():
        setattr(stored_setting, name, value)
    save_connection(stored_setting)
    return 0


@pytest.fixture
def connections(transactional_db: Any) -> list[OidcSetting]:
    return [make_connection(name=f"number {number}", realm=f"r{number}") for number in range(THREAD_COUNT)]


@pytest.mark.parametrize("repetition", REPETITIONS)
def test_concurrent_activations_all_succeed(  # A37
    connections: list[OidcSetting], alice: User, sonja: User, repetition: int
):
    routes = (
        partial(save_by_form, alice),
        partial(save_by_form, sonja),
        partial(save_by_api, alice),
        partial(save_by_api, sonja),
        save_by_script,
    )
    make_connection(name="before", active=True)
    jobs = [
        partial(routes[(number + repetition) % len(routes)], setting, active=True)
        for number, setting in enumerate(connections)
    ]
    statuses = run_jobs(jobs)

    assert set(statuses) <= {0, 200, 302}
    assert OidcSetting.objects.filter(active=True).count() == 1
    assert welcome_page() == CALLBACK_URL


@pytest.mark.parametrize("repetition", REPETITIONS)
def test_concurrent_activation_deactivation_and_deletion(connections: list[OidcSetting], alice: User, repetition: int):
    first_setting, second_setting, third_setting, *_ = connections
    save_by_script(first_setting, active=True)
    jobs: list[Callable[[], Any]] = [
        partial(save_by_api, alice, first_setting, active=False),
        partial(save_by_form, alice, second_setting, active=True),
        lambda: api(alice).delete(f"oidc_setting/{first_setting.pk}").status_code,
        lambda: OidcSetting.objects.filter(pk=third_setting.pk).delete() and 0,
        partial(save_by_api, alice, second_setting, name="renamed"),
    ]
    statuses = run_jobs(jobs)

    assert set(statuses) <= {0, 200, 302, 404}
    assert OidcSetting.objects.filter(active=True).count() == 1 and welcome_page() == CALLBACK_URL


def test_the_table_api_waits_before_locking_a_record(connections: list[OidcSetting], alice: User, monkeypatch: Any):
    """Otherwise two saves would deadlock: each would hold the record that the other one needs."""
    first_setting, second_setting, *_ = connections
    save_by_script(first_setting, active=True)
    is_reached, release = paused_call(monkeypatch, OidcSetting, "_deactivate_others")
    activation_result = run_in_thread(lambda: save_by_script(second_setting, active=True))
    assert is_reached.wait(THREAD_TIMEOUT_S)
    change_result = run_in_thread(lambda: save_by_api(alice, first_setting, name="renamed"))
    assert waits_for_lock(change_result), "the change waits for the lock"
    release.set()

    assert result_of(activation_result) == 0 and result_of(change_result) == 200
    assert [setting.name for setting in OidcSetting.objects.filter(active=True)] == [second_setting.name]
    assert first_setting.refreshed().name == "renamed"


@pytest.mark.parametrize("repetition", REPETITIONS)
def test_deleting_both_connections_of_a_pair_concurrently_leaves_no_certificate(
    transactional_db: Any, alice: User, repetition: int
):  # A36
    first_setting, second_setting = make_connection(name="first"), make_connection(name="second")
    store_keys(first_setting, "k")
    statuses = run_jobs(
        [first_setting.delete, lambda: api(alice).delete(f"oidc_setting/{second_setting.pk}").status_code]
    )

    assert 200 in statuses
    assert not IdpCertificate.objects.exists()


@pytest.mark.parametrize("repetition", REPETITIONS)
def test_one_connection_leaves_a_pair_while_another_joins_it(transactional_db: Any, repetition: int):
    """Keys are kept only if a connection has their pair; none remain for an unused pair."""
    leaving_setting, joining_setting = make_connection(name="leaving"), make_connection(name="joining", realm="other")
    for setting in (leaving_setting, joining_setting):
        store_keys(setting, "k")
    leave, join = partial(save_by_script, realm="third"), partial(save_by_script, realm="acme")
    run_jobs([partial(leave, leaving_setting), partial(join, joining_setting)])

    assert {certificate.realm for certificate in IdpCertificate.objects.all()} <= {"acme"}

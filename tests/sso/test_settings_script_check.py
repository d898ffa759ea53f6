"""A connection's script runs before its save takes the lock, so that no other save waits for a process."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from sso.connections.saving import save_connection
from sso.models import OidcSetting, activation, advisory_locks
from sso.scripts import mapping_script
from tests.collections_app.ingest.processes import another_connection
from tests.sso.connections import RIGHT, make
from tests.sso.test_settings_races import by_api, by_form, by_script
from tests.tableapi.world import api, failed, rule

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = "function map(claims) {\n  return {login: claims.sub, email: claims.email}\n}"
OTHER = "function map(claims) { return {login: claims.name, email: claims.email} }"
BROKEN = "function map("


@pytest.fixture
def runs(sonja: User, monkeypatch: Any) -> list[tuple[str, bool]]:
    """The scripts that are run to be checked, and whether another connection could take its turn meanwhile."""
    know_the_rules(sonja)
    results: list[tuple[str, bool]] = []
    run = mapping_script.check_script

    def noted(source: str) -> None:
        with another_connection() as other:
            request = other.execute("SELECT pg_try_advisory_xact_lock(%s)", [advisory_locks.CONNECTIONS_LOCK])
            results.append((source, request.fetchone() == (True,)))
        run(source)

    monkeypatch.setattr(mapping_script, "check_script", noted)
    return results


def know_the_rules(sonja: User) -> None:
    """A request that finds them changed is worked on twice, and so is its script."""
    assert api(sonja).get("oidc_setting").status_code == 200


def put(user: User, setting: OidcSetting, **columns: Any) -> int:
    return int(api(user).put(f"oidc_setting/{setting.pk}", {**RIGHT, **columns}).status_code)


Way = Callable[..., int]
WAYS: dict[str, Way] = {
    "form": by_form,
    "patch": by_api,
    "put": put,
    "save": lambda user, setting, **columns: by_script(setting, **columns),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_script_runs_before_the_lock_is_taken(runs: list[Any], sonja: User, way: Way):
    setting = make()
    assert way(sonja, setting, script=GOOD.replace("\n", "\r\n")) in (0, 200, 302)

    assert setting.refreshed().script == GOOD
    assert runs == [(GOOD, True)]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_activating_checks_the_script_before_the_lock_is_taken(runs: list[Any], sonja: User, way: Way):
    setting = make(script=GOOD)
    runs.clear()
    assert way(sonja, setting, script=GOOD, active=True) in (0, 200, 302)

    assert setting.refreshed().active
    assert runs == [(GOOD, True)]


def test_activating_by_itself_checks_the_stored_script(runs: list[Any], sonja: User):
    setting = make(script=GOOD)
    runs.clear()
    assert by_api(sonja, setting, active=True) == 200

    assert setting.refreshed().active
    assert runs == [(GOOD, True)]


def test_a_new_connection_checks_its_script_once(runs: list[Any], sonja: User, http_allowed: None):
    new = {**RIGHT, "url_idp": "http://127.0.0.1:9", "script": GOOD}  # where nobody answers the look after the save
    assert api(sonja).post("oidc_setting", new).status_code == 201
    make(script=OTHER)

    assert runs == [(GOOD, True), (OTHER, True)]


@pytest.mark.parametrize("script", [BROKEN, "function map() { for (;;) {} }", 7])
def test_a_refused_script_runs_once_before_the_lock(runs: list[Any], sonja: User, script: Any):
    setting = make()
    before = OidcSetting.objects.values().get()
    response = api(sonja).patch(f"oidc_setting/{setting.pk}", {"script": script})

    assert failed(response) == (422, "invalid_value", "script")
    assert OidcSetting.objects.values().get() == before
    assert runs == [(str(script), True)]


def test_unchanged_or_forbidden_scripts_do_not_run(runs: list[Any], sonja: User, bob: User):
    setting = make(script=GOOD)
    for operation in ("read", "write"):
        rule(operation, "oidc_setting")
    know_the_rules(sonja)
    runs.clear()
    assert by_api(sonja, setting, name="Renamed", script=GOOD, active=False) == 200
    assert by_api(sonja, setting, script=None) == 422
    assert by_api(bob, setting, script=OTHER) == 403
    assert api(sonja).patch("oidc_setting/0", {"script": OTHER}).status_code == 404
    rule("write", "oidc_setting", "script", roles=["itil"])
    know_the_rules(sonja)
    assert by_api(sonja, setting, script=OTHER) == 403

    assert runs == []


def changed_meanwhile(monkeypatch: Any, setting: OidcSetting, script: str) -> None:
    """Somebody else stores this script between the look ahead and the turn."""
    lock_for_change = activation.lock_for_change

    def late() -> None:
        OidcSetting.objects.filter(pk=setting.pk).update(script=script)
        lock_for_change()

    monkeypatch.setattr(activation, "lock_for_change", late)


def test_a_concurrently_stored_script_is_checked_under_the_lock(runs: list[Any], sonja: User, monkeypatch: Any):
    setting = make(script=GOOD)
    changed_meanwhile(monkeypatch, setting, BROKEN)
    response = api(sonja).patch(f"oidc_setting/{setting.pk}", {"active": True})

    assert response.status_code == 422 and not OidcSetting.get_active()
    assert [script for script, _ in runs][-2:] == [GOOD, BROKEN]
    mine = OidcSetting.objects.get()
    mine.active = True
    with pytest.raises(ValidationError, match="script check failed"):
        save_connection(mine, update_fields=["active"])


def test_a_concurrently_stored_valid_script_is_kept(sonja: User, monkeypatch: Any):
    setting = make(script=GOOD)
    changed_meanwhile(monkeypatch, setting, OTHER)
    assert by_api(sonja, setting, active=True) == 200

    stored = setting.refreshed()
    assert (stored.active, stored.script) == (True, OTHER)


def test_the_sent_script_replaces_a_concurrently_stored_one(sonja: User, monkeypatch: Any):
    setting = make()
    changed_meanwhile(monkeypatch, setting, OTHER)
    assert by_api(sonja, setting, script=GOOD) == 200

    assert setting.refreshed().script == GOOD

"""The script of a connection is checked before the save takes its lock, so other saves do not wait."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from sso.connections.saving import save_connection
from sso.models import OidcSetting, advisory_locks
from sso.scripts import mapping_script
from tests.collections_app.ingest.processes import another_connection
from tests.sso.connections import VALID_COLUMNS, make_connection
from tests.sso.test_settings_races import save_by_api, save_by_form, save_by_script
from tests.tableapi.world import api, error_of, rule

pytestmark = pytest.mark.django_db(transaction=True)

VALID_SCRIPT = "function map(claims) {\n  return {login: claims.sub, email: claims.email}\n}"
OTHER_SCRIPT = "function map(claims) { return {login: claims.name, email: claims.email} }"
BROKEN_SCRIPT = "function map("


@pytest.fixture
def script_runs(sonja: User, monkeypatch: Any) -> list[tuple[str, bool]]:
    """Each checked script, and whether the lock was free during its check."""
    load_access_rules(sonja)
    recorded_runs: list[tuple[str, bool]] = []
    original_check_script = mapping_script.check_script

    def record_run(source: str, custom_columns: Any) -> None:
        with another_connection() as other_connection:
            lock_result = other_connection.execute(
                "SELECT pg_try_advisory_xact_lock(%s)", [advisory_locks.CONNECTIONS_LOCK]
            )
            recorded_runs.append((source, lock_result.fetchone() == (True,)))
        original_check_script(source, custom_columns)

    monkeypatch.setattr(mapping_script, "check_script", record_run)
    return recorded_runs


def load_access_rules(sonja: User) -> None:
    """Loads the rules first, because a request is repeated, with its script check, if rules have changed."""
    assert api(sonja).get("oidc_setting").status_code == 200


def put_setting(user: User, setting: OidcSetting, **columns: Any) -> int:
    return int(api(user).put(f"oidc_setting/{setting.pk}", {**VALID_COLUMNS, **columns}).status_code)


SaveFunction = Callable[..., int]
SAVE_FUNCTIONS: dict[str, SaveFunction] = {
    "form": save_by_form,
    "patch": save_by_api,
    "put": put_setting,
    "save": lambda user, setting, **columns: save_by_script(setting, **columns),
}


@pytest.mark.parametrize("save", SAVE_FUNCTIONS.values(), ids=SAVE_FUNCTIONS)
def test_a_script_runs_before_the_lock_is_taken(script_runs: list[Any], sonja: User, save: SaveFunction):
    setting = make_connection()
    assert save(sonja, setting, script=VALID_SCRIPT.replace("\n", "\r\n")) in (0, 200, 302)

    assert setting.refreshed().script == VALID_SCRIPT
    assert script_runs == [(VALID_SCRIPT, True)]


@pytest.mark.parametrize("save", SAVE_FUNCTIONS.values(), ids=SAVE_FUNCTIONS)
def test_activating_checks_the_script_before_the_lock_is_taken(script_runs: list[Any], sonja: User, save: SaveFunction):
    setting = make_connection(script=VALID_SCRIPT)
    script_runs.clear()
    assert save(sonja, setting, script=VALID_SCRIPT, active=True) in (0, 200, 302)

    assert setting.refreshed().active
    assert script_runs == [(VALID_SCRIPT, True)]


def test_activation_alone_checks_the_stored_script(script_runs: list[Any], sonja: User):
    setting = make_connection(script=VALID_SCRIPT)
    script_runs.clear()
    assert save_by_api(sonja, setting, active=True) == 200

    assert setting.refreshed().active
    assert script_runs == [(VALID_SCRIPT, True)]


def test_a_new_connection_checks_its_script_once(script_runs: list[Any], sonja: User, allow_http: None):
    columns = {
        **VALID_COLUMNS,
        "url_idp": "http://127.0.0.1:9",
        "script": VALID_SCRIPT,
    }  # nothing listens at this address, so the discovery after the save fails
    assert api(sonja).post("oidc_setting", columns).status_code == 201
    make_connection(script=OTHER_SCRIPT)

    assert script_runs == [(VALID_SCRIPT, True), (OTHER_SCRIPT, True)]


@pytest.mark.parametrize("script", [BROKEN_SCRIPT, "function map() { for (;;) {} }", 7])
def test_a_refused_script_runs_once_before_the_lock(script_runs: list[Any], sonja: User, script: Any):
    setting = make_connection()
    row_before = OidcSetting.objects.values().get()
    response = api(sonja).patch(f"oidc_setting/{setting.pk}", {"script": script})

    assert error_of(response) == (422, "invalid_value", "script")
    assert OidcSetting.objects.values().get() == row_before
    assert script_runs == [(str(script), True)]


def test_unchanged_or_forbidden_scripts_do_not_run(script_runs: list[Any], sonja: User, bob: User):
    setting = make_connection(script=VALID_SCRIPT)
    for operation in ("read", "write"):
        rule(operation, "oidc_setting")
    load_access_rules(sonja)
    script_runs.clear()
    assert save_by_api(sonja, setting, name="Renamed", script=VALID_SCRIPT, active=False) == 200
    assert save_by_api(sonja, setting, script=None) == 422
    assert save_by_api(bob, setting, script=OTHER_SCRIPT) == 403
    assert api(sonja).patch("oidc_setting/0", {"script": OTHER_SCRIPT}).status_code == 404
    rule("write", "oidc_setting", "script", roles=["itil"])
    load_access_rules(sonja)
    assert save_by_api(sonja, setting, script=OTHER_SCRIPT) == 403

    assert script_runs == []


def change_script_during_check(monkeypatch: Any, setting: OidcSetting, script: str) -> None:
    """Makes another user store this script between the check and the lock."""
    original_lock = OidcSetting.lock_for_change

    def change_and_lock() -> None:
        OidcSetting.objects.filter(pk=setting.pk).update(script=script)
        original_lock()

    monkeypatch.setattr(OidcSetting, "lock_for_change", staticmethod(change_and_lock))


def test_a_concurrently_stored_script_is_checked_under_the_lock(script_runs: list[Any], sonja: User, monkeypatch: Any):
    setting = make_connection(script=VALID_SCRIPT)
    change_script_during_check(monkeypatch, setting, BROKEN_SCRIPT)
    response = api(sonja).patch(f"oidc_setting/{setting.pk}", {"active": True})

    assert response.status_code == 422 and not OidcSetting.get_active()
    assert [script for script, _ in script_runs][-2:] == [VALID_SCRIPT, BROKEN_SCRIPT]
    stored_setting = OidcSetting.objects.get()
    stored_setting.active = True
    with pytest.raises(ValidationError, match="script check failed"):
        save_connection(stored_setting, update_fields=["active"])


def test_a_concurrently_stored_valid_script_is_kept(sonja: User, monkeypatch: Any):
    setting = make_connection(script=VALID_SCRIPT)
    change_script_during_check(monkeypatch, setting, OTHER_SCRIPT)
    assert save_by_api(sonja, setting, active=True) == 200

    stored_setting = setting.refreshed()
    assert (stored_setting.active, stored_setting.script) == (True, OTHER_SCRIPT)


def test_the_sent_script_replaces_a_concurrently_stored_one(sonja: User, monkeypatch: Any):
    setting = make_connection()
    change_script_during_check(monkeypatch, setting, OTHER_SCRIPT)
    assert save_by_api(sonja, setting, script=VALID_SCRIPT) == 200

    assert setting.refreshed().script == VALID_SCRIPT

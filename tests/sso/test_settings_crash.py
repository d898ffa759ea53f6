"""If a process is killed during a save, the active connection stays active."""

from typing import Any

import pytest

from accounts.models import User
from sso.models import OidcSetting
from tests.collections_app.ingest.processes import (
    block_writes,
    running_worker,
    wait_for_blocked_connection,
    wait_until_gone,
)
from tests.sso.connections import CALLBACK_URL, make_connection, welcome_page
from tests.sso.test_active_connection import OTHER_URL, active_names
from tests.sso.test_settings_races import save_by_script

pytestmark = pytest.mark.django_db(transaction=True)

# A web process: only it has the pages of the administration.
SAVE_SCRIPT = """
import os; os.environ["SVC_PROCESS"] = "web"
import django; django.setup()
from accounts.models import User
from sso.models import OidcSetting
from tests.sso.test_settings_races import save_by_form, save_by_script
from tests.tableapi.world import api
sonja, second_setting = User.objects.get(login="sonja"), OidcSetting.objects.get(name="second")
"""
SAVE_STATEMENTS = {
    "form": "save_by_form(sonja, second_setting, active=True)",
    "table api": """api(sonja, credential="key").patch(f"oidc_setting/{second_setting.pk}", {"active": True})""",
    "model": "save_by_script(second_setting, active=True)",
}
# The save stops at this table: after deactivating the first, or after activating the second connection.
BLOCKED_TABLES = ("sso_historicaloidcsetting", "sys_property")


@pytest.mark.parametrize("table", BLOCKED_TABLES)
@pytest.mark.parametrize("save_statement", SAVE_STATEMENTS.values(), ids=SAVE_STATEMENTS)
def test_a_save_whose_process_is_killed_leaves_the_old_connection_active(  # A38
    sonja: User, monkeypatch: Any, save_statement: str, table: str
):
    make_connection(name="first", active=True)
    second_setting = make_connection(name="second", redirect_uri=OTHER_URL)
    rows_before = list(OidcSetting.objects.order_by("name").values())
    monkeypatch.setenv("ALLOWED_HOSTS", "testserver")
    with block_writes(table), running_worker("-c", SAVE_SCRIPT + save_statement) as saving_process:
        blocked_pid = wait_for_blocked_connection("web")
        saving_process.kill()
    wait_until_gone(blocked_pid)

    assert list(OidcSetting.objects.order_by("name").values()) == rows_before
    assert (active_names(), welcome_page()) == (["first"], CALLBACK_URL)
    save_by_script(second_setting, active=True)  # the lock ended with the process
    assert (active_names(), welcome_page()) == (["second"], OTHER_URL)

"""A process that is killed during a save: the active connection stays active."""

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
from tests.sso.connections import CALLBACK, make, welcome_page
from tests.sso.test_settings_active import OTHER, active
from tests.sso.test_settings_races import by_script

pytestmark = pytest.mark.django_db(transaction=True)

# A web process, which alone has the pages of the administration.
SAVE = """
import os; os.environ["SVC_PROCESS"] = "web"
import django; django.setup()
from accounts.models import User
from sso.models import OidcSetting
from tests.sso.test_settings_races import by_form, by_script
from tests.tableapi.world import api
sonja, second = User.objects.get(login="sonja"), OidcSetting.objects.get(name="second")
"""
WAYS = {
    "form": "by_form(sonja, second, active=True)",
    "table api": """api(sonja, by="key").patch(f"oidc_setting/{second.pk}", {"active": True})""",
    "model": "by_script(second, active=True)",
}
# Where it is killed: the first is switched off; the second is on too, and the welcome page is about to follow.
STEPS = ("sso_historicaloidcsetting", "sys_property")


@pytest.mark.parametrize("table", STEPS)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_save_whose_process_is_killed_half_way_leaves_the_old_one_active(  # A38
    sonja: User, monkeypatch: Any, way: str, table: str
):
    make(name="first", active=True)
    second = make(name="second", redirect_uri=OTHER)
    before = list(OidcSetting.objects.order_by("name").values())
    monkeypatch.setenv("ALLOWED_HOSTS", "testserver")
    with block_writes(table), running_worker("-c", SAVE + way) as saving:
        waiting = wait_for_blocked_connection("web")
        saving.kill()
    wait_until_gone(waiting)

    assert list(OidcSetting.objects.order_by("name").values()) == before
    assert (active(), welcome_page()) == (["first"], CALLBACK)
    by_script(second, active=True)  # the lock went with the process
    assert (active(), welcome_page()) == (["second"], OTHER)

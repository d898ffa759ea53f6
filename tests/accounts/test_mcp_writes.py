"""Access keys that may write through MCP; tests/agents tests what they may."""

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.authentication import access_keys
from accounts.models import AccessKey, User
from tests.tableapi.designs import query_rows

pytestmark = pytest.mark.django_db


def test_right_is_off_by_default(bob: User):
    access_keys.create_key(bob, "script", expires_at=None)
    access_keys.create_login_key(bob)
    assert set(AccessKey.objects.values_list("mcp_writes", flat=True)) == {False}
    (default,) = query_rows(
        "SELECT column_default FROM information_schema.columns WHERE table_name = 'accounts_access_key' "
        "AND column_name = 'mcp_writes'"
    )[0]
    assert default == "false"  # of existing keys


def test_pages_and_command_offer_the_right(as_bob: Client, bob: User, as_alice: Client):
    as_bob.post("/account/keys/", {"name": "agent", "days": "30", "mcp_writes": "on"})
    assert AccessKey.objects.get(name="agent").mcp_writes
    assert "writes through MCP" in as_bob.get("/account/").content.decode()

    form = {"user": bob.pk, "name": "desktop", "mcp_writes": "on"}
    as_alice.post("/admin/accounts/accesskey/add/", form)
    key = AccessKey.objects.get(name="desktop")
    assert key.mcp_writes
    as_alice.post(f"/admin/accounts/accesskey/{key.pk}/change/", {"name": "desktop"})
    assert not AccessKey.objects.get(name="desktop").mcp_writes

    call_command("key", "bob", "console", mcp_writes=True)
    assert AccessKey.objects.get(name="console").mcp_writes
    call_command("key", "bob", "other")
    assert not AccessKey.objects.get(name="other").mcp_writes

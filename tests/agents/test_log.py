"""The log has the tool, the person and the key of each call, and never arguments."""

from typing import Any

import pytest

from accounts.models import AccessKey, User
from tests.agents.agent_calls import Agent, post, tool_call

pytestmark = pytest.mark.django_db


def test_call_is_logged_without_arguments(agent: Agent, desk: User, capfd: Any):
    calls = [
        tool_call("query_records", table="task", query="short_descriptionLIKEtopsecret"),
        tool_call("query_records", table="topsecret"),
        tool_call("create_record", table="task", values={"short_description": "topsecret"}),
        tool_call("query_records", topsecret=1),
        tool_call("topsecret"),
    ]
    for call in calls:
        post(agent.key, call)

    output = capfd.readouterr().err
    assert "topsecret" not in output and agent.key not in output
    lines = [line for line in output.splitlines() if "tool_called" in line]
    key_id = AccessKey.objects.get().pk
    assert len(lines) == 4 and all(desk.pk in line and key_id in line for line in lines)
    assert "tool='query_records'" in lines[0] or "tool=query_records" in lines[0]

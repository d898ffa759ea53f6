"""The SDK's own clients, in both revisions."""

from typing import Any

import pytest
from mcp import ClientSession, MCPError
from mcp.client.client import Client

from accounts.models import User
from agents import tools
from agents.http.exchange import CURRENT_VERSION
from tests.agents.agent_calls import content, make_key, with_client, with_session

pytestmark = pytest.mark.django_db


def test_client_speaks_the_current_revision(desk: User):
    async def talk(client: Client) -> Any:
        listed = await client.list_tools()
        result = await client.call_tool("query_records", {"table": "task", "limit": 1})
        return client.protocol_version, client.server_info, listed, result

    version, server, listed, result = with_client(make_key(desk), talk)

    assert (version, server.name) == (CURRENT_VERSION, "servicebase")
    assert [tool.name for tool in listed.tools] == [name for name, tool in tools.TOOLS.items() if not tool.writes]
    assert not result.is_error and len(content(result)["records"]) == 1


@pytest.mark.parametrize("mode", ["legacy", "auto", CURRENT_VERSION])
def test_client_connects_in_each_mode(desk: User, mode: Any):
    async def talk(client: Client) -> Any:
        return content(await client.call_tool("list_tables", {}))

    assert "task" in [table["name"] for table in with_client(make_key(desk), talk, mode=mode)["tables"]]


def test_session_begins_with_the_handshake(desk: User):
    async def talk(session: ClientSession) -> Any:
        await session.send_ping()
        listed = await session.list_tools()
        return session.protocol_version, listed, await session.call_tool("describe_table", {"table": "task"})

    version, listed, result = with_session(make_key(desk, mcp_writes=True), talk)

    assert version == "2025-11-25"
    assert [tool.name for tool in listed.tools] == list(tools.TOOLS)
    assert content(result)["name"] == "task"


@pytest.mark.parametrize("connect", [with_client, with_session])
def test_clients_get_the_errors_of_the_protocol(desk: User, connect: Any):
    async def talk(client: Any) -> Any:
        with pytest.raises(MCPError) as unknown_tool:
            await client.call_tool("nothing", {})
        wrong_arguments = await client.call_tool("query_records", {"table": 1, "columns": "number"})
        return unknown_tool.value.error, wrong_arguments

    error, result = connect(make_key(desk), talk)

    assert (error.code, error.message) == (-32602, "Unknown tool: nothing")
    assert result.is_error
    assert {item["field"] for item in content(result)["errors"]} == {"table", "columns"}


def test_revoked_key_is_refused(desk: User):
    async def talk(client: Client) -> None:
        raise AssertionError

    with pytest.raises(BaseExceptionGroup) as refusal:
        with_client("sb_" + "x" * 43, talk)
    assert refusal.group_contains(MCPError, match="Authentication is required")


def test_each_tool_explains_itself(desk: User):
    async def talk(client: Client) -> Any:
        return (await client.list_tools()).tools

    for tool in with_client(make_key(desk, mcp_writes=True), talk):
        schema = tool.input_schema
        assert len(tool.description) > 30 and schema["additionalProperties"] is False, tool.name
        assert tool.annotations.read_only_hint is not tools.TOOLS[tool.name].writes
        described = [name for name, argument in schema["properties"].items() if "description" in argument]
        assert {*schema["properties"]} - {*described} <= {"limit"}, tool.name

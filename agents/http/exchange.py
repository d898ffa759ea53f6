"""Answers one message: envelope → revision → method → result.

               2026-07-28                        2025-11-25
first request  any                               initialize
revision       in the header and in `_meta`      in the header, or nowhere
errors         have the HTTP status 400 or 404   have the status 200 once the message is valid
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as mcp
from django.conf import settings
from django.http import HttpRequest
from pydantic import BaseModel, ValidationError

from accounts.models import User
from agents import tools
from agents.http.errors import ProtocolError
from agents.tools.registry import Agent

CURRENT_VERSION = "2026-07-28"
HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18")  # equal in all that is used here
VERSION_KEY, CAPABILITIES_KEY = mcp.PROTOCOL_VERSION_META_KEY, mcp.CLIENT_CAPABILITIES_META_KEY
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
SERVER_INFO = mcp.Implementation(name="servicebase", title="Servicebase", version=settings.VERSION)
CAPABILITIES = mcp.ServerCapabilities(tools=mcp.ToolsCapability())
INSTRUCTIONS = (
    "Servicebase holds records in tables, and documents in collections. You see and change what the owner of the "
    "access key may. Start with list_tables and describe_table, or with search_documents."
)


def answer(request: HttpRequest, user: User, body: Any) -> dict[str, Any] | None:
    """The response to a request; None for a notification, because none has an effect here."""
    model = mcp.JSONRPCRequest if isinstance(body, dict) and "id" in body else mcp.JSONRPCNotification
    try:
        message = model.model_validate(body)
    except ValidationError:
        text = "The body must be one JSON-RPC request or notification. Batches are not supported."
        raise ProtocolError(mcp.INVALID_REQUEST, text) from None
    if not isinstance(message, mcp.JSONRPCRequest):
        return None
    params, version = message.params or {}, request.headers.get(VERSION_HEADER)
    is_current = version not in (None, *HANDSHAKE_VERSIONS) or VERSION_KEY in read_meta(params)
    try:
        if is_current:
            check_envelope(message.method, params, request.headers)
        method = (CURRENT_METHODS if is_current else HANDSHAKE_METHODS).get(message.method)
        if method is None:
            raise ProtocolError(mcp.METHOD_NOT_FOUND, "Method not found", status=404)
        result = method(Agent(user, request), params)
    except ProtocolError as error:
        error.request_id = message.id
        error.status = error.status if is_current else 200  # type: ignore[misc]
        raise
    if is_current:
        result.meta = {mcp.SERVER_INFO_META_KEY: SERVER_INFO.model_dump(exclude_none=True)}
    content = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {"jsonrpc": "2.0", "id": message.id, "result": content}


def read_meta(params: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def check_envelope(method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    meta, version, supported = read_meta(params), headers.get(VERSION_HEADER), [CURRENT_VERSION, *HANDSHAKE_VERSIONS]
    if version is not None and version not in supported:
        data = {"supported": supported, "requested": version}
        raise ProtocolError(mcp.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data=data)
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        raise ProtocolError(mcp.INVALID_PARAMS, f"params._meta must contain {' and '.join(missing)}.")
    expected = {VERSION_HEADER: meta[VERSION_KEY], METHOD_HEADER: method}
    if method == "tools/call":
        expected[NAME_HEADER] = params.get("name")
    for name, value in expected.items():
        # A name that the header would have to encode is that of no tool.
        if headers.get(name) != value:
            raise ProtocolError(mcp.HEADER_MISMATCH, f"The {name} header does not match the body.")


def read_params(model: type[BaseModel], params: dict[str, Any]) -> Any:
    try:
        return model.model_validate(params, by_name=False)
    except ValidationError as error:
        paths = sorted({".".join(map(str, problem["loc"])) for problem in error.errors()})
        raise ProtocolError(mcp.INVALID_PARAMS, f"Invalid params: {', '.join(paths)[:200]}") from None


def discover(agent: Agent, params: dict[str, Any]) -> mcp.Result:
    versions = [CURRENT_VERSION]
    return mcp.DiscoverResult(supported_versions=versions, capabilities=CAPABILITIES, instructions=INSTRUCTIONS)


def initialize(agent: Agent, params: dict[str, Any]) -> mcp.Result:
    version = read_params(mcp.InitializeRequestParams, params).protocol_version
    return mcp.InitializeResult(
        protocol_version=version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0],
        capabilities=CAPABILITIES,
        server_info=SERVER_INFO,
        instructions=INSTRUCTIONS,
    )


def list_tools(agent: Agent, params: dict[str, Any]) -> mcp.Result:
    if read_params(mcp.PaginatedRequestParams, params).cursor is not None:
        raise ProtocolError(mcp.INVALID_PARAMS, "The list has one page. Send no cursor.")
    offered = [tool.listing for tool in tools.TOOLS.values() if agent.may_write or not tool.writes]
    return mcp.ListToolsResult(tools=offered)


def call_tool(agent: Agent, params: dict[str, Any]) -> mcp.Result:
    call = read_params(mcp.CallToolRequestParams, params)
    tool = tools.TOOLS.get(call.name)
    if tool is None:
        raise ProtocolError(mcp.INVALID_PARAMS, f"Unknown tool: {call.name[:80]}")
    content, is_error = tools.call(agent, tool, call.arguments or {})
    text = json.dumps(content, ensure_ascii=False, default=str)
    return mcp.CallToolResult(content=[mcp.TextContent(text=text)], is_error=is_error)


Method = Callable[[Agent, dict[str, Any]], mcp.Result]
TOOL_METHODS: dict[str, Method] = {"tools/list": list_tools, "tools/call": call_tool}
CURRENT_METHODS: dict[str, Method] = {"server/discover": discover, **TOOL_METHODS}
HANDSHAKE_METHODS: dict[str, Method] = {
    "initialize": initialize,
    "ping": lambda agent, params: mcp.EmptyResult(),
    **TOOL_METHODS,
}

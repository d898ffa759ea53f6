"""Messages: both revisions, and the error of each kind of bad input."""

from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from agents.http.exchange import CURRENT_VERSION, HANDSHAKE_VERSIONS
from agents.http.view import MAX_REQUEST_BYTES
from agents.tools import TOOLS
from tests.agents.agent_calls import make_key, post, tool_call

pytestmark = pytest.mark.django_db
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
META = {
    "io.modelcontextprotocol/protocolVersion": CURRENT_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
def key(alice: User) -> str:
    return make_key(alice)


def message(method: str, params: Any = None, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, **({} if params is None else {"params": params}), **members}


def current(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A message of the current revision, and its headers."""
    headers = {"MCP-Protocol-Version": CURRENT_VERSION, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return message(method, {"_meta": META, **params}), headers


def error_of(response: Any) -> tuple[int, int, Any]:
    """The HTTP status, the code and the id."""
    body = response.json()
    assert body.keys() == {"jsonrpc", "id", "error"} and body["error"]["message"]
    return response.status_code, body["error"]["code"], body["id"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", INVALID_REQUEST),
        (b"{", PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": NaN}}', PARSE_ERROR),
        (b"[" * 50 + b"]" * 50, PARSE_ERROR),
        (b"\xff", PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "a\\u0000"}', PARSE_ERROR),
        (b"null", INVALID_REQUEST),
        (b'"ping"', INVALID_REQUEST),
        (b"{}", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
        ([message("ping"), message("ping")], INVALID_REQUEST),
        (message("ping") | {"jsonrpc": "1.0"}, INVALID_REQUEST),
        (message("ping") | {"id": None}, INVALID_REQUEST),
        (message("ping") | {"id": 1.5}, INVALID_REQUEST),
        (message("ping") | {"id": True}, INVALID_REQUEST),
        (message("ping") | {"id": {}}, INVALID_REQUEST),
        (message("ping") | {"method": 1}, INVALID_REQUEST),
        (message("ping", ["a"]), INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "params": {}}, INVALID_REQUEST),
    ],
)
def test_body_that_is_no_message_is_refused(key: str, body: Any, code: int):
    assert error_of(post(key, body)) == (400, code, None)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (message("nothing"), METHOD_NOT_FOUND),
        (message("resources/list"), METHOD_NOT_FOUND),
        (message("server/discover"), METHOD_NOT_FOUND),
        (message("initialize"), INVALID_PARAMS),
        (message("initialize", {**INITIALIZE, "protocolVersion": 3}), INVALID_PARAMS),
        (message("tools/list", {"cursor": "a"}), INVALID_PARAMS),
        (message("tools/list", {"cursor": 1}), INVALID_PARAMS),
        (message("tools/call"), INVALID_PARAMS),
        (message("tools/call", {"name": 1}), INVALID_PARAMS),
        (message("tools/call", {"name": "list_tables", "arguments": []}), INVALID_PARAMS),
        (message("tools/call", {"name": "nothing"}), INVALID_PARAMS),
    ],
)
def test_bad_request_after_the_handshake_gets_an_error_with_its_id(key: str, body: Any, code: int):
    assert error_of(post(key, body)) == (200, code, 7)


@pytest.mark.parametrize("method", ["ping", "initialize", "nothing", "logging/setLevel"])
def test_method_that_the_current_revision_lacks_is_not_found(key: str, method: str):
    body, headers = current(method)

    assert error_of(post(key, body, **headers)) == (404, METHOD_NOT_FOUND, 7)


@pytest.mark.parametrize(
    ("changed_headers", "changed_params", "code"),
    [
        ({"MCP-Protocol-Version": "2099-01-01"}, {}, UNSUPPORTED_VERSION),
        ({"MCP-Protocol-Version": f"{CURRENT_VERSION},{CURRENT_VERSION}"}, {}, UNSUPPORTED_VERSION),
        ({"MCP-Protocol-Version": None}, {}, HEADER_MISMATCH),
        ({"MCP-Protocol-Version": "2025-11-25"}, {}, HEADER_MISMATCH),
        ({"Mcp-Method": None}, {}, HEADER_MISMATCH),
        ({"Mcp-Method": "tools/list"}, {}, HEADER_MISMATCH),
        ({"Mcp-Name": None}, {}, HEADER_MISMATCH),
        ({"Mcp-Name": "describe_table"}, {}, HEADER_MISMATCH),
        ({}, {"name": "nothing"}, HEADER_MISMATCH),
        ({"Mcp-Name": "nothing"}, {"name": "nothing"}, INVALID_PARAMS),
        ({}, {"_meta": None}, INVALID_PARAMS),
        ({}, {"_meta": []}, INVALID_PARAMS),
        ({}, {"_meta": {"io.modelcontextprotocol/protocolVersion": CURRENT_VERSION}}, INVALID_PARAMS),
        ({}, {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": 1}}, HEADER_MISMATCH),
    ],
)
def test_headers_must_match_the_body(key: str, changed_headers: Any, changed_params: Any, code: int):
    body, headers = current("tools/call", name="list_tables")
    assert post(key, body, **headers).status_code == 200

    body["params"] |= changed_params
    headers = {name: value for name, value in (headers | changed_headers).items() if value is not None}
    response = post(key, body, **headers)

    assert error_of(response) == (400, code, 7)
    if code == UNSUPPORTED_VERSION:
        assert response.json()["error"]["data"]["supported"] == [CURRENT_VERSION, *HANDSHAKE_VERSIONS]


def test_current_revision_needs_no_handshake(key: str):
    body, headers = current("server/discover")
    result = post(key, body, **headers).json()["result"]

    assert result["supportedVersions"] == [CURRENT_VERSION] and result["resultType"] == "complete"
    assert (result["ttlMs"], result["cacheScope"], result["capabilities"]) == (0, "private", {"tools": {}})
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "servicebase"


@pytest.mark.parametrize(
    ("requested", "agreed"), [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25")]
)
def test_handshake_agrees_on_a_revision(key: str, requested: str, agreed: str):
    response = post(key, message("initialize", {**INITIALIZE, "protocolVersion": requested}))

    assert response.json()["result"]["protocolVersion"] == agreed
    assert "Mcp-Session-Id" not in response.headers and not response.cookies


@pytest.mark.parametrize(
    "headers", [{}, {"MCP-Protocol-Version": "2025-11-25"}, {"MCP-Protocol-Version": CURRENT_VERSION}]
)
def test_notifications_have_no_response(key: str, headers: dict[str, str]):
    for method in ("notifications/initialized", "notifications/cancelled", "nothing", "tools/call"):
        response = post(key, {"jsonrpc": "2.0", "method": method, "params": {"name": "list_tables"}}, **headers)
        assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "head", "options"])
def test_other_methods_are_refused(key: str, method: str):
    response = getattr(Client(), method)("/mcp", headers={"Authorization": f"Bearer {key}"})

    assert response.status_code == 405 and response.headers["Allow"] == "POST"


def test_path_can_end_with_a_slash(key: str):
    response = Client().post("/mcp/", message("ping"), "application/json", headers={"Authorization": f"Bearer {key}"})
    assert response.json() == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_body_has_a_limit_and_a_type(key: str):
    large = message("ping", {"a": "x" * MAX_REQUEST_BYTES})
    assert error_of(post(key, large)) == (413, INVALID_REQUEST, None)

    headers = {"Authorization": f"Bearer {key}"}
    response = Client().post("/mcp", b"{}", "text/plain", headers=headers)
    assert error_of(response) == (415, INVALID_REQUEST, None)


@pytest.mark.parametrize("header", ["", "Bearer sb_wrong", "Basic YWxpY2U6eA==", "Bearer"])
def test_only_access_keys_are_accepted(alice: User, header: str):
    response = Client().post("/mcp", message("ping"), "application/json", headers={"Authorization": header})

    assert error_of(response) == (401, INVALID_REQUEST, None)
    assert "Bearer" in response.headers["WWW-Authenticate"]


def test_password_and_session_are_not_accepted(as_alice: Client):
    assert as_alice.post("/mcp", message("ping"), "application/json").status_code == 401


@pytest.mark.parametrize("origin", ["https://example.com", "http://testserver:8000", "https://testserver", "null", ""])
def test_pages_of_other_origins_are_refused(key: str, origin: str):
    response = post(key, message("ping"), Origin=origin)

    assert error_of(response) == (403, INVALID_REQUEST, None)
    assert response.json()["error"]["data"]["errors"][0]["code"] == "other_origin"


def test_own_origin_is_that_of_the_base_url(key: str, settings: Any):
    assert post(key, message("ping"), Origin="http://testserver").status_code == 200

    settings.BASE_URL = "https://desk.example.com"
    assert post(key, message("ping"), Origin="https://desk.example.com").status_code == 200
    assert post(key, message("ping"), Origin="http://testserver").status_code == 403


def test_internal_error_reveals_nothing(key: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agents.tools.tables.view_of", lambda agent: 1 / 0)
    response = post(key, tool_call("list_tables"))

    assert response.status_code == 500 and response.json()["error"]["code"] == -32603
    assert "division" not in response.content.decode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=10), children, max_size=3),
    max_leaves=6,
)
ARGUMENT_NAMES = sorted({name for tool in TOOLS.values() for name in tool.arguments.model_fields})
ARGUMENT_VALUES = JSON | st.sampled_from(
    ["task", "sys_acl", "number", "^ORDERBY", "a-b-1-1", [], ["number"], {"state": "1"}]
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(TOOLS)), arguments=st.dictionaries(st.sampled_from(ARGUMENT_NAMES), ARGUMENT_VALUES),
    members=st.dictionaries(st.sampled_from(["id", "jsonrpc", "method", "params", "_meta"]), JSON, max_size=1),
)  # fmt: skip
def test_generated_messages_cause_no_internal_error(writing_key: str, name: str, arguments: Any, members: Any):
    for body in (
        tool_call(name, **{"table": "task"} | arguments),
        tool_call(name, **arguments),
        tool_call(name) | members,
    ):
        with transaction.atomic():
            response = post(writing_key, body)
            transaction.set_rollback(True)
        assert response.status_code < 500, (body, response.content)


@pytest.fixture
def writing_key(alice: User) -> str:
    return make_key(alice, mcp_writes=True)

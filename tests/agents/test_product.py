"""The running product: the SDK's clients over HTTP, and over `./run mcp`."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import httpx2
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from config.env import ROOT
from tests.agents.agent_calls import content
from tests.config.stack import Stack, manage, outer_environment

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("product"), SVC_DEMO="1").start().wait_until_up()
    yield stack
    stack.stop()
    stack.end()


@pytest.fixture(scope="module")
def key(product: Stack) -> str:
    return manage("key", "demo.agent", "agent", "--mcp-writes", env=product.env).stdout.strip()


async def use_tools(client: Any) -> Any:
    assert "create_record" in [tool.name for tool in (await client.list_tools()).tools]
    found = content(await client.call_tool("query_records", {"table": "task", "query": "priority=1"}))
    sys_id = found["records"][0]["sys_id"]
    comment = content(await client.call_tool("add_comment", {"table": "task", "sys_id": sys_id, "text": "Näh — 你好"}))
    return comment["comment"]["text"]


def test_clients_talk_to_the_product(product: Stack, key: str):
    async def talk() -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            async with Client(streamable_http_client(f"{product.url}/mcp", http_client=http)) as client:
                texts = [await use_tools(client)]
            async with (
                streamable_http_client(f"{product.url}/mcp", http_client=http) as (read, write),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                return [*texts, await use_tools(session)]

    assert asyncio.run(talk()) == ["Näh — 你好"] * 2


def stdio_parameters(url: str, key: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=[str(ROOT / "run"), "mcp"], env={"SERVICEBASE_URL": url, "SERVICEBASE_KEY": key}
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_client_talks_over_standard_input_and_output(product: Stack, key: str, mode: Any):
    async def talk() -> Any:
        async with Client(stdio_client(stdio_parameters(product.url, key)), mode=mode) as client:
            return client.protocol_version, await use_tools(client)

    version, text = asyncio.run(talk())
    assert (version, text) == ("2026-07-28" if mode == "auto" else "2025-11-25", "Näh — 你好")


def run_mcp(*messages: bytes, url: str, key: str) -> list[Any]:
    process = subprocess.run(
        [sys.executable, "run", "mcp", url],
        cwd=ROOT,
        env=outer_environment(SERVICEBASE_KEY=key),
        input=b"".join(message + b"\n" for message in messages),
        capture_output=True,
        timeout=60,
    )
    assert process.returncode == 0 and not process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def test_bridge_answers_bad_messages_and_goes_on(product: Stack, key: str):
    ping = b'{"jsonrpc": "2.0", "id": 3, "method": "ping"}'
    notification = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
    unknown = b'{"jsonrpc": "2.0", "id": "a", "method": "nothing"}'
    forged = json.dumps({
        "jsonrpc": "2.0", "id": 4, "method": "tools/call",
        "params": {"name": "a\nX: b", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
    }).encode()  # fmt: skip
    answers = run_mcp(b"{", b"[]", b"", notification, unknown, forged, ping, url=product.url, key=key)

    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
        (None, -32700), (None, -32600), ("a", -32601), (4, -32603), (3, None),
    ]  # fmt: skip


def test_bridge_reports_a_wrong_key_and_a_missing_service(product: Stack):
    ping = b'{"jsonrpc": "2.0", "id": 3, "method": "ping"}'

    (refused,) = run_mcp(ping, url=product.url, key="sb_wrong")
    assert (refused["id"], refused["error"]["message"]) == (3, "Authentication is required.")
    (missing,) = run_mcp(ping, url="http://127.0.0.1:1", key="sb_wrong")
    assert missing["error"]["code"] == -32603 and "127.0.0.1:1" in missing["error"]["message"]


@pytest.mark.parametrize("key", [None, "", "sb_two\nlines", "sb_…"])
def test_bridge_needs_a_key_that_a_header_can_hold(key: str | None):
    environment = outer_environment() if key is None else outer_environment(SERVICEBASE_KEY=key)
    process = subprocess.run(
        [sys.executable, "run", "mcp"], cwd=ROOT, env=environment, capture_output=True, input=b"{}"
    )
    assert process.returncode == 1 and b"SERVICEBASE_KEY" in process.stderr and not process.stdout
    assert b"lines" not in process.stderr


@pytest.mark.parametrize("response", [
    b"HTTP/1.1 200 OK\r\n\r\n[]", b'HTTP/1.1 404 Not Found\r\n\r\n{"detail": "Not found"}', b"hello\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"HTTP/1.1 301 Moved\r\nLocation: https://elsewhere/\r\n\r\n",
])  # fmt: skip
def test_bridge_reports_what_is_no_message(response: bytes):
    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(response)
            self.request.shutdown(socket.SHUT_WR)
            while self.request.recv(65536):
                pass

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        message = {"jsonrpc": "2.0", "id": 1, "method": ["odd"], "params": {"_meta": {"a": {}}, "name": {}}}
        answers = run_mcp(*[json.dumps(message).encode()] * 2, url=url, key="sb_x")
        server.shutdown()

    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [(1, -32603)] * 2
    assert all(url in answer["error"]["message"] for answer in answers)


def test_bridge_imports_no_package():
    environment = outer_environment()
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); import agents.stdio"]
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 0

"""Calls `/mcp` with the SDK's own clients, in the transaction of the test."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

import httpx2
from django.test import Client as TestClient
from mcp import ClientSession
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from accounts.authentication import access_keys
from accounts.models import User

URL = "http://localhost/mcp"


def make_key(user: User, **limits: Any) -> str:
    return access_keys.create_key(user, "agent", expires_at=None, **limits)


def send(request: httpx2.Request) -> httpx2.Response:
    headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
    response = TestClient(raise_request_exception=False).generic(
        request.method, str(request.url), request.content, request.headers.get("content-type", ""), headers=headers
    )
    return httpx2.Response(response.status_code, headers=dict(response.headers), content=response.content)


def run(key: str, talk: Callable[[httpx2.AsyncClient], Awaitable[Any]]) -> Any:
    """Runs the client in another thread. This one answers its requests, because it has the connection of the test."""
    requests: SimpleQueue[tuple[httpx2.Request, Future[httpx2.Response]] | None] = SimpleQueue()
    result: Future[Any] = Future()

    async def pass_on(request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        answer: Future[httpx2.Response] = Future()
        requests.put((request, answer))
        return await asyncio.wrap_future(answer)

    async def start() -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(pass_on), headers=headers) as http:
            return await talk(http)

    def work() -> None:
        try:
            result.set_result(asyncio.run(start()))
        except BaseException as error:
            result.set_exception(error)
        requests.put(None)

    thread = Thread(target=work)
    thread.start()
    while item := requests.get():
        request, answer = item
        try:
            answer.set_result(send(request))
        except BaseException as error:
            answer.set_exception(error)
    thread.join()
    return result.result()


def with_client(key: str, talk: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """With the SDK's `Client`, which speaks the current revision."""

    async def connect(http: httpx2.AsyncClient) -> Any:
        async with Client(streamable_http_client(URL, http_client=http), **options) as client:
            return await talk(client)

    return run(key, connect)


def with_session(key: str, talk: Callable[[ClientSession], Awaitable[Any]]) -> Any:
    """With the SDK's `ClientSession`, which begins with `initialize`."""

    async def connect(http: httpx2.AsyncClient) -> Any:
        async with (
            streamable_http_client(URL, http_client=http) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            return await talk(session)

    return run(key, connect)


def content(result: Any) -> Any:
    (block,) = result.content
    return json.loads(block.text)


class Agent:
    """Calls tools by name, as `agent.query_records(table="task")`. Returns errors like other answers."""

    def __init__(self, user: User, **limits: Any) -> None:
        self.key = make_key(user, **limits)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            return content(with_client(self.key, lambda client: client.call_tool(name, arguments)))

        return call


def error_codes(answer: Any) -> list[str]:
    return [error["code"] for error in answer["errors"]]


def post(key: str, body: Any, **headers: str) -> Any:
    """Sends a message without the SDK, which sends only valid ones."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    all_headers = {"Authorization": f"Bearer {key}", **headers}
    return TestClient(raise_request_exception=False).post("/mcp", raw, "application/json", headers=all_headers)


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}

"""Every way to keep a caller waiting ends at the deadline.

The servers would continue for ten seconds, so the allowed time only has to show that a call was cut off.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from select import select
from time import monotonic

import pytest

from system.outbound import OutboundFailed, Policy, get, post_form

from .hostile import MAX_RESPONSE_S, Behaviour, FakeResolver, HostileConnection, responds_with, serving

MAX_ABORT_S = MAX_RESPONSE_S / 2
# Patterns of the timeout messages. On a busy machine, connecting alone can reach its limit of 0.4 s.
CONNECTION_ERROR = r"within 0\.4 s"
RESPONSE_ERROR = r"within 0\.[45] s"


@contextmanager
def check_cut_off(message_pattern: str) -> Iterator[None]:
    started_at = monotonic()
    with pytest.raises(OutboundFailed, match=message_pattern) as exc_info:
        yield
    assert monotonic() - started_at < MAX_ABORT_S
    assert exc_info.value.code == "timeout"


def sends_slowly(response_head: bytes, piece: bytes) -> Behaviour:
    def behave(connection: HostileConnection) -> None:
        connection.send(response_head)
        connection.drip(piece)

    return behave


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(lambda connection: connection.stay_silent(), id="silence"),
        pytest.param(sends_slowly(b"", b"H"), id="the status line"),
        pytest.param(sends_slowly(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"), id="a header"),
        pytest.param(sends_slowly(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"), id="the body"),
        pytest.param(
            sends_slowly(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"), id="chunks"
        ),
        pytest.param(sends_slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="interim responses"),
    ],
)
def test_deadline_covers_a_slow_response(deadline_policy: Policy, behave: Behaviour) -> None:  # A28
    with serving(behave) as server, check_cut_off(RESPONSE_ERROR):
        get(f"http://idp.example.com:{server.port}/", deadline_policy)


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(lambda connection: connection.stay_silent(), id="silence"),
        # An announced record of 16 KB that is sent byte by byte.
        pytest.param(sends_slowly(b"\x16\x03\x03\x40\x00\x02", b"x"), id="a record"),
    ],
)
def test_deadline_covers_a_slow_handshake(deadline_policy: Policy, behave: Behaviour) -> None:  # A28
    with serving(behave) as server, check_cut_off(CONNECTION_ERROR):
        get(f"https://idp.example.com:{server.port}/", deadline_policy)


def test_deadline_covers_a_slowly_read_request(deadline_policy: Policy) -> None:
    with serving(responds_with(b"{}"), reads_slowly=True) as server, check_cut_off(RESPONSE_ERROR):
        post_form(f"http://idp.example.com:{server.port}/", {"a": "x" * 30_000_000}, deadline_policy)


def test_deadline_covers_an_unread_request(deadline_policy: Policy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, check_cut_off(RESPONSE_ERROR):
        post_form(f"http://idp.example.com:{listener.getsockname()[1]}/", {"a": "x" * 30_000_000}, deadline_policy)


@contextmanager
def unaccepting_server(host: str, port: int = 0) -> Iterator[int]:
    """A port whose connection queue is full: further connections are neither accepted nor refused."""
    with ExitStack() as exit_stack:
        listener = exit_stack.enter_context(socket.create_server((host, port), backlog=0))
        socket_address = listener.getsockname()
        for _ in range(10):
            filler = exit_stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(socket_address)
            if not select([], [filler], [], 0.1)[1]:
                break
        yield socket_address[1]


def test_deadline_covers_an_unaccepted_connection(deadline_policy: Policy) -> None:  # A28
    with unaccepting_server("127.0.0.1") as port, check_cut_off(CONNECTION_ERROR):
        get(f"http://idp.example.com:{port}/", deadline_policy)


def test_unresponsive_first_address_leaves_time_for_the_second(policy: Policy) -> None:
    policy_with_two_addresses = replace(policy, resolve=FakeResolver(["127.0.0.2", "127.0.0.1"]), connect_s=1.0)
    with serving(responds_with(b"{}")) as server, unaccepting_server("127.0.0.2", server.port):
        assert get(f"http://idp.example.com:{server.port}/", policy_with_two_addresses).status == 200


def test_caller_can_shorten_the_deadline(policy: Policy) -> None:
    with serving(lambda connection: connection.stay_silent()) as server, check_cut_off(r"within 0\.2 s"):
        get(f"http://idp.example.com:{server.port}/", policy.limited_to(0.2))


def test_expired_deadline_makes_no_call(policy: Policy) -> None:
    with serving(responds_with(b"{}")) as server, check_cut_off("within 0 s"):
        get(f"http://idp.example.com:{server.port}/", policy.limited_to(0))
    assert server.connection_count == 0

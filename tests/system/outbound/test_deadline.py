"""Every way to keep a caller waiting ends at the deadline.

The servers would go on for ten seconds: the time that is allowed here only has to tell "was cut off" from "was not".
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from select import select
from time import monotonic

import pytest

from system.outbound import OutboundFailed, Policy, get, post_form

from .hostile import GIVE_UP_S, Behaviour, FakeResolver, Visit, answers, serving

CUT_OFF_S = GIVE_UP_S / 2
# Which limit of `hurried` it was. On a busy machine the connection itself may take too long to wait for an answer.
CONNECTION = r"within 0\.4 s"
ANSWER = r"within 0\.[45] s"


@contextmanager
def cut_off(within: str) -> Iterator[None]:
    begun = monotonic()
    with pytest.raises(OutboundFailed, match=within) as exc_info:
        yield
    assert monotonic() - begun < CUT_OFF_S
    assert exc_info.value.code == "timeout"


def drips(head: bytes, part: bytes) -> Behaviour:
    def behave(visit: Visit) -> None:
        visit.send(head)
        visit.drip(part)

    return behave


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(lambda visit: visit.say_nothing(), id="silence"),
        pytest.param(drips(b"", b"H"), id="the status line"),
        pytest.param(drips(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"), id="a header"),
        pytest.param(drips(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"), id="the body"),
        pytest.param(drips(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"), id="chunks"),
        pytest.param(drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="interim answers"),
    ],
)
def test_deadline_covers_a_slow_response(hurried: Policy, behave: Behaviour) -> None:  # A28
    with serving(behave) as server, cut_off(ANSWER):
        get(f"http://idp.example.com:{server.port}/", hurried)


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(lambda visit: visit.say_nothing(), id="silence"),
        # A record of 16 KB that is announced and then comes byte by byte.
        pytest.param(drips(b"\x16\x03\x03\x40\x00\x02", b"x"), id="a record"),
    ],
)
def test_deadline_covers_a_slow_handshake(hurried: Policy, behave: Behaviour) -> None:  # A28
    with serving(behave) as server, cut_off(CONNECTION):
        get(f"https://idp.example.com:{server.port}/", hurried)


def test_deadline_covers_a_slowly_read_request(hurried: Policy) -> None:
    with serving(answers(b"{}"), slow_reader=True) as server, cut_off(ANSWER):
        post_form(f"http://idp.example.com:{server.port}/", {"a": "x" * 30_000_000}, hurried)


def test_deadline_covers_an_unread_request(hurried: Policy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, cut_off(ANSWER):
        post_form(f"http://idp.example.com:{listener.getsockname()[1]}/", {"a": "x" * 30_000_000}, hurried)


@contextmanager
def deaf(host: str, port: int = 0) -> Iterator[int]:
    """A port whose queue of connections is full: further ones are neither taken nor refused."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((host, port), backlog=0))
        address = listener.getsockname()
        for _ in range(10):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
            if not select([], [filler], [], 0.1)[1]:
                break
        yield address[1]


def test_deadline_covers_an_unaccepted_connection(hurried: Policy) -> None:  # A28
    with deaf("127.0.0.1") as port, cut_off(CONNECTION):
        get(f"http://idp.example.com:{port}/", hurried)


def test_dead_first_address_leaves_time_for_the_second(policy: Policy) -> None:
    both = replace(policy, resolve=FakeResolver(["127.0.0.2", "127.0.0.1"]), connect_s=1.0)
    with serving(answers(b"{}")) as server, deaf("127.0.0.2", server.port):
        assert get(f"http://idp.example.com:{server.port}/", both).status == 200


def test_caller_can_shorten_the_deadline(policy: Policy) -> None:
    with serving(lambda visit: visit.say_nothing()) as server, cut_off(r"within 0\.2 s"):
        get(f"http://idp.example.com:{server.port}/", policy.within(0.2))


def test_expired_deadline_makes_no_call(policy: Policy) -> None:
    with serving(answers(b"{}")) as server, cut_off("within 0 s"):
        get(f"http://idp.example.com:{server.port}/", policy.within(0))
    assert server.callers == 0

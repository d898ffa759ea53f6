"""Name lookups: rebinding, forbidden responses, slow and dead name servers."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread
from threading import enumerate as running_threads

import pytest

from system.outbound import OutboundFailed, OutboundRefused, Policy, get
from system.outbound.names import MAX_LOOKUPS, system_resolve

from .hostile import FakeResolver, responds_with, serving


def has_ipv6_loopback() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def lookup_count() -> int:
    return sum(thread.name == "outbound-lookup" for thread in running_threads())


def test_name_is_resolved_once_and_the_checked_address_is_used(policy: Policy) -> None:  # A25
    rebinding_resolver = FakeResolver(["127.0.0.1"], ["169.254.169.254"])
    with serving(responds_with(b"{}")) as server:
        response = get(f"http://idp.example.com:{server.port}/", replace(policy, resolve=rebinding_resolver))
    assert response.status == 200
    assert rebinding_resolver.looked_up_hosts == ["idp.example.com"]
    assert f"host: idp.example.com:{server.port}\r\n".encode() in server.request


def test_first_four_different_addresses_are_tried(policy: Policy) -> None:
    addresses = ["127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.4"]
    with serving(responds_with(b"{}")) as server:
        url = f"http://idp.example.com:{server.port}/"
        assert get(url, replace(policy, resolve=FakeResolver([*addresses, "127.0.0.1"]))).status == 200
        with pytest.raises(OutboundFailed) as exc_info:
            get(url, replace(policy, resolve=FakeResolver([*addresses, "127.0.0.5", "127.0.0.1"])))
    assert exc_info.value.code == "connect"


def test_literal_address_is_not_looked_up(policy: Policy, loopback_resolver: FakeResolver) -> None:
    with serving(responds_with(b"{}")) as server:
        assert get(f"http://127.0.0.1:{server.port}/", policy).status == 200
    assert loopback_resolver.looked_up_hosts == []


@pytest.mark.skipif(not has_ipv6_loopback(), reason="this machine has no IPv6")
def test_ipv6_address_is_called_with_its_brackets(policy: Policy) -> None:
    with serving(responds_with(b"{}"), host="::1") as server:
        assert get(f"http://[::1]:{server.port}/", policy).status == 200
    assert f"host: [::1]:{server.port}\r\n".encode() in server.request


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["::ffff:169.254.169.254"],
        ["64:ff9b::a9fe:a9fe"],
        ["fe80::1%eth0"],
        ["8.8.8.8", "127.0.0.1"],
        ["127.0.0.1", "8.8.8.8"],
    ],
)
def test_name_with_one_forbidden_address_is_refused(addresses: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # A24, A25: production refuses before any socket is made.
    monkeypatch.setattr(socket, "socket", None)
    with pytest.raises(OutboundRefused) as exc_info:
        get("https://idp.example.com/", Policy(resolve=FakeResolver(addresses)))
    assert exc_info.value.code == "address"


def test_development_switch_does_not_allow_metadata_addresses(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    with pytest.raises(OutboundRefused):
        get("http://idp.example.com/", replace(policy, resolve=FakeResolver(["127.0.0.1", "169.254.169.254"])))


def test_private_address_from_a_lookup_is_refused_if_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:  # A27
    monkeypatch.setattr(socket, "socket", None)
    with pytest.raises(OutboundRefused, match=r"10\.0\.0\.1\. Calls to private addresses"):
        get("https://idp.example.com/", Policy(allow_private=False, resolve=FakeResolver(["10.0.0.1"])))


def test_unknown_name_fails_with_the_reason_of_the_resolver(policy: Policy) -> None:
    def fail_to_resolve(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(OutboundFailed, match=r"idp\.example\.com could not be resolved \(Name or service") as exc_info:
        get("https://idp.example.com/", replace(policy, resolve=fail_to_resolve))
    assert exc_info.value.code == "dns"


def test_name_without_addresses_fails(policy: Policy) -> None:
    with pytest.raises(OutboundFailed, match="has no IP address") as exc_info:
        get("https://idp.example.com/", replace(policy, resolve=FakeResolver([])))
    assert exc_info.value.code == "dns"


def test_unexpected_resolver_error_is_raised(policy: Policy) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        get("https://idp.example.com/", replace(policy, resolve=FakeResolver(["nonsense"])))
    assert lookup_count() == 0


def test_system_resolver_returns_plain_addresses() -> None:
    assert system_resolve("127.0.0.1") == ["127.0.0.1"]


def test_thread_exhaustion_is_reported_and_releases_its_slot(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_thread(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", refuse_thread)
        for _ in range(MAX_LOOKUPS + 1):
            with pytest.raises(OutboundFailed, match="no thread could be started"):
                get("https://idp.example.com/", policy)
    with serving(responds_with(b"{}")) as server:
        assert get(f"http://idp.example.com:{server.port}/", policy).status == 200


class DeadNameServer:
    def __init__(self) -> None:
        self.revived = Event()

    def __call__(self, host: str) -> list[str]:
        self.revived.wait()
        return ["127.0.0.1"]


@pytest.fixture
def dead_name_server() -> Iterator[DeadNameServer]:
    server = DeadNameServer()
    yield server
    server.revived.set()
    for thread in running_threads():
        if thread.name == "outbound-lookup":
            thread.join()


def test_dead_name_server_counts_against_the_connect_timeout(policy: Policy, dead_name_server: DeadNameServer) -> None:
    with pytest.raises(OutboundFailed, match=r"within 0\.1 s") as exc_info:
        get("https://idp.example.com/", replace(policy, resolve=dead_name_server, connect_s=0.1))
    assert exc_info.value.code == "timeout"


def test_stuck_lookups_are_limited_and_release_their_slots(policy: Policy, dead_name_server: DeadNameServer) -> None:
    stuck_policy = replace(policy, resolve=dead_name_server)
    while lookup_count() < MAX_LOOKUPS:
        with pytest.raises(OutboundFailed):
            get("https://idp.example.com/", replace(stuck_policy, connect_s=0.05))
    with pytest.raises(OutboundFailed, match="too many DNS lookups") as exc_info:
        get("https://idp.example.com/", replace(stuck_policy, connect_s=0.3))
    assert exc_info.value.code == "dns"
    assert lookup_count() == MAX_LOOKUPS
    dead_name_server.revived.set()
    with serving(responds_with(b"{}")) as server:
        assert get(f"http://idp.example.com:{server.port}/", policy).status == 200

"""Which addresses may be called, in every notation."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from system.outbound import Policy
from system.outbound.addresses import forbidden_kind, unwrap

PRODUCTION = Policy()
NO_PRIVATE_NETWORKS = Policy(allow_private=False)
DEVELOPMENT = Policy(allow_http=True)

FORBIDDEN_ADDRESSES = [
    ("169.254.169.254", "metadata"),
    ("192.0.0.192", "metadata"),
    ("100.100.100.200", "metadata"),
    ("168.63.129.16", "metadata"),
    ("fd00:ec2::254", "metadata"),
    ("fd00:ec2::23", "metadata"),
    ("fd20:ce::254", "metadata"),
    ("fd00:42::42", "metadata"),
    ("fd00:c1::a9fe:a9fe", "metadata"),
    ("169.254.170.2", "link-local"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("febf::1", "link-local"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("::1", "loopback"),
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "unspecified"),
    ("::", "unspecified"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("ff02::1", "multicast"),
    ("255.255.255.255", "broadcast"),
    ("240.0.0.1", "reserved"),
    ("192.0.0.8", "reserved"),
    ("192.0.2.1", "reserved"),
    ("198.18.0.1", "reserved"),
    ("fec0::1", "reserved"),
    ("100::1", "reserved"),
    ("5f00::1", "reserved"),
    ("2001:db8::1", "reserved"),
    ("2001:10::1", "reserved"),
    ("::ffff:0:127.0.0.1", "reserved"),  # IPv4-translated
    ("4000::1", "reserved"),
    # A24: embedded in another address
    ("::ffff:169.254.169.254", "metadata"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::169.254.169.254", "metadata"),
    ("::127.0.0.1", "loopback"),
    ("64:ff9b::a9fe:a9fe", "metadata"),
    ("64:ff9b:1::a9fe:a9fe", "metadata"),
    ("64:ff9b:1:a9fe:a9:fe00::", "metadata"),
    ("2002:a9fe:a9fe::", "metadata"),
    ("2002:7f00:1::1", "loopback"),
    ("2001:0:a9fe:a9fe::", "metadata"),  # Teredo server
    ("2001:0:808:808:0:0:5601:5601", "metadata"),  # Teredo client, its bits inverted
]


@pytest.mark.parametrize(("address", "kind"), FORBIDDEN_ADDRESSES)
def test_forbidden_address_is_refused_with_its_kind(address: str, kind: str) -> None:  # A24
    assert forbidden_kind(ip_address(address), PRODUCTION) == kind


@pytest.mark.parametrize("address", [address for address, kind in FORBIDDEN_ADDRESSES if kind != "loopback"])
def test_development_switch_does_not_allow_other_addresses(address: str) -> None:
    assert forbidden_kind(ip_address(address), DEVELOPMENT)


@pytest.mark.parametrize("address", [address for address, kind in FORBIDDEN_ADDRESSES if kind == "loopback"])
def test_development_switch_allows_loopback(address: str) -> None:
    assert not forbidden_kind(ip_address(address), DEVELOPMENT)


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "fd12:3456::1",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::192.168.1.1",
    ],
)
def test_private_networks_are_allowed_unless_turned_off_by_the_operator(address: str) -> None:  # A27
    assert not forbidden_kind(ip_address(address), PRODUCTION)
    assert forbidden_kind(ip_address(address), NO_PRIVATE_NETWORKS) == "private"


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00::1",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::8.8.8.8",
        "64:ff9b:1:808:8:800::",
        "2002:808:808::1",
    ],
)
def test_public_address_is_always_allowed(address: str) -> None:
    assert not forbidden_kind(ip_address(address), NO_PRIVATE_NETWORKS)


@pytest.mark.parametrize(
    ("address", "networks", "kind"),
    [
        ("10.1.2.3", ["10.1.0.0/16"], ""),
        ("::ffff:10.1.2.3", ["10.1.0.0/16"], ""),
        ("10.2.2.3", ["10.1.0.0/16"], "private"),
        ("127.0.0.1", ["127.0.0.1/32"], ""),
        ("::1", ["127.0.0.1/32"], "loopback"),
        ("fd12:3456::1", ["fd12:3456::/32"], ""),
        ("169.254.169.254", ["0.0.0.0/0", "::/0"], "metadata"),
        ("::ffff:169.254.169.254", ["0.0.0.0/0", "::/0"], "metadata"),
        ("fd00:ec2::254", ["fc00::/7"], "metadata"),
        ("169.254.1.1", ["0.0.0.0/0"], "link-local"),
        ("0.0.0.0", ["0.0.0.0/0"], "unspecified"),
    ],
)  # fmt: skip
def test_only_listed_private_networks_are_allowed(address: str, networks: list[str], kind: str) -> None:
    policy = Policy(allow_private=False, private_networks=tuple(map(ip_network, networks)))
    assert forbidden_kind(ip_address(address), policy) == kind


ipv4_addresses = st.ip_addresses(v=4)


@settings(deadline=None)
@given(ipv4_addresses, st.binary(min_size=10, max_size=10))
def test_embedded_ipv4_addresses_are_checked(ip: IPv4Address, noise: bytes) -> None:
    packed_ipv4 = ip.packed
    inverted_bytes = bytes(255 - byte for byte in packed_ipv4)
    packed_addresses = [
        bytes(10) + b"\xff\xff" + packed_ipv4,
        bytes.fromhex("0064ff9b") + bytes(8) + packed_ipv4,
        bytes.fromhex("0064ff9b0001") + bytes(6) + packed_ipv4,
        b"\x20\x02" + packed_ipv4 + noise,
        bytes.fromhex("20010000") + bytes([8, 8, 8, 8]) + noise[:4] + inverted_bytes,
        bytes.fromhex("20010000") + packed_ipv4 + noise[:4] + bytes([247, 247, 247, 247]),
    ]
    if int(ip) > 1:
        packed_addresses.append(bytes(12) + packed_ipv4)
    for policy in (PRODUCTION, NO_PRIVATE_NETWORKS, DEVELOPMENT):
        kinds = {forbidden_kind(IPv6Address(packed_ipv6), policy) for packed_ipv6 in packed_addresses}
        assert kinds == {forbidden_kind(ip, policy)}


@settings(deadline=None)
@given(ipv4_addresses)
def test_forbidden_address_in_a_local_nat64_prefix_is_refused(ip: IPv4Address) -> None:
    # An embedded address that begins with 0 indicates another layout; no translator sends to 0.0.0.0/8.
    assume(ip.packed[0])
    packed_ipv4, prefix = ip.packed, bytes.fromhex("0064ff9b0001")
    packed_addresses = [
        prefix + packed_ipv4[:2] + b"\0" + packed_ipv4[2:] + bytes(5),
        prefix + b"\0" + packed_ipv4[:1] + b"\0" + packed_ipv4[1:] + bytes(4),
        prefix + bytes(3) + packed_ipv4 + bytes(3),
        prefix + bytes(6) + packed_ipv4,
    ]
    for packed_ipv6 in packed_addresses:
        assert forbidden_kind(IPv6Address(packed_ipv6), NO_PRIVATE_NETWORKS) or not forbidden_kind(
            ip, NO_PRIVATE_NETWORKS
        )


@settings(deadline=None)
@given(st.ip_addresses())
def test_special_addresses_known_to_python_are_refused(ip: IPv4Address | IPv6Address) -> None:
    is_special = ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified
    assert forbidden_kind(ip, PRODUCTION) or not is_special
    assert forbidden_kind(ip, NO_PRIVATE_NETWORKS) or all(embedded_ip.is_global for embedded_ip in unwrap(ip))

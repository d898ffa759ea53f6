"""Decides whether a call may be sent to an IP address.

In Python 3.11, `is_global` is true for several dangerous forms (IPv4-mapped, NAT64, 6to4, 192.0.0.192), and its results
change between releases. The networks are therefore listed here, and transition forms are unwrapped first.
"""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from .names import Address
from .policy import Policy

# The first matching row is the kind of an address. Without one, IPv4 addresses are public and IPv6 addresses reserved.
_ADDRESS_KINDS: tuple[tuple[IPv4Network | IPv6Network, str], ...] = tuple(
    (ip_network(network), kind)
    for kind, networks in (
        # Cloud metadata services. 168.63.129.16 (Azure) is in public space, the fd.. ones (AWS, Google, Scaleway,
        # Oracle) and 100.100.100.200 (Alibaba) in private space, so no general rule covers them.
        ("metadata", "169.254.169.254 192.0.0.192 100.100.100.200 168.63.129.16"),
        ("metadata", "fd00:ec2::/32 fd20:ce::254 fd00:42::42 fd00:c1::a9fe:a9fe"),
        ("unspecified", "0.0.0.0/8 ::"),
        ("loopback", "127.0.0.0/8 ::1"),
        ("link-local", "169.254.0.0/16 fe80::/10"),
        ("multicast", "224.0.0.0/4 ff00::/8"),
        ("broadcast", "255.255.255.255"),
        # 100.64.0.0/10 is shared between a carrier and its customers; overlay networks use it as private space.
        ("private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7"),
        ("reserved", "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24"),
        ("reserved", "240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20"),
        ("public", "2000::/3"),
    )
    for network in networks.split()
)


def _nat64_local(packed: bytes) -> tuple[bytes, ...]:
    # RFC 8215 leaves the prefix length to the operator, so each layout of RFC 6052 is tried. A result that begins with
    # 0 means another layout; otherwise every address of the /96 layout would also be read as 0.0.0.0.
    candidates = packed[6:8] + packed[9:11], packed[7:8] + packed[9:12], packed[9:13], packed[12:16]
    return tuple(candidate for candidate in candidates if candidate[0]) or (candidates[-1],)


# The IPv6 forms that contain IPv4 addresses, and functions that extract them.
_TRANSITION_FORMS: tuple[tuple[IPv6Network, Callable[[bytes], tuple[bytes, ...]]], ...] = (
    (IPv6Network("::/96"), lambda packed: (packed[12:],)),  # IPv4-compatible
    (IPv6Network("::ffff:0:0/96"), lambda packed: (packed[12:],)),  # IPv4-mapped
    (IPv6Network("64:ff9b::/96"), lambda packed: (packed[12:],)),  # NAT64
    (IPv6Network("64:ff9b:1::/48"), _nat64_local),
    (IPv6Network("2002::/16"), lambda packed: (packed[2:6],)),  # 6to4
    (IPv6Network("2001::/32"), lambda packed: (packed[4:8], bytes(255 - byte for byte in packed[12:]))),  # Teredo
)
_NOT_TRANSITION_FORMS = {IPv6Address("::"), IPv6Address("::1")}


def unwrap(ip: Address) -> tuple[Address, ...]:
    """The addresses that a call to `ip` can reach: those inside a transition form, otherwise `ip` itself.

    >>> unwrap(IPv6Address("64:ff9b::a9fe:a9fe"))
    (IPv4Address('169.254.169.254'),)
    """
    if isinstance(ip, IPv6Address) and ip not in _NOT_TRANSITION_FORMS:
        for network, embedded_addresses in _TRANSITION_FORMS:
            if ip in network:
                return tuple(IPv4Address(packed_address) for packed_address in embedded_addresses(ip.packed))
    return (ip,)


def forbidden_kind(ip: Address, policy: Policy) -> str:
    """The kind of `ip` if no call may be sent there, otherwise an empty string."""
    allowed_kinds = {"public"}
    if policy.allow_private:
        allowed_kinds.add("private")
    if policy.allow_http:
        allowed_kinds.add("loopback")
    kinds = (_address_kind(address) for address in unwrap(ip) if not _is_listed(address, policy))
    return next((kind for kind in kinds if kind not in allowed_kinds), "")


def is_in_private_networks(ip: Address, policy: Policy) -> bool:
    """Whether the operator has listed all addresses that a call to `ip` can reach."""
    return all(_is_listed(address, policy) for address in unwrap(ip))


def _is_listed(ip: Address, policy: Policy) -> bool:
    # Only these kinds, so that 0.0.0.0/0 does not open metadata services.
    is_private = _address_kind(ip) in ("private", "loopback")
    return is_private and any(ip in network for network in policy.private_networks)


def _address_kind(ip: Address) -> str:
    default_kind = "public" if ip.version == 4 else "reserved"
    return next((kind for network, kind in _ADDRESS_KINDS if ip in network), default_kind)

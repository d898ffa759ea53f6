"""Certificates: what is trusted, and the messages about the rest."""

import os
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from system.outbound import OutboundFailed, Policy, get
from system.outbound.trust import ssl_context

from . import certificates
from .hostile import GIVE_UP_S, Visit, answers, serving

NAME = "idp.example.com"
Maker = Callable[[certificates.Pair], certificates.Pair]


@pytest.fixture(scope="module")
def authority() -> certificates.Pair:
    return certificates.make("Test authority")


@pytest.fixture
def trusting(policy: Policy, authority: certificates.Pair, tmp_path: Path) -> Policy:
    return replace(policy, ca_bundle=authority.write(tmp_path, "authority"))


@pytest.fixture
def good(authority: certificates.Pair, tmp_path: Path) -> ssl.SSLContext:
    leaf = certificates.make(NAME, issuer=authority, names=(NAME,), addresses=("127.0.0.1",))
    return certificates.server_context(leaf.write(tmp_path, "good"))


def test_certificate_is_checked_against_the_host_name(trusting: Policy, good: ssl.SSLContext) -> None:  # A25, A62
    with serving(answers(b"{}"), tls=good) as server:
        assert get(f"https://{NAME}:{server.port}/", trusting).json() == {}
    assert server.server_names == [NAME]


def test_certificate_is_checked_against_a_literal_address(trusting: Policy, good: ssl.SSLContext) -> None:
    with serving(answers(b"{}"), tls=good) as server:
        assert get(f"https://127.0.0.1:{server.port}/", trusting).json() == {}
    elsewhere = serving(answers(b"{}"), tls=good, host="127.0.0.2")
    with elsewhere as server, pytest.raises(OutboundFailed, match="is issued for another IP address"):
        get(f"https://127.0.0.2:{server.port}/", trusting)


WRONG: list[tuple[Maker, str]] = [
    (lambda ca: certificates.make(NAME, issuer=ca, names=(NAME,), days=(-3, -1)), "has expired"),
    (lambda ca: certificates.make(NAME, issuer=ca, names=(NAME,), days=(1, 3)), "is not valid yet"),
    (lambda ca: certificates.make(NAME, issuer=ca, names=("other.example.com",)), "is issued for another host name"),
    (lambda ca: certificates.make(NAME, issuer=ca, names=("*.com",)), "is issued for another host name"),
    (lambda ca: certificates.make(NAME, names=(NAME,)), "is self-signed"),
    (
        lambda ca: certificates.make(NAME, issuer=certificates.make("Stranger"), names=(NAME,)),
        "was issued by an authority that this server does not trust",
    ),
]


@pytest.mark.parametrize(("make", "fault"), WRONG, ids=[fault for _, fault in WRONG])
def test_invalid_certificate_is_refused_with_a_reason(  # A62
    trusting: Policy, authority: certificates.Pair, tmp_path: Path, make: Maker, fault: str
) -> None:
    context = certificates.server_context(make(authority).write(tmp_path, "leaf"))
    with serving(answers(b"{}"), tls=context) as server, pytest.raises(OutboundFailed) as exc_info:
        get(f"https://{NAME}:{server.port}/", trusting)
    assert exc_info.value.code == "tls"
    assert f"The certificate of {NAME} {fault}" in exc_info.value.message
    assert "\n" not in exc_info.value.message
    assert server.requests == []


def test_private_authority_is_not_trusted_without_the_operators_bundle(policy: Policy, good: ssl.SSLContext) -> None:
    with serving(answers(b"{}"), tls=good) as server, pytest.raises(OutboundFailed, match="SVC_CA_BUNDLE"):
        get(f"https://{NAME}:{server.port}/", policy)


def test_renewed_bundle_applies_without_a_restart(trusting: Policy, good: ssl.SSLContext) -> None:
    assert trusting.ca_bundle
    right = trusting.ca_bundle.read_bytes()
    certificates.make("Stranger").write(trusting.ca_bundle.parent, trusting.ca_bundle.stem)
    with serving(answers(b"{}"), tls=good) as server:
        with pytest.raises(OutboundFailed):
            get(f"https://{NAME}:{server.port}/", trusting)
        trusting.ca_bundle.write_bytes(right)
        later = trusting.ca_bundle.stat().st_mtime_ns + 10**9
        os.utime(trusting.ca_bundle, ns=(later, later))
        assert get(f"https://{NAME}:{server.port}/", trusting).status == 200


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_unusable_bundle_is_named_by_its_setting(
    policy: Policy, good: ssl.SSLContext, tmp_path: Path, content: bytes | None
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_bytes(content)
    with serving(answers(b"{}"), tls=good) as server, pytest.raises(OutboundFailed, match="SVC_CA_BUNDLE") as exc_info:
        get(f"https://{NAME}:{server.port}/", replace(policy, ca_bundle=bundle))
    assert exc_info.value.code == "ca_bundle"
    assert str(tmp_path) not in exc_info.value.message


def test_deadline_covers_a_slow_response_over_tls(trusting: Policy, good: ssl.SSLContext) -> None:  # A28
    def drip(visit: Visit) -> None:
        visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
        visit.drip(b"x")

    begun = monotonic()
    with serving(drip, tls=good) as server, pytest.raises(OutboundFailed, match="within 1 s"):
        get(f"https://{NAME}:{server.port}/", trusting.within(1))
    assert monotonic() - begun < GIVE_UP_S / 2


def test_verification_is_always_on_and_old_tls_is_off(trusting: Policy) -> None:  # A62
    for context in (ssl_context(None), ssl_context(trusting.ca_bundle)):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_bundle_is_added_to_the_authorities_of_the_system(trusting: Policy) -> None:
    system = {bytes(der) for der in ssl_context(None).get_ca_certs(binary_form=True)}
    both = {bytes(der) for der in ssl_context(trusting.ca_bundle).get_ca_certs(binary_form=True)}
    assert both > system


def test_plain_http_server_is_reported(trusting: Policy) -> None:
    plain = serving(lambda visit: visit.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with plain as server, pytest.raises(OutboundFailed) as exc_info:
        get(f"https://{NAME}:{server.port}/", trusting)
    assert exc_info.value.code == "tls"
    assert exc_info.value.message.startswith(f"{NAME} responded without encryption.")


def test_required_client_certificate_is_reported(trusting: Policy, good: ssl.SSLContext) -> None:
    good.load_verify_locations(cafile=trusting.ca_bundle)
    good.verify_mode = ssl.CERT_REQUIRED
    with serving(answers(b"{}"), tls=good) as server, pytest.raises(OutboundFailed) as exc_info:
        get(f"https://{NAME}:{server.port}/", trusting)
    assert exc_info.value.code == "tls"

"""TLS certificates: which are trusted, and the messages about others."""

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
from .hostile import MAX_RESPONSE_S, HostileConnection, responds_with, serving

HOST_NAME = "idp.example.com"
CertificateMaker = Callable[[certificates.CertificateWithKey], certificates.CertificateWithKey]


@pytest.fixture(scope="module")
def authority() -> certificates.CertificateWithKey:
    return certificates.make_certificate("Test authority")


@pytest.fixture
def trusting_policy(policy: Policy, authority: certificates.CertificateWithKey, tmp_path: Path) -> Policy:
    return replace(policy, ca_bundle=authority.write(tmp_path, "authority"))


@pytest.fixture
def valid_context(authority: certificates.CertificateWithKey, tmp_path: Path) -> ssl.SSLContext:
    pair = certificates.make_certificate(HOST_NAME, issuer=authority, names=(HOST_NAME,), addresses=("127.0.0.1",))
    return certificates.server_context(pair.write(tmp_path, "good"))


def test_certificate_is_checked_against_the_host_name(
    trusting_policy: Policy, valid_context: ssl.SSLContext
) -> None:  # A25, A62
    with serving(responds_with(b"{}"), tls=valid_context) as server:
        assert get(f"https://{HOST_NAME}:{server.port}/", trusting_policy).json() == {}
    assert server.server_names == [HOST_NAME]


def test_certificate_is_checked_against_a_literal_address(
    trusting_policy: Policy, valid_context: ssl.SSLContext
) -> None:
    with serving(responds_with(b"{}"), tls=valid_context) as server:
        assert get(f"https://127.0.0.1:{server.port}/", trusting_policy).json() == {}
    other_server = serving(responds_with(b"{}"), tls=valid_context, host="127.0.0.2")
    with other_server as server, pytest.raises(OutboundFailed, match="was issued for another IP address"):
        get(f"https://127.0.0.2:{server.port}/", trusting_policy)


INVALID_CERTIFICATES: list[tuple[CertificateMaker, str]] = [
    (lambda ca: certificates.make_certificate(HOST_NAME, issuer=ca, names=(HOST_NAME,), days=(-3, -1)), "has expired"),
    (
        lambda ca: certificates.make_certificate(HOST_NAME, issuer=ca, names=(HOST_NAME,), days=(1, 3)),
        "is not valid yet",
    ),
    (
        lambda ca: certificates.make_certificate(HOST_NAME, issuer=ca, names=("other.example.com",)),
        "was issued for another host name",
    ),
    (
        lambda ca: certificates.make_certificate(HOST_NAME, issuer=ca, names=("*.com",)),
        "was issued for another host name",
    ),
    (lambda ca: certificates.make_certificate(HOST_NAME, names=(HOST_NAME,)), "is self-signed"),
    (
        lambda ca: certificates.make_certificate(
            HOST_NAME, issuer=certificates.make_certificate("Stranger"), names=(HOST_NAME,)
        ),
        "was issued by an authority that this server does not trust",
    ),
]


@pytest.mark.parametrize(
    ("make_certificate", "fault"), INVALID_CERTIFICATES, ids=[fault for _, fault in INVALID_CERTIFICATES]
)
def test_invalid_certificate_is_refused_with_a_reason(  # A62
    trusting_policy: Policy,
    authority: certificates.CertificateWithKey,
    tmp_path: Path,
    make_certificate: CertificateMaker,
    fault: str,
) -> None:
    context = certificates.server_context(make_certificate(authority).write(tmp_path, "leaf"))
    with serving(responds_with(b"{}"), tls=context) as server, pytest.raises(OutboundFailed) as exc_info:
        get(f"https://{HOST_NAME}:{server.port}/", trusting_policy)
    assert exc_info.value.code == "tls"
    assert f"The certificate of {HOST_NAME} {fault}" in exc_info.value.message
    assert "\n" not in exc_info.value.message
    assert server.requests == []


def test_private_authority_is_not_trusted_without_the_operators_bundle(
    policy: Policy, valid_context: ssl.SSLContext
) -> None:
    with (
        serving(responds_with(b"{}"), tls=valid_context) as server,
        pytest.raises(OutboundFailed, match="SVC_CA_BUNDLE"),
    ):
        get(f"https://{HOST_NAME}:{server.port}/", policy)


def test_renewed_bundle_applies_without_a_restart(trusting_policy: Policy, valid_context: ssl.SSLContext) -> None:
    assert trusting_policy.ca_bundle
    bundle_before = trusting_policy.ca_bundle.read_bytes()
    certificates.make_certificate("Stranger").write(trusting_policy.ca_bundle.parent, trusting_policy.ca_bundle.stem)
    with serving(responds_with(b"{}"), tls=valid_context) as server:
        with pytest.raises(OutboundFailed):
            get(f"https://{HOST_NAME}:{server.port}/", trusting_policy)
        trusting_policy.ca_bundle.write_bytes(bundle_before)
        new_mtime_ns = trusting_policy.ca_bundle.stat().st_mtime_ns + 10**9
        os.utime(trusting_policy.ca_bundle, ns=(new_mtime_ns, new_mtime_ns))
        assert get(f"https://{HOST_NAME}:{server.port}/", trusting_policy).status == 200


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_error_of_an_unusable_bundle_names_its_setting(
    policy: Policy, valid_context: ssl.SSLContext, tmp_path: Path, content: bytes | None
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_bytes(content)
    with (
        serving(responds_with(b"{}"), tls=valid_context) as server,
        pytest.raises(OutboundFailed, match="SVC_CA_BUNDLE") as exc_info,
    ):
        get(f"https://{HOST_NAME}:{server.port}/", replace(policy, ca_bundle=bundle))
    assert exc_info.value.code == "ca_bundle"
    assert str(tmp_path) not in exc_info.value.message


def test_deadline_covers_a_slow_response_over_tls(
    trusting_policy: Policy, valid_context: ssl.SSLContext
) -> None:  # A28
    def send_slowly(connection: HostileConnection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
        connection.drip(b"x")

    started_at = monotonic()
    with serving(send_slowly, tls=valid_context) as server, pytest.raises(OutboundFailed, match="within 1 s"):
        get(f"https://{HOST_NAME}:{server.port}/", trusting_policy.limited_to(1))
    assert monotonic() - started_at < MAX_RESPONSE_S / 2


def test_verification_is_always_on_and_old_tls_is_off(trusting_policy: Policy) -> None:  # A62
    for context in (ssl_context(None), ssl_context(trusting_policy.ca_bundle)):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_ca_bundle_is_added_to_the_system_certificate_authorities(trusting_policy: Policy) -> None:
    system_certificates = {bytes(der) for der in ssl_context(None).get_ca_certs(binary_form=True)}
    trusted_certificates = {bytes(der) for der in ssl_context(trusting_policy.ca_bundle).get_ca_certs(binary_form=True)}
    assert trusted_certificates > system_certificates


def test_plain_http_server_is_reported(trusting_policy: Policy) -> None:
    http_server = serving(lambda connection: connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with http_server as server, pytest.raises(OutboundFailed) as exc_info:
        get(f"https://{HOST_NAME}:{server.port}/", trusting_policy)
    assert exc_info.value.code == "tls"
    assert exc_info.value.message.startswith(f"{HOST_NAME} responded without encryption.")


def test_required_client_certificate_is_reported(trusting_policy: Policy, valid_context: ssl.SSLContext) -> None:
    valid_context.load_verify_locations(cafile=trusting_policy.ca_bundle)
    valid_context.verify_mode = ssl.CERT_REQUIRED
    with serving(responds_with(b"{}"), tls=valid_context) as server, pytest.raises(OutboundFailed) as exc_info:
        get(f"https://{HOST_NAME}:{server.port}/", trusting_policy)
    assert exc_info.value.code == "tls"

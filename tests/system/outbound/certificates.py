"""Creates certificates for the hostile server: an authority, and certificates that may have a fault."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = datetime.now(UTC)
ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class CertificateWithKey:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def write(self, folder: Path, name: str) -> Path:
        path = folder / f"{name}.pem"
        private_bytes = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM) + private_bytes)
        return path


def make_certificate(
    name: str,
    *,
    issuer: CertificateWithKey | None = None,
    names: tuple[str, ...] = (),
    addresses: tuple[str, ...] = (),
    days: tuple[int, int] = (-1, 1),
) -> CertificateWithKey:
    """A certificate for `names` and `addresses`, or an authority if both are empty; self-signed without an issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    is_authority = not (names or addresses)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + days[0] * ONE_DAY)
        .not_valid_after(NOW + days[1] * ONE_DAY)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if not is_authority:
        ip_addresses = [x509.IPAddress(ip_address(address)) for address in addresses]
        alternative_names = x509.SubjectAlternativeName([*map(x509.DNSName, names), *ip_addresses])
        builder = builder.add_extension(alternative_names, critical=False)
    return CertificateWithKey(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def server_context(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context

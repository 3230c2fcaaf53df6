"""An authority for tests, and certificates that it signs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class Pair:
    """Files: a certificate, and its key."""

    cert: Path
    key: Path

    @property
    def both(self) -> Path:
        """One file with both."""
        joined = self.cert.with_suffix(".both.pem")
        joined.write_bytes(self.cert.read_bytes() + self.key.read_bytes())
        return joined


class Authority:
    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._built(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.cert = directory / f"{name}.pem"
        self.cert.write_bytes(made.public_bytes(_PEM))

    def sign(self, name: str, *addresses: str) -> Pair:
        """A certificate for a name and for addresses; the same name again makes another one in its place."""
        key = ec.generate_private_key(ec.SECP256R1())
        known = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._built(subject, key, x509.SubjectAlternativeName([x509.DNSName(name), *known]))
        pair = Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        pair.cert.write_bytes(made.public_bytes(_PEM))
        form = serialization.PrivateFormat.PKCS8
        pair.key.write_bytes(key.private_bytes(_PEM, form, serialization.NoEncryption()))
        return pair

    def _built(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=2))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self._key, hashes.SHA256())
        )

"""Keys as such: making them, and telling a good public key from a bad one."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moorage.compute.errors import ComputeError
from moorage.core.clock import utcnow

SSH = "ssh"
X509 = "x509"
_BITS = 2048
_CERTIFICATE_LIFE = timedelta(days=3650)


@dataclass(frozen=True)
class GeneratedKey:
    private_key: str
    public_key: str


def fingerprint(kind: str, public_key: str) -> str:
    """What identifies the key; a text that is no key is refused."""
    try:
        return _of_certificate(public_key) if kind == X509 else _of_ssh(public_key)
    except (ValueError, UnicodeEncodeError, binascii.Error, IndexError, UnsupportedAlgorithm) as error:
        raise ComputeError("Keypair data is invalid: failed to generate fingerprint") from error


def _of_ssh(public_key: str) -> str:
    encoded = public_key.encode()
    serialization.load_ssh_public_key(encoded)
    blob = base64.b64decode(encoded.split()[1])
    return _in_pairs(hashlib.md5(blob, usedforsecurity=False).hexdigest())


def _of_certificate(text: str) -> str:
    certificate = x509.load_pem_x509_certificate(text.encode())
    return _in_pairs(certificate.fingerprint(hashes.SHA1()).hex())


def _in_pairs(digits: str) -> str:
    return ":".join(digits[index : index + 2] for index in range(0, len(digits), 2))


def generate(kind: str, user_id: str) -> GeneratedKey:
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL if kind == SSH else serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    if kind == X509:
        return GeneratedKey(private, _certificate(key, user_id))
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return GeneratedKey(private, f"{public.decode()} Generated-by-Moorage\n")


def _certificate(key: rsa.RSAPrivateKey, user_id: str) -> str:
    """Signed by itself, for a client that logs in with it."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user_id[:64])])
    now = utcnow()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + _CERTIFICATE_LIFE)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()

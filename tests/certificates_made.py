"""Certificates such as midst makes, and such as it refuses, of any name, date, key and issuer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from midst.net.identity.keys import Identity, load_identity

NOW = datetime.now(UTC)
DER, PEM = serialization.Encoding.DER, serialization.Encoding.PEM


def certify(
    names: str | Sequence[str],
    key: Any = None,
    *,
    begins: datetime = NOW - timedelta(hours=1),
    expires: datetime = NOW + timedelta(days=9),
    by: tuple[str, Any] | None = None,
    authority: bool | None = False,
) -> bytes:
    """A certificate in DER.

    Args:
        names: its common names.
        key: that it is about; an Ed25519 key if not given.
        begins: from when it is valid.
        expires: until when.
        by: name and key of who signs it; its own if not given.
        authority: whether it may sign others; None where it does not say.
    """
    key = key or Ed25519PrivateKey.generate()
    issuer, signer = by or (names, key)
    builder = x509.CertificateBuilder(_name(issuer), _name(names), key.public_key(), 1, begins, expires)
    if authority is not None:
        builder = builder.add_extension(x509.BasicConstraints(authority, None), critical=True)
    return builder.sign(signer, None if isinstance(signer, Ed25519PrivateKey) else hashes.SHA256()).public_bytes(DER)


def pem(key: Any, locked: bytes | None = None) -> bytes:
    """A private key as a file holds it; with a pass phrase, if one is given."""
    how = serialization.NoEncryption() if locked is None else serialization.BestAvailableEncryption(locked)
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, how)


def write_identity(folder: Path, name: str, key: Any, certificate: bytes) -> Path:
    """The file of a key, with its certificate, in PEM, beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.key"
    path.touch(0o600)
    path.write_bytes(pem(key))
    path.with_suffix(".crt").write_bytes(x509.load_der_x509_certificate(certificate).public_bytes(PEM))
    return path


def make_dated(folder: Path, name: str, **dates: datetime) -> Identity:
    """An identity with a certificate of any date."""
    key = Ed25519PrivateKey.generate()
    return load_identity(write_identity(folder, name, key, certify(name, key, **dates)))


def _name(names: str | Sequence[str]) -> x509.Name:
    listed = [names] if isinstance(names, str) else names
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name) for name in listed])

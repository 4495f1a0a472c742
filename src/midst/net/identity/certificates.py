"""Certificates: what one says, and whether it is the participant's that the charter names.

Rules:
- A certificate's common name is the participant's name. Whom a node talks to is settled by the fingerprint in the
  charter, the hash of the whole certificate.
- Nothing that a certificate says is repeated in a message before it has been checked to be a name.
"""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from midst.errors import InputError
from midst.files import check_alone

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

Kind = Literal["ed25519", "p256"]
Fault = Literal["unknown", "wrong name", "expired", "not yet valid", "no certificate"]

KINDS: tuple[Kind, ...] = ("ed25519", "p256")
WARN_BEFORE = timedelta(days=30)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ED25519_SIGNATURE = 64  # bytes
_REMEMBERED = 512  # certificates: of each neighbour and signer, some are read again and again
_LARGEST = 64 * 1024  # bytes of a file that holds one key or one certificate


class CertificateFault(NamedTuple):
    """Why a certificate is refused.

    Attributes:
        kind: for programs.
        text: for people: one line, with what to do.
    """

    kind: Fault
    text: str


@dataclass(frozen=True)
class CertificateDetails:
    """What a certificate says.

    Attributes:
        name: its common name; not checked yet to be a participant's name.
        kind: of its key; None for a kind that midst does not use.
        fingerprint: "sha256:" and 64 hexadecimal digits, the hash of the whole certificate.
        begins: from when it is valid.
        expires: until when.
        authority: whether it may sign others.
    """

    name: str
    kind: Kind | None
    fingerprint: str
    begins: datetime
    expires: datetime
    authority: bool


# Reading


def read_certificate(path: str | Path) -> bytes:
    """The one certificate in a PEM file, in DER.

    Raises:
        InputError: the file cannot be read, or holds no certificate, or more than one.
    """
    return parse_certificate(read_small(Path(path), "a certificate"), str(path))


def parse_certificate(text: bytes, where: str) -> bytes:
    """The one certificate in a PEM text, in DER.

    Args:
        text: may have other lines before and behind.
        where: what to call it in an error.

    Raises:
        InputError: it holds no certificate, or more than one.
    """
    found = re.findall(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", text, re.DOTALL)
    if len(found) != 1:
        what = (
            "a private key, which nobody but its owner may have" if b"PRIVATE KEY" in text else f"{len(found)} of them"
        )
        raise InputError(f"{where}: expected one certificate in PEM, found {what}; see: midst keys show")
    try:
        der = ssl.PEM_cert_to_DER_cert(found[0].decode("ascii"))
    except ValueError:
        raise InputError(f"{where}: the certificate is damaged; ask for it again") from None
    describe(der, where)
    return der


def describe(der: bytes, where: str = "certificate") -> CertificateDetails:
    """What a certificate says.

    Raises:
        InputError: it is not a certificate, or has not exactly one common name.
    """
    said = _read_details(der)
    if isinstance(said, str):
        raise InputError(f"{where}: {said}")
    return said


@lru_cache(maxsize=_REMEMBERED)
def _read_details(der: bytes) -> CertificateDetails | str:
    """What a certificate says, or what is wrong with it."""
    from cryptography import x509

    try:
        certificate = x509.load_der_x509_certificate(der)
        names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        try:
            constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
            authority = constraints.ca
        except x509.ExtensionNotFound:
            authority = False
        begins, expires = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        kind = kind_of(certificate.public_key())
    except Exception:  # the parser is lazy, and what it raises about a forged certificate is not documented
        return "the certificate is damaged; ask for it again"
    if len(names) != 1:
        return f"the certificate has {len(names)} common names; it needs one, the participant's"
    return CertificateDetails(str(names[0].value), kind, fingerprint(der), begins, expires, authority)


def fingerprint(der: bytes) -> str:
    """The hash by which people and charters know a certificate."""
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


def check_name(name: str, where: str) -> str:
    """The name, if it is one that a participant or a session may have.

    Raises:
        InputError: it is not; it is not repeated.
    """
    if _NAME.fullmatch(name) is None:
        raise InputError(f"{where} must be 1 to 64 of the characters a-z 0-9 . _ - and begin with a letter or a digit")
    return name


# Judging


def check_certificate(der: bytes | None, name: str, fingerprint: str, now: datetime) -> CertificateFault | None:
    """What is wrong with the certificate that somebody showed; None if it is the participant's in the charter.

    Args:
        der: what was shown, if anything.
        name: the participant it should be.
        fingerprint: of that participant's certificate, from the charter.
        now: an aware time.
    """
    if der is None:
        return CertificateFault(
            "no certificate", f"{name} showed no certificate; is something else listening at its address?"
        )
    try:
        shown = describe(der)
    except InputError:
        return CertificateFault(
            "unknown", f"the certificate shown for {name} cannot be read; check what listens at its address"
        )
    if shown.name != name:
        other = shown.name if _NAME.fullmatch(shown.name) else "somebody whose name is not allowed"
        return CertificateFault(
            "wrong name", f"expected {name}, but the certificate is of {other}; check the addresses"
        )
    if shown.fingerprint != fingerprint:
        advice = f"ask {name} which is right, and agree on one charter"
        return CertificateFault(
            "unknown", f"{name} has certificate {shown.fingerprint}, the charter {fingerprint}; {advice}"
        )
    if now > shown.expires:
        advice = "make a new one, and a charter with it"
        return CertificateFault("expired", f"the certificate of {name} expired on {day(shown.expires)}; {advice}")
    if now < shown.begins:
        advice = "check the clocks of both hosts"
        return CertificateFault(
            "not yet valid", f"the certificate of {name} is valid from {day(shown.begins)}; {advice}"
        )
    return None


def expiry_warning(der: bytes, now: datetime) -> str | None:
    """One line for people about a certificate that has expired, is not yet valid, or will expire within 30 days."""
    said = describe(der)
    name = said.name if _NAME.fullmatch(said.name) else "somebody whose name is not allowed"
    if now > said.expires:
        return f"the certificate of {name} expired on {day(said.expires)}; make a new one, and a charter with it"
    if now < said.begins:
        return f"the certificate of {name} is valid from {day(said.begins)}; check this host's clock"
    if now > said.expires - WARN_BEFORE:
        left = (said.expires - now).days
        return f"the certificate of {name} expires in {left} days, on {day(said.expires)}; make a new one in time"
    return None


@lru_cache(maxsize=_REMEMBERED)
def signature_checker(certificate: bytes) -> Callable[[bytes, bytes], bool]:
    """What tells whether the certificate's key signed some data, given the data and the signature.

    Raises:
        InputError: the certificate is damaged.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    key = public_key(certificate, "certificate")
    if isinstance(key, ed25519.Ed25519PublicKey):
        return partial(_check_ed25519, key.public_bytes_raw())
    if isinstance(key, ec.EllipticCurvePublicKey) and kind_of(key) is not None:
        return partial(_check_p256, key)
    return lambda data, signature: False


def _check_ed25519(key: bytes, data: bytes, signature: bytes) -> bool:
    from nacl.bindings import crypto_sign_open  # in half the time that OpenSSL takes, and it refuses no less
    from nacl.exceptions import BadSignatureError

    if len(signature) != _ED25519_SIGNATURE:  # the signature and what is signed are one text to it
        return False
    try:
        crypto_sign_open(signature + data, key)
    except BadSignatureError:
        return False
    return True


def _check_p256(key: EllipticCurvePublicKey, data: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def verify(certificate: bytes, signature: bytes, data: bytes) -> None:
    """Checks a signature made by `Identity.sign`.

    Raises:
        InputError: it is not the certificate's key that signed this.
    """
    if not signature_checker(certificate)(data, signature):
        raise InputError("the signature is not of this certificate's key")


# Parts, of keys too


def read_small(path: Path, what: str, *, alone: bool = False) -> bytes:
    """A file of reasonable size; one that its owner alone may touch, if so asked."""
    try:
        with path.open("rb") as file:
            if alone:
                check_alone(file.fileno(), path, "key")
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    if len(text) > _LARGEST:
        raise InputError(f"{path}: too large for {what}")
    return text


def kind_of(key: object) -> Kind | None:
    """The kind of a public key; None for one that midst does not use."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    if isinstance(key, ed25519.Ed25519PublicKey):
        return "ed25519"
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return "p256"
    return None


def public_key(der: bytes, where: str) -> object:
    """The key that a certificate is about.

    Raises:
        InputError: the certificate is damaged.
    """
    from cryptography import x509

    try:
        return x509.load_der_x509_certificate(der).public_key()
    except Exception:  # as in `describe`
        raise InputError(f"{where}: the certificate is damaged; ask for it again") from None


def day(when: datetime) -> str:
    """A date, for people."""
    return f"{when:%Y-%m-%d}"

"""Certificates: what one says, and whether it is the participant's that the charter names.

Rules:
- A certificate is of an Ed25519 key, signed by that key itself, and may sign no other certificate.
- Its common name is the participant's name. Whom a node talks to is settled by the fingerprint in the charter, the hash
  of the whole certificate.
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
from midst.files import read_at_most

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

Fault = Literal["unknown", "wrong name", "expired", "not yet valid", "no certificate"]

WARN_BEFORE = timedelta(days=30)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SIGNATURE = 64  # bytes
_REMEMBERED = 512  # certificates: of each neighbour and signer, some are read again and again
LARGEST = 64 * 1024  # bytes of a file that holds one key or one certificate


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
        key: the Ed25519 key that it is about, 32 bytes.
        fingerprint: "sha256:" and 64 hexadecimal digits, the hash of the whole certificate.
        begins: from when it is valid.
        expires: until when.
    """

    name: str
    key: bytes
    fingerprint: str
    begins: datetime
    expires: datetime


# Reading


def read_certificate(path: str | Path) -> bytes:
    """The one certificate in a PEM file, in DER.

    Raises:
        InputError: the file cannot be read, or holds no certificate, or more than one.
    """
    return parse_certificate(read_at_most(path, LARGEST, "too large for a certificate"), str(path))


def parse_certificate(text: bytes, where: str) -> bytes:
    """The one certificate in a PEM text, in DER.

    There may be other lines before and behind.

    Raises:
        InputError: it holds no certificate, or more than one.
    """
    found = re.findall(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", text, re.DOTALL)
    if len(found) != 1:
        what = f"{len(found)} of them"
        if b"PRIVATE KEY" in text:
            what = "a private key, which nobody but its owner may have"
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
        InputError: it is not a certificate, has not exactly one common name, or is none such as `make_identity` makes.
    """
    said = _read_details(der)
    if isinstance(said, str):
        raise InputError(f"{where}: {said}")
    return said


@lru_cache(maxsize=_REMEMBERED)
def _read_details(der: bytes) -> CertificateDetails | str:
    """What a certificate says, or what is wrong with it."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        certificate = x509.load_der_x509_certificate(der)
        names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        begins, expires = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        key = certificate.public_key()
    except Exception:  # the parser is lazy, and what it raises about a forged certificate is not documented
        return "the certificate is damaged; ask for it again"
    if len(names) != 1:
        return f"the certificate has {len(names)} common names; it needs one, the participant's"
    if not (isinstance(key, Ed25519PublicKey) and _stands_alone(certificate)):
        return "the certificate is not one of an Ed25519 key that signed it itself; make one with: midst keys init NAME"
    return CertificateDetails(str(names[0].value), key.public_bytes_raw(), fingerprint(der), begins, expires)


def _stands_alone(certificate: Certificate) -> bool:
    """Whether its own key signed it, and may sign no other."""
    from cryptography import x509

    try:
        certificate.verify_directly_issued_by(certificate)
        return not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except Exception:  # as above
        return False


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

    The name and the fingerprint are those of the charter; the time is an aware one.
    """
    if der is None:
        text = f"{name} showed no certificate; is something else listening at its address?"
        return CertificateFault("no certificate", text)
    try:
        shown = describe(der)
    except InputError:
        text = f"the certificate shown for {name} cannot be read; check what listens at its address"
        return CertificateFault("unknown", text)
    if shown.name != name:
        text = f"expected {name}, but the certificate is of {_name_of(shown)}; check the addresses"
        return CertificateFault("wrong name", text)
    if shown.fingerprint != fingerprint:
        advice = f"ask {name} which is right, and agree on one charter"
        text = f"{name} has certificate {shown.fingerprint}, the charter {fingerprint}; {advice}"
        return CertificateFault("unknown", text)
    if now > shown.expires:
        return CertificateFault("expired", _expired(shown))
    if now < shown.begins:
        text = f"the certificate of {name} is valid from {_day(shown.begins)}; check the clocks of both hosts"
        return CertificateFault("not yet valid", text)
    return None


def expiry_warning(der: bytes, now: datetime) -> str | None:
    """One line for people about a certificate that has expired, is not yet valid, or will expire within 30 days."""
    said = describe(der)
    name = _name_of(said)
    if now > said.expires:
        return _expired(said)
    if now < said.begins:
        return f"the certificate of {name} is valid from {_day(said.begins)}; check this host's clock"
    if now > said.expires - WARN_BEFORE:
        left = (said.expires - now).days
        return f"the certificate of {name} expires in {left} days, on {_day(said.expires)}; make a new one in time"
    return None


@lru_cache(maxsize=_REMEMBERED)
def signature_checker(certificate: bytes) -> Callable[[bytes, bytes], bool]:
    """What tells whether the certificate's key signed some data, given the data and the signature.

    Raises:
        InputError: the certificate is none of a participant.
    """
    return partial(_is_signed, describe(certificate).key)


def _is_signed(key: bytes, data: bytes, signature: bytes) -> bool:
    """Whether a key signed some data."""
    from nacl.bindings import crypto_sign_open  # in half the time that OpenSSL takes, and it refuses no less
    from nacl.exceptions import BadSignatureError

    if len(signature) != _SIGNATURE:  # the signature and what is signed are one text to it
        return False
    try:
        crypto_sign_open(signature + data, key)
    except BadSignatureError:
        return False
    return True


def _expired(said: CertificateDetails) -> str:
    return f"the certificate of {_name_of(said)} expired on {_day(said.expires)}; make a new one, and a charter with it"


def _name_of(said: CertificateDetails) -> str:
    return said.name if _NAME.fullmatch(said.name) else "somebody whose name is not allowed"


def _day(when: datetime) -> str:
    """A date, for people."""
    return f"{when:%Y-%m-%d}"

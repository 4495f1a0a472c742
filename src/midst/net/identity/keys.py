"""A participant's own key: made, kept, shown to others by a certificate, and the TLS contexts made of both.

Rules:
- A private key is made on the host that uses it, in a file only its owner may read, and is never written again or sent.
- A folder of keys holds `alice.key`, `alice.crt`, and `trusted/*.crt`: certificates of others, or of an authority.
- What is in `trusted/` only lets TLS finish its handshake. Whom a node talks to is settled by the fingerprint in the
  charter (`certificates.check_certificate`), so that a certificate that is wrong or too old gets a refusal that a
  person can read.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from midst.errors import InputError
from midst.files import write_whole
from midst.net.identity.certificates import (
    KINDS,
    Kind,
    check_name,
    day,
    describe,
    fingerprint,
    kind_of,
    public_key,
    read_certificate,
    read_small,
)

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey
    PublicKey = Ed25519PublicKey | EllipticCurvePublicKey

_NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which the ssl module has no name for
_BACKDATED = timedelta(hours=1)  # other hosts' clocks may be behind
_LONGEST = 36_500  # days


@dataclass(frozen=True)
class Request:
    """What an authority is asked to sign.

    Attributes:
        name: whose.
        kind: of its key.
        fingerprint: the hash of the whole request, by which people compare it.
        key: the public key.
    """

    name: str
    kind: Kind
    fingerprint: str
    key: PublicKey = field(repr=False, compare=False)


@dataclass(frozen=True, repr=False)
class Identity:
    """A participant's own key and certificate, and whom it trusts.

    Attributes:
        name: the certificate's common name.
        certificate: in DER.
        key_file: where the private key is.
        certificate_file: where the certificate is.
        trusted: certificates of others, or of authorities.
    """

    name: str
    certificate: bytes
    key_file: Path
    certificate_file: Path
    trusted: tuple[Path, ...]
    _key: PrivateKey = field(compare=False)

    def __repr__(self) -> str:
        return f"<Identity {self.name} {self.fingerprint}>"

    @property
    def fingerprint(self) -> str:
        """The hash of the certificate, as in the charter."""
        return fingerprint(self.certificate)

    @property
    def expires(self) -> datetime:
        """Until when the certificate is valid, in UTC."""
        return describe(self.certificate).expires

    def sign(self, data: bytes) -> bytes:
        """A signature that `verify` accepts. Whoever calls puts a label for the purpose in front of the data."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519

        if isinstance(self._key, ed25519.Ed25519PrivateKey):
            return self._key.sign(data)
        return self._key.sign(data, ec.ECDSA(hashes.SHA256()))

    def context(self, server: bool) -> ssl.SSLContext:
        """TLS 1.3 with a certificate on both sides; the other one's is still to be given to `check_certificate`.

        Raises:
            InputError: the files have changed since they were loaded.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the charter's fingerprint says who it is
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags = ssl.VerifyFlags(
            context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_TRUSTED_FIRST | _NO_CHECK_TIME
        )
        if server:
            context.num_tickets = 0  # every connection shows its certificate anew
        try:
            context.load_cert_chain(self.certificate_file, self.key_file, password="")  # or OpenSSL asks the terminal
        except (OSError, ssl.SSLError):
            raise InputError(
                f"{self.key_file}: key or certificate has changed since it was read; start again"
            ) from None
        context.load_verify_locations(cadata=self._known)
        return context

    @cached_property
    def _known(self) -> bytes:
        """The certificates that are trusted, and its own, by which its doctor finds it; one after the other, in DER."""
        return b"".join([*map(read_certificate, self.trusted), self.certificate])


# Reading


def load_identity(key_file: str | Path) -> Identity:
    """The identity of a key file: alice.key, with alice.crt and trusted/*.crt beside it.

    Raises:
        InputError: a file is missing or damaged, others may read the key, or key and certificate do not match.
    """
    path = Path(key_file)
    if path.suffix != ".key":
        raise InputError(f"{path}: a key file ends in .key; make one with: midst keys init NAME")
    key = _read_key(path)
    beside = path.with_suffix(".crt")
    der = read_certificate(beside)
    said = describe(der, str(beside))
    check_name(said.name, f"{beside}: common name")
    if _public_bytes(key.public_key()) != _public_bytes(public_key(der, str(beside))):
        raise InputError(f"{beside} is not the certificate of {path}; put the certificate of that key beside it")
    trusted = tuple(sorted((path.parent / "trusted").glob("*.crt")))
    for other in trusted:
        read_certificate(other)
    return Identity(said.name, der, path, beside, trusted, key)


# Making


def make_identity(
    name: str, folder: str | Path, kind: Kind = "ed25519", days: int = 365, *, authority: bool = False
) -> Identity:
    """A new key with a certificate signed by itself: NAME.key and NAME.crt in the folder, which is made if need be.

    Args:
        name: the participant's, or the authority's.
        folder: where.
        kind: of the key.
        days: how long the certificate is valid.
        authority: whether it may sign the certificates of others.

    Raises:
        InputError: a parameter is out of range, or there is such a key or certificate already.
    """
    check_name(name, "name")
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}")
    until = _until(days)
    place = Path(folder)
    key_file, certificate_file = place / f"{name}.key", place / f"{name}.crt"
    for path in (key_file, certificate_file):
        if path.exists():
            raise InputError(f"{path} exists; midst never writes over a key or its certificate: choose another folder")
    key = _make_key(kind)
    certificate = _certify(name, key.public_key(), name, key, until, authority)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be made: {error.strerror}") from None
    _write_key(key_file, key)
    try:
        write_whole(certificate_file, lambda file: file.write(certificate), mode=0o644)
    except BaseException:
        key_file.unlink()
        raise
    return load_identity(key_file)


def renew_identity(key_file: str | Path, days: int = 365) -> tuple[Identity, Path]:
    """A new key of the same kind, with a new certificate, in place of an old one, which is kept beside it.

    The old key is still good for sessions whose charter has its certificate: its file is named after that. Should this
    be cut short between the two files, key and certificate do not match, which is said; the old ones are there.

    Returns:
        The new identity, and where the old key is now.

    Raises:
        InputError: there is no such key; it is an authority's; or the days are out of range.
    """
    old = load_identity(key_file)
    said = describe(old.certificate)
    if said.authority:
        raise InputError(f"{old.name} is an authority: all that it signed would have to be signed anew; make another")
    assert said.kind is not None, "the key was checked when it was loaded"
    key, until = _make_key(said.kind), _until(days)
    certificate = _certify(old.name, key.public_key(), old.name, key, until, False)
    kept = old.key_file.with_name(f"{old.name}.{said.fingerprint.removeprefix('sha256:')[:16]}.key")
    fresh = old.key_file.with_name(f".{old.name}.key")  # no participant's: names do not begin so
    pem = ssl.DER_cert_to_PEM_cert(old.certificate).encode("ascii")
    if not kept.exists():  # else it was cut short before
        _write_key(kept, old._key)
    elif _public_bytes(_read_key(kept).public_key()) != _public_bytes(old._key.public_key()):
        raise InputError(f"{kept} is another key, where the old one is to be kept; move it away")
    write_whole(kept.with_suffix(".crt"), lambda file: file.write(pem), mode=0o644)
    fresh.unlink(missing_ok=True)
    _write_key(fresh, key)
    os.replace(fresh, old.key_file)
    write_whole(old.certificate_file, lambda file: file.write(certificate), mode=0o644)
    return load_identity(old.key_file), kept


def make_request(identity: Identity) -> bytes:
    """A request, in PEM, that an authority signs the identity's name and public key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(identity.name))
    return builder.sign(identity._key, _hash_for(identity._key)).public_bytes(serialization.Encoding.PEM)


def read_request(path: str | Path) -> Request:
    """A request for a certificate, checked to be signed by the key it is about.

    Raises:
        InputError: it is not a request, is damaged, or is about a name or a kind of key that is not allowed.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    text = read_small(Path(path), "a request")
    try:
        request = x509.load_pem_x509_csr(text)
        whole = request.is_signature_valid
        names = request.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        key = request.public_key()
        kind = kind_of(key)
    except Exception:  # as in `describe`
        raise InputError(f"{path}: not a request; make one with: midst keys request NAME.key") from None
    if not whole or len(names) != 1:
        raise InputError(f"{path}: the request is damaged; ask for it again")
    if kind is None:
        raise InputError(f"{path}: a key must be of kind {' or '.join(KINDS)}")
    name = check_name(str(names[0].value), f"{path}: common name")
    digest = fingerprint(request.public_bytes(serialization.Encoding.DER))
    return Request(name, kind, digest, key)  # type: ignore[arg-type]  # its kind has been checked


def sign_request(request: Request, authority: Identity, days: int = 365) -> bytes:
    """A certificate, in PEM, for the name and the key of a request; valid no longer than the authority's own.

    Raises:
        InputError: who signs is no authority, or its certificate is not valid now, or the name is its own.
    """
    own = describe(authority.certificate)
    until = min(_until(days), own.expires)
    if not own.authority:
        raise InputError(f"{authority.name} is no authority; make one with: midst keys init NAME --authority")
    if not own.begins <= datetime.now(UTC) <= own.expires:
        raise InputError(f"the authority's certificate is valid from {day(own.begins)} to {day(own.expires)} only")
    if request.name == authority.name:
        raise InputError(f"{request.name} is the authority's own name; a participant needs another")
    return _certify(request.name, request.key, authority.name, authority._key, until, False)


@dataclass(frozen=True)
class Trusted:
    """A certificate that is trusted from now on.

    Attributes:
        name: whose.
        certificate: in DER.
        was: what was trusted of that name before: "nothing", "the same" or "another".
    """

    name: str
    certificate: bytes = field(repr=False)
    was: Literal["nothing", "the same", "another"]


def trust(
    certificates: Iterable[tuple[str, bytes]], folder: str | Path, *, replace: bool = False
) -> tuple[Trusted, ...]:
    """Puts certificates into trusted/ of a folder of keys, each named after its common name: all of them, or none.

    Args:
        certificates: in DER, each with what to call it in an error.
        folder: where one's own key is.
        replace: also in place of another certificate of the same name.

    Raises:
        InputError: another one of its name is trusted already or given too.
    """
    place = Path(folder) / "trusted"
    chosen: dict[Path, Trusted] = {}
    for where, der in certificates:
        name = check_name(describe(der, where).name, f"{where}: common name")
        target = place / f"{name}.crt"
        known = read_certificate(target) if target.exists() else None
        one = Trusted(name, der, "nothing" if known is None else "the same" if known == der else "another")
        if chosen.setdefault(target, one).certificate != der:
            raise InputError(f"{where}: another certificate of {name} is given too; ask {name} which is right")
        if one.was == "another" and not replace:
            raise InputError(
                f"{where}: {target} is another certificate of {name}; if {name} has a new one, add --replace"
            )
    if not place.parent.is_dir():
        raise InputError(f"folder {place.parent} does not exist; first make your own key: midst keys init NAME")
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be made: {error.strerror}") from None
    for target, one in chosen.items():
        text = ssl.DER_cert_to_PEM_cert(one.certificate).encode("ascii")
        write_whole(target, lambda file, text=text: file.write(text), mode=0o644)  # type: ignore[misc]
    return tuple(chosen.values())


# Inside


def _read_key(path: Path) -> PrivateKey:
    from cryptography.hazmat.primitives import serialization

    text = read_small(path, "a key", alone=True)
    try:
        key = serialization.load_pem_private_key(text, None)
    except TypeError:
        raise InputError(
            f"{path}: the key is locked with a pass phrase; a node starts without anybody to type it"
        ) from None
    except Exception:  # as in `describe`
        raise InputError(f"{path}: not a private key in PEM; make one with: midst keys init NAME") from None
    if kind_of(key.public_key()) is None:
        raise InputError(f"{path}: a key must be of kind {' or '.join(KINDS)}")
    return key  # type: ignore[return-value]  # its kind has been checked


def _write_key(path: Path, key: PrivateKey) -> None:
    from cryptography.hazmat.primitives import serialization

    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{path} exists; midst never writes over a key: choose another folder") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise


def _make_key(kind: Kind) -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    return ed25519.Ed25519PrivateKey.generate() if kind == "ed25519" else ec.generate_private_key(ec.SECP256R1())


def _hash_for(key: PrivateKey) -> hashes.SHA256 | None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def _public_bytes(key: object) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.public_bytes(  # type: ignore[attr-defined, no-any-return]
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _subject(name: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _certify(name: str, key: PublicKey, issuer: str, issuer_key: PrivateKey, until: datetime, authority: bool) -> bytes:
    """A certificate in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID

    uses = {
        "digital_signature": not authority, "key_cert_sign": authority, "crl_sign": authority,
        "content_commitment": False, "key_encipherment": False, "data_encipherment": False,
        "key_agreement": False, "encipher_only": False, "decipher_only": False,
    }  # fmt: skip
    builder = (
        x509.CertificateBuilder()
        .subject_name(_subject(name))
        .issuer_name(_subject(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - _BACKDATED)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.KeyUsage(**uses), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    if not authority:
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    return builder.sign(issuer_key, _hash_for(issuer_key)).public_bytes(serialization.Encoding.PEM)


def _until(days: int) -> datetime:
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= _LONGEST:
        raise InputError(f"days must be a whole number from 1 to {_LONGEST}")
    return datetime.now(UTC) + timedelta(days=days)

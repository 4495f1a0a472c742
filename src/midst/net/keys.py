"""Who is who: keys, certificates, and the TLS contexts made of them.

Rules:
- A private key is made on the host that uses it, in a file only its owner may read, and is never written again or sent.
- A certificate's common name is the participant's name. Whom a node talks to is settled by the fingerprint in the
  charter, the hash of the whole certificate; what is in `trusted/` only lets TLS finish its handshake, so that a
  certificate that is wrong or too old gets a refusal that a person can read (`check_certificate`).
- A folder of keys holds `alice.key`, `alice.crt`, and `trusted/*.crt`: certificates of others, or of an authority.
- Nothing that a certificate says is repeated in a message before it has been checked to be a name.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from midst.errors import InputError
from midst.files import write_whole

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey
    PublicKey = Ed25519PublicKey | EllipticCurvePublicKey

Kind = Literal["ed25519", "p256"]
Fault = Literal["unknown", "wrong name", "expired", "not yet valid", "no certificate"]

KINDS: tuple[Kind, ...] = ("ed25519", "p256")
WARN_BEFORE = timedelta(days=30)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which the ssl module has no name for
_BACKDATED = timedelta(hours=1)  # other hosts' clocks may be behind
_LONGEST = 36_500  # days
_LARGEST = 64 * 1024  # bytes of a file that holds one key or one certificate


class Problem(NamedTuple):
    """Why a certificate is refused.

    Attributes:
        kind: for programs.
        text: for people: one line, with what to do.
    """

    kind: Fault
    text: str


@dataclass(frozen=True)
class Certificate:
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
        if known := b"".join(read_certificate(path) for path in self.trusted):
            context.load_verify_locations(cadata=known)
        return context


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
    if _public_bytes(key.public_key()) != _public_bytes(_public_key(der, str(beside))):
        raise InputError(f"{beside} is not the certificate of {path}; put the certificate of that key beside it")
    trusted = tuple(sorted((path.parent / "trusted").glob("*.crt")))
    for other in trusted:
        read_certificate(other)
    return Identity(said.name, der, path, beside, trusted, key)


def read_certificate(path: str | Path) -> bytes:
    """The one certificate in a PEM file, in DER.

    Raises:
        InputError: the file cannot be read, or holds no certificate, or more than one.
    """
    text = _read_small(Path(path), "a certificate")
    found = re.findall(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", text, re.DOTALL)
    if len(found) != 1:
        what = (
            "a private key, which nobody but its owner may have" if b"PRIVATE KEY" in text else f"{len(found)} of them"
        )
        raise InputError(f"{path}: expected one certificate in PEM, found {what}; see: midst keys show")
    try:
        der = ssl.PEM_cert_to_DER_cert(found[0].decode("ascii"))
    except ValueError:
        raise InputError(f"{path}: the certificate is damaged; ask for it again") from None
    describe(der, str(path))
    return der


def describe(der: bytes, where: str = "certificate") -> Certificate:
    """What a certificate says.

    Raises:
        InputError: it is not a certificate, or has not exactly one common name.
    """
    from cryptography import x509

    certificate = _parse(der, where)
    try:
        names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        try:
            constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
            authority = constraints.ca
        except x509.ExtensionNotFound:
            authority = False
        begins, expires = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        kind = _kind(certificate.public_key())
    except Exception:  # the parser is lazy, and what it raises about a forged certificate is not documented
        raise InputError(f"{where}: the certificate is damaged; ask for it again") from None
    if len(names) != 1:
        raise InputError(f"{where}: the certificate has {len(names)} common names; it needs one, the participant's")
    return Certificate(str(names[0].value), kind, fingerprint(der), begins, expires, authority)


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


def check_certificate(der: bytes | None, name: str, fingerprint: str, now: datetime) -> Problem | None:
    """What is wrong with the certificate that somebody showed; None if it is the participant's in the charter.

    Args:
        der: what was shown, if anything.
        name: the participant it should be.
        fingerprint: of that participant's certificate, from the charter.
        now: an aware time.
    """
    if der is None:
        return Problem("no certificate", f"{name} showed no certificate; is something else listening at its address?")
    try:
        shown = describe(der)
    except InputError:
        return Problem("unknown", f"the certificate shown for {name} cannot be read; check what listens at its address")
    if shown.name != name:
        other = shown.name if _NAME.fullmatch(shown.name) else "somebody whose name is not allowed"
        return Problem("wrong name", f"expected {name}, but the certificate is of {other}; check the addresses")
    if shown.fingerprint != fingerprint:
        advice = f"ask {name} which is right, and agree on one charter"
        return Problem("unknown", f"{name} has certificate {shown.fingerprint}, the charter {fingerprint}; {advice}")
    if now > shown.expires:
        advice = "make a new one, and a charter with it"
        return Problem("expired", f"the certificate of {name} expired on {_day(shown.expires)}; {advice}")
    if now < shown.begins:
        advice = "check the clocks of both hosts"
        return Problem("not yet valid", f"the certificate of {name} is valid from {_day(shown.begins)}; {advice}")
    return None


def expiry_warning(der: bytes, now: datetime) -> str | None:
    """One line for people about a certificate that has expired, is not yet valid, or will expire within 30 days."""
    said = describe(der)
    name = said.name if _NAME.fullmatch(said.name) else "somebody whose name is not allowed"
    if now > said.expires:
        return f"the certificate of {name} expired on {_day(said.expires)}; make a new one, and a charter with it"
    if now < said.begins:
        return f"the certificate of {name} is valid from {_day(said.begins)}; check this host's clock"
    if now > said.expires - WARN_BEFORE:
        left = (said.expires - now).days
        return f"the certificate of {name} expires in {left} days, on {_day(said.expires)}; make a new one in time"
    return None


def verify(certificate: bytes, signature: bytes, data: bytes) -> None:
    """Checks a signature made by `Identity.sign`.

    Raises:
        InputError: it is not the certificate's key that signed this.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    key = _public_key(certificate, "certificate")
    try:
        if _kind(key) is None:
            raise InvalidSignature
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, data)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise InputError("the signature is not of this certificate's key") from None


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

    text = _read_small(Path(path), "a request")
    try:
        request = x509.load_pem_x509_csr(text)
        whole = request.is_signature_valid
        names = request.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        key = request.public_key()
        kind = _kind(key)
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
        raise InputError(f"the authority's certificate is valid from {_day(own.begins)} to {_day(own.expires)} only")
    if request.name == authority.name:
        raise InputError(f"{request.name} is the authority's own name; a participant needs another")
    return _certify(request.name, request.key, authority.name, authority._key, until, False)


def trust(certificates: Sequence[str | Path], folder: str | Path, *, replace: bool = False) -> tuple[Path, ...]:
    """Copies certificates into trusted/ of a folder of keys, each named after its common name: all of them, or none.

    Args:
        certificates: files.
        folder: where one's own key is.
        replace: also in place of another certificate of the same name.

    Returns:
        Where they are now.

    Raises:
        InputError: one is not a certificate, or another one of its name is trusted already or given too.
    """
    place = Path(folder) / "trusted"
    chosen: dict[Path, bytes] = {}
    for path in certificates:
        der = read_certificate(path)
        name = check_name(describe(der, str(path)).name, f"{path}: common name")
        target = place / f"{name}.crt"
        if chosen.setdefault(target, der) != der:
            raise InputError(f"{path}: another certificate of {name} is given too; ask {name} which is right")
        if target.exists() and not replace and read_certificate(target) != der:
            raise InputError(
                f"{path}: {target} is another certificate of {name}; if {name} has a new one, add --replace"
            )
    if not place.parent.is_dir():
        raise InputError(f"folder {place.parent} does not exist; first make your own key: midst keys init NAME")
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be made: {error.strerror}") from None
    for target, der in chosen.items():
        text = ssl.DER_cert_to_PEM_cert(der).encode("ascii")
        write_whole(target, lambda file, text=text: file.write(text), mode=0o644)  # type: ignore[misc]
    return tuple(chosen)


# Inside


def _read_small(path: Path, what: str, *, alone: bool = False) -> bytes:
    """A file of reasonable size; one that its owner alone may touch, if so asked."""
    try:
        with path.open("rb") as file:
            shared = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    if alone and shared:
        raise InputError(f"{path}: others may read or write this key; try: chmod 600 {path}")
    if len(text) > _LARGEST:
        raise InputError(f"{path}: too large for {what}")
    return text


def _read_key(path: Path) -> PrivateKey:
    from cryptography.hazmat.primitives import serialization

    text = _read_small(path, "a key", alone=True)
    try:
        key = serialization.load_pem_private_key(text, None)
    except TypeError:
        raise InputError(
            f"{path}: the key is locked with a pass phrase; a node starts without anybody to type it"
        ) from None
    except Exception:  # as in `describe`
        raise InputError(f"{path}: not a private key in PEM; make one with: midst keys init NAME") from None
    if _kind(key.public_key()) is None:
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


def _kind(key: object) -> Kind | None:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    if isinstance(key, ed25519.Ed25519PublicKey):
        return "ed25519"
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return "p256"
    return None


def _hash_for(key: PrivateKey) -> hashes.SHA256 | None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def _parse(der: bytes, where: str) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_der_x509_certificate(der)
    except Exception:  # as in `describe`
        raise InputError(f"{where}: the certificate is damaged; ask for it again") from None


def _public_key(der: bytes, where: str) -> object:
    certificate = _parse(der, where)
    try:
        return certificate.public_key()
    except Exception:  # as in `describe`
        raise InputError(f"{where}: the certificate is damaged; ask for it again") from None


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


def _day(when: datetime) -> str:
    return f"{when:%Y-%m-%d}"

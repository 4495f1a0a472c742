"""A participant's own key: made, kept, shown to others by a certificate, and the TLS contexts made of both.

Rules:
- A private key is made on the host that uses it, in a file only its owner may read, and is never written again or sent.
- A folder of keys holds `alice.key`, `alice.crt`, and `trusted/*.crt`: certificates of others.
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
from midst.files import read_at_most, write_whole
from midst.net.identity.certificates import LARGEST, check_name, describe, fingerprint, read_certificate

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which the ssl module has no name for
_BACKDATED = timedelta(hours=1)  # other hosts' clocks may be behind
_LONGEST = 36_500  # days


@dataclass(frozen=True, repr=False)
class Identity:
    """A participant's own key and certificate, and whom it trusts.

    Attributes:
        name: the certificate's common name.
        certificate: in DER.
        key_file: where the private key is.
        certificate_file: where the certificate is.
        trusted: certificates of others.
    """

    name: str
    certificate: bytes
    key_file: Path
    certificate_file: Path
    trusted: tuple[Path, ...]
    _key: Ed25519PrivateKey = field(compare=False)

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
        """A signature that `signature_checker` accepts; the data begins with a label for the purpose."""
        return self._key.sign(data)

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
            said = "key or certificate has changed since it was read; start again"
            raise InputError(f"{self.key_file}: {said}") from None
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
    if key.public_key().public_bytes_raw() != said.key:
        raise InputError(f"{beside} is not the certificate of {path}; put the certificate of that key beside it")
    trusted = tuple(sorted((path.parent / "trusted").glob("*.crt")))
    for other in trusted:
        read_certificate(other)
    return Identity(said.name, der, path, beside, trusted, key)


# Making


def make_identity(name: str, folder: str | Path, days: int = 365) -> Identity:
    """A new key with a certificate signed by itself: NAME.key and NAME.crt in the folder, which is made if need be.

    Raises:
        InputError: a parameter is out of range, or there is such a key or certificate already.
    """
    check_name(name, "name")
    until = _until(days)
    place = Path(folder)
    key_file, certificate_file = place / f"{name}.key", place / f"{name}.crt"
    for path in (key_file, certificate_file):
        if path.exists():
            raise InputError(f"{path} exists; midst never writes over a key or its certificate: choose another folder")
    key = _make_key()
    certificate = _certify(name, key, until)
    _make_folder(place)
    _write_key(key_file, key)
    try:
        write_whole(certificate_file, lambda file: file.write(certificate), mode=0o644)
    except BaseException:
        key_file.unlink()
        raise
    return load_identity(key_file)


def renew_identity(key_file: str | Path, days: int = 365) -> tuple[Identity, Path]:
    """A new key, with a new certificate, in place of an old one, which is kept beside it.

    The old key is still good for sessions whose charter has its certificate: its file is named after that. Should this
    be cut short between the two files, key and certificate do not match, which is said; the old ones are there.

    Returns:
        The new identity, and where the old key is now.

    Raises:
        InputError: there is no such key, or the days are out of range.
    """
    old = load_identity(key_file)
    key, until = _make_key(), _until(days)
    certificate = _certify(old.name, key, until)
    kept = old.key_file.with_name(f"{old.name}.{old.fingerprint.removeprefix('sha256:')[:16]}.key")
    fresh = old.key_file.with_name(f".{old.name}.key")  # no participant's: names do not begin so
    pem = ssl.DER_cert_to_PEM_cert(old.certificate).encode("ascii")
    if not kept.exists():  # else it was cut short before
        _write_key(kept, old._key)
    elif _read_key(kept).private_bytes_raw() != old._key.private_bytes_raw():
        raise InputError(f"{kept} is another key, where the old one is to be kept; move it away")
    write_whole(kept.with_suffix(".crt"), lambda file: file.write(pem), mode=0o644)
    fresh.unlink(missing_ok=True)
    _write_key(fresh, key)
    os.replace(fresh, old.key_file)
    write_whole(old.certificate_file, lambda file: file.write(certificate), mode=0o644)
    return load_identity(old.key_file), kept


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

    Each comes with what to call it in an error, in DER; the folder is where one's own key is. `replace` takes one also
    in place of another certificate of the same name.

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
            advice = f"if {name} has a new one, add --replace"
            raise InputError(f"{where}: {target} is another certificate of {name}; {advice}")
    if not place.parent.is_dir():
        raise InputError(f"folder {place.parent} does not exist; first make your own key: midst keys init NAME")
    _make_folder(place)
    for target, one in chosen.items():
        text = ssl.DER_cert_to_PEM_cert(one.certificate).encode("ascii")
        write_whole(target, lambda file, text=text: file.write(text), mode=0o644)  # type: ignore[misc]
    return tuple(chosen.values())


# Inside


def _make_folder(place: Path) -> None:
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be made: {error.strerror}") from None


def _read_key(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    text = read_at_most(path, LARGEST, "too large for a key", alone="key")
    try:
        key = serialization.load_pem_private_key(text, None)
    except TypeError:
        said = "the key is locked with a pass phrase; a node starts without anybody to type it"
        raise InputError(f"{path}: {said}") from None
    except Exception:  # as in `describe`
        raise InputError(f"{path}: not a private key in PEM; make one with: midst keys init NAME") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: not an Ed25519 key; make one with: midst keys init NAME")
    return key


def _write_key(path: Path, key: Ed25519PrivateKey) -> None:
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


def _make_key() -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate()


def _certify(name: str, key: Ed25519PrivateKey, until: datetime) -> bytes:
    """A certificate in PEM, signed by the key that it is about."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    public = key.public_key()
    uses = {
        "digital_signature": True, "key_cert_sign": False, "crl_sign": False,
        "content_commitment": False, "key_encipherment": False, "data_encipherment": False,
        "key_agreement": False, "encipher_only": False, "decipher_only": False,
    }  # fmt: skip
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - _BACKDATED)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**uses), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
    )
    return builder.sign(key, None).public_bytes(serialization.Encoding.PEM)


def _until(days: int) -> datetime:
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= _LONGEST:
        raise InputError(f"days must be a whole number from 1 to {_LONGEST}")
    return datetime.now(UTC) + timedelta(days=days)

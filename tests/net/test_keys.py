"""Keys and certificates: what is made, what is refused, and what TLS makes of them."""

from __future__ import annotations

import os
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from certificates_made import NOW, certify, make_dated, pem, write_identity
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from midst.cli import main
from midst.errors import InputError
from midst.net.identity import certificates, keys
from midst.net.identity.certificates import check_certificate
from midst.net.identity.keys import Identity, load_identity, make_identity


@pytest.fixture
def alice(tmp_path: Path) -> Identity:
    return make_identity("alice", tmp_path / "alice")


@pytest.fixture
def bob(tmp_path: Path) -> Identity:
    return make_identity("bob", tmp_path / "bob")


def trusting(one: Identity, *others: Identity) -> Identity:
    """The identity again, now that it trusts the others."""
    keys.trust([(other.name, other.certificate) for other in others], one.key_file.parent)
    return load_identity(one.key_file)


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> tuple[bytes | None, bytes | None]:
    """What each side, client first, was shown by the other; raises what OpenSSL raises."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there, server_side=False), server.wrap_bio(there, back, server_side=True)]
    waiting = list(ends)
    while waiting:
        for end in tuple(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert {end.version() for end in ends} == {"TLSv1.3"}
    return ends[0].getpeercert(True), ends[1].getpeercert(True)


def meet(one: Identity, other: Identity) -> list[certificates.CertificateFault | None]:
    """A handshake each way, and what everybody thinks of what was shown."""
    found = []
    for client, server in ((one, other), (other, one)):
        shown_by_server, shown_by_client = shake_hands(client.context(False), server.context(True))
        found.append(check_certificate(shown_by_server, server.name, server.fingerprint, NOW))
        found.append(check_certificate(shown_by_client, client.name, client.fingerprint, NOW))
    return found


# Handshakes


def test_two_who_trust_each_other_meet(alice: Identity, bob: Identity) -> None:
    assert meet(trusting(alice, bob), trusting(bob, alice)) == [None] * 4


@pytest.mark.parametrize("trusted", [False, True])
def test_a_stranger_is_not_listened_to(alice: Identity, bob: Identity, tmp_path: Path, trusted: bool) -> None:
    mallory = make_identity("bob", tmp_path / "mallory")
    own = trusting(alice, bob) if trusted else alice
    forger = trusting(mallory, alice)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(own.context(False), forger.context(True))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(forger.context(False), own.context(True))


def test_a_participant_cannot_sign_for_another(alice: Identity, bob: Identity, tmp_path: Path) -> None:
    mallory = make_identity("mallory", tmp_path / "mallory")
    key = ed25519.Ed25519PrivateKey.generate()
    forged = certify("bob", key, by=("mallory", mallory._key))
    path = write_identity(tmp_path / "false", "bob", key, forged)
    false_bob = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    false_bob.load_cert_chain(path.with_suffix(".crt"), path)
    with pytest.raises(ssl.SSLCertVerificationError, match="invalid CA certificate"):
        shake_hands(trusting(alice, mallory).context(False), false_bob)
    problem = check_certificate(forged, "bob", certificates.fingerprint(forged), NOW)
    assert problem is not None
    assert problem.kind == "unknown"
    with pytest.raises(InputError, match=OWN):
        load_identity(path)


def test_nobody_gets_in_without_a_certificate(alice: Identity) -> None:
    anonymous = ssl.create_default_context(cafile=alice.certificate_file)
    anonymous.check_hostname = False
    anonymous.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shake_hands(anonymous, alice.context(True))


def test_tls_1_2_is_refused(alice: Identity, bob: Identity) -> None:
    old = trusting(bob, alice).context(False)
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        shake_hands(old, trusting(alice, bob).context(True))


@pytest.mark.parametrize(
    ("begins", "expires", "kind"),
    [(-20, -10, "expired"), (10, 20, "not yet valid")],
)
def test_out_of_date_gets_a_readable_refusal(
    alice: Identity, tmp_path: Path, begins: int, expires: int, kind: str
) -> None:
    days = [NOW + timedelta(days=n) for n in (begins, expires)]
    late = make_dated(tmp_path / "late", "bob", begins=days[0], expires=days[1])
    problems = meet(trusting(alice, late), trusting(late, alice))
    assert [problem.kind for problem in problems if problem] == [kind, kind]
    assert all("bob" in problem.text for problem in problems if problem)


def test_a_right_certificate_with_the_wrong_name(alice: Identity, bob: Identity) -> None:
    shown, _ = shake_hands(trusting(alice, bob).context(False), trusting(bob, alice).context(True))
    problem = check_certificate(shown, "carol", bob.fingerprint, NOW)
    assert problem is not None
    assert problem.kind == "wrong name"
    assert "expected carol, but the certificate is of bob" in problem.text


def test_a_renewed_certificate_is_not_the_charters(alice: Identity, tmp_path: Path) -> None:
    renewed = make_identity("alice", tmp_path / "again")
    problem = check_certificate(renewed.certificate, "alice", alice.fingerprint, NOW)
    assert problem is not None
    assert problem.kind == "unknown"
    assert alice.fingerprint in problem.text
    assert renewed.fingerprint in problem.text


def test_no_certificate_and_nonsense() -> None:
    for der, kind in ((None, "no certificate"), (b"", "unknown"), (b"\x30\x03\x02\x01\x00", "unknown")):
        problem = check_certificate(der, "alice", f"sha256:{0:064x}", NOW)
        assert problem is not None
        assert problem.kind == kind


@given(data=st.data())
@settings(max_examples=500)
def test_a_damaged_certificate_is_a_problem_and_never_an_exception(data: st.DataObject) -> None:
    whole = bytearray(CERTIFICATE)
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    for der in (bytes(whole), bytes(whole[:cut])):
        problem = check_certificate(der, "alice", certificates.fingerprint(CERTIFICATE), NOW)
        assert (problem is None) == (der == CERTIFICATE)
        assert problem is None or (problem.text.isprintable() and len(problem.text) < 400)
        assert not signs(der, b"data", b"signature")


def signs(certificate: bytes, data: bytes, signature: bytes) -> bool:
    """Whether it is a participant's certificate, and its key signed this."""
    try:
        return certificates.signature_checker(certificate)(data, signature)
    except InputError:
        return False


CERTIFICATE = ssl.PEM_cert_to_DER_cert(
    keys._certify("alice", ed25519.Ed25519PrivateKey.generate(), NOW + timedelta(days=365)).decode()
)


@pytest.mark.parametrize("name", ["Bob", "bob\nmidst: ok", "bob\x1b[2J", "../bob", "β", "-rf"])
def test_a_name_that_is_not_allowed_is_never_repeated(name: str) -> None:
    der = certify(name)
    problem = check_certificate(der, "bob", certificates.fingerprint(der), NOW)
    assert problem is not None
    assert problem.kind == "wrong name"
    assert "somebody whose name is not allowed" in problem.text
    assert name not in (certificates.expiry_warning(der, NOW + timedelta(days=400)) or "")


# Signatures


def test_signatures(alice: Identity) -> None:
    signature = alice.sign(b"label: text")
    assert signs(alice.certificate, b"label: text", signature)
    for certificate, made, text in (
        (alice.certificate, signature, b"label: other"),
        (alice.certificate, signature[:-1], b"label: text"),
        (alice.certificate, b"", b"label: text"),
        (alice.certificate, signature + b"label", b": text"),
        (alice.certificate, signature[:-1], signature[-1:] + b"label: text"),
        (CERTIFICATE, signature, b"label: text"),
    ):
        assert not signs(certificate, text, made)


# Files


def test_what_is_made(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        made = make_identity("alice.example", tmp_path / "new" / "keys", days=7)
    finally:
        os.umask(old)
    assert stat.S_IMODE(made.key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.key_file.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in made.key_file.parent.iterdir()) == ["alice.example.crt", "alice.example.key"]
    assert b"BEGIN PRIVATE KEY" in made.key_file.read_bytes()
    assert timedelta(days=6.9) < made.expires - datetime.now(UTC) < timedelta(days=7.1)
    assert made == load_identity(made.key_file)
    assert repr(made) == f"<Identity alice.example {made.fingerprint}>"
    certificate = x509.load_der_x509_certificate(made.certificate)
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["alice.example"]
    assert certificate.issuer == certificate.subject
    certificate.verify_directly_issued_by(certificate)
    assert certificates.describe(made.certificate).key == made._key.public_key().public_bytes_raw()


def test_a_key_is_never_written_over(alice: Identity) -> None:
    before = alice.key_file.read_bytes()
    folder = alice.key_file.parent
    with pytest.raises(InputError, match="exists"):
        make_identity("alice", folder)
    alice.certificate_file.unlink()
    with pytest.raises(InputError, match="exists"):
        make_identity("alice", folder)
    with pytest.raises(InputError, match="exists"):  # two at once: the second finds the key of the first
        keys._write_key(alice.key_file, keys._make_key())
    assert alice.key_file.read_bytes() == before


def test_a_certificate_that_cannot_be_written_leaves_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keys, "write_whole", full)
    with pytest.raises(OSError, match="No space"):
        make_identity("alice", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_cannot_be_written_whole_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keys.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        make_identity("alice", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_trust_is_all_or_nothing(alice: Identity, bob: Identity, tmp_path: Path) -> None:
    folder = alice.key_file.parent
    other = make_identity("bob", tmp_path / "other")
    carol = make_identity("carol", tmp_path / "carol")
    first, second, third = (("file", one.certificate) for one in (bob, other, carol))
    assert [one.was for one in keys.trust([first, first], folder)] == ["nothing"]
    assert [one.was for one in keys.trust([first], folder)] == ["the same"]
    with pytest.raises(InputError, match="another certificate of bob"):
        keys.trust([third, second], folder)
    assert load_identity(alice.key_file).trusted == (folder / "trusted" / "bob.crt",)
    with pytest.raises(InputError, match="another certificate of bob is given too"):
        keys.trust([first, second], folder, replace=True)
    assert [one.was for one in keys.trust([third, second], folder, replace=True)] == ["nothing", "another"]
    trusted = load_identity(alice.key_file).trusted
    assert [certificates.read_certificate(path) for path in trusted] == [other.certificate, carol.certificate]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (timedelta(days=-1), "is valid from"),
        (timedelta(days=300), None),
        (timedelta(days=336.5), "expires in 28 days"),
        (timedelta(days=366), "expired on"),
    ],
)
def test_expiry_is_warned_about(alice: Identity, after: timedelta, said: str | None) -> None:
    warning = certificates.expiry_warning(alice.certificate, NOW + after)
    assert warning is None if said is None else said in str(warning)


def test_files_that_change_under_a_running_node(alice: Identity, bob: Identity) -> None:
    alice.certificate_file.write_bytes(bob.certificate_file.read_bytes())
    with pytest.raises(InputError, match="has changed since it was read"):
        alice.context(True)
    alice.key_file.unlink()
    with pytest.raises(InputError, match="has changed since it was read"):
        alice.context(False)


# What is refused

BAD_KEYS = {
    "empty": (b"", "not a private key"),
    "text": (b"31337.4242\n", "not a private key"),
    "certificate": (ssl.DER_cert_to_PEM_cert(CERTIFICATE).encode(), "not a private key"),
    "cut": (pem(ed25519.Ed25519PrivateKey.generate())[:60], "not a private key"),
    "binary": (bytes(range(256)), "not a private key"),
    "too large": (b"x" * 70_000, "too large for a key"),
    "locked": (pem(ed25519.Ed25519PrivateKey.generate(), b"pass phrase"), "pass phrase"),
    "rsa": (pem(rsa.generate_private_key(65537, 1024)), "not an Ed25519 key; make one with: midst keys init NAME"),
    "p256": (pem(ec.generate_private_key(ec.SECP256R1())), "not an Ed25519 key; make one with: midst keys init NAME"),
    "another's": (pem(ed25519.Ed25519PrivateKey.generate()), "is not the certificate of"),
}


@pytest.mark.parametrize("case", BAD_KEYS)
def test_bad_keys(case: str, alice: Identity) -> None:
    text, message = BAD_KEYS[case]
    alice.key_file.write_bytes(text)
    refuse(alice, message)


def in_pem(certificate: bytes) -> bytes:
    return ssl.DER_cert_to_PEM_cert(certificate).encode()


OWN = "not one of an Ed25519 key that signed it itself; make one with: midst keys init NAME"
PEM_TEXT = in_pem(CERTIFICATE)
BAD_CERTIFICATES = {
    "empty": (b"", "found 0 of them"),
    "text": (b"31337.4242\n", "found 0 of them"),
    "key": (pem(ed25519.Ed25519PrivateKey.generate()), "a private key"),
    "two": (PEM_TEXT * 2, "found 2 of them"),
    "cut": (PEM_TEXT[:100], "found 0 of them"),
    "not base64": (PEM_TEXT.replace(b"M", b"?"), "damaged"),
    "not ascii": (PEM_TEXT.replace(b"M", b"\xff"), "damaged"),
    "altered": (PEM_TEXT.replace(b"MII", b"MIJ", 1), "damaged"),
    "too large": (b"x" * 70_000, "too large for a certificate"),
    "two names": (in_pem(certify(["alice", "bob"])), "has 2 common names"),
    "no name": (in_pem(certify([])), "has 0 common names"),
    "bad name": (in_pem(certify("Alice")), "common name must be"),
    "p256": (in_pem(certify("alice", ec.generate_private_key(ec.SECP256R1()))), OWN),
    "rsa": (in_pem(certify("alice", rsa.generate_private_key(65537, 2048))), OWN),
    "signed by an authority": (in_pem(certify("alice", by=("board", ed25519.Ed25519PrivateKey.generate()))), OWN),
    "signed by another alice": (in_pem(certify("alice", by=("alice", ed25519.Ed25519PrivateKey.generate()))), OWN),
    "an authority's": (in_pem(certify("alice", authority=True)), OWN),
    "perhaps an authority's": (in_pem(certify("alice", authority=None)), OWN),
}


@pytest.mark.parametrize("case", BAD_CERTIFICATES)
def test_bad_certificates(case: str, alice: Identity) -> None:
    text, message = BAD_CERTIFICATES[case]
    alice.certificate_file.write_bytes(text)
    refuse(alice, message)


def refuse(identity: Identity, message: str) -> None:
    """Who loads it hears why not, in one line, and nothing is written."""
    with pytest.raises(InputError, match=message) as refused:
        load_identity(identity.key_file)
    before = sorted(identity.key_file.parent.iterdir())
    for arguments in (["renew", str(identity.key_file)], ["show", str(identity.key_file)]):
        done = CliRunner().invoke(main, ["keys", *arguments])
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"midst: error: {refused.value}\n")
        assert "31337" not in done.output
        assert done.stderr.count("\n") == 1
    assert sorted(identity.key_file.parent.iterdir()) == before


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o610])
def test_a_key_that_others_may_touch_is_refused(mode: int, alice: Identity) -> None:
    alice.key_file.chmod(mode)
    with pytest.raises(InputError, match="chmod 600"):
        load_identity(alice.key_file)
    alice.key_file.chmod(0o400)
    assert load_identity(alice.key_file) == alice


def test_other_refusals(alice: Identity, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a key file ends in"):
        load_identity(alice.certificate_file)
    with pytest.raises(InputError, match="No such file"):
        load_identity(tmp_path / "none.key")
    with pytest.raises(InputError, match="directory"):
        certificates.read_certificate(tmp_path)
    (tmp_path / "alice" / "trusted").mkdir()
    (tmp_path / "alice" / "trusted" / "bob.crt").write_text("31337.4242")
    with pytest.raises(InputError, match="expected one certificate"):
        load_identity(alice.key_file)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be made"):
        make_identity("alice", tmp_path / "file" / "keys")
    for days in (0, -1, 36_501, 1.5, True):
        with pytest.raises(InputError, match="days must be"):
            make_identity("bob", tmp_path, days=days)  # type: ignore[arg-type]
    for name in ("", "Bob", "a b", "../bob", ".bob", "b" * 65, "bob\n", "é"):
        with pytest.raises(InputError, match="1 to 64 of the characters"):
            make_identity(name, tmp_path)

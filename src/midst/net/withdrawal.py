"""The words by which a participant leaves a session without an answer: signed, and told on to everybody.

Rules:
- A withdrawal binds whoever signed it, and nobody else. What it says of others is its signer's word: who hears it
  reports that word, and goes on as far as it can.
- It names the last round of which its signer has told its part. Who awaits a later one need not wait any longer; who
  awaits that one or an earlier one may still get it, from the signer or from others.
- Of one signer the first withdrawal counts.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from midst.protocol.statements import Malformed, Notary

WORDS = 256  # bytes of what it says
_LABEL = b"midst withdrawal v1\n"
_LONGEST_KIND = 32


class Withdrawal(msgspec.Struct, frozen=True, array_like=True):
    """What it says.

    Attributes:
        signer: who leaves.
        last: the last round of which it has told its part; −1 for none.
        kind: why, in a word or two.
        about: because of whom, by its word; nobody in particular, or nobody else.
        text: the same for a person.
    """

    signer: int
    last: int
    kind: str
    about: tuple[int, ...]
    text: str


class SignedWithdrawal(msgspec.Struct, frozen=True, array_like=True):
    """As it travels: what was said, by which certificate its signature is checked, and the signature."""

    said: bytes
    certificate: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "<SignedWithdrawal>"


_said = msgspec.msgpack.Decoder(Withdrawal)


def sign_withdrawal(withdrawal: Withdrawal, digest: bytes, notary: Notary) -> SignedWithdrawal:
    """A withdrawal, signed for the session of a charter with this digest."""
    said = msgspec.msgpack.encode(withdrawal)
    return SignedWithdrawal(said, notary.certificate, notary.sign(_LABEL + digest + said))


def read_withdrawal(
    signed: SignedWithdrawal, digest: bytes, participants: int, notary: Notary, known: Container[int] = ()
) -> Withdrawal | None:
    """What a withdrawal says, its signature checked; None, unchecked, where its signer is known to have left.

    Raises:
        Malformed: it is none, or not signed by whom it says.
    """
    try:
        said = _said.decode(signed.said)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Malformed("a withdrawal that says nothing this version knows") from None
    if not all(0 <= number < participants for number in (said.signer, *said.about)) or len(said.about) > 2:
        raise Malformed("a withdrawal of nobody in the charter")
    if len(said.kind.encode()) > _LONGEST_KIND or len(said.text.encode()) > WORDS:
        raise Malformed("a withdrawal of too many words")
    if said.signer in known:
        return None
    check = notary.verifier(said.signer, signed.certificate)
    if check is None or not check(_LABEL + digest + signed.said, signed.signature):
        raise Malformed("a withdrawal with a wrong signature")
    return said


def withdrawal_bytes(certificate: int, signature: int) -> int:
    """Bytes of the longest one, as it travels, with so long a certificate and signature."""
    return _LONGEST_KIND + WORDS + 4 * 9 + certificate + signature + 32  # four numbers, and the lengths of all of these

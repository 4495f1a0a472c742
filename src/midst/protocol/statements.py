"""What participants of a search sign, as bytes, and the hashes that tie one statement to all before it.

A statement is | kind 1 | signer u16 | step u16 | what it says |, little-endian; what is signed is a label, the
charter's digest and those bytes:

    announcement "A"   instance 16, public key 32, number of values u32, certificate (DER)
    contribution "C"   context 32, and numbers u64 × the question's; where votes are verified, a vote (`votes.py`)
    dispute      "D"   context 32, commitments to masks 32 × the question's numbers × the other participants
    final        "F"   final hash 32

The context of a contribution is a hash of the charter, all announcements, all earlier totals (where votes are verified,
all earlier contributions too) and the question. That of a dispute is a hash of the contributions that it is about.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from midst.protocol.masks import pair_key
from midst.protocol.noisy_search import AnyRules, AnySearch, NoisyRules
from midst.protocol.search import Question

SIGNATURE_LABEL = b"midst statement v3\n"
INSTANCE_BYTES = 16
HASH_BYTES = 32
_TRANSCRIPT_LABEL = b"midst transcript v3\n"
_DISPUTE_LABEL = b"midst dispute v3\n"
_HEAD = struct.Struct("<cHH")
_KEYS = struct.Struct(f"<{INSTANCE_BYTES}s32sI")
_TAG = struct.Struct(f"<H{INSTANCE_BYTES}s32sI")


class Malformed(Exception):  # noqa: N818
    """Bytes that are no statement, or none that could be due: nobody's fault can be proved by them."""


@dataclass(frozen=True)
class Statement:
    """What a participant says in one step, and its signature.

    Attributes:
        body: all that is signed, but for the label and the charter's digest.
        signature: of the signer's certificate's key.
    """

    body: bytes
    signature: bytes

    @property
    def kind(self) -> bytes:
        """Announcement "A", contribution "C", dispute "D" or final "F"."""
        return self.body[:1]

    @property
    def signer(self) -> int:
        """Whose it is."""
        return int.from_bytes(self.body[1:3], "little")

    @property
    def step(self) -> int:
        """Of which step."""
        return int.from_bytes(self.body[3:5], "little")

    @property
    def context(self) -> bytes:
        """What a statement after the announcement is about."""
        return self.body[_HEAD.size : _HEAD.size + HASH_BYTES]

    @property
    def content(self) -> bytes:
        """What it says of it."""
        return self.body[_HEAD.size + HASH_BYTES :]

    @property
    def numbers(self) -> tuple[int, ...]:
        """What a contribution adds, where votes are not verified."""
        return struct.unpack(f"<{len(self.content) // 8}Q", self.content)

    def announced(self) -> tuple[bytes, bytes, int, bytes]:
        """Instance, public key, number of values and certificate of an announcement."""
        instance, key, count = _KEYS.unpack_from(self.body, _HEAD.size)
        return instance, key, count, self.body[_HEAD.size + _KEYS.size :]

    @property
    def tag(self) -> bytes:
        """Number, instance, public key and number of values: what tells a participant of this session from all."""
        return self.body[1:3] + self.body[_HEAD.size : _HEAD.size + _KEYS.size]


def make_body(kind: bytes, signer: int, step: int, says: bytes) -> bytes:
    """A statement, before it is signed."""
    return _HEAD.pack(kind, signer, step) + says


def announce(instance: bytes, key: bytes, count: int, certificate: bytes) -> bytes:
    """What an announcement says."""
    return _KEYS.pack(instance, key, count) + certificate


def read_tag(tag: bytes) -> tuple[int, bytes, bytes, int]:
    """Number, instance, public key and number of values.

    Raises:
        Malformed: it is none.
    """
    if len(tag) != _TAG.size:
        raise Malformed("a tag of the wrong length")
    number, instance, key, count = _TAG.unpack(tag)
    return number, instance, key, count


def check_form(body: bytes, participants: int) -> None:
    """Refuse what cannot be a statement.

    Raises:
        Malformed: it is none.
    """
    rest = len(body) - _HEAD.size
    if rest < 0 or int.from_bytes(body[1:3], "little") >= participants:
        raise Malformed("a statement of nobody in the charter")
    right = {
        b"A": rest > _KEYS.size,
        b"C": rest > HASH_BYTES and (rest - HASH_BYTES) % 8 == 0,
        b"D": rest > HASH_BYTES and (rest - HASH_BYTES) % 32 == 0,
        b"F": rest == HASH_BYTES,
    }
    if not right.get(body[:1], False) or (body[:1] == b"A") != (body[3:5] == b"\0\0"):
        raise Malformed("a statement of the wrong kind or length")


def longest_statement(rules: AnyRules, participants: int, pooled: bool, verify: bool) -> int:
    """Bytes of the longest contribution or dispute, whatever number of values everybody has."""
    head, most_values = _HEAD.size + HASH_BYTES, 32 if pooled else 1  # digits of how many values there may be
    if isinstance(rules, NoisyRules):
        return head + 8 * rules.most_numbers
    spans = [rules.ends[goal.coordinate][1] - rules.ends[goal.coordinate][0] for goal in rules.sums]
    bits = [goal.power * span.bit_length() for goal, span in zip(rules.sums, spans, strict=True)]
    if not verify:
        everybody = most_values + participants.bit_length()
        return head + 8 * (rules.most_cells + sum(1 + (everybody + each) // 64 for each in bits))
    digits = rules.most_cells * most_values + sum(most_values + each for each in bits)
    numbers = rules.most_cells + len(bits)
    vote = digits * 5 * 32 + numbers * 2 * 32  # of each digit a point and a proof; of each number two scalars
    return head + max(vote, (participants - 1) * numbers * 32)


Verifier = Callable[[bytes, bytes], bool]  # data and signature
Verifiers = Callable[[int, bytes], Verifier | None]  # of a participant, by the certificate that it shows


class Notary(Protocol):
    """Signs for one participant, and knows how to check what others signed."""

    @property
    def certificate(self) -> bytes:
        """Of this participant, for others to check by."""

    def sign(self, data: bytes) -> bytes:
        """A signature by the certificate's key."""

    def verifier(self, number: int, certificate: bytes) -> Verifier | None:
        """How to check a participant's signatures; None if the certificate is not the one in the charter."""


class Signers:
    """Whose signature is whose, as far as participants have announced themselves."""

    def __init__(self, digest: bytes, number: int, notary: Notary) -> None:
        self._digest, self._number, self._notary = digest, number, notary
        self._verifiers: dict[int, Verifier] = {}

    @property
    def known(self) -> Set[int]:
        """Those who have."""
        return self._verifiers.keys()

    def sign(self, body: bytes) -> Statement:
        """A statement of one's own."""
        return Statement(body, self._notary.sign(signed_bytes(self._digest, body)))

    def check(self, statement: Statement) -> None:
        """Refuse what its signer has not signed; who is not known yet must have announced itself by it.

        Raises:
            Malformed: it has not.
        """
        signer = statement.signer
        verifier = self._verifiers.get(signer)
        if verifier is None:
            own = signer == self._number
            certificate = self._notary.certificate if own else statement.announced()[3]
            verifier = self._notary.verifier(signer, certificate)
        if verifier is None:
            raise Malformed("an announcement with another certificate than the charter's")
        if not verifier(signed_bytes(self._digest, statement.body), statement.signature):
            raise Malformed("a statement with a wrong signature")
        self._verifiers.setdefault(signer, verifier)


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """What all participants of a search have agreed on.

    Attributes:
        digest: of the charter.
        weights: of each participant's values, whole numbers.
        pooled: whether participants bring lists, and not one value each.
        make_rules: the rules of the search, from how many values everybody has.
        verify: whether everybody proves its votes.
        refusal: why nothing is to be asked, where everybody has so many values; None where it may be.
    """

    digest: bytes
    weights: tuple[int, ...]
    pooled: bool
    make_rules: Callable[[Sequence[int]], AnyRules]
    verify: bool = False
    refusal: Callable[[Sequence[int]], str | None] = lambda list_sizes: None

    def allows(self, count: int) -> bool:
        """Whether a participant may have so many values."""
        return count >= 1 if self.pooled else count == 1


def pair_keys(secret: bytes, number: int, announcements: Sequence[Statement], digest: bytes) -> dict[int, bytes]:
    """The keys of one's pairs, by the other's number; no key in the announcements is one that hides nothing."""
    found = {}
    for other, announced in enumerate(announcements):
        if other != number:
            ends = (announcements[k].tag for k in sorted((number, other)))
            found[other] = pair_key(secret, announced.announced()[1], digest, *ends)
    return found


# What is hashed and signed


def signed_bytes(digest: bytes, body: bytes) -> bytes:
    """What a signature is over."""
    return SIGNATURE_LABEL + digest + body


def first_transcript(digest: bytes, tags: Iterable[bytes], rules: AnyRules) -> bytes:
    """The hash of what is agreed once everybody has announced itself: charter, participants, where the search opens."""
    opening = b"".join(struct.pack(f"<I{len(keys)}Q", len(keys), *keys) for keys in rules.opening)
    return hashlib.sha256(_TRANSCRIPT_LABEL + digest + b"".join(tags) + opening).digest()


def step_context(transcript: bytes, question: Question) -> bytes:
    """The hash of all that was agreed and of what is asked now."""
    asked = b"".join(
        part.kind + struct.pack("<II", part.coordinate, len(part.edges)) + _pack_edges(part.edges) for part in question
    )
    return hashlib.sha256(transcript + asked).digest()


def _pack_edges(edges: Sequence[int]) -> bytes:
    """Eight bytes an edge; more for all of them where one is wider, as only a simulation's are."""
    width = max(8, -(-max(edges).bit_length() // 8))
    return b"".join(edge.to_bytes(width, "little") for edge in edges)


def seal(contributions: Sequence[Statement]) -> bytes:
    """The hash of all contributions to a question, in the order of their signers."""
    return hashlib.sha256(b"".join(hashlib.sha256(each.body).digest() for each in contributions)).digest()


def next_transcript(context: bytes, totals: Sequence[int], sealed: bytes = b"") -> bytes:
    """The hash of all that was agreed, a question's totals included; and the contributions, where they are verified."""
    return hashlib.sha256(context + struct.pack(f"<{len(totals)}Q", *totals) + sealed).digest()


def dispute_context(context: bytes, sealed: bytes) -> bytes:
    """The hash of contributions that do not add up, and of what they were about."""
    return hashlib.sha256(_DISPUTE_LABEL + context + sealed).digest()


def final_hash(transcript: bytes, search: AnySearch) -> bytes:
    """What everybody signs in the end: all that was agreed, and the answers."""
    answers = [answer for answer in search.answers if answer is not None]
    raw = b"".join(answer.to_bytes(9, "little") for answer in answers)
    return hashlib.sha256(transcript + b"answers" + raw).digest()

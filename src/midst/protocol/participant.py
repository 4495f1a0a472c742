"""One participant of a masked search, without I/O: signed statements in, signed statements out.

Step 0 is everybody's announcement: a session key, signed. Each step after it answers one question of the search behind
masks; in the last one everybody signs the hash of all that was agreed, and who holds all signatures has a certificate
that anybody with the charter can check.

Rules:
- Contributions are told on to everybody and each adds up for itself: no tree, no root, nobody who could withhold a
  total from some. What is held only grows, so loss, reordering and restarts are nothing special.
- Every statement carries its context, a hash of the charter, all announcements, all earlier totals and the question.
  Only equal contexts are added up. What follows from the same inputs is the same, so a participant that is started
  again signs nothing new.
- Nothing that is said, left unsaid or refused depends on one's own values.
- Two different statements of one signer for one step are evidence against it: it lied, ran twice, or lost its disk.
  Contents are compared, not signatures.

As bytes, a statement is | kind 1 | signer u16 | step u16 | what it says |, little-endian; what is signed is a label,
the charter's digest and those bytes:

    announcement "A"   instance 16, public key 32, number of values u32, certificate (DER)
    contribution "C"   context 32, numbers u64 × the question's
    final        "F"   final hash 32
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from midst.protocol.keys import MODULUS
from midst.protocol.masks import LowOrder, hide, pair_key, public_key
from midst.protocol.search import Impossible, Question, Rules, SearchState, contribution

SIGNATURE_LABEL = b"midst statement v2\n"
INSTANCE_BYTES = 16
HASH_BYTES = 32
_TRANSCRIPT_LABEL = b"midst transcript v2\n"
_HEAD = struct.Struct("<cHH")
_KEYS = struct.Struct(f"<{INSTANCE_BYTES}s32sI")


class Malformed(Exception):  # noqa: N818
    """Bytes that are no statement, or none that could be due: nobody's fault can be proved by them."""


class Distrust(Exception):  # noqa: N818
    """A participant did what nobody who keeps to the protocol does.

    Attributes:
        kind: "equivocation", "diverged", "broken protocol" or "journal lost".
        about: the participant's number.
        evidence: what it signed, by which anybody can see that it did.
    """

    def __init__(self, kind: str, about: int, text: str, evidence: Sequence[Statement] = ()) -> None:
        super().__init__(text)
        self.kind = kind
        self.about = about
        self.evidence = tuple(evidence)


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
        """Announcement "A", contribution "C" or final "F"."""
        return self.body[:1]

    @cached_property
    def signer(self) -> int:
        """Whose it is."""
        return int.from_bytes(self.body[1:3], "little")

    @cached_property
    def step(self) -> int:
        """Of which step."""
        return int.from_bytes(self.body[3:5], "little")

    @property
    def context(self) -> bytes:
        """What a contribution or a final hash is about."""
        return self.body[_HEAD.size : _HEAD.size + HASH_BYTES]

    @property
    def numbers(self) -> tuple[int, ...]:
        """What a contribution adds."""
        raw = self.body[_HEAD.size + HASH_BYTES :]
        return struct.unpack(f"<{len(raw) // 8}Q", raw)

    def announced(self) -> tuple[bytes, bytes, int, bytes]:
        """Instance, public key, number of values and certificate of an announcement."""
        instance, key, count = _KEYS.unpack_from(self.body, _HEAD.size)
        return instance, key, count, self.body[_HEAD.size + _KEYS.size :]


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
        b"F": rest == HASH_BYTES,
    }
    if not right.get(body[:1], False) or (body[:1] == b"A") != (body[3:5] == b"\0\0"):
        raise Malformed("a statement of the wrong kind or length")


Verifier = Callable[[bytes, bytes], bool]  # data and signature


class Notary(Protocol):
    """Signs for one participant, and knows how to check what others signed."""

    @property
    def certificate(self) -> bytes:
        """Of this participant, for others to check by."""

    def sign(self, data: bytes) -> bytes:
        """A signature by the certificate's key."""

    def verifier(self, number: int, certificate: bytes) -> Verifier | None:
        """How to check a participant's signatures; None if the certificate is not the one in the charter."""


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """What all participants of a search have agreed on.

    Attributes:
        digest: of the charter.
        weights: of each participant's values, whole numbers.
        pooled: whether participants bring lists, and not one value each.
        make_rules: the rules of the search, from how many values everybody has.
    """

    digest: bytes
    weights: tuple[int, ...]
    pooled: bool
    make_rules: Callable[[Sequence[int]], Rules]

    def allows(self, count: int) -> bool:
        """Whether a participant may have so many values."""
        return count >= 1 if self.pooled else count == 1


@dataclass(frozen=True, eq=False, repr=False)
class Holding:
    """What one participant brings, and draws for one session.

    Attributes:
        number: its own.
        keys: of its values, in order, one list a coordinate.
        secret: of the session key, 32 random bytes.
        instance: 16 random bytes by which a lost disk is noticed.
    """

    number: int
    keys: tuple[tuple[int, ...], ...]
    secret: bytes
    instance: bytes


class Participant:
    """One participant's part in a search.

    Attributes:
        step: the step whose statements are awaited.
        search: where the search stands; None before all announcements are there.
        totals: of every question so far.
        own: its own statement of every step.
        certified: whether everybody's final signature is there.
    """

    def __init__(self, agreement: Agreement, holding: Holding, notary: Notary) -> None:
        """Ready to announce itself: `own[0]` is there."""
        self._agreement, self._holding, self._notary = agreement, holding, notary
        self._held: dict[int, dict[int, Statement]] = {}
        self._verifiers: dict[int, Verifier] = {}
        self._pairs: dict[int, bytes] = {}
        self._transcript = b""
        self._context = b""
        self._plain: list[int] = []
        self._answered: list[tuple[list[int], tuple[int, ...]]] = []
        self.step = 0
        self.search: SearchState | None = None
        self.totals: list[tuple[int, ...]] = []
        self.own: list[Statement] = []
        self.certified = False
        keys = _KEYS.pack(holding.instance, public_key(holding.secret), len(holding.keys[0]))
        self._state(b"A", keys + notary.certificate)

    # What is heard

    def take(self, statement: Statement) -> bool:
        """Hold a statement; whether it was news. One that is not due yet is left to be asked for when it is.

        Raises:
            Malformed: it is none.
            Distrust: its signer has signed another one for this step, or one that nobody honest signs.
        """
        check_form(statement.body, len(self._agreement.weights))
        signer, step = statement.signer, statement.step
        known = self.held(step, signer)
        if known is not None and known.body == statement.body:
            return False
        own = signer == self._holding.number
        if not own and (step > self.step + 1 or (step > 0 and signer not in self._verifiers)):
            return False  # it has overtaken others; who tells it on need not know that, and is not to blame
        self._check_signature(statement)
        if own:
            text = "has signed what its journal knows nothing of: it ran twice, or its disk was put back"
            raise Distrust("journal lost", signer, text, [statement])
        if known is not None:
            text = f"signed two statements for step {step}: lied, ran twice, or lost its disk"
            raise Distrust("equivocation", signer, text, [known, statement])
        self._held.setdefault(step, {})[signer] = statement
        return True

    def held(self, step: int, signer: int) -> Statement | None:
        """A statement, if it is here."""
        if signer == self._holding.number:
            return self.own[step] if step < len(self.own) else None
        return self._held.get(step, {}).get(signer)

    def statements(self, step: int) -> list[Statement]:
        """All that is held of a step, one's own included."""
        everybody = range(len(self._agreement.weights))
        return [found for signer in everybody if (found := self.held(step, signer)) is not None]

    def missing(self) -> list[int]:
        """Whose statement of this step, in this context, is not here."""
        if self.certified:
            return []
        return [k for k in range(len(self._agreement.weights)) if not self._fits(self.held(self.step, k))]

    @property
    def apart(self) -> bool:
        """Whether somebody has contributed to this step in another context: it was told other things before."""
        here = self._held.get(self.step, {}).values()
        return self.step > 0 and any(each.context != self._context for each in here)

    # Going on

    def ready(self) -> tuple[Statement, ...] | None:
        """What the next step is made from, once everybody's statement is here.

        Raises:
            Distrust: somebody answered the question with another number of numbers.
        """
        others = len(self._agreement.weights) - 1
        if self.certified or len(self._held.get(self.step, ())) < others or self.missing():
            return None
        own = self.own[self.step].body
        for each in self.statements(self.step):
            if self.step > 0 and (len(each.body) != len(own) or each.kind != own[:1]):
                raise Distrust("broken protocol", each.signer, "signed a statement of the wrong length", [each])
        return tuple(self.statements(self.step))

    def advance(self, statements: Sequence[Statement]) -> None:
        """The next step, from everybody's statements of this one.

        Raises:
            Distrust: somebody's key is one that hides nothing.
            Impossible: no values can have these totals.
        """
        for each in statements:
            if each.signer != self._holding.number:
                self._held.setdefault(self.step, {})[each.signer] = each
                if self.step == 0 and each.signer not in self._verifiers:  # played again from a journal
                    self._check_signature(each)
        if statements[0].kind == b"F":
            self.certified = True
            return
        if self.search is None:
            self._agree(statements)
        else:
            self._add_up(statements)
        assert self.search is not None
        self.step += 1
        question = self.search.question
        if question is None:
            self._context = final_hash(self._transcript, self.search)
            self._state(b"F", self._context)
            return
        self._context = step_context(self._transcript, question)
        self._plain = contribution(question, self._holding.keys, self._agreement.weights[self._holding.number])
        numbers = hide(self._plain, self._holding.number, self._pairs, self._context)
        self._state(b"C", self._context + struct.pack(f"<{len(numbers)}Q", *numbers))

    @property
    def contradicted(self) -> bool:
        """Whether the totals leave no room for one's own values: then somebody lied. To be told to the owner alone."""
        return any(own > total for plain, totals in self._answered for own, total in zip(plain, totals, strict=True))

    # Parts

    def _agree(self, announcements: Sequence[Statement]) -> None:
        """Everybody's session key is known: the keys of the pairs, and the rules."""
        digest, number = self._agreement.digest, self._holding.number
        tags = [_tag(each) for each in announcements]
        for other, each in enumerate(announcements):
            if other == number:
                continue
            lower, higher = sorted((number, other))
            _, key, count, _ = each.announced()
            if not self._agreement.allows(count):
                raise Distrust("broken protocol", other, f"announced {count} values, against the charter", [each])
            try:
                self._pairs[other] = pair_key(self._holding.secret, key, digest, tags[lower], tags[higher])
            except LowOrder:
                raise Distrust("broken protocol", other, "announced a key that hides nothing", [each]) from None
        rules = self._agreement.make_rules([each.announced()[2] for each in announcements])
        self._transcript = first_transcript(digest, tags, rules)
        self.search = SearchState.begin(rules)

    def _add_up(self, contributions: Sequence[Statement]) -> None:
        assert self.search is not None
        columns = zip(*(each.numbers for each in contributions), strict=True)
        totals = tuple(sum(column) % MODULUS for column in columns)
        self.search = self.search.fold(totals)
        self.totals.append(totals)
        self._answered.append((self._plain, totals))
        self._transcript = next_transcript(self._context, totals)

    def _fits(self, statement: Statement | None) -> bool:
        return statement is not None and (self.step == 0 or statement.context == self._context)

    def _state(self, kind: bytes, says: bytes) -> None:
        body = _HEAD.pack(kind, self._holding.number, self.step) + says
        self.own.append(Statement(body, self._notary.sign(signed_bytes(self._agreement.digest, body))))

    def _check_signature(self, statement: Statement) -> None:
        signer, own = statement.signer, statement.signer == self._holding.number
        verifier = self._verifiers.get(signer)
        if verifier is None:
            certificate = self._notary.certificate if own else statement.announced()[3]
            verifier = self._notary.verifier(signer, certificate)
        if verifier is None:
            raise Malformed("an announcement with another certificate than the charter's")
        if not verifier(signed_bytes(self._agreement.digest, statement.body), statement.signature):
            raise Malformed("a statement with a wrong signature")
        self._verifiers.setdefault(signer, verifier)


# What is hashed and signed


def signed_bytes(digest: bytes, body: bytes) -> bytes:
    """What a signature is over."""
    return SIGNATURE_LABEL + digest + body


def first_transcript(digest: bytes, tags: Iterable[bytes], rules: Rules) -> bytes:
    """The hash of what is agreed once everybody has announced itself: charter, participants, where the search opens."""
    opening = b"".join(struct.pack(f"<I{len(keys)}Q", len(keys), *keys) for keys in rules.opening)
    return hashlib.sha256(_TRANSCRIPT_LABEL + digest + b"".join(tags) + opening).digest()


def step_context(transcript: bytes, question: Question) -> bytes:
    """The hash of all that was agreed and of what is asked now."""
    asked = b"".join(
        struct.pack(f"<cII{len(part.edges)}Q", part.kind, part.coordinate, len(part.edges), *part.edges)
        for part in question
    )
    return hashlib.sha256(transcript + asked).digest()


def next_transcript(context: bytes, totals: Sequence[int]) -> bytes:
    """The hash of all that was agreed, a question's totals included."""
    return hashlib.sha256(context + struct.pack(f"<{len(totals)}Q", *totals)).digest()


def final_hash(transcript: bytes, search: SearchState) -> bytes:
    """What everybody signs in the end: all that was agreed, and the answers."""
    answers = [answer for answer in search.answers if answer is not None]
    raw = b"".join(answer.to_bytes(9, "little") for answer in answers)
    return hashlib.sha256(transcript + b"answers" + raw).digest()


def _tag(announcement: Statement) -> bytes:
    """Number, instance, public key and number of values: what tells a participant of this session from all others."""
    instance, key, count, _ = announcement.announced()
    return struct.pack("<H", announcement.signer) + _KEYS.pack(instance, key, count)


@dataclass(frozen=True)
class Transcript:
    """All that was made public, and everybody's signature on it: anybody with the charter can check it.

    Attributes:
        announcements: everybody's, as bytes.
        opening: the thresholds of the first probe, where they were not the search's own.
        totals: of every question.
        signatures: on the final hash.
    """

    announcements: tuple[bytes, ...]
    opening: tuple[tuple[int, ...], ...]
    totals: tuple[tuple[int, ...], ...]
    signatures: tuple[bytes, ...]


def announcement_body(number: int, instance: bytes, key: bytes, count: int, certificate: bytes) -> bytes:
    """An announcement from its parts."""
    return _HEAD.pack(b"A", number, 0) + _KEYS.pack(instance, key, count) + certificate


def transcript_of(participant: Participant) -> Transcript:
    """What a participant holds at the end."""
    assert participant.search is not None
    assert participant.certified, "there is no transcript before everybody has signed"
    return Transcript(
        announcements=tuple(each.body for each in participant.statements(0)),
        opening=participant.search.rules.opening,
        totals=tuple(participant.totals),
        signatures=tuple(each.signature for each in participant.statements(participant.step)),
    )


def verify_transcript(
    transcript: Transcript,
    agreement: Agreement,
    verifier: Callable[[int, bytes], Verifier | None],
    names: Sequence[str],
) -> SearchState:
    """The search that a transcript proves, played again from its totals; everybody's signature is checked.

    Args:
        transcript: what somebody shows.
        agreement: from one's own charter, and where the transcript's search opened.
        verifier: how to check a participant's signatures, from the certificate in its announcement.
        names: of the participants, for what is said.

    Raises:
        Malformed: it is not a certificate of this charter; says what is wrong, and whose part.
    """
    count = len(agreement.weights)
    if len(transcript.announcements) != count or len(transcript.signatures) != count:
        raise Malformed(f"it has not one announcement and one signature from each of the {count} participants")
    announcements = [Statement(body, b"") for body in transcript.announcements]
    for number, each in enumerate(announcements):
        check_form(each.body, count)
        if each.kind != b"A" or each.signer != number:
            raise Malformed(f"the announcement of {names[number]} is another's")
        if not agreement.allows(each.announced()[2]):
            raise Malformed(f"{names[number]} announced {each.announced()[2]} values, against the charter")
    for numbers in (*transcript.opening, *transcript.totals):
        if not all(0 <= each < MODULUS for each in numbers):
            raise Malformed("a number in it is not from 0 to 2^64 - 1")
    try:
        rules = agreement.make_rules([each.announced()[2] for each in announcements])
        if rules.opening != transcript.opening or (rules.opening and len(rules.opening) != len(rules.brackets)):
            raise Malformed("it opens where the charter's search does not")
        search = SearchState.begin(rules)
        hashed = first_transcript(agreement.digest, map(_tag, announcements), rules)
        for totals in transcript.totals:
            if search.question is None:
                raise Malformed("it goes on after the answer was known")
            context = step_context(hashed, search.question)
            search, hashed = search.fold(totals), next_transcript(context, totals)
    except Impossible as error:
        raise Malformed(f"its totals cannot be: {error}") from None
    if search.question is not None:
        raise Malformed("it ends before the answer is known")
    body = final_hash(hashed, search)
    for number, (each, signature) in enumerate(zip(announcements, transcript.signatures, strict=True)):
        check = verifier(number, each.announced()[3])
        if check is None:
            raise Malformed(f"{names[number]} shows another certificate than the charter's")
        said = _HEAD.pack(b"F", number, len(transcript.totals) + 1) + body
        if not check(signed_bytes(agreement.digest, said), signature):
            raise Malformed(f"the signature of {names[number]} is not on this answer")
    return search

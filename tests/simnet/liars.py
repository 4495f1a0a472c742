"""Participants that lie, by a seed: what leaves them is changed, or what they sign, or they talk out of turn.

Rules:
- A liar is the peer that an operator runs, with a `Liar` between it and its links. It can do what its key can: whatever
  it changes of its own it signs anew, and what it invents of others has no good signature.
- `CATALOGUE` names the lies. Which of them, when and towards whom, is drawn from the liar's own generator, so that a
  seed repeats it; and most liars do not say that they have been found out.
- Two kinds of change: of a statement before it is signed (`state`), to which the liar then holds itself; and of what
  leaves for one neighbour (`tell`), of which its own state knows nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random

import msgspec
import numpy as np

from midst.net.exact_finish import ExactFinish
from midst.net.gossip import Gossip, pack_bits
from midst.net.peer import Peer
from midst.net.setup import Setup
from midst.net.wire import Control, Done, Hello, NotYet, StepFrame, Want, Welcome, decode_control, encode_control
from midst.net.withdrawal import Withdrawal, sign_withdrawal
from midst.protocol.keys import MODULUS
from midst.protocol.participant import Participant
from midst.protocol.search import OwnValues
from midst.protocol.statements import Statement, make_body, signed_bytes

_HEAD, _CONTEXT = 5, 32  # bytes of a statement before what it says, and of its context
_RECORDED = 400  # frames that a replaying liar keeps
_SPECIAL_POINTS = (  # encodings on which a careless verifier trips: of small order, not canonical, no point
    bytes([1]) + bytes(31),
    bytes(32),
    (2**255 - 20).to_bytes(32, "little"),
    b"\xff" * 32,
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
)


@dataclass(eq=False)
class Liar:
    """One that keeps to the protocol in all; what a lie changes, its class overrides.

    Attributes:
        setup: whose.
        rng: decides what it does.
        step: of the statement that it lies about first.
        quiet: whether it never says that it withdraws.
    """

    setup: Setup
    rng: Random

    def __post_init__(self) -> None:
        self.step = self.rng.choice([0, 1, 1, 2, 3])
        self.quiet = self.rng.random() < 0.8
        some = self.rng.randint(1, len(self.setup.neighbours))
        self.victims = frozenset(self.rng.sample(self.setup.neighbours, some))

    # What a lie may change

    def state(self, statement: Statement) -> Statement:
        """What it signs in place of what an honest participant would."""
        return statement

    def tell(self, j: int, statement: Statement) -> Statement | None:
        """What it tells a neighbour in place of a statement of its own; None for nothing."""
        return statement

    def leave(self, j: int, frame: bytes) -> Iterable[bytes]:
        """What leaves in place of any other frame."""
        return [frame]

    def talk(self) -> Iterable[tuple[int, bytes]]:
        """What it says of its own accord, now and then."""
        return []

    def hear(self, frame: bytes) -> None:
        """What it overhears."""

    # Between the peer and its links

    def frames(self, j: int, frame: bytes) -> Iterable[bytes]:
        """What leaves in place of a frame."""
        if frame[:1] == b"W" and self.quiet:
            return []
        if frame[:1] != b"G":
            return self.leave(j, frame)
        own, codec = self.setup.number, self.setup.codec
        told = [self.tell(j, one) if one.signer == own else one for one in codec.decode_all(frame)]
        return codec.encode([one for one in told if one is not None])

    def watch(self, peer: Peer) -> None:
        """Lie in what is signed, from the first statement on."""
        participant = participant_of(peer)
        if participant is None or type(self).state is Liar.state or "_state" in vars(participant):
            return
        plain = participant._state

        def lie(kind: bytes, says: bytes) -> None:
            plain(kind, says)
            participant.own[-1] = self.state(participant.own[-1])

        participant._state = lie  # type: ignore[method-assign]
        participant.own[:] = map(self.state, participant.own)

    def sign(self, body: bytes) -> Statement:
        """Whatever it likes, signed."""
        return Statement(body, self.setup.notary.sign(signed_bytes(self.setup.session, body)))

    def garbled(self, statement: Statement) -> Statement:
        """A statement with some byte of what it says changed; a contribution stays in its context."""
        body = bytearray(statement.body)
        first = _HEAD + (_CONTEXT if statement.kind in b"CD" else 0)
        last = _HEAD + 48 if statement.kind == b"A" else len(body)
        body[self.rng.randrange(first, last)] ^= 1 << self.rng.randrange(8)
        return self.sign(bytes(body))

    def moved(self, statement: Statement) -> Statement:
        """A contribution with some of its numbers made larger and others smaller."""
        if statement.kind != b"C":
            return statement
        content = bytearray(statement.content)
        size, most = (32, 4) if self.setup.charter.is_verified else (8, len(content) // 8)
        places = [len(content) - size * k for k in range(1, min(most, len(content) // size) + 1)]
        change = self.rng.choice([1, 2, 5, 2**40])
        for place, by in zip(self.rng.sample(places, min(2, len(places))), (change, -change), strict=False):
            number = (int.from_bytes(content[place : place + size], "little") + by) % (MODULUS if size == 8 else 2**252)
            content[place : place + size] = number.to_bytes(size, "little")
        return self.sign(statement.body[: _HEAD + _CONTEXT] + bytes(content))


def participant_of(peer: Peer) -> Participant | None:
    """A peer's part in the search, once there is one."""
    exchange = peer.exchange
    search = exchange._search if isinstance(exchange, ExactFinish) else exchange
    return search._participant if isinstance(search, Gossip) else None


class Equivocate(Liar):
    """Tells some neighbours another statement than the others."""

    def tell(self, j: int, statement: Statement) -> Statement | None:
        return self.garbled(statement) if j in self.victims and statement.step == self.step else statement


class TwoFaces(Liar):
    """Tells some neighbours other numbers, such that the totals could be."""

    def tell(self, j: int, statement: Statement) -> Statement | None:
        return self.moved(statement) if j in self.victims and statement.step >= self.step else statement


class Withhold(Liar):
    """Tells some neighbours, or all, nothing from some step on."""

    def tell(self, j: int, statement: Statement) -> Statement | None:
        return None if statement.step >= self.step and (j in self.victims or self.rng.random() < 0.5) else statement


class WithholdTheEnd(Liar):
    """Learns the answer, and does not sign it."""

    def tell(self, j: int, statement: Statement) -> Statement | None:
        return None if statement.kind == b"F" else statement


class CopiedKey(Liar):
    """Announces another's session key as its own, or one that hides nothing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._copied = self.rng.choice([bytes(32), bytes([1]) + bytes(31), None])

    def hear(self, frame: bytes) -> None:
        for one in self.setup.codec.decode_all(frame) if frame[:1] == b"G" else ():
            if self._copied is None and one.kind == b"A" and one.signer != self.setup.number:
                self._copied = one.announced()[1]

    def tell(self, j: int, statement: Statement) -> Statement | None:
        if statement.kind != b"A":
            return statement
        if self._copied is None:
            return None  # it waits until it has heard one
        return self.sign(statement.body[: _HEAD + 16] + self._copied + statement.body[_HEAD + 48 :])


class WrongMasks(Liar):
    """Signs other numbers than its masks hide, and stands by them."""

    def state(self, statement: Statement) -> Statement:
        return self.moved(statement) if statement.step >= self.step else statement


class Noise(Liar):
    """Signs statements with a byte changed."""

    def state(self, statement: Statement) -> Statement:
        return self.garbled(statement) if statement.step == self.step else statement


class OutOfTurn(Liar):
    """Signs statements of other kinds, lengths and steps than are due."""

    def state(self, statement: Statement) -> Statement:
        if statement.step != max(self.step, 1):
            return statement
        context, content = statement.context, statement.content
        says = self.rng.choice([(b"F", b""), (b"D", bytes(32)), (b"C", content + bytes(32)), (b"C", content[:-32])])
        return self.sign(make_body(says[0], self.setup.number, statement.step, context + (says[1] or b"")))

    def talk(self) -> Iterable[tuple[int, bytes]]:
        numbers = struct.pack("<4Q", *(self.rng.getrandbits(64) for _ in range(4)))
        body = make_body(b"C", self.setup.number, self.rng.randrange(1, 40), self.rng.randbytes(32) + numbers)
        return [(j, frame) for j in self.victims for frame in self.setup.codec.encode([self.sign(body)])]


class Replay(Liar):
    """Says again, to anybody, whatever it has heard or said."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._recorded: list[bytes] = []

    def hear(self, frame: bytes) -> None:
        if len(self._recorded) < _RECORDED:
            self._recorded.append(frame)

    def leave(self, j: int, frame: bytes) -> Iterable[bytes]:
        self.hear(frame)
        return [frame]

    def talk(self) -> Iterable[tuple[int, bytes]]:
        some = self.rng.choices(self._recorded, k=6) if self._recorded else []
        return [(self.rng.choice(self.setup.neighbours), frame) for frame in some]


class FalseAccusation(Liar):
    """Says that others lied: in its own name, in others', and with evidence that shows nothing."""

    def talk(self) -> Iterable[tuple[int, bytes]]:
        setup, everybody = self.setup, range(len(self.setup.charter.names))
        other, signer = self.rng.choice(everybody), self.rng.choice(everybody)
        said = Withdrawal(signer, self.rng.randrange(-1, 5), "equivocation", (other,), "signed two statements")
        leaving = sign_withdrawal(said, setup.session, setup.notary)
        invented = make_body(b"C", other, self.rng.randrange(1, 4), self.rng.randbytes(32 + 8 * 4))
        shown = setup.codec.encode([self.sign(invented), replace(self.sign(invented), signature=bytes(64))])
        return [(j, frame) for j in self.victims for frame in (*shown, setup.codec.encode_withdrawal(leaving))]


class Appear(Liar):
    """Votes by one value in the first probes, and by another later: to be in a bracket that it was not in."""

    def state(self, statement: Statement) -> Statement:
        from midst.protocol.commitments import H, add

        verified = self.setup.charter.is_verified
        if statement.kind != b"C" or not verified or statement.step <= self.step or len(statement.content) < 64:
            return statement
        content = add([statement.content[:32], H]) + statement.content[32:]
        return self.sign(statement.body[: _HEAD + _CONTEXT] + content)

    def watch(self, peer: Peer) -> None:
        super().watch(peer)
        participant = participant_of(peer)
        if self.setup.charter.is_verified or participant is None or participant.step < max(self.step, 1):
            return
        holding, search = participant._holding, participant.search
        assert search is not None
        brackets = [search.rules.brackets[k] for k in range(len(holding.keys))]
        rows = zip(brackets, holding.keys, strict=True)
        drawn = [[self.rng.randint(max(a, 0) + 1, b) for _ in row] for (a, b), row in rows]
        participant._values = OwnValues.of(search.rules, [np.array(each, np.uint64) for each in drawn])


class Stall(Liar):
    """Answers everything but what it is asked for, for ever."""

    def tell(self, j: int, statement: Statement) -> Statement | None:
        return None if statement.step >= self.step else statement

    def leave(self, j: int, frame: bytes) -> Iterable[bytes]:
        return [] if frame[:1] == b"S" and self.step else [frame]

    def talk(self) -> Iterable[tuple[int, bytes]]:
        names = self.setup.charter.names
        lacks = pack_bits(range(len(names)), len(names))
        asked = [Want(self.rng.randrange(9)), Want(0, lacks)]
        words: list[Control] = [*asked, NotYet(3, names[:3]), Done(self.rng.random() < 0.5)]
        return [(j, encode_control(each)) for j in self.setup.neighbours for each in words]


class OtherCharter(Liar):
    """Greets with another charter, another name, another instance, or more than it has heard."""

    def leave(self, j: int, frame: bytes) -> Iterable[bytes]:
        said = decode_control(frame) if frame[:1] == b"T" else None
        if isinstance(said, Hello):
            others = [{"digest": bytes(32)}, {"sender": "nobody"}, {"instance": self.rng.randbytes(16)}, {"version": 1}]
            return [encode_control(msgspec.structs.replace(said, **self.rng.choice(others)))]  # type: ignore[arg-type]
        if isinstance(said, Welcome) and self.step:
            return [encode_control(msgspec.structs.replace(said, step=5, digest=self.rng.randbytes(16)))]
        return [frame]


class OddPoints(Liar):
    """Signs points of small order, points that are none, and scalars that are too large."""

    def state(self, statement: Statement) -> Statement:
        if statement.kind == b"A" or statement.step < self.step or len(statement.content) < 32:
            return statement
        content = bytearray(statement.content)
        place = 32 * self.rng.randrange(len(content) // 32)
        content[place : place + 32] = self.rng.choice(_SPECIAL_POINTS)
        return self.sign(statement.body[: _HEAD + _CONTEXT] + bytes(content))


class FalseSteps(Liar):
    """In an iteration: other x, other levels, to some neighbours."""

    def leave(self, j: int, frame: bytes) -> Iterable[bytes]:
        codec = self.setup.codec
        said = codec.decode(frame) if frame[:1] == b"S" else None
        if not isinstance(said, StepFrame) or said.message.round <= self.step or j not in self.victims:
            return [frame]
        iteration = self.setup.iteration
        assert iteration is not None
        low, high = iteration.limits.x
        number = said.message.number * 0 + self.rng.choice([low, high, 0.0, self.rng.uniform(-20, 20)])
        off = self.rng.choice([0.0, 1e6, -1e6])
        maxima = tuple(each + off for each in said.maxima)
        return [codec.encode_step(type(said.message)(said.message.round, number), said.digest, maxima)]


class RolledBack(Liar):
    """Honest, but for its disk, which is put back to an earlier state while it is down; the world does that."""


CATALOGUE: dict[str, Callable[[Setup, Random], Liar]] = {
    "equivocates": Equivocate,
    "has two faces": TwoFaces,
    "withholds": Withhold,
    "withholds the end": WithholdTheEnd,
    "copies a key": CopiedKey,
    "uses wrong masks": WrongMasks,
    "makes noise": Noise,
    "speaks out of turn": OutOfTurn,
    "replays": Replay,
    "accuses falsely": FalseAccusation,
    "appears in a bracket": Appear,
    "stalls with talk": Stall,
    "has another charter": OtherCharter,
    "sends odd points": OddPoints,
    "sends false steps": FalseSteps,
    "has an old disk": RolledBack,
}


def choose_liars(setups: list[Setup], count: int, rng: Random) -> dict[int, tuple[str, Liar]]:
    """So many of the participants, each with a lie, by number."""
    iterates = setups[0].iteration is not None
    lies = [name for name in CATALOGUE if iterates or name != "sends false steps"]
    chosen = rng.sample(range(len(setups)), count)
    named = [(i, rng.choice(lies)) for i in sorted(chosen)]
    return {i: (name, CATALOGUE[name](setups[i], Random(rng.getrandbits(64)))) for i, name in named}

"""A participant that lies: `midst node`, patched before it starts. `python liar.py STRATEGY PYTHON -m midst node …`.

| strategy   | what it does                                                                      |
|------------|-----------------------------------------------------------------------------------|
| two keys   | announces one session key to its lower neighbour and another to the higher        |
| two votes  | contributes one thing to its lower neighbour and another to the higher            |
| two balanced votes | the same, such that the totals could be                                   |
| slow       | tells its contributions to its lower neighbour only                               |
| silent     | tells its contributions to nobody, nor that it gives up                           |
| heavy vote | commits to (−2, +2) more than its vote in the first and the last cell                |
| false numbers | tells other numbers than it has committed to                                     |
| heavy      | adds (−2, +2) to the first and the last cell of every probe: a vote that is not its |
| hearsay    | says in its WELCOME that the other has signed more than it has                    |
| altered sum | about arrays: alters what passes through it, and signs what it should have sent  |
| owned sum  | the same, and signs what it has sent                                               |
| two updates | tells one neighbour that it begins with one update, the other with another        |
| false counts | as the root of the tree: has the answers of some coordinates be what it likes     |
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable

import msgspec
import numpy as np

from midst.cli import main
from midst.net import peer, wire
from midst.net.tree_sums import TreeSums
from midst.protocol import participant
from midst.protocol.commitments import ORDER, H, add, multiply
from midst.protocol.statements import Statement, signed_bytes
from midst.protocol.vectors.chunk import ChunkSearch
from midst.protocol.vectors.formats import Format
from midst.protocol.vectors.lanes import cut, pack, unpack

WISHES = {0: 1e30, 1: -12.5, 2: 0.0, 1500: 1e-30}  # by coordinate, what the root would have as its median


def tamper(change: Callable[[peer.Peer, int, Statement], Statement | None]) -> None:
    """Put a change between the liar and its links; None for a statement that is not told."""
    begin = peer.Peer.__init__

    def lying(self, session, send, *rest):
        def tell(j, frame):
            if frame[:1] != b"G":
                return send(j, frame)
            told = [change(self, j, each) for each in session.setup.codec.decode_all(frame)]
            for again in session.setup.codec.encode([each for each in told if each is not None]):
                send(j, again)
            return None

        begin(self, session, tell, *rest)

    peer.Peer.__init__ = lying


def other(self: peer.Peer, statement: Statement, place: int) -> Statement:
    """The same statement with one byte changed, signed all the same."""
    body = bytearray(statement.body)
    body[place] ^= 1
    signature = self.setup.notary.sign(signed_bytes(self.setup.session, bytes(body)))
    return Statement(bytes(body), signature)


def two(kind: bytes, place: int) -> Callable[[peer.Peer, int, Statement], Statement]:
    def change(self, j, statement):
        if statement.kind == kind and statement.signer == self.setup.number and j == max(self.setup.neighbours):
            return other(self, statement, place)
        return statement

    return change


def balanced(self: peer.Peer, j: int, statement: Statement) -> Statement:
    """To the higher neighbour, one more in the first cell and one fewer in the second."""
    if statement.kind != b"C" or statement.signer != self.setup.number or j != max(self.setup.neighbours):
        return statement
    numbers = list(statement.numbers)
    if len(numbers) > 1:
        numbers[:2] = [(numbers[0] + 1) % 2**64, (numbers[1] - 1) % 2**64]
    body = statement.body[:37] + struct.pack(f"<{len(numbers)}Q", *numbers)
    return Statement(body, self.setup.notary.sign(signed_bytes(self.setup.session, body)))


def tell_two(change: Callable[[peer.Peer, int, Statement], Statement | None]) -> None:
    """One thing to the one and another to the other; and silence when its own node finds out, which would withdraw."""
    tamper(change)
    keep_quiet()


def withhold(everybody: bool) -> Callable[[peer.Peer, int, Statement], Statement | None]:
    def change(self, j, statement):
        own = statement.kind == b"C" and statement.signer == self.setup.number
        return None if own and (everybody or j == max(self.setup.neighbours)) else statement

    return change


def say_nothing() -> None:
    """Withhold every contribution, and the abort too: who waits must find out whom it waits for."""
    tamper(withhold(everybody=True))
    keep_quiet()


def keep_quiet() -> None:
    """Never say that it gives up."""
    give_up = peer.Peer._abort

    def quietly(self, *about, **told):
        self._send = lambda j, frame: None
        give_up(self, *about, **told)

    peer.Peer._abort = quietly


def vote_twice() -> None:
    plain = participant.contribution

    def heavy(question, keys, weight):
        numbers = plain(question, keys, weight)
        if len(numbers) > 1:
            numbers[0] -= 2
            numbers[-1] += 2
        return numbers

    participant.contribution = heavy


def vote_falsely(change: Callable[[bytes], bytes]) -> None:
    """Where votes are proved: contributions changed before they are signed, and no word of its own about it."""
    truly = participant.Participant._contribution
    participant.Participant._contribution = lambda self: change(truly(self))
    keep_quiet()


def commit_to_more(content: bytes) -> bytes:
    """Commitments to another vote, with the proofs of the right one."""
    first, last = add((content[:32], multiply(-2, H))), add((content[96:128], multiply(2, H)))
    return first + content[32:96] + last + content[128:]


def tell_more(content: bytes) -> bytes:
    """Right commitments, and one more in the last masked number."""
    number = (int.from_bytes(content[-64:-32], "little") + 1) % ORDER
    return content[:-64] + number.to_bytes(32, "little") + content[-32:]


def hear_say() -> None:
    encode = wire.encode_control

    def lying(talk):
        if isinstance(talk, wire.Welcome):
            talk = msgspec.structs.replace(talk, step=5, digest=os.urandom(16))
        return encode(talk)

    peer.encode_control = lying


def alter_sums() -> None:
    """What goes up is not what it should be, from the second question on; the rest is as if nothing had been."""
    encode = wire.Codec.encode_vector

    def altered(self, up, round, chunk, step, context, vector):
        return encode(self, up, round, chunk, step, context, flip(vector) if up and step else vector)

    wire.Codec.encode_vector = altered
    keep_quiet()


def own_up_to_sums() -> None:
    add_up = ChunkSearch.sum_up

    def altered(self, children):
        vector = add_up(self, children)
        return flip(vector) if children and not self.search.bracket.counted.any() else vector

    ChunkSearch.sum_up = altered
    keep_quiet()


def count_falsely() -> None:
    """The root has everybody's sums before it says anything itself, and their total: it adds what is lacking."""
    add_up = ChunkSearch.sum_up

    def wished(self, children):
        question, bracket = self.search.question, self.search.bracket
        totals, own = unpack(add_up(self, children), question), unpack(self.own, question)
        totals, own = [each.copy() for each in totals], [each.copy() for each in own]
        for coordinate, wish in WISHES.items():
            for k in np.flatnonzero(bracket.lanes == coordinate):
                counted = bracket.counted[k]
                part, place = (0 if counted else -1), np.count_nonzero(bracket.counted[:k] == counted)
                told = totals[part].dtype.type(answer_towards(wish, bracket.left, int(bracket.rank[k]), counted))
                own[part][place] += told - totals[part][place]
                totals[part][place] = told
        self.own = pack(cut(own, question), question)
        return pack(totals, question)

    ChunkSearch.sum_up = wished


def answer_towards(wish: float, left: int, rank: int, counted: bool) -> int:
    """The total by which the next bit is that of the wish; or all bits that are left."""
    offset = int(Format("float32").offsets(np.array([wish], np.float32))[0])
    if not counted:
        return offset & ((1 << left) - 1)
    return rank - (offset >> (left - 1) & 1)


def begin_twice() -> None:
    """And hide it: a child is told what it would be told if all others had heard what it has, and the other way up."""
    tell_two(two(b"B", -1))
    take, encode, contexts = TreeSums._take_vector, wire.Codec.encode_vector, {}

    def taken(self, j, said):
        each = self._chunks.get(said.chunk)
        if each is not None and said.up:
            contexts[said.chunk, said.step] = said.context
            said = msgspec.structs.replace(said, context=each.search.context[: len(said.context)])
        return take(self, j, said)

    def told(self, up, round, chunk, step, context, vector):
        return encode(self, up, round, chunk, step, context if up else contexts.get((chunk, step), context), vector)

    TreeSums._take_vector, wire.Codec.encode_vector = taken, told


def flip(vector: bytes) -> bytes:
    return bytes([vector[0] ^ 1]) + vector[1:]


STRATEGIES = {
    "two keys": lambda: tell_two(two(b"A", 5 + 16)),
    "two votes": lambda: tell_two(two(b"C", 5 + 32)),
    "two balanced votes": lambda: tell_two(balanced),
    "slow": lambda: tamper(withhold(everybody=False)),
    "silent": say_nothing,
    "heavy": vote_twice,
    "heavy vote": lambda: vote_falsely(commit_to_more),
    "false numbers": lambda: vote_falsely(tell_more),
    "hearsay": hear_say,
    "altered sum": alter_sums,
    "owned sum": own_up_to_sums,
    "two updates": begin_twice,
    "false counts": count_falsely,
}

if __name__ == "__main__":
    STRATEGIES[sys.argv[1]]()
    main(sys.argv[5:])

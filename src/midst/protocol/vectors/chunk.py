"""One client's part in the search of a chunk: what it contributes, what it sends up, and what it signs in the end.

Rules:
- No I/O. Totals in, masked contributions and sums out; everything follows from one's own offsets, the pairs' keys and
  what was told, so that who is started again with the same does the same.
- The context of a step is a hash of all that was agreed before the chunk, of all its earlier totals, and of what is
  asked. Masks follow from it: who was told other totals has masks that do not cancel.
- A vector is hashed as it is sent. The hashes of a chunk's vectors form a chain, of which everybody signs the end
  (`tampering.py`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from midst.protocol.search import Impossible
from midst.protocol.vectors.formats import Words
from midst.protocol.vectors.lanes import add, cut, hide, pack, packed_bytes, unpack
from midst.protocol.vectors.layout import CHUNK, Layout
from midst.protocol.vectors.search import Goal, Numbers, Question, VectorSearch, whole_bytes
from midst.protocol.vectors.tampering import Combined, combine, most_combined

NO_VECTORS = bytes(32)  # the chain of none


class ChunkSearch:
    """One client's part in the search of a chunk.

    Attributes:
        search: where it stands, as everybody sees it.
        questions: asked so far.
        transcript: the hash of all that was told.
        context: of the question now.
        own: the contribution to it, packed; empty when all is known.
        impossible: why no values have the totals that were told, where none have; then nothing more is asked.
    """

    def __init__(
        self, search: VectorSearch, own: Words, number: int, pairs: Mapping[int, bytes], transcript: bytes
    ) -> None:
        """The first question, for the client with this number and these offsets; pairs are by the other's number."""
        self.search, self.transcript = search, transcript
        self.questions: list[Question] = []
        self.context, self.own = b"", b""
        self.impossible: Impossible | None = None
        self._offsets, self._number, self._pairs = own, number, pairs
        self._contributed: list[bytes] = []
        self._sent: list[bytes] = []
        self._totals: list[bytes] = []
        self._ask()

    @property
    def step(self) -> int:
        """Which question this is, from 0 on."""
        return len(self._totals)

    @property
    def over(self) -> bool:
        """Whether nothing more is asked."""
        return self.search.question is None or self.impossible is not None

    @property
    def size(self) -> int:
        """Bytes of a vector that answers the question."""
        assert self.search.question is not None
        return packed_bytes(self.search.question)

    def sum_up(self, children: Sequence[bytes]) -> bytes:
        """One's own contribution and the children's sums, as they are sent up."""
        question = self.search.question
        assert question is not None
        if not children:
            return self.own
        numbers = unpack(self.own, question)
        for each in children:
            add(numbers, unpack(each, question))
        return pack(cut(numbers, question), question)

    def read(self, totals: bytes) -> Numbers:
        """Totals as numbers."""
        assert self.search.question is not None
        return unpack(totals, self.search.question)

    def fold(self, sent: bytes, totals: bytes) -> None:
        """The next question, from what was sent up for this one, and the totals that came down."""
        question = self.search.question
        assert question is not None
        self._contributed.append(self.own)
        self._sent.append(sent)
        self._totals.append(totals)
        self.questions.append(question)
        self.transcript = hashlib.sha256(self.context + totals).digest()
        try:
            self.search.fold(unpack(totals, question))
        except Impossible as error:  # who altered a sum is named first, if somebody did
            self.impossible = error
        self._ask()

    def chains(self) -> tuple[bytes, bytes]:
        """The ends of the chains of what was contributed, and of what was sent up."""
        return _chain(self._contributed), _chain(self._sent)

    def combined(self, seed: bytes) -> tuple[Combined, Combined, Combined]:
        """Random sums over what was contributed, what was sent up, and the totals."""
        contributed = combine(self._contributed, self.questions, seed)
        sent = contributed if self._sent == self._contributed else combine(self._sent, self.questions, seed)
        totals = sent if self._totals == self._sent else combine(self._totals, self.questions, seed)
        return contributed, sent, totals

    def last_totals(self) -> tuple[int, bytes, bytes] | None:
        """The newest totals for a child that may lack them: of which step, in which context, and they themselves."""
        return (self.step - 1, self._before, self._totals[-1]) if self._totals else None

    def _ask(self) -> None:
        self._before, self.own = self.context, b""
        question = None if self.over else self.search.question
        if question is None:
            self.context = self.transcript
            return
        self.context = hashlib.sha256(self.transcript + _question_bytes(question)).digest()
        plain = self.search.answers(self._offsets)
        self.own = pack(hide(plain, self._number, self._pairs, self.context, question), question)


def vector_hash(vector: bytes) -> bytes:
    """Of one vector, as it is sent."""
    return hashlib.sha256(vector).digest()


def next_in_chain(chain: bytes, one: bytes) -> bytes:
    """The chain with one more vector, by its hash."""
    return hashlib.sha256(chain + one).digest()


def _chain(vectors: Iterable[bytes]) -> bytes:
    return reduce(next_in_chain, map(vector_hash, vectors), NO_VECTORS)


def _question_bytes(question: Question) -> bytes:
    return b"".join(struct.pack("<QB", part.size, part.bits) for part in question)


def longest_note(layout: Layout, goal: Goal) -> int:
    """Bytes of the longest note about a chunk: random sums over what was contributed, and over what was sent up."""
    rest = {whole_bytes(bits) for each in layout.formats for bits in range(1, each.bits + 1)}
    return 64 + 2 * most_combined({goal.count_bits, *rest, *_sums(layout, goal)})


def longest_vector(layout: Layout, goal: Goal) -> int:
    """Bytes of the longest vector about a chunk: counts of some coordinates, and the rest of all others, or sums."""
    return CHUNK * (max(goal.count_bits, *(each.bits for each in layout.formats), *_sums(layout, goal)) + 8) // 8


def _sums(layout: Layout, goal: Goal) -> set[int]:
    """How many bits sums over everybody's offsets have, where any are asked for."""
    if goal.statistic == "quantile":
        return set()
    return {goal.sum_bits(each.most) for each in layout.formats}

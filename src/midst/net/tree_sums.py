"""A session about vectors: round after round, sums go up a tree and totals come down, chunk by chunk.

Rules:
- No I/O, no clock. What a step is made from goes to the journal (`Peer`): everybody's notes, one's own update, and all
  totals. Playing them again gives the same state, so that is how a client resumes.
- Keys are agreed on once. A round begins when everybody has signed that it has an update, which is on disk before; its
  masks follow from those notes, and from everything that was told before.
- A few chunks are under way at a time: while one waits for its totals the next is asked. A chunk is done when everybody
  has signed what it contributed and was told, and the random sums over it hold (`tampering.py`).
- A link of the tree carries a vector each way a question, whatever the number of clients. Frames say in which context
  they were made; neighbours who were told different things notice it at once.
- Who is started again is sent what it may lack when it greets: the sums and totals that are under way, and the notes.
- Who waits asks all its neighbours for notes, in the tree or not, so that nobody can keep them from whom others link;
  and for a vector who owes it. Who has none says for whom it waits itself.
- Once a round is over for this client, the journal is written anew with what is needed of it (`settled`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from numpy.typing import NDArray

from midst.graphs.spanning import spanning_tree
from midst.net.answer import Answer
from midst.net.gossip import pack_bits, unpack_bits
from midst.net.notes import ANNOUNCED, About, Notes, content
from midst.net.setup import Opening, Setup
from midst.net.wire import Statements, VectorFrame, Want
from midst.protocol.course import announcement_fault
from midst.protocol.masks import derive_seed, public_key
from midst.protocol.participant import Distrust
from midst.protocol.statements import HASH_BYTES, Malformed, Statement, announce, pair_keys
from midst.protocol.vectors.chunk import NO_VECTORS, ChunkSearch, next_in_chain, vector_hash
from midst.protocol.vectors.formats import Words, split_bytes
from midst.protocol.vectors.layout import Layout
from midst.protocol.vectors.search import Numbers, VectorSearch
from midst.protocol.vectors.tampering import Combined, add_combined, decode_combined, encode_combined, same

WINDOW = 4  # chunks under way at a time
_PATIENCE = 10  # half seconds without progress between two times that something is asked for: TLS loses nothing
_LABEL = b"midst vectors v1\n"
_APART = "hold different totals of what was told before: one of the two altered them, or lost its disk"

Watched = Callable[[int, VectorSearch, Numbers], None]  # a chunk, where it stands, and what is told next


class Event(msgspec.Struct, frozen=True, array_like=True):
    """What a step is made from.

    Attributes:
        kind: "A", "B", "M" or "K", everybody's notes; "U", an update; "T", totals.
        chunk: which it is about.
        parts: notes, each a body and a signature; an update's offsets; or totals, what was sent up where that is
            neither one's own contribution nor the totals, and the hashes of what the children sent.
    """

    kind: str
    chunk: int
    parts: tuple[bytes, ...]


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """What is kept when a round is over.

    Attributes:
        rounds: that are over.
        transcript: the hash of all that was agreed and told.
        notes: that others may lack, each a body and a signature.
        aggregate: of the last round, as bytes.
        steps: that its longest chunk took.
    """

    rounds: int
    transcript: bytes
    notes: tuple[tuple[bytes, bytes], ...]
    aggregate: bytes
    steps: int


class Finished(NamedTuple):
    """A round that is over.

    Attributes:
        round: which, from 0 on.
        arrays: the aggregate.
        steps: questions that the longest chunk took.
        digest: the hash of all that was agreed and told so far; the same at everybody.
    """

    round: int
    arrays: list[NDArray[Any]]
    steps: int
    digest: bytes


class _UnderWay:
    """A chunk under way: the search, and what has come from neighbours for its question."""

    def __init__(self, search: ChunkSearch) -> None:
        self.search = search
        self.sums: dict[int, bytes] = {}  # of the children
        self.chains: dict[int, bytes] = {}
        self.sent: bytes | None = None  # what is sent up, once all children's sums are there
        self.totals: bytes | None = None
        self.told: Combined = {}  # random sums over all totals, once everybody has committed to what it was told


class TreeSums:
    """One client's part in a session about vectors.

    Attributes:
        finished: the last round that is over; None before the first.
        watched: told of every chunk's totals before they are made something of.
    """

    awaits_everybody = True
    exposed = False
    state = None
    search = None

    def __init__(self, setup: Setup, opening: Opening, settled: bytes = b"") -> None:
        """Ready to announce itself; or, after rounds that are over, of which `settled` is kept, to go on."""
        charter = setup.charter
        assert charter.layout is not None
        self._setup, self._opening, self._number = setup, opening, setup.number
        self._layout: Layout = charter.layout
        self._goal = charter.vector_goal
        tree = spanning_tree(charter.graph)
        self._parent, self._children = tree.parents[setup.number], tree.children[setup.number]
        self._parents = tree.parents
        self._near = (*(() if self._is_root else (self._parent,)), *self._children)
        self._notes = Notes(setup.session, setup.number, len(charter.names), len(self._layout.chunks), setup.notary)
        self._begun, self._nudges, self._events = False, 0, 0
        self._outbox: list[tuple[int, bytes]] = []
        self._pairs: dict[int, bytes] = {}
        self._transcript = b""
        self._offered: bytes | None = None
        self._own: list[Words] | None = None
        self._round_context = b""
        self._chunks: dict[int, _UnderWay] = {}
        self._done: dict[int, bytes] = {}  # the transcripts of chunks that are over
        self._steps = 0
        self._early: dict[tuple[int, int], dict[int, VectorFrame]] = {}
        self._arrays = self._layout.empty()
        self._settled: bytes | None = None
        self.finished: Finished | None = None
        self.watched: Watched | None = None
        self.answer: Answer | None = None
        says = announce(opening.instance, public_key(opening.secret), 1, setup.notary.certificate)
        self._notes.sign(ANNOUNCED, says)
        if settled:
            self._take_up(msgspec.msgpack.decode(settled, type=Settled))

    # How it stands

    @property
    def vectors(self) -> TreeSums:
        """This."""
        return self

    @property
    def _is_root(self) -> bool:
        return self._parent == self._number

    @property
    def rounds_done(self) -> int:
        """How many rounds are over."""
        return 0 if self.finished is None else self.finished.round + 1

    @property
    def round(self) -> int:
        """How many steps were made; for people, and to ask."""
        return self._events

    @property
    def gathering(self) -> bool:
        """Whether somebody is waited for who has yet to begin, perhaps because it still trains."""
        return not self._pairs or not self._round_context

    @property
    def idle(self) -> bool:
        """Whether nothing goes on but that an update is awaited from this client itself."""
        return bool(self._pairs) and self._own is None and self._offered is None

    @property
    def doing(self) -> str:
        """What it does, for people."""
        if not self._pairs:
            return "announcements"
        if self.gathering:
            return f"round {self.rounds_done + 1} begins"
        return f"round {self.rounds_done + 1}: {len(self._done)} of {len(self._layout.chunks)} chunks done"

    def own(self, step: int) -> None:
        """Nothing that a neighbour would have to show: see `newest_of`."""

    def newest_of(self, j: int) -> None:
        """Nothing is shown to who greets.

        Masks follow from the notes by which a round begins, and those from the updates: a disk that was put back can
        hide no second update behind the masks of a first.
        """

    def heard(self) -> Sequence[Statement]:
        """Nothing that others would need to name somebody."""
        return ()

    # What is told

    def forget(self, j: int) -> None:
        """A neighbour has greeted anew: it is sent what it may lack, as it asks."""

    def begin(self) -> None:
        """Every neighbour has greeted: what was held back is told."""
        self._begun = True
        for j in self._near:
            self._outbox += [(j, frame) for frame in self._outstanding(j)]

    def outbox(self) -> list[tuple[int, bytes]]:
        """What is to be sent now; it is not given a second time."""
        told, self._outbox = self._outbox, []
        return told

    def frames(self, j: int, want: Want) -> list[bytes]:
        """What a neighbour asks for; or, when it is new, all that it may lack."""
        if not self._begun:
            return []
        if want.lacks or want.vectors:
            return self._wanted(j, want)
        if j not in self._near:
            return []
        self._outbox = [(k, frame) for k, frame in self._outbox if k != j]
        return self._outstanding(j)

    def ask(self, j: int) -> Want | None:
        """Ask all for notes, and for a vector who owes it; mostly for nothing but whom they wait for themselves."""
        if self.idle:
            return None
        signers, vectors = self._lacking_notes(), self._lacking_vectors().get(j, [])
        if not signers and not vectors:
            return None
        if self._nudges % _PATIENCE != _PATIENCE // 2:
            signers, vectors = [], []
        return Want(self.rounds_done, pack_bits(signers, len(self._parents)), tuple(vectors))

    def asked(self) -> None:
        """All neighbours have been asked, or spared."""
        self._nudges += 1

    def missing(self) -> list[int]:
        """For whom it waits."""
        if self.idle:
            return []
        found = dict.fromkeys([*self._lacking_notes(), *self._lacking_vectors()])
        return [j for j in found if j != self._number]

    def _lacking_notes(self) -> list[int]:
        """Whose notes are not here."""
        over = [self._awaited_of(k) for k, each in self._chunks.items() if each.search.over]
        awaited = [self._beginning] if self.gathering else over
        return sorted({signer for on in awaited for signer in self._notes.missing(on)})

    @property
    def _beginning(self) -> About:
        """Which notes are awaited before a round has begun."""
        return About(b"B", self.rounds_done, 0) if self._pairs else ANNOUNCED

    def _awaited_of(self, k: int) -> About:
        """Which notes a chunk waits for whose answer is there."""
        checked = About(b"K", self.rounds_done, k)
        return About(b"M", self.rounds_done, k) if self._notes.own(checked) is None else checked

    def _lacking_vectors(self) -> dict[int, list[tuple[int, int]]]:
        """Who owes us which vectors: of which chunk, and which step."""
        found: dict[int, list[tuple[int, int]]] = {}
        for k, each in self._chunks.items():
            if not each.search.over and each.totals is None:
                below = [j for j in self._children if j not in each.sums]
                for j in below if each.sent is None else [self._parent]:
                    found.setdefault(j, []).append((k, each.search.step))
        return found

    def _wanted(self, j: int, want: Want) -> list[bytes]:
        """What we have of what a neighbour lacks."""
        signers = unpack_bits(want.lacks, len(self._parents))
        frames = self._setup.codec.encode(self._notes.of(signers))
        vectors = set(want.vectors) if want.round == self.rounds_done else ()
        for k, each in self._chunks.items():
            if j in self._children and (k, each.search.step - 1) in vectors:
                frames += self._last_totals(k, each)
            if j == self._parent and (k, each.search.step) in vectors and each.sent is not None:
                frames.append(self._sum_frame(k, each))
        return frames

    def _outstanding(self, j: int) -> list[bytes]:
        """Notes, the totals that a child may lack, and the sums that the parent waits for."""
        frames = self._setup.codec.encode(self._notes.everything())
        if j in self._children:
            frames += [frame for k, each in self._chunks.items() for frame in self._last_totals(k, each)]
        else:
            frames += [self._sum_frame(k, each) for k, each in self._chunks.items() if each.sent is not None]
        return frames

    def _tell(self, note: Statement, besides: int | None = None) -> None:
        if self._begun:
            frames = self._setup.codec.encode([note])
            self._outbox += [(j, frame) for j in self._near if j != besides for frame in frames]

    # What is heard

    def take(self, j: int, said: Statements | VectorFrame) -> bool:
        """Hold what a neighbour tells; whether any of it was news.

        Raises:
            Malformed: it tells what nobody could have signed.
            Distrust: somebody has signed or sent what it must not.
        """
        if isinstance(said, VectorFrame):
            news = self._take_vector(j, said)
        else:
            news = False
            for note in said.statements:
                if self._notes.take(note):
                    self._tell(note, besides=j)
                    news = True
        if news:
            self._nudges = 0
        return news

    def _take_vector(self, j: int, said: VectorFrame) -> bool:
        each = self._chunks.get(said.chunk) if said.round == self.rounds_done and self._round_context else None
        if each is None:
            return self._hold_early(j, said)
        search = each.search
        if said.step != search.step or search.over:
            return False
        if said.context != search.context[: len(said.context)]:
            raise Distrust("diverged", tuple(sorted((self._number, j))), _APART)
        if len(said.vector) != search.size:
            raise Malformed("a vector of the wrong length")
        if said.up and j in self._children:
            known = each.sums.get(j)
            if known is None:
                each.sums[j] = said.vector
                self._sum_up(said.chunk, each)
                return True
            if known != said.vector:
                raise Distrust(
                    "equivocation", (j,), "sent two sums for one question: lied, ran twice, or lost its disk"
                )
        elif not said.up and j == self._parent and each.totals is None and each.sent is not None:
            each.totals = said.vector
            return True
        return False

    def _hold_early(self, j: int, said: VectorFrame) -> bool:
        """A child may be a round or a chunk ahead: its first sums are held until they are due."""
        ahead = self.rounds_done <= said.round <= self.rounds_done + 1 and said.chunk < len(self._layout.chunks)
        here = (said.round, said.chunk)
        if said.step or not said.up or j not in self._children or not ahead or said.chunk in self._done:
            return False
        if len(self._early) >= 2 * WINDOW and here not in self._early:
            return False
        self._early.setdefault(here, {})[j] = said
        return True

    # Going on

    def offer(self, arrays: Sequence[NDArray[Any]]) -> None:
        """The update of the next round, as arrays that fit the layout.

        Raises:
            ValueError: the round has begun with another one.
        """
        raw = b"".join(
            self._layout.formats[chunk.segment].offsets(self._layout.gather(arrays, chunk)).tobytes()
            for chunk in self._layout.chunks
        )
        if self._own is not None and raw != b"".join(each.tobytes() for each in self._own):
            raise ValueError("the round has begun with another update")
        if self._own is None:
            self._offered = raw

    def inputs(self, now: float) -> list[Event] | None:
        """What the next steps are made from, as far as it is here."""
        return list(self._due()) or None if self._begun and self.answer is None else None

    def pack(self, inputs: Sequence[Event]) -> bytes:
        """The same for the journal."""
        return msgspec.msgpack.encode(inputs)

    def unpack(self, record: bytes) -> list[Event]:
        """Inverse of `pack`."""
        return msgspec.msgpack.decode(record, type=list[Event])

    def step(self, inputs: Sequence[Event]) -> None:
        """The next steps.

        Raises:
            Distrust: somebody did what nobody does who keeps to the protocol.
            Impossible: no values have these totals.
        """
        for event in inputs:
            self._events += 1
            match event.kind:
                case "A":
                    self._agree(_notes_of(event))
                case "U":
                    self._begin_with(event.parts[0])
                case "B":
                    self._begin_round(_notes_of(event))
                case "T":
                    self._fold(event.chunk, *event.parts)
                case "M":
                    self._check_commitments(event.chunk, _notes_of(event))
                case "K":
                    self._check_sums(event.chunk, _notes_of(event))

    def settled(self) -> bytes | None:
        """What the journal is written anew with, once after a round."""
        kept, self._settled = self._settled, None
        return kept

    def _due(self) -> Iterator[Event]:
        if self._pairs and self._own is None:
            if self._offered is not None:
                yield Event("U", 0, (self._offered,))
        elif self.gathering:
            yield from self._complete(self._beginning)
        else:
            for k, each in self._chunks.items():
                if each.search.over:
                    yield from self._complete(self._awaited_of(k))
                elif each.totals is not None and each.sent is not None:
                    middle = b"" if self._is_root or each.sent == each.search.own else each.sent
                    hashes = (vector_hash(each.sums[j]) for j in self._children)
                    yield Event("T", k, (each.totals, middle, *hashes))

    def _complete(self, on: About) -> Iterator[Event]:
        notes = self._notes.all(on)
        if notes is not None:
            parts = tuple(part for note in notes for part in (note.body, note.signature))
            yield Event(on.kind.decode(), on.chunk, parts)

    # One step after the other

    def _agree(self, notes: Sequence[Statement]) -> None:
        """Everybody's session key is known: the keys of the pairs."""
        self._notes.hold(notes)
        for other, note in enumerate(notes):
            if (fault := announcement_fault(note, self._setup.agreement(()))) is not None:
                raise Distrust("broken protocol", (other,), fault)
        self._pairs = pair_keys(self._opening.secret, self._number, notes, self._setup.session)
        if not self._transcript:
            tags = b"".join(note.tag for note in notes)
            self._transcript = hashlib.sha256(_LABEL + self._setup.session + tags).digest()

    def _begin_with(self, raw: bytes) -> None:
        """Our own update is on disk: say that there is one."""
        formats, chunks = self._layout.formats, self._layout.chunks
        self._own = list(split_bytes(raw, ((formats[each.segment].word, each.stop - each.start) for each in chunks)))
        self._offered = None
        seed = derive_seed(self._opening.secret)
        known_by = hashlib.blake2b(self._transcript + raw, key=seed, digest_size=HASH_BYTES).digest()
        self._tell(self._notes.sign(About(b"B", self.rounds_done, 0), known_by))

    def _begin_round(self, notes: Sequence[Statement]) -> None:
        """Everybody has an update: the first chunks."""
        self._notes.hold(notes)
        said = b"".join(note.body for note in notes)
        self._round_context = hashlib.sha256(self._transcript + said).digest()
        for k in range(min(WINDOW, len(self._layout.chunks))):
            self._begin_chunk(k)

    def _begin_chunk(self, k: int) -> None:
        assert self._own is not None
        chunk = self._layout.chunks[k]
        begins = hashlib.sha256(self._round_context + k.to_bytes(4, "little")).digest()
        search = self._layout.search(chunk, self._goal)
        each = _UnderWay(ChunkSearch(search, self._own[k], self._number, self._pairs, begins))
        each.chains = dict.fromkeys(self._children, NO_VECTORS)
        self._chunks[k] = each
        self._sum_up(k, each)
        for j, said in self._early.pop((self.rounds_done, k), {}).items():
            with suppress(Malformed):  # its sender will be asked for the right one, and waited for by name
                self._take_vector(j, said)

    def _sum_up(self, k: int, each: _UnderWay) -> None:
        """Send up what is to be added, once all children's sums are there; at the root those are the totals."""
        if len(each.sums) < len(self._children) or each.search.over:
            return
        each.sent = each.search.sum_up([each.sums[j] for j in self._children])
        if self._is_root:
            each.totals = each.sent
        elif self._begun:
            self._outbox.append((self._parent, self._sum_frame(k, each)))

    def _fold(self, k: int, totals: bytes, middle: bytes, *hashes: bytes) -> None:
        """Totals are on disk: tell them on, and go on to the next question."""
        each = self._chunks[k]
        sent = totals if self._is_root else middle or each.search.own
        for j, one in zip(self._children, hashes, strict=True):
            each.chains[j] = next_in_chain(each.chains[j], one)
        if self.watched is not None:
            self.watched(k, each.search.search, each.search.read(totals))
        each.search.fold(sent, totals)
        each.sums, each.sent, each.totals = {}, None, None
        if self._begun:
            self._outbox += [(j, frame) for frame in self._last_totals(k, each) for j in self._children]
        if not each.search.over:
            self._sum_up(k, each)
            return
        chains = b"".join(each.search.chains())
        self._tell(self._notes.sign(About(b"M", self.rounds_done, k), each.search.transcript + chains))

    def _check_commitments(self, k: int, notes: Sequence[Statement]) -> None:
        """Everybody was told the same, and our children sent us what they signed: now the random sums."""
        self._notes.hold(notes)
        each, said = self._chunks[k], [content(note) for note in notes]
        for i, one in enumerate(said):
            if len(one) != 3 * HASH_BYTES:
                raise Distrust("broken protocol", (i,), "signed a commitment that is none")
        for i, one in enumerate(said):
            above = self._parents[i]
            if one[:HASH_BYTES] != said[above][:HASH_BYTES]:
                raise Distrust("diverged", tuple(sorted((i, above))), _APART)
        for j in self._children:
            if said[j][2 * HASH_BYTES :] != each.chains[j]:
                text = "do not agree on what the one sent to the other: at least one of the two lies"
                raise Distrust("tampered", tuple(sorted((self._number, j))), text)
        seed = hashlib.sha256(b"".join(note.body for note in notes)).digest()
        contributed, sent, each.told = each.search.combined(seed)
        says = encode_combined(contributed) + encode_combined(sent)
        self._tell(self._notes.sign(About(b"K", self.rounds_done, k), says))

    def _check_sums(self, k: int, notes: Sequence[Statement]) -> None:
        """Nobody altered a sum on its way: the chunk is done; or somebody contributed what no values are."""
        self._notes.hold(notes)
        each = self._chunks[k]
        contributed, sent = [], []
        for i, note in enumerate(notes):
            raw = content(note)
            half = len(raw) // 2
            own, up = (decode_combined(part, each.search.questions) for part in (raw[:half], raw[half:]))
            if own is None or up is None:
                raise Distrust("broken protocol", (i,), "signed sums that are none")
            contributed.append(own)
            sent.append(up)
        for i in range(len(notes)):
            below = [sent[j] for j, parent in enumerate(self._parents) if parent == i and j != i]
            if not same(sent[i], add_combined([contributed[i], *below])):
                raise Distrust("tampered", (i,), "sent up another sum than that of what it had")
        root = next(i for i, parent in enumerate(self._parents) if parent == i)
        if not same(each.told, sent[root]):
            raise Distrust("tampered", (root,), "told other totals than those that it had")
        if each.search.impossible is not None:
            raise each.search.impossible
        self._end_chunk(k, each)

    def _end_chunk(self, k: int, each: _UnderWay) -> None:
        answer = each.search.search.answer
        assert answer is not None
        chunk = self._layout.chunks[k]
        self._layout.scatter(self._arrays, chunk, self._layout.read(chunk, answer, self._goal))
        self._steps = max(self._steps, each.search.step)
        self._done[k] = each.search.transcript
        del self._chunks[k]  # everybody has signed its totals, so nobody lacks them
        after = len(self._done) + len(self._chunks)
        if after < len(self._layout.chunks):
            self._begin_chunk(after)
        elif not self._chunks:
            self._end_round()

    def _end_round(self) -> None:
        order = (self._done[k] for k in range(len(self._layout.chunks)))
        self._transcript = hashlib.sha256(self._round_context + b"".join(order)).digest()
        over = Finished(self.rounds_done, self._arrays, self._steps, self._transcript)
        self._notes.forget_before(over.round)
        self.finished = over
        self._own, self._round_context, self._done, self._steps = None, b"", {}, 0
        self._arrays = self._layout.empty()
        kept = tuple((note.body, note.signature) for note in self._notes.everything())
        raw = b"".join(each.tobytes() for each in over.arrays)
        self._settled = msgspec.msgpack.encode(Settled(self.rounds_done, self._transcript, kept, raw, over.steps))
        if self.rounds_done == self._setup.charter.aggregates:
            self._end(over, raw)

    def _take_up(self, kept: Settled) -> None:
        """After rounds that are over: as if they had been played again."""
        notes = [Statement(*each) for each in kept.notes]
        self._notes.hold(notes)
        self._transcript = kept.transcript
        self._agree(self._notes.all(ANNOUNCED) or ())
        arrays = self._layout.from_bytes(kept.aggregate)
        self.finished = Finished(kept.rounds - 1, arrays, kept.steps, kept.transcript)
        self._notes.round = kept.rounds
        if kept.rounds == self._setup.charter.aggregates:
            self._end(self.finished, kept.aggregate)

    def _end(self, over: Finished, raw: bytes) -> None:
        self.answer = Answer((), (), 0.0, self._events, False, probes=over.steps, update=raw, digest=over.digest)

    # Frames

    def _sum_frame(self, k: int, each: _UnderWay) -> bytes:
        assert each.sent is not None
        search = each.search
        return self._setup.codec.encode_vector(True, self.rounds_done, k, search.step, search.context, each.sent)

    def _last_totals(self, k: int, each: _UnderWay) -> list[bytes]:
        """The frame with the newest totals, for those children that may lack them; none before there are any."""
        last = each.search.last_totals()
        if last is None or not self._children:
            return []
        return [self._setup.codec.encode_vector(False, self.rounds_done, k, *last)]


def _notes_of(event: Event) -> list[Statement]:
    return [Statement(*event.parts[k : k + 2]) for k in range(0, len(event.parts), 2)]

"""Every state that two honest participants of a small search can be in, with a liar for the third, and one crash.

The honest ones are real peers (`net/peer.py`) with real journals, masks and proofs; signatures alone are the
simulator's. The network and the liar are played: what was told can be heard by anybody, in any order, any time, or
never; and the liar shows everybody whatever it likes.

Rules:
- A state is where each of the two stands, what both have told so far, and whether the crash has happened. Where one
  stands is what is on its disk, what it holds, and how it ended: what it heard first is not part of it.
- A step is one statement that reaches one of the two, and all that follows from it there. A crash may come before it,
  after it, or between any two of its effects: frames that leave, records that reach the disk.
- What follows depends on where one stands and on the statement alone. So each of these is found out once, by the real
  code on a copy, and looked up from then on.
- The liar may sign, in every context in which somebody honest has told something, whatever its alphabet has.

What is left out, and why nothing is lost by it:
- A statement in a context that nobody honest has reached yet: whoever held it early stands, once it gets there, where
  it would stand had it heard it then. Before that the context is as good as any other, and the alphabet has another.
- A write that a crash cuts short: the journal takes it for none (`tests/net/test_journal.py`).
- Greetings come at once, after a start. Nobody signs or tells anything before they are complete, and one that is late
  shows less than the one that is here.
- Liars who do not greet, and withdrawals: both end a session, at any time, for anybody, and that is all. Where all is
  heard in the end (`settle`), the last words of the honest are, too, and what they still answer.
"""

from __future__ import annotations

import struct
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random

from midst import graphs
from midst.errors import Aborted
from midst.net.answer import Answer
from midst.net.charter import Charter, ParticipantEntry
from midst.net.gossip import Gossip
from midst.net.identity.certificates import fingerprint
from midst.net.journal import Journal
from midst.net.peer import RETRY, Neighbour, Peer
from midst.net.records import Broken, decode_record
from midst.net.session import resume
from midst.net.setup import Setup, make_setup
from midst.net.wire import Welcome, encode_control
from midst.protocol.commitments import ORDER, H, Invalid, add
from midst.protocol.course import Evidence, judge, verify_transcript
from midst.protocol.keys import MODULUS
from midst.protocol.participant import Holding, Participant
from midst.protocol.search import Question
from midst.protocol.statements import Malformed, Signers, Statement, make_body, signed_bytes
from midst.protocol.votes import vote_sizes
from simnet.notary import SimNotary, sim_certificate

NAMES = ("p0", "p1", "p2")
VALUES = (1.0, 3.0, 2.0)  # the liar's is the median
LIAR = 2
Frames = tuple[bytes, ...]


@dataclass(frozen=True)
class Alphabet:
    """What the liar may sign.

    Attributes:
        sessions: how many session keys it may announce.
        moves: what it may add to the numbers of an honest contribution.
        kinds: whether it signs statements of a wrong kind, too.
        elsewhere: whether in a context of nobody's, too.
        longer: whether with a number too many, too.
        values: other values by which it may vote.
        proofs: whether it signs proofs that prove nothing, where votes are verified.
        masks: whether it signs numbers that do not open, and masks that nobody shares.
    """

    sessions: int = 1
    moves: tuple[tuple[int, int], ...] = ()
    kinds: bool = False
    elsewhere: bool = False
    longer: bool = False
    values: tuple[float, ...] = ()
    proofs: bool = False
    masks: bool = False


BEHAVING = Alphabet()


@dataclass
class Disk:
    """A file of which every state is an effect, like every frame that leaves."""

    data: bytes
    effects: list[tuple[int, bytes]]

    def read(self):
        return self.data

    def append(self, data, mark):  # a crash between the two makes no difference (`tests/net/test_journal.py`)
        self.replace(self.data + data + mark)

    def replace(self, data):
        self.data = data
        self.effects.append((-1, data))


def fork(thing):
    """A copy of all that moves in a peer; what never changes is shared."""
    copied = _COPIES.get(type(thing))
    return thing if copied is None else copied(thing)


def _copy_object(thing):
    twin = object.__new__(type(thing))
    twin.__dict__ = _copy_dict(thing.__dict__)
    return twin


def _copy_dict(thing):
    get = _COPIES.get
    return {key: each if (copied := get(type(each))) is None else copied(each) for key, each in thing.items()}


_COPIES = {
    dict: _copy_dict,
    list: lambda thing: [fork(each) for each in thing],
    set: set.copy,  # of numbers and names
    **dict.fromkeys((Peer, Gossip, Participant, Signers, Neighbour, Journal), _copy_object),
}


@dataclass(eq=False, repr=False)
class Stand:
    """Where one honest participant stands.

    Attributes:
        number: whose.
        place: of this among all.
        peer: the real one; None where its disk says that the session is over.
        disk: what is on it.
        aborted: how it ended, if in an abort.
        last_words: with which it tells the others of that.
        accused: whom its evidence shows to lie, to anybody; or why it shows nothing.
        heard: what followed from each statement.
    """

    number: int
    place: int
    peer: Peer | None
    disk: bytes
    aborted: Aborted | None
    last_words: Frames
    accused: tuple[str, ...] | str
    heard: dict[int, Outcome] = field(default_factory=dict)

    @property
    def participant(self) -> Participant:
        return self.peer.exchange._participant

    @property
    def answer(self) -> Answer | None:
        return None if self.peer is None or not isinstance(self.peer.ending, Answer) else self.peer.ending

    @property
    def waits_for(self) -> list[str]:
        return [] if self.aborted or self.answer else self.peer.waiting_for


@dataclass(frozen=True)
class Outcome:
    """What follows from something heard.

    Attributes:
        stand: where one stands then.
        told: which statements of one's own were told.
        sent: frames for the other honest one.
        cuts: at a crash in between: what is on disk, and what was told.
    """

    stand: Stand
    told: int
    sent: Frames
    cuts: tuple[tuple[bytes, int], ...]


State = tuple[int, int, int, bool]  # where both stand, what was told, whether the crash has happened
Paths = dict[State, State | None]


class Model:
    """All states of a search with one liar and one crash."""

    def __init__(self, alphabet: Alphabet, verify: bool = False) -> None:
        self.alphabet = alphabet
        self.charter = _charter(verify)
        self.setups = [make_setup(self.charter, name, VALUES[i], SimNotary(i)) for i, name in enumerate(NAMES)]
        self.agreement = self.charter.agreement(())
        self.statements: list[Statement] = []
        self.stands: list[Stand] = []
        self._numbers: dict[bytes, int] = {}
        self._places: dict[tuple, Stand] = {}
        self._heard: dict[tuple[int, int, bytes], Outcome] = {}
        self._again: dict[tuple[int, bytes], Outcome] = {}
        self._lies: dict[bytes, int] = {}
        self._reachable: dict[int, tuple[int, ...]] = {}
        self._settled: dict[tuple[int, int], tuple[int, int]] = {}
        self._asked: dict[int, Frames] = {}
        self._judged: dict[Evidence, tuple[str, ...] | str] = {}
        self._secrets = [_holding(self.setups[LIAR], session) for session in range(alphabet.sessions)]
        self._said_first = [Participant(self.agreement, each, SimNotary(LIAR)).own[0] for each in self._secrets]
        self._announced = sum(1 << self._number(each) for each in self._said_first)
        self.start = self._begin()

    # All states

    def explore(self) -> Paths:
        """Every state that can be reached, and from which one it was reached first; those with fewer steps first."""
        paths: Paths = {self.start: None}
        line = deque(paths)
        while line:
            state = line.popleft()
            for after in self._steps(state):
                if after not in paths:
                    paths[after] = state
                    line.append(after)
        return paths

    def _steps(self, state: State) -> Iterator[State]:
        *places, told, crashed = state
        for i in (0, 1):
            stand, other = self.stands[places[i]], self.stands[places[1 - i]]
            if stand.aborted:
                continue
            if not crashed:
                yield self._crash(stand, other, stand.disk, told)
            for number in self._deliverable(told):
                outcome = stand.heard.get(number)
                if outcome is None:
                    outcome = stand.heard[number] = self._deliver(stand, number)
                if outcome.stand is not stand:
                    yield _state(outcome.stand, other, told | outcome.told, crashed)
                    if not crashed:
                        for disk, said in outcome.cuts:
                            yield self._crash(stand, other, disk, told | said)

    def _deliverable(self, told: int) -> tuple[int, ...]:
        """All that anybody can be shown: what was told, and what the liar can say then."""
        known = self._reachable.get(told)
        if known is None:
            every = told | self._announced
            for number in _bits(told):
                every |= self._lies.get(self.statements[number].context, 0)
            known = self._reachable[told] = tuple(_bits(every))
        return known

    # One participant

    def _deliver(self, stand: Stand, number: int) -> Outcome:
        [frame] = self.setups[0].codec.encode([self.statements[number]])
        return self.hear(stand, LIAR, frame)

    def hear(self, stand: Stand, sender: int, frame: bytes) -> Outcome:
        """What follows from a frame."""
        key = stand.place, sender, frame
        if key not in self._heard:
            peer, effects = self._revive(stand)
            peer.hear(sender, frame, 0.0)
            self._heard[key] = self._outcome(stand.number, peer, effects, stand)
        return self._heard[key]

    def _revive(self, stand: Stand) -> tuple[Peer, list[tuple[int, bytes]]]:
        """A copy that can go on, and where its effects will be."""
        effects: list[tuple[int, bytes]] = []
        peer = fork(stand.peer)
        peer._send = lambda j, frame: effects.append((j, frame))
        peer._journal._file = Disk(stand.disk, effects)
        return peer, effects

    def _outcome(self, number: int, peer: Peer, effects: list[tuple[int, bytes]], before: Stand | None) -> Outcome:
        disk, said = peer._journal._file.data if before is None else before.disk, 0
        points = []
        for j, what in effects:
            if j < 0:
                disk = what
            else:
                said |= self._own(number, what)
            points.append((disk, said))
        sent = tuple(frame for j, frame in effects if j == 1 - number)
        stand = self._stand(number, peer, peer._journal._file.data, peer.ending, sent)
        whole = {(stand.disk, said), *([] if before is None else [(before.disk, 0)])}
        return Outcome(stand, said, sent, tuple(dict.fromkeys(point for point in points if point not in whole)))

    def _own(self, number: int, frame: bytes) -> int:
        """Which statements of one's own a frame tells."""
        if frame[:1] != b"G":
            return 0
        own = [each for each in self.setups[0].codec.decode_all(frame) if each.signer == number]
        return sum({1 << self._number(each) for each in own})

    def _number(self, statement: Statement) -> int:
        number = self._numbers.setdefault(statement.body, len(self._numbers))
        if number == len(self.statements):
            self.statements.append(statement)
        return number

    def _stand(
        self, number: int, peer: Peer | None, disk: bytes, ending: Answer | Aborted | None, sent: Frames
    ) -> Stand:
        """Where a participant stands now: one that is known, or a new one."""
        aborted = ending if isinstance(ending, Aborted) else None
        last_words = tuple(peer._last_words) if aborted and peer is not None else ()
        accused = self._accused(aborted.evidence) if aborted else ()
        own = None if peer is None else peer.exchange._participant
        held = () if own is None else frozenset(each.body for here in own._held.values() for each in here.values())
        if aborted:  # it signs nothing more, and tells what it has; whether it may be started again is on its disk
            key: tuple = (number, aborted.kind, str(aborted), last_words, _is_broken(disk) or disk)
            if own is not None:  # of what it has, the other can lack only what is of this step; its newest it is shown
                done = tuple(each.done for each in peer.neighbours.values())
                key += (own.step, own.held(own.step, LIAR) is not None, peer.exchange.newest_of(1 - number), done)
        else:
            key = (number, disk, held, *((each.met, each.greeted) for each in peer.neighbours.values()))
        stand = self._places.get(key)
        if stand is None:
            stand = self._places[key] = Stand(number, len(self.stands), peer, disk, aborted, last_words, accused)
            self.stands.append(stand)
            if peer is not None and not peer.ending and stand.participant.course is not None:
                self._lie(stand.participant)
        elif not aborted:
            assert _secrets_of(stand.participant) == _secrets_of(own), "by which way it came here makes no difference"
        return stand

    def _accused(self, evidence: Evidence | None) -> tuple[str, ...] | str:
        """Whom evidence shows to lie, to somebody who has the charter and nothing else."""
        if evidence is None:
            return ()
        if evidence not in self._judged:
            try:
                liars = judge(evidence, self.agreement, SimNotary(0).verifier).accused
                self._judged[evidence] = tuple(NAMES[i] for i in liars)
            except Malformed as error:
                self._judged[evidence] = str(error)
        return self._judged[evidence]

    # Starts

    def _begin(self) -> State:
        """Both have greeted everybody, and told their announcements."""
        effects: list[list[tuple[int, bytes]]] = [[], []]
        peers = [self._peer(i, Disk(b"", effects[i]), effects[i]) for i in (0, 1)]
        for i, peer in enumerate(peers):
            peer.hear(LIAR, self._welcome(), 0.0)
            peer.linked(1 - i, 0.0)
        while any(j == 1 - i for i in (0, 1) for j, _ in effects[i]):
            for i in (0, 1):
                now, effects[i][:] = list(effects[i]), []
                for j, frame in now:
                    if j == 1 - i and frame[:1] == b"T":  # the first statements are not heard yet
                        peers[j].hear(i, frame, 0.0)
        told, stands = 0, []
        for i, peer in enumerate(peers):
            assert peer.exchange._begun
            told |= 1 << self._number(peer.exchange.own(0))
            stands.append(self._stand(i, peer, peer._journal._file.data, None, ()))
        return _state(*stands, told, False)

    def _peer(self, i: int, disk: Disk, effects: list[tuple[int, bytes]]) -> Peer:
        entropy = Random(f"honest {i}").randbytes
        session = resume(self.setups[i], Journal(disk, NAMES[i]), entropy)
        return Peer(session, lambda j, frame: effects.append((j, frame)), 0.0)

    def _welcome(self) -> bytes:
        return encode_control(Welcome(self._secrets[0].instance, 0))

    def _crash(self, stand: Stand, other: Stand, disk: bytes, told: int) -> State:
        """Started again from its disk, and greeted by both others."""
        begun = self._start(stand.number, disk)
        after, told = begun.stand, told | begun.told
        if not after.aborted and other.peer is not None:
            [hello] = begun.sent
            greeted = self.hear(other, stand.number, hello)
            assert greeted.stand is other, "a greeting changes nothing"
            for frame in greeted.sent:
                outcome = self.hear(after, other.number, frame)
                after, told = outcome.stand, told | outcome.told
        return _state(after, other, told, True)

    def _start(self, number: int, disk: bytes) -> Outcome:
        """Where one stands that was started again, and greets the other honest one; the liar has greeted it."""
        key = number, disk
        if key not in self._again:
            effects: list[tuple[int, bytes]] = []
            try:
                peer = self._peer(number, Disk(disk, effects), effects)
            except Aborted as over:
                stand = self._stand(number, None, effects[-1][1] if effects else disk, over, ())
                self._again[key] = Outcome(stand, 0, (), ())
            else:
                peer.hear(LIAR, self._welcome(), 0.0)
                peer.linked(1 - number, 0.0)
                self._again[key] = self._outcome(number, peer, effects, None)
        return self._again[key]

    # What must hold

    def check(self, paths: Paths) -> dict[str, str]:
        """What does not hold in some state, and how that state comes about."""
        wrong: dict[str, str] = {}
        seen: set[int] = set()
        for state in paths:
            stands, told = [self.stands[place] for place in state[:2]], state[2]
            found = [fault for each in stands if each.place not in seen for fault in self._faults(each)]
            seen.update(state[:2])
            if ~told not in seen:  # it is no place
                seen.add(~told)
                found += self._said_twice(told)
            shown = {(each.answer.value, each.answer.transcript) for each in stands if each.answer}
            found += ["certificates of two answers, or of two ways to one"] if len(shown) > 1 else []
            wrong |= {fault: self.story(state, paths) for fault in found if fault not in wrong}
        return wrong

    def _faults(self, stand: Stand) -> list[str]:
        """What must not be, wherever one stands."""
        name = NAMES[stand.number]
        if stand.peer is not None and any(each.bad for each in stand.peer.neighbours.values()):
            return [f"{name} heard what is no statement"]
        if stand.answer:
            return self._refused(stand.answer, name)
        if stand.aborted is None:
            return []
        if stand.aborted.kind == "withdrawn":  # of the other honest one, which is its own word
            return []
        if not self._start(stand.number, stand.disk).stand.aborted:
            return [f"{name} has ended, and would be taken up again"]
        if stand.aborted.kind == "impossible":
            return []
        about = tuple(stand.aborted.about.split(" and "))
        if NAMES[LIAR] not in about or stand.accused != about:
            return [f"{name} ends with: {stand.aborted}; its evidence shows: {stand.accused}"]
        return []

    def _refused(self, answer: Answer, name: str) -> list[str]:
        """What is wrong with a certificate, for somebody who has the charter and nothing else."""
        try:
            search = verify_transcript(answer.transcript, self.agreement, SimNotary(0).verifier, NAMES)
        except Malformed as error:
            return [f"the certificate of {name} is refused: {error}"]
        return [] if (search.value(0),) == answer.value else [f"{name} has another answer than all signed"]

    def _said_twice(self, told: int) -> Iterator[str]:
        """Nobody honest signs two statements for a step, or two contributions in a context: no mask is used twice."""
        about: dict[tuple, bytes] = {}
        for each in (self.statements[number] for number in _bits(told)):
            keys: list[tuple] = [(each.signer, each.step)]
            keys += [(each.signer, each.context)] if each.kind == b"C" else []
            if any(about.setdefault(key, each.body) != each.body for key in keys):
                yield f"{NAMES[each.signer]} signed two statements for step {each.step}"

    def check_ends(self, paths: Paths) -> tuple[dict[str, str], Counter[tuple[str, ...]]]:
        """Where it does not end, once all is heard and asked for again and the liar is silent; and how it ends."""
        wrong: dict[str, str] = {}
        ends: Counter[tuple[str, ...]] = Counter()
        for state in paths:
            settled = [self.stands[place] for place in self.settle(*state[:2])]
            for stand, other in (settled, settled[::-1]):
                if not _is_end(stand, other, crashed=state[3]):
                    fault = f"{NAMES[stand.number]} waits for {stand.waits_for} in step {stand.participant.step}"
                elif _kind(stand) == "withdrawn" and (other.aborted is None or other.aborted.evidence):
                    fault = f"{NAMES[stand.number]} ends with: {stand.aborted}, though it could judge for itself"
                else:
                    continue
                if fault not in wrong:
                    wrong[fault] = self.story(state, paths)
            ends[tuple(sorted(map(_kind, settled)))] += 1
        return wrong, ends

    def complete(self, state: State) -> tuple[Stand, Stand]:
        """Where both stand in the end if the liar, too, tells everybody all it can say."""
        places, before = state[:2], None
        while places != before:
            before, stands = places, [self.stands[place] for place in self.settle(*places)]
            told = sum({1 << self._number(own) for each in stands for own in each.participant.own})
            for i in (0, 1):
                for number in self._deliverable(told):
                    stands[i] = self._deliver(stands[i], number).stand
            places = stands[0].place, stands[1].place
        return stands[0], stands[1]

    def story(self, state: State, paths: Paths) -> str:
        """How a state comes about: where both stood, line by line."""
        lines = []
        while state is not None:
            both = [self._describe(self.stands[place]) for place in state[:2]]
            lines.append("  |  ".join(both) + "  |  crashed" * state[3])
            state = paths[state]
        return "\n".join(reversed(lines))

    def _describe(self, stand: Stand) -> str:
        if stand.aborted or stand.answer:
            return f"{NAMES[stand.number]} {stand.aborted or stand.answer.value}"
        own = stand.participant
        held = [each for step in (own.step, own.step + 1) for each in own._held.get(step, {}).values()]
        names = [f"{NAMES[each.signer]}'s {each.kind.decode()}{each.step} ({self._number(each)})" for each in held]
        return f"{NAMES[stand.number]} in step {own.step} ({self._number(own.own[-1])}) holds {', '.join(names)}"

    # How it ends

    def settle(self, one: int, other: int) -> tuple[int, int]:
        """Where both stand in the end, if they hear all that they tell each other, and all they ask each other for."""
        path = []
        while (one, other) not in self._settled:
            path.append((one, other))
            after = self._talk(one, other)
            if after == (one, other):
                self._settled[after] = after
            one, other = after
        for each in path:
            self._settled[each] = self._settled[one, other]
        return self._settled[one, other]

    def _talk(self, *places: int) -> tuple[int, int]:
        """Each tells the other what it would now; answers are heard, too."""
        stands = [self.stands[place] for place in places]
        line = [(1 - i, frame) for i in (0, 1) for frame in self._asks(stands[i])]
        while line:
            to, frame = line.pop(0)
            if stands[to].peer is None:
                continue
            outcome = self.hear(stands[to], 1 - to, frame)
            stands[to] = outcome.stand
            line += [(1 - to, each) for each in outcome.sent]
        return stands[0].place, stands[1].place

    def _asks(self, stand: Stand) -> Frames:
        """What one sends when the clock has ticked twice: first it asks who should have told, then everybody."""
        if stand.aborted:
            return stand.last_words
        if stand.place not in self._asked:
            peer, effects = self._revive(stand)
            for k in (1, 2):
                peer.tick(2 * k * RETRY)
            assert peer._journal._file.data == stand.disk, "the clock alone is no reason to go on"
            self._asked[stand.place] = tuple(frame for j, frame in effects if j == 1 - stand.number)
        return self._asked[stand.place]

    # The liar

    def _lie(self, participant: Participant) -> None:
        """All that the liar may sign in a context, once somebody honest has reached it."""
        course, alphabet = participant.course, self.alphabet
        if course.context in self._lies:
            return
        first = participant.held(0, LIAR).body
        [own] = [each for each, said in zip(self._secrets, self._said_first, strict=True) if said.body == first]
        said = []
        for value in (VALUES[LIAR], *alphabet.values):
            with suppress(Invalid):  # it has committed itself to another value before, and cannot prove this one
                said.append(self._honest(participant, replace(own, keys=((self.charter.keys.key(value),),))))
        honest = said[0]
        bodies = [*(each.body for each in said), *self._false(honest, course.question)]
        if alphabet.kinds:
            head = honest.body[1 : 5 + 32]
            bodies.append(b"C" + head + bytes(16) if honest.kind == b"F" else b"F" + head)
        if alphabet.elsewhere:
            bodies.append(make_body(honest.kind, LIAR, honest.step, b"?" * 32 + bytes(len(honest.content))))
        signed = [_sign(self.charter.digest, body) for body in bodies]
        self._lies[course.context] = sum({1 << self._number(each) for each in signed})

    def _honest(self, participant: Participant, own: Holding) -> Statement:
        """What the liar would sign if it were honest now, with this value, whatever it said before."""
        twin = Participant(self.agreement, own, SimNotary(LIAR))
        for step in range(participant.step):
            twin.advance(participant.statements(step))
        assert twin.course.context == participant.course.context
        return twin.own[-1]

    def _false(self, honest: Statement, question: Question | None) -> list[bytes]:
        """The same statement with something changed in what it says."""
        head, content, alphabet = honest.body[: 5 + 32], honest.content, self.alphabet
        if honest.kind == b"D":
            half = len(content) // 2  # a half for each of the honest ones
            ends = [(content[:start], content[start : start + 32], content[start + 32 :]) for start in (0, half)]
            return [head + before + add([point, H]) + after for before, point, after in ends] if alphabet.masks else []
        if honest.kind != b"C":
            return []
        bodies = [honest.body + bytes(8)] if alphabet.longer else []
        if not self.agreement.verify:
            return bodies + [head + _pack(map(sum, zip(honest.numbers, move, strict=True))) for move in alphabet.moves]
        points, proofs, _ = vote_sizes(question, 1)
        bodies += [head + _more(content, points)] if alphabet.proofs else []
        return bodies + ([head + _more(content, points + proofs)] if alphabet.masks else [])


# Parts


def _charter(verify: bool) -> Charter:
    """Four keys, one threshold a probe, three values: two probes whatever the totals are, and no sum."""
    graph = graphs.complete(3)
    return Charter(
        session="states",
        method="search",
        participants=tuple(
            ParticipantEntry(name=name, fingerprint=fingerprint(sim_certificate(i)), address=f"sim:{i + 1}", weight=1)
            for i, name in enumerate(NAMES)
        ),
        edges=tuple((NAMES[i], NAMES[j]) for i, j in zip(graph.source, graph.target, strict=True) if i < j),
        bounds=(1.0, 4.0),
        resolution=1.0,
        arity=1,
        spacing="key",
        verify=verify,
    )


def _holding(setup: Setup, session: int) -> Holding:
    return setup.holding(setup.draw(Random(f"liar {session}").randbytes))


def _sign(digest: bytes, body: bytes) -> Statement:
    return Statement(body, SimNotary(LIAR).sign(signed_bytes(digest, body)))


def _pack(numbers: Iterable[int]) -> bytes:
    whole = [each % MODULUS for each in numbers]
    return struct.pack(f"<{len(whole)}Q", *whole)


def _more(content: bytes, place: int) -> bytes:
    """A vote with one scalar larger by one."""
    start, end = 32 * place, 32 * (place + 1)
    larger = (int.from_bytes(content[start:end], "little") + 1) % ORDER
    return content[:start] + larger.to_bytes(32, "little") + content[end:]


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _state(stand: Stand, other: Stand, told: int, crashed: bool) -> State:
    one, two = (stand, other) if stand.number == 0 else (other, stand)
    return one.place, two.place, told, crashed


def _is_broken(disk: bytes) -> bool:
    records = Journal(Disk(disk, []), "").records
    return any(isinstance(decode_record(each, ""), Broken) for each in records)


def _is_end(stand: Stand, other: Stand, crashed: bool) -> bool:
    """Whether one has ended, or waits for the liar and says so."""
    if stand.aborted or stand.answer or stand.waits_for == [NAMES[LIAR]]:
        return True
    # The other has ended, and crashed before it could say so: it is over, and not even a greeting comes from it.
    return crashed and other.aborted is not None and not other.last_words


def _secrets_of(participant: Participant) -> tuple:
    """All by which a participant goes on, besides what it holds."""
    own = tuple(each.body for each in participant.own)
    return participant.step, own, participant.certified, participant._pairs, sorted(participant._signers.known)


def _kind(stand: Stand) -> str:
    if stand.aborted:
        return stand.aborted.kind
    return "answer" if stand.answer else "waits"

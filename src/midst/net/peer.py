"""One participant of a session, without I/O: the same code on a wire and in the fault simulator.

Rules:
- Time is an argument, sending a callback, the disk a `Journal`. Nothing here waits.
- Before the first word about the iteration two neighbours greet each other: each says HELLO and is answered by WELCOME,
  or by REFUSED with words for a person. So both know that they have the same charter.
- What a step depends on is in the journal before any frame that depends on it leaves. A journal that cannot be written
  ends the run before anything is sent.
- A neighbour that has forgotten its journal would draw a second z(0) for the same session. It is recognised by its
  instance number, and refused. Nothing drawn for a neighbour is sent to it before it has that number on disk. A search
  draws nothing for a neighbour: its announcements carry that number, and are on disk before the first answer leaves.
- Whoever waits for a frame asks for it (WANT). Answers are never answered, so that duplicates cannot multiply.
- A neighbour's WELCOME says what it has last heard from us, and shows it. Nothing is signed before every neighbour has
  said so; who has signed more than its journal knows of ran twice or lost its disk, and never signs again here.
- A run ends with an `Answer`, the same for all, or with an `Aborted` that says because of whom, with evidence where
  there is any. Nobody is believed about others: what shows that somebody lied is shown to the neighbours, who judge it
  themselves and show theirs. Who ends without an answer withdraws (`withdrawal.py`), stays as long as neighbours may
  need what it has told, and signs nothing more; but everybody's final signatures are an answer even then.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from midst.errors import Aborted
from midst.net.answer import Answer
from midst.net.charter import differing, few
from midst.net.gossip import pack_bits
from midst.net.records import Broken, Ended, Inputs, Met, encode_record
from midst.net.session import Session, name_together, settle
from midst.net.wire import (
    PROTOCOL,
    Away,
    BadFrame,
    Done,
    Hello,
    NotYet,
    Refused,
    Statements,
    StepFrame,
    VectorFrame,
    Visit,
    Want,
    Welcome,
    encode_control,
    printable,
)
from midst.net.withdrawal import WORDS, SignedWithdrawal, Withdrawal, read_withdrawal, sign_withdrawal
from midst.protocol.course import Evidence, Withheld
from midst.protocol.participant import Distrust
from midst.protocol.search import Impossible
from midst.protocol.statements import INSTANCE_BYTES, Malformed, Statement

RETRY = 0.5  # seconds before a HELLO, a WANT or a DONE is said again
_BAD_FRAMES = 8  # of one neighbour, after which it is not a matter of chance
_PRESENT = 4 * RETRY  # seconds for which somebody who was heard is taken to be there
Send = Callable[[int, bytes], None]
Watch = Callable[["Peer"], None]
Later = Callable[[Callable[[], None]], object]
_TOLD = StepFrame, Statements, VectorFrame  # what a step is made from; first the one that comes a thousand times
_ENDS = Distrust, Impossible, Withheld  # what others can make of a run
_WAITING = {"waited", "withdrawn"}  # kinds of end after which the others' last signatures are still welcome
_FINAL = {
    "equivocation",
    "diverged",
    "broken protocol",
    "journal lost",
    "impossible",
    "false masks",
    "tampered",
    "withheld",
}


@dataclass
class Neighbour:
    """What a participant knows of a neighbour.

    Attributes:
        name: its name.
        instance: its number, by which a lost journal is noticed; None before it is met.
        met: we have its instance number on disk, and listen to it.
        greeted: it has ours, and may be told what was drawn for it.
        heard: when it last gave a sign of life.
        asked: when we last asked it for something.
        waits: when it last said that it waits itself, and for whom.
        done: whether it has ended: it has the answer, or has withdrawn.
        answered: whether it has the answer.
        bad: how many frames it sent that cannot be.
        trouble: what the transport last said about it.
        visited: whether only its operator looks in, to see whether it could take part.
    """

    name: str
    instance: bytes | None
    met: bool = False
    greeted: bool = False
    heard: float = 0.0
    asked: float = -1e9
    waits: tuple[float, tuple[str, ...]] = (-1e9, ())
    done: bool = False
    answered: bool = False
    bad: int = 0
    trouble: str = ""
    visited: bool = False


@dataclass(frozen=True)
class Standing:
    """What a participant does now, for people.

    Attributes:
        doing: in a word or two.
        waiting: for whom: those whose frames are missing, and what is known of each.
        since: seconds without progress.
        left: seconds until it gives up, or leaves.
    """

    doing: str
    waiting: dict[str, str]
    since: float
    left: float

    @property
    def names(self) -> str:
        """For whom it waits, in words."""
        return few(f"{name} ({remark})" if remark else name for name, remark in self.waiting.items())


class Peer:
    """One participant of a session."""

    def __init__(
        self, session: Session, send: Send, now: float, watch: Watch | None = None, later: Later | None = None
    ) -> None:
        """Go on from where a session stands.

        Args:
            session: who this is, and what it goes on from.
            send: sends a frame to a neighbour, or loses it.
            now: the time, in seconds, on a clock that never goes back.
            watch: called after every step.
            later: does something when all frames at hand have been heard; then what they tell is told on together.
        """
        self.setup, self.opening, self.exchange = session.setup, session.opening, session.exchange
        self.ending: Answer | Aborted | None = self.exchange.answer
        self._journal = session.journal
        self._send = send
        self._watch = watch
        self._later, self._telling = later, False
        self._now = self._began = self._progress = self._nudged = self._ended = now
        self._lingered = self._all_greeted = False
        self._withdrawals: dict[int, Withdrawal] = {}
        self._last_words: list[bytes] = []  # frames that say, and show, why this participant ended without an answer
        names, instances = self.setup.charter.names, session.instances
        self.neighbours = {j: Neighbour(names[j], instances.get(j), heard=now) for j in self.setup.neighbours}
        if watch is not None:
            watch(self)

    # What happens

    def linked(self, j: int, now: float) -> None:
        """A link to a neighbour is up; whatever trouble there was is over."""
        self.neighbours[j].trouble, self.neighbours[j].visited = "", False
        self._greet(j, now)

    def hear(self, j: int, frame: bytes, now: float) -> None:
        """A frame from a neighbour."""
        self._now = now
        if self.ending is not None and self.over:
            return
        try:
            self._take(j, frame, now)
        except (BadFrame, Malformed) as error:
            neighbour = self.neighbours[j]
            neighbour.bad += 1
            if neighbour.bad >= _BAD_FRAMES:
                self._abort("broken protocol", (j,), f"{neighbour.name} keeps sending {error}")
        except _ENDS as error:
            self._end_by(error)

    def tick(self, now: float) -> None:
        """Look at the clock; to be called every `RETRY` seconds."""
        self._now = now
        if self.over:
            return
        for j, neighbour in self.neighbours.items():
            if now - neighbour.asked < RETRY:
                continue
            if not neighbour.greeted:
                self._greet(j, now)
            elif self.ending is not None and not neighbour.done:
                self._say_how_it_ended(j, now)
        if self.ending is None and now - max(self._progress, self._nudged) >= RETRY:
            self._ask(now)
        self._check_deadlines(now)
        try:
            self._advance(now)
        except _ENDS as error:
            self._end_by(error)

    def trouble(self, j: int | None, text: str) -> None:
        """The transport cannot reach a neighbour; kept for what is said when the wait is over."""
        if j is not None:
            self.neighbours[j].trouble = text

    def stop(self) -> None:
        """Withdraw, because the operator says so."""
        self._abort("stopped", (self.setup.number,), f"{self.setup.name} was stopped by its operator")

    def pause(self) -> None:
        """Leave to come back: neighbours are told, and wait as long as the charter says."""
        if self.ending is None:
            text = f"{self.setup.name} was stopped in round {self.exchange.round}; the same command goes on from there"
            self.ending, self._lingered = Aborted("paused", self.setup.name, text), True
            for j in self._greeted:
                self._send(j, encode_control(Away()))

    @property
    def over(self) -> bool:
        """Whether nobody needs this participant any more."""
        return self.ending is not None and (self._lingered or (self._all_done and not self._goes_on))

    @property
    def _greeted(self) -> list[int]:
        """The neighbours that may be told something."""
        return [j for j, neighbour in self.neighbours.items() if neighbour.greeted]

    @property
    def _all_done(self) -> bool:
        return all(each.done for each in self.neighbours.values())

    @property
    def waiting_for(self) -> list[str]:
        """The names of the neighbours it waits for."""
        if self.ending is not None:
            return [each.name for each in self.neighbours.values() if not each.done]
        strangers = [each.name for each in self.neighbours.values() if not each.greeted]
        return strangers or [self.setup.charter.names[j] for j in self.exchange.missing()]

    def standing(self, now: float) -> Standing:
        """What it does now, and for whom it waits."""
        late, since, limit = self._patience(now)
        deadlines, search = self.setup.charter.deadlines, self.exchange.search
        left = min(limit - since, deadlines.total - (now - self._began))
        if self.ending is not None:
            doing = "has the answer" if isinstance(self.ending, Answer) else "has ended"
            since = now - self._ended
            left = deadlines.linger - since
        elif not self._all_greeted:
            doing = "meets its neighbours"
        elif self.exchange.vectors is not None:
            doing = self.exchange.vectors.doing
        elif search is not None:
            doing = f"probe {search.steps + 1}" if search.question is not None else "signatures"
        else:
            doing = "announcements" if self.exchange.awaits_everybody else f"round {self.exchange.round:,}"
        known = {each.name: each for each in self.neighbours.values()}
        remarks = {name: self._remark(known[name], now) if name in known else "" for name in late}
        return Standing(doing, remarks, since, max(left, 0.0))

    @property
    def awaited(self) -> list[str]:
        """Those for whom it waits; in place of a neighbour that waits itself, those whom it has named."""
        found: dict[str, None] = {}
        told = {each.name: each.waits[1] for each in self.neighbours.values() if self._now - each.waits[0] <= _PRESENT}
        for name in self.waiting_for:
            others = [other for other in told.get(name, ()) if other != self.setup.name]
            found |= dict.fromkeys(others or [name])
        return list(found)

    # Greeting

    def _greet(self, j: int, now: float) -> None:
        charter, ends = self.setup.charter, (self.setup.name, self.neighbours[j].name)
        known = charter.digest, charter.field_digests
        self._say(j, Hello(PROTOCOL, *ends, *known, self.opening.instance, self.exchange.round), now)

    def _say(self, j: int, message: Any, now: float) -> None:
        self.neighbours[j].asked = now
        self._send(j, encode_control(message))

    def _listen(self, j: int, said: Any, now: float) -> None:
        neighbour = self.neighbours[j]
        match said:
            case Hello():
                refusal = self._refuse(j, said)
                if refusal is not None:
                    self._send(j, encode_control(refusal))
                    if refusal.kind == "journal lost":
                        self._abort("journal lost", (j,), refusal.text)
                    return
                if self._meet(j, said.instance):
                    self.exchange.forget(j)
                    self._welcome(j)
                    if not neighbour.greeted and now - neighbour.asked > RETRY / 10:
                        self._greet(j, now)
            case Welcome():
                if self._lost_journal(j, said.instance):
                    self._abort("journal lost", (j,), _lost(neighbour.name))
                elif self._meet(j, said.instance) and not self._knows_more(said):
                    neighbour.greeted = True
                    if not self._all_greeted and all(each.greeted for each in self.neighbours.values()):
                        self._all_greeted = True
                        self._progress = now
                        self.exchange.begin()
                    self._resend(j, Want(said.wants))
                    self._post()
                    self._advance(now)
            case Refused(kind, text):
                text = f"{neighbour.name} refuses ({printable(kind, 32)}): {printable(text)}"
                self._abort("refused", (j,), text)
            case Want() if neighbour.greeted:
                if not self._resend(j, said):
                    self._send(j, encode_control(NotYet(self.exchange.round, tuple(self.awaited[:8]))))
            case Done(heard) if neighbour.met:
                neighbour.done = neighbour.answered = True
                if isinstance(self.ending, Answer) and not heard:
                    self._send(j, encode_control(Done(heard=True)))
                self._forget_when_over()
            case NotYet(waiting=names):
                neighbour.waits = now, tuple(name for name in names if name in self.setup.charter.names)
            case Visit():
                neighbour.visited = True
            case Away():
                neighbour.trouble = f"{neighbour.name} was stopped by its operator, and said that it would be back"
            case _:
                pass

    def _refuse(self, j: int, hello: Hello) -> Refused | None:
        """Why this HELLO is not accepted, in words for whoever sent it; None if it is."""
        charter, own, name = self.setup.charter, self.setup.name, self.neighbours[j].name
        if hello.version != PROTOCOL:
            return Refused("version", f"{own} speaks version {PROTOCOL} of the protocol, you speak {hello.version}")
        if hello.sender != name or hello.receiver != own:
            return Refused("wrong name", f"this is {own}, and the certificate you showed is {name}'s")
        if hello.digest != charter.digest:
            keys = printable(", ".join(differing(charter.field_digests, hello.fields)), 300) or "a key unknown here"
            return Refused("charter", f"your charter differs from {own}'s in: {keys}; compare with midst charter show")
        if len(hello.instance) != INSTANCE_BYTES or self._lost_journal(j, hello.instance):
            return Refused("journal lost", _lost(name))
        return None

    def _lost_journal(self, j: int, instance: bytes) -> bool:
        known = self.neighbours[j].instance
        return known is not None and known != instance

    def _meet(self, j: int, instance: bytes) -> bool:
        """Remember a neighbour's instance number, on disk where z(0) is drawn for it; whether that succeeded."""
        neighbour = self.neighbours[j]
        drawn = self.setup.iteration is not None
        if drawn and neighbour.instance is None and not self._keep(Met(j, instance)):
            return False
        neighbour.instance = instance
        neighbour.met = True
        return True

    def _welcome(self, j: int) -> None:
        """Answer a neighbour that greets, with the newest that we have heard from it: said, and shown as signed."""
        newest = self.exchange.newest_of(j)
        told = (-1, b"") if newest is None else (newest.step, _short(newest))
        self._send(j, encode_control(Welcome(self.opening.instance, self.exchange.round, *told)))
        if newest is not None:
            for frame in self.setup.codec.encode([newest]):
                self._send(j, frame)

    def _knows_more(self, said: Welcome) -> bool:
        """Whether a neighbour says that it has heard something from us that we know nothing of.

        Then it is not greeted, and nothing is signed. Whether it is true is seen by what it shows: our own signature
        on it ends the session; who cannot show that is waited for by name.
        """
        if said.step < 0:
            return False
        own = self.exchange.own(said.step)
        return own is None or _short(own) != said.digest

    def _resend(self, j: int, want: Want) -> bool:
        """Send what a neighbour asks for; whether there was any."""
        frames = self.exchange.frames(j, want)
        for frame in frames:
            self._send(j, frame)
        return bool(frames)

    def _post(self) -> None:
        """Send what the exchange has for the neighbours; who has not greeted yet will be told when it has."""
        for j, frame in self.exchange.outbox():
            if self.neighbours[j].greeted:
                self._send(j, frame)

    def _tell_on(self) -> None:
        """Post when all frames at hand have been heard, once for all of them."""
        if self._later is None:
            self._post()
        elif not self._telling:
            self._telling = True
            self._later(self._told_on)

    def _told_on(self) -> None:
        self._telling = False
        self._post()

    def _ask(self, now: float) -> None:
        """Ask for what is missing."""
        self._nudged = now
        wants = {j: self.exchange.ask(j) for j in self._greeted}
        for j, want in wants.items():
            if want is not None:
                self._say(j, want, now)
        if wants:
            self.exchange.asked()
        self._post()

    # Going on

    def _take(self, j: int, frame: bytes, now: float) -> None:
        """What a frame says, and what follows from it."""
        said = self.setup.codec.decode(frame)
        neighbour = self.neighbours[j]
        neighbour.heard = now
        if isinstance(said, _TOLD):
            # Before it is met nothing of it is taken; it will be asked for, or said again.
            if neighbour.met and (self.ending is None or self._listens) and self.exchange.take(j, said):
                self._progress = now
                self._advance(now)
                if self.exchange.awaits_everybody:  # else nobody is told on
                    self._tell_on()
        elif not isinstance(said, SignedWithdrawal):
            self._listen(j, said, now)
        elif neighbour.met:
            self._hear_out(j, said, now)

    def _end_by(self, error: Distrust | Impossible | Withheld) -> None:
        """End the run, which others have made impossible."""
        if isinstance(error, Distrust):
            text = f"{name_together(self.setup, error.about)} {error}"
            self._abort(error.kind, error.about, text, error.evidence)
        elif isinstance(error, Impossible):
            text = f"the totals cannot be ({error}): somebody's contribution is wrong, and nothing says whose"
            # Whoever was told another contribution than we were can name its signer.
            self._abort("impossible", (), f"{text}; start a new session", shown=self.exchange.heard())
        else:
            self._abort("withheld", (), f"nothing was asked: {error}")

    @property
    def _listens(self) -> bool:
        """Whether what others sign still matters: for an answer, or as evidence where there is none yet."""
        return self._goes_on or (isinstance(self.ending, Aborted) and self.ending.evidence is None)

    @property
    def _goes_on(self) -> bool:
        """Whether what is heard may still lead to an answer; after a withdrawal, to one that is signed already."""
        if isinstance(self.ending, Aborted):
            search = self.exchange.search
            return self.ending.kind in _WAITING and search is not None and search.question is None
        return self.ending is None

    def _advance(self, now: float) -> None:
        """As many steps as the frames at hand allow; none before all neighbours have greeted."""
        if (self.ending is not None and not self._goes_on) or not self._all_greeted:
            return
        while (inputs := self.exchange.inputs(now)) is not None:
            if not self._keep(Inputs(self.exchange.pack(inputs))):
                return
            self.exchange.step(inputs)
            if not self._write(lambda: settle(self.exchange, self.opening, self._journal)):
                return
            self._progress = now
            if self._watch is not None:
                self._watch(self)
            self._post()
            if self.exchange.answer is not None:
                self._finish(self.exchange.answer, now)
                return
            if self.exchange.round > self.setup.charter.rounds and self.exchange.vectors is None:
                text = f"no proof within the charter's {self.setup.charter.rounds:,} rounds"
                self._abort("no proof", (), text)
                return
        if self._withdrawals:
            self._give_up_on_those_who_left()

    def _keep(self, record: Met | Inputs | Broken) -> bool:
        """Put a record on disk; where that fails, nothing that depends on it happens."""
        return self._write(lambda: self._journal.append(encode_record(record)))

    def _write(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except OSError as error:
            text = f"{self.setup.name} cannot write its journal ({error.strerror}); free some space, run it again"
            self._abort("disk", (self.setup.number,), text)
            return False
        return True

    def _finish(self, answer: Answer, now: float) -> None:
        self.ending, self._ended, self._last_words = answer, now, []
        for j, neighbour in self.neighbours.items():
            self._say(j, Done(heard=neighbour.done), now)
        self._forget_when_over()

    def _forget_when_over(self) -> None:
        """Once nobody needs a frame of ours, the session's secrets go; who has withdrawn may come back for one."""
        if isinstance(self.ending, Answer) and all(each.answered for each in self.neighbours.values()):
            record = Ended(self.setup.session, self.setup.name, self.opening.instance, self.ending)
            with contextlib.suppress(OSError):  # the answer is worth more than tidiness
                self._journal.forget(encode_record(record))

    # Giving up

    def _check_deadlines(self, now: float) -> None:
        deadlines, vectors = self.setup.charter.deadlines, self.exchange.vectors
        if self.ending is None and vectors is not None and vectors.idle:
            self._progress = self._began = now  # its own side is to say what comes next; the others wait for that
            return
        if self.ending is not None:
            present = any(not each.done and now - each.heard <= _PRESENT for each in self.neighbours.values())
            needed = isinstance(self.ending, Answer) or present
            longest = deadlines.linger if needed else _PRESENT if self._goes_on else 0.0
            self._lingered = self._lingered or now - self._ended > longest
            return
        late, since, limit = self._patience(now)
        if now - self._began > deadlines.total:
            self._wait_is_over(late, now - self._began)
        elif since > limit:
            self._wait_is_over(late, since)

    def _patience(self, now: float) -> tuple[list[str], float, float]:
        """For whom it waits, since how many seconds, and how many it will."""
        deadlines, vectors = self.setup.charter.deadlines, self.exchange.vectors
        beginning = self.exchange.round == 0 if vectors is None else vectors.gathering
        late, everybody = self.waiting_for, self.exchange.awaits_everybody
        if beginning and not all(each.greeted for each in self.neighbours.values()):
            return late, now - self._began, deadlines.start
        limit = deadlines.start if beginning and everybody else deadlines.wait
        # A neighbour that waits for others itself knows better for whom; it will have said so by then.
        known = {each.name for each in self.neighbours.values() if now - each.waits[0] <= _PRESENT}
        grace = _PRESENT if not everybody and known.issuperset(late) else 0.0
        return late, now - self._progress, limit + grace

    def _wait_is_over(self, late: list[str], seconds: float) -> None:
        charter, names = self.setup.charter, ", ".join(late[:8]) or "nobody in particular"
        remarks = {each.name: self._remark(each, self._now) for each in self.neighbours.values()}
        remark = next((f" ({remarks[name]})" for name in late if remarks.get(name)), "")
        text = f"{self.setup.name} waited {seconds:.0f} s for {names} in round {self.exchange.round}{remark}"
        search = self.exchange.search
        if search is not None and search.question is None:
            answers = ", ".join(f"{search.value(goal):.17g}" for goal in range(len(search.answers)))
            text += f"; the answer is known, {answers}, but not certified by all"
        self._abort("waited", tuple(map(charter.number, late[:1])), text)

    def _remark(self, neighbour: Neighbour, now: float) -> str:
        """What is known of why a neighbour is late."""
        names = ", ".join(name for name in neighbour.waits[1] if name != self.setup.name)
        fresh = names and now - neighbour.waits[0] <= _PRESENT
        return neighbour.trouble or (f"which says that it waits for {names}" if fresh else "")

    def _abort(
        self,
        kind: str,
        about: tuple[int, ...],
        text: str,
        evidence: Evidence | None = None,
        shown: Sequence[Statement] = (),
    ) -> None:
        """End without an answer: show what there is to show, and withdraw; or add evidence to an end that had none."""
        if self.ending is not None and (evidence is None or not self._listens):
            return
        self._post()  # what was heard before
        setup, codec = self.setup, self.setup.codec
        named = name_together(setup, about)
        self.ending, self._ended = Aborted(kind, named, text, evidence), self._now
        if kind in _FINAL:
            self._keep(Broken(kind, named, text, evidence))
        last = self.exchange.round if self._all_greeted else self.exchange.round - 1
        said = Withdrawal(setup.number, last, kind, about, printable(text, WORDS))
        statements = [*shown, *(Statement(*each) for each in ([] if evidence is None else evidence.statements))]
        leaving = sign_withdrawal(said, setup.session, setup.notary)
        self._last_words = [*codec.encode(statements), codec.encode_withdrawal(leaving)]
        for j in self._greeted:
            self._say_how_it_ended(j, self._now)

    def _say_how_it_ended(self, j: int, now: float) -> None:
        self.neighbours[j].asked = now
        for frame in self._last_words or [encode_control(Done(heard=False))]:
            self._send(j, frame)

    def _hear_out(self, j: int, signed: SignedWithdrawal, now: float) -> None:
        """Somebody has left: told on, and believed about itself."""
        setup, count = self.setup, len(self.setup.charter.names)
        known = self._withdrawals.keys() | {setup.number}  # one's own is of an earlier run
        said = read_withdrawal(signed, setup.session, count, setup.notary, known)
        if said is None:
            return
        self._withdrawals[said.signer] = said
        for k in self._greeted:
            if k != j:
                self._send(k, setup.codec.encode_withdrawal(signed))
        if said.signer in self.neighbours:
            self.neighbours[said.signer].done = True
            if isinstance(self.ending, Answer):  # it may yet have it
                self._resend(said.signer, Want(self.exchange.round, pack_bits(range(count), count)))
            if self.ending is not None:
                self._say_how_it_ended(said.signer, now)
        self._give_up_on_those_who_left()

    def _give_up_on_those_who_left(self) -> None:
        """End where what is awaited will never be said."""
        names = self.setup.charter.names
        for left in self._withdrawals.values():
            lost = self.exchange.round > left.last or self.exchange.vectors is not None
            if lost and self.exchange.answer is None:
                text = f"{names[left.signer]} withdrew ({printable(left.kind, 32)}), and says: {printable(left.text)}"
                self._abort("withdrawn", (left.signer,), text)


def _short(statement: Statement) -> bytes:
    """A hash by which two participants find out whether they mean the same statement."""
    return hashlib.sha256(statement.body).digest()[:16]


def _lost(name: str) -> str:
    return f"{name} has lost its journal of this session and drew anew; start a new session"

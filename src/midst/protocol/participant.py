"""One participant of a masked search, without I/O: signed statements in, signed statements out.

Step 0 is everybody's announcement: a session key, signed. Each step after it answers one question of the search behind
masks; in the last one everybody signs the hash of all that was agreed, and who holds all signatures has a certificate
that anybody with the charter can check.

Rules:
- Contributions are told on to everybody and each adds up for itself: no tree, no root, nobody who could withhold a
  total from some. What is held only grows, so loss, reordering and restarts are nothing special.
- Every statement carries its context, a hash of all that was agreed and of what is asked (`statements.py`). Only equal
  contexts are added up. What follows from the same inputs is the same, so a participant that is started again signs
  nothing new.
- Nothing that is said, left unsaid or refused depends on one's own values.
- Two different statements of one signer for one step are evidence against it: it lied, ran twice, or lost its disk.
  Contents are compared, not signatures.
- Where noise was agreed on, everybody adds its share before the masks. It follows from the secret, the context and
  one's own answers, and so is never drawn a second time. Totals then say nothing for certain, and contradict nobody.
- Where votes are verified and a total does not open, one more step follows, in which everybody commits to its masks;
  that names a liar, or a pair that holds one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from midst.protocol.commitments import Invalid
from midst.protocol.course import (
    PAIR_FAULT,
    Course,
    Evidence,
    Shown,
    Transcript,
    announcement_fault,
    two_statements,
)
from midst.protocol.keys import MODULUS, Words
from midst.protocol.masks import add_up, derive_seed, hide, join, public_key, split
from midst.protocol.noisy_search import AnySearch, NoisyRules
from midst.protocol.search import OwnValues, Question, contribution
from midst.protocol.statements import (
    Agreement,
    Notary,
    Signers,
    Statement,
    announce,
    check_form,
    make_body,
    pair_keys,
    seal,
)
from midst.protocol.votes import (
    Openings,
    OwnVote,
    Vote,
    begin_opened,
    cancel,
    commit_to_masks,
    make_vote,
    mask,
    number_weights,
    open_totals,
    own_masks,
)


class Distrust(Exception):  # noqa: N818
    """A participant did what nobody who keeps to the protocol does.

    Attributes:
        kind: "equivocation", "diverged", "broken protocol", "false masks" or "journal lost".
        about: the participant's number; or those of two, of whom at least one did.
        evidence: by which anybody can see that it did; None where there is only our word.
    """

    def __init__(self, kind: str, about: tuple[int, ...], text: str, evidence: Evidence | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.about = about
        self.evidence = evidence


@dataclass(frozen=True, eq=False, repr=False)
class Holding:
    """What one participant brings, and draws for one session.

    Attributes:
        number: its own.
        keys: of its values, one array a coordinate.
        secret: of the session key, 32 random bytes.
        instance: 16 random bytes by which a lost disk is noticed.
    """

    number: int
    keys: tuple[Words, ...]
    secret: bytes
    instance: bytes


class Participant:
    """One participant's part in a search.

    Attributes:
        step: the step whose statements are awaited.
        course: how the search went so far; None before all announcements are there.
        own: its own statement of every step.
        certified: whether everybody's final signature is there.
    """

    def __init__(self, agreement: Agreement, holding: Holding, notary: Notary) -> None:
        """Ready to announce itself: `own[0]` is there."""
        self._agreement, self._holding = agreement, holding
        self._held: dict[int, dict[int, Statement]] = {}
        self._signers = Signers(agreement.digest, holding.number, notary)
        self._pairs: dict[int, bytes] = {}
        self._shown: list[Shown] = []
        self._values: OwnValues | None = None
        self._opened: Openings = {}
        self._plain: list[int] = []
        self._answered: list[tuple[list[int], list[int]]] = []
        self.step = 0
        self.course: Course | None = None
        self.own: list[Statement] = []
        self.certified = False
        self._state(
            b"A", announce(holding.instance, public_key(holding.secret), len(holding.keys[0]), notary.certificate)
        )

    @property
    def search(self) -> AnySearch | None:
        """Where the search stands; None before all announcements are there."""
        return None if self.course is None else self.course.search

    @property
    def totals(self) -> tuple[tuple[int, ...], ...]:
        """Of every question so far."""
        return () if self.course is None else self.course.totals

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
        if not own and (step > self.step + 1 or (step > 0 and signer not in self._signers.known)):
            return False  # it has overtaken others; who tells it on need not know that, and is not to blame
        self._signers.check(statement)
        if own:
            text = "has signed what its journal knows nothing of: it ran twice, or its disk was put back"
            raise Distrust("journal lost", (signer,), text)
        if known is not None:
            raise Distrust("equivocation", (signer,), two_statements(step), self._show([known, statement]))
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
        """Whose statement of this step, in this context, is not here; never one's own."""
        if self.certified:
            return []
        here, own = self._held.get(self.step, {}), self._holding.number
        return [k for k in range(len(self._agreement.weights)) if k != own and not self._fits(here.get(k))]

    @property
    def apart(self) -> bool:
        """Whether somebody has contributed to this step in another context: it was told other things before."""
        here = self._held.get(self.step, {}).values()
        return self.course is not None and any(each.context != self.course.context for each in here)

    # Going on

    def ready(self) -> tuple[Statement, ...] | None:
        """What the next step is made from, once everybody's statement is here."""
        others = len(self._agreement.weights) - 1
        if self.certified or len(self._held.get(self.step, ())) < others or self.missing():
            return None
        return tuple(self.statements(self.step))

    def advance(self, statements: Sequence[Statement]) -> None:
        """The next step, from everybody's statements of this one.

        Raises:
            Distrust: somebody made a statement that nobody honest makes.
            Impossible: no values can have these totals.
        """
        for each in statements:
            if each.signer != self._holding.number:
                self._held.setdefault(self.step, {})[each.signer] = each
                if self.step == 0 and each.signer not in self._signers.known:  # played again from a journal
                    self._signers.check(each)
        if self.course is None:
            self.course = self._agree(statements)
        else:
            self._read(statements)
            if self.course.question is None:
                self.certified = True
                return
            if self.course.is_disputed:
                self._name_pair(statements)
            self.course = self._add_up(statements)
        self.step = self.course.step
        if self.course.question is None:
            self._state(b"F", self.course.context)
        elif self.course.is_disputed:
            self._state(b"D", self.course.context + commit_to_masks(self._masks()))
        else:
            self._state(b"C", self.course.context + self._contribution())

    @property
    def contradicted(self) -> bool:
        """Whether the totals leave no room for one's own values: then somebody lied. To be told to the owner alone."""
        return any(own > total for plain, totals in self._answered for own, total in zip(plain, totals, strict=True))

    # Parts

    @property
    def _course(self) -> Course:
        """How the search went, once everybody has announced itself."""
        assert self.course is not None
        return self.course

    def _agree(self, announcements: Sequence[Statement]) -> Course:
        """Everybody's session key is known: the keys of the pairs, and where the search begins."""
        number, everybody = self._holding.number, range(len(announcements))
        tags = [each.tag for each in announcements]
        for other, each in enumerate(announcements):
            fault = announcement_fault(each, self._agreement)
            if fault is not None:
                raise Distrust("broken protocol", (other,), fault, self._show([each]))
        self._pairs = pair_keys(self._holding.secret, number, announcements, self._agreement.digest)
        course = Course.begin(self._agreement, tags)
        if self._agreement.verify:
            self._shown = [course.nothing_shown(i) for i in everybody]
            self._opened = begin_opened(course.search.rules.brackets, course.values(number))
        return course

    def _read(self, statements: Sequence[Statement]) -> None:
        """What everybody has shown by its statement of this step."""
        for each in statements:
            try:
                shown = self._shown[each.signer] if self._shown else Shown({})
                shown = self._course.read(each, shown)
            except Invalid as error:
                evidence = self._show_course(each.signer)
                raise Distrust("broken protocol", (each.signer,), f"signed {error}", evidence) from None
            if self._shown:
                self._shown[each.signer] = shown

    def _add_up(self, contributions: Sequence[Statement]) -> Course:
        if not self._agreement.verify:
            totals, sealed = add_up((each.numbers for each in contributions), self._course.widths), b""
        else:
            shown, sealed = self._shown, seal(contributions)
            opened = open_totals([each.weighted for each in shown], [each.masked for each in shown])
            if opened is None:
                return self._course.dispute(sealed)
            # A liar's sum may be anything; none is so large.
            most = (MODULUS**width - 1 for width in self._course.widths)
            totals = split(map(min, opened, most), self._course.widths)
        course = self._course.fold(totals, sealed)
        if not isinstance(course.search.rules, NoisyRules):
            self._answered.append((self._plain, join(totals, self._course.widths)))
        return course

    def _name_pair(self, disputes: Sequence[Statement]) -> None:
        """Everybody's masks explain its numbers, and yet they do not add up: those of a pair do not cancel."""
        everybody = range(len(disputes))
        masks = [each.masks for each in self._shown]
        pairs = ((i, j) for j in everybody for i in range(j) if not cancel(masks[i][j], masks[j][i]))
        i, j = next(pairs)
        raise Distrust("false masks", (i, j), PAIR_FAULT, self._show([disputes[i], disputes[j]]))

    def _contribution(self) -> bytes:
        """One's own answer to the question, behind masks; with what proves it, where that was agreed."""
        question, number = self._course.question, self._holding.number
        assert question is not None
        weight = self._agreement.weights[number]
        self._plain = contribution(question, self._own_values, weight)
        if not self._agreement.verify:
            numbers = hide(self._with_noise(), number, self._pairs, self._course.context, self._course.widths)
            return struct.pack(f"<{len(numbers)}Q", *numbers)
        own = self._vote(question)
        self._opened |= own.opened
        masked = mask(own.plain, number_weights(question, weight), self._masks().values())
        return Vote(own.points, own.proofs, masked).encode()

    def _with_noise(self) -> list[int]:
        """One's own answer with one's share of noise, where that was agreed."""
        rules, seed = self._course.search.rules, derive_seed(self._holding.secret)
        if not isinstance(rules, NoisyRules):
            return self._plain
        from midst.protocol.noise import add_noise

        return add_noise(self._plain, rules.share, seed, self._course.context)

    def _vote(self, question: Question) -> OwnVote:
        number, digest = self._holding.number, self._agreement.digest
        committed, seed = self._shown[number].committed, derive_seed(self._holding.secret)
        return make_vote(question, self._own_values, committed, self._opened, seed, digest, self._course.asked, number)

    @property
    def _own_values(self) -> OwnValues:
        """One's own values, as the question is about them; none of who weighs nothing."""
        if self._values is None:
            counts = self._agreement.weights[self._holding.number] > 0
            keys = [each if counts else each[:0] for each in self._holding.keys]
            self._values = OwnValues.of(self._course.search.rules, keys)
        return self._course.search.own_values(self._values)

    def _masks(self) -> dict[int, list[tuple[int, int]]]:
        """One's masks with each of the others for the question, disputed or not."""
        return own_masks(self._holding.number, self._pairs, self._course.asked, self._course.numbers)

    def _show(self, statements: Sequence[Statement]) -> Evidence:
        """What these statements show alone."""
        signers = sorted({each.signer for each in statements})
        certificates = tuple(self._certificate(i) for i in signers)
        return Evidence(tuple((each.body, each.signature) for each in statements), certificates)

    def _show_course(self, signer: int) -> Evidence:
        """What all statements of a signer show, one after the other."""
        said = [statement for step in range(self.step + 1) if (statement := self.held(step, signer)) is not None]
        course, shown = self._course, self._show(said)
        opening = course.search.rules.opening
        return replace(shown, tags=course.tags, opening=opening, totals=course.totals, seals=course.seals)

    def _certificate(self, number: int) -> bytes:
        announced = self.held(0, number)
        return b"" if announced is None else announced.announced()[3]

    def _fits(self, statement: Statement | None) -> bool:
        return statement is not None and (self.course is None or statement.context == self.course.context)

    def _state(self, kind: bytes, says: bytes) -> None:
        body = make_body(kind, self._holding.number, self.step, says)
        self.own.append(self._signers.sign(body))


def transcript_of(participant: Participant) -> Transcript:
    """What a participant holds at the end."""
    course = participant.course
    assert course is not None
    assert participant.certified, "there is no transcript before everybody has signed"
    return Transcript(
        announcements=tuple(each.body for each in participant.statements(0)),
        opening=course.search.rules.opening,
        totals=course.totals,
        signatures=tuple(each.signature for each in participant.statements(participant.step)),
        seals=course.seals,
    )

"""The course of a search, as all participants know it, and what it shows to anybody with the charter.

Rules:
- A `Course` has no secrets: it follows from the charter, the announcements and the totals. Participants follow it; a
  certificate is checked by playing it again, and so is evidence.
- Evidence is what the accused signed, and the course in which they did. It is judged by the same functions by which
  every participant judges; who is told of a lie believes nothing else.
- Whatever somebody signed is judged in the context that it signed. In another one it shows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from midst.protocol.commitments import Invalid, Point, decode_points, multiply
from midst.protocol.keys import MODULUS
from midst.protocol.masks import hides
from midst.protocol.noisy_search import AnySearch, begin_search
from midst.protocol.search import Impossible, Question, widths
from midst.protocol.statements import (
    Agreement,
    Malformed,
    Statement,
    Verifiers,
    check_form,
    dispute_context,
    final_hash,
    first_transcript,
    make_body,
    next_transcript,
    read_tag,
    signed_bytes,
    step_context,
)
from midst.protocol.votes import (
    Blinded,
    Committed,
    begin_committed,
    bind,
    cancel,
    check_vote,
    decode_vote,
    explain,
    number_weights,
    read_claims,
)


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """What one participant has shown so far, where votes are verified.

    Attributes:
        committed: how many of its values lie where.
        weighted: the commitment of each number of its last vote, times what it counts.
        masked: these numbers and their blindings, behind masks.
        masks: in a dispute, its commitments to its masks with each of the others.
    """

    committed: Committed
    weighted: tuple[Point, ...] = ()
    masked: tuple[Blinded, ...] = ()
    masks: Mapping[int, Sequence[Point]] = field(default_factory=dict)


class Withheld(Exception):  # noqa: N818
    """What was agreed on is not to be asked: too much would follow from it. Nobody is to blame."""


@dataclass(frozen=True, eq=False, repr=False)
class Course:
    """Where a search stands, and how it came there.

    Attributes:
        agreement: what was agreed before.
        tags: everybody's, in order.
        search: where it stands.
        transcript: the hash of all that was agreed.
        totals: of every question so far.
        seals: of everybody's contributions to each, where votes are verified; and to one that is disputed.
    """

    agreement: Agreement
    tags: tuple[bytes, ...]
    search: AnySearch
    transcript: bytes
    totals: tuple[tuple[int, ...], ...] = ()
    seals: tuple[bytes, ...] = ()

    @classmethod
    def begin(cls, agreement: Agreement, tags: Sequence[bytes]) -> Course:
        """Once everybody has announced itself.

        Raises:
            Withheld: with so many values, what was agreed on is not to be asked.
        """
        sizes = [read_tag(tag)[3] for tag in tags]
        refused = agreement.refusal(sizes)
        if refused is not None:
            raise Withheld(refused)
        rules = agreement.make_rules(sizes)
        first = first_transcript(agreement.digest, tags, rules)
        return cls(agreement, tuple(tags), begin_search(rules), first)

    @property
    def is_disputed(self) -> bool:
        """Whether the last contributions do not add up."""
        return len(self.seals) > len(self.totals)

    @property
    def step(self) -> int:
        """The step whose statements are awaited."""
        return len(self.totals) + (2 if self.is_disputed else 1)

    @property
    def question(self) -> Question | None:
        """What is asked, or disputed; None when every answer is known."""
        return self.search.question

    @property
    def numbers(self) -> int:
        """How many numbers answer the question."""
        return sum(part.numbers for part in self.question or ())

    @property
    def widths(self) -> list[int]:
        """How many words each of them has, where votes are not verified."""
        return widths(self.question or ())

    @cached_property
    def asked(self) -> bytes:
        """The hash of the question, or of the answer, and of all before it: masks are for this."""
        if self.question is None:
            return final_hash(self.transcript, self.search)
        return step_context(self.transcript, self.question)

    @cached_property
    def context(self) -> bytes:
        """What the statements of this step are about."""
        return dispute_context(self.asked, self.seals[-1]) if self.is_disputed else self.asked

    def fold(self, totals: Sequence[int], sealed: bytes = b"") -> Course:
        """Once a question is answered.

        Raises:
            Impossible: no values can have these totals.
        """
        return replace(
            self,
            search=self.search.fold(totals),
            transcript=next_transcript(self.asked, totals, sealed),
            totals=(*self.totals, tuple(totals)),
            seals=(*self.seals, sealed) if self.agreement.verify else (),
        )

    def dispute(self, sealed: bytes) -> Course:
        """Where contributions do not add up."""
        return replace(self, seals=(*self.seals, sealed))

    def values(self, number: int) -> int:
        """How many values of a participant count: none of who weighs nothing."""
        return read_tag(self.tags[number])[3] if self.agreement.weights[number] else 0

    def nothing_shown(self, number: int) -> Shown:
        """Where a participant stands before the first question."""
        return Shown(begin_committed(self.search.rules.brackets, self.values(number)))

    def read(self, statement: Statement, shown: Shown) -> Shown:
        """What a participant has shown once it has made a statement of this step, in this context.

        Raises:
            Invalid: nobody honest makes this statement.
        """
        kind = b"F" if self.question is None else b"D" if self.is_disputed else b"C"
        if statement.kind != kind:
            raise Invalid("a statement of the wrong kind")
        if kind == b"C" and self.agreement.verify:
            return self._read_vote(statement, shown)
        if kind == b"C" and len(statement.content) != 8 * sum(self.widths):
            raise Invalid("a statement of the wrong length")
        return self._read_masks(statement, shown) if kind == b"D" else shown

    def _read_vote(self, statement: Statement, shown: Shown) -> Shown:
        assert self.question is not None
        signer, values = statement.signer, self.values(statement.signer)
        vote = decode_vote(statement.content, self.question, values)
        claims = read_claims(self.question, values, shown.committed, vote.points)
        check_vote(vote, claims, bind(self.agreement.digest, self.asked, signer, vote.points))
        weights = number_weights(self.question, self.agreement.weights[signer])
        weighted = tuple(multiply(weight, point) for weight, point in zip(weights, claims.numbers, strict=True))
        return Shown(shown.committed | claims.cells, weighted, vote.masked)

    def _read_masks(self, statement: Statement, shown: Shown) -> Shown:
        masks = read_masks(statement, len(self.tags))
        if any(len(points) != self.numbers for points in masks.values()):
            raise Invalid("a statement of the wrong length")
        if not explain(shown.weighted, shown.masked, masks):
            raise Invalid("numbers that its own votes and masks do not explain")
        return replace(shown, masks=masks)


def read_masks(dispute: Statement, participants: int) -> dict[int, list[Point]]:
    """Commitments to a participant's masks with each of the others.

    Raises:
        Invalid: there are not as many of each, or they are no points.
    """
    points, others = decode_points(dispute.content), [j for j in range(participants) if j != dispute.signer]
    count, rest = divmod(len(points), len(others))
    if rest:
        raise Invalid("a statement of the wrong length")
    return {j: points[k * count : (k + 1) * count] for k, j in enumerate(others)}


def play(
    agreement: Agreement,
    tags: Sequence[bytes],
    opening: tuple[tuple[int, ...], ...],
    totals: Sequence[tuple[int, ...]],
    seals: Sequence[bytes],
) -> list[Course]:
    """A course played again, step by step, from what somebody shows.

    Raises:
        Malformed: there is no such course.
    """
    for numbers in (*opening, *totals):
        if not all(0 <= each < MODULUS for each in numbers):
            raise Malformed("a number in it is not from 0 to 2^64 - 1")
    announced = [read_tag(tag) for tag in tags]
    if [number for number, *_ in announced] != list(range(len(agreement.weights))):
        raise Malformed("it has not one tag of each participant")
    if not all(agreement.allows(count) for *_, count in announced):
        raise Malformed("somebody in it has another number of values than the charter allows")
    if len(seals) - (len(totals) if agreement.verify else 0) not in (0, agreement.verify):
        raise Malformed("it has not one hash of all contributions for each question")
    try:
        courses = [Course.begin(agreement, tags)]
        rules = courses[0].search.rules
        if rules.opening != opening or (opening and len(opening) != len(rules.brackets)):
            raise Malformed("it opens where the charter's search does not")
        for k, each in enumerate(totals):
            if courses[-1].question is None:
                raise Malformed("it goes on after the answer was known")
            courses.append(courses[-1].fold(each, seals[k] if agreement.verify else b""))
    except Impossible as error:
        raise Malformed(f"its totals cannot be: {error}") from None
    except Withheld as error:
        raise Malformed(f"it must not be: {error}") from None
    return [*courses, courses[-1].dispute(seals[-1])] if len(seals) > len(totals) else courses


# What everybody's signature shows


@dataclass(frozen=True)
class Transcript:
    """All that was made public, and everybody's signature on it: anybody with the charter can check it.

    Attributes:
        announcements: everybody's, as bytes.
        opening: the thresholds of the first probe, where they were not the search's own.
        totals: of every question.
        signatures: on the final hash.
        seals: hashes of everybody's contributions to each question, where votes are verified.
    """

    announcements: tuple[bytes, ...]
    opening: tuple[tuple[int, ...], ...]
    totals: tuple[tuple[int, ...], ...]
    signatures: tuple[bytes, ...]
    seals: tuple[bytes, ...] = ()


def verify_transcript(
    transcript: Transcript, agreement: Agreement, verifier: Verifiers, names: Sequence[str]
) -> AnySearch:
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
    tags = [each.tag for each in announcements]
    course = play(agreement, tags, transcript.opening, transcript.totals, transcript.seals)[-1]
    if course.question is not None:
        raise Malformed("it ends before the answer is known")
    for number, (each, signature) in enumerate(zip(announcements, transcript.signatures, strict=True)):
        check = verifier(number, each.announced()[3])
        if check is None:
            raise Malformed(f"{names[number]} shows another certificate than the charter's")
        said = make_body(b"F", number, course.step, course.context)
        if not check(signed_bytes(agreement.digest, said), signature):
            raise Malformed(f"the signature of {names[number]} is not on this answer")
    return course.search


# What shows that somebody lied


@dataclass(frozen=True)
class Evidence:
    """What shows anybody with the charter who lied.

    Attributes:
        statements: what the accused signed, each as body and signature.
        certificates: of the accused, in the order of their numbers.
        tags: everybody's; empty, like the rest, where the statements show it alone.
        opening: the thresholds of the first probe, where they were not the search's own.
        totals: of the questions before.
        seals: hashes of everybody's contributions to these, and to one that is disputed.
    """

    statements: tuple[tuple[bytes, bytes], ...]
    certificates: tuple[bytes, ...]
    tags: tuple[bytes, ...] = ()
    opening: tuple[tuple[int, ...], ...] = ()
    totals: tuple[tuple[int, ...], ...] = ()
    seals: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Who lied, by evidence.

    Attributes:
        accused: one participant, or two of whom at least one did.
        text: what they did, after their names.
    """

    accused: tuple[int, ...]
    text: str


def judge(evidence: Evidence, agreement: Agreement, verifier: Verifiers) -> Verdict:
    """Who lied, by the evidence.

    Args:
        evidence: what somebody shows.
        agreement: from one's own charter, and where the search opened.
        verifier: how to check a participant's signatures, from its certificate.

    Raises:
        Malformed: it shows nothing.
    """
    statements = [Statement(body, signature) for body, signature in evidence.statements]
    for each in statements:
        check_form(each.body, len(agreement.weights))
    accused = tuple(sorted({each.signer for each in statements}))
    if not accused or len(evidence.certificates) != len(accused):
        raise Malformed("it has not one certificate of each of the accused")
    checks = {i: verifier(i, raw) for i, raw in zip(accused, evidence.certificates, strict=True)}
    for each in statements:
        check = checks[each.signer]
        if check is None or not check(signed_bytes(agreement.digest, each.body), each.signature):
            raise Malformed("a signature in it is wrong")
    try:
        find = _fault_of_pair(statements, agreement) if len(accused) > 1 else _fault(statements, evidence, agreement)
    except Invalid:
        find = None
    if find is None:
        raise Malformed("it shows nothing")
    return Verdict(accused, find)


def announcement_fault(announcement: Statement, agreement: Agreement) -> str | None:
    """What is wrong with an announcement, for everybody to see."""
    _, key, count, _ = announcement.announced()
    if not agreement.allows(count):
        return f"announced {count} values, against the charter"
    return None if hides(key) else "announced a key that hides nothing"


def two_statements(step: int) -> str:
    """What is said of who signed two of them."""
    return f"signed two statements for step {step}: lied, ran twice, or lost its disk"


PAIR_FAULT = "do not have the masks that they share: at least one of the two lies"


def _fault_of_pair(statements: Sequence[Statement], agreement: Agreement) -> str | None:
    """Two participants' commitments to their masks for the same contributions, which do not cancel."""
    if len(statements) != 2 or statements[0].context != statements[1].context:
        return None
    one, other = statements
    if one.kind != b"D" or other.kind != b"D" or len(one.body) != len(other.body):
        return None
    masks = [read_masks(each, len(agreement.weights)) for each in statements]
    return None if cancel(masks[0][other.signer], masks[1][one.signer]) else PAIR_FAULT


def _fault(statements: Sequence[Statement], evidence: Evidence, agreement: Agreement) -> str | None:
    """Two statements for one step, or one that nobody honest makes after those before it."""
    [first, *later] = statements
    if len(later) == 1 and first.step == later[0].step:
        return two_statements(first.step) if first.body != later[0].body else None
    if first.kind != b"A":
        return None
    if not later:
        return announcement_fault(first, agreement)
    courses = play(agreement, evidence.tags, evidence.opening, evidence.totals, evidence.seals)
    if len(later) > len(courses) or courses[0].tags[first.signer] != first.tag:
        return None
    shown = courses[0].nothing_shown(first.signer)
    for course, statement in zip(courses, later, strict=False):
        if statement.step != course.step or statement.context != course.context:
            return None
        try:
            shown = course.read(statement, shown)
        except Invalid as error:
            return f"signed {error}"
    return None

"""The exact finish: a node that sits on its value proposes it, all nodes count, and the count is the proof.

The holder of the answer sits inside its interval, sending x = s, long before the others have converged to it. So:

- A node that has been inside for `patience` iterations in a row proposes its s. Proposals travel up a spanning tree,
  the one that has waited longest first; whoever leaves its interval, or is excluded by an earlier count, no longer
  proposes.
- The root announces one candidate v at a time. Every node answers with its weight if s < v (below) and if s > v
  (above), as whole numbers modulo 2^64, hidden by masks: each edge has a secret, both ends derive the same mask from
  it, and one adds what the other subtracts. Sums of subtrees go up the tree; in the total all masks have cancelled.
- v is a τ-quantile if and only if below ≤ τW and above ≤ (1 − τ)W. The root sends the two totals down, and every node
  decides for itself. A refused candidate tells on which side of it the answer lies: nodes on the other side are out.
- The iteration goes on meanwhile.

Nothing is learnt but the candidates (which their neighbours had been sent already) and their totals, as long as the
honest nodes stay connected without the corrupt ones; a node all of whose neighbours are corrupt has masks they know.

Rules:
- Pure: words in, words out, one a neighbour and round. No randomness; the secrets are given.
- A node knows its neighbours, the root's number and a bound on the diameter; nothing else of the graph.
- Every word says where its sender stands, not what changed, so that a word heard twice does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

MODULUS = 2**64
Masks = Callable[[int], tuple[int, int]]
Part = TypeVar("Part", "Count", "Word")


@dataclass(frozen=True)
class Rules:
    """What all nodes agree on before they start.

    Attributes:
        patience: iterations in a row inside before a node proposes.
        root: the node at which sums meet.
        ready: the first iteration in which the root may announce: a bound on the diameter, plus one.
        total: the total weight W, in units.
        level: τ.
    """

    patience: int
    root: int
    ready: int
    total: int
    level: Fraction

    def judge(self, below: int, above: int) -> int:
        """0 if the candidate is a τ-quantile, −1 if the answer lies below it, +1 if above."""
        if below > self.level * self.total:
            return -1
        return int(above > (1 - self.level) * self.total)


def choose_patience(diameter: int) -> int:
    """How many iterations in a row a node is inside before it proposes: as long as a count takes, and at least 8.

    Less patience means more candidates that are refused, and each of those tells its rank; more means more rounds. A
    count takes three diameters; waiting for as long costs little beside it, and from then on the ranks told nothing
    that the messages had not (ring-15, 60 runs: 0.06 bits at K = 8, none at K = 21). Measured at c = 1, sigma = 0.1,
    N(0, 1) data, 100 runs each (`make bench` prints it again): median rounds to the proof / mean number of proposals.

    | graph         | K = 1     | K = 5     | K = 8     | K = 12    | K = 20    | K = 40    |
    |---------------|-----------|-----------|-----------|-----------|-----------|-----------|
    | ring-15       | 44 / 2.4  | 46 / 2.3  | 50 / 2.3  | 54 / 2.2  | 61 / 1.8  | 80 / 1.4  |
    | rgg-15        | 22 / 1.9  | 26 / 1.7  | 29 / 1.3  | 34 / 1.1  | 42 / 1.1  | 62 / 1.0  |
    | complete-15   | 27 / 2.0  | 31 / 1.7  | 34 / 1.1  | 39 / 1.0  | 47 / 1.0  | 67 / 1.0  |
    | grid-49       | 90 / 2.5  | 92 / 2.5  | 86 / 2.5  | 88 / 2.5  | 90 / 2.1  | 114 / 1.7 |
    | 4-regular-101 | 50 / 3.3  | 53 / 3.3  | 53 / 3.1  | 50 / 2.8  | 54 / 2.1  | 70 / 1.7  |
    | ring-51       | 252 / 3.7 | 252 / 3.8 | 252 / 3.7 | 254 / 3.8 | 256 / 3.7 | 275 / 3.4 |
    | complete-51   | 142 / 3.3 | 146 / 3.1 | 149 / 2.4 | 153 / 1.7 | 161 / 1.0 | 181 / 1.0 |
    """
    return max(8, 3 * diameter)


@dataclass(frozen=True, order=True)
class Proposal:
    """Someone sits inside its interval. Ordered: who has waited longest comes first."""

    since: int
    holder: int
    value: float = field(repr=False)


@dataclass(frozen=True)
class Candidate:
    """The number-th value to be counted, its holder inside since one iteration, announced in another."""

    number: int
    value: float = field(repr=False)
    holder: int
    since: int
    announced: int


class Sum(NamedTuple):
    """A masked sum of a subtree for the number-th candidate."""

    number: int
    below: int
    above: int


class Verdict(NamedTuple):
    """The totals of the number-th candidate, and the iteration in which the root had them."""

    number: int
    below: int
    above: int
    decided: int


@dataclass(frozen=True)
class Word:
    """What a message says about the count.

    Attributes:
        distance: of the sender from the root, once known.
        parent: the sender's parent in the tree.
        proposal: the first in line of the sender's subtree; to its parent only.
        sum: of the sender's subtree; to its parent only.
        candidate: what is being counted, as far as the sender knows.
        verdict: of the latest candidate whose totals the sender knows.
    """

    distance: int | None = None
    parent: int | None = None
    proposal: Proposal | None = None
    sum: Sum | None = None
    candidate: Candidate | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Counted:
    """A candidate that has been counted: its value and holder, and the totals; everybody was told all of it."""

    value: float = field(repr=False)
    holder: int
    announced: int
    below: int
    above: int


@dataclass(frozen=True)
class Proof:
    """The count that proved a value to be a τ-quantile.

    Attributes:
        value: the answer, to the last bit; in working units until `solve` puts it in the units of the data.
        below: weight, in units, of the values below it.
        above: weight of the values above it.
        ties: weight of the values equal to it, its holder's included.
        total: the total weight.
        proposals: how many candidates were counted, this one included.
        waited: iterations before the winning candidate had been inside for long enough.
        queued: iterations from then until the root announced it.
        counted: iterations from the announcement until the root knew the totals.
        spread: iterations until every node knew them.
        holder: the node that proposed it.
        refused: the candidates that were not the answer: whose value, and its rank, everybody was told.
    """

    value: float = field(repr=False)
    below: int
    above: int
    ties: int
    total: int
    proposals: int
    waited: int
    queued: int
    counted: int
    spread: int
    holder: int
    refused: tuple[Counted, ...]

    @property
    def candidates(self) -> tuple[Counted, ...]:
        """Every value that was counted, the answer last."""
        return (*self.refused, Counted(self.value, self.holder, self.waited + self.queued - 1, self.below, self.above))

    def scaled(self, unit: float) -> Proof:
        """The proof with its values multiplied by a unit."""
        refused = tuple(replace(each, value=each.value * unit) for each in self.refused)
        return replace(self, value=self.value * unit, refused=refused)

    def to_dict(self) -> dict[str, object]:
        """The proof as plain Python values; of refused candidates only the totals."""
        totals = [{"below": each.below, "above": each.above} for each in self.refused]
        return {**{name: part for name, part in vars(self).items() if name != "refused"}, "refused": totals}

    @property
    def rounds(self) -> int:
        """Iterations until every node knew the proved answer."""
        return self.waited + self.queued + self.counted + self.spread


@dataclass(frozen=True, repr=False)
class Count:
    """Where one node stands in the count of one coordinate.

    Attributes:
        word: what it last told its parent.
        children: its children in the tree, as far as they have said so.
        since: first iteration of its present stay inside, if it is inside.
        low: the answer is known to lie above this.
        high: and below this.
        sums: what its children have answered to the present candidate.
        refused: totals of the candidates refused so far.
        answer: the proved value, once known.
    """

    word: Word = Word()
    children: frozenset[int] = frozenset()
    since: int | None = None
    low: float = -float("inf")
    high: float = float("inf")
    sums: Mapping[int, Sum] = field(default_factory=dict)
    refused: tuple[Counted, ...] = ()
    answer: float | None = None

    def word_to(self, neighbour: int) -> Word:
        """What to tell a neighbour: the subtree's proposal and sum are for the parent only."""
        return self.word if neighbour == self.word.parent else _with(self.word, proposal=None, sum=None)

    def open(self, value: float) -> bool:
        """Whether the value may still be the answer."""
        return self.low < value < self.high

    def proof(self, rules: Rules, t: int) -> Proof | None:
        """The proof as this node holds it in iteration t; None while it does not know the answer."""
        candidate, verdict = self.word.candidate, self.word.verdict
        if self.answer is None or candidate is None or verdict is None:
            return None
        return prove(candidate, verdict, self.refused, rules, t)


@dataclass(frozen=True, repr=False)
class Counter:
    """What one node knows of the count of one coordinate from the start.

    Attributes:
        id: its number.
        value: its private value.
        weight: its weight, in units.
        rules: what all agreed on.
    """

    id: int
    value: float
    weight: int
    rules: Rules

    def first_word(self) -> Word:
        """What it says before the first iteration: the root is at distance 0 from itself."""
        return Word(distance=0 if self.id == self.rules.root else None)

    def step(self, count: Count, t: int, inside: bool, inbox: Mapping[int, Word], mask: Masks) -> Count:
        """Iteration t: listen to the neighbours, and say where this node stands now.

        Args:
            count: where it stood.
            t: the iteration.
            inside: whether its branch is 0 in this iteration.
            inbox: what each neighbour said in iteration t − 1.
            mask: this node's masks for a candidate: two numbers that cancel against the others'.
        """
        distance, parent = self._place(inbox)
        heard = inbox[parent] if parent is not None else Word()
        since = None if not inside else t if count.since is None else count.since
        count = _with(
            count,
            since=since,
            children=frozenset([j for j, word in inbox.items() if word.parent == self.id]),
            word=_with(count.word, distance=distance, parent=parent),
        )
        count = self._decide(count, heard.verdict)
        count = self._take_up(count, heard.candidate)
        count = self._add_up(count, inbox, mask)
        if self.id == self.rules.root and count.word.sum is not None:
            count = self._decide(count, Verdict(*count.word.sum, decided=t))
        count = self._line_up(count, t, inbox)
        if self.id == self.rules.root:
            count = self._announce(count, t)
        return count

    def term(self, candidate: float) -> tuple[int, int]:
        """This node's answer to a candidate: its weight below, its weight above."""
        return self.weight * (self.value < candidate), self.weight * (self.value > candidate)

    def _place(self, inbox: Mapping[int, Word]) -> tuple[int | None, int | None]:
        """Distance from the root, and parent: the lowest neighbour that is nearest to the root."""
        if self.id == self.rules.root:
            return 0, None
        near = [(word.distance, j) for j, word in inbox.items() if word.distance is not None]
        if not near:
            return None, None
        nearest, parent = min(near)
        return nearest + 1, parent

    def _decide(self, count: Count, verdict: Verdict | None) -> Count:
        """Hear the totals of the present candidate: it is the answer, or on which side of it the answer is."""
        candidate, known = count.word.candidate, count.word.verdict
        if verdict is None or candidate is None or (known is not None and known.number >= verdict.number):
            return count
        count = replace(count, word=replace(count.word, verdict=verdict))
        side = self.rules.judge(verdict.below, verdict.above)
        if side == 0:
            return replace(count, answer=candidate.value)
        low = candidate.value if side > 0 else count.low
        high = candidate.value if side < 0 else count.high
        counted = Counted(candidate.value, candidate.holder, candidate.announced, verdict.below, verdict.above)
        return replace(count, low=low, high=high, refused=(*count.refused, counted))

    def _take_up(self, count: Count, candidate: Candidate | None) -> Count:
        """Turn to a new candidate."""
        if candidate is None or candidate == count.word.candidate:
            return count
        return replace(count, sums={}, word=replace(count.word, candidate=candidate, sum=None))

    def _add_up(self, count: Count, inbox: Mapping[int, Word], mask: Masks) -> Count:
        """Once all children have answered, this subtree's sum is theirs and this node's masked own term."""
        candidate = count.word.candidate
        if candidate is None or count.word.sum is not None:
            return count
        answers = {j: inbox[j].sum for j in count.children}
        sums = {j: answer for j, answer in answers.items() if answer is not None and answer.number == candidate.number}
        if len(sums) < len(count.children):
            return replace(count, sums=sums)
        below, above = self.term(candidate.value)
        hidden_below, hidden_above = mask(candidate.number)
        below = (below + hidden_below + sum(part.below for part in sums.values())) % MODULUS
        above = (above + hidden_above + sum(part.above for part in sums.values())) % MODULUS
        total = Sum(candidate.number, below, above)
        return replace(count, sums=sums, word=replace(count.word, sum=total))

    def _line_up(self, count: Count, t: int, inbox: Mapping[int, Word]) -> Count:
        """The first in line of this subtree, among those the counts so far have not excluded."""
        waiting = [inbox[j].proposal for j in count.children]
        line = [proposal for proposal in waiting if proposal is not None and count.open(proposal.value)]
        if count.since is not None and t - count.since + 1 >= self.rules.patience and count.open(self.value):
            line.append(Proposal(count.since, self.id, self.value))
        return _with(count, word=_with(count.word, proposal=min(line, default=None)))

    def _announce(self, count: Count, t: int) -> Count:
        """The root: the next in line becomes the candidate when nothing else is being counted."""
        candidate, verdict, first = count.word.candidate, count.word.verdict, count.word.proposal
        announced = candidate.number if candidate else 0
        decided = verdict.number if verdict else 0
        if t < self.rules.ready or count.answer is not None or announced > decided or first is None:
            return count
        return self._take_up(count, Candidate(announced + 1, first.value, first.holder, first.since, t))


def _with(whole: Part, **parts: Any) -> Part:
    """`replace`, but for the many rounds in which nothing changes."""
    for name, part in parts.items():
        if getattr(whole, name) != part:
            return replace(whole, **parts)
    return whole


def prove(candidate: Candidate, verdict: Verdict, refused: tuple[Counted, ...], rules: Rules, t: int) -> Proof:
    """The proof as it is known in iteration t, for a candidate whose verdict is that it is the answer."""
    ripe = candidate.since + rules.patience
    return Proof(
        value=candidate.value,
        below=verdict.below,
        above=verdict.above,
        ties=rules.total - verdict.below - verdict.above,
        total=rules.total,
        proposals=candidate.number,
        waited=ripe,
        queued=candidate.announced + 1 - ripe,
        counted=verdict.decided - candidate.announced,
        spread=t - verdict.decided,
        holder=candidate.holder,
        refused=refused,
    )


def all_or_none(proofs: Sequence[Proof | None]) -> tuple[Proof, ...] | None:
    """The proofs of all coordinates, once there is one for each."""
    found = tuple(proof for proof in proofs if proof is not None)
    return found if len(found) == len(proofs) else None

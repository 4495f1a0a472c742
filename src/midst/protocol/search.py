"""Which thresholds a search asks about: a function of what was agreed and of the totals so far, and of nothing else.

All participants know a bracket (a, b] of keys that holds the answer, the weight at or below a, and the weight inside.
Thresholds cut it into cells; everybody tells, behind masks, how much of its weight lies in each; the totals say in
which cell the wanted rank is, and that is the next bracket.

Rules:
- Pure and public: no value, no randomness. The question follows from the rules and the totals; nobody chooses it.
- A sum of keys is asked of a bracket only when the totals say that it holds one value (a midpoint: two). The sum of a
  bracket of two, less the answer, would be the other value. A sum that lies outside its bracket is no answer: whoever
  is inside lied, and is searched for by key.
- Thresholds of a bracket that holds m of weight, of which the r-th is wanted, in one of three ways, K of them:
    rank   at f_j = f + d·(2(2j − K − 1) / (K + 1)), f = (r − 0.5) / m, d = sqrt(f·(1 − f) / m): where the wanted rank
           is expected if values are spread evenly over the bracket, or as the public quantiles say
    value  at f_j = j / (K + 1) of the bracket
    key    at a + ⌊(b − a)·j / (K + 1)⌋
  Where a probe halved what is inside (of an odd number, to the larger half or less: the median's side of a threshold at
  the middle never holds less), the first way is next; where not, the one after. By key, 64 / log2(K + 1) probes
  are enough for any data.
- Where a probe left as much inside as before, values may be tied: the next one asks about the roundest number x in the
  bracket, by the thresholds key(x) − 1 and key(x), besides some by key; at most six times.
- What lies outside (a, b) is left out; where nothing is left, ⌊(a + b) / 2⌋ is asked about.
- Sums over all values are asked for as soon as it is known between which ends values are clipped: in the first step,
  or once the ranks are found that are the ends. How far values are from an answer is a coordinate of its own, searched
  once that answer is known. Public cuts are asked about in the first step, as thresholds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import islice, pairwise
from math import ceil, sqrt
from operator import mul
from sys import float_info
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from midst.protocol.keys import MODULUS, Keys, SumGrid, Words
from midst.protocol.masks import join

if TYPE_CHECKING:
    from midst.protocol.noisy_search import AnyRules

Amounts = NDArray[Any]  # words, or Python's whole numbers on a wide grid
Spacing = Literal["rank", "value", "key"]

SPACING_ORDERS: dict[Spacing, tuple[Spacing, ...]] = {  # by the way that was agreed on: that one, and those after it
    "rank": ("rank", "value", "key"),
    "value": ("value", "value", "value", "value", "key"),
    "key": ("key",),
}
MOST_THRESHOLDS = 7  # a bracket: more would be a histogram
TIE_PROBES = 6  # a rank
_LARGEST = float_info.max


class Impossible(Exception):  # noqa: N818
    """Totals that no values can have: somebody's contribution is wrong."""


@dataclass(frozen=True)
class Goal:
    """One answer that is wanted.

    Attributes:
        coordinate: of which coordinate.
        ranks: the place of the value among all, from 1 on, in units of weight; two of them for the midpoint between.
    """

    coordinate: int
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class SumGoal:
    """A sum over all values that is wanted: of how far each, clipped, lies above the lower end.

    Attributes:
        coordinate: of which coordinate.
        power: 1, or 2 for the sum of squares.
        ends: the goals whose answers values are clipped to; None for the first bracket's.
    """

    coordinate: int
    power: int = 1
    ends: tuple[int, int] | None = None


@dataclass(frozen=True)
class Rules:
    """What all participants agree on before the first probe.

    Attributes:
        keys: how numbers become keys.
        brackets: the first one of each coordinate, and of those in `centres`.
        total: the weight of all values of a coordinate.
        unit: the weight of every value that has any; None where they differ, and no sum may be asked.
        goals: what is wanted.
        arity: thresholds a probe.
        spacing: the first way of placing them.
        quantiles: public knowledge: numbers at equal steps of probability from 0 to 1, to place thresholds by; none
            for values spread evenly over the bracket.
        opening: the thresholds of the first probe, a tuple of keys a coordinate; none to place them as all others.
        sums: what is wanted besides.
        grid: how numbers become what is summed up: the same as `keys`, where those are multiples of a resolution.
        ends: between which numbers, on that grid, values of each coordinate lie.
        cuts: public thresholds besides those of the first probe, a tuple of keys a coordinate.
        centres: goals; how far values are from the answer of the j-th of them is one more coordinate, after all others.
    """

    keys: Keys
    brackets: tuple[tuple[int, int], ...]
    total: int
    unit: int | None
    goals: tuple[Goal, ...]
    arity: int = 3
    spacing: Spacing = "rank"
    quantiles: tuple[float, ...] = ()
    opening: tuple[tuple[int, ...], ...] = ()
    sums: tuple[SumGoal, ...] = ()
    grid: SumGrid | None = None
    ends: tuple[tuple[int, int], ...] = ()
    cuts: tuple[tuple[int, ...], ...] = ()
    centres: tuple[int, ...] = ()

    @property
    def coordinates(self) -> int:
        """How many numbers a value has."""
        return len(self.brackets) - len(self.centres)

    @property
    def most_cells(self) -> int:
        """No question asks about more cells: a tie probe has at least three thresholds."""
        return sum(len(goal.ranks) * (max(self.arity, 3) + 1) for goal in self.goals) + sum(map(len, self.cuts))

    def grid_keys(self, low: int, high: int) -> tuple[int, int]:
        """Two keys, on the grid of the sums."""
        if self.grid == self.keys or self.grid is None:
            return low, high
        return self.grid.key(self.keys.value(low)), self.grid.key(self.keys.value(high))

    def words(self, goal: SumGoal) -> int:
        """How many words of 64 bits hold the largest sum."""
        low, high = self.ends[goal.coordinate]
        largest: int = self.total * (high - low) ** goal.power
        return max(1, -(-largest.bit_length() // 64))

    @property
    def most_probes(self) -> int:
        """No search of one answer takes more, the finishing sum included."""
        by_key = 0
        while (self.arity + 1) ** by_key < MODULUS:
            by_key += 1
        others = (len(SPACING_ORDERS[self.spacing]) - 1) * self.total.bit_length()
        alone = by_key + TIE_PROBES + others + 2 + by_key  # once more where a liar's sum is no answer
        return alone * (2 if self.centres else 1) + bool(self.sums)  # of which some wait for the last rank


@dataclass(frozen=True)
class Cells:
    """A part of a question: how much weight lies in each cell of a bracket.

    Attributes:
        coordinate: of which coordinate.
        edges: a, the thresholds, b: cell k is (edges[k], edges[k + 1]].
        inside: the weight of all of them together, as is known.
    """

    coordinate: int
    edges: tuple[int, ...]
    inside: int = field(default=MODULUS, compare=False)
    kind = b"C"
    words = 1

    @property
    def numbers(self) -> int:
        """How many numbers answer it."""
        return len(self.edges) - 1

    def answer(self, keys: Words, weight: int) -> list[int]:
        """What one participant answers; keys are its own, in order."""
        places: list[int] = np.searchsorted(keys, np.array(self.edges, np.uint64), "right").tolist()
        return [weight * (after - before) for before, after in pairwise(places)]


@dataclass(frozen=True)
class KeySum:
    """A part of a question: the sum of key − edges[0] over the one value in a bracket, or the two in one or two.

    Attributes:
        coordinate: of which coordinate.
        edges: a and b of a bracket, and of a second one.
    """

    coordinate: int
    edges: tuple[int, ...]
    kind = b"S"
    numbers = 1
    words = 1

    def answer(self, keys: Words, weight: int) -> list[int]:
        """What one participant answers; keys are its own, in order."""
        places = np.searchsorted(keys, np.array(self.edges, np.uint64), "right")
        inside = [key for i, j in zip(places[::2], places[1::2], strict=True) for key in keys[i:j].tolist()]
        return [sum(key - self.edges[0] for key in inside) if weight else 0]


@dataclass(frozen=True)
class ClippedSum:
    """A part of a question: the sum, over all values, of how far each lies above edges[0], to a power.

    Attributes:
        coordinate: of which coordinate.
        edges: the lowest and the highest number, on the grid of the sums: what lies beyond counts as these.
        power: 1 or 2.
        words: of 64 bits, that hold the largest sum.
    """

    coordinate: int
    edges: tuple[int, ...]
    power: int
    words: int
    numbers = 1

    @property
    def kind(self) -> bytes:
        """By which it is told from other parts where it is hashed."""
        return b"P%d/%d" % (self.power, self.words)

    @property
    def most(self) -> int:
        """What one value adds at most."""
        low, high = self.edges
        return int((high - low) ** self.power)

    def answer(self, amounts: Amounts, weight: int) -> list[int]:
        """What one participant answers; its own values on the grid."""
        return [weight * sum(self.terms(amounts))]

    def terms(self, amounts: Amounts) -> list[int]:
        """What each value adds to the sum."""
        low, high = map(amounts.dtype.type, self.edges)
        above: list[int] = (np.clip(amounts, low, high) - low).tolist()
        return above if self.power == 1 else [*map(mul, above, above)]


QuestionPart = Cells | KeySum | ClippedSum
Question = tuple[QuestionPart, ...]


class SearchStep(NamedTuple):
    """A question and the totals that answer it."""

    question: Question
    totals: Sequence[int]

    def parts(self) -> Iterator[tuple[QuestionPart, tuple[int, ...]]]:
        """Each part of the question, with the totals that answer it."""
        numbers = iter(join(self.totals, widths(self.question)))
        for part in self.question:
            yield part, tuple(islice(numbers, part.numbers))


def widths(question: Question) -> list[int]:
    """How many words each number has that a question asks for."""
    return [part.words for part in question for _ in range(part.numbers)]


class OwnValues(NamedTuple):
    """A participant's own values, as questions are about them: arrays in ascending order, one a coordinate.

    Attributes:
        keys: for cells, and the sum that ends a search.
        amounts: on the grid of the sums; none where none are asked for.
    """

    keys: tuple[Words, ...]
    amounts: tuple[Amounts, ...] = ()

    @classmethod
    def of(cls, rules: AnyRules, keys: Sequence[Words]) -> OwnValues:
        """From the keys of one's values."""
        ordered = tuple(np.sort(each) for each in keys)
        if rules.grid is None or rules.grid == rules.keys:
            return cls(ordered, ordered)
        return cls(ordered, tuple(rules.grid.keys(rules.keys.values(each)) for each in ordered))

    def about(self, part: QuestionPart) -> Amounts:
        """Those that a part of a question is about."""
        return (self.amounts if isinstance(part, ClippedSum) else self.keys)[part.coordinate]


def contribution(question: Question, own: OwnValues, weight: int) -> list[int]:
    """What one participant answers to a question.

    Args:
        question: what is asked.
        own: its values.
        weight: of each of them.
    """
    return [number for part in question for number in part.answer(own.about(part), weight)]


@dataclass(frozen=True)
class Track:
    """How one rank of one goal is being followed.

    Attributes:
        goal: which.
        rank: the wanted one.
        way: which of the ways is next: how many probes in a row did not halve what is inside.
        tied: whether the last probe left as much inside as before.
        tie_probes: how many there were.
    """

    goal: int
    rank: int
    way: int = 0
    tied: bool = False
    tie_probes: int = 0


@dataclass(frozen=True)
class Bracket:
    """The keys (a, b] between which a rank lies, the weight at or below a, and the weight inside."""

    a: int
    b: int
    below: int
    inside: int


@dataclass(frozen=True)
class SearchState:
    """Where a search stands: the same for everybody.

    Attributes:
        rules: what was agreed.
        steps: questions answered so far.
        known: of each coordinate, keys in order with the weight at or below each.
        tracks: one a rank that is followed.
        answers: of each goal, the sum of its ranks' keys; None while it is not known.
        without_sum: the goals of which a sum was no answer.
        sums: of each of the rules' sums; None while it is not known.
    """

    rules: Rules
    steps: int
    known: tuple[tuple[tuple[int, int], ...], ...]
    tracks: tuple[Track, ...]
    answers: tuple[int | None, ...]
    without_sum: frozenset[int] = frozenset()
    sums: tuple[int | None, ...] = ()

    @classmethod
    def begin(cls, rules: Rules) -> SearchState:
        """Before the first probe: all that is known is that everything lies in the first bracket."""
        known = tuple(((a, 0), (b, rules.total)) for a, b in rules.brackets)
        tracks = tuple(Track(g, rank) for g, goal in enumerate(rules.goals) for rank in goal.ranks)
        nothing = (None,) * len(rules.goals)
        return cls(rules, 0, known, tracks, nothing, sums=(None,) * len(rules.sums))._settle()

    @cached_property
    def question(self) -> Question | None:
        """What is asked next; None when every answer is known."""
        cells: dict[tuple[int, int, int], list[int]] = {}
        if self.steps == 0:
            for k, cuts in enumerate(self.rules.cuts):
                a, b = self.rules.brackets[k]
                cells[k, a, b] = [cut for cut in cuts if a < cut < b]
        sums: list[KeySum | ClippedSum] = []
        for g, goal in enumerate(self.rules.goals):
            if self.answers[g] is not None or not self._is_open(goal.coordinate):
                continue
            edges = self._sum_edges(g)
            if edges is not None:
                sums.append(KeySum(goal.coordinate, edges))
                continue
            for track in self._tracks_of(g):
                bracket = self.bracket(track)
                if bracket.b - bracket.a > 1 and (bracket.inside != self.rules.unit or g in self.without_sum):
                    place = cells.setdefault((goal.coordinate, bracket.a, bracket.b), [])
                    place.extend(self._thresholds(track, bracket))
        asked = ((k, a, b, sorted(set(inner))) for (k, a, b), inner in cells.items() if inner)
        parts = [Cells(k, (a, *inner, b), self.count(k, b) - self.count(k, a)) for k, a, b, inner in asked]
        sums += [part for part in map(self._summed, range(len(self.sums))) if part is not None]
        return (*parts, *sums) or None

    def fold(self, totals: Sequence[int]) -> SearchState:
        """Where the search stands once the question's totals are known.

        Raises:
            Impossible: no values can have these totals.
        """
        question = self.question
        assert question is not None, "a search that is over asks nothing"
        if len(totals) != sum(widths(question)):
            raise Impossible(f"{len(totals)} totals for a question of {sum(widths(question))}")
        known, answers, refused = [list(points) for points in self.known], list(self.answers), set(self.without_sum)
        sums = list(self.sums)
        for part, own in SearchStep(question, totals).parts():
            if isinstance(part, Cells):
                _learn(known[part.coordinate], part, own)
            elif isinstance(part, ClippedSum):
                if own[0] > self.rules.total * part.most:
                    raise Impossible("a sum that is larger than all values together can be")
                sums[next(s for s, each in enumerate(sums) if each is None and self._summed(s) == part)] = own[0]
            else:
                open_goals = (g for g, each in enumerate(answers) if each is None and g not in refused)
                goal = next(g for g in open_goals if self._asks_for(g, part))
                answers[goal] = self._read_sum(goal, part, own[0])
                refused |= {goal} if answers[goal] is None else set()
        self._check_moments(sums)
        after = replace(
            self,
            steps=self.steps + 1,
            known=tuple(map(tuple, known)),
            answers=tuple(answers),
            without_sum=frozenset(refused),
            sums=tuple(sums),
        )
        return after._follow(self)._settle()

    def bracket(self, track: Track) -> Bracket:
        """Where a rank is known to lie."""
        points = self.known[self.rules.goals[track.goal].coordinate]
        k = bisect_left(points, track.rank, key=lambda point: point[1])
        (a, below), (b, up_to) = points[k - 1], points[k]
        return Bracket(a, b, below, up_to - below)

    def value(self, goal: int) -> float:
        """The answer to a goal, once it is known."""
        answer, ranks = self.answers[goal], len(self.rules.goals[goal].ranks)
        assert answer is not None, "not known yet"
        return self.rules.keys.value(answer) if ranks == 1 else self.rules.keys.middle(answer)

    def ends_of(self, goal: SumGoal) -> tuple[int, int]:
        """The two numbers of the grid to which a sum clips values, once they are known."""
        if goal.ends is None:
            return self.rules.ends[goal.coordinate]
        low, high = (self.answers[g] for g in goal.ends)
        assert low is not None and high is not None, "not known yet"  # noqa: PT018
        return self.rules.grid_keys(low, high)

    def mean(self, coordinate: int) -> float:
        """The mean of a coordinate, once its sum is known; rounded once."""
        rules, goal = self.rules, SumGoal(coordinate)
        above, grid = self.sums[rules.sums.index(goal)], rules.grid
        assert above is not None and grid is not None, "not known yet"  # noqa: PT018
        return float((Fraction(above, rules.total) + rules.ends[coordinate][0] - grid.zero) * grid.step)

    def proof(self, goal: int) -> tuple[int, int, int]:
        """The weight below an answer, above it, and of all: what the totals say of it."""
        brackets = [self.bracket(track) for track in self._tracks_of(goal)]
        up_to = brackets[-1].below + brackets[-1].inside
        return brackets[0].below, self.rules.total - up_to, self.rules.total

    def own_values(self, own: OwnValues) -> OwnValues:
        """A participant's values with those of the coordinates that have come to be known."""
        keys = [*own.keys[: self.rules.coordinates]]
        for g in self.rules.centres:
            centre, goal = self.answers[g], self.rules.goals[g]
            distances = keys[0][:0] if centre is None else self.rules.keys.distances(own.keys[goal.coordinate], centre)
            keys.append(np.sort(distances))
        return own._replace(keys=tuple(keys))

    def count(self, coordinate: int, key: int) -> int:
        """The weight at or below a key of a coordinate, where it is known."""
        points = self.known[coordinate]
        a, b = points[0][0], points[-1][0]
        return points[bisect_left(points, (min(max(key, a), b), 0))][1]

    # Parts of `question` and `fold`

    def _is_open(self, coordinate: int) -> bool:
        """Whether everybody knows what a coordinate is: how far from an answer, or a value's own."""
        own = self.rules.coordinates
        return coordinate < own or self.answers[self.rules.centres[coordinate - own]] is not None

    def _summed(self, number: int) -> ClippedSum | None:
        """What is asked for one of the sums, if it is not known and its ends are."""
        goal = self.rules.sums[number]
        if self.sums[number] is not None or any(self.answers[g] is None for g in goal.ends or ()):
            return None
        return ClippedSum(goal.coordinate, self.ends_of(goal), goal.power, self.rules.words(goal))

    def _tracks_of(self, goal: int) -> list[Track]:
        return [track for track in self.tracks if track.goal == goal]

    def _check_moments(self, sums: Sequence[int | None]) -> None:
        """Refuse sums of squares that no values with these sums have."""
        known = dict(zip(self.rules.sums, sums, strict=True))
        for goal, square in known.items():
            plain = known.get(replace(goal, power=1))
            if goal.power == 2 and square is not None and plain is not None:
                low, high = self.rules.ends[goal.coordinate]
                if not plain**2 <= self.rules.total * square <= self.rules.total * (high - low) * plain:
                    raise Impossible("squares that do not fit their values' sum")

    def _open_brackets(self, goal: int) -> list[Bracket]:
        """Those of a goal's ranks of which the key is not known."""
        return [self.bracket(track) for track in self._open_tracks(goal)]

    def _open_tracks(self, goal: int) -> list[Track]:
        return [track for track in self._tracks_of(goal) if (held := self.bracket(track)).b - held.a > 1]

    def _open_values(self, goal: int) -> int:
        """How many values the open ranks are of: both may be of one, where all weigh more than one unit."""
        assert self.rules.unit is not None, "values that weigh alike"
        return len({(track.rank - 1) // self.rules.unit for track in self._open_tracks(goal)})

    def _sum_edges(self, goal: int) -> tuple[int, ...] | None:
        """Of which brackets the sum is asked, if those of a goal's open ranks hold these values and no others."""
        brackets = dict.fromkeys(self._open_brackets(goal))
        held = sum(bracket.inside for bracket in brackets)
        if self.rules.unit is None or goal in self.without_sum or held != self._open_values(goal) * self.rules.unit:
            return None
        return tuple(end for bracket in brackets for end in (bracket.a, bracket.b))

    def _asks_for(self, goal: int, part: KeySum) -> bool:
        return self.rules.goals[goal].coordinate == part.coordinate and self._sum_edges(goal) == part.edges

    def _read_sum(self, goal: int, part: KeySum, total: int) -> int | None:
        """The sum of a goal's keys, from what was told of those that were open; None where that cannot be."""
        base = part.edges[0]
        brackets = self._open_brackets(goal)
        total *= len(brackets) // self._open_values(goal)  # twice the one value that both ranks are of
        least = sum(bracket.a + 1 - base for bracket in brackets)
        most = sum(bracket.b - base for bracket in brackets)
        if not least <= total <= most:
            return None
        settled = [self.bracket(track).b for track in self._tracks_of(goal)]
        known = sum(settled) - sum(bracket.b for bracket in brackets)
        return known + total + base * len(brackets)

    def _settle(self) -> SearchState:
        """Ranks whose bracket is a single key are known without another question."""
        # A midpoint is known by the sum of two keys. One of them may be settled long before the other: it is then added
        # here, or by `_read_sum` to the sum that was asked of the other alone.
        answers = list(self.answers)
        for g, answer in enumerate(answers):
            if answer is None and not self._open_brackets(g):
                answers[g] = sum(self.bracket(track).b for track in self._tracks_of(g))
        return replace(self, answers=tuple(answers))

    def _follow(self, before: SearchState) -> SearchState:
        """How each track goes on, by what the probe did to its bracket."""
        opened = before.steps == 0 and bool(self.rules.opening)
        return replace(self, tracks=tuple(self._next(track, before.bracket(track), opened) for track in self.tracks))

    def _next(self, track: Track, old: Bracket, opened: bool) -> Track:
        # A bracket may also shrink by what was asked for another rank: all that counts is what happened to it. The
        # thresholds of an opening were not placed by this track's way, so they say nothing for or against it.
        new = self.bracket(track)
        if new == old or opened:
            return track
        halved = 2 * new.inside <= old.inside + 1 and new.inside < old.inside
        way = 0 if halved else min(track.way + 1, len(SPACING_ORDERS[self.rules.spacing]) - 1)
        probes = track.tie_probes + (track.tied and track.tie_probes < TIE_PROBES)
        return replace(track, way=way, tied=new.inside == old.inside, tie_probes=probes)

    def _thresholds(self, track: Track, bracket: Bracket) -> Iterable[int]:
        """Where to ask next in a bracket, for one track."""
        a, b, count = bracket.a, bracket.b, self.rules.arity
        goal = self.rules.goals[track.goal]
        way = "key" if track.goal in self.without_sum else SPACING_ORDERS[self.rules.spacing][track.way]
        if self.steps == 0 and goal.coordinate < len(self.rules.opening):
            placed: list[int | None] = list(self.rules.opening[goal.coordinate])
        elif track.tied and track.tie_probes < TIE_PROBES:
            x = tie_key(self.rules.keys, a, b)
            placed = [x - 1, x, *by_key(a, b, max(1, count - 2))]
        elif way == "key":
            placed = list(by_key(a, b, count))
        elif way == "value":
            placed = [self.rules.keys.split(a, b, j / (count + 1)) for j in range(1, count + 1)]
        else:
            placed = self._by_rank(bracket, track.rank - bracket.below)
        inner = [key for key in placed if key is not None and a < key < b]
        return inner or [(a + b) // 2]

    def _by_rank(self, bracket: Bracket, rank: int) -> list[int | None]:
        keys, quantiles = self.rules.keys, self.rules.quantiles
        shares = rank_shares(rank, bracket.inside, self.rules.arity)
        if not quantiles:
            return [keys.split(bracket.a, bracket.b, f) for f in shares]
        low, high = (_probability(quantiles, keys.value(end)) for end in (bracket.a + 1, bracket.b))
        spots = [low * (1.0 - f) + high * f for f in shares]
        return [keys.key(_quantile(quantiles, p)) for p in spots if 0.0 <= p <= 1.0]


def rank_shares(rank: int, inside: int, arity: int) -> list[float]:
    """Shares of a bracket about where the rank-th of those inside is expected; see the head of this module."""
    f = (rank - 0.5) / inside
    d = sqrt(f * (1.0 - f) / inside)
    return [f + d * step for step in rank_steps(arity)]


def rank_steps(arity: int) -> list[float]:
    """How far thresholds are from where a rank is expected, in units of d."""
    return [2 * (2 * j - arity - 1) / (arity + 1) for j in range(1, arity + 1)]


def by_key(a: int, b: int, count: int) -> Iterable[int]:
    """Keys that cut (a, b] evenly."""
    return (a + (b - a) * j // (count + 1) for j in range(1, count + 1))


def tie_key(keys: Keys, a: int, b: int) -> int:
    """The key of the roundest number in (a, b]: the likeliest of which there are many."""
    return keys.key(roundest(keys.value(a + 1), keys.value(b)))


def roundest(low: float, high: float) -> float:
    """0 if it lies in [low, high]; else the multiple, of least magnitude, of the largest power of ten that has one.

    A multiple lies there if its float64 does: 0.3 lies in [0.2, 0.3], though the float64 of 0.3 is a little less.
    """
    if low <= 0.0 <= high:
        return 0.0
    if high < 0.0:
        return -roundest(-high, -low)
    least = Fraction(low)
    power = Decimal(high).adjusted() + 1
    while True:
        ten = Fraction(10) ** power
        first = ceil(least / ten)
        for multiple in ((first - 1) * ten, first * ten):
            if multiple <= _LARGEST and low <= float(multiple) <= high:
                return float(multiple)
        power -= 1


def _learn(points: list[tuple[int, int]], cells: Cells, totals: Sequence[int]) -> None:
    """Add what the totals of a bracket's cells say to what is known of a coordinate."""
    below = points[bisect_left(points, (cells.edges[0], 0))][1]
    inside = points[bisect_left(points, (cells.edges[-1], 0))][1] - below
    if sum(totals) != inside:  # each is from 0 to 2^64 − 1, so none can be larger either
        raise Impossible("cells that do not add up to what the bracket held")
    for edge, total in zip(cells.edges[1:-1], totals, strict=False):
        below += total
        insort(points, (edge, below))


def _probability(quantiles: Sequence[float], value: float) -> float:
    """The share of probability at or below a value, by straight lines between public quantiles."""
    if value <= quantiles[0] or value >= quantiles[-1]:
        return float(value > quantiles[0])
    k = bisect_right(quantiles, value) - 1
    step = (value - quantiles[k]) / (quantiles[k + 1] - quantiles[k])
    return (k + step) / (len(quantiles) - 1)


def _quantile(quantiles: Sequence[float], p: float) -> float:
    """And back."""
    place = p * (len(quantiles) - 1)
    k = min(int(place), len(quantiles) - 2)
    f = place - k
    return quantiles[k] * (1.0 - f) + quantiles[k + 1] * f

"""A search by noisy totals: for a session whose whole transcript is to be differentially private.

All participants know a bracket (a, b] of keys in which each wanted rank is searched for. Thresholds cut it; everybody
tells, behind masks and with its share of noise, how many of its values lie in each cell up to the last threshold. The
first threshold at or below which there seem to be as many values as the rank says ends the next bracket.

Rules:
- Pure and public, as in `search.py`: the question follows from the rules and the totals, and so does the answer. What
  the totals keep to, (ε, δ), holds for all that is made of them.
- The number of probes is fixed before the first: the least T with (K + 1)^T keys or more in the first bracket. No sum
  of keys, no tie probe, no early end: whether any of them is due would depend on exact totals.
- K thresholds a bracket, by key: a + ⌊(b − a)·j / (K + 1)⌋. A bracket of one key is asked about by that key.
- The first cell reaches down to the lower end of all keys, never to that of the bracket only: running totals are counts
  of all values up to a threshold, and the noise of earlier probes does not add up in them.
- Several ranks share the probes: the cells lie between the thresholds of all brackets, so one value is still in one
  cell only, and R ranks cost the ε of one (but for K = 1, of which one rank has but one cell). Only the running totals
  have the noise of more cells.
- Totals are signed numbers modulo 2^64. Noise may make them negative, larger than all values, or running totals that
  fall: nothing is impossible.

What it promises: an answer within the public bounds, a multiple of the resolution; without noise, the value of that
rank exactly (each value rounded to the resolution); with it, one of which the rank is off by about the noise of a
running total, and no more for having been wrong on the way: where a probe goes to the wrong side of a threshold that is
near the rank, all that follow lead back to that threshold.

What it does not: that the answer is anybody's value; that answers to ascending ranks ascend; anything against liars,
who may add what they like unnoticed. Where many values are tied or far apart, an error in rank may be a large one in
value, or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import ClassVar

from midst.protocol.keys import MODULUS, SIGN, Grid
from midst.protocol.search import Cells, Impossible, OwnValues, Question, Rules, SearchState, by_key


@dataclass(frozen=True)
class NoisyRules:
    """What all participants agree on before the first probe.

    Attributes:
        keys: the public resolution.
        bracket: (a, b], the public bounds as keys: every value lies in it, or counts at the nearer end.
        ranks: the wanted ones, from 1 on.
        arity: thresholds a probe and rank, K.
        total: how many values there are.
        variance: of the noise that those who do not collude add to each number, σ².
        share: of the noise that each participant adds.
        added: of the noise that all of them add together: what answers are off by.
    """

    keys: Grid
    bracket: tuple[int, int]
    ranks: tuple[int, ...]
    arity: int = 1
    total: int = 0
    variance: Fraction = Fraction(0)
    share: Fraction = Fraction(0)
    added: Fraction = Fraction(0)
    opening: ClassVar[tuple[tuple[int, ...], ...]] = ()  # what an exact search may have, this one has not
    grid: ClassVar[None] = None

    @property
    def brackets(self) -> tuple[tuple[int, int], ...]:
        """The first one of each coordinate: of one only."""
        return (self.bracket,)

    @property
    def probes(self) -> int:
        """How many there are, T."""
        return count_probes(self.bracket, self.arity)

    @property
    def most_numbers(self) -> int:
        """No question asks for more numbers; one for one rank with K = 1 asks for no more than one."""
        return self.arity * len(set(self.ranks))


def count_probes(bracket: tuple[int, int], arity: int) -> int:
    """The least T with (K + 1)^T keys or more in the bracket."""
    probes, reached = 0, 1
    while reached < bracket[1] - bracket[0]:
        probes, reached = probes + 1, reached * (arity + 1)
    return probes


@dataclass(frozen=True)
class NoisySearchState:
    """Where a noisy search stands: the same for everybody.

    Attributes:
        rules: what was agreed.
        steps: questions answered so far.
        brackets: (a, b] of keys, one a rank.
    """

    rules: NoisyRules
    steps: int
    brackets: tuple[tuple[int, int], ...]

    @classmethod
    def begin(cls, rules: NoisyRules) -> NoisySearchState:
        """Before the first probe."""
        return cls(rules, 0, (rules.bracket,) * len(rules.ranks))

    @cached_property
    def question(self) -> Question | None:
        """What is asked next: how many values lie in each cell; None after the last probe."""
        if self.steps == self.rules.probes:
            return None
        thresholds = {key for bracket in self.brackets for key in self._thresholds(*bracket)}
        return (Cells(0, (self.rules.bracket[0], *sorted(thresholds))),)

    def fold(self, totals: Sequence[int]) -> NoisySearchState:
        """Where the search stands once the totals, one a cell, are known; whatever they are, it goes on.

        Raises:
            Impossible: not as many totals as were asked for.
        """
        assert self.question is not None, "a search that is over asks nothing"
        (cells,) = self.question
        if len(totals) != cells.numbers:
            raise Impossible(f"{len(totals)} totals for a question of {cells.numbers}")
        running = accumulate(map(signed, totals))
        counted = list(zip(cells.edges[1:], running, strict=True))
        pairs = zip(self.brackets, self.rules.ranks, strict=True)
        narrowed = tuple(_narrow(bracket, rank, counted) for bracket, rank in pairs)
        return replace(self, steps=self.steps + 1, brackets=narrowed)

    @property
    def answers(self) -> tuple[int | None, ...]:
        """Of each rank, the key of the answer; None while it is not known."""
        return tuple(b if self.question is None else None for _, b in self.brackets)

    def own_values(self, own: OwnValues) -> OwnValues:
        """A participant's values, as the question is about them: there are no coordinates to come."""
        return own

    def value(self, goal: int = 0) -> float:
        """The answer for a rank, once the last probe is over: a multiple of the resolution."""
        assert self.question is None, "not known yet"
        return self.rules.keys.value(self.brackets[goal][1])

    def _thresholds(self, a: int, b: int) -> Iterator[int]:
        if b - a == 1:
            return iter((b,))
        return (key for key in by_key(a, b, self.rules.arity) if a < key)


def _narrow(bracket: tuple[int, int], rank: int, counted: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The first cell of a bracket up to whose upper end there are as many values as the rank says; else the last."""
    a, b = bracket
    inside = [(key, count) for key, count in counted if a < key < b]
    for (low, _), (high, count) in pairwise([(a, 0), *inside]):
        if count >= rank:
            return low, high
    return (inside[-1][0] if inside else a), b


def signed(total: int) -> int:
    """A number modulo 2^64 as the one nearest to 0."""
    return (total + SIGN) % MODULUS - SIGN


AnyRules = Rules | NoisyRules
AnySearch = SearchState | NoisySearchState


def begin_search(rules: AnyRules) -> AnySearch:
    """A search by these rules, before its first probe."""
    return NoisySearchState.begin(rules) if isinstance(rules, NoisyRules) else SearchState.begin(rules)

"""Which c? What the iteration costs and gives away at several, beside the search, and which of them to choose.

Rules:
- A charter's own choices but for c: μ where it starts, σ = 0.1, and the search that ends the iteration.
- Run k of every row has the same values, and z(0) from the same numbers, so that rows are compared run by run.
- The recommended row is the quickest of those that give away hardly more than the least: by no more than its error.
  Where several runs on the same values are planned, bits are those that these give away together. Of networks that are
  too large for bits, it is the quickest of those that expose the fewest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midst.errors import InputError
from midst.graphs import Graph
from midst.methods import Consensus, Method, Search
from midst.privacy.adversaries import Adversary
from midst.privacy.priors import Prior
from midst.problems import Problem
from midst.studies.expectation import Expectation, expect, with_sign

CS = (0.3, 1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True)
class Plan:
    """The rows of a plan, and what to do.

    Attributes:
        methods: the search, and the iteration by each c.
    """

    methods: tuple[Expectation, ...]

    @property
    def recommended(self) -> Expectation:
        """The row to choose."""
        return _choose(self.methods)

    @property
    def reason(self) -> str:
        """The reason for that row, in a line."""
        best, others = self.recommended, self.methods[1:]
        return _argue(best, self.methods) + (f". With consensus, {_argue(_choose(others), others)}" * (best.c is None))


def make_plan(
    graph: Graph,
    bounds: tuple[float, float] | None,
    prior: Prior,
    *,
    adversary: Adversary | None = None,
    runs: int = 20,
    repeats: int = 1,
    seed: int = 0,
    cs: Sequence[float] = CS,
) -> Plan:
    """Simulate the search, and the iteration by several c, and recommend one of them.

    Args:
        graph: who talks to whom.
        bounds: public, as for `expect`.
        prior: of every value.
        adversary: who listens; participant 0, and nobody else, if not given.
        runs: of each, on different values.
        repeats: how many runs on the same values are planned.
        seed: of everything random.
        cs: the values of c, in units of 1 / the public scale.

    Raises:
        InputError: the numbers of runs make no sense, or the adversary does not fit the graph.
    """
    if runs < 2:
        raise InputError("at least 2 runs are needed to tell an average from chance")
    if not cs:
        raise InputError("give at least one c")
    known = Problem(graph, [prior.quantile(0.5)] * graph.n, bounds=bounds, scale=None if bounds else prior.scale)
    methods: tuple[Method, ...] = (Search(), *(Consensus(c / float(known.scale)) for c in cs))
    found = expect(graph, bounds, prior, adversary=adversary, methods=methods, runs=runs, repeats=repeats, seed=seed)
    return Plan(tuple(found))


def _choose(rows: Sequence[Expectation]) -> Expectation:
    least = min(rows, key=_given_away)
    enough = _given_away(least) + (least.bits_error or 0)
    return min((row for row in rows if _given_away(row) <= enough), key=lambda row: row.most_rounds)


def _given_away(row: Expectation) -> float:
    return row.exposed / row.honest if row.joint_bits is None else row.joint_bits


def _argue(row: Expectation, rows: Sequence[Expectation]) -> str:
    name = row.method if row.c is None else f"c = {row.c:.3g}"
    told = with_sign(row.joint_bits, row.joint_kind)
    figure = f"{told} bits a node" if told else f"{row.exposed / row.honest:.0%} exposed"
    together = f" by {row.repeats} runs together" if row.repeats > 1 else ""
    amount = "least" if row == min(rows, key=_given_away) else "hardly more than the least, and is quicker"
    return f"{name} gives away {amount}: {figure}{together}, in {row.rounds:g} rounds"

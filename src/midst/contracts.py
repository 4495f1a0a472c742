"""What an objective, an engine or an algorithm of one's own must keep to, as functions that try it.

    from midst.contracts import check_objective
    check_objective(MyObjective())      # an AssertionError says what is wrong, and nothing is said where all is well

midst's own are tried by the same functions in its tests. They try many numbers, and prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from midst import graphs
from midst.algorithms import Algorithm, Inbox, Local, Message, Outbox, Run, State, run_algorithm
from midst.engines import Engine, reference
from midst.methods import Certified, Consensus
from midst.normals import EdgeNormals
from midst.objectives import AuditedObjective, Mean, Objective, OwnObjective, Quantile
from midst.problems import Problem
from midst.protocol.node import plain
from midst.robust import Huber
from midst.solving import solve
from midst.system import assemble, draw_z0, settle
from midst.types import Array, Branch

DrawValues = Callable[[np.random.Generator, int], Array]  # so many numbers such as nodes may hold

_CLOSE = 1e-9  # relative: what rounding may do to a few operations, and to a few more of a minimiser that iterates
_LONGEST = 5  # list
_WALK = 30  # iterations for which engines are compared
_STEPS = (1e-3, 0.1, 1.0, 30.0)  # by which a value is moved, to see whether x tells


# Objectives


def check_objective(objective: OwnObjective, *, values: DrawValues | None = None, rng: int = 0) -> None:
    """Try whether an objective of one's own is what midst takes it for.

    - `subgradients` rise with x, and are proportional to the weight;
    - `minimise` finds the x at which −S − cd·x is one of them;
    - both give for all nodes at once what they give for each by itself, and leave what they are given as it was;
    - what `minimise` says that x tells is so, and what `values_behind` says, where there is one: values are moved, to
      see whether x moves too;
    - small networks come to a certified answer, by all engines alike.

    Args:
        objective: to be tried.
        values: draws what nodes may hold; normal numbers with a standard deviation of 3 if not given.
        rng: the seed of what is drawn.

    Raises:
        AssertionError: it is not; the text says how.
    """
    is_one = isinstance(objective, OwnObjective) and not isinstance(objective, type)
    assert is_one, "an objective has a name, lists, minimise and subgradients: see midst.objectives.OwnObjective"
    draw = values if values is not None else lambda generator, count: generator.normal(scale=3.0, size=count)
    drawn = _draw(objective, draw, np.random.default_rng(rng))
    _check_subgradients(objective, drawn)
    x, branch = _check_minimiser(objective, drawn)
    _check_one_by_one(objective, drawn, x, branch)
    if branch is not None and not objective.lists:
        _check_branches(objective, drawn, x, branch)
    if isinstance(objective, AuditedObjective):
        assert branch is not None, "values_behind says what x tells; minimise must, too"
        _check_values_behind(objective, drawn, x, branch)
    _check_networks(objective, draw, np.random.default_rng(rng))


@dataclass(frozen=True, eq=False, repr=False)
class _Drawn:
    """What an objective is asked about: many nodes."""

    s: Array
    w: Array
    S: Array
    cd: Array


def _draw(objective: OwnObjective, draw: DrawValues, rng: np.random.Generator) -> _Drawn:
    count = 400
    s = draw(rng, count)
    if objective.lists:
        s = draw(rng, count * _LONGEST).reshape(count, _LONGEST)
        s = np.where(np.arange(_LONGEST) < rng.integers(1, _LONGEST + 1, (count, 1)), s, np.nan)
    w = rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], count)
    cd = np.exp(rng.normal(scale=1.5, size=count))
    near = np.nanmean(s.reshape(count, -1), axis=1) + rng.normal(scale=2.0, size=count)
    return _Drawn(s, w, -cd * near, cd)  # x would be `near` if there were no f


def _check_subgradients(objective: OwnObjective, drawn: _Drawn) -> None:
    x = np.linspace(np.nanmin(drawn.s) - 1.0, np.nanmax(drawn.s) + 1.0, 101)
    rows = [objective.subgradients(drawn.s, drawn.w, np.full(len(drawn.w), each)) for each in x]
    least, greatest = (np.array([row[k] for row in rows], np.float64) for k in (0, 1))
    assert least.shape == greatest.shape == (len(x), len(drawn.w)), "subgradients: one least and one greatest a node"
    assert np.isfinite(least).all(), "subgradients: one is not finite"
    assert np.isfinite(greatest).all(), "subgradients: one is not finite"
    room = _CLOSE * (1 + np.abs(least).max())
    assert (least <= greatest + room).all(), "subgradients: the least is greater than the greatest"
    assert (greatest[:-1] <= least[1:] + room).all(), "subgradients: they fall as x rises, so f is not convex"
    for before, after in zip((least[50], greatest[50]), _at(objective, drawn, x[50], factor=2.0), strict=True):
        assert np.allclose(2 * before, after, rtol=_CLOSE, atol=room), "subgradients: not proportional to the weight"


def _at(objective: OwnObjective, drawn: _Drawn, x: float, factor: float) -> tuple[Array, Array]:
    return objective.subgradients(drawn.s, factor * drawn.w, np.full(len(drawn.w), x))


def _check_minimiser(objective: OwnObjective, drawn: _Drawn) -> tuple[Array, Branch | None]:
    given = tuple(each.copy() for each in (drawn.s, drawn.w, drawn.S, drawn.cd))
    x, branch = objective.minimise(*given)
    for before, after in zip((drawn.s, drawn.w, drawn.S, drawn.cd), given, strict=True):
        assert np.array_equal(before, after, equal_nan=True), "minimise: changes what it is given"
    assert np.shape(x) == drawn.S.shape, "minimise: one x for every S"
    assert np.isfinite(x).all(), "minimise: an x is not finite"
    g, room = -drawn.S - drawn.cd * x, _CLOSE * (1 + np.abs(drawn.S) + drawn.cd * np.abs(x))
    aside = _CLOSE * (1 + np.abs(x))  # a kink that x has missed by rounding counts
    least = objective.subgradients(drawn.s, drawn.w, x - aside)[0]
    greatest = objective.subgradients(drawn.s, drawn.w, x + aside)[1]
    right = (least - room <= g) & (g <= greatest + room)
    assert right.all(), f"minimise: −S − cd·x is no subgradient of f at x, in {(~right).sum()} of {len(right)} cases"
    if branch is not None:
        assert np.shape(branch) == x.shape, "minimise: one branch for every x"
        assert np.isin(branch, (-1, 0, 1)).all(), "minimise: a branch is −1, 0 or 1, or None for all"
    return x, branch


def _check_one_by_one(objective: OwnObjective, drawn: _Drawn, x: Array, branch: Branch | None) -> None:
    both = objective.subgradients(drawn.s, drawn.w, x)
    for i in range(0, len(x), 7):
        w, S, cd, at = (plain(each[i]) for each in (drawn.w, drawn.S, drawn.cd, x))
        s = plain(drawn.s[i])
        alone, told = objective.minimise(s, w, S, cd)
        assert np.shape(alone) == (), "minimise: of one node, in floats, x is one number"
        assert np.isclose(alone, at, rtol=_CLOSE, atol=_CLOSE), "minimise: one node by itself has another x"
        assert (told is None) == (branch is None), "minimise: a branch for some, and None for others"
        assert branch is None or told == branch[i], "minimise: one node by itself has another branch"
        same = np.allclose(objective.subgradients(s, w, at), [each[i] for each in both], rtol=_CLOSE, atol=_CLOSE)
        assert same, "subgradients: one node by itself has others"
    if not objective.lists:
        _check_coordinates(objective, drawn)


def _check_coordinates(objective: OwnObjective, drawn: _Drawn) -> None:
    """Of vectors every coordinate is by itself."""
    s, S, cd = (np.stack([each, each[::-1]], axis=1) for each in (drawn.s, drawn.S, drawn.cd))
    w = np.ones((len(s), 1))
    together, _ = objective.minimise(s, w, S, cd)
    assert np.shape(together) == s.shape, "minimise: of vectors, one x a coordinate"
    apart, _ = objective.minimise(s[:, 0], w[:, 0], S[:, 0], cd[:, 0])
    assert np.allclose(together[:, 0], apart, rtol=_CLOSE, atol=_CLOSE), "minimise: a coordinate by itself differs"


def _check_branches(objective: OwnObjective, drawn: _Drawn, x: Array, branch: Branch) -> None:
    """Move values: where x tells no more than a bound, it stays as it was however far they are moved beyond."""
    counts = drawn.w > 0
    for step in _STEPS:
        for side in (-1, 1):
            moved, _ = objective.minimise(drawn.s + side * step, drawn.w, drawn.S, drawn.cd)
            same = np.isclose(moved, x, rtol=1e-12, atol=1e-12)
            beyond = counts & (branch == -side)  # a bound from below, −1, lets s rise
            assert same[beyond].all(), f"minimise: branch {-side} says that x tells a bound only, and it tells more"
            if step >= 0.1:
                known = counts & (branch == 0)
                assert not same[known].any(), "minimise: branch 0 says that x tells s, and another s has the same x"


def _check_values_behind(objective: AuditedObjective, drawn: _Drawn, x: Array, branch: Branch) -> None:
    """All values that have this x under this S, and no others."""
    counts = drawn.w > 0
    s, w, S, cd, x = (each[counts] for each in (drawn.s, drawn.w, drawn.S, drawn.cd, x))
    branch = branch[counts]
    lower, upper = objective.values_behind(w, x, -S - cd * x, branch)
    room = 1e-7 * (1 + np.abs(s) + np.abs(x))
    assert ((lower <= s + room) & (s - room <= upper)).all(), "values_behind: the value itself is not among them"
    assert (upper - lower <= room)[branch == 0].all(), "values_behind: where the branch is 0, both ends are s"
    low, high = np.maximum(lower, s - 50.0), np.minimum(upper, s + 50.0)
    for share in np.linspace(0.0, 1.0, 11):
        other, _ = objective.minimise(low + share * (high - low), w, S, cd)
        assert np.allclose(other, x, rtol=1e-7, atol=1e-7), "values_behind: some value among them has another x"
    for end, side in ((lower, -1), (upper, 1)):
        beyond = np.where(np.isfinite(end), end, 0.0) + side * 0.01 * (1 + np.abs(s))
        other, _ = objective.minimise(beyond, w, S, cd)
        differs = ~np.isclose(other, x, rtol=1e-12, atol=1e-12) | ~np.isfinite(end)
        assert differs.all(), "values_behind: some value beyond them has the same x"


def _check_networks(objective: OwnObjective, draw: DrawValues, rng: np.random.Generator) -> None:
    for graph in (graphs.ring(5), graphs.complete(6), graphs.rgg(9, rng=1)):
        held: Any = draw(rng, graph.n)
        if objective.lists:
            held = [draw(rng, int(rng.integers(1, _LONGEST + 1))) for _ in range(graph.n)]
        problem = Problem(graph, held, objective=objective, pooled=objective.lists)
        method = Consensus(stop=Certified(1e-3), limit=50_000)
        results = [solve(problem, method, engine=engine, rng=1, throw=False) for engine in ("arrays", "reference")]
        for result in results:
            assert result.certified, (
                f"{graph.name} of {graph.n}: no certified answer in {result.iterations:,} iterations"
            )
            assert result.certificate is not None
            assert result.error <= result.certificate.tolerance, "the answer that was certified is wrong"
        assert results[0].iterations == results[1].iterations, "engines take another number of iterations"
        one, other = (result.trace.x[-1] for result in results)
        assert np.allclose(one, other, rtol=1e-6, atol=1e-6), "engines come to another x"


# Engines


def check_engine(iterate: Engine, *, own: bool = True, tolerance: float = 1e-11) -> None:
    """Try whether an engine walks the way of Algorithm 1, node by node, as `engines/reference.py` has it.

    Args:
        iterate: from a system to x(0), x(1), …, with the branches.
        own: whether it takes objectives of people's own.
        tolerance: how far x may be off, relative to the largest.

    Raises:
        AssertionError: it does not; the text says where.
    """
    objectives: list[Objective] = [Quantile(0.5), Quantile(0.9), Quantile(1), Mean()]
    for objective in [*objectives, Huber(0.7)] if own else objectives:
        for graph in (graphs.path(2), graphs.ring(5), graphs.rgg(9, rng=1)):
            for shape in ((graph.n,), (graph.n, 2)):
                for theta in (0.5, 0.9):
                    _check_walk(iterate, graph, objective, shape, theta, tolerance)


def _check_walk(
    iterate: Engine, graph: graphs.Graph, objective: Objective, shape: tuple[int, ...], theta: float, tolerance: float
) -> None:
    rng = np.random.default_rng(3)
    problem = Problem(graph, rng.normal(size=shape), objective=objective, weights=rng.integers(1, 4, graph.n))
    parameters = settle(problem, c=0.7, theta=theta, mu=-1.0, sigma=1.0)
    system = assemble(problem, parameters, draw_z0(graph, parameters, EdgeNormals.drawn(rng, shape=shape[1:])))
    where = f"{problem.title} over {graph.name} of {graph.n}, theta {theta:g}"
    walks = [
        [(x.copy(), branch.copy()) for x, branch in islice(each(system), _WALK)]
        for each in (iterate, reference.iterate)
    ]
    size, other = max(np.abs(x).max() for x, _ in walks[1]), 0
    for t, ((x, branch), (right, right_branch)) in enumerate(zip(*walks, strict=True)):
        assert x.shape == branch.shape == right.shape, f"{where}: x({t}) or its branches have another shape"
        assert np.abs(x - right).max() <= tolerance * size, f"{where}: x({t}) is not that of Algorithm 1"
        other += int((branch != right_branch).sum())
    # where s lies at the very end of its interval, to rounding, either branch will do
    assert other <= 0.01 * _WALK * problem.values.size, f"{where}: the branches are not those of Algorithm 1"


# Algorithms


def check_algorithm(
    algorithm: Algorithm[State],
    objective: Objective | None = None,
    *,
    rounds: int = 500,
    tolerance: float = 0.05,
    rng: int = 0,
) -> None:
    """Try whether an algorithm of one's own keeps to the rules of `midst.algorithms`, and finds what it is for.

    - it writes to neighbours only, finite numbers or bytes, and its estimates are finite;
    - the same seed gives the same messages, again and again; the same step taken twice gives the same twice, so it
      changes nothing that it was given;
    - nobody knows what nobody has sent: what is far away makes no difference before it can have been heard of;
    - in the end every node has the answer; for a quantile also of skewed values, whose mean is far from it.

    Args:
        algorithm: to be tried.
        objective: what it finds; the low median if not given.
        rounds: after how many it has.
        tolerance: to within how much, in units of the public scale.
        rng: the seed of what is drawn.

    Raises:
        AssertionError: it does not; the text says how.
        InputError: it refuses a problem, or it was stopped because of what it sent.
    """
    drawn = np.random.default_rng(rng)
    for graph in (graphs.ring(5), graphs.complete(6), graphs.rgg(9, rng=1)):
        problem = Problem(graph, drawn.normal(size=graph.n), objective=objective, bounds=(-5, 5))
        where = f"{algorithm.name}, {graph.name} of {graph.n}"
        one, again = (run_algorithm(problem, algorithm, 6, rng) for _ in range(2))
        assert _have_sent_the_same(one, again), f"{where}: the same seed gives other messages"
        run_algorithm(problem, _Twice(algorithm, where), 6, rng)
        skewed = problem.with_values(np.where(np.arange(graph.n) % 3 == 1, 4.0, -3.0) + problem.values / 20)
        for each in (problem, skewed) if isinstance(problem.objective, Quantile) else (problem,):
            off = float(run_algorithm(each, algorithm, rounds, rng, keep=False).errors[-1] / problem.scale)
            why = "; the values are skewed: does it average?" if each is skewed else ""
            assert off <= tolerance, f"{where}: after {rounds:,} rounds a node is {off:.3g} scales from the answer{why}"
    _check_hearsay(algorithm, objective, rng)


@dataclass(frozen=True)
class _Twice:
    """An algorithm of which every step is taken twice."""

    algorithm: Algorithm[Any]
    where: str

    @property
    def name(self) -> str:
        return self.algorithm.name

    def begin(self, local: Local, rng: np.random.Generator) -> tuple[Any, Outbox]:
        self._compare(self.algorithm.begin(local, deepcopy(rng)), self.algorithm.begin(local, deepcopy(rng)))
        return self.algorithm.begin(local, rng)

    def step(self, local: Local, state: Any, inbox: Inbox, rng: np.random.Generator) -> tuple[Any, Outbox]:
        first = self.algorithm.step(local, state, dict(inbox), deepcopy(rng))
        self._compare(first, self.algorithm.step(local, state, dict(inbox), deepcopy(rng)))
        return self.algorithm.step(local, state, inbox, rng)

    def estimate(self, state: Any) -> float | Array:
        return self.algorithm.estimate(state)

    def _compare(self, first: tuple[Any, Outbox], second: tuple[Any, Outbox]) -> None:
        same = _are_same(first[1], second[1]) and np.array_equal(self.estimate(first[0]), self.estimate(second[0]))
        assert same, f"{self.where}: the same step taken twice gives two things: it changes what it was given"


def _check_hearsay(algorithm: Algorithm[State], objective: Objective | None, rng: int) -> None:
    """Of a path, move the value at one end: whoever is d steps away sends the same as before in the first d rounds."""
    graph, drawn = graphs.path(7), np.random.default_rng(rng)
    values = drawn.normal(size=graph.n)
    problem = Problem(graph, values, objective=objective, bounds=(-5, 5))
    moved = problem.with_values(np.where(np.arange(graph.n) == 0, values + 1.5, values))
    one, other = (run_algorithm(each, algorithm, graph.n, rng) for each in (problem, moved))
    for node in range(1, graph.n):
        for round, (sent, instead) in enumerate(zip(one.sent[:node], other.sent[:node], strict=True)):
            assert _are_same(sent[node], instead[node]), (
                f"{algorithm.name}: node {node} of a path knew in round {round + 1} what node 0 holds, and nobody can "
                "have told it"
            )


def _have_sent_the_same(one: Run, other: Run) -> bool:
    return all(all(map(_are_same, *sent)) for sent in zip(one.sent, other.sent, strict=True))


def _are_same(one: Outbox, other: Outbox) -> bool:
    return one.keys() == other.keys() and all(_is_same(one[j], other[j]) for j in one)


def _is_same(one: Message, other: Message) -> bool:
    if isinstance(one, bytes) or isinstance(other, bytes):
        return one == other
    return np.array_equal(one, other)

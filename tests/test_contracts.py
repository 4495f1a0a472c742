"""What anybody can try theirs by: midst's own pass, and planted bugs are named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from test_algorithms import Averaging

from midst import Mean, Quantile
from midst.contracts import check_algorithm, check_engine, check_objective
from midst.engines import ENGINES
from midst.robust import Huber, ListMedian

# Ours


@pytest.mark.parametrize("objective", [Huber(0.1), Huber(1.0), Huber(30.0), ListMedian()], ids=str)
def test_objectives_that_are_shipped(objective):
    check_objective(objective)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_that_are_shipped(engine):
    check_engine(ENGINES[engine])


def test_an_algorithm():
    check_algorithm(Averaging(), Mean())


# Theirs, with bugs


@dataclass(frozen=True)
class LogCosh:
    """Smooth and robust: f(x) = w·log cosh(x − s); its minimiser is found by bisection."""

    name = "log-cosh location"
    lists = False

    def minimise(self, s, w, S, cd):
        low, high = (-w - S) / cd, (w - S) / cd
        for _ in range(80):
            middle = low / 2 + high / 2
            beyond = w * np.tanh(middle - s) + S + cd * middle > 0
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        return low / 2 + high / 2, None

    def subgradients(self, s, w, x):
        slope = w * np.tanh(x - s)
        return slope, slope


def test_one_of_somebodys_own():
    check_objective(LogCosh())
    check_objective(LogCosh(), values=lambda rng, count: rng.uniform(0, 4, count), rng=5)


class Curved(LogCosh):
    def subgradients(self, s, w, x):
        return (w * np.sin(x - s),) * 2


class Halved(LogCosh):
    def subgradients(self, s, w, x):
        return (np.tanh(x - s),) * 2


class Crossed(LogCosh):
    def subgradients(self, s, w, x):
        slope = w * np.tanh(x - s)
        return slope + 1e-3, slope - 1e-3


class Off(LogCosh):
    def minimise(self, s, w, S, cd):
        x, branch = super().minimise(s, w, S, cd)
        return x + 1e-4, branch


class Writing(LogCosh):
    def minimise(self, s, w, S, cd):
        found = super().minimise(s, w, S, cd)
        if isinstance(S, np.ndarray):
            S[0] += 1.0
        return found


class Mixing(Huber):
    """Looks at other nodes."""

    def minimise(self, s, w, S, cd):
        x, branch = super().minimise(s, w, S, cd)
        return x, branch if np.ndim(S) == 0 else np.roll(branch, 1)


class Lying(Huber):
    """Says that nobody is exposed."""

    def minimise(self, s, w, S, cd):
        x, branch = super().minimise(s, w, S, cd)
        return x, np.where(branch == 0, 1, branch)


class Panicking(Huber):
    """Says that everybody is."""

    def minimise(self, s, w, S, cd):
        x, branch = super().minimise(s, w, S, cd)
        return x, 0 * branch


class Odd(Huber):
    def minimise(self, s, w, S, cd):
        x, branch = super().minimise(s, w, S, cd)
        return x, branch + 1


class TooWide(Huber):
    def values_behind(self, w, x, g, branch):
        lower, upper = super().values_behind(w, x, g, branch)
        return np.where(branch == 0, lower, lower - 0.5), np.where(branch == 0, upper, upper + 0.5)


class TooNarrow(Huber):
    def values_behind(self, w, x, g, branch):
        lower, upper = super().values_behind(w, x, g, branch)
        return np.where(branch == 0, lower, lower + 0.1), np.where(branch == 0, upper, upper - 0.1)


class Dropping(Huber):
    """Bounds that are a half of what is known."""

    def values_behind(self, w, x, g, branch):
        lower, upper = super().values_behind(w, x, g, branch)
        return np.where(branch == 0, lower, lower), np.where(branch > 0, np.where(w > 1, upper, upper + 1.0), upper)


@pytest.mark.parametrize(
    ("objective", "text"),
    [
        (Mean(), "an objective has a name"),
        (LogCosh, "an objective has a name"),
        (Curved(), "f is not convex"),
        (Halved(), "not proportional to the weight"),
        (Crossed(), "the least is greater than the greatest"),
        (Off(), "no subgradient of f at x, in 4.. of 400 cases|no subgradient of f at x, in [23].. of 400"),
        (Writing(), "changes what it is given"),
        (Mixing(1.0), "one node by itself has another branch"),
        (Lying(1.0), "says that x tells a bound only, and it tells more"),
        (Panicking(1.0), "another s has the same x"),
        (Odd(1.0), "a branch is −1, 0 or 1"),
        (TooWide(1.0), "some value among them has another x"),
        (TooNarrow(1.0), "the value itself is not among them|some value beyond them has the same x"),
        (Dropping(1.0), "some value among them has another x"),
    ],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
def test_planted_bugs_of_objectives(objective, text):
    with pytest.raises(AssertionError, match=text):
        check_objective(objective)


def late(system):
    steps = ENGINES["arrays"](system)
    next(steps)
    yield from steps


def rough(system):
    for x, branch in ENGINES["arrays"](system):
        yield x.astype(np.float32).astype(np.float64), branch


def blind(system):
    for x, branch in ENGINES["arrays"](system):
        yield x, np.ones_like(branch)


def flat(system):
    for x, branch in ENGINES["arrays"](system):
        yield x.reshape(-1), branch.reshape(-1)


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        (late, r"x\(0\) is not that of Algorithm 1"),
        (rough, r"x\(0\) is not that of Algorithm 1"),
        (blind, "the branches are not those of Algorithm 1"),
        (flat, "have another shape"),
    ],
)
def test_planted_bugs_of_engines(engine, text):
    with pytest.raises(AssertionError, match=text):
        check_engine(engine)


class Slow(Averaging):
    def step(self, local, x, inbox, rng):
        return x, dict.fromkeys(local.neighbours, x)


@dataclass(frozen=True)
class Remembering(Averaging):
    """Keeps something between runs that is no node's state."""

    seen: tuple = ([],)

    def step(self, local, x, inbox, rng):
        self.seen[0].append(x)
        x, _ = super().step(local, x, inbox, rng)
        return x, dict.fromkeys(local.neighbours, x + 1e-9 * len(self.seen[0]))


class Changing(Averaging):
    """Writes into the state that it is given."""

    def begin(self, local, rng):
        return [local.value], dict.fromkeys(local.neighbours, local.value)

    def step(self, local, state, inbox, rng):
        state[0], outbox = super().step(local, state[0], inbox, rng)
        return state, outbox

    def estimate(self, state):
        return state[0]


def make_telepath():
    minds = {}

    class Telepath(Averaging):
        """Reads the others' minds."""

        name = "telepath"

        def begin(self, local, rng):
            minds[local.node] = local.value
            return super().begin(local, rng)

        def step(self, local, x, inbox, rng):
            mean = sum(minds[i] for i in range(local.graph.n)) / local.graph.n
            return mean, dict.fromkeys(local.neighbours, mean)

    return Telepath()


@pytest.mark.parametrize(
    ("algorithm", "text"),
    [
        (Slow(), "after 500 rounds a node is .* scales from the answer"),
        (Remembering(), "the same seed gives other messages"),
        (Changing(), "the same step taken twice gives two things"),
        (make_telepath(), r"telepath: node \d of a path knew in round 2 what node 0 holds"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_planted_bugs_of_algorithms(algorithm, text):
    with pytest.raises(AssertionError, match=text):
        check_algorithm(algorithm, Mean())


@pytest.mark.parametrize("objective", [None, Quantile(0.5), Quantile(0.5, "inverted_cdf_high"), Quantile(0.3)])
def test_an_algorithm_that_averages_finds_no_quantile(objective):
    """The mean of normal values is near the median, and passes at a loose tolerance; that of skewed values does not."""
    with pytest.raises(AssertionError, match="the values are skewed: does it average"):
        check_algorithm(Averaging(), objective, rounds=100, tolerance=0.45)

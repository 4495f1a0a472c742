"""Distributed subgradient steps: everybody averages with its neighbours and steps towards its own value.

    x_i(t+1) = Σ_j W_ij x_j(t) − α_t sign(x_i(t) − s_i),    x_i(0) public,    α_t = a / √(t + 1)

with W the Metropolis weights of the graph (Nedić and Ozdaglar, "Distributed subgradient methods for multi-agent
optimization", 2009, for f_i(x) = |x − s_i|). In round t all x(t) are sent; the last x is the answer, and is not.

What that gives away: W, α and x(0) are public, so whoever hears all x(t) and x_i(t+1) takes the one from the other and
has sign(x_i(t) − s_i): on which side of x_i(t) the value lies. After a run it lies between the largest x_i(t) that is
below it and the smallest that is above, and that is all that was said: the posterior is the prior cut to it, of each
node by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from scipy import sparse

from midst.baselines.grid import PublicGrid
from midst.baselines.outcome import Outcome, Stopwatch, first_settled
from midst.graphs import Graph
from midst.net.sizes import FRAME_HEAD, NUMBER
from midst.problems import Problem
from midst.types import Array

# a, in units of the public scale. Of 0.01, 0.03, 0.1, 0.3 and 1, tried on problems drawn as those of `midst compare`:
# it ended nearest on most graphs and sizes, not on all. Larger ones tell more, and 0.01 is often not there in time.
STEP = 0.03


def step_size(t: int, scale: float) -> float:
    """α_t."""
    return STEP * scale / sqrt(t + 1)


def averaging(graph: Graph) -> Callable[[Array], Array]:
    """W, as what it makes of rows of x: 1 / (1 + the larger degree) of each neighbour, and the rest of oneself."""
    if graph.is_complete:
        return lambda x: np.broadcast_to(x.mean(axis=-1, keepdims=True), x.shape)
    shares = 1 / (1 + np.maximum(graph.degree[graph.source], graph.degree[graph.target]))
    others = sparse.csr_array((shares, (graph.source, graph.target)), shape=(graph.n, graph.n))
    weights = sparse.csr_array(others + sparse.diags_array(1 - others.sum(axis=1)))
    return lambda x: np.asarray((weights @ x.T).T)


def send_all(problem: Problem, rounds: int) -> Array:
    """Every x of so many rounds, (rounds + 1, n): all nodes at once."""
    average, scale = averaging(problem.graph), float(problem.scale)
    x = np.empty((rounds + 1, problem.graph.n))
    x[0] = float(problem.centre)
    for t in range(rounds):
        x[t + 1] = average(x[t]) - step_size(t, scale) * np.sign(x[t] - problem.values)
    return x


def read_bounds(graph: Graph, scale: float, messages: Array) -> tuple[Array, Array]:
    """Between which numbers each value lies, from all that was sent: both the value itself where a sign was 0."""
    steps = np.array([step_size(t, scale) for t in range(len(messages) - 1)])
    sign = np.rint((averaging(graph)(messages[:-1]) - messages[1:]) / steps[:, None])
    at = messages[:-1]
    low = np.max(np.where(sign <= 0, at, -np.inf), axis=0, initial=-np.inf)
    high = np.min(np.where(sign >= 0, at, np.inf), axis=0, initial=np.inf)
    return low, high


def run_subgradient(problem: Problem, grid: PublicGrid, rounds: int, tolerance: float) -> Outcome:
    """The median by subgradient steps, up to the best moment to stop at, after so many rounds at most.

    The tolerance, within which every x is to stay, is in the units of the data.
    """
    watch = Stopwatch()
    x = send_all(problem, rounds)
    seconds = watch.read()
    last = first_settled(problem.distance(x).max(axis=1), tolerance)
    low, high = read_bounds(problem.graph, float(problem.scale), x[: max(last, 1)])
    told = low == high
    bits, single = grid.bits_between(np.where(told, low - grid.resolution / 2, low), high + told * grid.resolution / 2)
    carried = last * 2 * problem.graph.edges / problem.graph.n * (FRAME_HEAD + NUMBER)
    return Outcome(x[last], last, carried, seconds * last / rounds, int(np.sum(single)), float(bits.mean()))

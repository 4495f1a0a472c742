"""Asynchronous ADMM: one edge at a time wakes up, and its two ends average; two variables a node.

After AsylADMM (van Elst, Colin and Clémençon, arXiv 2601.20571, 2026), derived here for f_i(x) = |x − s_i|:

Minimise Σ f_i(x_i) with x_i = z_e for both ends of every edge e. The augmented Lagrangian, with scaled duals u_{i,e},
is Σ f_i(x_i) + ρ/2 Σ_i Σ_e (x_i − z_e + u_{i,e})². Its minimum over z_e is the mean of both x (the duals of an edge add
up to zero), the duals grow by x_i − z_e, and over x_i it is

    x_i = argmin |x − s_i| + ρ d_i/2 (x − z̄_i + μ_i)² = clip(s_i, v − 1/(ρ d_i), v + 1/(ρ d_i)),    v = z̄_i − μ_i

where z̄_i and μ_i are the means of z_e and u_{i,e} over the d_i edges of i. Where one edge wakes up, its z_e takes the
place of z̄_i, and μ_i grows by the edge's share of the mean, (x_i − z_e) / d_i. Then Σ_i d_i μ_i stays 0, as it began:
where all x agree on one number, g_i = −ρ d_i μ_i is a subgradient of f_i there, and these add up to 0. So whatever the
x settle on is a median. That they do settle is measured here, not proved; for AsylADMM itself the paper has a proof in
a simplified setting with quadratic f_i. The steps, and x(0) = s, are those of published code for AsylADMM as well.

A round is as many wake-ups as there are edges: as many messages as in a round of a synchronous method.

What it gives away: x_i(0) = s_i, so the first message of everybody is its own value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from midst.baselines.grid import PublicGrid
from midst.baselines.outcome import Outcome, Stopwatch, first_settled
from midst.net.sizes import FRAME_HEAD, NUMBER
from midst.problems import Problem
from midst.types import Array, Ints

# in units of 1 / the public scale. Of 0.1, 0.3, 1, 3 and 10, tried on problems drawn as those of `midst compare`: it
# took the fewest rounds, or nearly, on all graphs and sizes.
RHO = 3.0


class Gossiped(NamedTuple):
    """What was sent, and where that led.

    Attributes:
        ends: the two ends of the edge that woke up, (wake-ups, 2).
        sent: what each of them sent the other.
        x: of all nodes before the first round and after each.
    """

    ends: Ints
    sent: Array
    x: Array


def gossip(problem: Problem, wake_ups: int, rng: np.random.Generator, rounds: int | None = None) -> Gossiped:
    """Wake up edges, one after the other, each as likely as any: so many, or as many as these rounds have."""
    graph = problem.graph
    once = graph.source < graph.target
    edges = np.column_stack([graph.source[once], graph.target[once]])
    if rounds is not None:
        wake_ups = min(wake_ups, rounds * len(edges))
    ends = edges[rng.integers(len(edges), size=wake_ups)]
    reach = (float(problem.scale) / (RHO * graph.degree)).tolist()
    share = (1 / graph.degree).tolist()
    s, x, mu = problem.values.tolist(), problem.values.tolist(), [0.0] * graph.n
    sent = np.empty((wake_ups, 2))
    kept = [list(x)]
    for k, (i, j) in enumerate(ends.tolist()):
        sent[k] = x[i], x[j]
        z = (x[i] + x[j]) / 2
        for node in (i, j):
            mu[node] += share[node] * (x[node] - z)
            v = z - mu[node]
            x[node] = min(max(s[node], v - reach[node]), v + reach[node])
        if (k + 1) % len(edges) == 0 or k + 1 == wake_ups:
            kept.append(list(x))
    return Gossiped(ends, sent, np.array(kept))


def run_async_admm(
    problem: Problem, grid: PublicGrid, rounds: int, wake_ups: int, tolerance: float, rng: np.random.Generator
) -> Outcome:
    """The median by asynchronous ADMM, up to the best moment to stop at.

    There are so many rounds or wake-ups at most, whichever comes first. The tolerance, within which every x is to stay,
    is in the units of the data.
    """
    watch = Stopwatch()
    ran = gossip(problem, wake_ups, rng, rounds)
    seconds = watch.read()
    last = first_settled(problem.distance(ran.x).max(axis=1), tolerance)
    edges, n = problem.graph.edges, problem.graph.n
    heard = min(last * edges, len(ran.ends))
    spoke = np.unique(ran.ends[:heard])  # whose first message was its own value
    bits = float(grid.bits_of_values(first_messages(ran, spoke)).sum()) / n
    carried = 2 * heard / n * (FRAME_HEAD + NUMBER)
    return Outcome(ran.x[last], heard / edges, carried, seconds * heard / len(ran.ends), len(spoke), bits)


def first_messages(ran: Gossiped, nodes: Ints) -> Array:
    """The first message of each of these nodes."""
    speakers, first = np.unique(ran.ends.ravel(), return_index=True)
    return np.asarray(ran.sent.ravel()[first[np.searchsorted(speakers, nodes)]])

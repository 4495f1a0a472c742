"""A trusted curator: all values go to one, who answers with a differentially private median (OpenDP).

The curator scores every point of the public grid by how far its rank is from the middle, adds noise to the scores and
tells the best (Smith 2011; McKenna and Sheldon 2020). It draws from the operating system, not from a seed.

What that gives away: to the curator, everything; to all others the answer. How likely an answer is depends on all
values together, and is not added up here over all that they can be. What ε promises is a bound, `most_bits`.
"""

from __future__ import annotations

from math import expm1, log
from typing import Any

from midst.baselines.grid import PublicGrid
from midst.baselines.outcome import Outcome, Stopwatch
from midst.errors import load_extra
from midst.net.sizes import FRAME_HEAD, NUMBER
from midst.problems import Problem

_CHANGED = 2  # one value is another: one is taken away, and one is added


def run_curator(problem: Problem, grid: PublicGrid, epsilon: float) -> Outcome:
    """The median as a curator tells it, to keep to ε.

    Raises:
        MissingExtra: OpenDP is not installed.
    """
    opendp = load_extra("opendp.prelude", "dp")
    watch = Stopwatch()
    opendp.enable_features("contrib")
    rows = opendp.vector_domain(opendp.atom_domain(T=float, nan=False), size=problem.graph.n)
    candidates = grid.points.tolist()

    def make(scale: float) -> Any:
        metric, measure = opendp.symmetric_distance(), opendp.max_divergence()
        return opendp.m.make_private_quantile(rows, metric, measure, candidates, 0.5, scale)

    scale = make(1.0).map(_CHANGED) / epsilon * (1 + 1e-9)  # what it costs is in proportion to 1 / scale
    measurement = make(scale)
    assert measurement.check(_CHANGED, epsilon), "OpenDP signs the claim itself"
    answer = float(measurement(problem.values.tolist()))
    seconds = watch.read()
    why = f"not derived: what the answer tells beyond its promise; at most {most_bits(epsilon):.2f} bits by epsilon"
    return Outcome(answer, 2, 2 * (FRAME_HEAD + NUMBER), seconds, 0, None, why)


def most_bits(epsilon: float) -> float:
    """What one answer that keeps to ε tells of a value, at most, whatever the prior.

    With r(v) = P(answer | v) / P(answer), whose mean over the prior is 1, the divergence is the mean of r·ln r, and no
    r is more than e^ε times another. r·ln r is convex, so the most is reached where r has but two values, m and m·e^ε;
    over their chances the most of that is u − 1 − ln u, with u = ε / (1 − e^−ε).
    """
    u = epsilon / -expm1(-epsilon)
    return (u - 1 - log(u)) / log(2)

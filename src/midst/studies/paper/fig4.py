"""Fig. 4: the larger c, the more nodes never send their value; and what that costs in iterations.

Fifteen nodes on a random geometric graph. A node's interval is 2/(c d_i) wide, and a step moves x by about as much: a
large c is hard to be caught by, and slow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from midst.plots.style import BLUE, GREEN, MARKERS, ORANGE, PURPLE
from midst.studies.paper.choices import FIFTEEN, plan
from midst.studies.paper.claims import (
    Claim,
    Interval,
    geometric_mean_of,
    is_positive,
    judge,
    mean_of,
    mean_share_of,
    over,
)
from midst.studies.paper.drawing import Figure, LogLocator, draw_ceiling, draw_interval, legend_below, panels
from midst.studies.paper.runs import Experiment, Outcome, StudySettings, measure_outcomes
from midst.types import Array, Row

C = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
RANGE = (
    replace(FIFTEEN, graph="ring"),
    replace(FIFTEEN, graph="complete"),
    replace(FIFTEEN, mu=-10.0),
    replace(FIFTEEN, sigma=10.0),
)
_DRAWN = {FIFTEEN: ("random geometric", BLUE), RANGE[0]: ("ring", ORANGE), RANGE[1]: ("complete", GREEN)} | {
    RANGE[2]: ("random geometric, μ = −10", PURPLE)
}


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of the figure.

    Attributes:
        measured: by experiment, the paper's first, and by c; each in the same order of runs.
    """

    measured: dict[Experiment, dict[float, Outcome]]


def run(settings: StudySettings) -> Data:
    """Every setting under every c."""
    wanted = {replace(experiment, c=c): runs for experiment, runs in plan(FIFTEEN, RANGE, settings).items() for c in C}
    found = measure_outcomes(wanted, settings)
    return Data({each: {c: found[replace(each, c=c)] for c in C} for each in (FIFTEEN, *RANGE)})


def claims(data: Data) -> list[Claim]:
    """What the paper says of the figure."""
    steps = {
        f"c = {low:g} → {high:g}": mean_of(after - before, within=(-1, 1))
        for (low, high), (before, after) in zip(pairwise(C), pairwise(_shares(data.measured[FIFTEEN])), strict=True)
    }
    least = min(steps.values(), key=lambda step: step.low)
    return [
        judge(
            "A larger c is safer (gain in the share of secure nodes when c grows tenfold).",
            over(data.measured, _slope),
            is_positive,
        ),
        judge(
            "It is so at every step from c = 0.1 to 30 (gain in the share of secure nodes, the least sure step first).",
            {"the least sure step": least} | steps,
            is_positive,
        ),
        judge(
            f"It is paid for in iterations (how many times those of c = 1 a proof takes at c = {C[-1]:g}).",
            over(data.measured, _price),
            lambda ratio: ratio.low > 1,
        ),
    ]


def draw(data: Data) -> Figure:
    """The share over c, and its price."""
    figure, (left, right) = panels("share of nodes that never send their value", "iterations to the proof, to 1e-6")
    for (experiment, (name, colour)), marker in zip(_DRAWN.items(), MARKERS, strict=False):
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5, "label": name}
        shares = [mean_share_of(row) for row in _shares(data.measured[experiment])]
        left.plot(C, [share.value for share in shares], **style)
        for c, share in zip(C, shares, strict=True):
            draw_interval(left, c, share, colour)
        iterations = [outcome.iterations for outcome in data.measured[experiment].values()]
        low, middle, high = np.quantile(iterations, [0.25, 0.5, 0.75], axis=1)
        right.fill_between(C, low, high, color=colour, alpha=0.15, linewidth=0)
        right.plot(C, middle, **style)
    draw_ceiling(left, FIFTEEN.n)
    left.set(ylabel="mean over the runs, 95% interval", ylim=(0, 1))
    right.set(ylabel="median and quartiles of the runs", yscale="log")
    right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter("{x:,.0f}")
    for axes in (left, right):
        axes.set(xlabel="c", xscale="log")
        axes.set_xticks(C, [f"{c:g}" for c in C])
        axes.minorticks_off()
        legend_below(axes, columns=2)
    return figure


def rows(data: Data) -> list[Row]:
    """A row a run: the share of secure nodes and the iterations at each c, under each setting."""
    return [
        {"at": experiment.apart_from(FIFTEEN), "c": c, "run": k}
        | {"secure_share": float(share), "iterations": int(outcome.iterations[k])}
        for experiment, outcomes in data.measured.items()
        for c, outcome in outcomes.items()
        for k, share in enumerate(outcome.secure_share)
    ]


def _shares(outcomes: dict[float, Outcome]) -> Array:
    """The share of secure nodes, a row for each c and a column for each run."""
    return np.array([outcome.secure_share for outcome in outcomes.values()])


def _slope(outcomes: dict[float, Outcome]) -> Interval:
    """By how much the share grows when c grows tenfold: the straight line through each run's shares."""
    decades = np.log10(C) - np.log10(C).mean()
    steepest = np.abs(decades).sum() / 2 / (decades @ decades)  # from nobody secure to everybody, halfway
    return mean_of(decades @ _shares(outcomes) / (decades @ decades), within=(-steepest, steepest))


def _price(outcomes: dict[float, Outcome]) -> Interval:
    """How many times the iterations of c = 1 the largest c takes, run by run; a geometric mean."""
    return geometric_mean_of(outcomes[C[-1]].iterations / outcomes[1.0].iterations)

"""Fig. 4: the larger c, the more nodes never send their value; and what that costs in iterations.

Fifteen nodes on a random geometric graph. A node's interval is 2/(c d_i) wide, and a step moves x by about as much: a
large c is hard to be caught by, and slow.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from midst.plots.style import BLUE, GREEN, MARKERS, ORANGE, PURPLE
from midst.studies.paper.choices import FIFTEEN
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
from midst.studies.paper.drawing import (
    Figure,
    LogLocator,
    draw_ceiling,
    draw_curve,
    draw_spread,
    legend_below,
    panels,
    set_log_ticks,
)
from midst.studies.paper.runs import Comparison, Outcome, StudySettings, compare, shares

C = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
RANGE = (
    replace(FIFTEEN, graph="ring"),
    replace(FIFTEEN, graph="complete"),
    replace(FIFTEEN, mu=-10.0),
    replace(FIFTEEN, sigma=10.0),
)
_DRAWN = (BLUE, ORANGE, GREEN, PURPLE)  # the paper's setting, and the first of the range


def run(settings: StudySettings) -> Comparison:
    """Every setting under every c."""
    return compare("c", C, settings.plan(FIFTEEN, RANGE), settings)


def claims(data: Comparison) -> list[Claim]:
    """What the paper says of the figure, and what we add."""
    draws = data.measured[data.base]
    gains = [[mean_of(step, within=(-1, 1)) for step in np.diff(shares(each), axis=0)] for each in draws]
    steps = {f"c = {low:g} → {high:g}": [each[k] for each in gains] for k, (low, high) in enumerate(pairwise(C))}
    return [
        judge(
            "“a larger value of c results in a smaller window, thus enhancing the ability of more nodes to securely "
            "preserve their values” (gain in the share of secure nodes when c grows tenfold, over our c of 0.1 to 30).",
            over(data.measured, _slope),
            is_positive,
            place="Sec. IV-D, Fig. 4",
        ),
        judge(
            "“to balance efficiency and privacy” (how many times the iterations of c = 1 a proof takes at "
            f"c = {C[-1]:g}).",
            over(data.measured, lambda found: geometric_mean_of(found[C[-1]].iterations / found[1.0].iterations)),
            lambda ratio: ratio.low > 1,
            place="Sec. IV-D",
        ),
        judge(
            "The least gain at a step of our c (gain in the share of secure nodes).",
            {"the least": [min(each) for each in gains]} | steps,
        ),
    ]


def draw(data: Comparison) -> Figure:
    """The share over c, and its price."""
    figure, (left, right) = panels("share of nodes that never send their value", "iterations to the proof, to 1e-6")
    for (experiment, (shown, *_)), colour, marker in zip(data.measured.items(), _DRAWN, MARKERS, strict=False):
        name = experiment.apart_from(data.base) or experiment.kind
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5, "label": name}
        draw_curve(left, C, [mean_share_of(row) for row in shares(shown)], **style)
        iterations = [outcome.iterations for outcome in shown.values()]
        low, middle, high = np.quantile(iterations, [0.25, 0.5, 0.75], axis=1)
        right.fill_between(C, low, high, color=colour, alpha=0.15, linewidth=0)
        right.plot(C, middle, **style)
    draw_spread(left, 1.12 * np.array(C), data.means)
    draw_ceiling(left, data.base.n)
    left.set(ylabel="one draw: mean over the runs, 95% interval", ylim=(0, 1))
    right.set(ylabel="one draw: median and quartiles of the runs", yscale="log")
    right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter("{x:,.0f}")
    for axes in (left, right):
        axes.set_xlabel("c")
        set_log_ticks(axes, C)
        legend_below(axes, columns=2)
    return figure


rows = Comparison.rows


def _slope(outcomes: dict[float, Outcome]) -> Interval:
    """By how much the share grows when c grows tenfold: the straight line through each run's shares."""
    decades = np.log10(C) - np.log10(C).mean()
    steepest = np.abs(decades).sum() / 2 / (decades @ decades)  # from nobody secure to everybody, halfway
    return mean_of(decades @ shares(outcomes) / (decades @ decades), within=(-steepest, steepest))

"""Fig. 1: started near the median, the nodes find it, and only its holder has to show its value.

Five nodes on a random geometric graph, μ = 0, σ² = 0.01. The paper shows one draw; the claims also say how often other
draws look like it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from midst.plots.style import BLUE
from midst.studies.paper.choices import CLOSE, NEAR, Shown, measure_around
from midst.studies.paper.claims import Claim, exactly, is_everywhere, judge, over, share_of
from midst.studies.paper.drawing import Figure, draw_trajectories, legend_below, panels
from midst.studies.paper.runs import StudySettings
from midst.types import Row

RANGE = tuple(
    [replace(NEAR, c=c) for c in (0.3, 3.0, 10.0)]
    + [replace(NEAR, radius=radius) for radius in (0.6, 1.0)]
    + [replace(NEAR, sigma=1.0), replace(NEAR, n=15)]
)


def run(settings: StudySettings) -> Shown:
    """The draw that is shown, and many more."""
    return measure_around(NEAR, RANGE, settings)


def claims(data: Shown) -> list[Claim]:
    """What the paper says of the figure, and what we add."""
    return [
        judge(
            "“the convergence of the entire network” (share of runs that end with all x_i within 1e-6 of the median).",
            over(data.measured, lambda found: share_of(found.error <= CLOSE)),
            is_everywhere,
            place="Sec. IV-A, Fig. 1(a)",
        ),
        judge(
            "“all nodes, except for the one holding the median value, satisfy x_i(t) ≠ s_i for all t” "
            "(how many others send their own value in a draw's first run; the draw shown was chosen for it).",
            over(data.measured, lambda found: exactly((found.exposed & (found.side != 0))[0].sum())),
            lambda count: count.value == 0,
            place="Sec. IV-A, Fig. 1(b)",
        ),
        judge(
            "How often only the median's holder sends its own value (share of runs).",
            over(data.measured, lambda found: share_of(~(found.exposed & (found.side != 0)).any(axis=1))),
        ),
        judge(
            "The median's holder always sends its own value (share of runs; of an even number nobody need).",
            over(data.measured, lambda found: share_of((found.exposed | (found.side != 0)).all(axis=1))),
            is_everywhere,
        ),
    ]


def draw(data: Shown) -> Figure:
    """The error of the network, and what every node sent."""
    figure, (left, right) = panels("error of the whole network", "what each node sent")
    left.semilogy(np.arange(1, len(data.x) + 1), data.error, color=BLUE, linewidth=1.5)
    left.axhline(CLOSE, color="black", linestyle=(0, (1, 2)), linewidth=1.1, label="where Figs. 3 and 4 stop")
    left.set(xlabel="iteration", ylabel=r"$\Vert x - s_{\mathrm{med}} \Vert_2$", xlim=(1, len(data.x)))
    legend_below(left)
    draw_trajectories(right, data)
    right.set(xscale="log", xlim=(1, len(data.x)))
    right.xaxis.set_major_formatter("{x:,.0f}")
    legend_below(right)
    return figure


def rows(data: Shown) -> list[Row]:
    """X of the draw that is shown: a row an iteration."""
    return [
        {"iteration": row["iteration"], "error": float(error)} | row
        for row, error in zip(data.rows(), data.error, strict=True)
    ]

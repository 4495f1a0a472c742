"""Fig. 3: the denser the graph, the more nodes never send their value.

Fifteen nodes on a ring, a random geometric graph and a complete graph; the same values in each. A node's interval is
2/(c d_i) wide, so more neighbours make it narrower and harder to be caught in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from midst.plots.style import BLUE, GREEN, ORANGE
from midst.studies.paper.choices import FIFTEEN
from midst.studies.paper.claims import Claim, Interval, is_positive, judge, mean_of, mean_share_of, over
from midst.studies.paper.drawing import Figure, draw_ceiling, draw_interval, draw_spread, legend_below, panels
from midst.studies.paper.runs import Comparison, Outcome, StudySettings, compare

TOPOLOGIES = {"ring": ORANGE, "rgg": BLUE, "complete": GREEN}  # from sparse to dense
NAMES = {topology: replace(FIFTEEN, graph=topology).kind for topology in TOPOLOGIES}
RANGE = tuple(
    [replace(FIFTEEN, c=c) for c in (0.3, 3.0, 10.0)]
    + [replace(FIFTEEN, radius=radius) for radius in (0.45, 0.8)]
    + [replace(FIFTEEN, sigma=1.0), replace(FIFTEEN, sigma=10.0), replace(FIFTEEN, mu=-10.0)]
)


def run(settings: StudySettings) -> Comparison:
    """All topologies under all settings."""
    return compare("graph", TOPOLOGIES, settings.plan(FIFTEEN, RANGE), settings)


def claims(data: Comparison) -> list[Claim]:
    """What the paper says of the figure, a step at a time."""
    steps = (("ring", "rgg"), ("rgg", "complete"))
    return [
        judge(
            "“a denser topology, with a higher degree d, … allowing more nodes to securely preserve their values”: "
            f"{NAMES[sparse]} to {NAMES[dense]} graph (gain in the share of secure nodes).",
            over(data.measured, _gain(sparse, dense)),
            is_positive,
            place="Sec. IV-C, Fig. 3",
        )
        for sparse, dense in steps
    ]


def draw(data: Comparison) -> Figure:
    """Bars with their intervals, and the share over the iterations."""
    figure, (left, right) = panels("share of nodes that never send their value", "the same, over the iterations")
    for place, (topology, outcome) in enumerate(data.measured[data.base][0].items()):
        colour = TOPOLOGIES[topology]
        share = mean_share_of(outcome.secure_share)
        left.bar(place, share.value, width=0.62, color=colour, zorder=2)
        left.text(place - 0.28, share.high, f"{share.value:.2f}", fontsize=9, va="bottom")
        draw_interval(left, place, share)
        iteration = np.unique(np.geomspace(1, outcome.iterations.max(), 400).astype(np.int64))
        over_time = outcome.secure_over_time(iteration - 1).mean(axis=0)
        right.plot(iteration, over_time, drawstyle="steps-post", color=colour, linewidth=1.7, label=NAMES[topology])
    draw_spread(left, np.arange(len(TOPOLOGIES)) + 0.2, data.means)
    left.set_xticks(range(len(TOPOLOGIES)), [NAMES[topology] for topology in TOPOLOGIES])
    left.set(ylabel="one draw: mean over the runs, 95% interval", ylim=(0, 1))
    right.set(xlabel="iteration", ylabel="share of nodes that have not done so yet", xscale="log", ylim=(0, 1))
    right.set_xlim(left=1)
    right.xaxis.set_major_formatter("{x:,.0f}")
    for axes in (left, right):
        draw_ceiling(axes, data.base.n)
        legend_below(axes, columns=2)
    return figure


rows = Comparison.rows


def _gain(sparse: str, dense: str) -> Callable[[dict[str, Outcome]], Interval]:
    """By how much the share of secure nodes grows from one topology to another, run by run."""
    return lambda outcomes: mean_of(outcomes[dense].secure_share - outcomes[sparse].secure_share, within=(-1, 1))

"""Fig. 3: the denser the graph, the more nodes never send their value.

Fifteen nodes on a ring, a random geometric graph and a complete graph; the same values in each. A node's interval is
2/(c d_i) wide, so more neighbours make it narrower and harder to be caught in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from midst.plots.style import BLUE, GREEN, ORANGE
from midst.studies.paper.choices import FIFTEEN, plan
from midst.studies.paper.claims import Claim, Interval, is_positive, judge, mean_of, mean_share_of, over
from midst.studies.paper.drawing import Figure, draw_ceiling, draw_interval, legend_below, panels
from midst.studies.paper.runs import Experiment, Outcome, StudySettings, measure_outcomes
from midst.types import Row

TOPOLOGIES = {"ring": ORANGE, "rgg": BLUE, "complete": GREEN}  # from sparse to dense
NAMES = {topology: replace(FIFTEEN, graph=topology).kind for topology in TOPOLOGIES}
RANGE = tuple(
    [replace(FIFTEEN, c=c) for c in (0.3, 3.0, 10.0)]
    + [replace(FIFTEEN, radius=radius) for radius in (0.45, 0.8)]
    + [replace(FIFTEEN, sigma=1.0), replace(FIFTEEN, sigma=10.0), replace(FIFTEEN, mu=-10.0)]
)


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of the figure.

    Attributes:
        measured: by experiment, the paper's first, and by topology; each list in the same order of runs.
    """

    measured: dict[Experiment, dict[str, Outcome]]

    @property
    def drawn(self) -> dict[str, Outcome]:
        """What the figure shows."""
        return self.measured[FIFTEEN]


def run(settings: StudySettings) -> Data:
    """All topologies under all settings."""
    wanted = {
        replace(experiment, graph=topology): runs
        for experiment, runs in plan(FIFTEEN, RANGE, settings).items()
        for topology in TOPOLOGIES
    }
    found = measure_outcomes(wanted, settings)
    return Data(
        {
            experiment: {topology: found[replace(experiment, graph=topology)] for topology in TOPOLOGIES}
            for experiment in (FIFTEEN, *RANGE)
        }
    )


def claims(data: Data) -> list[Claim]:
    """What the paper says of the figure, a step at a time."""
    steps = (("ring", "rgg"), ("rgg", "complete"))
    return [
        judge(
            f"Denser is safer: {NAMES[sparse]} to {NAMES[dense]} graph (gain in the share of secure nodes).",
            over(data.measured, _gain(sparse, dense)),
            is_positive,
        )
        for sparse, dense in steps
    ]


def draw(data: Data) -> Figure:
    """Bars with their intervals, and the share over the iterations."""
    figure, (left, right) = panels("share of nodes that never send their value", "the same, over the iterations")
    for place, (topology, outcome) in enumerate(data.drawn.items()):
        colour = TOPOLOGIES[topology]
        share = mean_share_of(outcome.secure_share)
        left.bar(place, share.value, width=0.62, color=colour, zorder=2)
        left.text(place + 0.06, share.high, f"{share.value:.2f}", fontsize=9, va="bottom")
        draw_interval(left, place, share)
        iteration = np.unique(np.geomspace(1, outcome.iterations.max(), 400).astype(np.int64))
        over_time = outcome.secure_over_time(iteration - 1).mean(axis=0)
        right.plot(iteration, over_time, drawstyle="steps-post", color=colour, linewidth=1.7, label=NAMES[topology])
    left.set_xticks(range(len(TOPOLOGIES)), [NAMES[topology] for topology in TOPOLOGIES])
    left.set(ylabel=f"mean over {outcome.secure_share.size} runs, 95% interval", ylim=(0, 1))
    right.set(xlabel="iteration", ylabel="share of nodes that have not done so yet", xscale="log", ylim=(0, 1))
    right.set_xlim(left=1)
    right.xaxis.set_major_formatter("{x:,.0f}")
    for axes in (left, right):
        draw_ceiling(axes, FIFTEEN.n)
        legend_below(axes, columns=2)
    return figure


def rows(data: Data) -> list[Row]:
    """A row a run: the share of secure nodes on each topology, under each setting."""
    return [
        {"at": experiment.apart_from(FIFTEEN), "topology": topology, "run": k}
        | {"secure_share": float(share), "iterations": int(outcome.iterations[k])}
        for experiment, outcomes in data.measured.items()
        for topology, outcome in outcomes.items()
        for k, share in enumerate(outcome.secure_share)
    ]


def _gain(sparse: str, dense: str) -> Callable[[dict[str, Outcome]], Interval]:
    """By how much the share of secure nodes grows from one topology to another, run by run."""
    return lambda outcomes: mean_of(outcomes[dense].secure_share - outcomes[sparse].secure_share, within=(-1, 1))

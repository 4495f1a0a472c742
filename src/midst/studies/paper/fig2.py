"""Fig. 2: started far above the data, the nodes above the median show their values; an offset on the values blurs them.

The graph, the values and the noise in z(0) are those of Fig. 1, with μ = −10 and σ² = 1: x starts near −μ/c = 10. In
(b) every node adds its own N(0, 0.01) to its value first, and all that follows is computed from the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from midst.dp.mechanisms import Offset, information
from midst.plots.style import COLOURS, GREY
from midst.studies.paper.choices import CLOSE, FAR, Shown, measure_around
from midst.studies.paper.claims import Claim, is_everywhere, is_positive, judge, mean_of, mean_share_of, over, share_of
from midst.studies.paper.drawing import Axes, Figure, draw_trajectories, legend_below, panels
from midst.studies.paper.runs import StudySettings
from midst.types import Array, Row

BLURRED = replace(FAR, offset=0.1)  # the paper's N(0, 0.01)
RANGE = tuple(
    [replace(FAR, c=c) for c in (0.3, 3.0, 10.0)]
    + [replace(FAR, mu=mu) for mu in (-3.0, -30.0)]
    + [replace(FAR, radius=radius) for radius in (0.6, 1.0)]
    + [replace(FAR, n=15)]
)
BLURS = (replace(FAR, offset=0.03), replace(FAR, offset=0.3), replace(BLURRED, n=15))


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of the figure.

    Attributes:
        plain: the run on s_i.
        blurred: the run on s_i + n_i.
    """

    plain: Shown
    blurred: Shown


def run(settings: StudySettings) -> Data:
    """The draw that is shown, without and with an offset, and many more."""
    return Data(measure_around(FAR, RANGE, settings), measure_around(BLURRED, BLURS, settings))


def claims(data: Data) -> list[Claim]:
    """What the paper says of the figure, and what we add."""
    bits = information(Offset(BLURRED.offset), prior_std=1.0)
    return [
        judge(
            "“nodes holding values above the median … may encounter a plateau” (mean share of them that do).",
            over(data.plain.measured, lambda found: mean_share_of(1 - found.secure_share_on(+1))),
            is_positive,
            place="Sec. IV-B, Fig. 2(a)",
        ),
        judge(
            "“privacy guarantees are only achievable for half of the nodes whose values lie below the median” "
            "(share of runs in which all others send their own value).",
            over(data.plain.measured, lambda found: share_of((found.exposed | (found.side < 0)).all(axis=1))),
            is_everywhere,
            place="Sec. IV-B, Fig. 2(a)",
        ),
        judge(
            "“only half of the nodes satisfy the privacy condition” (mean share; it holds where that is at most half).",
            over(data.plain.measured, lambda found: mean_share_of(found.secure_share)),
            lambda share: share.high <= 0.5,
            place="Sec. IV-B, Fig. 2(a)",
        ),
        judge(
            "“the plateau still exists, however, noise offsets are introduced in the private value” (mean share of the "
            f"nodes above the median on one, at s_i + n_i; it tells I(S; S+N) = {bits:.2f} bits of N(0, 1) data).",
            over(data.blurred.measured, lambda found: mean_share_of(1 - found.secure_share_on(+1))),
            is_positive,
            place="Sec. IV-B, Fig. 2(b)",
        ),
        judge(
            "“a reduction in accuracy” (mean distance of the answer from the true median; without an offset at most "
            "1e-6).",
            over(data.blurred.measured, lambda found: mean_of(found.error)),
            lambda distance: distance.low > CLOSE,
            place="Sec. IV-B, Fig. 2(b)",
        ),
        judge(
            "How many of the nodes below the median keep the condition (mean share of them).",
            over(data.plain.measured, lambda found: mean_share_of(found.secure_share_on(-1))),
        ),
    ]


def draw(data: Data) -> Figure:
    """What every node sent, without and with an offset; the plateaus enlarged."""
    figure, row = panels("without an offset", "with an offset N(0, 0.01) on every value", width=5.8, height=5.4)
    for axes, shown in zip(row, (data.plain, data.blurred), strict=True):
        draw_trajectories(axes, shown)
        _draw_values(axes, shown.values, label="$s_i$")
        passing, heights = _passage(shown), np.append(shown.values, shown.x[0])
        axes.set(xlim=(1, 3 * passing.stop), ylim=(heights.min() - 0.5, heights.max() + 0.5))
        legend_below(axes, columns=2)
        if not passing.start:  # nobody above the median was caught: nothing to enlarge
            continue
        enlarged = axes.inset_axes((0.47, 0.47, 0.52, 0.5))
        draw_trajectories(enlarged, shown, named=False)
        _draw_values(enlarged, shown.values)
        above = shown.values[shown.values > shown.median[0]]
        enlarged.set(xlim=(passing.start, passing.stop), ylim=(above.min() - 0.4, above.max() + 0.4))
        enlarged.tick_params(labelsize=7)
        axes.indicate_inset_zoom(enlarged, edgecolor=GREY)
    return figure


def rows(data: Data) -> list[Row]:
    """X of both runs: a row an iteration of each."""
    return [{"panel": name} | row for name, shown in (("a", data.plain), ("b", data.blurred)) for row in shown.rows()]


def _passage(shown: Shown) -> range:
    """The iterations, counted from 1, in which the nodes come past the values above the median; from 0 if none does."""
    t, _ = np.nonzero(shown.inside[:, shown.values > shown.median[0]])
    return range(max(1, int(t.min()) - 2), int(t.max()) + 5) if t.size else range(len(shown.x) // 3)


def _draw_values(axes: Axes, values: Array, label: str | None = None) -> None:
    """A thin line at every s_i, to see how far from it a plateau lies."""
    style: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 0.9}
    for value, colour in zip(values, COLOURS, strict=False):
        axes.axhline(value, color=colour, zorder=2, **style)
    if label:
        axes.plot([], [], color=GREY, label=label, **style)

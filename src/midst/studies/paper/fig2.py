"""Fig. 2: started far above the data, the nodes above the median show their values; an offset on the values blurs them.

The graph, the values and the noise in z(0) are those of Fig. 1, with μ = −10 and σ² = 1: x starts near −μ/c = 10. In
(b) every node adds its own N(0, 0.01) to its value first, and all that follows is computed from the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from midst.dp.mechanisms import Offset, information
from midst.plots.style import COLOURS, GREY, show_number
from midst.studies.paper.choices import CLOSE, FAR, perform_drawn, plan
from midst.studies.paper.claims import (
    Claim,
    Interval,
    is_everywhere,
    judge,
    mean_of,
    mean_share_of,
    over,
    share_of,
    variance_of,
)
from midst.studies.paper.drawing import Axes, Figure, draw_trajectories, legend_below, panels
from midst.studies.paper.runs import (
    Experiment,
    Outcome,
    Plateaus,
    Run,
    StudySettings,
    measure,
    measure_outcomes,
    observe_plateaus,
)
from midst.types import Array, Bools, Row

BLURRED = replace(FAR, offset=0.1)  # the paper's N(0, 0.01)
RANGE = tuple(
    [replace(FAR, c=c) for c in (0.3, 3.0, 10.0)]
    + [replace(FAR, mu=mu) for mu in (-3.0, -30.0)]
    + [replace(FAR, radius=radius) for radius in (0.6, 1.0)]
    + [replace(FAR, n=15)]
)
BLURS = (replace(FAR, offset=0.03), replace(FAR, offset=0.3), replace(BLURRED, n=15))

_SAME = 1e-12  # what rounding leaves of equality
_NEARLY_ALL = 0.9


@dataclass(frozen=True, eq=False)
class Shown:
    """One run of the draw that is shown.

    Attributes:
        held: the values that went into the run.
        x: x_i(t), shape (iterations, n).
        inside: whether node i sent the value it held, likewise.
        median: of the values held.
    """

    held: Array
    x: Array
    inside: Bools
    median: float


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of the figure.

    Attributes:
        values: s_i, the same in both runs.
        plain: the run on them.
        blurred: the run on s_i + n_i.
        measured: many draws without an offset, the paper's setting first.
        measured_blurred: many with one.
        plateaus: of the same runs as these, where the nodes were caught.
    """

    values: Array
    plain: Shown
    blurred: Shown
    measured: dict[Experiment, Outcome]
    measured_blurred: dict[Experiment, Outcome]
    plateaus: dict[Experiment, Plateaus]


def run(settings: StudySettings) -> Data:
    """The draw that is shown, without and with an offset, and many more."""
    plain, blurred = (perform_drawn(experiment, settings) for experiment in (FAR, BLURRED))
    with_offset = plan(BLURRED, BLURS, settings)
    return Data(
        plain.truth.values,
        _shown(plain),
        _shown(blurred),
        measure_outcomes(plan(FAR, RANGE, settings), settings),
        measure_outcomes(with_offset, settings),
        measure(observe_plateaus, with_offset, settings),
    )


def claims(data: Data) -> list[Claim]:
    """What the paper says of the figure."""
    return [
        judge(
            "Every node above the median is caught on a plateau at its value (share of runs in which all are).",
            over(data.measured, lambda found: share_of(found.secure_share_on(+1) == 0)),
            lambda share: share.value >= _NEARLY_ALL,
        ),
        judge(
            "At most half of the nodes keep the condition (mean share of secure nodes).",
            over(data.measured, lambda found: mean_share_of(found.secure_share)),
            lambda share: share.high <= 0.5,
        ),
        judge(
            "The nodes below the median keep it (mean share of them that do; nine in ten is taken to be enough).",
            over(data.measured, lambda found: mean_share_of(found.secure_share_on(-1))),
            lambda share: share.value >= _NEARLY_ALL,
        ),
        judge(
            "With an offset the plateaus lie at s_i + n_i, and none at s_i (share of plateaus).",
            over(data.plateaus, lambda found: share_of(_at_offset(found))),
            is_everywhere,
        ),
        _judge_leak(data.plateaus),
        judge(
            "The offset costs accuracy (mean distance of the answer from the true median; without it at most 1e-6).",
            over(data.measured_blurred, lambda found: mean_of(found.error)),
            lambda distance: distance.low > CLOSE,
        ),
    ]


def draw(data: Data) -> Figure:
    """What every node sent, without and with an offset; the plateaus enlarged."""
    figure, row = panels("without an offset", "with an offset N(0, 0.01) on every value", width=5.8, height=5.4)
    for axes, shown in zip(row, (data.plain, data.blurred), strict=True):
        names = [_name(i, *pair) for i, pair in enumerate(zip(data.values, shown.held, strict=True))]
        draw_trajectories(axes, shown.x, shown.inside, shown.median, names)
        _draw_values(axes, data.values, label="$s_i$")
        passing = _passage(data.values, shown)
        axes.set(xlim=(1, 3 * passing.stop), ylim=(data.values.min() - 0.5, shown.x[0].max() + 0.5))
        enlarged = axes.inset_axes((0.47, 0.47, 0.52, 0.5))
        draw_trajectories(enlarged, shown.x, shown.inside, shown.median)
        _draw_values(enlarged, data.values)
        above = data.values[data.values > shown.median]
        enlarged.set(xlim=(passing.start, passing.stop), ylim=(above.min() - 0.4, above.max() + 0.4))
        enlarged.tick_params(labelsize=7)
        axes.indicate_inset_zoom(enlarged, edgecolor=GREY)
        legend_below(axes, columns=2)
    return figure


def rows(data: Data) -> list[Row]:
    """X of both runs: a row an iteration of each."""
    return [
        {"panel": panel, "iteration": t + 1}
        | {f"x_{i + 1}": float(x) for i, x in enumerate(shown.x[t])}
        | {f"inside_{i + 1}": int(flag) for i, flag in enumerate(shown.inside[t])}
        for panel, shown in (("a", data.plain), ("b", data.blurred))
        for t in range(len(shown.x))
    ]


def _shown(run: Run) -> Shown:
    trace = run.result.trace
    return Shown(run.problem.values, trace.x, trace.inside, float(run.problem.answer[0]))


def _at_offset(found: Plateaus) -> Bools:
    """Of every plateau, whether it lies at s_i + n_i and not at s_i."""
    caught = ~np.isnan(found.shift)
    shift, offset = found.shift[caught], found.offset[caught]
    return np.asarray((np.abs(shift - offset) <= _SAME) & (np.abs(shift) > _SAME))


def _judge_leak(measured: dict[Experiment, Plateaus]) -> Claim:
    """Bits from the scatter of the plateaus around the values, as a multiple of what the formula says."""
    predicted = {each: information(Offset(each.offset), prior_std=1.0) for each in measured}
    ratios = over(
        {each: (found, predicted[each]) for each, found in measured.items()},
        lambda pair: Interval(*(bits / pair[1] for bits in _bits_told(pair[0]))),
    )
    text = (
        f"A plateau then tells I(S; S+N) = ½ log2(1 + 1/0.01) = {predicted[BLURRED]:.2f} bits instead of the value "
        "(bits by the scatter of the plateaus around s_i, as a multiple of that)."
    )
    return judge(text, ratios, lambda ratio: ratio.low <= 1 <= ratio.high)


def _bits_told(found: Plateaus) -> Interval:
    """½ log2(1 + 1/variance) of a value with prior variance 1; less where the plateaus scatter more."""
    scatter = variance_of(found.shift[~np.isnan(found.shift)])
    value, high, low = (float(0.5 * np.log2(1 + 1 / variance)) for variance in scatter)
    return Interval(value, low, high)


def _passage(values: Array, shown: Shown) -> range:
    """The iterations, counted from 1, in which the nodes come past the values above the median."""
    t, _ = np.nonzero(shown.inside[:, values > shown.median])
    return range(int(t.min()) - 2, int(t.max()) + 5)


def _name(i: int, value: float, held: float) -> str:
    offset = f", holds {show_number(held, '.3f')}" if held != value else ""
    return f"$s_{{{i + 1}}}$ = {show_number(value, '.3f')}{offset}"


def _draw_values(axes: Axes, values: Array, label: str | None = None) -> None:
    """A thin line at every s_i, to see how far from it a plateau lies."""
    style: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 0.9}
    for value, colour in zip(values, COLOURS, strict=False):
        axes.axhline(value, color=colour, zorder=2, **style)
    if label:
        axes.plot([], [], color=GREY, label=label, **style)

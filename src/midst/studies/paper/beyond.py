"""Beyond the paper: what the same runs give away, by the audit.

Theorem 1 says that a node which never sends its own value gives nothing away: I(S_i; O) = 0. That does not hold. Step
(c) of its proof computes x(0) and x(1) from z alone, but which of the three branches a node takes depends on s_i.
Whoever knows z(0) sees the branch, and with it on which side of x_i(t) the value lies, at every t: it lies between the
highest x_i(t) below it and the lowest above it. Of a node whose x_i stays on one side that is about one bit (which half
of the data it belongs to); of one that changes sides without being caught, more.

Parts:
- (a), (b) bits on the nodes the paper calls secure; z(0) in the clear, and sealed between the two ends of each edge.
- (c) repeats with fresh z(0) on the same data: whoever was missed once may be caught the next time.
- (d) the exact finish is the same run cut short, so its messages tell no more than those of running on; the totals of
  its search may.
- (e) an even number of nodes: the answer depends on z(0), and is not the mean of the two middle values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from midst.methods import Exact
from midst.plots.style import BLUE, COLOURS, GREY, MARKERS, VERMILION, show_number
from midst.privacy.adversaries import Adversary, Init
from midst.privacy.audit import audit
from midst.privacy.priors import Normal
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
    share_of,
)
from midst.studies.paper.drawing import DASHED, Axes, Figure, draw_curve, legend_below, panels, set_log_ticks
from midst.studies.paper.runs import CERTIFIED, Experiment, StudySettings, measure, perform
from midst.types import Array, Row

C = (1.0, 3.0, 10.0, 30.0)
SIGMA = (0.1, 1.0, 10.0)
GRID = tuple(replace(FIFTEEN, c=c, sigma=sigma) for sigma in SIGMA for c in C)  # FIFTEEN itself first
REPEATED = (
    *(replace(FIFTEEN, graph=graph, sigma=10.0) for graph in ("complete", "rgg", "ring")),
    *(replace(FIFTEEN, graph="complete", sigma=sigma) for sigma in (1.0, 0.1)),
)
STARTS = (replace(FIFTEEN, mu=-10.0, sigma=1.0), FIFTEEN, replace(FIFTEEN, graph="ring"))
EVEN = (replace(FIFTEEN, n=14), replace(FIFTEEN, n=4), replace(FIFTEEN, n=14, graph="ring"))
REPEATS = (1, 2, 5, 20, 100)

_INITS: tuple[Init, Init] = ("clear", "sealed")
_PRIOR = Normal(0.0, 1.0)  # what the data is drawn from: the adversary knows that much
_NOTHING = 0.01  # so few bits are taken to be none
_TOLD_APART = 0.01  # answers so far apart, as a share of the gap they lie in, are not the same answer
_ROUNDING = 1e-9  # bits that are but rounding


Seen = Mapping[Experiment, dict[str, Array]]  # of each experiment arrays by name, the run as their first axis


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of the figure.

    Attributes:
        bits: what secure nodes gave away; see `observe_bits`.
        repeats: who is exposed in the end, by repeats; see `observe_repeats`.
        finish: the exact finish against running on; see `observe_finish`.
        limits: an even number of nodes; see `observe_limits`.
    """

    bits: Seen
    repeats: Seen
    finish: Seen
    limits: Seen


def run(settings: StudySettings) -> Data:
    """All parts; but for the last, which is cheap, each with as many runs as a point of a range has."""
    few = settings.runs_in_range
    return Data(
        measure(observe_bits, dict.fromkeys(GRID, few), settings),
        measure(observe_repeats, dict.fromkeys(REPEATED, few), settings),
        measure(observe_finish, dict.fromkeys(STARTS, few), settings),
        measure(observe_limits, dict.fromkeys(EVEN, settings.runs), settings),
    )


# What is observed of a run


def observe_bits(experiment: Experiment, seed: int, k: int) -> dict[str, Array]:
    """Bits on the nodes that never sent their own value, to an eavesdropper by its view of z(0); NaN for the others."""
    trace = perform(experiment, seed, k, record="all").result.trace
    ever = trace.inside.any(axis=0)
    return {init: np.where(ever, np.nan, audit(trace, Adversary(init=init), _PRIOR).bits) for init in _INITS}


def observe_repeats(experiment: Experiment, seed: int, k: int) -> dict[str, Array]:
    """The share of nodes exposed after each number of `REPEATS`: one draw of data, run again with fresh z(0)."""
    segments = perform(experiment, seed, k, copies=REPEATS[-1]).result.trace.segments
    assert segments is not None
    exposed = np.zeros((experiment.n, REPEATS[-1]), np.bool_)
    inside = segments.branch == 0
    exposed[segments.node[inside], segments.coordinate[inside]] = True
    ever = np.logical_or.accumulate(exposed, axis=1)
    return {"exposed": ever[:, np.array(REPEATS) - 1].mean(axis=0)}


def observe_finish(experiment: Experiment, seed: int, k: int) -> dict[str, Array]:
    """One run, ended by the exact finish, and run on: for both the bits, the share of exposed nodes and the rounds.

    The bits are the mean over all nodes, exposed or not, to an eavesdropper on z(0) in the clear.
    """
    results = [perform(experiment, seed, k, stop=stop, record="all").result for stop in (Exact(), CERTIFIED)]
    return {
        "bits": np.array([audit(result.trace, Adversary(), _PRIOR).mean_bits for result in results]),
        "exposed": np.array([len(result.exposed) / experiment.n for result in results]),
        "rounds": np.array([result.rounds for result in results]),
    }


def observe_limits(experiment: Experiment, seed: int, k: int) -> dict[str, Array]:
    """The position of the answers from many z(0) between the two middle values: 0 at the lower, 1 at the higher.

    Any point between these is right.
    """
    run = perform(experiment, seed, k, copies=REPEATS[-1])
    low, high = run.truth.answer
    return {"position": np.clip((run.result.value - low) / (high - low), 0, 1)}


# What it shows


def claims(data: Data) -> list[Claim]:
    """What the paper says, held against the audit; and what we add."""
    bits, repeats, finish, limits = ({each: [seen] for each, seen in part.items()} for part in vars(data).values())
    return [
        judge(
            "“if node i never transmits s_i to its neighboring nodes, no information about s_i will be disclosed” "
            "(mean bits on such nodes, z(0) in the clear; up to 0.01, our threshold, counts as none).",
            over(bits, lambda seen: _mean_over_nodes(seen["clear"])),
            lambda bits: bits.high <= _NOTHING,
            place="Theorem 1, Remark 1",
        ),
        judge(
            "The same where z(0) is sealed (mean bits on such nodes).",
            over(bits, lambda seen: _mean_over_nodes(seen["sealed"])),
        ),
        judge(
            "Bits on such nodes that sealing z(0) saves (mean, run by run).",
            over(bits, lambda seen: _mean_over_nodes(seen["clear"] - seen["sealed"])),
        ),
        judge(
            f"Repeats compose (gain in the share of exposed nodes from 1 run to {REPEATS[-1]} on the same data).",
            over(repeats, lambda seen: mean_of(seen["exposed"][:, -1] - seen["exposed"][:, 0], within=(0, 1))),
            is_positive,
        ),
        judge(
            "How often the exact finish tells no more than running on, the search included (share of runs).",
            over(finish, lambda seen: share_of(seen["bits"][:, 0] <= seen["bits"][:, 1] + _ROUNDING)),
        ),
        judge(
            "It takes fewer rounds of messages (ratio, geometric mean).",
            over(finish, lambda seen: geometric_mean_of(seen["rounds"][:, 0] / seen["rounds"][:, 1])),
            lambda ratio: ratio.high < 1,
        ),
        judge(
            "For an even number of nodes the answer depends on z(0) (range of the answers from 100 z(0) on the same "
            "data, as a share of the gap between the two middle values; our threshold is 0.01).",
            over(limits, lambda seen: mean_of(np.ptp(seen["position"], axis=1), within=(0, 1))),
            lambda width: width.low > _TOLD_APART,
        ),
    ]


def draw(data: Data) -> Figure:
    """Five panels, in the order of the claims."""
    figure, axes = panels(
        "bits on nodes that never send their value",
        f"the same, node by node (c = {FIFTEEN.c:g}, σ = {SIGMA[1]:g})",
        "repeats on the same data, fresh z(0)",
        "the exact finish against running on",
        f"even n = {EVEN[0].n}: answers from {REPEATS[-1]} z(0)",
        rows=2,
    )
    painters = (_draw_bits, _draw_spread_of_bits, _draw_repeats, _draw_finish, _draw_limits)
    for paint, each in zip(painters, axes, strict=True):
        paint(each, data)
    return figure


def rows(data: Data) -> list[Row]:
    """A row a number of every part; `place` is where in the run it belongs, such as to which node."""
    return [
        {"part": part, "at": experiment.apart_from(next(iter(found))), "what": name, "run": run}
        | {"place": " ".join(map(str, place)), "value": float(value)}
        for part, found in vars(data).items()
        for experiment, seen in found.items()
        for name, array in seen.items()
        for (run, *place), value in np.ndenumerate(array)
        if not np.isnan(value)
    ]


def _mean_over_nodes(bits: Array) -> Interval:
    """Of the nodes that count, in every run; then over the runs, which are independent as nodes are not."""
    return mean_of(np.nanmean(bits, axis=1))


# Panels


def _draw_bits(axes: Axes, data: Data) -> None:
    for sigma, colour, marker in zip(SIGMA, COLOURS, MARKERS, strict=False):
        found = [data.bits[replace(FIFTEEN, c=c, sigma=sigma)] for c in C]
        for init, line, face in zip(_INITS, ("--", "-"), ("white", colour), strict=True):
            style: dict[str, Any] = {"marker": marker, "markersize": 5, "markerfacecolor": face, "linewidth": 1.4}
            style |= {"linestyle": line, "color": colour, "label": f"σ = {sigma:g}, z(0) {init}"}
            draw_curve(axes, C, [_mean_over_nodes(each[init]) for each in found], **style)
    axes.axhline(0, label="Theorem 1: I = 0", **DASHED)
    axes.set(xlabel="c", ylabel="bits, mean over nodes and runs", ylim=(-0.1, None))
    set_log_ticks(axes, C)
    legend_below(axes, columns=2)


def _draw_spread_of_bits(axes: Axes, data: Data) -> None:
    found = data.bits[replace(FIFTEEN, sigma=SIGMA[1])]
    for init, colour in zip(_INITS, (VERMILION, BLUE), strict=True):
        ranked = np.sort(found[init][np.isfinite(found[init])])
        below = np.arange(1, ranked.size + 1) / ranked.size
        axes.plot(ranked, below, drawstyle="steps-post", color=colour, linewidth=1.6, label=f"z(0) {init}")
    axes.axvline(0, label="Theorem 1: I = 0", **DASHED)
    axes.set(xlabel="bits", ylabel="share of such nodes with fewer", ylim=(0, 1.01), xlim=(-0.1, None))
    legend_below(axes)


def _draw_repeats(axes: Axes, data: Data) -> None:
    for (experiment, repeats), colour, marker in zip(data.repeats.items(), COLOURS, MARKERS, strict=False):
        style: dict[str, Any] = {"marker": marker, "markersize": 5, "linewidth": 1.5, "color": colour}
        style |= {"label": f"{experiment.kind}, σ = {experiment.sigma:g}"}
        draw_curve(axes, REPEATS, [mean_share_of(column) for column in repeats["exposed"].T], **style)
    axes.set(xlabel="runs", ylabel="share of nodes that have sent their value", ylim=(0, 1.01))
    set_log_ticks(axes, REPEATS)
    legend_below(axes, columns=2)


def _draw_finish(axes: Axes, data: Data) -> None:
    for (experiment, finish), colour, marker in zip(data.finish.items(), COLOURS, MARKERS, strict=False):
        style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 4.5, "linewidth": 0}
        start = f"{experiment.kind}, μ = {show_number(experiment.mu)}, σ = {show_number(experiment.sigma)}"
        axes.plot(finish["rounds"].T, finish["bits"].T, color=colour, linewidth=0.5, alpha=0.5)
        axes.plot(finish["rounds"][:, 0], finish["bits"][:, 0], label=start, **style)
        axes.plot(finish["rounds"][:, 1], finish["bits"][:, 1], markerfacecolor="white", **style)
    axes.plot([], [], "o", color=GREY, markersize=4.5, label="exact finish")
    axes.plot([], [], "o", color=GREY, markersize=4.5, markerfacecolor="white", label="run on to 1e-6")
    axes.set(xlabel="rounds", ylabel="bits a node, all nodes", xscale="log", ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    legend_below(axes, columns=2)


def _draw_limits(axes: Axes, data: Data) -> None:
    position = data.limits[EVEN[0]]["position"][:12]
    for row, answers in enumerate(position):
        axes.plot(answers, np.full(answers.size, row), "|", color=BLUE, markersize=11, alpha=0.6)
    axes.plot([], [], "|", color=BLUE, markersize=11, label="answer of a run")
    axes.axvline(0.5, label="mean of the two middle values", **DASHED)
    axes.set(xlabel="0: lower middle value; 1: higher", ylabel="draw of data", xlim=(-0.03, 1.03))
    axes.set_yticks(range(len(position)), [str(row + 1) for row in range(len(position))])
    legend_below(axes)

"""A picture of many runs: after how many rounds they had their answer, and how many nodes they exposed."""

from __future__ import annotations

from functools import partial
from typing import Unpack

import numpy as np

from midst.engines.ensemble import EnsembleResult
from midst.plots.picture import Axes, Figure, MaxNLocator, PercentFormatter, Where, draw
from midst.plots.style import EXPOSED, HIDDEN, LIGHT_GREY

_MANY_TIMES = 20  # beyond so many times the shortest run the axis is logarithmic


def draw_ensemble(result: EnsembleResult, **where: Unpack[Where]) -> Figure | Axes:
    """Rounds and exposed nodes of all runs, beside each other; see `draw`."""
    return draw(
        {"rounds": partial(draw_rounds, result=result), "exposed": partial(draw_exposed, result=result)},
        main="rounds",
        size=(10, 4.2),
        title=f"{result.runs:,} runs, {int(result.certified.sum()):,} of them proved",
        **where,
    )


def draw_rounds(axes: Axes, result: EnsembleResult) -> None:
    """The share of runs that have a proved answer, after each round; those that never have one keep it below 1."""
    rounds = np.sort(result.rounds[result.certified])
    share = np.arange(1, len(rounds) + 1) / result.runs
    axes.step(rounds, share, where="post", color=HIDDEN)
    axes.set(ylim=(0, 1.02), xlabel="rounds", ylabel="share of runs")
    if len(rounds) and rounds[-1] > _MANY_TIMES * rounds[0]:
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_title("runs that have their answer", fontsize=10)
    _finish(axes)


def draw_exposed(axes: Axes, result: EnsembleResult) -> None:
    """A bar for every number of exposed nodes, as high as the share of runs with so many."""
    count, runs = np.unique(result.exposed.sum(axis=1), return_counts=True)
    axes.bar(count, runs / result.runs, color=EXPOSED, width=0.8)
    axes.set(xlabel="nodes", ylabel="share of runs", xlim=(-0.6, max(int(count.max()), 1) + 0.6))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title("nodes that sent their own value", fontsize=10)
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", color=LIGHT_GREY, alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)

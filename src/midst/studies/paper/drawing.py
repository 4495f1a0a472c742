"""What the pictures share: colours that stay apart for the colour-blind, legends outside the data, trajectories.

Importing this needs matplotlib; only its object interface is used, so no setting of the user's is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from midst.errors import MissingExtra
from midst.plots.picture import Picture
from midst.plots.style import COLOURS, GREY, show_number
from midst.studies.paper.choices import Shown
from midst.studies.paper.claims import Interval

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import LogLocator
except ImportError:
    raise MissingExtra("matplotlib", "plot") from None

__all__ = ["Axes", "Figure", "LogLocator"]  # what the figures need of matplotlib, behind one guard

DASHED: dict[str, Any] = {"color": "black", "linestyle": (0, (5, 3)), "linewidth": 1.1}  # of a line to compare with


def panels(*titles: str, width: float = 5.4, height: float = 4.6, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Axes in rows, lettered from (a)."""
    columns = -(-len(titles) // rows)
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08, wspace=0.04, hspace=0.06)
    figure = Picture(figsize=(width * columns, height * rows), layout=layout)
    every = list(figure.subplots(rows, columns).flat)
    row, over = every[: len(titles)], every[len(titles) :]
    for axes in over:
        axes.remove()
    for letter, axes, title in zip(ascii_lowercase, row, titles, strict=False):
        axes.set_title(f"({letter}) {title}", fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.6)
        axes.set_axisbelow(True)
    return figure, row


def legend_below(axes: Axes, columns: int = 3) -> None:
    """A legend under the axes, where it covers no data."""
    axes.legend(
        ncols=columns,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        frameon=False,
        fontsize=8,
        columnspacing=1.3,
        handlelength=1.8,
    )


def draw_trajectories(axes: Axes, shown: Shown, *, named: bool = True) -> None:
    """x_i over the iterations, a broad shade behind each stretch in which a node sends the value it holds.

    Args:
        axes: where.
        shown: the run.
        named: whether there are labels and names for a legend; an inset has none.
    """
    iteration = np.arange(1, len(shown.x) + 1)
    for x, inside, colour in zip(shown.x.T, shown.inside.T, cycle(COLOURS), strict=False):
        plateau = np.where(inside, x, np.nan)
        axes.plot(iteration, plateau, color=colour, linewidth=9, alpha=0.3, solid_capstyle="round", zorder=1)
        axes.plot(iteration, x, color=colour, linewidth=1.3, zorder=3)
    for level in shown.median:
        axes.axhline(level, zorder=4, **DASHED)
    if named:
        few = zip(shown.values, shown.held, strict=True) if shown.held.size <= 15 else ()
        for i, ((value, held), colour) in enumerate(zip(few, cycle(COLOURS), strict=False)):
            offset = f", holds {show_number(held, '.3f')}" if held != value else ""
            name = f"$s_{{{i + 1}}}$ = {show_number(value, '.3f')}{offset}"
            axes.plot([], [], color=colour, linewidth=1.3, label=name)
        axes.plot([], [], color=GREY, linewidth=9, alpha=0.3, label="while $i$ sends what it holds")
        ends = dict.fromkeys(show_number(level, ".3f") for level in shown.median)
        axes.plot([], [], label=f"median {' to '.join(ends)}", **DASHED)
        axes.set(xlabel="iteration", ylabel="$x_i$")


def draw_interval(axes: Axes, at: float, interval: Interval, colour: str = "black") -> None:
    """A confidence interval as a bar with caps."""
    reach = [[max(0.0, interval.value - interval.low)], [max(0.0, interval.high - interval.value)]]
    axes.errorbar([at], [interval.value], yerr=reach, fmt="none", ecolor=colour, elinewidth=1.2, capsize=4, zorder=5)


def draw_curve(axes: Axes, at: Sequence[float], intervals: Sequence[Interval], **style: Any) -> None:
    """Draw measurements at several points: joined by a line, each with its interval."""
    axes.plot(at, [each.value for each in intervals], **style)
    for place, each in zip(at, intervals, strict=True):
        draw_interval(axes, place, each, style["color"])


def set_log_ticks(axes: Axes, numbers: Sequence[float]) -> None:
    """Make the axis from left to right logarithmic, with ticks at these numbers."""
    axes.set_xscale("log")
    axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
    axes.minorticks_off()


def draw_spread(axes: Axes, places: ArrayLike, draws: ArrayLike) -> None:
    """Mean and standard deviation over draws of data and graph, a row each; nothing where there are none."""
    if (rows := np.asarray(draws)).size:
        style: dict[str, Any] = {"color": GREY, "fmt": "D", "markersize": 4, "capsize": 2, "elinewidth": 1, "zorder": 4}
        label = f"{len(rows)} draws: mean ± standard deviation"
        axes.errorbar(places, rows.mean(axis=0), rows.std(axis=0, ddof=1), label=label, **style)


def draw_ceiling(axes: Axes, n: int) -> None:
    """The share that no run with an odd number of nodes can exceed."""
    if n % 2:
        axes.axhline(1 - 1 / n, color="black", ls=(0, (1, 2)), lw=1.1, label="all but the median's holder", zorder=1)

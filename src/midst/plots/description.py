"""A picture of statistics: a histogram over a box, drawn from the answers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from midst.disclosure import Shown
from midst.errors import InputError
from midst.plots.picture import Axes, ConstrainedLayoutEngine, Figure, FuncFormatter, MaxNLocator, Picture
from midst.plots.style import BLUE, GREY, LIGHT_GREY, VERMILION

Answers = Mapping[str, Shown]

_WHISKERS = (("min", "max"), ("p5", "p95"), ("p10", "p90"))  # the first of them that were asked for
_SAME = {"p25": "q1", "p50": "median", "p75": "q3"}


def draw_description(found: Sequence[Answers], columns: Sequence[str]) -> Figure:
    """A histogram, where one was asked for, over a box, a column each.

    Raises:
        InputError: nothing that was asked for can be drawn.
    """
    if not any(_histogram(each) or _marks(each) for each in found):
        raise InputError("nothing to draw; ask for quartiles, a mean or a histogram")
    figure = Picture(figsize=(7, 0.6 + 2.6 * len(found)), layout=ConstrainedLayoutEngine())
    tall = any(_histogram(each) for each in found)
    rows = figure.subfigures(len(found), 1, squeeze=False)[:, 0]
    for part, answers, column in zip(rows, found, columns, strict=True):
        if tall:
            upper, lower = part.subplots(2, 1, sharex=True, height_ratios=(2, 1))
            _draw_histogram(upper, _histogram(answers))
        else:
            lower = part.subplots()
        _draw_box(lower, answers)
        lower.set_xlabel(column)
    return figure


def _histogram(answers: Answers) -> tuple[list[float], list[float | None]] | None:
    """Edges and counts of the first histogram; None of one that is not shown."""
    for name, counts in answers.items():
        if name.startswith("histogram:") and not isinstance(counts, float):
            return [float(Fraction(word)) for word in name.partition(":")[2].split(",")], list(counts)
    return None


def _marks(answers: Answers) -> dict[str, float]:
    """Everything that has a place on the axis, by what it is."""
    single = {name: value for name, value in answers.items() if isinstance(value, float)}
    drawn = ("min", "max", "mean", "median", "p", "trimmed", "winsorised")
    marks = {_SAME.get(name, name): value for name, value in single.items() if name.startswith(drawn)}
    quartiles = answers.get("quartiles")
    if quartiles is not None and not isinstance(quartiles, float):
        named = zip(("q1", "median", "q3"), quartiles, strict=True)
        marks |= {name: value for name, value in named if value is not None}
    return marks


def _draw_histogram(axes: Axes, drawn: tuple[list[float], list[float | None]] | None) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    if drawn is None:
        axes.axis("off")
        return
    edges, counts = drawn
    widths = np.diff(edges)
    even = bool(np.allclose(widths, widths[0]))
    known = np.array([0.0 if count is None else count for count in counts])
    heights = (known if even else known / widths).tolist()  # of unequal cells the area is the count
    axes.bar(edges[:-1], heights, widths, align="edge", color=BLUE, alpha=0.6, edgecolor="white")
    for left, width, height, count in zip(edges, widths, heights, counts, strict=False):
        text = "not shown" if count is None else f"{count:,.0f}"
        axes.annotate(text, (left + width / 2, height), ha="center", va="bottom", fontsize=8, color=GREY)
    axes.margins(y=0.15)
    axes.set_ylabel("values" if even else "values a unit")
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=even))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.6g}"))


def _draw_box(axes: Axes, answers: Answers) -> None:
    """Box, whiskers and means, as far as they were asked for."""
    marks = _marks(answers)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_ylim(-1, 1.6)
    ends = next((pair for pair in _WHISKERS if all(end in marks for end in pair)), None)
    if ends is not None:
        low, high = (marks[end] for end in ends)
        axes.plot([low, high], [0, 0], color=GREY, zorder=1)
        for end in ends:
            axes.plot([marks[end]] * 2, [-0.25, 0.25], color=GREY, zorder=1)
            axes.annotate(end, (marks[end], -0.45), ha="center", va="top", fontsize=8, color=GREY)
    if "q1" in marks and "q3" in marks:
        box = axes.barh(0, marks["q3"] - marks["q1"], 1.0, left=marks["q1"], color="white", edgecolor=BLUE, zorder=2)
        box[0].set_linewidth(1.5)
    if "median" in marks:
        axes.plot([marks["median"]] * 2, [-0.5, 0.5], color=VERMILION, linewidth=2.5, zorder=3, label="median")
    if "mean" in marks:
        axes.plot(marks["mean"], 0, "D", color=LIGHT_GREY, markeredgecolor="black", zorder=4, label="mean")
    for name, value in marks.items():
        if name.startswith(("trimmed", "winsorised")):
            axes.plot(value, 0, "o", markersize=5, zorder=4, label=f"{name} mean")
        elif name not in ("q1", "q3", "median", "mean", *(ends or ())):
            axes.plot(value, 0, "|", markersize=12, color=GREY, zorder=1)
            axes.annotate(name, (value, -0.45), ha="center", va="top", fontsize=8, color=GREY)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper right", ncols=4, frameon=False, fontsize=8)

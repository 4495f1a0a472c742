"""A picture of a sweep: what matters of every cell of its grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from midst.plots.picture import Axes, Figure, LogLocator, NullFormatter, PercentFormatter, Where, draw
from midst.plots.style import COLOURS, LIGHT_GREY, MARKERS

if TYPE_CHECKING:
    from midst.studies.sweep import CellSummary

_NUMBERS = ("n", "c", "arity", "theta", "sigma", "mu")  # settings that an axis can have
_TALL, _MOST_TALL = 0.36, 30.0  # inches: of a cell where each has a line, and of the picture
_TITLES = {
    "rounds": "rounds: median, and eight runs of ten",
    "exposed": "nodes that sent their own value",
    "bits": "given away by a node",
}
_UNITS = {"rounds": "rounds", "exposed": "share of nodes", "bits": "bits"}
_APART = 10  # times the smallest, beyond which an axis is logarithmic


def draw_sweep(cells: Sequence[CellSummary], **where: Unpack[Where]) -> Figure | Axes:
    """Rounds, exposed nodes and, where somebody listened, bits of every cell, beside each other; see `draw`."""
    along = find_axis([cell.settings for cell in cells])
    names = [name for name in _TITLES if name != "bits" or any(cell.bits is not None for cell in cells)]
    panels = {name: partial(_draw, cells=cells, along=along, of=name) for name in names}
    tall = 4.2 if along is not None else min(max(4.2, 1 + _TALL * len(cells)), _MOST_TALL)
    runs, proved = sum(cell.runs for cell in cells), sum(cell.certified for cell in cells)
    title = f"{len(cells):,} cells, {runs:,} runs, {proved:,} of them proved"
    size = (5 * len(panels), tall)
    return draw(panels, main="rounds", size=size, title=title, **where)


def find_axis(settings: Sequence[Mapping[str, str]]) -> str | None:
    """The setting with the most different numbers, if every cell has one; None if there is no such."""
    counts = {name: len({each.get(name) for each in settings}) for name in _NUMBERS}
    whole = [name for name in _NUMBERS if counts[name] > 1 and all(_is_number(each.get(name)) for each in settings)]
    return max(whole, key=counts.__getitem__, default=None)


def _draw(axes: Axes, cells: Sequence[CellSummary], along: str | None, of: str) -> None:
    known = [cell for cell in cells if of != "bits" or cell.bits is not None]
    if along is None:
        _draw_each(axes, known, of)
    else:
        _draw_along(axes, known, along, of)
    axes.set_title(_TITLES[of], fontsize=10)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)


def _draw_along(axes: Axes, cells: Sequence[CellSummary], along: str, of: str) -> None:
    """A curve for all cells that differ in nothing else."""
    series: dict[str, list[CellSummary]] = {}
    for cell in cells:
        series.setdefault(cell.name_without(along), []).append(cell)
    for k, (name, members) in enumerate(series.items()):
        members.sort(key=lambda cell: float(cell.settings[along]))
        where = [float(cell.settings[along]) for cell in members]
        style: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}
        middle, low, high = zip(*(_figures(cell, of) for cell in members), strict=True)
        axes.errorbar(where, middle, (low, high), markersize=4, linewidth=1.2, capsize=2, label=name, **style)
    numbers = sorted({float(cell.settings[along]) for cell in cells})
    if numbers[0] > 0 and numbers[-1] >= _APART * numbers[0]:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
    axes.set_xlabel(along, fontsize=9)
    _scale(axes, "y", cells, of)
    axes.grid(axis="y", color=LIGHT_GREY, alpha=0.3)
    if len(series) > 1:
        axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False, fontsize=8)


def _draw_each(axes: Axes, cells: Sequence[CellSummary], of: str) -> None:
    """A line a cell, from the top."""
    middle, low, high = zip(*(_figures(cell, of) for cell in cells), strict=True)
    places = range(len(cells))
    axes.errorbar(middle, places, xerr=(low, high), fmt="o", markersize=4, capsize=2, color=COLOURS[0])
    for place, cell in zip(places, cells, strict=True):
        axes.text(0.01, place - 0.15, cell.name, transform=axes.get_yaxis_transform(), va="bottom", fontsize=8)
    axes.set_yticks([])
    axes.set_ylim(len(cells) - 0.5, -0.8)
    _scale(axes, "x", cells, of)
    axes.grid(color=LIGHT_GREY, alpha=0.3)


def _scale(axes: Axes, which: str, cells: Sequence[CellSummary], of: str) -> None:
    """The axis of the figures: from 0 on, or logarithmic where rounds are far apart."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_label_text(_UNITS[of], fontsize=9)
    if of == "rounds" and max(cell.most_rounds for cell in cells) >= _APART * min(c.fewest_rounds for c in cells):
        axes.set(**{f"{which}scale": "log"})
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:,.0f}")
        axis.set_minor_formatter(NullFormatter())
        return
    most = max(sum(_figures(cell, of)[::2]) for cell in cells)
    axes.set(**{f"{which}lim": (-0.02, 1.02) if of == "exposed" else (0, 1.05 * most or 1)})
    if of == "exposed":
        axis.set_major_formatter(PercentFormatter(1))


def _figures(cell: CellSummary, of: str) -> tuple[float, float, float]:
    """What is drawn of a cell, and how far below and above it runs lay."""
    if of == "rounds":
        return cell.rounds, cell.rounds - cell.fewest_rounds, cell.most_rounds - cell.rounds
    return (cell.exposed if of == "exposed" else cell.bits or 0.0), 0.0, 0.0


def _is_number(word: str | None) -> bool:
    try:
        float(word or "")
    except ValueError:
        return False
    return True

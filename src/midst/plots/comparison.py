"""A picture of a comparison: bits against rounds, one mark a method and graph, and the floor as a line.

Rules:
- A panel a size, since the floor depends on it: what one answer tells of each value, the less the more there are.
- A method has one colour and one mark in all panels; what is joined by a line is the same method on several graphs.
- Where an answer was not exact the mark is hollow: few bits are easy to have for a wrong answer.
- A row that lacks rounds or bits is not drawn; the table says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from midst.errors import InputError
from midst.plots.picture import Axes, Figure, FuncFormatter, Line2D, Picture
from midst.plots.style import COLOURS, GREY, LIGHT_GREY, MARKERS

if TYPE_CHECKING:
    from midst.studies.compare import Row

_LEAST = 1e-3  # bits, below which the axis is even and not logarithmic
_WIDE = 4  # panels beside each other
_HANDLE = 7  # points, of a mark
_OFF = "hollow: not exact"


def draw_comparison(rows: Sequence[Row]) -> Figure:
    """Bits against rounds, a panel a size.

    Raises:
        InputError: no row has both.
    """
    drawn = [row for row in rows if row.bits is not None and row.rounds is not None]
    if not drawn:
        raise InputError("nothing to draw: no method has both rounds and bits; the table says why")
    sizes = sorted({row.nodes for row in drawn})
    columns = min(len(sizes), _WIDE)
    lines = ceil(len(sizes) / columns)
    figure = Picture(figsize=(1.9 + 2.9 * columns, 0.9 + 3.3 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharey=True)
    names = list(dict.fromkeys(row.method for row in drawn))
    looks = {
        name: (MARKERS[k % len(MARKERS)], COLOURS[(k + k // len(MARKERS)) % len(COLOURS)])
        for k, name in enumerate(names)
    }
    for axes, size in zip(panels.flat, sizes, strict=False):
        _draw_panel(axes, [row for row in drawn if row.nodes == size], size, looks)
    for axes in list(panels.flat)[len(sizes) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("bits given away of a value")
    found = {label: mark for axes in panels.flat for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    labels = [*names, *(label for label in found if label not in names)]
    if _OFF in found:  # of whichever method
        found[_OFF] = Line2D([], [], color=GREY, marker="o", linestyle="", markersize=_HANDLE, markerfacecolor="white")
    figure.legend([found[label] for label in labels], labels, loc="outside right center", frameon=False, fontsize=8)
    return figure


def _draw_panel(axes: Axes, rows: Sequence[Row], size: int, looks: dict[str, tuple[str, str]]) -> None:
    """One size: every method, and the floor."""
    for name, (marker, colour) in looks.items():
        own = sorted((row.rounds, row.bits, bool(row.error)) for row in rows if row.method == name)
        points = np.array(own, np.float64).reshape(-1, 3)
        look: dict[str, Any] = {"marker": marker, "color": colour, "markersize": _HANDLE}
        if len(points):
            axes.plot(points[:, 0], points[:, 1], **look, label=name, linewidth=0.6, alpha=0.85)
        if len(off := points[points[:, 2] > 0]):
            axes.plot(off[:, 0], off[:, 1], **look, label=_OFF, linestyle="", markerfacecolor="white")
    floors = [row.floor for row in rows if row.floor is not None]
    if floors:
        axes.axhline(
            float(np.mean(floors)), color=GREY, linestyle=(0, (5, 3)), linewidth=1.2, label="floor: the answer alone"
        )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=_LEAST, linscale=0.3)
    axes.set_ylim(0, 20)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axes.set(title=f"{size:,} participants", xlabel="rounds")
    axes.grid(color=LIGHT_GREY, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)

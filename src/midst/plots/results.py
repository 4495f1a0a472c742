"""Pictures of a run: the network, and what every node sent over time, or how a search closed in.

Rules:
- A private value is drawn as such only if it is handed in. The plateau of an exposed node does lie at its value: that
  is what it sent to its neighbours.
- Of a search everything that was made public is drawn: how the bracket closed in, probe by probe, and the totals of its
  cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from scipy.sparse import csgraph

from midst.errors import InputError
from midst.files import check_writable, write_whole
from midst.graphs import Graph
from midst.objectives import Quantile
from midst.plots.funnel import ProbeRow, count_steps, find_places, make_rows
from midst.plots.picture import (
    Axes,
    Figure,
    LineCollection,
    MaxNLocator,
    Polygon,
    Rectangle,
    Where,
    check_choice,
    draw,
    make_figure,
    print_size,
    withStroke,
)
from midst.plots.style import EXPOSED, GREEN, HIDDEN, LIGHT_GREY, WIDTH_NAMES, Width, log_spaced, short_name, tidy_power
from midst.result import Result
from midst.trace import Trace, refuse_sum
from midst.types import Array, Bools, Ints

FORMATS = ("png", "pdf", "svg")

_BELOW: dict[str, Any] = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.12),
    "columnspacing": 1.5,
    "frameon": False,
    "fontsize": 9,
}

_PUBLIC = "These totals and the answer are all that is made public."

_NUMBERED = 30  # up to so many nodes are numbered, and have a curve each
_CURVES = 400  # up to so many have a light curve each; beyond, bands
_ARRANGED = 600  # up to so many nodes without positions are arranged by their distances
_LINEAR = 50  # beyond so many iterations the axis is logarithmic
_FRAMES = 1500  # points of a curve, evenly spread over the logarithmic axis
_ROWS_THAT_FIT = 7  # of a search, without a taller picture
_MOST_ROWS, _TOP = 12, 5  # of a search: so many probes are drawn; of more, so many first ones, and the last
_HALF = 0.22  # of a row: half the height of its cells
_STRONG, _FAINT = 0.4, 0.12
_LETTER = 0.016  # of the axis: about how wide a letter is
_NARROW = 5  # inches
_DOTS, _LINES = 20_000, 50_000  # nodes and edges drawn at most


@dataclass(frozen=True, eq=False)
class _Course:
    """How a run went, as it is drawn.

    Attributes:
        trace: the record.
        objective: what was sought.
        answer: of the first coordinate; None where it is not known.
        probes: of the search, the sum that ends it included.
        ended: how the iteration did, for the title.
        took: what the search did, likewise.
        values: the private values, where they are to be drawn.
    """

    trace: Trace
    objective: str
    answer: float | None
    probes: int
    ended: str
    took: str
    values: Array | None

    @classmethod
    def of_result(cls, result: Result, values: Array | None) -> _Course:
        answer, probes, iterations = float(np.ravel(result.value)[0]), result.probes, result.iterations
        state = f"{probes} probes find it" if result.standing else "proved" if result.certified else "no proof"
        ended, took = f"{state} after {iterations:,} iterations", f"{probes} probes, {result.rounds:,} rounds"
        return cls(result.trace, result.objective, answer, probes, ended, took, values)

    @classmethod
    def of_trace(cls, trace: Trace, values: Array | None) -> _Course:
        probes, answer = count_steps(trace), None if trace.answer is None else trace.answer[0]
        ended = f"{trace.iterations:,} iterations" + (f", then {probes} probes" if trace.probes else "")
        return cls(trace, trace.title, answer, probes, ended, f"{probes} probes", values)

    def draw(self, axes: Axes) -> None:
        """What every node sent, thick where that was its own value; or how a search closed in."""
        if self.trace.iterations:
            _draw_curves(axes, self)
        else:
            _draw_search(axes, self)

    @property
    def rows_too_many(self) -> int:
        """Of a search, beyond those that fit."""
        return 0 if self.trace.iterations else max(0, len(_heights(make_rows(self.trace))) - _ROWS_THAT_FIT)


def draw_result(result: Result, values: Array | None = None, **where: Unpack[Where]) -> Figure | Axes:
    """The network beside x_i(t), thick where a node sent its own value; or beside the brackets of a search.

    Args:
        result: of a run that recorded x, or of a search.
        values: the private values, to be drawn as ticks at the right edge.
        where: see `Where`; the panels are "network" and "course".

    Raises:
        InputError: there is nothing to draw, or what is asked for is not there.
    """
    _refuse_empty(result.trace, noise=result.noise is not None)
    course = _Course.of_result(result, values)
    return draw(
        {"network": partial(_draw_network, result=result), "course": course.draw},
        main="course",
        size=(11, 5.2 + 0.4 * course.rows_too_many),
        title=headline(result),
        ratios=(1, 1.35),
        **where,
    )


def draw_trace(trace: Trace, values: Array | None = None, **where: Unpack[Where]) -> Figure | Axes:
    """What every node sent, or how a search closed in, as far as it was recorded; see `draw_result`."""
    _refuse_empty(trace, noise="noise" in trace.parameters)
    course = _Course.of_trace(trace, values)
    size = (7, 5.2 + 0.4 * course.rows_too_many)
    return draw({"course": course.draw}, main="course", size=size, **where)


def _refuse_empty(trace: Trace, noise: bool) -> None:
    if noise:
        raise InputError("a search with noise is not drawn: its totals say nothing for certain")
    refuse_sum(trace)
    if trace.iterations and not len(trace.t):
        raise InputError("no iteration was recorded, and so there is nothing to draw; try record auto")


def draw_both(consensus: Result, search: Result, values: Array | None = None, width: Width | None = None) -> Figure:
    """Two ways to the same answer, side by side: for each the network with whoever was exposed, and below how it went.

    Args:
        consensus: of a run that recorded x.
        search: of a search for the same.
        values: the private values, to be drawn in both.
        width: "column" or "page" of a journal.
    """
    check_choice("width", width, WIDTH_NAMES)
    figure = make_figure(4.4, 16.0) if width == "column" else make_figure(9.6, 8.2)
    if width is None:
        figure.suptitle(f"{search.nodes:,} nodes find the {search.objective} of their values, in two ways", fontsize=14)
    places: Any = [["n0"], ["c0"], ["n1"], ["c1"]] if width == "column" else [["n0", "n1"], ["c0", "c1"]]
    ratios = [1, 1.15] * (len(places) // 2)
    axes = figure.subplot_mosaic(places, height_ratios=ratios)
    for k, (name, result) in enumerate((("consensus", consensus), ("search", search))):
        _draw_network(axes[f"n{k}"], result)
        exposed = f"{len(result.exposed):,} of {result.nodes:,}" if result.exposed else "nobody"
        axes[f"n{k}"].set_title(f"{name}: {result.rounds:,} rounds, {exposed} exposed", fontsize=12, weight="bold")
        _Course.of_result(result, values).draw(axes[f"c{k}"])
    if width is not None:
        print_size(figure, width)
    return figure


def check_picture(path: str | Path) -> Path:
    """The path, if a picture can be written there.

    Raises:
        InputError: the ending is not that of a picture, or no file can be written there.
    """
    target = Path(path)
    if target.suffix.lower().lstrip(".") not in FORMATS:
        raise InputError(f"{target}: a picture ends in {', '.join(f'.{name}' for name in FORMATS)}")
    return check_writable(target)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a picture, whole or not at all.

    Raises:
        InputError: the path is not one for a picture; see `check_picture`.
    """
    ending = check_picture(path).suffix.lower().lstrip(".")
    write_whole(path, lambda file: figure.savefig(file, format=ending, dpi=160), mode=0o644)


def headline(result: Result) -> str:
    """What a reader sees, in one sentence."""
    verb = "agree on" if result.certified else "have not yet agreed on"
    if result.objective == "mean":
        gave = "each value can be computed by whoever knows z(0)"
    elif not result.trace.tells:
        gave = "what that told is not known"
    else:
        count = len(result.exposed)
        who = {0: "none", result.nodes: "all"}.get(count, f"{count:,}")
        verb_of, to = ("sent", "") if _are_sent(result.trace) else ("gave away", " to whoever knows z(0)")
        gave = f"{who} {verb_of} {'its own value' if count <= 1 else 'their own value'}{to}"
    return f"{result.nodes:,} nodes {verb} the {result.objective}; {gave}"


def _are_sent(trace: Trace) -> bool:
    """Whether who is exposed has sent its value itself, as for a quantile; else it follows for whoever knows z(0)."""
    return isinstance(trace.objective, Quantile)


# The network


def _draw_network(axes: Axes, result: Result) -> None:
    graph = result.trace.graph
    place = _part(arrange(graph)) if graph.n <= _NUMBERED else arrange(graph)
    exposed = np.isin(np.arange(graph.n), result._exposed if result.trace.tells else ())
    once = np.flatnonzero(graph.source < graph.target)
    edges, dots = _thin(once, _LINES), _thin(np.arange(graph.n), _DOTS)
    strength = float(np.clip(40 / np.sqrt(edges.size), 0.15, 1.0))
    ends = list(np.stack([place[graph.source[edges]], place[graph.target[edges]]], axis=1))
    many = edges.size > 5000
    axes.add_collection(LineCollection(ends, colors=LIGHT_GREY, linewidths=strength, alpha=strength, rasterized=many))
    size = 220.0 if graph.n <= _NUMBERED else float(np.clip(9000 / graph.n, 1.5, 90))
    gave = "sent its own value" if _are_sent(result.trace) else "its value follows from z(0)"
    kept = "never sent its own value" if _are_sent(result.trace) else "its value does not follow from z(0)"
    if not result.trace.tells:
        kept = "what it told is not known"
    for group, colour, marker, area, name in (
        (dots[~exposed[dots]], HIDDEN, "o", size, kept),
        (dots[exposed[dots]], EXPOSED, "s", size if graph.n <= _NUMBERED else 2 * size, gave),
    ):
        if group.size:
            dot: dict[str, Any] = {"c": colour, "marker": marker, "linewidths": 0}
            axes.scatter(place[group, 0], place[group, 1], s=area, zorder=2, rasterized=many, **dot)
            axes.scatter([], [], s=60, label=name, **dot)
    if graph.n <= _NUMBERED:
        names = [short_name(graph.label(i), 12 if graph.n <= 15 else 7) for i in range(graph.n)]
        look: dict[str, Any] = {"color": "white", "weight": "bold", "va": "center_baseline"}
        if below := max(map(len, names)) > 3:
            look = {"va": "top", "path_effects": [withStroke(linewidth=2.5, foreground="white")]}
        look |= {"xytext": (0, -9 * below), "textcoords": "offset points"}
        look["fontsize"] = 6.5 if below and graph.n > 15 else 8
        for name, where in zip(names, place, strict=True):
            axes.annotate(name, where, ha="center", **look)
    shown = f"{_some(dots.size, graph.n)} nodes, {_some(edges.size, once.size)} edges"
    axes.set_title(f"{graph.name}, {shown}", fontsize=10)
    middle, reach = (place.max(axis=0) + place.min(axis=0)) / 2, 0.56 * np.ptp(place, axis=0).max()
    axes.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach), aspect="equal")
    axes.axis("off")
    _explain(axes, 2)


def arrange(graph: Graph) -> Array:
    """Where to draw each node: its position; else where distances resemble numbers of hops; else on a circle.

    The second is stress majorisation (Gansner, Koren and North, 2004) with weights hops⁻², begun on the circle; it
    needs no random number and unfolds rings, paths and trees.
    """
    if graph.positions is not None:
        return graph.positions
    angle = np.pi / 2 - 2 * np.pi * np.arange(graph.n) / graph.n
    place = np.column_stack([np.cos(angle), np.sin(angle)])
    if graph.n > _ARRANGED or graph.edges == graph.n * (graph.n - 1) // 2:
        return place
    hops = np.minimum(csgraph.dijkstra(graph.adjacency(), unweighted=True), graph.n) + np.eye(graph.n)
    weight = hops**-2 - np.eye(graph.n)
    solve = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    place *= hops.max() / 2
    for _ in range(100):
        gap = np.linalg.norm(place[:, None] - place, axis=2)
        pull = weight * hops / np.maximum(gap, 1e-9)
        place = solve @ (pull.sum(axis=1)[:, None] * place - pull @ place)
    return np.asarray(place)


def _part(place: Array) -> Array:
    """Moves nodes a little that would hide each other's number."""
    room = 0.075 * np.ptp(place, axis=0).max()
    for _ in range(50):
        gap = place[:, None] - place
        near = np.linalg.norm(gap, axis=2) + 2 * room * np.eye(len(place))
        push = np.maximum(room / near - 1, 0) / 2
        place = place + (push[:, :, None] * gap).sum(axis=1)
    return place


# The curves


def _draw_curves(axes: Axes, course: _Course) -> None:
    trace, values = course.trace, course.values
    frames = log_spaced(len(trace.t), _FRAMES)
    x, inside = trace.x[frames], trace.inside[frames]
    if x.ndim == 3:
        x, inside = x[:, :, 0], inside[:, :, 0]
    iteration = trace.t[frames] + 1
    if trace.graph.n > _CURVES:
        _draw_bands(axes, iteration, x)
    else:
        _draw_lines(axes, iteration, x, inside & _are_sent(trace))
    if course.answer is not None:
        dashed: dict[str, Any] = {"color": "black", "linestyle": (0, (5, 3)), "linewidth": 1.2, "zorder": 4}
        axes.axhline(course.answer, label=course.objective, **dashed)
    if values is not None:
        _draw_values(axes, values.reshape(trace.graph.n, -1)[:, 0])
    if trace.iterations > _LINEAR:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(1, max(trace.iterations, 2))
    of = f" (first of {trace.x.shape[2]} coordinates)" if trace.x.ndim == 3 else ""
    axes.set_title(f"what each node sent{of}; {course.ended}", fontsize=10)
    axes.set_xlabel("iteration", fontsize=9)
    axes.set_ylabel("x", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    _explain(axes, 4 if values is None else 2)


def _draw_lines(axes: Axes, iteration: Ints, x: Array, inside: Bools) -> None:
    """A curve a node, thick while inside."""
    few = x.shape[1] <= _NUMBERED
    thin, thick = (0.9, 3.0) if few else (0.5, 1.2)
    axes.plot(iteration, x, color=HIDDEN, linewidth=thin, alpha=0.75 if few else 0.3)
    axes.plot([], [], color=HIDDEN, linewidth=1, label="one node")
    if inside.any():
        axes.plot(iteration, np.where(inside, x, np.nan), color=EXPOSED, linewidth=thick, solid_capstyle="round")
        padded = np.pad(inside, ((1, 1), (0, 0)))
        t, i = np.nonzero(inside & ~padded[:-2] & ~padded[2:])  # a plateau of one iteration is a dot, not a line
        axes.plot(iteration[t], x[t, i], "o", color=EXPOSED, markersize=thick, markeredgewidth=0)
        axes.plot([], [], color=EXPOSED, linewidth=3, label="while it sends its own value")


def _draw_bands(axes: Axes, iteration: Ints, x: Array) -> None:
    """Where all, nine tenths and half of the nodes are."""
    for outside, alpha, name in ((0.0, 0.15, "all nodes"), (0.05, 0.25, "90% of them"), (0.25, 0.45, "half of them")):
        low, high = np.quantile(x, [outside, 1 - outside], axis=1)
        axes.fill_between(iteration, low, high, color=HIDDEN, alpha=alpha, linewidth=0, label=name)


def _draw_values(axes: Axes, values: Array) -> None:
    """Ticks at the right edge; those far from all curves are only counted, lest they flatten the curves."""
    low, high = axes.get_ylim()
    room = (high - low) / 2
    near = values[(values >= low - room) & (values <= high + room)]
    axes.set_ylim(near.min(initial=low), near.max(initial=high))
    beyond = f" ({values.size - near.size:,} beyond the axis)" if near.size < values.size else ""
    at_edge: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "clip_on": False, "scaley": False}
    axes.plot(
        np.full(near.size, 1.015), near, "_", color=GREEN, markersize=9, label=f"private values{beyond}", **at_edge
    )


# The search


def _draw_search(axes: Axes, course: _Course) -> None:
    """A row a probe, its cells equally wide; the cell that is opened widens into the next row, down to the answer."""
    trace, values = course.trace, course.values
    rows = make_rows(trace)
    heights = _heights(rows)
    end = max(heights.values(), default=-1) + 1
    for k, row in enumerate(rows):
        if row.step not in heights:
            continue
        height = heights[row.step]
        _draw_row(axes, row, height)
        if k == 0 or rows[k - 1].step != row.step:
            _say(axes, height, f"probe {row.step + 1}")
        if row.opens is not None and rows[row.opens[0]].step in heights and height != _TOP + (len(heights) < end):
            _draw_opening(axes, rows[row.opens[0]], row.opens[1], height, row.left, row.right)
        if height == end - 1:
            for cell in row.chosen:
                _draw_opening(axes, row, cell, end, 0.0, 1.0)
    if len(heights) < end:
        hidden = len({row.step for row in rows}) - len(heights)
        axes.text(0.5, _TOP, f"… {hidden} more probes …", ha="center", va="center", fontsize=9)
    summed = course.probes > 1 + max((row.step for row in rows), default=-1)
    words = "" if course.answer is None else tidy_power(f"{course.answer:.10g}")
    axes.add_patch(Rectangle((0, end - _HALF), 1, 2 * _HALF, facecolor=(HIDDEN, _STRONG), linewidth=0))
    axes.text(0.5, end, f"{course.objective} {words}", ha="center", va="center", fontsize=10, weight="bold")
    _say(axes, end, f"probe {course.probes}\n(a sum)" if summed else "answer")
    if values is not None:
        own = values if trace.owners is not None or values.ndim == 1 else values[:, 0]
        places = [(place, rows[k].step) for k, _, place in find_places(trace, own) if rows[k].step in heights]
        x, y = [place for place, _ in places], [heights[step] - _HALF + 0.07 for _, step in places]
        axes.plot(x, y, "o", color=GREEN, markersize=4, markeredgewidth=0, label="private values")
        _explain(axes, 3)
    of = f" (first of {trace.x.shape[2]} coordinates)" if trace.x.ndim == 3 else ""
    axes.set_title(f"how many values lie in each cell{of}; {course.took}", fontsize=10)
    axes.annotate(_PUBLIC, (0.5, -0.03), xycoords="axes fraction", ha="center", va="top", fontsize=9)
    axes.set(xlim=(-0.15, 1.05), ylim=(end + 0.5, -0.5))
    axes.axis("off")


def _heights(rows: Sequence[ProbeRow]) -> dict[int, int]:
    """On which line each step is drawn; of many steps the first and the last, with a line between them left free."""
    steps = sorted({row.step for row in rows})
    if len(steps) <= _MOST_ROWS:
        return {step: height for height, step in enumerate(steps)}
    last = len(steps) - _MOST_ROWS + _TOP + 1
    return {step: height for height, step in enumerate(steps[:_TOP])} | {
        step: height for height, step in enumerate(steps[last:], start=_TOP + 1)
    }


def _say(axes: Axes, height: int, words: str) -> None:
    axes.text(-0.02, height, words, ha="right", va="center", fontsize=9)


def _draw_row(axes: Axes, row: ProbeRow, height: int) -> None:
    """The cells of a probe with their totals, and under their borders what fits of the thresholds."""
    width = (row.right - row.left) / len(row.totals)
    for cell, total in enumerate(row.totals):
        left, held = row.place(cell), cell in row.chosen
        colour = (HIDDEN, _STRONG if held else _FAINT)
        axes.add_patch(Rectangle((left, height - _HALF), width, 2 * _HALF, facecolor=colour, edgecolor="white"))
        weight = "bold" if held else "normal"
        axes.text(left + width / 2, height, f"{total:,}", ha="center", va="center", fontsize=9, weight=weight)
    taken: list[tuple[float, float]] = []
    for cells, words in row.marks:
        place, room = row.place(cells), _LETTER * (len(words) + 1) / 2
        if all(place + room < low or place - room > high for low, high in taken):
            taken.append((place - room, place + room))
            under = axes.text(place, height + _HALF + 0.03, words, ha="center", va="top", fontsize=8, zorder=3)
            under.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _draw_opening(axes: Axes, row: ProbeRow, cell: int, height: int, left: float, right: float) -> None:
    """From the ends of a cell down to the ends of what it is opened into."""
    ends = [(row.place(cell), left), (row.place(cell + 1), right)]
    high, low = height - 1 + _HALF, height - _HALF
    corners = [(ends[0][0], high), (ends[1][0], high), (ends[1][1], low), (ends[0][1], low)]
    axes.add_patch(Polygon(corners, facecolor=(HIDDEN, _FAINT / 2), linewidth=0, zorder=0))
    for top, bottom in ends:
        axes.plot([top, bottom], [high, low], color=LIGHT_GREY, linewidth=0.8, zorder=0)


def _explain(axes: Axes, columns: int) -> None:
    """A legend under the axes; in a narrow figure of two columns at most."""
    whole = axes.get_figure()
    narrow = whole is not None and whole.bbox.width < _NARROW * whole.dpi
    axes.legend(ncols=min(columns, 2) if narrow else columns, **_BELOW)


def _thin(items: Ints, most: int) -> Ints:
    """At most so many of them, evenly spread."""
    return items[:: -(-items.size // most)] if items.size else items


def _some(drawn: int, total: int) -> str:
    return f"{total:,}" if drawn == total else f"{drawn:,} of {total:,}"

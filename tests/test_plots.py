"""Pictures: drawn for every kind and size, honest about what they show, and silent about values."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import midst
from midst import graphs, plots
from midst.errors import InputError


def run(n: int, graph: Any = "ring", coordinates: int | None = None, **options: Any) -> midst.Result:
    values = np.random.default_rng(5).standard_normal(n if coordinates is None else (n, coordinates))
    stop = options.pop("stop", midst.After(options.pop("iterations", 300)))
    return midst.median(values, graph=graph, rng=7, method=midst.Consensus(stop=stop), **options)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]


def legends(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("kind", graphs.KINDS)
def test_every_kind(kind: str) -> None:
    figure = run(12, kind).plot()
    figure.draw_without_rendering()
    assert {str(i) for i in range(12)} <= set(texts(figure))


@pytest.mark.parametrize(("n", "iterations"), [(3, 1), (30, 20), (31, 200), (400, 60), (401, 60), (700, 60)])
def test_every_size(n: int, iterations: int) -> None:
    figure = run(n, iterations=iterations).plot(values=True)
    figure.draw_without_rendering()
    assert min(text.get_fontsize() for text in figure.findobj(Text) if isinstance(text, Text)) >= 8
    assert ("half of them" in legends(figure)) == (n > 400)
    assert figure.axes[1].get_xscale() == ("log" if iterations > 50 else "linear")


@pytest.mark.parametrize("record", ["none", "audit", "auto", "all", 7])
def test_every_record(record: Any) -> None:
    run(9, record=record).plot().draw_without_rendering()


def test_long_runs_are_thinned_to_what_the_axis_can_show() -> None:
    axes = run(3, iterations=5000, record="all").plot().axes[1]
    x = np.asarray(axes.lines[0].get_xdata())
    assert x.size < 2000
    assert (x[0], x[-1]) == (1, 5000)


def test_legends_do_not_cover_the_data() -> None:
    figure = run(15, "rgg").plot(values=True)
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert not axes.get_legend().get_window_extent().overlaps(axes.get_window_extent())
        assert figure.bbox.fully_contains(*axes.get_legend().get_window_extent().min)
        assert figure.bbox.fully_contains(*axes.get_legend().get_window_extent().max)


def test_values_are_drawn_only_when_asked_for() -> None:
    result = run(15)
    assert not any("private" in name for name in legends(result.plot()))
    asked = result.plot(values=True)
    (ticks,) = [line for line in asked.axes[1].lines if str(line.get_label()).startswith("private values")]
    drawn, beyond = np.asarray(ticks.get_ydata()), str(ticks.get_label())
    values = np.random.default_rng(5).standard_normal(15)
    assert np.isin(drawn, values).all()
    assert drawn.size == 15 or f"({15 - drawn.size} beyond the axis)" in beyond


def test_far_values_do_not_flatten_the_curves() -> None:
    values = [1.0, 2.0, 3.0, 1e6, 1e6]
    result = midst.median(values, "complete", method=midst.Consensus(stop=midst.After(200)), scale=1.0, rng=7)
    low, high = result.plot(values=True).axes[1].get_ylim()
    alone = result.plot().axes[1].get_ylim()
    assert high - low <= 2 * (alone[1] - alone[0]) * 1.001


def test_plateaus_are_where_a_node_is_inside() -> None:
    result = run(9, "star", record="all")
    axes = result.plot().axes[1]
    thick = [line for line in axes.lines if line.get_linewidth() == 3 and np.size(line.get_xdata()) == 300]
    drawn = np.column_stack([np.asarray(line.get_ydata()) for line in thick])
    assert np.array_equal(np.isfinite(drawn), result.trace.inside)
    assert np.array_equal(drawn[result.trace.inside], result.trace.x[result.trace.inside])


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ({"rng": 7}, r"5 nodes agree on the median; (all|none|\d) sent (its|their) own value"),
        ({"method": "search"}, "5 nodes agree on the median; none sent its own value"),
        ({"method": midst.Consensus(stop=midst.After(2))}, "5 nodes have not yet agreed on the median; "),
    ],
)
def test_headline(options: dict[str, Any], title: str) -> None:
    result = midst.median([1.0, 2.0, 3.0, 4.0, 5.0], **options)
    assert re.match(title, plots.headline(result))


def test_headline_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    result = midst.median([1.0, 2.0, 3.0], graph="complete", rng=7)
    for exposed, end in {
        (): "none sent its own value",
        (1,): "1 sent its own value",
        (0, 1): "2 sent their own value",
        (0, 1, 2): "all sent their own value",
    }.items():
        object.__setattr__(result, "exposed", exposed)
        assert plots.headline(result) == f"3 nodes agree on the median; {end}"


def test_the_mean_speaks_of_z0() -> None:
    result = midst.mean([1.0, 2.0, 4.0], graph="complete", rng=7)
    assert plots.headline(result) == "3 nodes agree on the mean; each value can be computed by whoever knows z(0)"
    assert legends(result.plot()) == ["its value follows from z(0)", "one node", "mean"]


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({"stop": midst.Exact()}, "probes find it after"),
        ({"stop": midst.Certified()}, "; proved after"),
        ({"iterations": 2}, "; no proof after 2 iterations"),
    ],
)
def test_the_title_says_what_is_proved(options: dict[str, Any], state: str) -> None:
    assert any(state in text for text in texts(run(9, **options).plot()))


@pytest.mark.parametrize(
    "options", [{}, {"bounds": (-9, 9)}, {"bounds": (-9, 9), "resolution": 0.1}, {"coordinates": 2}]
)
def test_a_search_shows_how_it_closed_in(options: dict[str, Any]) -> None:
    """A row a probe with the totals of its cells, nobody marked, and no value unless asked for."""
    shape = (15, options.pop("coordinates")) if "coordinates" in options else 15
    values = np.random.default_rng(5).standard_normal(shape)
    result = midst.median(values, "ring", method="search", **options)
    figure = result.plot()
    figure.draw_without_rendering()
    assert "never sent its own value" in legends(figure)
    assert not any("private" in name for name in legends(figure))
    first = [probe for probe in result.trace.probes if probe.coordinate == 0]
    assert len(figure.axes[1].patches) == sum(len(probe.totals) for probe in first)
    assert any(name.startswith("private") for name in legends(result.plot(values=True)))


def test_a_search_of_lists_can_be_drawn() -> None:
    lists = [[1.0, 2.0], [3.0], [4.0, 5.0, 9.0]]
    midst.median(lists, "ring", method="search", pooled=True).plot(values=True).draw_without_rendering()


def test_vectors_show_their_first_coordinate() -> None:
    figure = run(5, coordinates=3).plot(values=True)
    assert any("first of 3 coordinates" in text for text in texts(figure))


def test_short_labels_are_drawn_and_long_ones_numbered() -> None:
    triangle = [(0, 1), (1, 2), (2, 0)]
    graph = graphs.from_edges(3, triangle, labels=["Ada", "Bob", "Christopher"])
    assert {"Ada", "Bob", "2"} <= set(texts(run(3, graph).plot()))


def test_large_graphs_are_thinned_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "_LINES", 10)
    monkeypatch.setattr(plots, "_DOTS", 6)
    figure = run(12, "complete").plot()
    assert "complete, 6 of 12 nodes, 10 of 66 edges" in texts(figure)


def test_arrange_unfolds_a_ring_and_spreads_everything() -> None:
    ring = plots.arrange(graphs.ring(20))
    radius = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    assert np.ptp(radius) < 1e-6 * radius.mean()
    for graph in (graphs.tree(60, rng=1), graphs.from_edges(4, [(0, 1), (2, 3)])):
        place = plots.arrange(graph)
        assert np.isfinite(place).all()
        gap = np.linalg.norm(place[:, None] - place, axis=2) + np.eye(graph.n)
        assert gap.min() > 1e-3


def test_settings_of_the_user_stay() -> None:
    before = dict(mpl.rcParams)
    run(5).plot()
    assert dict(mpl.rcParams) == before


def test_no_pyplot() -> None:
    script = "import sys, midst; midst.median([1., 2., 3.], rng=7).plot(); print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


def test_missing_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "midst.plots")
    result = run(5)
    with pytest.raises(midst.MissingExtra, match=r"matplotlib is not installed; try: pip install 'midst\[plot\]'"):
        result.plot()


def test_a_picture_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = run(5).plot()
    with pytest.raises(InputError, match="a picture ends in"):
        plots.save_figure(figure, tmp_path / "run.gif")
    plots.save_figure(figure, tmp_path / "run.png")
    before = (tmp_path / "run.png").read_bytes()
    monkeypatch.setattr(figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        plots.save_figure(figure, tmp_path / "run.png")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("run.png", before)]

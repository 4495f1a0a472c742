"""Pictures: drawn for every kind and size, honest about what they show, and silent about values."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from matplotlib.text import Text

import midst
from midst import graphs
from midst.errors import InputError, MissingExtra
from midst.plots import results
from midst.plots.funnel import make_rows


def run(
    n: int, graph: Any = "ring", coordinates: int | None = None, stop: Any = None, iterations: int = 300, **options: Any
) -> midst.Result:
    values = np.random.default_rng(5).standard_normal(n if coordinates is None else (n, coordinates))
    options = {"method": midst.Consensus(stop=midst.After(iterations) if stop is None else stop)} | options
    return midst.median(values, graph=graph, rng=7, **options)


def search(n: int = 9, values: Any = None, **options: Any) -> midst.Result:
    numbers = np.random.default_rng(5).standard_normal(n) if values is None else values
    return midst.median(numbers, graph="ring", rng=7, **({"method": "search"} | options))


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]


def legends(figure: Figure) -> list[str]:
    found = [axes.get_legend() for axes in figure.axes]
    return [text.get_text() for legend in found if legend is not None for text in legend.get_texts()]


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
    """Whatever was kept of the run, everybody is in the picture."""
    figure = run(9, record=record).plot()
    figure.draw_without_rendering()
    assert {str(i) for i in range(9)} <= set(texts(figure))
    assert len(figure.axes[1].lines) > 0


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
    method = midst.Consensus(stop=midst.After(200))
    result = midst.median(values, graph="complete", scale=1.0, rng=7, method=method)
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
        ({"rng": 7, "method": "consensus"}, r"5 nodes agree on the median; (all|none|\d) sent (its|their) own value"),
        ({"method": midst.Consensus(stop=midst.After(2))}, "5 nodes have not yet agreed on the median; "),
        ({"method": "search"}, "5 nodes agree on the median; none sent its own value"),
    ],
)
def test_headline(options: dict[str, Any], title: str) -> None:
    result = midst.median([1.0, 2.0, 3.0, 4.0, 5.0], **options)
    assert re.match(title, results.headline(result))


def test_headline_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    result = midst.median([1.0, 2.0, 3.0], graph="complete", rng=7)
    for exposed, end in {
        (): "none sent its own value",
        (1,): "1 sent its own value",
        (0, 1): "2 sent their own value",
        (0, 1, 2): "all sent their own value",
    }.items():
        object.__setattr__(result, "_exposed", exposed)
        assert results.headline(result) == f"3 nodes agree on the median; {end}"


def test_the_mean_speaks_of_z0() -> None:
    result = midst.mean([1.0, 2.0, 4.0], graph="complete", rng=7, method="consensus")
    assert results.headline(result) == "3 nodes agree on the mean; each value can be computed by whoever knows z(0)"
    assert legends(result.plot()) == ["its value follows from z(0)", "one node", "mean"]


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({"stop": midst.Exact()}, r"; \d+ probes find it after \d+ iterations"),
        ({"stop": midst.Certified()}, r"; proved after \d+ iterations"),
        ({"iterations": 2}, "; no proof after 2 iterations"),
    ],
)
def test_the_title_says_what_is_proved(options: dict[str, Any], state: str) -> None:
    assert any(re.search(state, text) for text in texts(run(9, **options).plot()))


def test_curves_end_where_the_title_says() -> None:
    result = run(9, stop=midst.Exact())
    axes = result.plot().axes[1]
    title = f"; {result.probes} probes find it after {result.iterations} iterations"
    assert axes.get_title().endswith(title)
    assert axes.get_xlim() == (1, result.iterations)
    assert max(np.max(line.get_xdata()) for line in axes.lines if np.size(line.get_xdata()) > 2) == result.iterations


def test_vectors_show_their_first_coordinate() -> None:
    figure = run(5, coordinates=3).plot(values=True)
    assert any("first of 3 coordinates" in text for text in texts(figure))


# Of a search


def boxes(axes: Any) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_a_search_is_drawn_as_a_funnel_of_probes() -> None:
    result = search(bounds=(-5, 5))
    axes = result.plot().axes[1]
    written = [text.get_text() for text in axes.texts]
    totals = [f"{total}" for probe in result.trace.probes for total in probe.totals]
    assert len(boxes(axes)) == len(totals) + 1
    places = {text.get_position(): text.get_text() for text in axes.texts}
    middles = [(box.get_x() + box.get_width() / 2, box.get_y() + box.get_height() / 2) for box in boxes(axes)]
    assert [places[x, round(y)] for x, y in middles[:-1]] == totals
    for row, probe in enumerate(result.trace.probes):
        widths = [box.get_width() for box in boxes(axes) if round(box.get_y() + box.get_height() / 2) == row]
        assert widths == pytest.approx([1 / len(probe.totals)] * len(probe.totals))
    answer = f"{result.value:.10g}".replace("-", "−")
    assert f"median {answer}" in written
    assert f"probe {result.probes}\n(a sum)" in written
    assert axes.get_title() == f"how many values lie in each cell; {result.probes} probes, {result.rounds} rounds"
    # each opening leads from a chosen cell to the whole of the next row
    openings = [patch.get_xy() for patch in axes.patches if isinstance(patch, Polygon)]
    assert len(openings) == len(result.trace.probes)
    assert all({0.0, 1.0} <= set(corners[:, 0]) for corners in openings)


def test_no_private_value_is_in_the_picture_of_a_search() -> None:
    values = np.random.default_rng(5).standard_normal(9)
    result = search(values=values)
    drawn = " ".join(texts(result.plot())).replace("−", "-")
    others = [value for value in values if value != result.value]
    assert not any(f"{value:.6g}" in drawn for value in others)
    assert "private values" not in legends(result.plot())


@pytest.mark.parametrize("bounds", [None, (-5, 5)])
def test_values_that_are_asked_for_lie_in_their_cells(bounds: Any) -> None:
    result = search(bounds=bounds)
    axes = result.plot(values=True).axes[1]
    (dots,) = [line for line in axes.lines if line.get_label() == "private values"]
    at = np.column_stack([np.asarray(dots.get_xdata()), np.asarray(dots.get_ydata())])
    for box, total in zip(boxes(axes), [n for probe in result.trace.probes for n in probe.totals], strict=False):
        x, y = box.get_xy()
        inside = (at[:, 0] > x) & (at[:, 0] < x + box.get_width())
        inside &= (at[:, 1] > y) & (at[:, 1] < y + box.get_height())
        assert inside.sum() == total


def test_of_many_probes_the_first_and_the_last_are_drawn() -> None:
    result = search(14, definition="averaged_inverted_cdf", resolution=0.01)  # from ±1e16
    figure = result.plot()
    figure.draw_without_rendering()
    written = [text.get_text() for text in figure.axes[1].texts]
    steps = {probe.step for probe in result.trace.probes}
    rows = [text for text in written if re.fullmatch(r"probe \d+", text)]
    assert len(steps) > 20
    assert rows[:5] == [f"probe {k + 1}" for k in range(5)]
    assert rows[-1] == f"probe {max(steps) + 1}"
    assert len(rows) == 11
    assert f"… {len(steps) - 11} more probes …" in written


@pytest.mark.parametrize("probes", [1, 2, 3, 5, 8, 11, 12, 15])  # of more than eleven some are left out
def test_rows_do_not_touch_each_other(probes: int) -> None:
    result = search(200, method=midst.Search(arity=1, spacing="value"), bounds=(-100, 100))
    kept = tuple(probe for probe in result.trace.probes if probe.step < probes)
    object.__setattr__(result, "trace", replace(result.trace, probes=kept))
    figure = result.plot()
    figure.draw_without_rendering()
    words = [text for text in figure.axes[1].texts if text.get_text()]
    extents = [text.get_window_extent() for text in words]
    for i, one in enumerate(extents):
        for other in extents[:i]:
            assert not one.shrunk(0.9, 0.8).overlaps(other)


def test_equal_values_are_closed_in_on() -> None:
    result = search(values=[0.3] * 5 + [0.1, 0.7], bounds=(0, 1))
    written = [text.get_text() for text in result.plot().axes[1].texts]
    assert "= 0.3" in written
    assert "answer" in written  # nothing was summed


def test_a_midpoint_is_closed_in_on_from_both_sides() -> None:
    result = search(14, definition="averaged_inverted_cdf", resolution=0.01, bounds=(-5, 5))
    rows = make_rows(result.trace)
    assert len(rows[-1].chosen) == 2 or any(a.step == b.step for a, b in pairwise(rows))
    result.plot(values=True).draw_without_rendering()


def test_vectors_and_lists_are_drawn_too() -> None:
    rows = np.random.default_rng(3).standard_normal((9, 2))
    found = search(values=rows)
    assert "first of 2 coordinates" in found.plot(values=True).axes[1].get_title()
    lists = [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]]
    pooled = search(values=lists, pooled=True)
    axes = pooled.plot(values=True).axes[1]
    (dots,) = [line for line in axes.lines if line.get_label() == "private values"]
    assert np.size(dots.get_xdata()) >= 6


def test_a_search_that_asked_nothing_is_its_answer() -> None:
    result = search(values=[2.0, 2.0, 2.0], bounds=(1.9, 2.1), resolution=1)
    assert result.trace.probes == ()
    result.plot(values=True).draw_without_rendering()


def test_both_methods_side_by_side() -> None:
    values = np.random.default_rng(5).standard_normal(9)
    problem = midst.Problem(graphs.rgg(9, rng=1), values, objective=midst.Quantile(0.5))
    consensus, found = (midst.solve(problem, name, rng=7) for name in ("consensus", "search"))  # type: ignore[arg-type]
    figure = results.draw_both(consensus, found)
    figure.draw_without_rendering()
    written = texts(figure)
    assert f"consensus: {consensus.rounds} rounds, {len(consensus.exposed)} of 9 exposed" in written
    assert f"search: {found.rounds} rounds, nobody exposed" in written
    assert min(text.get_fontsize() for text in figure.findobj(Text) if isinstance(text, Text)) >= 8
    assert legends(figure).count("sent its own value") == 1
    assert not any("private" in name for name in legends(figure))
    assert sum("private" in name for name in legends(results.draw_both(consensus, found, values))) == 2


# Names, sizes, files


@pytest.mark.parametrize(
    ("labels", "drawn"),
    [
        (("1", "2", "3", "1000"), ("1", "2", "3", "1000")),
        (("anna", "bob", "carl", "a-very-long-hospital-name"), ("anna", "bob", "carl", "a-very-…name")),
        (("$a$", "b", "c", "d"), (r"\$a\$", "b", "c", "d")),
    ],
)
def test_a_node_is_drawn_with_its_label(labels: tuple[str, ...], drawn: tuple[str, ...]) -> None:
    figure = run(4, graphs.ring(4).with_labels(labels)).plot(of="network")
    assert tuple(text.get_text() for text in figure.axes[0].texts) == drawn
    figure.draw_without_rendering()


@pytest.mark.parametrize("count", [16, 30])
def test_labels_alike_at_their_beginning_stay_apart(count: int) -> None:
    labels = [f"hospital-{i}" for i in range(count)]
    figure = run(count, graphs.complete(count).with_labels(labels)).plot(of="network")
    assert len({text.get_text() for text in figure.axes[0].texts}) == count


def test_large_graphs_are_thinned_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "_LINES", 10)
    monkeypatch.setattr(results, "_DOTS", 6)
    figure = run(12, "complete").plot()
    assert "complete, 6 of 12 nodes, 10 of 66 edges" in texts(figure)


def test_arrange_unfolds_a_ring_and_spreads_everything() -> None:
    ring = results.arrange(graphs.ring(20))
    radius = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    assert np.ptp(radius) < 1e-6 * radius.mean()
    for graph in (graphs.tree(60, rng=1), graphs.from_edges(4, [(0, 1), (2, 3)])):
        place = results.arrange(graph)
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
    for name in ("midst.plots.picture", "midst.plots.results"):
        monkeypatch.delitem(sys.modules, name)
    result = run(5)
    with pytest.raises(MissingExtra, match=r"matplotlib is not installed; try: .*pip install .*\[plot\]'$"):
        result.plot()


def test_a_picture_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = run(5).plot()
    with pytest.raises(InputError, match="a picture ends in"):
        results.save_figure(figure, tmp_path / "run.gif")
    results.save_figure(figure, tmp_path / "run.png")
    before = (tmp_path / "run.png").read_bytes()
    monkeypatch.setattr(figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        results.save_figure(figure, tmp_path / "run.png")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("run.png", before)]

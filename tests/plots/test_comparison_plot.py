"""The picture of a comparison: a mark a method, the floor as a line, nothing for what is missing."""

from __future__ import annotations

import pytest

from midst import InputError
from midst.studies.compare import Row

pytest.importorskip("matplotlib")
from midst.plots.comparison import draw_comparison


def make_row(method, nodes, rounds, bits, floor=0.5, error=0.0):
    return Row(method, "ring", nodes, error, rounds, 100.0, 0.1, 0.0, bits, floor, None, "nobody", None)


ROWS = [make_row("a", 5, 10.0, 2.0), make_row("b", 5, 20.0, 1.0), make_row("a", 15, 5.0, 3.0, 0.2)]


def test_a_panel_a_size_with_its_floor():
    first, second = draw_comparison(ROWS).axes
    floors = [
        next(line.get_ydata()[0] for line in axes.lines if line.get_label() == "floor: the answer alone")
        for axes in (first, second)
    ]
    assert floors == [0.5, 0.2]
    assert [axes.get_title() for axes in (first, second)] == ["5 participants", "15 participants"]
    assert {line.get_label() for line in first.lines} == {"a", "b", "floor: the answer alone"}


def test_methods_look_different_and_alike_in_all_panels():
    many = [make_row(f"m{k}", nodes, 10.0, 1.0 + k) for k in range(13) for nodes in (5, 15)]
    looks = [
        {line.get_label(): (line.get_marker(), line.get_color()) for line in axes.lines if line.get_label()[0] == "m"}
        for axes in draw_comparison(many).axes
    ]
    assert looks[0] == looks[1]
    assert len(set(looks[0].values())) == 13


def test_what_is_missing_is_not_drawn():
    (axes,) = draw_comparison([*ROWS[:1], make_row("b", 5, None, 1.0), make_row("c", 5, 10.0, None)]).axes
    assert "b" not in {line.get_label() for line in axes.lines}
    with pytest.raises(InputError, match="nothing to draw"):
        draw_comparison([make_row("b", 5, None, 1.0)])


def test_marks_of_wrong_answers_are_hollow():
    rows = [make_row("a", 5, 10.0, 2.0), make_row("a", 5, 30.0, 2.0, error=0.1), make_row("b", 5, 20.0, 1.0)]
    figure = draw_comparison(rows)
    (hollow,) = (line for line in figure.axes[0].lines if line.get_label() == "hollow: not exact")
    assert (list(hollow.get_xdata()), hollow.get_markerfacecolor()) == ([30.0], "white")
    assert "hollow: not exact" in [text.get_text() for text in figure.legends[0].get_texts()]
    exact = draw_comparison(ROWS)
    assert "hollow: not exact" not in [text.get_text() for text in exact.legends[0].get_texts()]

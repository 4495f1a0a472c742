"""Pictures of a leakage say what the report says."""

from __future__ import annotations

import numpy as np
import pytest

import midst
from midst import graphs
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import audit

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(
    ("nodes", "adversary"), [(7, Adversary()), (7, Adversary((2,), True, "sealed")), (45, Adversary())]
)
def test_three_panels(nodes, adversary):
    from midst.plots.leakage import draw_leakage

    values = np.random.default_rng(2).normal(size=nodes)
    problem = midst.Problem(graphs.ring(nodes), values)
    trace = midst.solve(
        problem, midst.Consensus(c=1.0, mu=0.0, sigma=1.0, stop=midst.After(100)), rng=4, record="all"
    ).trace
    leakage = audit(trace, adversary)
    figure = draw_leakage(leakage)
    figure.draw_without_rendering()
    bounds, bits, share = figure.axes
    assert len(bits.patches) == leakage.honest
    assert sum(patch.get_height() for patch in bits.patches) == pytest.approx(leakage.total_bits)
    diamonds = next(line for line in bounds.lines if line.get_marker() == "D")
    assert len(diamonds.get_xdata()) == int((leakage.lower == leakage.upper).sum())
    assert share.lines[0].get_ydata()[-1] == leakage.share_over_time[-1]


@pytest.mark.parametrize("nodes", [4, 45])
def test_ticks_are_names_of_nodes(nodes):
    labels = [f"hospital of town {i}" for i in range(nodes)]
    result = midst.median(np.arange(nodes) / 2, graphs.ring(nodes).with_labels(labels), method="consensus", rng=1)
    figure = audit(result.trace).plot(of="bits")
    figure.draw_without_rendering()
    [axes] = figure.axes
    ticks = {
        round(place): text.get_text() for place, text in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    }
    shown = {place: words for place, words in ticks.items() if 0 <= place < nodes}
    assert len(shown) > 3
    for place, words in shown.items():
        assert words == f"hospita…{labels[place][-4:]}"
    assert set(ticks.values()) == {*shown.values()} | ({""} if len(ticks) > len(shown) else set())

"""The c that is chosen where none is given: by the scale, and by the degree where a tolerance ends the iteration."""

from __future__ import annotations

import numpy as np
import pytest

from midst import Certified, Consensus, Exact, Mean, Problem, Quantile, graphs, solve, solve_ensemble
from midst.engines.batches import BatchSettings
from midst.methods import choose_stop
from midst.net.charter import make_charter
from midst.system import settle

BOUNDS = (-20.0, 20.0)  # a scale of 10
SCALE = 10.0


def problem(graph, objective=None, seed=1, runs=None):
    values = np.random.default_rng(seed).normal(size=graph.n if runs is None else (graph.n, runs))
    return Problem(graph, values, objective=objective, bounds=BOUNDS)


@pytest.mark.parametrize(
    ("graph", "objective", "stop", "c"),
    [
        (graphs.ring(5), Quantile(0.5), Exact(), 1 / SCALE),
        (graphs.ring(5), Quantile(0.5, "any"), Certified(), 1 / SCALE),
        (graphs.ring(5), Mean(), Certified(), 1.0),
        (graphs.rgg(15, rng=1), Mean(), Certified(), 1.0),
        (graphs.complete(201), Mean(), Certified(), 0.5),
        (graphs.complete(15), Quantile(0.5, "any"), Certified(), 1 / SCALE),
        (graphs.complete(201), Quantile(0.5, "any"), Certified(), 0.5 / SCALE),
        (graphs.complete(201), Quantile(0.5), Certified(), 0.5 / SCALE),
        (graphs.complete(201), Quantile(0.5), Exact(), 1 / SCALE),
        (graphs.complete(201, listed=False), Quantile(0.5), Certified(), 0.5 / SCALE),
    ],
)
def test_what_is_chosen(graph, objective, stop, c):
    one = problem(graph, objective)
    certified = isinstance(stop, Certified)
    assert settle(one, certified=certified).c == pytest.approx(c, rel=1e-15)
    assert settle(one, c=3.0, certified=certified).c == 3.0
    result = solve(one, Consensus(stop=stop), rng=1)
    assert result.trace.parameters["c"] == settle(one, certified=certified).c


@pytest.mark.parametrize("objective", [Mean(), Quantile(0.5, "any")])
def test_everybody_chooses_the_same(objective):
    """To the last bit: engines, ensembles of one graph and of several, and whoever has the charter."""
    graph = graphs.complete(120)
    one = problem(graph, objective)
    right = float(settle(one, certified=True).c)
    assert right < (1.0 if isinstance(objective, Mean) else 1 / SCALE)
    for engine in ("arrays", "edges"):
        found = solve(one, Consensus(limit=2), engine=engine, rng=1, throw=False)
        assert found.trace.parameters["c"] == right
    settings = BatchSettings.of(Consensus(), choose_stop(one, None), runs=2, bounds=False)
    assert (settings.settle(problem(graph, objective, runs=2), np.arange(2)).c == right).all()
    names = [f"p{i}" for i in range(graph.n)]
    whole = {
        "session": "s",
        "method": "consensus",
        "objective": "mean" if isinstance(objective, Mean) else "median",
        "participants": [
            {"name": name, "fingerprint": f"sha256:{i:064x}", "address": f"127.0.0.1:{7001 + i}"}
            for i, name in enumerate(names)
        ],
        "edges": [[names[i], names[j]] for i, j in zip(graph.source, graph.target, strict=True) if i < j],
        "bounds": list(BOUNDS),
    }
    if not isinstance(objective, Mean):
        whole["definition"] = "any"
    charter = make_charter(whole, "test")
    assert charter.stop == "certified"
    assert charter.parameters.c == right


def test_runs_of_several_graphs_have_each_its_own():
    several = [problem(graphs.complete(140), Mean()), problem(graphs.ring(140), Mean(), seed=2)]
    both = solve_ensemble(several, Consensus(), rng=3)
    alone = [solve(each, Consensus(), rng=3, run=k) for k, each in enumerate(several)]
    assert both.iterations.tolist() == [result.iterations for result in alone]


def test_a_dense_graph_is_not_slower_than_it_has_to_be():
    """A mean over a complete graph took iterations in proportion to its nodes."""
    result = solve(problem(graphs.complete(1001), Mean()), Consensus(), rng=1, record="none")
    assert result.certified
    assert result.iterations < 2000

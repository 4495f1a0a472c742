"""One run on a device is the run that `solve` makes on the host."""

from __future__ import annotations

import numpy as np
import pytest

import midst
from midst import After, Certified, Consensus, Exact, InputError, Mean, NotCertified, Problem, Quantile, graphs, solve

pytest.importorskip("jax")
from midst.engines import gpu

GRAPHS = {
    "rgg": lambda: graphs.rgg(40, rng=2),
    "ring": lambda: graphs.ring(7),
    "tree": lambda: graphs.tree(33, rng=1),
}


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The CPU in place of a GPU."""
    find = gpu.find_device
    monkeypatch.setattr(gpu, "find_device", lambda kind: find("cpu"))


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("more", [{}, {"bounds": (-9, 9)}, {"weights": True}, {"scale": 1e300}])
def test_the_exact_run_of_the_host(kind, more):
    """As many iterations, the same people exposed, the same probes and the same proof."""
    graph = GRAPHS[kind]()
    rng = np.random.default_rng(5)
    size = more.get("scale", 1.0)
    weights = {"weights": rng.integers(1, 4, graph.n)} if more.get("weights") else more
    problem = Problem(graph, rng.normal(size=graph.n) * size, objective=Quantile(0.5), **weights)
    for run in (0, 3):
        there, here = (solve(problem, Consensus(), engine=engine, rng=7, run=run) for engine in ("gpu", "arrays"))
        assert there.certified
        for name in ("value", "iterations", "rounds", "probes", "exposed", "standing", "error"):
            assert getattr(there, name) == getattr(here, name), name
        assert there.trace.x.shape == (0, graph.n)
        assert there.trace.seed == (7 if run == 0 else None)


@pytest.mark.parametrize("objective", [Quantile(0.3), Mean()])
def test_other_ends(objective):
    """After so many iterations the same x; to a certificate, one that holds."""
    graph = graphs.rgg(30, rng=2)
    problem = Problem(graph, np.random.default_rng(5).normal(size=30), objective=objective)
    there, here = (solve(problem, Consensus(stop=After(70)), engine=e, rng=7, throw=False) for e in ("gpu", "arrays"))
    assert there.value == pytest.approx(here.value, abs=1e-12)
    assert (there.iterations, there.rounds, there.exposed) == (70, 70, here.exposed)
    assert there.certificate.spread == pytest.approx(here.certificate.spread, abs=1e-12)
    certified = solve(problem, Consensus(stop=Certified(1e-3)), engine="gpu", rng=7)
    assert certified.certified
    assert certified.error <= 1e-3 * float(problem.scale)


def test_who_does_not_come_to_an_end_says_so():
    problem = Problem(graphs.path(30), np.arange(30.0))
    for stop, wanted in ((Exact(), "x close enough"), (Certified(), "a certificate")):
        with pytest.raises(NotCertified, match=f"{wanted}.* was not reached in 5 iterations"):
            solve(problem, Consensus(stop=stop, limit=5), engine="gpu", rng=7)
        assert not solve(problem, Consensus(stop=stop, limit=5), engine="gpu", rng=7, throw=False).certified


@pytest.mark.parametrize(
    ("problem", "options", "words"),
    [
        (Problem(graphs.ring(5), np.ones((5, 2))), {}, "a number a node"),
        (Problem(graphs.star(99), np.ones(99)), {}, "at most 64 neighbours"),
        (Problem(graphs.complete(70, listed=False), np.ones(70)), {}, "at most 64 neighbours"),
        (Problem(graphs.ring(5), np.ones(5)), {"method": Consensus(z0=np.zeros(10))}, r"draws z\(0\) by itself"),
        (Problem(graphs.ring(5), np.ones(5)), {"record": "audit"}, "records no iteration"),
        (Problem(graphs.ring(5), np.ones(5)), {"method": "search"}, "no engine 'gpu' for search"),
    ],
)
def test_what_is_not_for_a_device(problem, options, words):
    with pytest.raises(InputError, match=words):
        solve(problem, engine="gpu", **{"method": "consensus"} | options)


def test_there_is_no_record_to_audit():
    result = solve(Problem(graphs.ring(5), [3.0, 1, 4, 1, 5]), Consensus(), engine="gpu", rng=7)
    with pytest.raises(InputError, match="record audit"):
        midst.audit(result.trace, midst.Adversary())
    assert "exposed" in repr(result)

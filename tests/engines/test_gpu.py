"""The device engine, on JAX's CPU back end: the same runs as NumPy's, to 1e-12."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("jax")

from midst import After, Certified, Consensus, InputError, Mean, Problem, Quantile, graphs
from midst.engines import gpu
from midst.engines.ensemble import solve_ensemble
from midst.errors import MissingExtra

RNG = np.random.default_rng(1)
CASES = {
    "one small graph": Problem(graphs.ring(5), RNG.normal(size=(5, 9)) * 3),
    "complete": Problem(graphs.complete(5), RNG.normal(size=(5, 3)), objective=Quantile(0.9)),
    "weights": Problem(graphs.path(4), RNG.normal(size=(4, 3)), weights=[1, 2, 3, 1]),
    "mean": Problem(graphs.rgg(8, rng=1), RNG.normal(size=(8, 5)), objective=Mean()),
    "a graph a run": [Problem(graphs.rgg(8, rng=k), RNG.normal(size=8)) for k in range(5)],
    "graphs of several sizes": [Problem(graphs.rgg(n, rng=1), RNG.normal(size=n)) for n in (7, 4, 9, 3)],
    "a sparse graph a run": [Problem(graphs.ring(n), RNG.normal(size=n)) for n in (9, 12, 11)],
    "thirty nodes": Problem(graphs.rgg(30, rng=1), RNG.normal(size=(30, 4))),
    "a larger complete graph": Problem(graphs.complete(30), RNG.normal(size=(30, 2))),
    "one hub": Problem(graphs.star(90), RNG.normal(size=(90, 2))),
    "one large graph": Problem(graphs.regular(600, 4, rng=1), RNG.normal(size=600)),
    "one large irregular graph": Problem(
        graphs.tree(600, rng=1), RNG.normal(size=600), weights=RNG.integers(1, 3, 600)
    ),
}


SOME = Consensus(stop=After(9))


def assert_same(found, expected, rtol=1e-12):
    size = np.nanmax(np.abs(expected.x))  # not a number where a run has no such node
    for name in ("x", "value", "spread", "error"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=rtol * size)
    for name in ("lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=rtol * size)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("theta", [0.5, 0.3])
def test_same_as_numpy(case, theta):
    method = Consensus(stop=After(21), theta=theta)
    expected, found = (solve_ensemble(CASES[case], method, rng=3, device=device) for device in (None, "cpu"))
    assert_same(found, expected)
    np.testing.assert_array_equal(found.first_inside, expected.first_inside)
    np.testing.assert_array_equal(found.iterations, 21)
    np.testing.assert_array_equal(found.certified, expected.certified)


@pytest.mark.parametrize("case", ["mean", "a graph a run", "graphs of several sizes"])
def test_certified(case):
    """A proof is found at the first look at which there is one, and no run goes on after its own."""
    stop = Certified(1e-3)
    found = solve_ensemble(CASES[case], Consensus(stop=stop), rng=3, device="cpu")
    assert found.certified.all()
    first = solve_ensemble(CASES[case], Consensus(stop=stop), rng=3).iterations
    np.testing.assert_array_equal((found.iterations - 1) % gpu.LOOK, 0)
    assert (found.iterations >= first).all()
    for k, last in enumerate(found.iterations.tolist()):
        before = solve_ensemble(CASES[case], Consensus(stop=After(last)), rng=3)
        np.testing.assert_allclose(found.x[k], before.x[k], rtol=0, atol=1e-12 * np.nanmax(np.abs(found.x)))
    short = solve_ensemble(CASES[case], Consensus(stop=stop, limit=5), rng=3, device="cpu")
    np.testing.assert_array_equal(short.iterations, 5)


def test_certified_large():
    problem = Problem(graphs.regular(520, 4, rng=1), RNG.normal(size=520) + 100, bounds=(90, 110))
    found = solve_ensemble(problem, Consensus(stop=Certified(10.0)), rng=3, device="cpu")
    assert found.certified.all()
    assert found.iterations[0] <= 1 + gpu.LOOK


@pytest.mark.parametrize("device", ["cpu", None])
@pytest.mark.parametrize("case", ["one small graph", "one large graph"])
def test_without_bounds(case, device):
    """Bounds cost time; without them the run is the same."""
    expected = solve_ensemble(CASES[case], SOME, rng=3)
    found = solve_ensemble(CASES[case], SOME, rng=3, bounds=False, device=device)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-12 * np.abs(expected.x).max())
    np.testing.assert_array_equal(found.first_inside, expected.first_inside)


SEARCHED = {
    "one graph": Problem(graphs.rgg(9, rng=1), RNG.normal(size=(9, 140)), bounds=(-9, 9)),
    "a complete graph": Problem(graphs.complete(6), RNG.normal(size=(6, 5)), objective=Quantile(0.9)),
    "ties and weights": Problem(
        graphs.path(7), RNG.integers(0, 3, (7, 5)), weights=[1, 2, 0, 1, 3, 1, 1], objective=Quantile(0.75)
    ),
    "thirty nodes": Problem(graphs.rgg(30, rng=1), RNG.normal(size=(30, 4))),
    "graphs of several diameters": [
        Problem(graphs.make(kind, n, rng=n), RNG.normal(size=n))
        for kind, n in (("rgg", 5), ("path", 8), ("complete", 6), ("ring", 9))
    ],
    "no edges in memory": Problem(graphs.complete(40, listed=False), RNG.normal(size=(40, 3)), objective=Quantile(1)),
    "one large graph": Problem(graphs.regular(600, 4, rng=1), RNG.normal(size=600)),
}


@pytest.mark.parametrize("theta", [0.5, 0.3])
@pytest.mark.parametrize("case", SEARCHED)
def test_exact(case, theta):
    """Every run leaves the device in the iteration in which it ends elsewhere; the search is the same."""
    method = Consensus(theta=theta)
    expected, found = (solve_ensemble(SEARCHED[case], method, rng=5, device=device) for device in (None, "cpu"))
    assert expected.certified.all()
    for name in ("value", "iterations", "certified", "probes", "rounds", "first_inside"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert_same(found, expected)


@pytest.mark.parametrize("limit", [1, 3, 11])
@pytest.mark.parametrize("case", SEARCHED)
def test_runs_that_do_not_come_close(case, limit):
    """They stop at the limit, beside others that have ended by then."""
    method = Consensus(limit=limit)
    expected, found = (solve_ensemble(SEARCHED[case], method, rng=5, device=device) for device in (None, "cpu"))
    for name in ("iterations", "certified", "probes", "rounds", "first_inside"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert_same(found, expected)


def test_no_gpu_here():
    try:
        gpu.jax.devices("gpu")
    except RuntimeError:
        with pytest.raises(InputError, match="JAX finds no gpu on this machine; leave the device out") as caught:
            solve_ensemble(CASES["complete"], method=SOME, device="gpu")
        assert "\n" not in str(caught.value)


def test_no_jax(monkeypatch):
    monkeypatch.delitem(sys.modules, "midst.engines.gpu")
    monkeypatch.delattr("midst.engines.gpu")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[gpu\]'$"):
        solve_ensemble(CASES["complete"], method=SOME, device="cpu")

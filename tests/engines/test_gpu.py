"""The device engine, on JAX's CPU back end: the same runs as NumPy's, to 1e-12."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("jax")

from midst import InputError, Mean, MissingExtra, Problem, Quantile, graphs
from midst.engines import gpu
from midst.engines.ensemble import solve_ensemble

RNG = np.random.default_rng(1)
CASES = {
    "one small graph, in registers": Problem(graphs.ring(5), RNG.normal(size=(5, 9)) * 3),
    "complete": Problem(graphs.complete(5), RNG.normal(size=(5, 3)), objective=Quantile(0.9)),
    "weights": Problem(graphs.path(4), RNG.normal(size=(4, 3)), weights=[1, 2, 3, 1]),
    "mean": Problem(graphs.rgg(8, rng=1), RNG.normal(size=(8, 5)), objective=Mean()),
    "a graph a run": [Problem(graphs.rgg(8, rng=k), RNG.normal(size=8)) for k in range(5)],
    "more nodes than registers": Problem(graphs.rgg(30, rng=1), RNG.normal(size=(30, 4))),
    "a complete graph of more": Problem(graphs.complete(30), RNG.normal(size=(30, 2))),
    "one hub": Problem(graphs.star(90), RNG.normal(size=(90, 2))),
    "one large graph": Problem(graphs.regular(600, 4, rng=1), RNG.normal(size=600)),
    "one large irregular graph": Problem(
        graphs.tree(600, rng=1), RNG.normal(size=600), weights=RNG.integers(1, 3, 600)
    ),
}


@pytest.fixture(autouse=True)
def six_hundred_nodes_are_many(monkeypatch):
    monkeypatch.setattr(gpu, "_LARGE", 500)


def assert_same(found, expected, rtol=1e-12):
    size = np.abs(expected.x).max()
    for name in ("x", "value", "spread", "error"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=rtol * size)
    for name in ("lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=rtol * size)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("theta", [0.5, 0.3])
def test_same_as_numpy(case, theta):
    options = {"rng": 3, "iterations": 21, "theta": theta}
    expected, found = solve_ensemble(CASES[case], **options), solve_ensemble(CASES[case], device="cpu", **options)
    assert_same(found, expected)
    np.testing.assert_array_equal(found.first_inside, expected.first_inside)
    np.testing.assert_array_equal(found.iterations, 21)
    np.testing.assert_array_equal(found.certified, expected.certified)


@pytest.mark.parametrize("case", ["mean", "a graph a run"])
def test_certified(case):
    """A proof is found at the next look, and no run goes on after its own."""
    options = {"rng": 3, "stop": "certified", "tolerance": 1e-3}
    expected, found = solve_ensemble(CASES[case], **options), solve_ensemble(CASES[case], device="cpu", **options)
    assert found.certified.all()
    np.testing.assert_array_equal(found.iterations, 1 + -(-(expected.iterations - 1) // gpu.LOOK) * gpu.LOOK)
    short = solve_ensemble(CASES[case], device="cpu", limit=5, **options)
    np.testing.assert_array_equal(short.iterations, 5)


def test_certified_large():
    """Nodes that only fill up a program have no say in the proof."""
    problem = Problem(graphs.regular(520, 4, rng=1), RNG.normal(size=520) + 100, bounds=(90, 110))
    found = solve_ensemble(problem, rng=3, stop="certified", tolerance=10.0, device="cpu")
    assert found.certified.all()
    assert found.iterations[0] <= 1 + gpu.LOOK


@pytest.mark.parametrize("case", ["one small graph, in registers", "one large graph"])
def test_float32(case):
    options = {"rng": 3, "iterations": 21}
    found = solve_ensemble(CASES[case], device="cpu", dtype=np.float32, **options)
    assert_same(found, solve_ensemble(CASES[case], **options), rtol=1e-5)


@pytest.mark.parametrize("device", ["cpu", None])
@pytest.mark.parametrize("case", ["one small graph, in registers", "one large graph"])
def test_without_bounds(case, device):
    """Bounds cost time; without them the run is the same."""
    expected = solve_ensemble(CASES[case], rng=3, iterations=9)
    found = solve_ensemble(CASES[case], rng=3, iterations=9, bounds=False, device=device)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-12 * np.abs(expected.x).max())
    np.testing.assert_array_equal(found.first_inside, expected.first_inside)


def test_no_gpu(monkeypatch):
    def nothing(kind):
        raise RuntimeError(f"Unknown backend {kind}")

    monkeypatch.setattr(gpu.jax, "devices", nothing)
    with pytest.raises(InputError, match="JAX finds no gpu on this machine"):
        solve_ensemble(CASES["complete"], iterations=3, device="gpu")


def test_no_count_on_a_device():
    with pytest.raises(InputError, match="a device runs no count"):
        solve_ensemble(CASES["complete"], device="cpu")


def test_no_jax(monkeypatch):
    monkeypatch.delitem(sys.modules, "midst.engines.gpu")
    monkeypatch.delattr("midst.engines.gpu")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtra, match=r"midst\[gpu\]"):
        solve_ensemble(CASES["complete"], iterations=3, device="cpu")

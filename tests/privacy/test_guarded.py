"""The audit of a guarded run: bounds that are never wrong, finite bits, and beliefs that are calibrated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from midst import Adversary, InputError, Normal, Problem, Uniform, audit, graphs, solve
from midst.privacy.guarded import bits_on_cells, guarded_posterior
from midst.privacy.posterior import Piece, Posterior
from midst.privacy.sights import Guarded
from midst.privacy.views import view

PAPER = {"c": 1.0, "mu": -10.0, "sigma": 1.0}


def run(seed, kind="rgg", n=15, **options):
    graph = graphs.make(kind, n, rng=seed)
    values = np.random.default_rng(seed).normal(size=n)
    settings = {"rng": seed, "guard": True, "record": "all", "stop": "certified", **PAPER, **options}
    return values, solve(Problem(graph, values, scale=1.0), **settings)


@pytest.mark.parametrize("kind", ["ring", "rgg", "complete"])
def test_never_wrong_and_less_than_without(kind):
    """The true value lies within the bounds of every node; far fewer are exposed, and fewer bits are given away."""
    bits = {False: [], True: []}
    exposed = {False: 0, True: 0}
    for seed in range(8):
        for guard in (False, True):
            values, result = run(seed, kind, guard=guard)
            leak = audit(result.trace, prior=Normal(0, 1))
            assert (leak.lower <= values).all()
            assert (values <= leak.upper).all()
            bits[guard].append(leak.mean_bits)
            exposed[guard] += leak.exposed_count
    assert exposed[True] < exposed[False] / 2
    assert np.mean(bits[True]) < np.mean(bits[False])
    assert np.isfinite(bits[True]).all()


def test_beliefs_are_calibrated():
    """Where the posterior puts a fraction p below a point, the value lies below it in a fraction p of the runs."""
    levels = []
    for seed in range(120):
        values, result = run(seed, "complete", 7, sigma=0.5, mu=-3.0)
        for sight in view(result.trace, Adversary()).sights:
            if isinstance(sight, Guarded):
                posterior = guarded_posterior(sight, Normal(0, 1), 1e-4)
                if posterior.bounds[1] - posterior.bounds[0] > 1e-3:
                    levels.append(posterior.probability(-np.inf, values[sight.node]))
    assert len(levels) > 300
    assert stats.kstest(levels, "uniform").pvalue > 1e-3


def test_counted_values_are_known():
    """With the exact finish, whose value was counted has told it."""
    values, result = run(3, stop="count")
    leak = audit(result.trace)
    for holder in result.exposed:
        assert leak.exposed[holder]
        assert leak.lower[holder] == leak.upper[holder] == values[holder]
        assert leak.exposed_at[holder] >= 0


def test_other_adversaries_get_an_upper_bound():
    _, result = run(1)
    leak = audit(result.trace, Adversary((3,), eavesdrops=False))
    assert leak.kind == "upper bound"
    assert audit(result.trace, Adversary(init="sealed")).kind == "upper bound"
    with pytest.raises(InputError, match="eavesdropper on clear"):
        view(result.trace, Adversary(init="sealed"))


def test_what_it_needs():
    _, result = run(1, record="audit")
    with pytest.raises(InputError, match="record='all'"):
        audit(result.trace)
    _, result = run(1)
    with pytest.raises(InputError, match="no mass"):
        audit(result.trace, prior=Uniform(50, 60))


def test_bits_on_cells():
    """Narrower than a cell: the bits of the cell. Wide: those of the interval."""
    prior = Uniform(0, 1)
    assert bits_on_cells(Posterior(prior, (Piece(1.0, 0.2501, 0.2502),)), 0.01) == pytest.approx(np.log2(100))
    assert bits_on_cells(Posterior(prior, (Piece(1.0, 0.0, 0.25),)), 1e-6) == pytest.approx(2, abs=1e-3)
    half = Posterior(prior, (Piece(0.5, 0.0, 0.25), Piece(0.5, 0.25, 0.5)))
    assert bits_on_cells(half, 0.01) == pytest.approx(1, abs=0.05)

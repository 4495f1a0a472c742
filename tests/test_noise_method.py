"""`Search(noise=…)`: near the right answer by as much as is said, repeated by its seed, and never taken for exact."""

from __future__ import annotations

import numpy as np
import pytest

import midst
from midst import InputError
from midst.dp import JointNoise
from midst.methods import search_rules
from midst.objectives import Quantile
from midst.privacy.audit import audit
from midst.trace import load

NOISE = JointNoise(1, 1e-6, 1)
RNG = np.random.default_rng(3)
LISTS = [RNG.normal(50, 15, 250).clip(0, 100) for _ in range(4)]


def problem(**others):
    settings = {"bounds": (0, 100), "resolution": "0.5", "pooled": True} | others
    return midst.Problem(midst.graphs.ring(4), LISTS, **settings)


def share_off(value, rank):
    keys = np.sort(np.round(np.concatenate(LISTS) * 2))
    first, last = np.searchsorted(keys, value * 2, "left") + 1, np.searchsorted(keys, value * 2, "right")
    return max(first - rank, rank - last, 0) / len(keys)


@pytest.mark.parametrize("engine", ["arrays", "reference"])
def test_a_seed_repeats_it(engine):
    results = [midst.solve(problem(), midst.Search(noise=NOISE), rng=seed, engine=engine) for seed in (1, 1, *range(9))]
    assert results[0].value == results[1].value
    assert len({result.value for result in results}) > 1
    for result in results:
        assert (result.certified, result.standing, result.certificate, result.exposed) == (False, None, None, ())
        assert (result.probes, result.rounds) == (8, 20)
        assert result.value * 2 == round(result.value * 2)
        assert share_off(result.value, 500) < 5 * result.noise.rank_error


@pytest.mark.parametrize(("q", "arity"), [(0.5, 1), (0.5, 3), (0.9, 1)])
def test_the_error_is_what_is_said(q, arity):
    errors = []
    for seed in range(60):
        result = midst.solve(problem(objective=Quantile(q)), midst.Search(arity, noise=NOISE), rng=seed)
        errors.append(share_off(result.value, 1000 * q))
    assert 0.2 * result.noise.rank_error < np.mean(errors) < result.noise.rank_error
    assert np.mean(np.array(errors) > 2 * result.noise.rank_error) < 0.1


def test_maximum_and_minimum_too():
    for find, right in ((midst.max, 100), (midst.min, 0)):
        options = {"bounds": (0, 100), "resolution": "0.5", "pooled": True, "method": midst.Search(noise=NOISE)}
        assert abs(find(LISTS, midst.graphs.ring(4), rng=1, **options).value - right) < 40


def test_more_colluders_add_more_noise():
    few, many = (midst.Search(noise=JointNoise(1, 1e-6, colluders)) for colluders in (0, 3))
    spread = [np.std([midst.solve(problem(), how, rng=k).value for k in range(40)]) for how in (few, many)]
    assert spread[1] > 1.3 * spread[0]


def test_the_method_says_what_it_is():
    method = midst.Search(noise=NOISE)
    assert (method.arity, method.spacing, method.noise) == (1, "key", NOISE)
    assert midst.Search(2, noise=NOISE).arity == 2
    assert (midst.Search().arity, midst.Search().spacing, midst.Search().noise) == (3, "rank", None)
    assert eval(repr(method), {"Search": midst.Search, "JointNoise": JointNoise}) == method


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bounds": None}, "noise needs public bounds and a resolution"),
        ({"resolution": None}, "noise needs public bounds and a resolution"),
        ({"objective": Quantile(0.5, "averaged_inverted_cdf")}, "no mean, no midpoint"),
        ({"objective": Quantile(0.5, "any")}, "of definition inverted_cdf"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_run(change, words):
    with pytest.raises(InputError, match=words):
        midst.solve(problem(**change), midst.Search(noise=NOISE))


def test_noise_is_never_left_out_in_silence():
    """Where an exact search is meant, a method with noise is refused."""
    one = midst.Problem(midst.graphs.ring(5), range(5), bounds=(0, 9), resolution=1)
    method = midst.Search(noise=NOISE)
    with pytest.raises(InputError, match="among 5 values would be off by half"):
        midst.solve(one, method)
    weighted = midst.Problem(midst.graphs.ring(5), range(5), bounds=(0, 9), resolution=1, weights=[1, 1, 1, 1, 2])
    with pytest.raises(InputError, match="single numbers that all count alike"):
        midst.solve(weighted, method)
    with pytest.raises(InputError, match="noise is for one quantile"):
        midst.solve_ensemble([one] * 3, method)
    with pytest.raises(InputError, match="noise is for one quantile"):
        midst.describe(LISTS, midst.graphs.ring(4), ["median"], method=method)
    with pytest.raises(InputError, match="noise is for one quantile"):
        search_rules(method, Quantile(0.5), one.keys, one.brackets, 5, 1)
    with pytest.raises(InputError, match="noise must be such as"):
        midst.Search(noise="eps=1")
    with pytest.raises(InputError, match="placed by key"):
        midst.Search(spacing="rank", noise=NOISE)


def test_no_audit_and_no_picture(tmp_path):
    result = midst.solve(problem(), midst.Search(noise=NOISE), rng=1)
    with pytest.raises(InputError, match=r"no audit of a search with noise: what it tells is bounded by eps=1\.0"):
        audit(result.trace)
    result.trace.save(tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert (again.parameters, again.answer, again.probes) == (result.trace.parameters, (result.value,), ())
    with pytest.raises(InputError, match="no audit of a search with noise"):
        audit(again)
    with pytest.raises(InputError, match="a search with noise is not drawn"):
        result.plot()

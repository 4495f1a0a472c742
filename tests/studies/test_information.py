"""Mutual information of an ensemble: by the audits of its runs, and by estimators that know nothing of audits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from information_estimate import Estimate, estimate_information, ksg_terms

import midst
from midst import Adversary, InputError, Paper, Problem, Quantile, Search, graphs, information
from midst.methods import After, Consensus
from midst.privacy.posterior import cell
from midst.privacy.priors import Normal, Uniform
from midst.studies.expectation import weakest

RUNS = 1200
SHORT = Consensus(1.0, mu=0.0, sigma=0.1, stop=After(20))
AS_WRITTEN = Paper(1.0, mu=0.0, sigma=0.1)
PASSIVE = Adversary((0,), eavesdrops=False)


def drawn(prior, nodes, runs):
    levels = np.random.default_rng(9).random((nodes, runs))
    return np.array([[prior.quantile(level) for level in row] for row in levels])


def audits(problems, method, rng, **options):
    """The audit of each run by itself."""
    solved = (midst.solve(each, method, rng=rng, run=k, record="audit") for k, each in enumerate(problems))
    return [midst.audit(result.trace, **options) for result in solved]


@given(
    graph=st.sampled_from([graphs.ring(5), graphs.path(4), graphs.complete(6), graphs.star(7)]),
    c=st.sampled_from([0.3, 1.0, 10.0]),
    sigma=st.sampled_from([0.1, 3.0]),
    corrupt=st.sampled_from([(), (1,)]),
    resolution=st.sampled_from([None, 0.1]),
    seed=st.integers(0, 2**32),
)
def test_bits_are_those_of_every_run_audited_by_itself(graph, c, sigma, corrupt, resolution, seed):
    """From the bounds that an ensemble keeps, for an eavesdropper that knows z(0)."""
    problems = [Problem(graph, row, scale=1.0) for row in np.random.default_rng(seed).standard_normal((3, graph.n))]
    method, who = Paper(c, mu=0.0, sigma=sigma, stop=After(30)), Adversary(corrupt)
    found = information(problems, method, adversary=who, resolution=resolution, rng=seed)
    leakages = audits(problems, method, seed, adversary=who, resolution=resolution)
    np.testing.assert_allclose(found.by_node, np.mean([each.bits for each in leakages], axis=0), rtol=1e-9)
    assert found.bits == pytest.approx(np.mean([each.mean_bits for each in leakages]))
    assert found.secure == pytest.approx(1 - np.mean([each.exposed_count / each.honest for each in leakages]))
    assert found.low <= found.bits <= found.high
    assert 0 <= found.secure_low <= found.secure <= found.secure_high <= 1


@pytest.mark.parametrize(
    "adversary", [None, PASSIVE, Adversary(init="sealed"), Adversary((0, 2), init="sealed")], ids=str
)
@pytest.mark.parametrize("method", [AS_WRITTEN, Search(), Consensus(1.0)], ids=["paper", "search", "consensus"])
def test_others_are_audited_run_by_run(adversary, method):
    problems = [Problem(graphs.ring(5), row, scale=1.0) for row in np.random.default_rng(2).standard_normal((3, 5))]
    found = information(problems, method, adversary=adversary, rng=4)
    leakages = audits(problems, method, 4, adversary=adversary)
    np.testing.assert_allclose(found.by_node, np.mean([each.bits for each in leakages], axis=0))
    assert found.at_least == pytest.approx(np.mean([each.mean_at_least for each in leakages]))
    assert found.kind == weakest(leakages)
    assert ("at least" in dict(found.rows())) == (found.kind == "upper bound")
    if method == Search():
        assert (found.secure, found.secure_high) == (1.0, 1.0)
    if adversary == PASSIVE and method == AS_WRITTEN:
        assert found.at_least < found.bits
        assert np.isnan(found.by_node[0])


def test_one_message_tells_as_much_as_the_definition_says():
    """x(0) from z(0) = 0 is s clipped to ±1/(c d); the prior's mass says what each of three outcomes tells."""
    graph, prior, width, end = graphs.complete(3), Normal(), 0.05, 0.5
    problem = Problem(graph, drawn(prior, 3, 5_000), objective=Quantile(0.5, "any"), scale=1.0)
    method = Paper(1.0, mu=0.0, sigma=0.0, stop=After(1))
    found = information(problem, method, prior=prior, resolution=width, rng=1)
    mass = math.exp(prior.log_mass(end, math.inf))
    expected = -2 * mass * math.log2(mass)
    for k in range(-10, 11):
        low, high = cell(k * width, width)
        told = math.exp(prior.log_mass(max(low, -end), min(high, end)))
        expected -= told * prior.log_mass(low, high) / math.log(2)
    assert found.low < expected < found.high
    assert found.secure_low < 2 * mass < found.secure_high
    assert found.high - found.low < 0.1


def test_the_same_data_in_every_run_are_no_mutual_information():
    values = np.random.default_rng(1).standard_normal((5, 20))
    ring = graphs.ring(5)
    fixed = information(Problem(ring, values[:, 0], scale=1.0), AS_WRITTEN, runs=20, rng=1)
    several = [Problem(ring, values[:, 0], scale=1.0)] * 20
    anew = information(Problem(ring, values, scale=1.0), AS_WRITTEN, rng=1)
    assert (fixed.redrawn, anew.redrawn, fixed.runs, anew.runs) == (False, True, 20, 20)
    assert fixed.to_pandas().equals(information(several, AS_WRITTEN, rng=1).to_pandas())
    assert "bits of these values" in repr(fixed)
    assert "I(S_i; O)" not in repr(fixed)
    assert "I(S_i; O)" in anew._repr_html_()
    row = anew.to_pandas()
    assert (len(row), row.secure[0], row.adversary[0]) == (1, anew.secure, "eavesdropper, z(0) clear")


def test_an_interval_is_over_draws_of_the_data_and_not_over_their_runs():
    values, ring = np.random.default_rng(1).standard_normal((5, 6)), graphs.ring(5)
    several = information(Problem(ring, np.repeat(values, 20, axis=1), scale=1.0), AS_WRITTEN, rng=1)
    assert (several.runs, several.draws, several.redrawn) == (120, 6, True)
    assert ("runs", "120, on 6 draws of the data") in several.rows()
    alone = information(Problem(ring, values, scale=1.0), AS_WRITTEN, rng=1)
    assert several.high - several.low > 0.7 * (alone.high - alone.low)
    assert several.secure_high - several.secure_low > 0.7 * (alone.secure_high - alone.secure_low)


def test_graphs_of_several_sizes_weights_of_zero_and_means():
    problems = [Problem(graphs.ring(n), np.arange(n) / n, scale=1.0) for n in (3, 5)]
    found = information(problems, AS_WRITTEN, rng=1)
    assert found.by_node.shape == (5,)
    assert np.isfinite(found.by_node).all()
    silent = Problem(
        graphs.ring(5), np.random.default_rng(1).standard_normal((5, 3)), weights=[1, 0, 1, 1, 1], scale=1.0
    )
    assert information(silent, Consensus(stop=midst.Certified()), rng=1).by_node[1] == 0
    mean = Problem(graphs.ring(5), np.random.default_rng(1).standard_normal((5, 3)), objective=midst.Mean(), scale=1.0)
    assert information(mean, "consensus", rng=1).secure == 0


def test_corrupt_nodes_and_errors_by_name():
    graph = graphs.ring(3).with_labels(["anna", "bob", "carl"])
    problem = Problem(graph, {"anna": 1.0, "bob": 5.0, "carl": 2.0}, scale=1.0)
    found = information(problem, AS_WRITTEN, runs=3, rng=1, adversary=Adversary(("bob",)))
    assert np.isnan(found.by_node).tolist() == [False, True, False]
    with pytest.raises(InputError, match="no mass to what was observed of node anna"):
        information(problem, AS_WRITTEN, runs=3, rng=1, prior=Uniform(6, 7))


def test_a_seed_repeats_it_and_a_generator_will_do():
    problem = Problem(graphs.ring(5), np.arange(5.0), scale=1.0)
    one, same, other = (information(problem, SHORT, runs=4, rng=k) for k in (1, 1, np.random.default_rng(2)))
    assert one.bits == same.bits != other.bits


def test_what_makes_no_sense_is_refused():
    problem = Problem(graphs.ring(5), np.arange(5.0), scale=1.0)
    for refused, words in (
        (lambda: information(problem), "at least 2 runs"),
        (lambda: information(problem, runs=0), "runs"),
        (lambda: information([problem, problem], runs=3), "runs is for one problem"),
        (lambda: information(problem, "paper", runs=2, adversary=Adversary((9,))), "corrupt node 9"),
        (lambda: information(problem, "paper", runs=2, resolution=0), "resolution"),
        (lambda: information(problem, "paper", runs=2, prior=Uniform(0, 1)), "the prior gives no mass"),
        (lambda: information(problem, "paper", runs=2, prior=[Normal()]), "1 priors for 5 nodes"),
        (lambda: information(problem, "paper", runs=2, rng="x"), "rng must be"),
        (lambda: information(problem, "paper", runs=2, rng=-1), "rng must be"),
    ):
        with pytest.raises(InputError, match=words):
            refused()


@pytest.mark.parametrize(
    ("graph", "c", "sigma", "prior"),
    [
        (graphs.complete(3), 1.0, 0.1, Uniform(-1, 2)),
        (graphs.path(3), 2.0, 0.1, Normal(0, 1)),
        (graphs.complete(5), 3.0, 0.5, None),
    ],
    ids=["triangle", "path", "complete5"],
)
def test_posterior_bits_agree_with_counting_and_with_nearest_neighbours(graph, c, sigma, prior):
    method = Consensus(c, mu=0.0, sigma=sigma, stop=After(60))
    found = estimate_information(graph, 0, method, prior=prior, runs=RUNS)
    assert 0.1 < found.exposed < 0.9
    assert found.posterior.agrees(found.plug_in)
    assert found.posterior.agrees(found.ksg, slack=0.06)  # its bias: densities with edges, and few runs
    assert found.posterior.high - found.posterior.low < 0.3
    prior = Normal() if prior is None else prior
    options = {"prior": prior, "resolution": 0.25 * prior.scale, "rng": 5}  # as wide as the oracle's blur
    here = information(Problem(graph, drawn(prior, graph.n, RUNS)), method, **options)
    around = (found.posterior.high - found.posterior.low) / 2
    mine = Estimate(here.by_node[0], here.by_node[0] - around, here.by_node[0] + around)
    assert mine.agrees(found.ksg, slack=0.06)
    assert mine.agrees(found.plug_in)
    assert here.name == "I(S_i; O)"
    assert here.secure == pytest.approx(1 - found.exposed, abs=0.1)


def test_nearest_neighbours_on_what_is_known():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    for rho in (0.0, 0.6, 0.9):
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=(3000, 1))
        assert ksg_terms(x, y).mean() == pytest.approx(-0.5 * math.log(1 - rho**2), abs=0.06)
    assert ksg_terms(x, (x > 0).astype(float)).mean() == pytest.approx(math.log(2), abs=0.03)


def test_intervals():
    assert Estimate(1, 0.9, 1.1).agrees(Estimate(1.15, 1.05, 1.25))
    assert not Estimate(1, 0.9, 1.1).agrees(Estimate(1.3, 1.2, 1.4))
    assert Estimate(1, 0.9, 1.1).agrees(Estimate(1.3, 1.2, 1.4), slack=0.1)


def test_a_seed_repeats_an_estimate():
    one, two, other = (estimate_information(graphs.path(3), 1, SHORT, runs=40, seed=k) for k in (1, 1, 2))
    assert one == two != other


def test_refusals():
    with pytest.raises(midst.InputError, match="node 9"):
        estimate_information(graphs.path(3), 9, SHORT)
    with pytest.raises(midst.InputError, match="runs"):
        estimate_information(graphs.path(3), 0, SHORT, runs=5)

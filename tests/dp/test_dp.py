"""Differential privacy: calibration against 400 digits and dp-accounting, composition against PLDs, all refusals."""

from __future__ import annotations

import sys
from math import erfc, inf, log2, nan, pi, sqrt
from types import ModuleType, SimpleNamespace

import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from midst import After, Consensus, InputError, Mean, Problem, graphs, solve
from midst.dp.mechanisms import (
    GaussianNoise,
    LaplaceNoise,
    Offset,
    accuracy_cost,
    compose,
    compose_all,
    information,
    parse_mechanism,
    privatise,
)
from midst.errors import MissingExtra
from midst.system import streams

epsilons = st.floats(-6, 4).map(lambda power: 10.0**power)
deltas = st.floats(-14, -0.1).map(lambda power: 10.0**power)
bounds = st.tuples(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9)).map(lambda pair: (pair[0], pair[0] + pair[1]))
mechanisms = st.one_of(
    st.builds(GaussianNoise, epsilons, deltas, bounds),
    st.builds(LaplaceNoise, epsilons, bounds),
    st.builds(Offset, epsilons),
)


PESSIMISTIC = {"value_discretization_interval": 1e-4}
OPTIMISTIC = {"value_discretization_interval": 1e-4, "pessimistic_estimate": False, "use_connect_dots": False}


def problem(values=None, **options):
    values = np.random.default_rng(5).normal(50, 15, 15) if values is None else values
    return Problem(graphs.ring(len(values)), values, scale=20, **options)


def exact_delta(sigma, epsilon):
    """Balle & Wang's Theorem 8 for sensitivity 1, in 400 digits."""
    with mpmath.workdps(400):
        sigma, epsilon = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        left, right = 1 / (2 * sigma), epsilon * sigma
        return mpmath.ncdf(left - right) - mpmath.exp(epsilon) * mpmath.ncdf(-left - right)


# calibration


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-15, 1e-5, 0.01, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 0.1, 1, 5, 20, 100, 700, 5000])
def test_gaussian_noise_suffices_and_a_trillionth_less_does_not(epsilon, delta):
    sigma = GaussianNoise(epsilon, delta, (0, 1)).noise_std
    assert exact_delta(sigma, epsilon) <= delta
    assert exact_delta(sigma * (1 - 3e-12), epsilon) > delta


@given(epsilons.filter(lambda epsilon: epsilon > 1e-4), deltas.filter(lambda delta: delta > 1e-9))
def test_gaussian_noise_is_that_of_dp_accounting(epsilon, delta):
    sigma = GaussianNoise(epsilon, delta, (-3, -2)).noise_std
    assert sigma == pytest.approx(gaussian_mechanism.get_sigma_gaussian(epsilon, delta), rel=1e-6)


@given(epsilons, deltas)
def test_more_privacy_takes_more_noise(epsilon, delta):
    sigma = GaussianNoise(epsilon, delta, (0, 1)).noise_std
    assert GaussianNoise(epsilon / 2, delta, (0, 1)).noise_std > sigma
    assert GaussianNoise(epsilon, delta / 2, (0, 1)).noise_std > sigma
    assert LaplaceNoise(epsilon / 2, (0, 1)).noise_std > LaplaceNoise(epsilon, (0, 1)).noise_std


@pytest.mark.parametrize("epsilon", [1e-150, 1e150])
@pytest.mark.parametrize("delta", [5e-324, 1 - 2**-53])
def test_calibration_holds_to_the_ends_of_the_floats(epsilon, delta):
    assert 0 < GaussianNoise(epsilon, delta, (0, 1)).noise_std < inf
    assert 0 <= compose(GaussianNoise(epsilon, delta, (0, 1)), 1_000_000, delta) < inf


def test_noise_grows_with_the_sensitivity_of_a_vector():
    gaussian, laplace = GaussianNoise(1, 1e-5, (0, 100)), LaplaceNoise(1, (0, 100))
    assert gaussian.std(9) == pytest.approx(3 * gaussian.noise_std)
    assert laplace.std(9) == pytest.approx(9 * laplace.noise_std)
    assert laplace.noise_std == pytest.approx(100 * sqrt(2))
    assert Offset(2).std(9) == Offset(2).noise_std == 2


# the map from problem to problem


@given(mechanisms, st.integers(0, 2**32), st.integers(1, 3))
def test_only_the_values_change_and_a_seed_repeats_them(mechanism, seed, coordinates):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(7, coordinates) if coordinates > 1 else 7)
    before = Problem(graphs.ring(7), values, scale=1, weights=range(1, 8), objective=Mean())
    after = privatise(before, mechanism, seed)
    assert after.values.shape == values.shape
    assert np.array_equal(after.values, privatise(before, mechanism, seed).values)
    assert (after.graph, after.objective, after.scale, after.public) == (before.graph, Mean(), before.scale, "given")
    assert np.array_equal(after.whole_weights, before.whole_weights)
    assert np.array_equal(before.values, values)
    assert not np.array_equal(after.answer, before.answer)  # not remembered from the true values


@pytest.mark.parametrize("mechanism", [GaussianNoise(1, 1e-5, (40, 60)), LaplaceNoise(1, (40, 60)), Offset(3)])
@pytest.mark.parametrize("coordinates", [1, 4])
def test_the_noise_has_the_spread_it_claims_and_the_values_are_clipped(mechanism, coordinates):
    values = np.where(np.arange(20_000 * coordinates).reshape(20_000, -1) % 2, 0.0, 100.0)
    before = problem(values[:, 0] if coordinates == 1 else values)
    noise = privatise(before, mechanism, 3).values - np.clip(before.values, *mechanism.bounds)
    assert np.std(noise) == pytest.approx(mechanism.std(coordinates), rel=0.05)
    assert abs(np.mean(noise)) < 5 * mechanism.std(coordinates) / sqrt(noise.size)


def test_the_noise_repeats_no_other_draw_of_the_same_seed():
    values = np.random.default_rng(7).normal(size=1000)  # as a script might draw them
    noise = privatise(problem(values), Offset(1), 7).values - values
    assert abs(np.corrcoef(values, noise)[0, 1]) < 0.2
    ring = Problem(graphs.ring(1000), values)
    noise = privatise(ring, Offset(1), 7).values - values
    z0 = solve(ring, Consensus(stop=After(1)), rng=7, record="all").trace.z0
    others = [drawn.normal(size=1000) for name, drawn in streams(7)._asdict().items() if name != "noise"]
    for part in (z0[:1000], z0[1000:], *others):
        assert abs(np.corrcoef(part, noise)[0, 1]) < 0.2


def test_a_privatised_problem_is_solved_like_any_other():
    noised = privatise(problem(), LaplaceNoise(5, (0, 100)), 1)
    result = solve(noised, rng=2)
    assert result.certified
    assert noised.answer[0] == pytest.approx(result.value, abs=1e-3)


def test_a_seed_that_is_none_is_refused():
    with pytest.raises(InputError, match="rng must be"):
        privatise(problem(), Offset(1), "seven")


# hardened


class Measurement:
    """Stands for one of OpenDP's: the claim holds once the noise exceeds what was asked for by a tenth."""

    def __init__(self, rows, metric, scale):
        self.rows, self.metric, self.scale = rows, metric, scale

    def check(self, distance, claim):
        epsilon = claim[0] if isinstance(claim, tuple) else claim
        return epsilon * self.scale >= 1.1 * distance

    def __call__(self, row):
        assert len(row) == self.rows
        return [number + self.scale for number in row]


@pytest.fixture
def opendp(monkeypatch):
    module = ModuleType("opendp.prelude")
    module.enable_features = lambda feature: None
    module.atom_domain = lambda T, nan: T
    module.vector_domain = lambda atom, size: size
    module.l1_distance = module.l2_distance = lambda T: None
    module.m = SimpleNamespace(make_laplace=Measurement, make_gaussian=Measurement)
    module.c = SimpleNamespace(make_fix_delta=lambda inner, delta: inner, make_zCDP_to_approxDP=lambda inner: inner)
    monkeypatch.setitem(sys.modules, "opendp", ModuleType("opendp"))
    monkeypatch.setitem(sys.modules, "opendp.prelude", module)


@pytest.mark.usefixtures("opendp")
@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_hardened_noise_is_enlarged_until_the_claim_is_proved(shape):
    values = np.full(shape, 70.0)
    coordinates = values.size // 5
    for mechanism, least in ((LaplaceNoise(2, (0, 50)), 1.1 * 25), (GaussianNoise(20, 0.5, (0, 50)), 0.0)):
        scale = privatise(problem(values), mechanism, hardened=True).values - 50
        claimed = mechanism.std(coordinates) / (sqrt(2) if isinstance(mechanism, LaplaceNoise) else 1)
        assert scale.shape == shape
        assert (scale >= max(claimed, least * coordinates) * (1 - 1e-12)).all()
        assert (scale <= max(claimed, 1.1 * mechanism.sensitivity(coordinates) / mechanism.epsilon) * 1.0011).all()
    assert np.allclose(privatise(problem(values), Offset(2), hardened=True).values, 72)


@pytest.mark.usefixtures("opendp")
def test_hardened_noise_cannot_be_seeded():
    with pytest.raises(InputError, match="cannot be seeded; leave rng out"):
        privatise(problem(), Offset(1), 7, hardened=True)


def test_without_opendp_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[dp\]'$"):
        privatise(problem(), Offset(1), hardened=True)


@pytest.mark.parametrize("mechanism", [GaussianNoise(1, 1e-5, (0, 100)), LaplaceNoise(1, (0, 100)), Offset(9)])
@pytest.mark.parametrize("shape", [(4000,), (2000, 2)])
def test_the_real_opendp_draws_noise_of_that_spread(mechanism, shape):
    pytest.importorskip("opendp")
    before = problem(np.full(shape, 30.0))
    noise = privatise(before, mechanism, hardened=True).values - 30
    assert 0.9 < np.std(noise) / mechanism.std(len(shape)) < 1.25
    assert abs(np.mean(noise)) < 5 * np.std(noise) / sqrt(noise.size)


# what the noise leaves


def test_information_of_gaussian_noise_is_the_textbook_s():
    assert information(Offset(2), 2) == pytest.approx(0.5)
    assert information(Offset(1), sqrt(15)) == pytest.approx(2)
    assert information(Offset(1e-150), 1e150) == pytest.approx(300 * log2(10))
    assert information(GaussianNoise(1, 1e-5, (0, 1)), 1e-9) == pytest.approx(0, abs=1e-15)


@given(st.floats(-4, 9).map(lambda power: 10.0**power))
def test_information_of_laplace_noise_lies_between_the_gaussian_bounds(prior_std):
    noise = LaplaceNoise(1, (0, 1))
    told = information(noise, prior_std)
    assert information(Offset(noise.noise_std), prior_std) - 1e-9 <= told  # Gaussian noise hides a Gaussian best
    entropy_of_sum = 0.5 * log2(2 * pi * np.e * (prior_std**2 + noise.noise_std**2))  # and has the most entropy
    assert told <= entropy_of_sum - log2(2 * np.e) + 1e-9


def test_information_of_laplace_noise_by_simulation():
    rng = np.random.default_rng(2)
    signal, noise = rng.normal(size=400_000) * 2, rng.laplace(size=400_000)
    seen = signal + noise

    def normal_laplace(y, s=2.0):
        terms = [np.exp(s * s / 2 + v) * np.vectorize(erfc)((s + v / s) / sqrt(2)) for v in (-y, y)]
        return sum(terms) / 4

    bits = np.log2(0.5 * np.exp(-np.abs(noise[:20_000])) / normal_laplace(seen[:20_000]))
    error = 4 * np.std(bits) / sqrt(len(bits))
    assert information(LaplaceNoise(1, (0, 1)), 2) == pytest.approx(np.mean(bits), abs=error)


def test_information_needs_a_prior():
    with pytest.raises(InputError, match="prior_std must be a positive number"):
        information(Offset(1), 0)


def test_accuracy_cost_of_the_maximum_of_far_values_is_the_noise_itself():
    far = problem(np.array([0.0, 0.0, 1e9]), objective=Mean())
    cost = accuracy_cost(far, Offset(3), rng=1, draws=2000)
    assert cost.mean == pytest.approx(sqrt(3) * sqrt(2 / pi), rel=0.1)  # |N(0, 3²/3)|
    assert cost.quantile_95 == pytest.approx(1.96 * sqrt(3), rel=0.1)
    assert cost.draws == 2000


def test_accuracy_cost_sees_clipping_and_takes_the_worst_coordinate():
    values = np.array([[0.0, 0.0], [1.0, 100.0], [2.0, 200.0]])
    cost = accuracy_cost(problem(values), LaplaceNoise(1e6, (0, 10)), rng=1, draws=20)
    assert cost.mean == pytest.approx(90, abs=0.01)


@pytest.mark.parametrize("draws", [0, 1.5, True, 10**7])
def test_accuracy_cost_counts_its_draws(draws):
    with pytest.raises(InputError, match="draws must be a whole number from 1 to 1,000,000"):
        accuracy_cost(problem(), Offset(1), 1, draws)


# composition


@given(epsilons, deltas, st.integers(1, 10_000))
def test_gaussian_runs_compose_to_one_gaussian(epsilon, delta, runs):
    mechanism = GaussianNoise(epsilon, delta, (0, 1))
    total = compose(mechanism, runs, delta)
    sigma = mechanism.noise_std / sqrt(runs)
    slack = mpmath.mpf(delta) * mpmath.mpf("1e-9")
    assert exact_delta(sigma, total) <= delta + slack
    if runs * delta < 1:
        assert compose(mechanism, runs, runs * delta) <= runs * epsilon * (1 + 1e-9)  # never worse than the plain sum
    if total > 1e-6:
        assert exact_delta(sigma, total * (1 - 1e-6)) >= delta - slack


@pytest.mark.parametrize(("epsilon", "delta", "runs"), [(1, 1e-5, 1), (1, 1e-5, 10), (0.1, 1e-6, 100)])
def test_gaussian_runs_agree_with_the_pld_accountant(epsilon, delta, runs):
    mechanism = GaussianNoise(epsilon, delta, (0, 1))
    loss = pld.from_gaussian_mechanism(mechanism.noise_std, value_discretization_interval=1e-4).self_compose(runs)
    oracle = loss.get_epsilon_for_delta(delta)  # pessimistic by construction
    assert oracle * (1 - 1e-5) <= compose(mechanism, runs, delta) <= oracle


def test_gaussian_runs_may_need_no_epsilon_at_all():
    assert compose(GaussianNoise(0.1, 1e-5, (0, 1)), 1, 0.5) == 0
    assert compose_all({}, 1e-6) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta", "runs"),
    [(1, 1e-5, 1), (0.1, 1e-5, 10), (0.1, 1e-5, 100), (0.01, 1e-6, 1000), (3, 1e-9, 5), (1, 1e-6, 100)],
)
def test_laplace_runs_are_bounded_tightly(epsilon, delta, runs):
    total = compose(LaplaceNoise(epsilon, (0, 1)), runs, delta)
    optimistic, pessimistic = (pld.from_laplace_mechanism(1 / epsilon, **each) for each in (OPTIMISTIC, PESSIMISTIC))
    assert optimistic.self_compose(runs).get_epsilon_for_delta(delta) <= total <= runs * epsilon
    assert total <= pessimistic.self_compose(runs).get_epsilon_for_delta(delta) * 1.001


def test_a_hundred_laplace_runs_cost_what_the_pld_accountant_says():
    assert 71.4 < compose(LaplaceNoise(1, (0, 1)), 100, 1e-6) < 71.6  # the best bound for any ε-private steps is 83.5


@given(epsilons, deltas, st.integers(1, 2000))
@settings(max_examples=50, deadline=None)
def test_laplace_runs_never_cost_more_than_their_sum(epsilon, delta, runs):
    total = compose(LaplaceNoise(epsilon, (0, 1)), runs, delta)
    assert 0 <= total <= runs * epsilon
    assert total <= compose(LaplaceNoise(epsilon, (0, 1)), runs + 1, delta) + 1e-9


@given(st.floats(0.01, 2), st.floats(0.01, 2), st.integers(1, 30), st.integers(1, 30))
@settings(max_examples=30)
def test_a_mixture_costs_no_more_than_its_parts_and_no_less_than_either(first, second, some, others):
    gaussian, laplace = GaussianNoise(first, 1e-6, (0, 1)), LaplaceNoise(second, (5, 9))
    parts = compose(gaussian, some, 1e-6), others * second
    total = compose_all({gaussian: some, laplace: others}, 1e-6)
    assert parts[0] <= total <= sum(parts)
    assert (
        compose_all({laplace: some, LaplaceNoise(first, (0, 1)): others}, 1e-6) <= some * second + others * first + 1e-9
    )
    assert compose_all({laplace: some, LaplaceNoise(second, (0, 1)): others}, 1e-6) == compose(
        laplace, some + others, 1e-6
    )


@pytest.mark.parametrize(("epsilon", "runs"), [(0.01, 2000), (1, 1), (0.3, 20)])
def test_a_mixture_is_bounded_tightly(epsilon, runs):
    gaussian = GaussianNoise(1, 1e-6, (0, 1))
    total = compose_all({gaussian: 1, LaplaceNoise(epsilon, (0, 1)): runs}, 1e-6)
    bounds = []
    for way in (OPTIMISTIC, PESSIMISTIC):
        loss = pld.from_gaussian_mechanism(gaussian.noise_std, **way)
        other = pld.from_laplace_mechanism(1 / epsilon, **way).self_compose(runs)
        bounds.append(loss.compose(other).get_epsilon_for_delta(1e-6))
    assert bounds[0] <= total <= bounds[1] * 1.002


def test_a_laplace_run_of_a_huge_epsilon_costs_it_beside_the_others():
    few, huge = LaplaceNoise(1, (0, 1)), LaplaceNoise(1e6, (0, 1))
    assert compose_all({few: 100, huge: 2}, 1e-6) == pytest.approx(2e6 + compose(few, 100, 1e-6))
    assert compose(huge, 3, 1e-6) == 3e6


def test_beside_a_gaussian_beyond_every_grid_laplace_runs_cost_their_sum():
    gaussian = GaussianNoise(1e9, 1e-6, (0, 1))
    assert compose_all({gaussian: 1, LaplaceNoise(1, (0, 1)): 7}, 1e-6) == compose(gaussian, 1, 1e-6) + 7


def test_what_cannot_be_composed_is_refused():
    with pytest.raises(InputError, match="a plain offset claims no epsilon"):
        compose(Offset(1), 3, 1e-6)
    with pytest.raises(InputError, match="delta must lie strictly between 0 and 1"):
        compose(LaplaceNoise(1, (0, 1)), 3, 1)
    with pytest.raises(InputError, match="runs must be a whole number from 1"):
        compose(LaplaceNoise(1, (0, 1)), 0, 0.5)


# text


@given(mechanisms)
def test_text_and_back(mechanism):
    assert parse_mechanism(str(mechanism)) == mechanism
    assert "\n" not in mechanism.describe()


def test_the_documented_texts():
    assert parse_mechanism("gaussian:eps=1,delta=1e-5,bounds=0:100") == GaussianNoise(1, 1e-5, (0, 100))
    assert parse_mechanism("laplace:bounds=-1:1,eps=2") == LaplaceNoise(2, (-1, 1))
    assert parse_mechanism("offset:sigma=0.1") == Offset(0.1)
    assert Offset(0.1).describe().endswith("no (epsilon, delta) claim")
    assert "(1, 1e-05)-DP" in GaussianNoise(1, 1e-5, (0, 100)).describe()
    assert "clipped to [0, 100]: (1, 0)-DP" in LaplaceNoise(1, (0, 100)).describe()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cauchy:eps=1",
        "gaussian",
        "gaussian:",
        "gaussian:eps=1,bounds=0:1",
        "gaussian:eps=1,eps=1,delta=0.1,bounds=0:1",
        "gaussian:eps=1,delta=0.1,bounds=0:1,",
        "gaussian:eps=0,delta=0.1,bounds=0:1",
        "gaussian:eps=-1,delta=0.1,bounds=0:1",
        "gaussian:eps=nan,delta=0.1,bounds=0:1",
        "gaussian:eps=inf,delta=0.1,bounds=0:1",
        "gaussian:eps=1,delta=0,bounds=0:1",
        "gaussian:eps=1,delta=1,bounds=0:1",
        "gaussian:eps=1,delta=nan,bounds=0:1",
        "gaussian:eps=one,delta=0.1,bounds=0:1",
        "gaussian:eps,delta=0.1,bounds=0:1",
        "gaussian:eps=1,delta=0.1,bounds=1:0",
        "gaussian:eps=1,delta=0.1,bounds=0:0",
        "gaussian:eps=1,delta=0.1,bounds=0",
        "gaussian:eps=1,delta=0.1,bounds=0:1:2",
        "gaussian:eps=1,delta=0.1,bounds=nan:1",
        "laplace:eps=1,bounds=-inf:inf",
        "laplace:eps=1,delta=0.1,bounds=0:1",
        "laplace:eps=1,bounds=-1e308:1e308",
        "laplace:eps=1e150,bounds=0:1e-300",
        "offset:sigma=0",
        "offset:sigma=1:2",
        "offset:0.1",
        "offset\n:sigma=1",
    ],
)
def test_malformed_text_is_refused_in_one_line_that_shows_the_form(text):
    with pytest.raises(InputError, match="=") as refusal:
        parse_mechanism(text)
    assert "\n" not in str(refusal.value)
    kind = text.partition(":")[0]
    assert {"laplace": "laplace:eps=1,bounds=0:100", "offset": "offset:sigma=0.1"}.get(
        kind, "gaussian:eps=1,delta=1e-5,bounds=0:100"
    ) in str(refusal.value)


@pytest.mark.parametrize("number", [0, -1, nan, inf, 1e-151])
def test_numbers_that_are_not_positive_are_refused(number):
    for make in (
        lambda: GaussianNoise(number, 0.1, (0, 1)),
        lambda: LaplaceNoise(number, (0, 1)),
        lambda: Offset(number),
    ):
        with pytest.raises(InputError, match="must be a positive number, between 1e-150 and 1e\\+150"):
            make()

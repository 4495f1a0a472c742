"""Joint noise: its ε against dp-accounting, brute force and moments; the worst case; an attack; rank errors."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import exp, inf, log, log1p, sqrt

import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

from midst import InputError
from midst.dp import joint, loss
from midst.dp.joint import (
    _variance,
    check_variance,
    least_variance,
    most_bits,
    parse_claim,
    spell_claim,
    spent,
)
from midst.dp.loss import MOST_VARIANCE
from midst.protocol.keys import SIGN, Grid
from midst.protocol.noise import (
    MOST_ERROR,
    JointNoise,
    count_std,
    fewest_values,
    parse_joint,
    rank_error,
    share_of,
    size_refusal,
    skellam,
)
from midst.protocol.noisy_search import NoisyRules, NoisySearchState
from midst.protocol.search import OwnValues, contribution

DELTAS = st.floats(-12, -1).map(lambda power: 10.0**power)


def far(variance):
    return int(11 * sqrt(variance)) + 40


def exact_delta(variance, shifts, epsilon):
    """δ(ε) of one probe whose cells shift by so much, by brute force."""
    outputs = np.arange(-far(variance), far(variance) + 1)
    p = q = np.ones(1)
    for shift in shifts:
        p = np.multiply.outer(p, ive(np.abs(outputs), variance)).reshape(-1)
        q = np.multiply.outer(q, ive(np.abs(outputs - shift), variance)).reshape(-1)
    return float(np.sum(np.maximum(p - exp(epsilon) * q, 0.0)))


# the accounting


@pytest.mark.parametrize(
    ("variance", "probes", "cells", "delta", "values"),
    [
        (250, 14, 1, 1e-6, 1),
        (250, 7, 3, 1e-6, 1),
        (4, 14, 1, 1e-6, 1),
        (Fraction(1, 2), 5, 7, 1e-5, 1),
        (900, 10, 1, 1e-9, 3),
        (2000, 20, 2, 1e-6, 4),
        (30, 1, 1, 0.01, 1),
    ],
)
def test_epsilon_is_that_of_dp_accounting(variance, probes, cells, delta, values):
    outputs, runs = np.arange(-far(variance), far(variance) + 1), probes * min(cells, 2)
    one, other = (
        dict(zip(outputs.tolist(), np.log(ive(np.abs(outputs - shift), float(variance))), strict=True))
        for shift in (0, values)
    )
    bounds = [
        pld.from_two_probability_mass_functions(other, one, way, 1e-4).self_compose(runs).get_epsilon_for_delta(delta)
        for way in (False, True)
    ]
    total = spent(Fraction(variance), probes, cells, delta, values)
    assert bounds[0] <= total <= bounds[1] * 1.001
    assert bounds[1] - bounds[0] < 2.5e-4 * runs  # so that this says something


@given(st.integers(1, 4000), st.integers(1, 5), DELTAS)
@settings(max_examples=40, deadline=None)
def test_epsilon_of_one_number_is_exact(quarters, values, delta):
    variance = Fraction(quarters, 4)
    total = spent(variance, 1, 1, delta, values)
    assert exact_delta(float(variance), [values], total) <= delta * (1 + 1e-6)
    if total > 0.01:
        assert exact_delta(float(variance), [values], total * 0.995) >= delta * 0.999


@given(st.integers(4, 400), DELTAS)
@settings(max_examples=20, deadline=None)
def test_epsilon_of_two_cells_is_exact(quarters, delta):
    variance = Fraction(quarters, 4)
    total = spent(variance, 1, 2, delta)
    assert exact_delta(float(variance), [1, -1], total) <= delta * (1 + 1e-6)
    if total > 0.01:
        assert exact_delta(float(variance), [1, -1], total * 0.995) >= delta * 0.999


@pytest.mark.parametrize("variance", [0.7, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
def test_one_cell_to_another_is_the_worst_case(variance, epsilon):
    def delta(*shifts):
        return exact_delta(variance, shifts, epsilon) * (1 + 1e-9)

    assert delta(1, -1) >= delta(1) >= 0
    assert delta(1, -1) == pytest.approx(delta(1, 1)) == pytest.approx(delta(-1, 1))
    # a list of two, and of three: spread over cells, or partly beyond the last threshold
    assert delta(2, -2) >= max(delta(1, 1, -2), delta(2, -1), delta(1, -1), delta(2))
    assert delta(3, -3) >= max(delta(2, 1, -3), delta(3, -2), delta(2, -2), delta(1, -3))
    assert delta(2) >= delta(1, 1) >= delta(1)
    assert delta(3) >= delta(2, 1) >= delta(1, 1, 1)


def test_with_much_noise_it_costs_what_gaussian_noise_does():
    for variance, runs, values in ((1e6, 20, 1), (1e8, 14, 30)):
        sigma = sqrt(variance / runs) / values
        oracle = gaussian_mechanism.get_epsilon_gaussian(sigma, 1e-6)
        assert spent(Fraction(variance), runs, 1, 1e-6, values) == pytest.approx(oracle, rel=1e-3)


@pytest.mark.parametrize(("variance", "probes", "cells"), [(250, 14, 1), (250, 7, 3), (2000, 20, 7), (30, 3, 2)])
def test_it_keeps_below_the_bound_by_moments(variance, probes, cells):
    """That of Agarwal, Kairouz and Liu 2021, by the conversion of Canonne and others 2020."""
    changed = min(cells, 2)  # Δ₁ and Δ₂² of a probe

    def bound(alpha):
        more = min(((2 * alpha - 1) * changed + 6 * changed) / (4 * variance**2), 3 * changed / (2 * variance))
        moments = probes * (alpha * changed / (2 * variance) + more)
        return moments + log1p(-1 / alpha) - log(1e-6 * alpha) / (alpha - 1)

    least = min(bound(alpha) for alpha in range(2, 300))
    assert 0.85 * least < spent(Fraction(variance), probes, cells, 1e-6) < least


@given(st.integers(1, 10_000), st.integers(1, 20), st.integers(1, 7), DELTAS)
@settings(max_examples=30, deadline=None)
def test_more_noise_costs_less_and_more_probes_more(quarters, probes, cells, delta):
    total = spent(Fraction(quarters, 4), probes, cells, delta)
    near = 1.002 * total + 1e-6
    assert spent(Fraction(quarters + 1 + quarters // 10, 4), probes, cells, delta) <= near
    assert spent(Fraction(quarters, 4), probes + 1, cells, delta) * 1.002 + 1e-6 >= total
    assert spent(Fraction(quarters, 4), probes, cells, delta, 2) * 1.002 + 1e-6 >= total
    assert spent(Fraction(quarters, 4), probes, cells + 1, delta) * 1.002 + 1e-6 >= total


def test_no_noise_keeps_no_promise_and_no_probe_costs_nothing():
    assert spent(Fraction(0), 3, 1, 1e-6) == inf
    assert spent(Fraction(0), 0, 1, 1e-6) == 0
    assert least_variance(JointNoise(1, 1e-6), 0, 1) == 0
    with pytest.raises(InputError, match="cannot be accounted for"):
        spent(Fraction(2**32 + 1), 3, 1, 1e-6)


# the noise that is agreed on


def test_variances_that_may_be_agreed_on_are_whole_quarters_a_thousandth_apart():
    variances = [_variance(index) for index in range(25 * 1024 + 1)]
    assert variances[:5] == [0, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), 1]
    assert variances[-1] == MOST_VARIANCE
    for less, more in pairwise(variances[1024:]):
        assert 0 < more - less <= less / 1024
    assert all(4 % variance.denominator == 0 for variance in variances)


@pytest.mark.parametrize(
    ("noise", "probes", "cells"),
    [
        (JointNoise(1, 1e-6), 14, 1),
        (JointNoise(1, 1e-6), 7, 3),
        (JointNoise(0.1, 1e-9), 20, 1),
        (JointNoise(20, 1e-6), 14, 7),
        (JointNoise(1, 1e-6, values=20), 10, 1),
    ],
)
def test_the_least_variance_suffices_and_less_does_not(noise, probes, cells):
    variance = least_variance(noise, probes, cells)
    check_variance(noise, variance, probes, cells)
    assert spent(variance, probes, cells, noise.delta, noise.values) < noise.epsilon * (1 - 0.9e-5)  # for any machine
    less = variance - max(Fraction(1, 4), variance / 500)
    with pytest.raises(InputError, match=r"keeps to epsilon .* not to the"):
        check_variance(noise, less, probes, cells)


@pytest.mark.parametrize(("index", "probes", "cells"), [(999, 14, 1), (40, 3, 2), (5000, 20, 3)])
def test_no_variance_is_settled_that_another_machine_might_refuse(index, probes, cells):
    """An ε that a variance keeps to, to the last digit, is taken to need the next one."""
    noise = JointNoise(spent(_variance(index), probes, cells, 1e-6), 1e-6)
    assert least_variance(noise, probes, cells) == _variance(index + 1)


@pytest.mark.parametrize("change", [1e-5, -1e-5])
def test_what_machines_may_differ_by_is_far_below_the_margin(change, monkeypatch):
    """The least certain step is a minimum that is searched for; another one nearby gives another way to the same ε."""
    cases = [(Fraction(999, 4), 14, 1, 1e-6), (Fraction(16), 3, 2, 0.02), (Fraction(50432), 20, 3, 1e-9)]
    here = [spent(*case) for case in cases]
    tilt = loss._tilt
    monkeypatch.setattr(loss, "_tilt", lambda *args: tilt(*args) * (1 + change))
    assert [spent(*case) for case in cases] == pytest.approx(here, rel=1e-6)


def test_the_variance_of_the_documents():
    assert least_variance(JointNoise(1, 1e-6), 14, 1) == Fraction(999, 4)
    assert least_variance(JointNoise(1, 1e-6), 7, 3) == Fraction(999, 4)  # half the probes, twice the change


def test_too_small_an_epsilon_is_refused(monkeypatch):
    monkeypatch.setattr(joint, "_MOST_INDEX", 3000)  # the largest that may be agreed on takes seconds
    with pytest.raises(InputError, match="allow a larger epsilon"):
        least_variance(JointNoise(0.1, 1e-6, values=100), 14, 1)


@pytest.mark.parametrize(("count", "says"), [(15, "by half of them or more"), (101, "by some 16% of them")])
def test_too_few_values_are_refused_with_the_error_to_expect(count, says):
    variance = least_variance(JointNoise(1, 1e-6), 14, 1)
    refusal = size_refusal(1e-6, variance, 1, count)
    assert says in refusal
    assert "159 values or more" in refusal
    assert "\n" not in refusal
    assert "thresholds" not in refusal
    assert "158 values" in size_refusal(1e-6, variance, 1, 158)
    assert size_refusal(1e-6, variance, 1, 159) is size_refusal(1e-6, variance, 1, 1001) is None
    assert rank_error(variance, 1, 1001) == pytest.approx(0.0158, abs=1e-4)
    assert "fewer thresholds a probe" in size_refusal(1e-6, variance, 3, 159)


@given(st.integers(0, 10**6), st.integers(1, 7))
def test_the_fewest_values_are_the_fewest(quarters, cells):
    """Exactly, so that no two participants differ about it."""
    variance = Fraction(quarters, 4)
    least, allowed = fewest_values(variance, cells), MOST_ERROR**2
    assert variance * (cells + 1) / 2 <= allowed * least**2
    assert least == 1 or variance * (cells + 1) / 2 > allowed * (least - 1) ** 2
    assert size_refusal(1e-12, variance, cells, least) is None
    assert least == 1 or size_refusal(1e-12, variance, cells, least - 1) is not None


def test_a_delta_that_allows_a_value_to_be_told_is_refused():
    assert "must be below 1/n" in size_refusal(1e-3, Fraction(1), 1, 1000)
    assert size_refusal(1e-3, Fraction(1), 1, 999) is None


# bits


@pytest.mark.parametrize("variance", [0.3, 1.0, 20.0, 250.0])
def test_the_bits_are_no_fewer_than_the_relative_entropy(variance):
    """Of one number, by brute force; and not many more."""
    outputs = np.arange(-far(variance), far(variance) + 1)
    p, q = (ive(np.abs(outputs - shift), variance) for shift in (0, 1))
    likely = (p > 1e-300) & (q > 1e-300)
    bits = float(np.sum(p[likely] * np.log2(p[likely] / q[likely])))
    assert bits <= most_bits(Fraction(variance), 1, 1) <= bits * (1 + 4 / variance if variance > 1 else 6)
    assert most_bits(Fraction(variance), 7, 3) == pytest.approx(14 * most_bits(Fraction(variance), 1, 1))


def test_no_probe_tells_nothing_and_no_noise_everything():
    assert most_bits(Fraction(0), 0, 1) == 0
    assert most_bits(Fraction(0), 1, 1) == inf


# text


@given(
    st.builds(
        JointNoise,
        st.floats(1e-6, 1e6),
        st.floats(1e-30, 0.99),
        st.integers(0, 1000),
        st.integers(1, 1000),
    )
)
def test_text_and_back(noise):
    assert parse_joint(str(noise)) == noise
    assert "\n" not in noise.describe()


def test_the_documented_text():
    assert parse_joint("eps=1,delta=1e-6,colluders=2") == JointNoise(1, 1e-6, 2)
    assert parse_joint("delta=1e-6,eps=2") == JointNoise(2, 1e-6)
    assert parse_joint("eps=1,delta=1e-6,values=9").values == 9
    assert JointNoise(1, 1e-6, 2).describe() == (
        "(1, 1e-06)-DP of all that is told, for one value, against any 2 who collude"
    )
    assert (
        JointNoise(1, 1e-6, 1, 5)
        .describe()
        .endswith("for 5 values of one participant together, against each participant")
    )
    assert JointNoise(1, 1e-6, 0).describe().endswith("against outsiders only")  # everybody knows its own share


def test_claims_of_either_kind_have_a_text():
    for text in ("joint:eps=1.0,delta=1e-06,colluders=2", "laplace:eps=1.0,bounds=0.0:100.0"):
        assert spell_claim(parse_claim(text)) == text
    with pytest.raises(InputError, match="joint:eps=1,delta=1e-6 for a search"):
        parse_claim("noise:eps=1")


def test_what_promises_less_is_named():
    asked = JointNoise(1, 1e-6, 2, 3)
    assert asked.weaker_than(asked) is None
    assert JointNoise(0.5, 1e-7, 3, 4).weaker_than(asked) is None
    assert JointNoise(1.1, 1e-6, 2, 3).weaker_than(asked) == "a larger epsilon"
    assert JointNoise(1, 1e-5, 2, 3).weaker_than(asked) == "a larger delta"
    assert JointNoise(0.1, 1e-6, 1, 2).weaker_than(asked) == "fewer colluders and fewer values together"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eps=1",
        "delta=1e-6",
        "eps=1,delta=1e-6,",
        "eps=1,eps=1,delta=1e-6",
        "eps=1,epsilon=1,delta=1e-6",
        "epsilon=1,delta=1e-6",
        "eps=0,delta=1e-6",
        "eps=nan,delta=1e-6",
        "eps=inf,delta=1e-6",
        "eps=1,delta=0",
        "eps=1,delta=1",
        "eps=1,delta=nan",
        "eps=one,delta=1e-6",
        "eps=1,delta=1e-6,colluders=-1",
        "eps=1,delta=1e-6,colluders=1.5",
        "eps=1,delta=1e-6,values=0",
        "eps=1,delta=1e-6,sigma=0",
    ],
)
def test_malformed_text_is_refused_in_one_line_that_shows_the_form(text):
    with pytest.raises(InputError, match="eps=1,delta=1e-6,colluders=2") as refusal:
        parse_joint(text)
    assert "\n" not in str(refusal.value)


# an attack

EPSILON, DELTA, WIDTH, RUNS = 1.0, 0.02, 27, 8000
LOW, CENTRE, HIGH = SIGN, SIGN + WIDTH // 2, SIGN + WIDTH - 1
OTHERS = [LOW] * 100 + [CENTRE] * 200 + [HIGH] * 100  # so that every probe goes on in the middle cell
RULES = NoisyRules(Grid(Fraction(1)), (SIGN - 1, HIGH), (200,), 2)


def scores(value, variance, seed):
    """Of many transcripts, how much more was told of first cells than of second ones, in all: nearly the best test.

    One value is in the first cell of each probe, or in the second. The noise is that of three participants out of four.
    """
    draw, share = random.Random(seed).randbytes, share_of(variance, 4, 1)
    own, found = OwnValues((np.sort(np.array([*OTHERS, value], np.uint64)),)), []
    exact = lru_cache(lambda question: contribution(question, own, 1))
    for _ in range(RUNS):
        state, score = NoisySearchState.begin(RULES), 300
        while state.question is not None:
            totals = [number + sum(skellam(share, draw) for _ in range(3)) for number in exact(state.question)]
            score += totals[0] - totals[1]
            state = state.fold(totals)
        found.append(score)
    return np.array(found)


def violations(variance):
    """Of each event, "the score is above (below) a level": P(E) − e^ε Q(E) − δ, and its sampling error."""
    one, other = scores(LOW, variance, 1), scores(CENTRE, variance, 2)
    for level in range(-25, 26):
        for p, q in ((np.mean(one > level), np.mean(other > level)), (np.mean(other < level), np.mean(one < level))):
            error = sqrt((p * (1 - p) + exp(2 * EPSILON) * q * (1 - q)) / RUNS) + 1e-9
            yield p - exp(EPSILON) * q - DELTA, error


def agreed():
    assert RULES.probes == 3
    assert RULES.most_numbers == 2
    return least_variance(JointNoise(EPSILON, DELTA, 1), 3, 2)


def test_an_attack_on_transcripts_finds_no_more_than_was_promised():
    found = list(violations(agreed()))
    assert all(by <= 4 * error for by, error in found)
    assert any(by > -DELTA / 2 for by, _ in found)  # nor much less: the attack is nearly the best


@pytest.mark.parametrize("part", [2, 4])
def test_and_it_would_find_noise_that_is_too_small(part):
    """Half the variance: as if only one cell changed. A quarter: as if the standard deviation were half."""
    assert any(by > 8 * error for by, error in violations(agreed() / part))


# how far off answers are


@pytest.mark.parametrize(("thresholds", "least", "most"), [(1, 0.4, 0.8), (3, 0.35, 0.8)])
def test_the_rank_of_an_answer_is_off_by_as_much_as_was_said(thresholds, least, most):
    rng = np.random.default_rng(8)
    errors = []
    for _ in range(40):
        keys = np.sort(rng.integers(SIGN, SIGN + 10_000, 1001, dtype=np.uint64))
        rules = NoisyRules(Grid(Fraction(1)), (SIGN - 1, SIGN + 9999), (501,), thresholds)
        variance = least_variance_of(rules)
        draw = random.Random(int(rng.integers(2**60))).randbytes
        for _ in range(5):
            state = NoisySearchState.begin(rules)
            while state.question is not None:
                exact = contribution(state.question, OwnValues((keys,)), 1)
                state = state.fold([number + skellam(variance, draw) for number in exact])
            answer = np.uint64(state.brackets[0][1])
            first, last = np.searchsorted(keys, answer, "left") + 1, np.searchsorted(keys, answer, "right")
            errors.append(max(first - 501, 501 - last, 0) / 1001)
    said = rank_error(variance, rules.most_numbers, 1001)
    assert said == count_std(variance, thresholds) / 1001
    assert least * said < np.mean(errors) < most * said


@lru_cache
def least_variance_of(rules):
    return least_variance(JointNoise(1, 1e-6), rules.probes, rules.most_numbers)

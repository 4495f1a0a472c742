"""What several runs give away together, against enumeration of everything that could have been."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import search_trace
from test_search_beliefs import OTHER, SIX, SKEWED, both, divergence, iteration, masses, searched, spikes, transcript

import midst
from midst import graphs
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import audit, audit_together
from midst.privacy.disclosed import Disclosure, disclose, join_disclosures, weigh
from midst.privacy.priors import Normal, Uniform, Within
from midst.privacy.views import view

FOUR, FIVE, HEIGHTS = SIX[:4], SIX[:5], np.array([1.0, 3.0, 2.0, 4.0, 1.0])
PASSIVE = Adversary((0,), eavesdrops=False)
ways = st.fixed_dictionaries(
    {
        "q": st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0]),
        "definition": st.sampled_from(["inverted_cdf", "inverted_cdf_high"]),
        "arity": st.integers(1, 3),
        "spacing": st.sampled_from(["rank", "value", "key"]),
    }
)


def alone(values, seed, iterations=2):
    """An iteration on a ring, without any search."""
    problem = midst.Problem(graphs.ring(len(values)), values, objective=midst.Quantile(0.5))
    return midst.solve(problem, iteration(iterations), rng=seed, record="all").trace


def spread(values, seed=0, method="consensus", n=None, **more):
    """A run on a complete graph, by default to the exact answer."""
    problem = midst.Problem(graphs.complete(len(values) if n is None else n), values, bounds=(-9, 9), **more)
    return midst.solve(problem, method, rng=seed, record="audit").trace


# searches


@given(st.lists(st.sampled_from(FOUR), min_size=4, max_size=4), st.lists(ways, min_size=1, max_size=3), st.data())
@settings(max_examples=25)
def test_any_searches_against_enumeration(values, several, data):
    """Bits of all totals, and the floor of all answers."""
    corrupt = data.draw(st.sampled_from([(), (1,), (0, 3)]))
    how = {"bounds": (0, 3), "weights": data.draw(st.sampled_from([None, (1, 1, 2, 3)]))}
    adversary = Adversary(corrupt, eavesdrops=not corrupt)
    traces = [search_trace(values, resolution=1, **how, **way) for way in several]
    report = audit_together(traces, adversary, SKEWED, 1.0)
    honest = [i for i in range(4) if i not in corrupt]
    before, told, answered = masses(SKEWED, FOUR), np.zeros((4, 4)), np.zeros((4, 4))
    tried = np.array(values)
    for places in product(range(4), repeat=len(honest)):
        tried[honest] = places
        found = [searched(tuple(tried.tolist()), **how, **way) for way in several]
        chance = math.prod(before[k] for k in places)
        if found == [transcript(trace) for trace in traces]:
            told[honest, places] += chance
        if [answer for _, answer in found] == [trace.answer for trace in traces]:
            answered[honest, places] += chance
    for i in honest:
        assert report.bits[i] == pytest.approx(divergence(told[i] / told[i].sum(), before), abs=1e-9)
        assert report.floor[i] == pytest.approx(divergence(answered[i] / answered[i].sum(), before), abs=1e-9)
    assert report.kind == "exact"


@pytest.mark.parametrize("definition", ["inverted_cdf", "averaged_inverted_cdf"])
def test_a_search_again_tells_nothing_new(definition):
    trace = search_trace((0, 2, 3, 5), resolution=1, bounds=(0, 5), definition=definition, arity=1)
    once, again = audit(trace, None, SKEWED, 1.0), audit_together([trace] * 3, None, SKEWED, 1.0)
    for name in ("bits", "floor", "lower", "upper", "side_probability", "exposed"):
        np.testing.assert_array_equal(getattr(once, name), getattr(again, name))


def test_what_cannot_be_joined_is_refused():
    one = search_trace((0, 2, 3, 5), resolution=1, bounds=(0, 5))
    for other, match in (
        (search_trace((0, 2, 4, 4), resolution=1, bounds=(0, 5)), "of different values"),
        (
            search_trace((0, 2, 3, 5), resolution=1, bounds=(0, 5), definition="averaged_inverted_cdf", arity=1),
            "midpoint",
        ),
        (search_trace((0, 2, 3), resolution=1, bounds=(0, 5)), "participants are the same"),
        (search_trace((0, 2, 3, 5), resolution=1, bounds=(0, 6)), "keys, bounds and participants are the same"),
        (alone(np.zeros(3), 1), "participants are the same"),
    ):
        with pytest.raises(midst.InputError, match=match):
            audit_together([one, other], None, SKEWED, 1.0)
    with pytest.raises(midst.InputError, match="at least one"):
        audit_together([])


# iterations


def enumerate_runs(values, corrupt, runs):
    """The posterior of each honest value over FIVE, from all values that would have shown the same in every run."""
    shown = [run(values) for run in runs]
    honest = [i for i in range(len(values)) if i not in corrupt]
    counts = np.zeros((len(values), 5))
    for places in product(range(5), repeat=len(honest)):
        tried = values.copy()
        tried[honest] = places
        for trace, run in zip(shown, runs, strict=True):
            other = run(tried)
            if not np.allclose(other.x, trace.x, atol=1e-12) or transcript(other) != transcript(trace):
                break
        else:
            counts[honest, places] += math.prod(HEIGHTS[k] for k in places)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)


def run_of(kind, seed):
    """An iteration, one that ends in a search, or a search: as a function of the values."""
    search = {"resolution": 1, "bounds": (0, 4), "q": 0.3 * (seed % 4)}
    kinds = (lambda v: alone(v, seed), lambda v: both(v, seed, 2), lambda v: search_trace(v, **search))
    return kinds[kind]


@pytest.mark.parametrize(("n", "corrupt"), [(3, ()), (4, (1,))])
@pytest.mark.parametrize("seed", range(8))
def test_runs_of_all_kinds_against_enumeration(seed, n, corrupt):
    """Each has its own z(0), or its own thresholds."""
    rng = np.random.default_rng([seed, 1])
    values = rng.choice(5, size=n, p=HEIGHTS / HEIGHTS.sum()).astype(float)
    runs = [run_of(int(kind), seed + k) for k, kind in enumerate(rng.choice(3, size=int(rng.integers(2, 4))))]
    report = audit_together([run(values) for run in runs], Adversary(corrupt), spikes(FIVE, HEIGHTS), 1.0)
    after = enumerate_runs(values, corrupt, runs)
    assert report.kind == "exact"
    for i in set(range(n)) - set(corrupt):
        assert report.bits[i] == pytest.approx(divergence(after[i], HEIGHTS / HEIGHTS.sum()), abs=1e-6)


def test_an_iteration_and_its_search_are_the_exact_finish():
    values, prior = np.array([0.0, 3.0, 3.0, 1.0]), spikes(FIVE, HEIGHTS)
    trace = both(values, 3, 3)
    before = replace(trace, probes=(), answer=None, places=None)
    opening = trace.x[-1].min(), trace.x[-1].max()
    search = search_trace(values, resolution=1, bounds=(0, 4), opening=opening)
    together, single = audit_together([before, search], None, prior, 1.0), audit(trace, None, prior, 1.0)
    for name in ("bits", "lower", "upper", "exposed", "side", "exposed_at", "share_over_time"):
        np.testing.assert_array_equal(getattr(together, name), getattr(single, name))
    assert np.isnan(together.floor).all()  # the iteration ended without an answer
    assert any("without an answer" in note for note in together.notes)
    np.testing.assert_array_equal(audit_together([trace, trace], None, prior, 1.0).bits, single.bits)
    np.testing.assert_array_equal(audit_together([trace, search], None, prior, 1.0).floor, single.floor)


def test_one_run_is_its_audit():
    trace = alone(np.arange(5.0), 3, iterations=8)
    for adversary in (Adversary(), Adversary(init="sealed"), PASSIVE):
        one, same = audit_together([trace], adversary, OTHER), audit(trace, adversary, OTHER)
        np.testing.assert_array_equal(one.bits, same.bits)
        assert one.kind == same.kind


def test_iterations_are_counted_end_to_end():
    values = np.random.default_rng(5).normal(size=6)
    traces = [alone(values, seed, iterations=12) for seed in (1, 2, 3)]
    single = [audit(trace, resolution=0.01) for trace in traces]
    report = audit_together(traces, resolution=0.01)
    np.testing.assert_array_equal(report.exposed, np.any([each.exposed for each in single], axis=0))
    for i in np.flatnonzero(report.exposed):
        k = next(k for k, each in enumerate(single) if each.exposed[i])
        assert report.exposed_at[i] == 12 * k + single[k].exposed_at[i]
        assert report.lower[i] == report.upper[i] == values[i]
    assert len(report.share_over_time) == 36
    assert report.share_over_time[-1] == 1 - report.exposed.mean()


@given(
    st.integers(0, 2**32), st.integers(3, 6), st.lists(st.sampled_from(["iteration", "exact", "search"]), min_size=2)
)
@settings(max_examples=20)
def test_one_more_run_never_widens_bounds(seed, n, kinds):
    values = np.round(np.random.default_rng(seed).normal(size=n), 2)
    stop = {"iteration": midst.After(9), "exact": midst.Exact()}
    traces = [
        spread(values, seed + k, "search" if kind == "search" else midst.Consensus(stop=stop[kind]))
        for k, kind in enumerate(kinds[:4])
    ]
    reports = [audit_together(traces[: k + 1], prior=Within(Normal(), -9, 9)) for k in range(len(traces))]
    for before, after in pairwise(reports):
        assert (before.lower <= after.lower).all()
        assert (after.upper <= before.upper).all()
        assert (before.exposed <= after.exposed).all()
    assert (reports[-1].lower <= values).all()
    assert (values <= reports[-1].upper).all()


def test_more_runs_tell_more_on_average():
    """Of iterations alone never less; with totals on average, which is what mutual information is."""
    prior, rows = Within(Normal(), -9, 9), []
    for seed in range(25):
        values = np.random.default_rng([seed, 4]).normal(size=7)
        traces = [spread(values, seed), spread(values, 0, midst.Search(arity=1)), spread(values, seed + 1000)]
        runs = list(accumulate([trace] for trace in traces))
        rows.append([audit_together(several, prior=prior).mean_bits for several in runs])
    means = np.mean(rows, axis=0)
    assert (np.diff(means) > 0).all()
    values = np.random.default_rng(4).normal(size=7)
    certified = [spread(values, seed, midst.Consensus(stop=midst.After(30))) for seed in range(4)]
    reports = [audit_together(several, prior=prior).bits for several in accumulate([trace] for trace in certified)]
    assert (np.diff(reports, axis=0) >= -1e-9).all()
    assert reports[-1].sum() > reports[0].sum()


def test_for_others_it_is_an_upper_bound():
    values = np.random.default_rng(2).normal(size=5)
    traces = [spread(values, 1), spread(values, 2)]
    for stronger, adversary in ((Adversary(), Adversary(init="sealed")), (Adversary((0,)), PASSIVE)):
        report, clear = audit_together(traces, adversary), audit_together(traces, stronger)
        np.testing.assert_array_equal(report.bits, clear.bits)
        assert (report.kind, clear.kind, report.adversary) == ("upper bound", "exact", adversary)
        assert "z(0) clear" in report.notes[0]
        np.testing.assert_array_equal(report.at_least, audit(traces[0], adversary).at_least)
        assert np.nansum(report.at_least) < np.nansum(report.bits)
    searches = [spread(values, 0, midst.Search(arity=arity)) for arity in (1, 3)]
    assert audit_together(searches, PASSIVE).kind == "exact"


def test_runs_too_short_for_a_sealed_audit_are_bounded_all_the_same():
    values = np.random.default_rng(2).normal(size=5)
    traces = [spread(values, seed, midst.Consensus(stop=midst.After(2))) for seed in (1, 2)]
    report = audit_together(traces, Adversary(init="sealed"))
    np.testing.assert_array_equal(report.bits, audit_together(traces).bits)
    assert (report.at_least == 0).all()


def test_other_values_contradict():
    values = np.array([-1.0, 0.2, 0.5, 2.0, 1.0])
    other = values.copy()
    other[2] = -5.0
    for method in ("consensus", midst.Consensus(stop=midst.Certified()), "search"):
        with pytest.raises(midst.InputError, match="of different values") as refusal:
            audit_together([spread(values, 1, method), spread(other, 2, method)])
        assert "\n" not in str(refusal.value)
        assert "0.5" not in str(refusal.value)
    mean = {"objective": midst.Mean()}
    again = audit_together([spread(values, seed, **mean) for seed in (1, 2)], prior=Normal(0, 2))
    assert again.exposed.all()
    with pytest.raises(midst.InputError, match="about node 2"):
        audit_together([spread(values, 1, **mean), spread(other, 1, **mean)])


def test_vectors_are_joined_a_coordinate_at_a_time():
    values = np.random.default_rng(0).normal(size=(5, 2))
    traces = [spread(values, seed) for seed in (1, 2)]
    with pytest.raises(midst.InputError, match="coordinate"):
        audit_together(traces)
    for k in (0, 1):
        single = [audit(trace, coordinate=k) for trace in traces]
        report = audit_together(traces, coordinate=k)
        np.testing.assert_array_equal(report.exposed, single[0].exposed | single[1].exposed)


def test_lists_stay_a_lower_bound():
    values, owners = [0.0, 1.0, 1.0, 4.0, 5.0], [0, 0, 1, 2, 2]
    traces = [search_trace(values, owners=owners, resolution=1, bounds=(0, 5), q=q) for q in (0.3, 0.8)]
    report = audit_together(traces, None, SKEWED, 1.0)
    plain = audit_together(
        [search_trace(values, resolution=1, bounds=(0, 5), q=q) for q in (0.3, 0.8)], None, SKEWED, 1.0
    )
    assert report.kind == "lower bound"
    np.testing.assert_allclose(report.bits, plain.bits[0] * np.array([2, 1, 2]))


def test_too_many_ways_are_an_upper_bound():
    """Each node's own cell is then taken to be known: that of all thresholds of all searches."""
    values = np.random.default_rng(8).normal(size=40)
    traces = [spread(values, 1, midst.Consensus(sigma=1.0, stop=midst.After(1)))]
    traces += [spread(values, 0, "search", objective=midst.Quantile(q)) for q in (0.2, 0.5, 0.8)]
    report = audit_together(traces)
    assert report.kind == "upper bound"
    assert any("too many ways" in note for note in report.notes)
    assert (report.lower <= values).all()
    assert (values <= report.upper).all()
    assert (report.bits >= audit(traces[0]).bits - 1e-9).all()
    with pytest.raises(midst.InputError, match="too many ways"):
        audit_together([replace(trace, places=None) for trace in traces])


def test_the_floor_of_many_different_answers_is_not_known():
    values = np.random.default_rng(8).normal(size=60)
    traces = [spread(values, 0, "search", objective=midst.Quantile(q)) for q in (0.2, 0.4, 0.6, 0.8)]
    report = audit_together(traces)
    assert np.isnan(report.floor).all()
    assert any("too many ways" in note for note in report.notes)
    assert report.mean_bits > 0


def test_the_floor_of_a_midpoint_and_another_answer_is_not_known():
    """All values are one key, so that no sum of two was told, and the totals can be joined."""
    how = {"resolution": 1, "bounds": (0, 5)}
    traces = [
        search_trace((2, 2, 2, 2), definition="averaged_inverted_cdf", arity=1, **how),
        search_trace((2, 2, 2, 2), q=1.0, **how),
    ]
    report = audit_together(traces, None, SKEWED, 1.0)
    assert np.isnan(report.floor).all()
    assert any("midpoint" in note for note in report.notes)
    assert (report.bits > 0).all()


# in a form that can be kept


def test_what_was_told_is_the_same_after_a_file():
    values = np.random.default_rng(3).normal(size=5)
    traces = [spread(values, 1), spread(values, 2, "search"), spread(values, 3, midst.Consensus(stop=midst.After(5)))]
    priors, cells = [Uniform(-9, 9)] * 5, np.full(5, 0.01)
    seen = [disclose(view(trace, Adversary())) for trace in traces]
    kept = [Disclosure.from_dict(each.to_dict()) for each in seen]
    assert [each.to_dict() for each in kept] == [each.to_dict() for each in seen]
    report = audit_together(traces, None, priors, 0.01)
    found = weigh(join_disclosures(kept), priors, cells)
    assert [found.bits[i] for i in range(5)] == report.bits.tolist()
    assert "0." not in repr(seen) + repr(kept)
    sealed = view(spread(values, 3, midst.Consensus(stop=midst.After(5))), Adversary(init="sealed"))
    with pytest.raises(midst.InputError, match="clear z"):
        disclose(sealed)

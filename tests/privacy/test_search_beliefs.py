"""What a search gives away, against enumeration of everything that could have been."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner
from searches import search_trace

import midst
from midst import graphs
from midst.cli.attack import command as attack_command
from midst.cli.audit import command as audit_command
from midst.privacy.adversaries import Adversary
from midst.privacy.attack import reconstruct
from midst.privacy.audit import audit, measure
from midst.privacy.priors import Density, Normal, Uniform, Within
from midst.privacy.published import Cell, Pair, Published, read_published
from midst.privacy.search_beliefs import learn
from midst.privacy.views import view
from midst.protocol.keys import make_keys

SIX = [float(k) for k in range(6)]
SKEWED = Density([-0.6, 0.4, 1.6, 3.2, 5.6], [0.3, 2.0, 0.4, 1.0, 0.1])
OTHER = Normal(1.5, 1.0)


def masses(prior, grid, step=1.0):
    """The prior of the rounded value."""
    raw = np.array([math.exp(prior.log_mass(g - step / 2, g + step / 2)) for g in grid])
    return raw / raw.sum()


def transcript(trace):
    return tuple((probe.edges, probe.totals) for probe in trace.probes), trace.answer


@cache
def searched(values, **how):
    return transcript(search_trace(values, resolution=1, **how))


def enumerate_posterior(values, corrupt, priors, grid, alone=False, **how):
    """Of each honest value the chances of each point of the grid, by trying all values that honest ones may have."""
    values = np.array(values, np.float64)
    honest = [i for i in range(len(values)) if i not in corrupt]
    what = slice(1, 2) if alone else slice(0, 2)
    seen = searched(tuple(values.tolist()), bounds=(grid[0], grid[-1]), **how)[what]
    found = np.zeros((len(values), len(grid)))
    for places in product(range(len(grid)), repeat=len(honest)):
        values[honest] = [grid[k] for k in places]
        if searched(tuple(values.tolist()), bounds=(grid[0], grid[-1]), **how)[what] == seen:
            chance = math.prod(priors[i][k] for i, k in zip(honest, places, strict=True))
            found[honest, places] += chance
    found[honest] /= found[honest].sum(axis=1, keepdims=True)
    return found


def divergence(after, before):
    held = after > 0
    return float(np.sum(after[held] * np.log2(after[held] / before[held])))


def check_against_enumeration(values, prior, corrupt=(), grid=SIX, **how):
    """Bits, floor, posterior and bounds of every honest participant."""
    n = len(values)
    priors = prior if isinstance(prior, list) else [prior] * n
    trace = search_trace(values, bounds=(grid[0], grid[-1]), resolution=1, keep_values=True, **how)
    adversary = Adversary(corrupt, eavesdrops=not corrupt)
    report = audit(trace, adversary, prior, 1.0)
    assert report.kind == "exact"
    before = [masses(each, grid) for each in priors]
    after = enumerate_posterior(values, corrupt, before, grid, **how)
    alone = enumerate_posterior(values, corrupt, before, grid, alone=True, **how)
    seen = read_published(trace, adversary)
    learnt = learn(seen, [*priors], np.ones(n))
    for i in range(n):
        if i in corrupt:
            assert np.isnan([report.bits[i], report.floor[i], report.excess[i]]).all()
            continue
        if trace.whole_weights[i] == 0:
            assert report.bits[i] == report.floor[i] == 0
            continue
        told = [learnt.believed[i].probability(g - 0.5, g + 0.5) for g in grid]
        np.testing.assert_allclose(told, after[i], atol=1e-9)
        assert report.bits[i] == pytest.approx(divergence(after[i], before[i]), abs=1e-9)
        if math.isfinite(report.floor[i]):
            assert report.floor[i] == pytest.approx(divergence(alone[i], before[i]), abs=1e-9)
            assert report.excess[i] == pytest.approx(report.bits[i] - report.floor[i])
        possible = [g for g, p in zip(grid, after[i], strict=True) if p > 0]
        assert report.lower[i] == pytest.approx(possible[0] - 0.5)
        assert report.upper[i] == pytest.approx(possible[-1] + 0.5)
        assert report.exposed[i] == (len(possible) == 1)
    return report


@pytest.mark.parametrize("corrupt", [(), (1,), (0, 3)])
@pytest.mark.parametrize("values", [(0, 2, 3, 5), (4, 1, 1, 1), (2, 2, 2, 2), (5, 0, 0, 5)])
def test_all_alike(values, corrupt):
    """An outsider, a coalition of one and one of n − 2; with ties and without."""
    check_against_enumeration(values, SKEWED, corrupt)


@pytest.mark.parametrize(
    ("q", "definition"),
    [
        (0.25, "inverted_cdf_high"),
        (0.9, "inverted_cdf"),
        (0, "inverted_cdf_high"),
        (1, "inverted_cdf"),
        (0.3, "inverted_cdf"),
    ],
)
@pytest.mark.parametrize("arity", [1, 3])
def test_quantiles_and_arities(q, definition, arity):
    check_against_enumeration((3, 0, 4, 4), OTHER, q=q, definition=definition, arity=arity)


@pytest.mark.parametrize("spacing", ["value", "key"])
def test_other_ways_to_place_thresholds(spacing):
    check_against_enumeration((3, 0, 4, 1), SKEWED, (2,), spacing=spacing)


@pytest.mark.parametrize("corrupt", [(), (2,)])
@pytest.mark.parametrize("values", [(0, 2, 3, 5), (4, 1, 1, 1)])
def test_unequal_priors(values, corrupt):
    check_against_enumeration(values, [SKEWED, OTHER, SKEWED, Uniform(-0.5, 5.5)], corrupt)


@pytest.mark.parametrize("corrupt", [(), (1,), (0, 3)])
@pytest.mark.parametrize("weights", [(1, 2, 4, 8), (1, 1, 2, 3), (2, 2, 2, 2), (3, 0, 1, 1)])
def test_weights(weights, corrupt):
    report = check_against_enumeration((3, 0, 4, 3), OTHER, corrupt, weights=weights)
    honest = {w for i, w in enumerate(weights) if w and i not in corrupt}
    assert any("weights differ" in note for note in report.notes) == (len(honest) > 1)


@pytest.mark.parametrize("corrupt", [(), (1,), (0, 2)])
@pytest.mark.parametrize("values", [(0, 2, 3, 5), (4, 1, 1, 1), (0, 1, 4, 5), (0, 5, 5, 5), (2, 2, 3, 3)])
def test_midpoint(values, corrupt):
    """Two values are known by their sum; whoever holds one of them knows the other."""
    report = check_against_enumeration(values, SKEWED, corrupt, definition="averaged_inverted_cdf", arity=1)
    assert np.isfinite(report.floor).any() != bool(corrupt)


@pytest.mark.parametrize("width", [5, 512, 700, 1025, 5000])
def test_halves_of_a_midpoint_are_believed_in_evenly(width):
    """By an even prior, every number that the sum leaves is as likely as any other, however many there are.

    Two values, one in each of two cells of so many keys; one lies below the answer, the other above it.
    """
    keys = make_keys(1)
    a, b, c = (keys.key(float(end)) for end in (-width, 0, width))
    cells = Cell(a, b, 1), Cell(b, c, 1)
    one = np.ones(2, np.int64)
    seen = Published(
        keys,
        Cell(a, c, 2),
        cells,
        np.arange(2),
        one,
        False,
        (0, 1),
        (1, 2),
        0.5,
        Pair((0, 1), b + b + 1),
        None,
        1,
        None,
    )
    found = learn(seen, [Uniform(-width, 2 * width)] * 2, np.ones(2))
    for i in (0, 1):
        pieces = found.believed[i].pieces
        density = [piece.probability / (piece.upper - piece.lower) for piece in pieces]
        assert density == pytest.approx([density[0]] * len(pieces))
        assert sum(piece.probability for piece in pieces) == pytest.approx(1)
        assert found.sides[i] == pytest.approx((0.5, 0.0, 0.5))


def test_three_values_by_hand():
    """Three values of four equally likely ones: 0, 1, 2 or 3; the middle one is 1."""
    trace = search_trace((0, 1, 3), resolution=1, bounds=(0, 3), arity=1)
    report = audit(trace, Adversary(), Uniform(-0.5, 3.5), 1.0)
    # Of 64 cases 22 have the middle value 1. A given one is 1 unless the others are both 0 or both above 1: 16 − 1 − 4;
    # it is 0 if of the others the lesser is 1: 5; and 2 or 3 if the greater is 1: 3 each.
    np.testing.assert_allclose(report.floor, divergence(np.array([5, 11, 3, 3]) / 22, np.full(4, 0.25)))
    # the totals tell one value below, one at, one above: q = (1/3, 1/3, 1/6, 1/6)
    np.testing.assert_allclose(report.bits, divergence(np.array([2, 2, 1, 1]) / 6, np.full(4, 0.25)))
    np.testing.assert_allclose(report.excess, report.bits - report.floor)


def test_floats_and_the_resolution():
    """The answer is one float; bits count the cell of the resolution in which it lies, and never more than that."""
    values = np.array([-1.1, 0.3, 0.7])
    report = audit(search_trace(values, bounds=(-10, 10)), Adversary(), Normal(), 0.01)
    inside = Within(Normal(), -10, 10)
    assert report.mean_floor > 0
    assert (report.bits > report.floor).all()
    assert (report.bits < -inside.log_mass(0.295, 0.305) / math.log(2)).all()
    alone = audit(search_trace(values, bounds=(-10, 10)), Adversary((0, 2)), Normal(), 0.01)
    assert alone.exposed.tolist() == [False, True, False]
    assert alone.lower[1] == alone.upper[1] == 0.3
    assert alone.bits[1] == pytest.approx(-inside.log_mass(0.295, 0.305) / math.log(2))
    coarse = audit(search_trace(values, bounds=(-10, 10)), Adversary(), Normal(), 100.0)
    np.testing.assert_allclose(coarse.bits, 0, atol=1e-9)


def test_no_bounds():
    """Floats between the largest ones: open ends, and the same figures as with bounds far out."""
    values = np.random.default_rng(3).normal(size=9)
    open_ended = audit(search_trace(values, spacing="key"), Adversary(), Normal(), 0.01)
    assert (open_ended.lower == -np.inf).all()
    assert (open_ended.upper == np.inf).all()
    assert 0 < open_ended.mean_floor < open_ended.mean_bits


def test_lists():
    """Each participant's m values at the bits of one, which is marked as a lower bound."""
    values, owners = [0.0, 1.0, 1.0, 4.0, 5.0], [0, 0, 1, 2, 2]
    trace = search_trace(values, owners=owners, resolution=1, bounds=(0, 5))
    report = audit(trace, Adversary(), SKEWED, 1.0)
    single = audit(search_trace(values, resolution=1, bounds=(0, 5)), Adversary(), SKEWED, 1.0)
    np.testing.assert_allclose(report.bits, single.bits[0] * np.array([2, 1, 2]))
    np.testing.assert_allclose(report.floor, single.floor[0] * np.array([2, 1, 2]))
    assert report.kind == "lower bound"
    assert any("lists" in note for note in report.notes)
    coalition = audit(trace, Adversary((0,), eavesdrops=False), SKEWED, 1.0)
    own = enumerate_posterior(values, (0, 1), [masses(SKEWED, SIX)] * 5, SIX)
    expected = divergence(own[2], masses(SKEWED, SIX))
    np.testing.assert_allclose(coalition.bits[1:], expected * np.array([1, 2]))


def test_too_many_ways_are_an_upper_bound():
    """Forty different priors: what each would tell if its cell were known."""
    rng = np.random.default_rng(2)
    priors = [Normal(float(mean), 1.0) for mean in rng.normal(size=40)]
    values = [rng.normal(prior.mean, prior.std) for prior in priors]
    trace = search_trace(values, resolution=0.01, bounds=(-9, 9))
    report = audit(trace, Adversary(), priors, 0.01)
    assert report.kind == "upper bound"
    assert any("too many ways" in note for note in report.notes)
    assert (report.bits > 0).all()
    with pytest.raises(midst.InputError, match="too many ways"):
        audit(replace(trace, places=None), Adversary(), priors, 0.01)


def test_unequal_priors_are_calibrated():
    """Over random runs the log score of the believed cell is the entropy that the belief claims."""
    priors = [Normal(0, 0.5), Normal(0.5, 1), Normal(-0.5, 1), Normal(0, 2), Normal(1, 1)]
    gaps = []
    for seed in range(150):
        rng = np.random.default_rng([seed, 5])
        values = [rng.normal(prior.mean, prior.std) for prior in priors]
        seen = read_published(search_trace(values, bounds=(-20, 20), spacing="value"), Adversary())
        learnt = learn(seen, priors, np.full(5, 0.01))
        for i, posterior in learnt.believed.items():
            chances = np.array([piece.probability for piece in posterior.pieces])
            found = [
                piece.probability
                for piece in posterior.pieces
                if piece.lower < values[i] < piece.upper or piece.lower == values[i] == piece.upper
            ]
            assert len(found) == 1
            gaps.append(np.sum(chances * np.log2(chances)) - math.log2(found[0]))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / math.sqrt(len(gaps))


@pytest.mark.parametrize("weights", [None, (1, 2, 4)])
def test_mean_bits_are_the_mutual_information(weights):
    """I(S_0; transcript) by counting all cases of a tiny problem; likewise of the answer alone."""
    grid = SIX[:5]
    prior = masses(OTHER, grid)
    joint, alone = defaultdict(float), defaultdict(float)
    bits = floor = 0.0
    known = {}
    for places in product(range(5), repeat=3):
        values = [grid[k] for k in places]
        trace = search_trace(values, resolution=1, bounds=(0, 4), weights=weights)
        chance = math.prod(prior[k] for k in places)
        joint[transcript(trace), places[0]] += chance
        alone[trace.answer, places[0]] += chance
        if transcript(trace) not in known:
            known[transcript(trace)] = audit(trace, Adversary(), OTHER, 1.0)
        bits += chance * known[transcript(trace)].bits[0]
        floor += chance * known[transcript(trace)].floor[0]

    def information(table):
        seen = defaultdict(float)
        for (told, _), chance in table.items():
            seen[told] += chance
        return sum(p * math.log2(p / seen[told] / prior[k]) for (told, k), p in table.items())

    assert bits == pytest.approx(information(joint), abs=1e-9)
    assert floor == pytest.approx(information(alone), abs=1e-9)
    assert bits > floor


def spikes(grid, heights, width=0.002):
    """A prior that is all but discrete."""
    points = [(k + d, h * (d == 0)) for k, h in zip(grid, heights, strict=True) for d in (-width, 0.0, width)]
    return Density(*map(list, zip(*points, strict=True)))


def iteration(iterations):
    return midst.Consensus(c=1.0, mu=0.0, sigma=1.0, stop=midst.After(iterations))


def both(values, seed, iterations):
    """An iteration, and a search that begins where it ended."""
    problem = midst.Problem(graphs.ring(len(values)), values, objective=midst.Quantile(0.5))
    trace = midst.solve(problem, iteration(iterations), rng=seed, record="all").trace
    ends = trace.x[-1].min(), trace.x[-1].max()
    found = search_trace(values, resolution=1, bounds=(0, 4), opening=ends, keep_values=True)
    return replace(trace, probes=found.probes, answer=found.answer, places=found.places, objective=midst.Quantile(0.5))


@pytest.mark.parametrize("corrupt", [(), (1,)])
@pytest.mark.parametrize("seed", [0, 1, 2, 30])  # of 30 an exposed value lies on a threshold
def test_iteration_and_search_together(seed, corrupt):
    """What both tell an eavesdropper on clear z(0), against all values that would have shown the same."""
    rng = np.random.default_rng(seed)
    grid, heights = SIX[:5], np.array([1.0, 3.0, 2.0, 4.0, 1.0])
    values = rng.choice(5, size=4, p=heights / heights.sum()).astype(float)
    trace = both(values, seed, 2)
    report = audit(trace, Adversary(corrupt), spikes(grid, heights), 1.0)
    honest = [i for i in range(4) if i not in corrupt]
    counts = np.zeros((4, 5))
    for places in product(range(5), repeat=len(honest)):
        tried = values.copy()
        tried[honest] = places
        other = both(tried, seed, 2)
        if np.allclose(other.x, trace.x, atol=1e-12) and transcript(other) == transcript(trace):
            counts[honest, places] += math.prod(heights[k] for k in places)
    before = heights / heights.sum()
    assert report.kind == "exact"
    for i in honest:
        assert report.bits[i] == pytest.approx(divergence(counts[i] / counts[i].sum(), before), abs=1e-6)
    assert np.isfinite(report.floor[honest]).all()


def test_iteration_and_search_for_others_is_an_upper_bound():
    trace = both(np.array([0.0, 3.0, 3.0, 1.0]), 3, 5)
    prior = spikes(SIX[:5], [1.0, 3.0, 2.0, 4.0, 1.0])
    for stronger, adversary in (
        (Adversary(), Adversary(init="sealed")),
        (Adversary((0,)), Adversary((0,), eavesdrops=False)),
    ):
        report = audit(trace, adversary, prior, 1.0)
        assert report.kind == "upper bound"
        assert "z(0) clear" in report.notes[0]
        np.testing.assert_array_equal(report.bits, audit(trace, stronger, prior, 1.0).bits)
    with pytest.raises(midst.InputError, match="in the clear"):
        measure(view(trace, Adversary(init="sealed")), prior, 1.0)


def test_a_run_without_an_answer_has_no_floor():
    problem = midst.Problem(graphs.ring(5), np.arange(5.0))
    report = audit(midst.solve(problem, iteration(30), rng=1, record="audit").trace)
    assert np.isnan(report.floor).all()
    assert np.isnan(report.excess).all()
    assert any("no floor" in note for note in report.notes)


def test_damaged_traces_are_refused():
    trace = search_trace((0, 2, 3, 5), resolution=1, bounds=(0, 5))
    with pytest.raises(midst.InputError, match="do not agree"):
        audit(replace(trace, places=trace.places[::-1].copy()[[0, 0, 1, 2]]))
    with pytest.raises(midst.InputError, match="simulate"):
        audit(replace(trace, places=None), Adversary((1,)))
    first, *others = trace.probes
    more = replace(first, totals=(first.totals[0] + 1, *first.totals[1:]))
    with pytest.raises(midst.InputError, match="do not add up"):
        audit(replace(trace, places=None, probes=(more, *others)))
    with pytest.raises(midst.InputError, match="no mass"):
        audit(trace, Adversary(), Uniform(0, 2.4), 1.0)
    assert audit(replace(trace, places=None), Adversary(), SKEWED, 1.0).honest == 4


def test_what_solve_records():
    """Problems as solve searches them: places agree and bounds hold, of midpoints, vectors, weights and lists too."""
    for seed in range(40):
        rng = np.random.default_rng([seed, 9])
        n = int(rng.integers(3, 9))
        values = np.round(rng.normal(size=n), int(rng.choice([0, 1, 9])))
        more = {"resolution": 0.5} if seed % 2 else {}
        definition = "averaged_inverted_cdf" if seed % 4 == 1 else "inverted_cdf"
        if seed % 3 == 0:
            more["bounds"] = (-9, 9)
        problem = midst.Problem(graphs.complete(n), values, objective=midst.Quantile(0.5, definition), **more)
        for adversary in (Adversary(), Adversary((0,), eavesdrops=False)):
            trace = midst.solve(problem, "search", keep_values=True).trace
            report = audit(trace, adversary)
            honest = np.isfinite(report.bits)
            assert honest.sum() == n - len(adversary.corrupt)
            assert (report.lower[honest] <= values[honest]).all()
            assert (values[honest] <= report.upper[honest]).all()
            assert (report.bits[honest] >= 0).all()
            found = reconstruct(view(trace, adversary))
            assert np.isfinite(found.estimate[honest]).all()
            assert (found.how[honest] == "totals").all()
    low = midst.Quantile(0.5)
    vectors = midst.Problem(graphs.complete(4), np.random.default_rng(0).normal(size=(4, 2)), objective=low)
    trace = midst.solve(vectors, "search").trace
    assert audit(trace, coordinate=1).mean_bits > 0
    with pytest.raises(midst.InputError, match="coordinate"):
        audit(trace)
    weighed = midst.Problem(graphs.complete(4), [1.0, 0.5, 0.0, 2.0], weights=[1, 2, 4, 8], objective=low)
    assert audit(midst.solve(weighed, "search").trace).kind == "exact"
    lists = midst.Problem(graphs.complete(3), [[0.1, 0.5], [0.3], [-1.0, 2.0, 0.4]], pooled=True, objective=low)
    report = audit(midst.solve(lists, "search").trace)
    np.testing.assert_allclose(report.bits / [2, 1, 3], report.bits[1])


def test_attack_on_a_search():
    """The median of the mixture of cells; the value itself for a coalition that leaves nobody else."""
    values = np.array([-1.0, 0.25, 2.0])
    trace = search_trace(values, bounds=(-4, 4))
    outside = reconstruct(view(trace, Adversary()))
    assert not outside.known.any()
    assert (np.abs(outside.estimate - 0.25) < 0.5).all()
    coalition = reconstruct(view(trace, Adversary((0, 2), eavesdrops=False)))
    assert coalition.known.tolist() == [False, True, False]
    assert coalition.estimate[1] == 0.25


@pytest.mark.parametrize("adversary", [Adversary(), Adversary((1, 2), eavesdrops=False)])
def test_report_and_picture(adversary):
    trace = search_trace((0, 2, 3, 5), resolution=1, bounds=(0, 5))
    report = audit(trace, adversary, SKEWED, 1.0)
    assert "z(0)" not in repr(report)
    assert "floor" in repr(report)
    told = report.to_dict()
    honest = [node for node in told["nodes"] if not node["corrupt"]]
    assert all(node["excess"] == pytest.approx(node["bits"] - node["floor"]) for node in honest)
    assert told["totals"]["excess_per_node"] == pytest.approx(report.mean_excess)
    assert all(node["floor"] is None for node in told["nodes"] if node["corrupt"])
    pytest.importorskip("matplotlib")
    from midst.plots.leakage import draw_leakage

    figure = draw_leakage(report)
    figure.draw_without_rendering()
    assert figure.axes[2].get_xlabel() == "steps of the search"
    assert any("floor" in text.get_text() for text in figure.axes[1].get_legend().get_texts())


def test_commands(tmp_path):
    path = tmp_path / "search.npz"
    search_trace((0, 2, 3, 5), resolution=1, bounds=(0, 5), keep_values=True).save(path)
    for who in ("eavesdropper", "passive:1", "both:0,3"):
        shown = CliRunner().invoke(audit_command, [str(path), "--adversary", who, "--prior", "uniform:-0.5,5.5"])
        assert shown.exit_code == 0, shown.exception
        assert "the excess" in shown.output
        assert "z(0)" not in shown.output
        attacked = CliRunner().invoke(attack_command, [str(path), "--adversary", who, "--prior", "uniform:-0.5,5.5"])
        assert attacked.exit_code == 0, attacked.exception
        assert "totals" in attacked.output


def test_an_answer_that_the_iteration_has_ruled_out_for_a_node_is_not_its_own():
    """Within a resolution of the answer, and yet known to lie below it: the audit of both agrees with itself."""
    salaries = np.round(np.random.default_rng(2026).lognormal(np.log(62_000), 0.22, 12), -2)
    problem = midst.Problem(graphs.regular(12, 4, rng=3), salaries, bounds=(21_000, 101_000))
    for seed in range(20):
        trace = midst.solve(problem, midst.Consensus(3 / problem.scale), rng=seed, record="audit").trace
        report = midst.audit(trace, prior=midst.priors.Normal(61_000, 15_000), resolution=100)
        assert (report.lower <= salaries).all()
        assert (report.upper >= salaries).all()

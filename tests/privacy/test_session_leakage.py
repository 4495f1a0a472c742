"""What a session of statistics tells about one value, against all data sets that there are."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from math import log2

import numpy as np
import pytest

import midst
from midst.engines.searching import search_values
from midst.methods import Search
from midst.privacy.priors import Normal, Uniform
from midst.privacy.statistics import measure_session
from midst.protocol.keys import first_bracket, make_keys
from midst.statistics import Plan, parse_statistics, read_statistics

GRID = make_keys(1)


def session(names, values, top, arity=3):
    plan = Plan(parse_statistics(names), len(values))
    rules = plan.rules(Search(arity), GRID, [first_bracket(GRID, (0, top))])
    search, steps = search_values(rules, GRID.keys(np.array(values, np.float64)), np.ones(len(values), np.int64))
    return plan, search, tuple(step.totals for step in steps)


def everything(names, n, top, arity=3):
    """Of every view that there is, by all data sets of n values from 0 to top: how often, bits, and the function's."""
    first, often, example = defaultdict(Counter), Counter(), {}
    for values in product(range(top + 1), repeat=n):
        _, _, seen = session(names, values, top, arity)
        first[seen][values[0]] += 1
        often[seen] += 1
        example[seen] = values
    cells = top + 1
    for seen, count in often.items():
        chances = [each / count for each in first[seen].values()]
        bits = sum(chance * log2(chance * cells) for chance in chances)
        yield count / cells**n, bits, example[seen]


@pytest.mark.parametrize(
    ("names", "arity"), [(["median"], 3), (["quartiles", "max"], 1), (["histogram:0,2,4", "min"], 2)]
)
def test_counts_and_ranks_are_exact(names, arity):
    prior = Uniform(-0.5, 4.5)
    for _, bits, values in everything(names, 4, 4, arity):
        plan, search, _ = session(names, values, 4, arity)
        assert measure_session(plan, search, 0, prior).bits == pytest.approx(bits, abs=1e-9)


@pytest.mark.parametrize(
    ("names", "least"),
    [(["mean"], 0.8), (["median", "mean"], 0.8), (["median", "trimmed:0.25"], 0.8), (["mean", "variance"], 0.45)],
)
def test_sums_are_nearly_right_on_average_though_few_values_tell_more(names, least):
    """The rest of a sum is not normal with four values on five steps; how far off that is, and in which direction."""
    prior, whole, found = Uniform(-0.5, 4.5), 0.0, 0.0
    for chance, bits, values in everything(names, 4, 4):
        plan, search, _ = session(names, values, 4)
        told = measure_session(plan, search, 0, prior)
        assert told.kind == "approximate"
        assert any("so few values" in note for note in told.notes)
        whole, found = whole + chance * bits, found + chance * told.bits
    assert least * whole <= found <= 1.2 * whole


def test_more_that_is_made_public_tells_more_and_the_floor_is_below():
    values = np.random.default_rng(1).normal(50, 15, 101).clip(0, 100)
    keys = make_keys("1e-6")
    bits = []
    for names in (["median"], ["median", "quartiles"], ["median", "quartiles", "mean"]):
        plan = Plan(parse_statistics(names), 101)
        rules = plan.rules(Search(), keys, [first_bracket(keys, (0, 100))])
        search, _ = search_values(rules, keys.keys(values), np.ones(101, np.int64))
        assert read_statistics(plan, search)
        told = measure_session(plan, search, 0, Normal(50, 15))
        assert 0 <= told.floor <= told.bits
        assert told.excess == told.bits - told.floor
        bits.append(told.bits)
    assert bits == sorted(bits)


@pytest.mark.parametrize("seed", range(3))
def test_of_a_median_alone_it_is_what_the_audit_says(seed):
    values = np.random.default_rng(seed).normal(50, 15, 15).clip(0, 100)
    public = {"bounds": (0, 100), "resolution": "1e-3"}
    prior = Normal(50, 15)
    run = midst.median(values, graph="ring", method="search", **public)
    audited = midst.audit(run.trace, midst.Adversary(), prior, 1e-3)
    told = midst.describe(values, "ring", ["median"], **public).leakage(prior)["value"]
    assert told.bits == pytest.approx(audited.mean_bits, rel=1e-6)
    assert told.floor == pytest.approx(audited.mean_floor, rel=1e-2)


def test_a_prior_is_needed_where_there_are_no_bounds():
    with pytest.raises(midst.InputError, match="give a prior, or public bounds"):
        midst.describe([1.0, 2.0, 3.0], statistics=["median"]).leakage()


def test_what_is_left_out_is_said():
    plan, search, _ = session(["mad"], [0, 1, 4, 5, 2], 5)
    told = measure_session(plan, search, 0, Uniform(-0.5, 5.5))
    assert told.kind == "lower bound"
    assert any("distances" in note for note in told.notes)
    plan, search, _ = session(["median", "max"], [2, 2, 2, 5, 5], 5)
    assert measure_session(plan, search, 0, Uniform(-0.5, 5.5)).floor is None

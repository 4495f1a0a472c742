"""Statistics against NumPy, SciPy and exact arithmetic, over random data; and what their names may be."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from math import fsum, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from midst import InputError
from midst.engines.searching import search_values
from midst.methods import Search
from midst.protocol.keys import Grid, first_bracket, make_keys
from midst.protocol.search import ClippedSum, KeySum
from midst.statistics import Plan, parse_statistics, read_statistics, root, split_names

ALL = (
    "median,quartiles,iqr,p95,p0.5,mean,sum,count,variance,std,mad,trimmed:0.1,trimmed:0,winsorised:0.2,trimmed:0.2,"
    "top:2,bottom:2,min,max,histogram:-3,0,0.5,7,histogram:1,2,3"
)
BOUNDS = (-100.0, 100.0)


def find(names, values, resolution="0.25", grid=None, bounds=BOUNDS, **how):
    """The statistics of values that are all at hand, a dict a column, and the steps of the search."""
    table = np.asarray(values, np.float64).reshape(len(values), -1)
    keys = make_keys(resolution)
    plan = Plan(parse_statistics(names), *table.shape)
    brackets = [first_bracket(keys, bounds)] * table.shape[1]
    ends = [] if grid is None else [(grid.key(bounds[0]), grid.key(bounds[1]))] * table.shape[1]
    rules = plan.rules(Search(**how), keys, brackets, grid, ends)
    search, steps = search_values(rules, keys.keys(table), np.ones(len(table), np.int64))
    return read_statistics(plan, search), steps


def quantile(column, share):
    return np.quantile(column, share, method="inverted_cdf")


@st.composite
def tables(draw):
    """Multiples of a quarter, with ties and without."""
    shape = draw(st.integers(2, 40)), draw(st.integers(1, 3))
    spread = draw(st.sampled_from((0, 1, 3, 400)))
    drawn = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(-spread, spread + 1, shape)
    return drawn / 4


@given(tables(), st.integers(1, 7), st.sampled_from(("rank", "value", "key")))
@settings(max_examples=60, deadline=None)
def test_all_are_what_numpy_and_scipy_say(table, arity, spacing):
    found, _ = find(split_names(ALL), table, arity=arity, spacing=spacing)
    for column, got in zip(table.T, found, strict=True):
        n = len(column)
        exact = [Fraction(value) for value in column.tolist()]
        middle, mean = quantile(column, 0.5), sum(exact) / n
        assert got["median"] == middle
        assert got["quartiles"].tolist() == [quantile(column, share) for share in (0.25, 0.5, 0.75)]
        assert got["iqr"] == quantile(column, 0.75) - quantile(column, 0.25)
        assert (got["p95"], got["p0.5"]) == (quantile(column, 0.95), quantile(column, 0.005))
        assert (got["min"], got["max"], got["count"]) == (column.min(), column.max(), n)
        assert got["top:2"].tolist() == np.sort(column)[::-1][:2].tolist()
        assert got["bottom:2"].tolist() == np.sort(column)[:2].tolist()
        assert got["sum"] == fsum(column)
        assert got["mean"] == got["trimmed:0"] == float(mean)
        variance = sum((value - mean) ** 2 for value in exact) / (n - 1)
        assert got["variance"] == float(variance)
        assert got["std"] == pytest.approx(np.std(column, ddof=1), rel=1e-12, abs=1e-12)
        assert got["mad"] == quantile(np.abs(column - middle), 0.5)
        assert got["trimmed:0.1"] == pytest.approx(stats.trim_mean(column, 0.1), rel=1e-12, abs=1e-12)
        assert got["trimmed:0.2"] == pytest.approx(stats.trim_mean(column, 0.2), rel=1e-12, abs=1e-12)
        drawn_in = stats.mstats.winsorize(column, (0.2, 0.2))
        assert got["winsorised:0.2"] == pytest.approx(float(drawn_in.mean()), rel=1e-12, abs=1e-12)
        for edges in ([-3, 0, 0.5, 7], [1, 2, 3]):
            name = "histogram:" + ",".join(f"{edge:g}" for edge in edges)
            assert got[name].tolist() == np.histogram(column, edges)[0].tolist()


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30))
@settings(max_examples=50, deadline=None)
def test_without_a_resolution_ranks_are_values_to_the_last_bit(values):
    column = np.array(values) + 0.0
    names = ["median", "p95", "min", "max", "mad", "mean", "trimmed:0.2"]
    [got], _ = find(names, values, resolution=None, grid=Grid(Fraction(1, 2**50)))
    assert got["median"] == quantile(column, 0.5)
    assert (got["p95"], got["min"], got["max"]) == (quantile(column, 0.95), column.min(), column.max())
    assert got["mad"] == quantile(np.abs(column - got["median"]), 0.5)
    assert got["mean"] == pytest.approx(fsum(values) / len(values), rel=1e-13, abs=1e-13)
    assert got["trimmed:0.2"] == pytest.approx(stats.trim_mean(column, 0.2), rel=1e-12, abs=1e-12)


STEPS = ("1", "0.1", "0.25", "0.7", "3", "1e-9", "1e-17", "1e12")


@st.composite
def histograms(draw):
    """A resolution or none, values about its multiples and halfway between them, and edges there and elsewhere."""
    resolution = draw(st.sampled_from((None, *STEPS)))
    step = Fraction(resolution or "0.1")
    halves = st.integers(-9, 9).map(lambda k: k * step / 2)
    decimals = st.decimals(-6, 6, places=3).map(lambda share: Fraction(share) * step)
    values = draw(st.lists(st.one_of(halves, decimals).map(float), min_size=2, max_size=20))
    off = st.sampled_from(values).map(Fraction)
    beyond = st.integers(-400, 400).map(lambda k: k * step)
    edges = sorted(draw(st.sets(st.one_of(halves, decimals, off, beyond), min_size=2, max_size=7)))
    words = [str(edge) if draw(st.booleans()) else _decimal(edge) for edge in edges]
    return resolution, values, words


def _decimal(number):
    """A number as people write it, with all its digits."""
    with localcontext(prec=900):
        return str(Decimal(number.numerator) / Decimal(number.denominator))


@given(histograms(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_histogram_is_that_of_numpy_of_the_rounded_values(made, bounded):
    resolution, values, words = made
    edges = [float(Fraction(word)) for word in words]
    assume(all(low < high for low, high in pairwise(edges)))
    keys, column = make_keys(resolution), np.array(values)
    name = "histogram:" + ",".join(words)
    bounds = (column.min(), max(column.max(), np.nextafter(column.min(), np.inf))) if bounded else None
    rounded = keys.values(keys.keys(column))
    for names in ([name], [name, "median"]):
        [found], _ = find(names, values, resolution, bounds=bounds)
        assert found[name].tolist() == np.histogram(rounded, edges)[0].tolist()


@pytest.mark.parametrize(
    ("values", "resolution", "edges", "counts"),
    [
        ([0, 1, 1, 2, 2, 2, 3, 4], "1", "-0.5,0.5,1.5,2.5,3.5,4.5", [1, 2, 3, 1, 1]),
        ([0, 1, 1, 2, 2, 2, 3, 4], "1", "0.5,1.5,3.5", [2, 4]),
        ([0, 1, 1, 2, 2, 2, 3, 4], "1", "1,2,4", [2, 5]),
        ([0.1, 0.2, 0.3, 0.4], "0.1", "0.1,0.3,0.4", [2, 2]),
        ([0.1, 0.2, 0.3, 0.4], None, "0.1,0.3,0.4", [2, 2]),
        ([0.25, 0.35, 0.3], "0.1", "0.2,0.3,0.4", [1, 2]),
        ([0.3, 0.6], "1e-17", "0,0.3,0.6", [0, 2]),  # the float 0.3 lies a step below three tenths
        ([-1.5e18, 1.5e18, 1.9e18], "1", "-2e18,1.5e18,2e18", [1, 2]),  # more steps from zero than without bounds
    ],
)
def test_edges_on_the_grid_and_off_it(values, resolution, edges, counts):
    [found], _ = find([f"histogram:{edges}"], values, resolution, bounds=(-2e18, 2e18) if max(values) > 9 else (-2, 4))
    assert found[f"histogram:{edges}"].tolist() == counts


def test_a_sum_does_not_depend_on_the_order():
    values = np.random.default_rng(1).uniform(-100, 100, 1000)
    found = {find(["sum", "variance"], part, "1e-9")[0][0]["sum"] for part in (values, values[::-1], np.sort(values))}
    assert len(found) == 1
    steps = [round(Fraction(value) / Fraction(1, 10**9)) for value in values.tolist()]
    assert found == {float(Fraction(sum(steps), 10**9))}


def test_ranks_share_probes_and_sums_are_asked_together():
    values = np.random.default_rng(2).normal(0, 10, (301, 1))
    alone = {name: find([name], values, "0.01")[1] for name in ("median", "p95", "mean", "variance")}
    _, together = find(list(alone), values, "0.01")
    assert len(together) <= 2 + max(map(len, alone.values()))
    assert len(alone["mean"]) == len(alone["variance"]) == 1
    first, *later = [[part for part in step.question if isinstance(part, ClippedSum)] for step in together]
    assert sorted(part.power for part in first) == [1, 2]
    assert not any(later)


def test_both_trimmed_and_winsorised_take_one_sum():
    values = np.random.default_rng(3).normal(0, 10, 50)
    _, steps = find(["trimmed:0.1", "winsorised:0.1"], values, "0.01")
    assert sum(isinstance(part, ClippedSum) for step in steps for part in step.question) == 1


def test_no_sum_of_keys_is_asked_of_more_than_one_value():
    """Whatever else is asked: the sums over all values are the only ones that hold several."""
    values = np.random.default_rng(4).normal(0, 10, 40)
    [found], steps = find(split_names(ALL), values, "0.01")
    grid = make_keys("0.01")
    own = grid.keys(values)
    columns = own, grid.distances(own, grid.key(found["median"]))
    sums = [part for step in steps for part in step.question if isinstance(part, KeySum)]
    assert {part.coordinate for part in sums} == {0, 1}
    for part in sums:
        a, b = part.edges
        assert np.sum((columns[part.coordinate] > a) & (columns[part.coordinate] <= b)) == 1


@given(st.fractions(0, 10**9) | st.fractions(0, Fraction(1, 10**9)))
def test_a_root_is_rounded_once(number):
    found = root(number)
    assert abs(found - sqrt(number)) <= np.spacing(max(found, 5e-324))
    low, high = (Fraction(float(np.nextafter(found, way))) for way in (0.0, np.inf))
    exact = Fraction(found)
    assert ((low + exact) / 2) ** 2 <= number <= ((exact + high) / 2) ** 2


@pytest.mark.parametrize("low", [1.0, 1.5, 1234.0, 2.0**-40])
def test_a_root_a_little_above_halfway_is_rounded_up(low):
    """So little above that sixty-four bits do not show it: a tie would go to the even one, below."""
    high = float(np.nextafter(low, np.inf))
    halfway = (Fraction(low) + Fraction(high)) / 2
    assert root(halfway**2 + Fraction(1, 2**400)) == high
    assert root(halfway**2) == low


# Names


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mode", "there is no statistic 'mode'; try one of median"),
        ("p0", "above 0 and below 100"),
        ("p100", "above 0 and below 100"),
        ("top", "needs a number after the colon, such as top:3"),
        ("top:0", "a whole number from 1"),
        ("top:2.5", "a whole number from 1"),
        ("top:2,3", "takes one number"),
        ("trimmed:0.5", "or nothing is left"),
        ("trimmed:-0.1", "or nothing is left"),
        ("trimmed:x", "needs a number after the colon, such as trimmed:0.1"),
        ("trimmed:1/0", "needs a number after the colon"),
        ("histogram:3", "two or more numbers"),
        ("histogram:0,5,5", "each above the last"),
        ("histogram:0,5,4", "each above the last"),
        ("histogram:0.1,0.1000000000000000000001", "each above the last"),
        ("histogram:0,1e400", "each above the last"),
    ],
)
def test_what_is_no_statistic_is_refused(name, words):
    with pytest.raises(InputError, match=words):
        parse_statistics([name])


def test_nothing_and_the_same_twice_are_refused():
    with pytest.raises(InputError, match="no statistics"):
        parse_statistics([])
    with pytest.raises(InputError, match="mean is asked for twice"):
        parse_statistics(["mean", "median", "mean"])


def test_a_line_of_names_keeps_the_numbers_of_a_histogram():
    assert split_names("median, histogram:0,10, 20 ,p95") == ["median", "histogram:0,10,20", "p95"]


def test_what_there_are_too_few_values_for_is_refused():
    with pytest.raises(InputError, match="top:4 of 3 values; it takes 4"):
        Plan(parse_statistics(["top:4"]), 3)
    with pytest.raises(InputError, match="std of 1 values; it takes 2"):
        Plan(parse_statistics(["std"]), 1)


def test_sums_need_a_grid():
    with pytest.raises(InputError, match="mean: public bounds and a public resolution are needed"):
        find(["median", "mean"], [1.0, 2.0, 3.0], resolution=None)

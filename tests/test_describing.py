"""Statistics of what the nodes of a graph hold."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import midst
from midst import Consensus, InputError, graphs
from midst.describing import USUAL
from midst.disclosure import Disclosure

NAMES = ["median", "p95", "mean", "trimmed:0.1", "top:3"]


def sites(seed=0, nodes=5, most=30):
    rng = np.random.default_rng(seed)
    return [rng.normal(10, 3, int(rng.integers(3, most))) for _ in range(nodes)]


def test_a_description_is_that_of_the_pooled_data():
    data = sites()
    pooled = np.concatenate(data)
    found = midst.describe(data, graph="ring", statistics=NAMES)
    assert found["median"] == np.quantile(pooled, 0.5, method="inverted_cdf")
    assert found["p95"] == np.quantile(pooled, 0.95, method="inverted_cdf")
    assert found["mean"] == pytest.approx(pooled.mean(), rel=1e-15)
    assert found["trimmed:0.1"] == pytest.approx(stats.trim_mean(pooled, 0.1), rel=1e-14)
    assert found["top:3"].tolist() == np.sort(pooled)[::-1][:3].tolist()
    assert found.exposed == ()
    assert found.rounds == (found.probes + 2) * 2
    assert [row["statistic"] for row in found.table()] == NAMES
    assert json.loads(json.dumps(found.to_dict()))["statistics"]["median"] == found["median"]


@pytest.mark.parametrize("seed", range(4))
def test_participants_behind_masks_find_the_same(seed):
    data = [np.round(part, 1) for part in sites(seed, nodes=4, most=6)]
    names = [*USUAL, "mad", "trimmed:0.2", "winsorised:0.1", "variance", "histogram:0,10,20", "bottom:2"]
    public = {"bounds": (-100, 100), "resolution": "0.1"} if seed % 2 else {}
    one, other = (midst.describe(data, "star", names, engine=engine, **public) for engine in ("arrays", "reference"))
    assert one.to_dict() == other.to_dict()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_histogram_is_that_of_numpy_of_the_rounded_values(data):
    """On the grid, halfway and elsewhere, beyond the bounds, and where there is neither."""
    resolution = data.draw(st.sampled_from((None, 1, "0.1", 0.1, "0.25", Fraction(1, 3))))
    step = Fraction(str(resolution or "0.1"))
    value = st.integers(-12, 12).map(lambda k: float(k * step / 2)) | st.floats(-5, 5)
    lists = data.draw(st.lists(st.lists(value, min_size=1, max_size=4), min_size=3, max_size=5))
    edge = st.integers(-30, 30).map(lambda k: k * step / 2) | st.decimals(-9, 9, places=2).map(Fraction)
    words = [str(each) for each in sorted(data.draw(st.sets(edge, min_size=2, max_size=6)))]
    name, pooled = "histogram:" + ",".join(words), np.concatenate(lists)
    bounds = (pooled.min(), pooled.max() + 1) if data.draw(st.booleans()) else None
    engine = data.draw(st.sampled_from(("arrays", "reference")))
    found = midst.describe(lists, "complete", [name], resolution=resolution, bounds=bounds, engine=engine)
    rounded = [float(round(Fraction(each) / step) * step) for each in pooled] if resolution else pooled
    edges = [float(Fraction(word)) for word in words]
    assert found[name].tolist() == np.histogram(rounded, edges)[0].tolist()


def test_columns_have_their_own_answers():
    rng = np.random.default_rng(3)
    data = [rng.normal(size=(8, 2)) for _ in range(4)]
    pooled = np.concatenate(data)
    found = midst.describe(data, statistics=["median", "mean"], columns=["los", "cost"], bounds=([-9, -8], [9, 8]))
    assert found["cost", "median"] == np.quantile(pooled[:, 1], 0.5, method="inverted_cdf")
    with pytest.raises(KeyError, match="which of the columns los, cost"):
        found["median"]
    with pytest.raises(KeyError, match="no column"):
        found["age", "median"]
    with pytest.raises(KeyError, match="'max' was not asked for"):
        found["los", "max"]
    assert set(found.to_dict()["statistics"]) == {"los", "cost"}


def test_the_iteration_finds_ranks_and_masked_sums_the_rest():
    """As the authors' sequel has it: top-K and the trimmed mean, by quantiles first."""
    values = np.random.default_rng(5).normal(0, 1, 15)
    names = ["top:2", "trimmed:0.2", "mean"]
    found = midst.describe(values, "rgg", names, method="consensus", rng=5, bounds=(-5, 5))
    assert found["top:2"].tolist() == np.sort(values)[::-1][:2].tolist()
    assert found["trimmed:0.2"] == pytest.approx(stats.trim_mean(values, 0.2), rel=1e-14)
    assert found.method == "consensus"
    assert sorted(found.runs) == [4, 12, 14, 15]
    assert set(found.exposed) == {i for run in found.runs.values() for i in run.exposed} != set()
    leaks = [midst.audit(run.trace, midst.Adversary(), midst.priors.Normal(0, 1)) for run in found.runs.values()]
    assert all(leak.bits.max() > 0 for leak in leaks)


def test_what_only_a_search_can_do_is_refused_by_consensus():
    for values, names in (([[1, 2], [3], [4]], ["median"]), ([1.0, 2, 3], ["mad"])):
        with pytest.raises(InputError, match="try method search"):
            midst.describe(values, statistics=names, method=Consensus())


def test_tables_of_any_library_and_rows_with_gaps():
    frames = [pd.DataFrame({"id": [1, 2, 3], "los": [k, 2.0 * k, None]}) for k in (1.0, 2.0, 5.0)]
    with pytest.raises(InputError, match=r"column 'los', row 2 .*: missing; .*drop"):
        midst.describe(frames, statistics=["median"], columns=["los"])
    found = midst.describe(frames, statistics=["median", "count"], columns=["los"], missing="drop")
    assert (found["median"], found["count"], found.dropped) == (2.0, 6.0, 3)
    assert found.columns == ("los",)
    assert "3 rows with a missing one were left out" in repr(found)


def test_one_number_a_node_is_enough():
    found = midst.describe([3.0, 1.0, 2.0, 7.0, 5.0], statistics=["median", "sum"])
    assert (found["median"], found["sum"]) == (3.0, 18.0)


def test_what_a_network_would_refuse_is_said():
    names = ["min", "max", "median", "mean", "variance"]
    found = midst.describe([1.0, 2, 3, 4, 5], statistics=names)
    assert "5 equations about 4 values" in found.warnings[0]
    assert "would be refused" in repr(found)
    assert midst.describe(sites(), statistics=names).warnings == ()


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ([[1, 2], [], [3]], {}, "node 1: no rows"),
        ([[1, 2], ["x"], [3]], {}, "node 1, row 0 .*: not a number"),
        ([[1, 2], [np.nan], [3]], {}, "node 1, row 0 .*: missing; fill it in"),
        ([[1, 2], [[1, 2]], [3]], {}, "every node needs the same columns"),
        ([1, 2, 3], {"columns": ["a", "b"]}, "node 0: 1 columns without names, for 2 names"),
        ([1, 2, 3], {"statistics": ["top:4"]}, "top:4 of 3 values"),
        ([1, 2, 30], {"bounds": (0, 10)}, "value of node 2 lies outside the public bounds"),
        ([1, 2, 3], {"engine": "gpu"}, "there is no engine 'gpu'"),
        ([1, 2, 3], {"statistics": ["modus"]}, "there is no statistic 'modus'"),
    ],
)
def test_bad_input_is_refused_in_words(values, options, words):
    with pytest.raises(InputError, match=words):
        midst.describe(values, **options)


TRIO = graphs.ring(3).with_labels(["anna", "bob", "carl"])
TABLE = {"stay": [1, 2, 3, 4, 9], "hospital": ["bob", "anna", "carl", "anna", "bob"], "cost": [0.5, 1, 1, 1, 2]}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "Arrow": pa.table}


@pytest.mark.parametrize("order", [["anna", "bob", "carl"], ["carl", "anna", "bob"]])
def test_sites_by_name(order):
    data = {"anna": [2, 4], "bob": [1, 9], "carl": [3]}
    for graph in (TRIO, "ring"):
        found = midst.describe({name: data[name] for name in order}, graph, ["median", "count"])
        assert (found["median"], found["count"]) == (3.0, 5.0)
        assert found.sizes == tuple(len(data[name]) for name in found.graph.labels)
    assert found.graph.labels == tuple(order)
    series = pd.Series([30.0, 10.0, 20.0], index=["carl", "anna", "bob"])
    by_name = midst.describe(series, TRIO, ["median"], method=Consensus(), rng=1)
    assert (by_name["median"], by_name.sizes) == (20.0, (1, 1, 1))
    assert by_name.runs[2].trace.graph.labels == TRIO.labels


@pytest.mark.parametrize("kind", FRAMES)
def test_one_table_with_a_column_of_sites(kind):
    table = FRAMES[kind](TABLE)
    for graph in (TRIO, "ring"):
        found = midst.describe(table, graph, ["median"], columns=["stay", "cost"], site="hospital")
        assert (found["stay", "median"], found["cost", "median"]) == (3.0, 1.0)
        assert (found.graph.labels, found.sizes) == (TRIO.labels, (2, 2, 1))
    parts = {name: [TABLE["stay"][k] for k in range(5) if TABLE["hospital"][k] == name] for name in TRIO.labels}
    alone = midst.describe(table, TRIO, columns=["stay"], site="hospital").to_dict()["statistics"]
    assert alone == midst.describe(parts, TRIO).to_dict()["statistics"]


def test_numbers_may_name_sites_and_rows_may_be_dropped():
    table = pd.DataFrame(TABLE).assign(hospital=[3, 1, 2, 1, 3], stay=[1, 2, 3, None, 9])
    graph = graphs.ring(3).with_labels(["1", "2", "3"])
    found = midst.describe(table, graph, ["median"], columns=["stay"], site="hospital", missing="drop")
    assert (found["median"], found.sizes, found.dropped) == (2.0, (1, 1, 2), 1)


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        (pd.DataFrame(TABLE), {}, 'name the column that holds the nodes: site="…"'),
        (None, {}, "give data a node"),
        (pd.DataFrame(TABLE), {"site": "hospitl"}, "no column 'hospitl'; did you mean hospital"),
        (pd.DataFrame(TABLE), {"site": "hospital"}, "node anna: 3 columns .*say which with columns"),
        (pd.DataFrame(TABLE), {"site": "hospital", "columns": ["stya"]}, "did you mean stay"),
        ([[1], [2], [3]], {"site": "hospital"}, "site is the name of a column in one data frame"),
        (
            pd.DataFrame(TABLE).replace("carl", None),
            {"site": "hospital"},
            "'hospital', row 2 .*: missing; name the site",
        ),
        (pd.DataFrame(TABLE).replace("carl", "dora"), {"site": "hospital"}, "a table is given for 'dora'"),
        (pd.DataFrame(TABLE).replace("carl", "bob"), {"site": "hospital"}, "no table is given for carl"),
        ({"anna": [1], "bob": [48213.75], "dora": [3]}, {}, "a table is given for 'dora'"),
        ({"anna": [1], "bob": ["48213.75x"], "carl": [3]}, {}, "node bob, row 0 .*: not a number"),
        ([1, 2, 3, 4], {}, "4 tables for 3 nodes"),
        (
            pd.Series([1.0, 2.0, 48213.75], index=["x", "y", "z"]),
            {},
            "the tables' index has other names than the nodes",
        ),
    ],
)
def test_sites_that_do_not_fit_are_refused(values, options, words):
    with pytest.raises(InputError, match=words) as refused:
        midst.describe(values, TRIO, ["median"], **options)
    assert "48213" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_value_is_in_what_is_said():
    for data in ([[48213.75], ["48213.75x"]], [[48213.75], [np.inf], [48213.75]]):
        with pytest.raises(InputError) as refused:
            midst.describe(data)
        assert "48213" not in str(refused.value)


def test_small_counts_are_not_shown_to_people():
    rules = Disclosure(cell=5)
    data = [[1, 2, 3, 4, 15, 16, 17, 18, 25], [1, 1, 15, 15, 26]]
    found = midst.describe([*data, [2]], statistics=["histogram:0,10,20,30"], disclosure=rules)
    assert "not shown" not in repr(midst.describe([*data, [2]], statistics=["histogram:0,10,20,30"]))
    assert "7, not shown, not shown" in repr(found)  # the 2, and the next, which the sum would tell
    texts = {text.get_text() for part in found.plot().subfigs for axes in part.axes for text in axes.texts}
    assert "not shown" in texts
    assert found["histogram:0,10,20,30"].tolist() == [7, 6, 2]


def test_the_picture_is_drawn_from_the_answers():
    found = midst.describe(sites(), statistics=["quartiles", "mean", "min", "max", "histogram:0,10,20"])
    figure = found.plot()
    texts = {text.get_text() for part in figure.subfigs for axes in part.axes for text in axes.texts}
    counts = {f"{count:.0f}" for count in found["histogram:0,10,20"]}
    assert counts <= texts
    with pytest.raises(InputError, match="nothing to draw"):
        midst.describe(sites(), statistics=["count"]).plot()

"""Values by the names of the nodes: one problem, whatever the order; what does not fit is named, never its value."""

from __future__ import annotations

import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import midst
from midst import InputError, Problem, graphs

NAMES = ("anna", "bob", "carl", "dora", "emil")
RING = graphs.ring(5).with_labels(NAMES)
VALUES = dict(zip(NAMES, (3.25, 1.5, 4.75, 1.25, 5.125), strict=True))


@given(st.permutations(NAMES))
def test_the_order_of_a_mapping_does_not_matter(order: list[str]) -> None:
    named = {name: VALUES[name] for name in order}
    weights = {name: k + 1 for k, name in enumerate(NAMES)}
    problem = Problem(RING, named, weights={name: weights[name] for name in order})
    assert problem.values.tolist() == list(VALUES.values())
    assert problem.whole_weights.tolist() == [1, 2, 3, 4, 5]
    assert problem.with_values({name: named[name] + 1 for name in order}).values.tolist() == [
        value + 1 for value in VALUES.values()
    ]


def test_names_of_networkx() -> None:
    network = nx.Graph([("bob", "anna"), ("anna", "carl"), ("carl", "bob")])
    result = midst.median({"carl": 3.0, "anna": 1.0, "bob": 2.0}, network, rng=1)
    assert result.trace.graph.labels == ("bob", "anna", "carl")
    assert result.value == 2.0
    grid = nx.grid_2d_graph(2, 2)  # its nodes are pairs of numbers
    assert midst.median({(0, 0): 1.0, (0, 1): 2.0, (1, 0): 3.0, (1, 1): 4.0}, grid, rng=1).value == 2.0


def test_a_graph_of_a_kind_takes_the_names() -> None:
    result = midst.median(VALUES, "ring", method="consensus", rng=1)
    assert result.trace.graph.labels == NAMES
    assert {*result.exposed} <= {*NAMES}
    assert result.value == midst.median(list(VALUES.values()), "ring", rng=1).value
    assert midst.median({0: 1.0, 1: 2.0, 2: 3.0}, "ring", rng=1).trace.graph.labels is None


def test_numbers_of_nodes_where_there_are_no_names() -> None:
    problem = Problem(graphs.ring(3), {2: 30.0, 0: 10.0, 1: 20.0})
    assert problem.values.tolist() == [10.0, 20.0, 30.0]


def test_rows_and_lists_by_name() -> None:
    rows = Problem(RING, {name: [value, -value] for name, value in VALUES.items()})
    assert rows.values.shape == (5, 2)
    lists = midst.median({"anna": [1.0, 2.0], "bob": [3.0], "carl": [4.0, 5.0]}, "ring", method="search", pooled=True)
    assert lists.value == 3.0
    assert lists.trace.owners is not None
    assert np.bincount(lists.trace.owners).tolist() == [2, 1, 2]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"anna": 3.25}, "no value is given for bob, carl, dora, emil; give one a node"),
        ({**VALUES, "emli": 987.5}, "a value is given for 'emli': the graph has no such node; did you mean emil?"),
        (
            {**VALUES, 987.5: 1.0},
            "a value is given for what is no name: the graph has no such node; its nodes are anna",
        ),
        ({**VALUES, "emil": "987.5?"}, "values, node emil: not a number"),
    ],
)
def test_what_does_not_fit_is_named_and_not_shown(given: dict[Any, Any], error: str) -> None:
    with pytest.raises(InputError, match=re.escape(error)) as refused:
        Problem(RING, given)
    assert "987" not in str(refused.value)


def test_weights_by_name_are_refused_likewise() -> None:
    with pytest.raises(InputError, match="no weight is given for emil"):
        Problem(RING, VALUES, weights=dict.fromkeys(NAMES[:4], 1))


def test_two_names_that_read_the_same() -> None:
    with pytest.raises(InputError, match="two of the names given read the same"):
        Problem(graphs.ring(3), {0: 1.0, 1: 2.0, 2: 3.0, "2": 4.0})


def test_labels_are_checked() -> None:
    with pytest.raises(InputError, match="2 labels for 3 nodes"):
        graphs.ring(3).with_labels(["a", "b"])


@given(st.lists(st.text("ab3 ,$é-", min_size=1, max_size=9), min_size=5, max_size=5, unique=True), st.integers(0, 4))
def test_a_node_has_one_name_wherever_it_is_told(names: list[str], corrupt: int) -> None:
    values, method = [3.25, 1.5, 4.75, 1.25, 5.125], midst.Consensus(c=0.1, mu=0.0, sigma=1.0)
    plain, named = (midst.median(values, graph, method=method, rng=5) for graph in (RING, RING.with_labels(names)))
    places = [RING.index(name) for name in plain.exposed]
    assert 0 < len(places) < 5
    assert named.exposed == tuple(named.to_dict()["exposed"]) == tuple(names[i] for i in places)
    assert all(name in repr(named) for name in named.exposed)
    assert [named.trace.graph.index(name) for name in names] == [0, 1, 2, 3, 4]
    ours, theirs = (
        midst.audit(run.trace, midst.Adversary((labels[corrupt],), True, "sealed"))
        for run, labels in ((plain, NAMES), (named, names))
    )
    assert ours.bits == pytest.approx(theirs.bits, nan_ok=True)
    told = theirs.to_dict()
    assert [node["node"] for node in told["nodes"]] == list(theirs.to_pandas()["node"]) == names
    assert told["adversary"]["corrupt"] == [node["node"] for node in told["nodes"] if node["corrupt"]]
    assert told["adversary"]["corrupt"] == [names[corrupt]]
    entries = [midst.dp.entry_of(run.trace, labels[0]) for run, labels in ((plain, NAMES), (named, names))]
    assert (entries[0].bits, entries[0].node) == (entries[1].bits, entries[1].node)


def test_numbers_as_names_are_no_places() -> None:
    graph = graphs.ring(5).with_labels("12345")
    assert [graph.index(name) for name in (1, "1", np.int64(5), 3)] == [0, 0, 4, 2]
    assert graph.names([0, 4]) == ("1", "5")
    assert graphs.ring(5).names([0, 4]) == (0, 4)
    for unknown, message in (
        (0, "node 0 does not exist; the nodes are 1, 2, 3, 4, 5"),
        ("01", "node 01 does not exist; did you mean 1?"),
        (True, "node True does not exist"),
        (1.0, "node 1.0 does not exist"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            graph.index(unknown)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="node ana does not exist; did you mean anna"):
        RING.index("ana")
    with pytest.raises(InputError, match="node 5 does not exist; the nodes are 0 to 4"):
        graphs.ring(5).index(5)


def test_errors_name_the_node() -> None:
    with pytest.raises(InputError, match="value of node emil lies outside"):
        Problem(RING, VALUES, bounds=(0, 5))
    trace = midst.median(VALUES, RING, method=midst.Consensus(stop=midst.After(9)), rng=5).trace
    with pytest.raises(InputError, match=rf"no mass to what was observed of node ({'|'.join(NAMES)});"):
        midst.audit(trace, prior=midst.priors.Uniform(100, 101))


@pytest.mark.parametrize("graph", ["ring", RING])
@pytest.mark.parametrize(
    ("changed", "options"),
    [
        ({"carl": float("nan")}, {}),
        ({"carl": "many"}, {}),
        ({name: [1.0] for name in NAMES} | {"carl": []}, {"pooled": True}),
        ({name: [1.0] for name in NAMES} | {"carl": [float("inf")]}, {"pooled": True}),
        ({}, {"weights": dict.fromkeys(NAMES, 1) | {"carl": -1}}),
        ({}, {"weights": dict.fromkeys(NAMES, 1) | {"carl": float("nan")}}),
        ({}, {"weights": dict.fromkeys(NAMES, 1) | {"carl": "many"}}),
    ],
)
def test_refused_data_are_of_the_node_that_is_named(
    graph: Any, changed: dict[str, Any], options: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=r"node carl\b"):
        midst.median(VALUES | changed, graph, **options)


def test_a_row_too_many_is_counted() -> None:
    with pytest.raises(InputError, match="6 values for 5 nodes"):
        Problem(RING, [1.0, 2, 3, 4, 5, 6])
    with pytest.raises(InputError, match="node 5"):
        Problem(RING, [1.0, 2, 3, 4, 5, "x"])

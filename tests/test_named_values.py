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
    result = midst.median(VALUES, "ring", rng=1)
    assert result.trace.graph.labels == NAMES
    assert all(name in repr(result) for name in [NAMES[i] for i in result.exposed])
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
        ({**VALUES, "emil": "987.5?"}, "values, node 4: not a number"),
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

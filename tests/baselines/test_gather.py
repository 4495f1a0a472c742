"""What is gathered along a tree is everybody's, once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from problem_strategies import graph_of
from scipy.sparse import csgraph

from midst import Problem
from midst.baselines.tree import Gather, gather, make_tree

ALL = Gather("all", lambda value: (value,), np.concatenate, lambda whole: float(np.median(whole)))


@settings(max_examples=25, deadline=None)
@given(graph_of(2, 20))
def test_everybody_ends_with_the_median_of_all(graph):
    values = np.random.default_rng(graph.n).permutation(graph.n).astype(float)
    problem = Problem(graph, values)
    told = gather(problem, ALL)
    assert told.answer == np.median(values)
    assert told.rounds == 2 * make_tree(graph).depth
    for i, (sent, received) in enumerate(zip(told.sent, told.received, strict=True)):
        came = [number for part in received for number in np.asarray(part).tolist()]
        assert sorted(np.asarray(sent).tolist()) == sorted([values[i], *came])
    assert sorted(np.asarray(told.sent[0]).tolist()) == sorted(values.tolist())


@given(graph_of(2, 20))
def test_a_tree_leads_to_node_0_by_neighbours(graph):
    tree = make_tree(graph)
    hops = csgraph.dijkstra(graph.adjacency(), unweighted=True, indices=0)
    assert tree.root == tree.parents[0] == 0
    assert tree.depth == hops.max()
    for node, parent in enumerate(tree.parents[1:], start=1):
        assert parent in graph.neighbours(node)
        assert hops[parent] == hops[node] - 1

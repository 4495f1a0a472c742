"""The count among nodes: a wrong candidate is refused, and nothing but totals is given away."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import midst
from midst import Problem, Quantile, graphs
from midst.counting import MODULUS, Count, Counter, Rules, Sum, Word, choose_patience
from midst.engines.reference import deliver
from midst.engines.tally import Tree
from midst.masks import SHARE_BYTES, edge_key, node_mask, pair
from midst.node import make_node, rows
from midst.system import assemble, draw_z0, settle


@given(st.lists(st.integers(0, 9), min_size=2, max_size=30), st.sampled_from((0.1, 0.5, 0.75)), st.integers(0, 9))
def test_a_wrong_candidate_is_always_refused(values, tau, candidate):
    """The verdict on any planted value is the definition of a quantile, and says on which side the answer is."""
    objective = Quantile(tau, "low")
    level = objective.level(len(values))
    rules = Rules(1, 0, 1, len(values), level)
    counters = [Counter(i, float(v), 1, rules) for i, v in enumerate(values)]
    below, above = (sum(column) for column in zip(*(c.term(float(candidate)) for c in counters), strict=True))
    answer = sorted(values)[int(-(-level * len(values) // 1)) - 1]
    if candidate in values:
        assert rules.judge(below, above) == (answer > candidate) - (answer < candidate)


def test_a_wrong_proposal_planted_in_a_run_is_refused():
    """The holder of the median claims another value: that is refused by all, and nothing wrong is proved."""
    problem = Problem(graphs.rgg(9, rng=3), np.arange(9.0), scale=1)
    system, nodes = _system(problem)
    liar = nodes[4]
    nodes[4] = replace(liar, counters=(replace(liar.counters[0], value=7.5),))
    for state in _run(system, nodes, 200):
        assert state.counts[0].answer is None
        assert state.counts[0].high <= 7.5
        assert state.counts[0].refused


def _system(problem, **options):
    parameters = settle(problem)
    rules = Rules(5, 0, problem.graph.diameter() + 1, int(problem.counts.sum()), problem.objective.level(9))
    system = assemble(problem, parameters, draw_z0(problem, parameters, np.random.default_rng(1)), rules)
    return system, [make_node(system, i) for i in range(system.graph.n)]


def _run(system, nodes, rounds, listen=None, rng=None):
    rng = np.random.default_rng(0) if rng is None else rng
    drawn = [rows(z) for z in np.split(system.z0, system.graph.offsets[1:-1])]
    begun = [node.begin(z, [rng.bytes(SHARE_BYTES) for _ in z]) for node, z in zip(nodes, drawn, strict=True)]
    states, outboxes = [state for state, _ in begun], [outbox for _, outbox in begun]
    for _ in range(rounds):
        if listen is not None:
            listen(outboxes)
        inboxes = deliver(outboxes)
        stepped = [node.step(*args) for node, *args in zip(nodes, states, inboxes, strict=True)]
        states, outboxes = [state for state, _ in stepped], [outbox for _, outbox in stepped]
        if all(state.counts[0].answer is not None for state in states):
            break
    return states


def test_the_tree_the_nodes_build():
    """After a diameter of rounds the nodes' own words describe the breadth-first tree of the tally."""
    problem = Problem(graphs.rgg(9, rng=8), np.arange(9.0))
    system, nodes = _system(problem)
    states = _run(system, nodes, problem.graph.diameter() + 1)
    tree = Tree(problem.graph, 0)
    assert [state.counts[0].word.distance for state in states] == tree.depth.tolist()
    parents = [state.counts[0].word.parent for state in states]
    assert [-1 if parent is None else parent for parent in parents] == tree.parent.tolist()
    for i, state in enumerate(states):
        assert state.counts[0].children == {j for j, parent in enumerate(parents) if parent == i}


def test_sums_go_to_the_parent_only():
    problem = Problem(graphs.rgg(9, rng=8), np.arange(9.0))
    system, nodes = _system(problem)
    addressed = []

    def listen(outboxes):
        for i, outbox in enumerate(outboxes):
            for j, message in outbox.items():
                word = message.words[0]
                if word.sum is not None or word.proposal is not None:
                    addressed.append((i, j, word.parent))

    _run(system, nodes, 200, listen)
    assert addressed
    assert all(to == parent for _, to, parent in addressed)


# Masks


def test_masks_cancel_and_differ():
    """Both ends of an edge derive the same numbers; over all nodes they cancel; every candidate has others."""
    graph = graphs.rgg(12, rng=1)
    rng = np.random.default_rng(1)
    keys = {}
    for i, j in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        if i < j:
            keys[i, j] = keys[j, i] = edge_key(rng.bytes(32), rng.bytes(32))
    seen = set()
    for number in (1, 2, 3):
        totals = [0, 0]
        for i in range(12):
            near = graph.neighbours(i).tolist()
            mask = node_mask([keys[i, j] for j in near], [1 if j > i else -1 for j in near], number, 0)
            assert mask not in seen
            seen.add(mask)
            totals = [(total + part) % MODULUS for total, part in zip(totals, mask, strict=True)]
        assert totals == [0, 0]
    assert pair(keys[graph.source[0], graph.target[0]], 1, 0) != pair(keys[graph.source[0], graph.target[0]], 1, 1)


def test_a_term_is_uniform_to_whoever_lacks_one_edge():
    """All but one honest edge's secret known: what a node sends up is uniform over 2^64, whatever its term."""
    rng = np.random.default_rng(7)
    rules = Rules(1, 0, 1, 3, Fraction(1, 2))
    for value in (0.0, 2.0):  # below and above the candidate
        counter = Counter(2, value, 1, rules)
        sent = []
        for _ in range(2000):
            known, withheld = edge_key(bytes(32), bytes(32)), edge_key(rng.bytes(32), rng.bytes(32))
            mask = node_mask([known, withheld], [-1, -1], 1, 0)
            heard = counter.step(
                Count(word=Word(distance=1, parent=0, candidate=midst.counting.Candidate(1, 1.0, 1, 0, 0))),
                t=3,
                inside=False,
                inbox={0: Word(distance=0), 1: Word(distance=1, parent=0)},
                mask=lambda number, mask=mask: mask,
            )
            assert isinstance(heard.word.sum, Sum)
            sent.append([heard.word.sum.below / MODULUS, heard.word.sum.above / MODULUS])
        for column in np.array(sent).T:
            assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_a_coalition_that_does_not_cut_the_honest_learns_only_totals():
    """Two data sets that agree on the corrupt nodes and on the totals give them messages of the same distribution.

    Node 2 of a 5-ring is corrupt; the honest 3, 4, 0, 1 are a path. It knows the masks on its own edges and subtracts
    them; what is left of each sum it receives must not tell the two data sets apart.
    """
    graph = graphs.ring(5)
    rng = np.random.default_rng(3)
    left_over = {0: [], 1: []}
    for which, values in enumerate(([1.0, 4.0, 3.0, 2.0, 5.0], [1.0, 2.0, 3.0, 5.0, 4.0])):
        problem = Problem(graph, values, scale=1)
        rules = Rules(1, 2, 3, 5, Fraction(1, 2))  # the corrupt node is even the root
        parameters = settle(problem)
        for _ in range(300):
            system = assemble(problem, parameters, draw_z0(problem, parameters, np.random.default_rng(1)), rules)
            nodes = [make_node(system, i) for i in range(system.graph.n)]
            final = _run(system, nodes, 100, rng=rng)
            corrupt = final[2]
            number = corrupt.counts[0].word.candidate.number
            from_1 = corrupt.counts[0].sums[1]
            own = pair(corrupt.keys[0], number, 0)[0]  # the edge (1, 2): node 1 added it
            left_over[which].append(((from_1.below - own) % MODULUS) / MODULUS)
            assert corrupt.counts[0].answer == 3.0
    assert stats.kstest(left_over[0], "uniform").pvalue > 1e-3
    assert stats.ks_2samp(left_over[0], left_over[1]).pvalue > 1e-3


def test_all_neighbours_corrupt_is_no_protection():
    """The other half of the claim: whose every edge is known is an open book, and the docstring says so."""
    keys = [edge_key(bytes([k] * 32), bytes(32)) for k in (1, 2)]
    mask = node_mask(keys, [1, -1], 1, 0)
    sent = (1 + mask[0]) % MODULUS
    assert (sent - node_mask(keys, [1, -1], 1, 0)[0]) % MODULUS == 1


def test_withdrawn_proposals_are_not_counted():
    """Whoever leaves its interval before its turn stands in no line any more."""
    rules = Rules(1, 0, 1, 2, Fraction(1, 2))
    counter = Counter(1, 5.0, 1, rules)
    near = {0: Word(distance=0)}
    inside = counter.step(Count(), 0, True, near, lambda number: (0, 0))
    assert inside.word.proposal is not None
    outside = counter.step(inside, 1, False, near, lambda number: (0, 0))
    assert outside.word.proposal is None


def test_first_come_first_served():
    """Of several in line the one that has waited longest is announced, and ties go to the lower number."""
    rules = Rules(1, 0, 1, 4, Fraction(1, 2))
    root = Counter(0, 5.0, 1, rules)
    line = {
        j: Word(distance=1, parent=0, proposal=midst.counting.Proposal(since, j, float(j)))
        for j, since in ((1, 4), (2, 2), (3, 2))
    }
    after = root.step(Count(word=root.first_word()), 9, False, line, lambda number: (0, 0))
    assert after.word.candidate == midst.counting.Candidate(1, 2.0, 2, 2, 9)


def test_patience():
    assert choose_patience(1) == 8
    assert choose_patience(25) == 75


def test_words_show_no_value():
    secret = 48151.623
    word = Word(candidate=midst.counting.Candidate(1, secret, 1, 0, 0), proposal=midst.counting.Proposal(0, 1, secret))
    counter = Counter(1, 48151.623, 1, Rules(1, 0, 1, 2, Fraction(1, 2)))
    assert "48151" not in repr(word) + repr(Count(word=word)) + repr(counter)

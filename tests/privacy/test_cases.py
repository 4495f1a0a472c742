"""Cases in which an earlier audit counted less than an adversary had; the numbers are those of the reports.

A: a node sent its value to a parent, and the audit did not know. B: whoever heard z(0), or surrounded a node, took its
masks off. C: nodes that are not heard were believed to be out of reach (`test_attack.py`). D: a message near s was not
counted as one about s (`test_near_is_known.py`). E: values that differ in their
last digits only took for ever (`test_search_method.py`).
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import midst
from midst import Adversary, Consensus, Exact, Problem, graphs
from midst.engines.reference import iterate
from midst.engines.reference_search import listen, make_participants
from midst.methods import Search, rules_of
from midst.privacy.attack import best_beliefs
from midst.privacy.audit import audit
from midst.privacy.priors import Normal
from midst.privacy.views import view
from midst.protocol.masks import MODULUS, hide
from midst.system import assemble, settle


@pytest.mark.parametrize("seed", range(8))
def test_a_whoever_sent_its_value_to_the_adversary_is_exposed(seed):
    """Of rgg-15 at c = 0.3, all that node 9 is sent: where a value is in it, the audit for node 9 says so."""
    problem = Problem(graphs.rgg(15, rng=seed), np.random.default_rng(seed).normal(size=15))
    result = midst.solve(problem, Consensus(c=0.3, stop=Exact()), rng=seed, record="all")
    system = assemble(problem, settle(problem, c=0.3), result.trace.z0)
    sent: set[float] = set()

    def overhear(i, j, message):
        if j == 9:
            sent.add(float(message.number))

    list(islice(iterate(system, overhear), result.iterations + 1))
    leak = audit(result.trace, Adversary((9,), eavesdrops=False))
    told = [i for i in range(15) if i != 9 and float(problem.values[i]) in sent]
    assert leak.exposed[told].all()
    assert (leak.bits[told] > 9).all()


def test_a_no_statement_of_a_search_has_a_value_in_it():
    """As a float or as a key, its bytes are nowhere in what is sent."""
    problem = Problem(graphs.rgg(15, rng=0), np.random.default_rng(0).normal(size=15))
    said = _talk(problem)
    raw = b"".join(statement.body for statement in said)
    for value, key in zip(problem.values, problem.value_keys, strict=True):
        assert np.float64(value).tobytes() not in raw
        assert int(key).to_bytes(8, "little") not in raw


def test_b_neighbours_cannot_take_off_the_masks_of_the_one_between():
    """ring-51, nodes 38 and 40 corrupt: with all that both know, what node 39 contributes is as random as before."""
    problem = Problem(graphs.ring(51), np.random.default_rng(78).normal(size=51))
    participants = make_participants(problem, rules_of(problem, Search()))
    _meet(participants)
    between = participants[39]
    contribution = between.own[1]
    plain = between._plain
    assert sum(plain) == 1
    numbers = list(contribution.numbers)
    for corrupt in (38, 40):  # the mask of a pair is known to both of it
        pair = {corrupt: participants[corrupt]._pairs[39]}
        mask = hide([0] * len(plain), 39, pair, contribution.context, [1] * len(plain))
        numbers = [(a - b) % MODULUS for a, b in zip(numbers, mask, strict=True)]
    assert all(number > 2**40 for number in numbers)  # and not a vote, which is 0 or 1
    everybody = {other: between._pairs[other] for other in range(51) if other not in (38, 39, 40)}
    rest = hide([0] * len(plain), 39, everybody, contribution.context, [1] * len(plain))
    assert [(a - b) % MODULUS for a, b in zip(numbers, rest, strict=True)] == plain


def test_b_the_bounds_of_a_surrounded_node_have_the_totals_in_them():
    """The audit of nodes 38 and 40 leaves node 39 no more room than any attack of theirs does."""
    problem = Problem(graphs.ring(51), np.random.default_rng(78).normal(size=51))
    trace = midst.solve(problem, Consensus(c=1.0, sigma=0.1, stop=Exact()), rng=78, record="audit").trace
    adversary = Adversary((38, 40), eavesdrops=False)
    leak = audit(trace, adversary)
    assert leak.lower[39] <= problem.values[39] <= leak.upper[39]
    belief = best_beliefs(view(trace, adversary), [Normal(0, 1)] * 51, leak.resolution)[39]
    lower, upper = belief.posterior.bounds
    assert lower <= leak.lower[39] <= leak.upper[39] <= upper
    assert leak.at_least[39] <= leak.bits[39] + 1e-9
    iteration = midst.solve(problem, Consensus(c=1.0, sigma=0.1, stop=midst.After(trace.iterations)), rng=78)
    alone = audit(iteration.trace, Adversary())
    assert alone.lower[39] <= leak.lower[39]
    assert leak.upper[39] <= alone.upper[39]


def _meet(participants):
    """Until everybody has contributed to the first question."""
    announced = [each.own[0] for each in participants]
    for each in participants:
        listen(each, [one for one in announced if one is not each.own[0]])
    assert all(len(each.own) == 2 for each in participants)


def _talk(problem):
    participants = make_participants(problem, rules_of(problem, Search()))
    said = [each.own[0] for each in participants]
    while not all(each.certified for each in participants):
        news = [one for each in participants for one in each.own if one not in said]
        said += news
        for each in participants:
            listen(each, [one for one in said if one not in each.own])
    return said

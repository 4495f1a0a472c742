"""Searches of values at hand are those of participants who each know their own, probe by probe."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from search_strategies import KINDS, SPACINGS, cases, data, play, rules_of

from midst.engines import searching
from midst.engines.searching import roundest_of, search_many, search_values
from midst.protocol.keys import SIGN, Floats, first_bracket, make_keys
from midst.protocol.search import Cells, Goal, roundest
from midst.trace import places_of, probes_of

numbers = st.floats(allow_nan=False, allow_infinity=False)
small = st.integers(-9999, 9999).map(float) | st.integers(-9999, 9999).map(lambda k: k / 100)


def at_hand(case):
    """Keys (N, m) and weights of all values of a case."""
    columns = [[key for each in case.participants for key in each.keys[c]] for c in range(len(case.rules.brackets))]
    weights = [each.weight for each in case.participants for _ in each.keys[0]]
    return np.array(columns, np.uint64).T, np.array(weights, np.int64)


@given(cases(most=60))
def test_search_of_values_is_that_of_their_participants(case):
    search, steps = search_values(case.rules, *at_hand(case))
    expected, told = play(case)
    assert search == expected
    assert tuple(map(tuple, steps)) == told


@given(cases(most=30))
def test_probes_and_places_tell_what_was_made_public(case):
    keys, weights = at_hand(case)
    search, steps = search_values(case.rules, keys, weights)
    probes = probes_of(case.rules.keys, steps)
    assert len(probes) == sum(isinstance(part, Cells) for question, _ in steps for part in question)
    answers = [int(keys[0, k]) for k in range(keys.shape[1])]  # whatever was found
    places = places_of(probes, answers, keys)
    assert search.question is None
    assert places.shape == keys.shape
    for probe in probes:
        own = keys[:, probe.coordinate]
        cells = [int(weights[(a < own) & (own <= b)].sum()) for a, b in pairwise(probe.edges)]
        assert list(probe.totals) == cells
        assert any(part.edges == probe.edges for part in steps[probe.step].question)
    for coordinate, key in enumerate(answers):
        edges = {edge for probe in probes if probe.coordinate == coordinate for edge in probe.edges}
        edges |= {key - 1, key}
        own = keys[:, coordinate].tolist()
        assert places[:, coordinate].tolist() == [sum(edge < each for edge in edges) for each in own]


def test_places_of_one_coordinate_may_be_flat():
    values = np.array([3.0, 1.0, 2.0, 2.0])
    keys = Floats().keys(values)
    rules = rules_of(Floats(), [values], [1] * 4, (0.0, 4.0), goals=(Goal(0, (1,)),), arity=1)
    search, steps = search_values(rules, keys, np.ones(4, np.int64))
    places = places_of(probes_of(Floats(), steps), [search.answers[0]], keys)
    assert places.shape == (4,)
    assert places[1] < places[2] == places[3]
    assert sorted(places) == sorted(places.tolist(), key=int)


def search_runs(kind, keys, a, b, ranks, *, weights=None, **options):
    """Searches among keys that are all there, in order along the first axis."""
    return search_many(kind, (keys ^ np.uint64(SIGN)).view(np.int64), weights, a, b, ranks, **options)


@st.composite
def many(draw):
    """Runs side by side, with everything that `search_runs` takes, and the rules of each."""
    n, runs = draw(st.integers(1, 20) | st.integers(100, 200)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(KINDS))
    values = np.column_stack([data(kind, n, rng.integers(2**32)) for _ in range(runs)])
    keys = make_keys(None if kind in ("wide", "subnormal") else draw(st.sampled_from((None, "0.01", "1/3", "1e-9"))))
    slack = draw(st.sampled_from((0.0, 1.0, 1e3)))
    bounds = (float(values.min()) - slack, float(values.max()) + slack) if draw(st.booleans()) else None
    a, b = first_bracket(keys, bounds)
    own = np.sort(keys.keys(values), axis=0)
    weights = {
        "none": np.ones((n, runs), np.int64),
        "same": np.full((n, runs), 3),
        "some": 2 * rng.integers(0, 2, (n, runs)),
        "any": rng.integers(0, 5, (n, runs)),
    }
    given_weights = draw(st.sampled_from(tuple(weights)))
    weight = weights[given_weights]
    weight[0] = np.maximum(weight[0], weight.max() or 2)
    totals = weight.sum(axis=0)
    ranks = 1 + (rng.random(runs) * totals).astype(np.int64)
    opening = None
    if draw(st.booleans()):
        opening = rng.choice(own.reshape(-1), (runs, draw(st.integers(1, 4))))
    options = {"arity": draw(st.integers(1, 7)), "spacing": draw(st.sampled_from(SPACINGS))}
    rules = []
    for k in range(runs):
        first = () if opening is None else tuple(opening[k].tolist())
        given_first = {"goals": (Goal(0, (int(ranks[k]),)),), "opening": (first,) if first else ()}
        rules.append(rules_of(keys, [own], weight[:, k], bounds, **given_first, **options))
    options |= {"weights": None if given_weights == "none" else weight, "opening": opening}
    return (keys, own, a, b, ranks), options, rules, weight


@given(many(), st.sampled_from((0, 127)))
@settings(max_examples=300)
def test_many_runs_are_each_the_plain_search(case, few):
    given_runs, options, rules, weights = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "_FEW", few)  # rows that are compared one by one
        found = search_runs(*given_runs, **options)
    own, ranks = given_runs[1], given_runs[4]
    for k, agreed in enumerate(rules):
        search, _ = search_values(agreed, own[:, k], weights[:, k])
        assert found.keys[k] == search.answers[0] == np.repeat(own[:, k], weights[:, k])[ranks[k] - 1]
        assert found.probes[k] == search.steps


def test_runs_of_fewer_values_have_the_others_above_their_bracket():
    keys, sizes = Floats(), (3, 7, 5)
    own = np.full((7, 3), 2**64 - 1, np.uint64)
    columns = [np.sort(keys.keys(data("normal", n, n))) for n in sizes]
    for k, column in enumerate(columns):
        own[: len(column), k] = column
    a, b = first_bracket(keys, (-10.0, 10.0))
    found = search_runs(keys, own, a, b, [2, 4, 3])
    assert found.keys.tolist() == [int(column[len(column) // 2]) for column in columns]


def test_brackets_may_differ_from_run_to_run():
    keys = Floats()
    own = np.sort(keys.keys(np.array([[1.0, 100.0], [2.0, 200.0], [3.0, 300.0]])), axis=0)
    ends = [first_bracket(keys, bounds) for bounds in ((0.0, 4.0), (0.0, 400.0))]
    found = search_runs(keys, own, *np.array(ends, np.uint64).T, 2)
    assert keys.values(found.keys).tolist() == [2.0, 200.0]
    assert found.probes[0] == found.probes[1]  # the same problem in other units


def test_no_runs():
    found = search_runs(Floats(), np.zeros((3, 0), np.uint64), *first_bracket(Floats(), None), 2)
    assert found.keys.size == found.probes.size == 0


@given(st.lists(st.tuples(numbers, numbers) | st.tuples(small, small), max_size=9))
@example([(0.21, 0.3), (0.26, 0.29), (-0.3, -0.21), (-1.0, 2.0), (0.0, 1.0), (1.0, 1.0), (5e-324, 5e-324)])
@example([(1e22 + 1e8, 1e23), (9007199254740991.0, 9007199254740992.0), (1 / 3, 1 / 3 + 1e-16), (1e-15, 1.1e-15)])
@example([(5e-324, 3.0), (1.5e308, 1.7e308), (-1.7976931348623157e308, -1.0)])
def test_roundest_of_many_is_that_of_each(brackets):
    brackets = [(min(pair), max(pair)) for pair in brackets]
    low, high = (np.array([pair[k] for pair in brackets]) for k in (0, 1))
    assert roundest_of(low, high).tolist() == [roundest(*pair) for pair in brackets]


@given(numbers.filter(lambda x: x != 0.0), st.floats(-17, 0))
def test_roundest_of_narrow_brackets(x, narrow):
    with np.errstate(over="ignore"):
        other = float(np.clip(x * (1 + 10.0**narrow), -1e308, 1e308))
    low, high = min(x, other), max(x, other)
    assert roundest_of(np.array([low]), np.array([high])).tolist() == [roundest(low, high)]


@pytest.mark.parametrize("places", [1, 2, 7])
def test_roundest_of_brackets_that_begin_at_a_decimal(places):
    """Some decimals, such as 0.07, are a little more than they should be when multiplied by a power of ten."""
    k = np.arange(1, 2000)
    low, high = k / 10.0**places, (k + 1.5) / 10.0**places
    assert (low * 10.0**places > k).any() == (places > 1)
    assert roundest_of(low, high).tolist() == [
        roundest(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)
    ]

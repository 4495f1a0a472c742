"""A view holds what that adversary sees, and the report is a function of the view."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import midst
from midst import graphs
from midst.privacy.adversaries import Adversary, parse_adversary
from midst.privacy.attack import reconstruct
from midst.privacy.audit import audit, measure
from midst.privacy.exposure import exposure
from midst.privacy.observations import Branches, Heard, Shifted, Unseen
from midst.privacy.tracking import track
from midst.privacy.views import view

GRAPH = graphs.rgg(9, rng=4)
SEALED = Adversary(init="sealed")


def solve(values, seed=3, record="all", z0=None, graph=GRAPH, iterations=150, **options):
    problem = midst.Problem(graph, values)
    options = {"c": 1.0, "sigma": 1.0, "mu": 0.0} | options
    method = midst.Consensus(z0=z0, stop=midst.After(iterations), **options)
    return midst.solve(problem, method, rng=seed, record=record).trace


def same(one, two):
    return all(
        np.array_equal(np.asarray(getattr(one, f.name)), np.asarray(getattr(two, f.name)), equal_nan=f.name != "side")
        if isinstance(getattr(one, f.name), np.ndarray)
        else getattr(one, f.name) == getattr(two, f.name)
        for f in dataclasses.fields(one)
    )


@pytest.mark.parametrize("adversary", [Adversary(), SEALED, Adversary((2,), True, "sealed")], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_a_hidden_value_may_change_as_long_as_no_message_does(adversary, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=9)
    trace = solve(values, seed)
    outside = [s for s in view(trace, Adversary()).observations if s.value is None]
    assert outside
    changed = values.copy()
    for observation in outside:
        low, high = max(observation.lower, -9.0), min(observation.upper, 9.0)
        changed[observation.node] = low + (high - low) * rng.uniform(0.01, 0.99)
    other = solve(changed, seed)
    assert not np.array_equal(values, changed)
    assert np.array_equal(trace.x, other.x)
    assert same(audit(trace, adversary), audit(other, adversary))


@pytest.mark.parametrize("seed", range(4))
def test_sealed_z0_may_be_split_differently_as_long_as_no_message_changes(seed):
    """Around a cycle, p can be shifted without changing any sum; so can a value along with its z."""
    ring = graphs.complete(4)
    values = np.random.default_rng(seed).normal(size=4)
    trace = solve(values, seed, graph=ring)
    z0 = trace.z0.copy()
    cycle = [(0, 1), (1, 2), (2, 0)]
    edge = {(int(a), int(b)): k for k, (a, b) in enumerate(zip(ring.source, ring.target, strict=True))}
    for (
        a,
        b,
    ) in cycle:  # ζ_ab += δ, ζ_ba −= δ: p_ab moves by δ, r stays; U_a gains at one edge what it loses at the next
        for pair, shift in (((a, b), 0.37), ((b, a), -0.37)):
            z0[edge[pair]] += shift * ring.sign[edge[pair]]
    other = solve(values, seed, z0=z0, graph=ring)
    assert not np.allclose(trace.z0, other.z0)
    np.testing.assert_allclose(trace.x, other.x, atol=1e-12)
    one, two = audit(trace, SEALED), audit(other, SEALED)
    np.testing.assert_allclose(one.bits, two.bits, rtol=1e-6)
    np.testing.assert_allclose(one.side_probability, two.side_probability, rtol=1e-6)
    assert one.exposed.tolist() == two.exposed.tolist()


def test_the_side_of_a_node_that_never_moved_is_in_no_sealed_view():
    trace = solve(np.random.default_rng(1).normal(size=9), 1)
    flipped = dataclasses.replace(
        trace, segments=dataclasses.replace(trace.segments, branch=_flip_constant_nodes(trace.segments))
    )
    assert not np.array_equal(flipped.segments.branch, trace.segments.branch)
    assert same(audit(trace, SEALED), audit(flipped, SEALED))


def _flip_constant_nodes(segments):
    branch = segments.branch.copy()
    alone = np.flatnonzero(np.bincount(segments.node, minlength=9) == 1)
    rows = np.isin(segments.node, alone) & (branch != 0)
    branch[rows] *= -1
    return branch


@pytest.mark.parametrize("init", ["clear", "sealed"])
def test_reading_raw_messages_finds_what_the_view_says(init):
    for seed in range(12):
        trace = solve(np.random.default_rng(seed).normal(size=9), seed, sigma=3.0, iterations=60)
        seen = view(trace, Adversary(init=init))
        for mine, read in zip(seen.observations, track(seen), strict=True):
            for name in ("value", "lower", "upper", "inside"):
                assert getattr(mine, name) == getattr(read, name)
            if isinstance(mine, Shifted):
                assert (mine.shift is None) == (read.shift is None)
                assert mine.shift == pytest.approx(read.shift, abs=1e-9)


def test_messages_are_worked_out_again_from_the_seed():
    values = np.random.default_rng(2).normal(size=9)
    full, short = (solve(values, 2, record) for record in ("all", "audit"))
    short = dataclasses.replace(short, z0=None)
    np.testing.assert_allclose(view(short, SEALED).messages, full.x, atol=1e-12)
    assert same(audit(full, Adversary()), audit(short, Adversary()))
    np.testing.assert_allclose(audit(full, SEALED).bits, audit(short, SEALED).bits, rtol=1e-6)
    other_seed = dataclasses.replace(short, seed=77)
    with pytest.raises(midst.InputError, match="record audit"):
        audit(other_seed, SEALED)
    other_z0 = dataclasses.replace(short, z0=full.z0 + 0.1)
    with pytest.raises(midst.InputError, match="do not make its messages"):
        audit(other_z0, SEALED)


def test_sights_follow_what_is_known():
    star = graphs.star(5)
    trace = solve(np.arange(5.0), graph=star, record="all")
    kinds = {s.node: type(s) for s in view(trace, Adversary((0,), False)).observations}
    assert kinds == dict.fromkeys(range(1, 5), Branches)  # the hub is all that leaves talk to
    kinds = {s.node: type(s) for s in view(trace, Adversary((4,), False)).observations}
    assert kinds == {0: Heard, 1: Unseen, 2: Unseen, 3: Unseen}
    kinds = {s.node: type(s) for s in view(trace, Adversary((4,), True, "sealed")).observations}
    assert kinds == dict.fromkeys(range(4), Shifted)
    with pytest.raises(midst.InputError, match="eavesdrops"):
        measure(view(trace, Adversary((4,), False)))


def test_exposure_is_the_trace_s_own_for_whoever_sees_all_branches():
    trace = solve(np.random.default_rng(5).normal(size=9), 5)
    found = exposure(view(trace, Adversary()))
    assert found.exposed.tolist() == trace.inside.any(axis=0).tolist()
    first = np.where(found.exposed, trace.inside.argmax(axis=0), -1)
    assert found.first.tolist() == first.tolist()
    share = found.share_over_time()
    assert share[-1] == 1 - found.exposed.mean()
    assert (np.diff(share) <= 0).all()
    inside = np.zeros_like(trace.inside)
    for node, spans in enumerate(found.spans):
        for start, stop in spans:
            inside[start:stop, node] = True
    assert np.array_equal(inside, trace.inside)


def test_adversaries():
    assert parse_adversary("eavesdropper") == Adversary()
    assert parse_adversary("passive:7,3") == Adversary((3, 7), eavesdrops=False)
    assert parse_adversary("both:3,7", "sealed") == Adversary((3, 7), True, "sealed")
    assert str(Adversary((1,), True, "sealed")) == "corrupt 1 with eavesdropper, z(0) sealed"


def test_corrupt_nodes_have_the_names_of_the_graph():
    one_to_five = graphs.ring(5).with_labels("12345")
    for typed in ((3, 5), ("5", "3"), (np.int64(5), "3", 3)):
        assert Adversary(typed).check(one_to_five) == [2, 4]
    assert Adversary((3,)).check(GRAPH) == [3]
    assert parse_adversary('passive: anna, "Doe, Jo"') == Adversary(("Doe, Jo", "anna"), False)
    assert parse_adversary("passive:03").corrupt == ("03",)
    with pytest.raises(midst.InputError, match="corrupt node 0 does not exist; the nodes are 1, 2, 3, 4, 5"):
        Adversary((0,)).check(one_to_five)
    with pytest.raises(midst.InputError, match="all nodes are corrupt"):
        Adversary(list("12345")).check(one_to_five)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Adversary((), eavesdrops=False), "sees nothing"),
        (lambda: Adversary(init="open"), "init"),
        (lambda: Adversary(("a",)).check(GRAPH), "node a does not exist; the nodes are 0 to 8"),
        (lambda: Adversary("anna"), "names of nodes"),
        (lambda: Adversary((True,)), "names of nodes"),
        (lambda: Adversary((1.0,)), "names of nodes"),
        (lambda: Adversary(3), "names of nodes"),
        (lambda: Adversary((9,)).check(GRAPH), "node 9 does not exist"),
        (lambda: Adversary((-1,)).check(GRAPH), "node -1 does not exist"),
        (lambda: Adversary(range(9)).check(GRAPH), "all nodes are corrupt"),
        (lambda: parse_adversary("passive"), "passive:3,7"),
        (lambda: parse_adversary("both:a").check(GRAPH), "node a does not exist"),
        (lambda: parse_adversary("both:a\nb").check(GRAPH), "does not exist"),
        (lambda: parse_adversary("both:,"), "passive:3,7"),
        (lambda: parse_adversary("spy:1"), "eavesdropper"),
    ],
)
def test_adversaries_that_make_no_sense(make, match):
    with pytest.raises(midst.InputError, match=match) as refusal:
        make()
    assert "\n" not in str(refusal.value)


def test_traces_without_what_is_needed_say_which_record_brings_it():
    values = np.random.default_rng(1).normal(size=9)
    with pytest.raises(midst.InputError, match="record audit"):
        audit(solve(values, record="none"))
    unseeded = dataclasses.replace(solve(values, np.random.default_rng(0), "audit"), z0=None)
    for adversary in (SEALED, Adversary((1,), True, "sealed"), Adversary((1,), False)):
        with pytest.raises(midst.InputError, match="record audit"):
            audit(unseeded, adversary)
    assert audit(unseeded).honest == 9
    found = reconstruct(view(unseeded, Adversary((1,), False)))
    np.testing.assert_array_equal(found.estimate[found.known], values[found.known])
    assert found.how[1] == "", "its own is no finding"

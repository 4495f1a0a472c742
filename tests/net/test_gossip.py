"""Statements told on among neighbours: by one way each, asked for where missing, and compared where they differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_network import MemoryNetwork, charter_of
from simnet.notary import SimNotary

from midst import graphs
from midst.errors import Aborted
from midst.net.gossip import Gossip, Routes, breadth_first, pack_bits, unpack_bits
from midst.net.wire import Statements, Want, Welcome, decode_control, encode_control
from midst.protocol.participant import Participant

VALUES = [1.0, -2.0, 5.0, 3.0, 0.5, 4.0, -7.0]


def told(frame):
    return frame[:1] == b"G"


def search_of(n=5, **settings):
    return charter_of(n, method="search", **settings)


@st.composite
def connected(draw):
    """A tree with some edges more."""
    n = draw(st.integers(2, 14))
    tree = {(draw(st.integers(0, k - 1)), k) for k in range(1, n)}
    more = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=12))
    return graphs.from_edges(n, sorted(tree | {(a, b) for a, b in more if a < b}))


# Routes


@given(connected())
@settings(max_examples=150, deadline=None)
def test_a_statement_comes_to_each_by_one_neighbour_and_by_a_shortest_way(graph):
    routes = [Routes(graph, i) for i in range(graph.n)]
    lists = [graph.neighbours(i).tolist() for i in range(graph.n)]
    for signer in range(graph.n):
        distance = breadth_first(lists, signer)
        for i in range(graph.n):
            tellers = [j for j in lists[i] if i in routes[j].told_on[signer]]
            if i == signer:
                assert tellers == [], "nobody tells a signer what it has signed"
                continue
            assert tellers == [routes[i].nearest[signer]], "one neighbour tells it, the one it would ask"
            assert distance[tellers[0]] == distance[i] - 1
            assert tellers[0] == min(j for j in lists[i] if distance[j] == distance[i] - 1)


@given(connected(), st.data())
@settings(max_examples=60, deadline=None)
def test_each_statement_crosses_each_edge_of_its_tree_once(graph, data):
    """Told on and on, it reaches everybody, over n - 1 links, in as many hops as it has to go."""
    routes = [Routes(graph, i) for i in range(graph.n)]
    signer = data.draw(st.integers(0, graph.n - 1))
    reached, crossed, hops = {signer}, [], {signer: 0}
    line = [signer]
    while line:
        i = line.pop(0)
        for j in routes[i].told_on[signer]:
            crossed.append((i, j))
            assert j not in reached
            reached.add(j)
            hops[j] = hops[i] + 1
            line.append(j)
    assert reached == set(range(graph.n))
    assert len(crossed) == graph.n - 1
    lists = [graph.neighbours(i).tolist() for i in range(graph.n)]
    assert [hops[i] for i in range(graph.n)] == breadth_first(lists, signer)


@given(connected())
@settings(max_examples=60, deadline=None)
def test_whom_a_neighbour_hears_by_us(graph):
    for i in range(graph.n):
        routes = Routes(graph, i)
        for j in graph.neighbours(i).tolist():
            assert routes.signers_told_to[j] == [s for s in range(graph.n) if j in routes.told_on[s]]
            assert i in routes.signers_told_to[j], "what is ours goes to every neighbour"


@given(st.integers(1, 80), st.data())
def test_sets_of_participants_as_bits(count, data):
    numbers = sorted(data.draw(st.sets(st.integers(0, count - 1))))
    raw = pack_bits(numbers, count)
    assert len(raw) == -(-count // 8)
    assert unpack_bits(raw, count) == numbers
    assert unpack_bits(b"\xff" * 200, count) == list(range(count))


# On a perfect network


@pytest.mark.parametrize(
    ("n", "edges"),
    [
        (5, None),
        (7, None),
        (5, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (6, [(0, k) for k in range(1, 6)]),
        (5, [(i, j) for i in range(5) for j in range(i)]),
        (6, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]),
    ],
)
def test_nobody_is_told_what_it_is_known_to_have(n, edges):
    """n - 1 links a statement, and each of them once."""
    net = MemoryNetwork(search_of(n, edges=edges), VALUES[:n])
    endings = net.run()
    codec = net.setups[0].codec
    crossings = [
        (i, j, one.signer, one.step) for i, j, frame in net.sent if told(frame) for one in codec.decode_all(frame)
    ]
    steps = endings[0].probes + 2
    assert len(crossings) == len(set(crossings)) == n * (n - 1) * steps
    assert not any(j == signer for _, j, signer, _ in crossings)
    talks = [decode_control(frame) for _, _, frame in net.sent if frame[:1] == b"T"]
    assert not any(isinstance(talk, Want) for talk in talks), "and nobody has to ask"


def test_statements_that_are_due_together_share_a_frame():
    """Who is new to the hub of a star is told everything of everybody else, in as few frames as hold it."""
    net = MemoryNetwork(search_of(6, edges=[(0, k) for k in range(1, 6)], verify=False), VALUES[:6])
    endings = net.run()
    codec = net.setups[0].codec
    frames = net.peers[0].exchange.frames(1, Want(0))
    sizes = [len(codec.decode_all(frame)) for frame in frames]
    assert sum(sizes) == 5 * (endings[0].probes + 2)
    assert len(frames) == -(-sum(map(len, frames)) // codec.largest(0)) < sum(sizes)
    assert all(len(frame) <= codec.largest() for _, _, frame in net.sent)


def outbox_of(net, i=0):
    """What a participant tells whom, once."""
    codec, out = net.setups[i].codec, net.peers[i].exchange.outbox()
    assert net.peers[i].exchange.outbox() == []
    return [(j, one) for j, frame in out for one in codec.decode_all(frame)]


def test_news_are_told_on_to_those_who_hear_of_it_by_us():
    """On a ring of five, 4 hears of 1 by 0, and 3 does not."""
    net = MemoryNetwork(search_of(), VALUES[:5])
    one = net.peers[1].exchange.own(0)
    assert net.peers[0].exchange.take(1, Statements((one,)))
    assert outbox_of(net) == [(4, one)]
    assert not net.peers[0].exchange.take(1, Statements((one,))), "no news"
    assert outbox_of(net) == []


def test_who_tells_us_is_not_told():
    net = MemoryNetwork(search_of(), VALUES[:5])
    assert net.peers[0].exchange.take(4, Statements((net.peers[1].exchange.own(0),)))
    assert outbox_of(net) == []


@pytest.mark.parametrize("anew", [False, True])
def test_who_greets_anew_is_told_what_it_had(anew):
    """What it told us of before it went down, it may have lost with everything else."""
    over, net = MemoryNetwork(search_of(), VALUES[:5]), MemoryNetwork(search_of(), VALUES[:5])
    over.run()
    announced, contributed = (over.peers[1].exchange.own(step) for step in (0, 1))
    part = net.peers[0].exchange
    assert not part.take(4, Statements((contributed,))), "before its signer's announcement"
    if anew:
        part.forget(4)
    assert part.take(1, Statements((announced, contributed)))
    assert outbox_of(net) == [(4, announced), (4, contributed)][: 1 + anew]


def test_no_step_is_made_before_every_neighbour_has_welcomed():
    """Though everything for it is there: the first contribution would be told to who may know of another."""
    net = MemoryNetwork(search_of(), VALUES[:5])
    part = net.peers[0].exchange
    part.take(1, Statements(tuple(net.peers[k].exchange.own(0) for k in range(1, 5))))
    assert part.missing() == []
    assert part.inputs(0.0) is None
    part.begin()
    assert len(part.inputs(0.0)) == 5


# Asking


@pytest.mark.parametrize("lost", range(12))
def test_what_is_lost_is_asked_for(lost):
    """One statement frame lost, whichever: it comes all the same."""
    net, count = MemoryNetwork(search_of(), VALUES[:5]), [0]

    def lose(i, j, frame):
        count[0] += told(frame)
        return None if told(frame) and count[0] == 1 + 7 * lost else frame

    assert {ending.value for ending in net.run(change=lose)} == {(1.0,)}


def test_half_of_all_frames_lost_change_nothing_that_is_signed():
    calm, bad = MemoryNetwork(search_of(), VALUES[:5]), MemoryNetwork(search_of(), VALUES[:5])
    calm.run()
    rng = np.random.default_rng(1)
    endings = bad.run(change=lambda i, j, frame: frame if rng.random() < 0.5 else None, most=3000)
    assert {ending.value for ending in endings} == {(1.0,)}
    signed = [
        {one.body for _, _, frame in each.sent if told(frame) for one in each.setups[0].codec.decode_all(frame)}
        for each in (calm, bad)
    ]
    assert signed[0] == signed[1]


def test_a_neighbour_that_tells_nothing_on_holds_up_nobody_who_has_another():
    """On a ring, participant 1 tells its own statements, and nobody else's."""
    net = MemoryNetwork(search_of(), VALUES[:5])
    codec = net.setups[0].codec

    def mute(i, j, frame):
        if i != 1 or not told(frame):
            return frame
        own = [one for one in codec.decode_all(frame) if one.signer == 1]
        return codec.encode(own)[0] if own else None

    assert {ending.value for ending in net.run(change=mute, most=3000)} == {(1.0,)}


def test_the_first_to_be_asked_is_who_should_have_told():
    net = MemoryNetwork(search_of(), VALUES[:5])
    net.pass_time()
    net.deliver(change=lambda i, j, frame: None if told(frame) else frame)
    part, routes = net.peers[0].exchange, Routes(net.charter.graph, 0)
    assert isinstance(part, Gossip)
    wants = {j: unpack_bits(part.ask(j).lacks, 5) for j in (1, 4)}
    assert wants == {j: [k for k in range(1, 5) if routes.nearest[k] == j] for j in (1, 4)}
    part.asked()
    assert all(unpack_bits(part.ask(j).lacks, 5) == [1, 2, 3, 4] for j in (1, 4)), "then everybody"


def test_who_asks_for_what_is_not_there_gets_nothing():
    net = MemoryNetwork(search_of(), VALUES[:5])
    part = net.peers[0].exchange
    assert part.frames(1, Want(0, pack_bits(range(5), 5))) == [], "not even our own, before all neighbours have greeted"
    net.run()
    part = net.peers[0].exchange
    assert part.frames(1, Want(10**6, pack_bits(range(5), 5))) == []
    assert part.frames(1, Want(10**6)) == []
    assert part.frames(1, Want(-5, pack_bits([0], 5))) == part.frames(1, Want(0, pack_bits([0], 5))) != []


def test_nothing_of_ones_own_is_told_before_every_neighbour_has_welcomed():
    net = MemoryNetwork(search_of(), VALUES[:5])
    welcome = encode_control(Welcome(b"", 0))[:9]
    for _ in range(4):
        net.pass_time()
        net.deliver(change=lambda i, j, frame: None if (i, j) == (1, 0) and frame[:9] == welcome else frame)
    codec = net.setups[0].codec
    assert not [one for _, _, frame in net.sent if told(frame) for one in codec.decode_all(frame) if one.signer == 0]
    assert {ending.value for ending in net.run()} == {(1.0,)}


# Two histories


def two_faced(net, liar, session=9):
    """Participant `liar` tells its higher neighbour another announcement than its lower one."""
    setup, peer = net.setups[liar], net.peers[liar]
    high = max(setup.neighbours)
    opening = setup.draw(np.random.default_rng(session).bytes)
    other = Participant(setup.agreement(()), setup.holding(opening), SimNotary(liar)).own[0]
    codec = setup.codec

    def change(i, j, frame):
        if i == liar and frame[:1] == b"W":
            return None  # a liar does not say that it has been found out
        if (i, j) != (liar, high) or not told(frame):
            return frame
        statements = [
            other if (one.signer, one.step) == (liar, 0) else one
            for one in codec.decode_all(frame)
            if one.signer != liar or one.step == 0
        ]
        return codec.encode(statements)[0] if statements else None

    assert peer.exchange.own(0) != other
    return change


@pytest.mark.parametrize("n", [4, 5, 6, 7])
@pytest.mark.parametrize("liar", [0, 2])
def test_an_equivocator_is_named_by_everybody(n, liar):
    """Both histories meet, and two statements of one signer with them; nobody has an answer."""
    net = MemoryNetwork(search_of(n, deadlines={"wait": 300}), VALUES[:n])
    endings = net.run(change=two_faced(net, liar))
    name = net.charter.names[liar]
    for i, ending in enumerate(endings):
        assert isinstance(ending, Aborted)
        if i != liar:
            assert (ending.kind, ending.about) == ("equivocation", name)
    with pytest.raises(Exception, match="start a new one"):
        net.start((liar + 1) % n)


def test_evidence_is_shown_and_not_only_said():
    """Who hears of an equivocation has both statements, and need believe nobody."""
    net = MemoryNetwork(search_of(5, deadlines={"wait": 300}), VALUES[:5])
    endings = net.run(change=two_faced(net, 0))
    assert not any("says: " in str(ending) for ending in endings[1:])

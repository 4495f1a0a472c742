"""`midst node --save`: a participant's own record, and what the audit makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_network import MemoryNetwork, charter_of

import midst
from midst.cli.own_record import OwnRecord, record_of_answer
from midst.errors import InputError
from midst.net.answer import Answer
from midst.net.journal import Journal
from midst.net.session import Session, resume
from midst.net.wire import StepFrame
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import audit
from midst.privacy.priors import Uniform
from midst.trace import Trace, load

VALUES = [4.25, -3.0, 0.5, 1.75, -7.5]
PRIOR = Uniform(-10, 10)


def session_of(net: MemoryNetwork, i: int) -> Session:
    peer = net.peers[i]
    return Session(net.setups[i], peer._journal, peer.opening, peer.exchange, {})


def run(net: MemoryNetwork, i: int) -> Trace:
    """All of it, watched by participant i."""
    record = OwnRecord(net.setups[i])
    net.peers[i]._watch = lambda peer: record.see(peer.exchange)
    session = session_of(net, i)
    ending = net.run()[i]
    return record.trace(session, ending)


def simulate(net: MemoryNetwork) -> Trace:
    """The same run, with the z(0) that everybody drew."""
    charter, setups = net.charter, net.setups
    z0 = np.concatenate(
        [setup.iteration.z_of(peer.opening) for setup, peer in zip(setups, net.peers, strict=True)]  # by source
    )
    unit = float(setups[0].iteration.parameters.unit)
    p = charter.parameters
    start = z0 * (unit if charter.objective == "mean" else 1.0)
    method = midst.Consensus(c=p.c, theta=p.theta, mu=p.mu, sigma=p.sigma, z0=start, stop=midst.After(400))
    return midst.solve(charter.problem(VALUES), method, record="audit").trace


@pytest.mark.parametrize("settings", [{}, {"objective": "mean"}, {"objective": "maximum"}, {"definition": "any"}])
def test_of_an_iteration_it_has_what_this_participant_sent(settings: dict[str, Any]) -> None:
    for i in (0, 3):
        net = MemoryNetwork(charter_of(n=5, method="consensus", **settings), VALUES)
        simulated = simulate(net)
        own = run(net, i)
        assert own.own == i
        said = [net.setups[i].codec.decode(frame) for k, _, frame in net.sent if k == i]
        assert own.iterations == max(each.message.round for each in said if isinstance(each, StepFrame))
        assert own.segments is not None
        assert simulated.segments is not None
        assert set(own.segments.node.tolist()) == {i}
        assert np.isnan(np.delete(own.x, i, axis=1)).all(), "nothing of others"
        assert own.values is None
        there = simulated.segments
        for k, (start, stop) in enumerate(zip(own.segments.start, own.segments.stop, strict=True)):
            [same] = np.flatnonzero((there.node == i) & (there.start == start))
            assert there.branch[same] == own.segments.branch[k]
            assert there.stop[same] == stop or stop == own.iterations
            if there.stop[same] == stop:
                assert (there.low[same], there.high[same]) == (own.segments.low[k], own.segments.high[k])


@pytest.mark.parametrize("settings", [{}, {"objective": "mean"}])
def test_its_bits_are_those_of_the_simulation(settings: dict[str, Any]) -> None:
    """Of the iteration; what totals tell comes on top, and who hears others too makes more of them."""
    net = MemoryNetwork(charter_of(n=5, method="consensus", **settings), VALUES)
    simulated = simulate(net)
    own = run(net, 2)
    seen = audit(own, Adversary(), PRIOR)
    whole = audit(cut_short(simulated, own.iterations), Adversary(), PRIOR)
    assert seen.honest == 1
    assert [node["node"] for node in seen.to_dict()["nodes"]] == [net.charter.names[2]]
    if settings:
        assert (seen.kind, seen.bits[2]) == ("exact", pytest.approx(whole.bits[2]))
    else:
        assert seen.kind == "lower bound"
        assert seen.bits[2] >= whole.bits[2] - 1e-9


def cut_short(trace: Trace, iterations: int) -> Trace:
    """The same record as if it had ended earlier."""
    segments = trace.segments
    assert segments is not None
    kept = segments.start < iterations
    cut = {name: column[kept] for name, column in vars(segments).items()}
    cut["stop"] = np.minimum(cut["stop"], iterations)
    first = trace.t < iterations
    return replace(
        trace,
        iterations=iterations,
        segments=type(segments)(**cut),
        t=trace.t[first],
        x=trace.x[first],
        branch=trace.branch[first],
    )


def test_a_session_taken_up_again_is_recorded_from_its_beginning() -> None:
    net = MemoryNetwork(charter_of(n=5, method="consensus"), VALUES)
    whole = OwnRecord(net.setups[1])
    net.peers[1]._watch = lambda peer: whole.see(peer.exchange)
    for _ in range(6):
        net.pass_time()
        net.deliver(most=40)
    again = OwnRecord(net.setups[1])
    begun = resume(net.setups[1], Journal(net.files[1], "journal"), lambda n: bytes(n), again.see)
    assert isinstance(begun, Session)
    assert whole._last is not None
    assert again._last is not None
    assert (again._last[0], again._last[1].tolist()) == (whole._last[0], whole._last[1].tolist())


@pytest.mark.parametrize("settings", [{}, {"resolution": 0.25}, {"pooled": True}])
def test_a_search_is_audited_as_its_simulation_is(tmp_path: Path, settings: dict[str, Any]) -> None:
    values = [[4.25, 1.0], [-3.0], [0.5, 6.0, 2.0], [1.75], [-7.5, 9.0]] if "pooled" in settings else VALUES
    net = MemoryNetwork(charter_of(n=5, method="search", **settings), values)
    path = tmp_path / "own.npz"
    run(net, 0).save(path)
    charter = net.charter
    problem = midst.Problem(
        charter.graph,
        values,
        objective=charter.goal,
        bounds=(-10, 10),
        resolution=charter.resolution,
        pooled=charter.pooled,
    )
    simulated = audit(midst.solve(problem, midst.Search(), record="audit").trace, None, PRIOR)
    found = audit(load(path), None, PRIOR)
    assert found.bits[0] == pytest.approx(simulated.bits[0])
    assert (found.lower[0], found.upper[0]) == (simulated.lower[0], simulated.upper[0])
    assert np.isnan(found.bits[1:]).all()
    answer = net.known.get(0) or net.peers[0].ending
    assert isinstance(answer, Answer)
    later = audit(record_of_answer(charter, 0, answer), None, PRIOR)
    assert later.bits[0] == found.bits[0]


def test_of_an_iteration_that_is_over_nothing_is_left() -> None:
    net = MemoryNetwork(charter_of(n=5, method="consensus"), VALUES)
    [answer, *_] = net.run()
    with pytest.raises(InputError, match="nothing is left of its iteration"):
        record_of_answer(net.charter, 0, answer)


def test_it_is_not_asked_of_those_who_hear_less_or_are_the_adversary() -> None:
    net = MemoryNetwork(charter_of(n=5, method="consensus"), VALUES)
    own = run(net, 2)
    for adversary in (
        Adversary(init="sealed"),
        Adversary((1, 3), eavesdrops=False),
        Adversary((net.charter.names[2],)),
    ):
        with pytest.raises(InputError, match="one participant's record"):
            audit(own, adversary, PRIOR)

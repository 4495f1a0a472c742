"""Every byte that is sent is accounted for, and a coalition's own logs make the view that the audit measures."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from accounting import CONTROL, account, read_log
from processes import network
from raw_messages import Messages
from simnet.faults import NONE, ROUGH
from simnet.trial import make_setups, random_charter
from simnet.world import World

import midst
from midst import Consensus, Exact, Search, graphs
from midst.net.answer import Answer
from midst.net.wire import Control, edge_digest
from midst.privacy.adversaries import Adversary
from midst.privacy.views import SHORTEST, view
from midst.protocol.message import Message
from midst.protocol.search import Rules
from midst.protocol.step import next_z


class Overheard(World):
    """A network of which every frame is kept, also those that get lost."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.sent = []

    def _send(self, i, j, frame):
        self.sent.append((i, j, frame))
        super()._send(i, j, frame)


def overhear(seed, method, faults):
    charter, values = random_charter(seed, method)
    setups = make_setups(charter, values)
    world = Overheard(setups, seed, faults)
    ended = all(isinstance(end, Answer) for end in world.run())
    return charter, [float(np.ravel(own)[0]) for own in values], setups, world.sent if ended else []


def rules(charter, trace) -> Rules:
    opening = tuple(probe.edges[1:-1] for probe in trace.probes if probe.step == 0)
    return charter.search_rules([1] * len(charter.names), opening if trace.iterations else ())


def simulate(charter, values, z0):
    """The same run, from its z(0)."""
    problem = charter.problem(values)
    if charter.method == "search":
        return midst.solve(problem, Search(charter.arity, charter.spacing)).trace
    parameters = charter.parameters
    method = Consensus(parameters.c, mu=parameters.mu, sigma=parameters.sigma, z0=z0, stop=Exact())
    return midst.solve(problem, method, engine="reference", record="all").trace


def assert_views_agree(charter, values, setups, frames, adversary, heard_by=None):
    """The view of the trace, and that of what the coalition has heard or sent itself."""
    problem, everything = charter.problem(), Adversary()
    parameters = None if charter.method == "search" else charter.parameters
    all_of_it = Messages(problem, parameters, everything)
    for frame in frames:
        account(all_of_it, setups[0], frame)
    z0 = None
    if parameters is not None:
        ends = zip(problem.graph.source.tolist(), problem.graph.target.tolist(), strict=True)
        z0 = np.array([all_of_it._numbers[pair] for pair in ends])
    trace = simulate(charter, values, z0)
    messages = Messages(problem, parameters, adversary)
    for frame in frames if heard_by is None else heard_by:
        account(messages, setups[0], frame)
    if adversary.init == "sealed" and 0 < trace.iterations < SHORTEST:
        return
    own = {i: values[i] for i in adversary.check(charter.graph)}
    heard, seen = messages.view(rules(charter, trace), own), view(trace, adversary)
    assert [type(observation) for observation in seen.observations] == [
        type(observation) for observation in heard.observations
    ]
    for mine, other in zip(seen.observations, heard.observations, strict=True):
        for field in fields(mine):
            if isinstance(getattr(mine, field.name), float):
                assert getattr(mine, field.name) == pytest.approx(getattr(other, field.name), rel=1e-9, abs=1e-9)
            elif field.name != "held":
                assert getattr(mine, field.name) == getattr(other, field.name)
    if seen.messages is not None:
        np.testing.assert_array_equal(seen.messages, heard.messages)
    assert seen.published.cells == heard.published.cells
    assert seen.published.answer == heard.published.answer


def plain(charter):
    return charter.stop == "exact" and charter.coordinates == 1 and not charter.pooled and charter.resolution is None


@pytest.mark.parametrize("method", ["consensus", "search"])
@pytest.mark.parametrize("block", range(4))
def test_simulated_networks(method, block):
    """Random charters under faults: nothing is sent that no view counts, and the views agree."""
    compared = 0
    for seed in range(1000 + 10 * block, 1010 + 10 * block):
        charter, values, setups, frames = overhear(seed, method, ROUGH if seed % 2 else NONE)
        if not plain(charter) or not frames:
            if charter.coordinates == 1:
                everything = Messages(charter.problem(), charter.parameters, Adversary())
                for frame in frames:
                    account(everything, setups[0], frame)
            continue
        n, rng = len(charter.names), np.random.default_rng(seed)
        corrupt = rng.choice(n, rng.integers(1, n), replace=False).tolist()
        names = charter.graph.names(corrupt)
        for adversary in (Adversary(names, False), Adversary(names, True, "sealed"), Adversary()):
            assert_views_agree(charter, values, setups, frames, adversary)
            compared += 1
    assert compared


def test_maxima_and_digests_tell_nothing_new():
    """Each follows from z(0) and x, which are counted: maxima from those of the round before, a digest from its z."""
    charter, _, setups, frames = overhear(2006, "consensus", NONE)
    assert plain(charter)
    everything = Messages(charter.problem(), charter.parameters, Adversary())
    steps = {}
    for frame in frames:
        step = account(everything, setups[0], frame)
        if step is not None:
            steps[frame[0], frame[1], step.message.round] = step
    graph, stop_rule, node = charter.graph, setups[0].iteration.stop_rule, setups[0].iteration.node
    for (i, j, round), step in steps.items():
        if round < 2:
            assert step.maxima == stop_rule.empty()
            continue
        near = graph.neighbours(i).tolist()
        x = steps[i, j, round - 1].message.number
        own = [x, -x] if stop_rule.begins(round - 1) else []
        heard = [steps[k, i, round - 1].maxima for k in near]
        assert step.maxima == stop_rule.merge(steps[i, j, round - 1].maxima, own, heard)
    for i, j in {(i, j) for i, j, _ in steps if i < j}:
        z, mirror = steps[i, j, 0].message.number, steps[j, i, 0].message.number
        for round in range(1, max(at for a, b, at in steps if (a, b) == (i, j)) + 1):
            if round > 1:
                x, far = steps[i, j, round - 1].message.number, steps[j, i, round - 1].message.number
                z, mirror = (
                    next_z(z, mirror, -1, far, node.c, node.theta),
                    next_z(mirror, z, 1, x, node.c, node.theta),
                )
            digest = edge_digest(charter.digest, round, z, mirror)
            assert steps[i, j, round].digest == steps[j, i, round].digest == digest


def test_all_talk_is_known():
    assert set(CONTROL) == set(Control.__args__)
    for kind, carried in CONTROL.items():
        assert set(kind.__struct_fields__) == carried


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_logs_of_real_nodes(method, tmp_path: Path):
    """Five processes over TLS: what two of them have on record makes the view that the audit of a trace measures."""
    values = [4.25, 5.25, 6.25, 7.25, 8.25]
    with network(tmp_path, graphs.ring(5), values, method=method, bounds=[0, 10]) as net:
        script = str(Path(__file__).parent / "accounting.py")
        logs = [tmp_path / f"{name}.log" for name in net.charter.names]
        started = [
            net.start(name, within=[sys.executable, script, str(log)])
            for name, log in zip(net.charter.names, logs, strict=True)
        ]
        assert [one.wait(90).answer["value"] for one in started] == [6.25] * 5
        setups = net.setups()
    frames = [frame for log in logs for frame in read_log(log)]
    coalition = Adversary(net.charter.names[1:3], eavesdrops=False)
    own = [frame for i in (1, 2) for frame in read_log(logs[i])]
    assert_views_agree(net.charter, values, setups, frames, coalition, heard_by=own)


def test_a_message_that_the_audit_does_not_know_is_caught():
    """The check can fail: a trace that leaves out what was sent makes another view."""
    charter, values, setups, frames = overhear(2006, "consensus", NONE)
    steps = [frame for frame in frames if frame[2][:1] == b"S"]
    last = max(setups[0].codec.decode(frame[2]).message.round for frame in steps)
    extra = setups[0].codec.decode(steps[-1][2])
    forged = setups[0].codec.encode_step(Message(last + 1, extra.message.number), extra.digest, extra.maxima)
    with pytest.raises(AssertionError):
        assert_views_agree(charter, values, setups, [*frames, (*steps[-1][:2], forged)], Adversary())

"""Forecasts hold: rounds, bytes and bits of sessions over other data than those that a forecast is made from.

The truth comes from real participants in memory, with real frames and proofs, from TLS between real keys, from the
audit, and from real processes. None of it knows how a forecast is made.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from memory_network import MemoryNetwork
from simnet.notary import SimNotary

from midst import Consensus, Problem, Search, graphs, solve
from midst.errors import MidstWarning
from midst.net.charter import make_charter
from midst.net.identity.keys import make_identity
from midst.net.setup import make_setup
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import audit
from midst.privacy.priors import Uniform
from midst.studies.expectation import forecast

MORE = max(1, int(os.environ.get("MIDST_RUNS", "0")) // 500)
LOW, HIGH = -40.0, 1200.0

SHAPES = {  # in shares of the bounds
    "even": lambda rng, n: rng.random(n),
    "triangle": lambda rng, n: rng.triangular(0, 0.2, 1, n),
    "in the middle": lambda rng, n: rng.normal(0.5, 0.02, n),
    "off it": lambda rng, n: rng.normal(0.71, 0.01, n),
    "near an end": lambda rng, n: 0.05 * rng.exponential(1, n),
    "at the other end": lambda rng, n: rng.beta(8, 2, n),
    "skewed": lambda rng, n: 0.08 * np.exp(rng.normal(0, 0.8, n)),
    "a heavy tail": lambda rng, n: 0.01 * (1 + rng.pareto(1.2, n)),
    "two clusters": lambda rng, n: np.where(rng.random(n) < 0.4, rng.normal(0.1, 0.01, n), rng.normal(0.7, 0.05, n)),
    "tied": lambda rng, n: np.round(rng.normal(0.4, 0.1, n), 1),
}
SETTINGS = {  # how many sessions: 200 in all, and some of lists
    "ring": (20, graphs.ring(5), {}),
    "complete, resolution": (15, graphs.complete(5), {"resolution": 0.5, "arity": 7}),
    "complete, no proofs": (73, graphs.complete(5), {"verify": False, "arity": 1}),
    "15, no proofs": (50, graphs.rgg(15, rng=1), {"verify": False}),
    "15, proofs": (2, graphs.rgg(15, rng=1), {"resolution": 0.01}),
    "iteration": (40, graphs.ring(5), {"method": "consensus", "verify": False}),
    "pooled": (10, graphs.ring(5), {"verify": False, "pooled": True}),
    "statistics": (2, graphs.ring(5), {"statistics": ["median", "mean", "p95"], "resolution": 1.0}),
}
LISTS, LIST = ("pooled", "statistics"), 20  # values of a participant, where it has a list


def values_of(shape, n, seed):
    share = np.clip(SHAPES[shape](np.random.default_rng([20_000, seed]), n), 0, 1)
    return np.round(LOW + (HIGH - LOW) * share, 4)


def charter_of(graph, **settings):
    """As `midst up` makes it."""
    names = [f"node{i}" for i in range(graph.n)]
    people = [
        {"name": name, "fingerprint": f"sha256:{i:064x}", "address": f"h:{i + 1}"} for i, name in enumerate(names)
    ]
    edges = [[names[i], names[j]] for i, j in zip(graph.source, graph.target, strict=True) if i < j]
    plain = {"session": "s", "participants": people, "edges": edges, "method": "search", "bounds": [LOW, HIGH]}
    return make_charter(plain | settings, "charter")


class LongNotary(SimNotary):
    """Signs as in a simulation, with certificates as long as real ones."""

    size = 0

    @property
    def certificate(self):
        return super().certificate.ljust(self.size)

    def sign(self, data):
        return SimNotary(self.number).sign(data)

    def verifier(self, number, certificate):
        return super().verifier(number, certificate.rstrip())


class Link:
    """TLS between two real keys, in memory; counts what crosses the wire."""

    def __init__(self, one, other):
        one, other = (replace(a, trusted=(b.certificate_file,)) for a, b in ((one, other), (other, one)))
        self.wires = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2)]
        self.ends = [
            identity.context(server=k == 0).wrap_bio(*self.wires[k], server_side=k == 0)
            for k, identity in enumerate((one, other))
        ]
        self.bytes = 0
        for end in (1, 0, 1, 0, 1):
            self._try(self.ends[end].do_handshake)
        for end in (0, 1):
            self.send(end, bytes(9))  # the transport's welcome
        for end in (0, 1):
            self._try(self.ends[end].unwrap)

    def send(self, end, frame):
        self.ends[end].write(len(frame).to_bytes(4, "big") + frame)
        self._carry()

    def _try(self, action):
        with suppress(ssl.SSLError):  # it waits for the other end
            action()
        self._carry()

    def _carry(self):
        for k, (_, leaving) in enumerate(self.wires):
            sent = leaving.read()
            self.wires[1 - k][0].write(sent)
            self.bytes += len(sent)


@pytest.fixture(scope="module")
def wire(tmp_path_factory):
    """Bytes of a certificate, of a link without frames, and around a frame."""
    folder = tmp_path_factory.mktemp("keys")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MidstWarning)
        one, other = (make_identity(f"node{i}", folder / str(i), days=1) for i in range(2))
    link = Link(one, other)
    return len(one.certificate), link.bytes


def session(charter, values, wire):
    """The answer, and the bytes of each node, of a session in memory."""
    certificate, link = wire
    LongNotary.size = certificate
    people = enumerate(zip(charter.names, values, strict=True))
    setups = [make_setup(charter, name, value, LongNotary(i)) for i, (name, value) in people]
    network = MemoryNetwork(charter, values, setups=setups)
    answers = network.run()
    carried = link * charter.graph.degree
    for i, j, frame in network.sent:
        records = -(-(len(frame) + 4) // 16384)
        carried[[i, j]] += len(frame) + 4 + 22 * records
    return answers[0], carried


def is_within(figure, ends):
    return ends[0] - 1e-9 <= figure <= ends[1] + 1e-9


def compare(setting, wire):
    """Of each figure, of every session in turn, whether it is within the forecast."""
    count, graph, given = SETTINGS[setting]
    charter = charter_of(graph, **given)
    size = LIST if charter.has_lists else 1
    foretold = forecast(charter, [size] * graph.n)
    hits = {name: [] for name in ("rounds", "probes", "bytes", "bits")}
    prior, curious = Uniform(LOW, HIGH), Adversary(corrupt=(0,), eavesdrops=False)
    for k in range(count * MORE):
        values = values_of(list(SHAPES)[k % len(SHAPES)], graph.n * size, k)
        answer, carried = session(charter, np.split(values, graph.n), wire)
        hits["rounds"].append(is_within(answer.rounds, foretold["rounds"]))
        hits["probes"].append(is_within(answer.probes, foretold["probes"]))
        hits["bytes"].append(np.mean([is_within(each / 1000, foretold["kB"]) for each in carried]))
        if charter.has_lists:
            continue
        problem = Problem(graph, values, bounds=(LOW, HIGH), resolution=given.get("resolution"))
        method = Search(given.get("arity", 3)) if charter.method == "search" else Consensus()
        result = solve(problem, method, rng=k, record="audit")
        if charter.method == "search":
            assert (result.rounds, result.probes) == (answer.rounds, answer.probes)
        leak = audit(result.trace, curious, prior, attacks=False)
        hits["bits"].append(is_within(leak.mean_bits, foretold["bits of value"]))
    return hits


@pytest.mark.torture
def test_200_sessions_over_other_data_take_what_was_foretold(wire):
    """Nine of ten of all rounds, probes, bytes and bits, over all kinds of charters of one value each."""
    found = [compare(setting, wire) for setting in SETTINGS if setting not in LISTS]
    for figure in found[0]:
        hits = [hit for one in found for hit in one[figure]]
        assert len(hits) == 200 * MORE
        assert np.mean(hits) >= 0.9, (figure, [np.mean(one[figure]) for one in found])


@pytest.mark.parametrize("setting", LISTS)
def test_sessions_of_lists_take_what_was_foretold(setting, wire):
    hits = compare(setting, wire)
    assert min(np.mean(each) for each in hits.values() if each) >= 0.9, hits


def test_bytes_of_every_node_are_foretold_by_its_place(wire):
    """Within the part that a forecast allows for; the busiest node carries much more than the others."""
    from midst.engines.searching import search_values
    from midst.net.sizes import carried_by_each, step_bytes
    from midst.protocol.votes import vote_bytes

    charter = charter_of(graphs.rgg(9, rng=3))
    values = values_of("skewed", 9, 1)
    rules = charter.search_rules([1] * 9)
    steps = search_values(rules, rules.keys.keys(values), np.ones(9, np.int64))[1]
    says = [vote_bytes(step.question, 1) for step in steps]
    foretold = carried_by_each(charter.graph, 5, says, 0, step_bytes(2))
    _, carried = session(charter, values, wire)
    assert np.abs(foretold / carried - 1).max() < 0.05
    assert carried.max() > 1.5 * carried.min()


PROCESSES = {
    "ring": ("ring", {}, ()),
    "complete": ("complete", {"resolution": 0.5, "arity": 1}, ("--resolution", "0.5", "--arity", "1")),
    "iteration": ("ring", {"method": "consensus"}, ("--method", "consensus")),
    "no proofs": ("complete", {"verify": False}, ("--no-verify",)),
}


@pytest.mark.parametrize("case", PROCESSES)
def test_real_processes_take_what_was_foretold(case, tmp_path):
    kind, given, options = PROCESSES[case]
    foretold = forecast(charter_of(graphs.make(kind, 5), **given), [1] * 5)
    values = tmp_path / "values.txt"
    values.write_text("\n".join(map(repr, values_of("skewed", 5, 7).tolist())))
    line = [sys.executable, "-m", "midst", "up", "--graph", kind, "--values", str(values), f"--bounds={LOW}:{HIGH}"]
    done = subprocess.run([*line, *options, "--json"], capture_output=True, text=True, check=True, timeout=300)
    told = json.loads(done.stdout)
    assert is_within(told["rounds"], foretold["rounds"])
    assert is_within(told["probes"], foretold["probes"])
    assert is_within(len(told["exposed"]), foretold["exposed"])
    assert is_within(told["bytes_per_node"] / 1000, foretold["kB"])

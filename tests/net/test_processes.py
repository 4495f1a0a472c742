"""`midst node` in processes of their own, and the trajectory of a network against the reference engine's."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import urllib.request
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from parties import free_port
from processes import Network, Shelf, check_journals, network, until
from simnet.faults import ROUGH
from simnet.notary import SimNotary
from simnet.world import World

import midst
from midst import graphs
from midst.engines import reference
from midst.engines.searching import search_values
from midst.errors import Aborted
from midst.graphs import Graph
from midst.net.answer import Answer
from midst.net.driver import Driver
from midst.net.identity.keys import load_identity
from midst.net.journal import DiskFile, Journal
from midst.net.peer import Peer
from midst.net.session import Session, resume
from midst.net.setup import Opening, Setup, make_setup
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import Endpoint
from midst.protocol.search import SearchState
from midst.system import System, assemble

pytestmark = pytest.mark.timeout(300)


def make(kind: str, n: int) -> Graph:
    return graphs.make(kind, n, rng=np.random.default_rng(4))


def draw(n: int, *more: int) -> Any:
    return np.random.default_rng(11).uniform(0, 100, (n, *more))


# Processes


@pytest.mark.parametrize("method", ["consensus", "search"])
@pytest.mark.parametrize(("kind", "n"), [("ring", 5), ("rgg", 15)])
def test_everybody_prints_the_exact_median(tmp_path: Path, kind: str, n: int, method: str) -> None:
    values = draw(n)
    with network(tmp_path, make(kind, n), values, method=method) as net, Shelf(net) as shelf:
        found = [one.answer for one in net.run()]
    assert {one["value"] for one in found} == {float(np.median(values))}
    assert [one["name"] for one in found] == list(net.charter.names)
    assert len({one["rounds"] for one in found}) == 1
    half = {"below": n // 2, "above": n // 2, "total": n}
    assert all(one["certified"] and one["bound"] == 0 and one["counts"] == [half] for one in found)
    assert len({one["probes"] for one in found}) == 1
    if method == "search":
        assert not any(one["exposed"] for one in found)
    assert sum(one["sent"] for one in found) == sum(one["received"] for one in found) > 0
    steps = (found[0]["probes"] + 2) * n
    iterated = found[0]["rounds"] - (found[0]["probes"] + 2) * net.charter.graph.diameter()
    assert check_journals(net, shelf) == len(net.charter.graph.source) * iterated + steps


def test_a_mean_ends_by_residuals_and_everybody_prints_the_same(tmp_path: Path) -> None:
    values = draw(4)
    with network(tmp_path, make("ring", 4), values, objective="mean", tolerance=1e-9) as net:
        found = [one.answer for one in net.run()]
    assert len({(one["value"], one["bound"], one["rounds"]) for one in found}) == 1
    assert abs(found[0]["value"] - values.mean()) <= found[0]["bound"] <= 1e-9 * 100
    assert found[0]["counts"] == []


def test_a_neighbour_that_goes_away_is_said_and_counted(tmp_path: Path) -> None:
    """p0 - p1 - p2, of whom p2 never comes and p0 goes again."""
    with network(tmp_path, make("path", 3), draw(3)) as net:
        port = free_port()
        staying = net.start("p1", "--metrics", f"127.0.0.1:{port}", "--log", "json")
        going = net.start("p0")
        until(lambda: links(port) == 1)
        going.kill()
        until(lambda: links(port) == 0)
        staying.signal(signal.SIGTERM)
        events = [json.loads(line)["event"] for line in staying.wait().err.splitlines() if line.startswith("{")]
    assert [event for event in events if "linked" in event] == ["linked", "unlinked"]


def links(port: int) -> int | None:
    """What a node's page says."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
            return int(re.findall(rb"^midst_links (\d+)$", page.read(), re.MULTILINE)[0])
    except OSError:
        return None


def test_a_vector_is_one_median_a_coordinate(tmp_path: Path) -> None:
    values = draw(3, 2)
    with network(tmp_path, make("path", 3), values, coordinates=2) as net:
        found = [one.answer for one in net.run()]
    assert all(one["value"] == np.median(values, axis=0).tolist() for one in found)


@pytest.mark.parametrize("verify", [False, True])
def test_a_search_of_lists(tmp_path: Path, verify: bool) -> None:
    lists = [[1.5, 2.5, 99.0], [40.0], [7.0, 7.0, 7.0, 8.0]]
    settings = {"method": "search", "pooled": True, "bounds": None, "resolution": 0.5, "verify": verify}
    with network(tmp_path, make("path", 3), lists, **settings) as net:
        found = [one.answer for one in net.run()]
    assert {one["value"] for one in found} == {7.0}
    assert found[0]["counts"] == [{"below": 2, "above": 3, "total": 8}]


def test_a_search_and_a_simulation_ask_the_same_and_are_told_the_same(tmp_path: Path) -> None:
    """Probes, totals and answer over TLS, in the fault simulator, and of the engine that has all values at hand."""
    values = draw(6)
    settings = {"method": "search", "objective": "quantile", "quantile": 0.3, "arity": 2}
    with network(tmp_path, make("rgg", 6), values, weights=(1, 2, 1, 1, 3, 1), **settings) as net:
        charter = net.charter
        endings = asyncio.run(live(net, tuple(net.setups()), seed=1))[0]
    over_tls = [ending for ending in endings if isinstance(ending, Answer)]
    notaries = [SimNotary(i) for i in range(6)]
    setups = [make_setup(charter, *each) for each in zip(charter.names, values, notaries, strict=True)]
    simulated = World(setups, 3, ROUGH).run()
    rules = charter.search_rules([1] * 6)
    weights = np.array([one.weight for one in charter.participants])
    search, steps = search_values(rules, charter.keys.keys(values), weights)
    for found in [*over_tls, *simulated]:
        assert isinstance(found, Answer)
        assert found.transcript is not None
        assert found.transcript.totals == tuple(step.totals for step in steps)
        assert found.value == (search.value(0),)
        assert found.proof == (search.proof(0),)
        assert found.probes == len(steps)
        played = SearchState.begin(rules)
        for step, totals in zip(steps, found.transcript.totals, strict=True):
            assert played.question == step.question
            played = played.fold(totals)
    assert not any(found.contradicted for found in over_tls)


def test_another_charter_is_refused_by_what_differs(tmp_path: Path) -> None:
    with network(tmp_path, make("path", 2), draw(2)) as net:
        first = net.start("p0")
        until(net.journal("p0").exists)  # so it has read the charter
        net.charter_file.write_text(f"sigma = 3.5\n{net.charter.to_toml()}")
        ends = net.start("p1").wait(), first.wait()
    for end, other in zip(ends, ("p0", "p1"), strict=True):
        assert (end.code, end.out) == (4, "")
        assert f"aborted: {other} refuses (charter): " in end.err
        assert f"differs from {other}'s in: sigma;" in end.err


def test_values_from_standard_input_and_from_a_command(tmp_path: Path) -> None:
    with network(tmp_path, make("path", 3), [0, 0, 70.5]) as net:
        (tmp_path / "value").write_text("40.5\n")
        piped = net.start("p0", given=[], stdin="# mine\n10.5\n")
        asked = net.start("p1", given=["--value-command", f"cat '{tmp_path / 'value'}'"])
        filed = net.start("p2")
        found = [one.wait().answer for one in (piped, asked, filed)]
    assert {one["value"] for one in found} == {40.5}


# The trajectory


def joined(setups: tuple[Setup, ...], openings: tuple[Opening, ...], values: Any) -> System:
    """The system that the reference engine runs, with what each participant drew as its z(0)."""
    charter = setups[0].charter
    start = np.concatenate([setup.iteration.z_of(opening) for setup, opening in zip(setups, openings, strict=True)])
    return replace(assemble(charter.problem(values), charter.parameters, start), start=start)


async def live(
    net: Network, setups: tuple[Setup, ...], seed: int
) -> tuple[list[Answer | Aborted], list[Any], tuple[Opening, ...]]:
    """Everybody over TLS, in one process: how it ended, every x, and what was drawn."""
    seen: list[Any] = [[] for _ in setups]
    drivers, files = [], []
    for i, setup in enumerate(setups):

        def watch(peer: Peer, i: int = i) -> None:
            state = peer.exchange.state
            if state is not None and state.x is not None and len(seen[i]) < state.round:
                seen[i].append(np.array(state.x))

        identity = load_identity(net.key(setup.name))
        transport = TlsTransport(Endpoint(net.charter, identity, i, setup.codec.largest()))
        files.append(DiskFile(net.journal(setup.name)))
        entropy = Random(f"{seed}/{i}").randbytes
        session = resume(setup, Journal(files[-1], setup.name), entropy)
        assert isinstance(session, Session)
        drivers.append(Driver(session, transport, watch=watch))
    endings = await asyncio.gather(*(driver.run() for driver in drivers))
    for file in files:
        file.close()
    openings = tuple(driver.peer.opening for driver in drivers)
    return endings, seen, openings


@pytest.mark.parametrize(
    ("kind", "n", "settings"),
    [
        ("ring", 5, {}),
        ("rgg", 8, {"objective": "quantile", "quantile": 0.3, "c": 0.07, "theta": 0.4}),
        ("star", 5, {"objective": "mean", "tolerance": 1e-9}),
        ("ring", 4, {"coordinates": 3}),
        ("complete", 5, {"mu": 10.0}),
        ("path", 4, {"objective": "mean", "coordinates": 2, "bounds": [-1e6, 1e6], "mu": 2e5, "sigma": 1e5}),
        ("ring", 5, {"objective": "quantile", "quantile": 0.6, "scale": 0.1, "bounds": None}),
    ],
)
def test_the_trajectory_is_the_reference_engines_bit_for_bit(
    tmp_path: Path, kind: str, n: int, settings: dict[str, Any]
) -> None:
    shape = (settings["coordinates"],) if "coordinates" in settings else ()
    values = draw(n, *shape) * (1e-2 if "scale" in settings else 1)
    with network(tmp_path, make(kind, n), values, **settings) as net:
        setups = tuple(net.setups())
        endings, seen, openings = asyncio.run(live(net, setups, seed=5))
    found = [ending for ending in endings if isinstance(ending, Answer)]
    assert (len(found), len({one.value for one in found})) == (n, 1)
    rounds = {one.rounds - (one.probes + 2) * net.charter.graph.diameter() * bool(one.probes) for one in found}
    assert len(rounds) == 1
    # the x of the last iteration is not sent: nothing is asked of it
    made = rounds.pop()
    assert [len(one) for one in seen] == [made] * n
    engine = reference.iterate(joined(setups, openings, values))
    for t in range(made):
        x, _ = next(engine)
        assert np.array([one[t] for one in seen]).tobytes() == x.tobytes(), f"x({t})"


def cell_of(trace: midst.Trace) -> tuple[int, int]:
    """The cell that holds the answer after all probes: of more than one key, the sum was asked for too."""
    (key,) = (probe.keys.key(trace.answer[0]) for probe in trace.probes[:1])
    edges = {edge for probe in trace.probes for edge in probe.edges}
    return max(edge for edge in edges if edge < key), min(edge for edge in edges if edge >= key)


@pytest.mark.parametrize(
    "settings", [{}, {"objective": "quantile", "quantile": 0.3, "theta": 0.4}, {"resolution": 0.01}]
)
def test_a_network_turns_to_the_search_where_a_simulation_does(tmp_path: Path, settings: dict[str, Any]) -> None:
    """In the same iteration, with the same thresholds: so it asks the same, and is told the same."""
    values = draw(6)
    with network(tmp_path, make("ring", 6), values, **settings) as net:
        setups, charter = tuple(net.setups()), net.charter
        endings, _, openings = asyncio.run(live(net, setups, seed=7))
    found = endings[0]
    assert found is not None
    assert found.transcript is not None
    z0 = np.concatenate([setup.iteration.z_of(opening) for setup, opening in zip(setups, openings, strict=True)])
    public = {"objective": charter.goal, "bounds": charter.bounds, "resolution": charter.resolution}
    problem = midst.Problem(charter.graph, values, **public)
    solved = midst.solve(problem, method=midst.Consensus(theta=charter.theta, z0=z0), record="audit")
    assert solved.value == found.value[0]
    assert solved.rounds == found.rounds
    assert 1 + solved.iterations == found.rounds - (found.probes + 2) * charter.graph.diameter()
    told = tuple(probe.totals for probe in solved.trace.probes)  # but for the sum that is the answer
    assert told == found.transcript.totals[: len(told)]
    assert len(found.transcript.totals) == found.probes == solved.probes
    a, b = cell_of(solved.trace)
    assert len(told) == found.probes - (b - a > 1)


def test_another_z0_gives_another_trajectory(tmp_path: Path) -> None:
    values = draw(3)
    seen = []
    for seed in (1, 2):
        with network(tmp_path / str(seed), make("ring", 3), values, session=f"s{seed}") as net:
            setups = tuple(net.setups())
            seen.append(asyncio.run(live(net, setups, seed))[1])
    assert seen[0][0][0] != seen[1][0][0]

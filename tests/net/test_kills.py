"""`midst node` killed, stopped, out of disk and run again: no wrong answer, no second z(0), always an end."""

from __future__ import annotations

import os
import re
import resource
import signal
import struct
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from processes import (
    Network,
    Outcome,
    Running,
    Shelf,
    check_journals,
    network,
    nobody_calls,
    port_of,
    read_journal,
    rounds_done,
    until,
)

import midst
from midst import graphs
from midst.net.journal import MAGIC
from midst.net.records import Began, Broken, Ended, Met

pytestmark = pytest.mark.timeout(300)

TORTURE = "MIDST_RUNS" in os.environ
KILLS = max(200, int(os.environ["MIDST_RUNS"]) // 50) if TORTURE else 6
METHODS = ["consensus", "search"]

# Where weights differ no sum is asked, so a search by key alone goes on to the last bit: sixty-odd steps.
LONG_SEARCH: dict[str, Any] = {"method": "search", "arity": 1, "spacing": "key", "bounds": None}


def ring(n: int) -> graphs.Graph:
    return graphs.make("ring" if n > 2 else "path", n, rng=np.random.default_rng(0))


def draw(n: int, seed: int = 3) -> Any:
    return np.random.default_rng(seed).uniform(0, 100, n)


def weights(n: int, method: str) -> tuple[int, ...] | None:
    return (3, *(1,) * (n - 1)) if method == "search" else None


def the_only(outcomes: list[Outcome]) -> Any:
    """The value that all of them print."""
    (value,) = {one.answer["value"] for one in outcomes}
    return value


# Killed at random


@pytest.mark.torture
@pytest.mark.timeout(300 + 60 * KILLS)
def test_kills_at_random(tmp_path: Path) -> None:
    """Sessions one after the other, until so many processes were killed while they ran."""
    rng = Random(20260)
    killed, session, hits = 0, 0, Counter[str]()
    while killed < KILLS:
        session += 1
        killed += torment(tmp_path / str(session), rng, min(KILLS - killed, 40), hits)
    assert hits["before round 0"] + hits["under way"] + hits["after the answer"] == killed
    assert hits["under way"] >= killed // 3


@pytest.mark.torture
@pytest.mark.timeout(300 + 60 * KILLS)
def test_kills_at_random_in_a_search(tmp_path: Path) -> None:
    rng = Random(20261)
    killed, session, hits = 0, 0, Counter[str]()
    while killed < KILLS:
        session += 1
        killed += torment(tmp_path / str(session), rng, min(KILLS - killed, 15), hits, "search")
    assert hits["under way"] >= killed // 4


def torment(folder: Path, rng: Random, kills: int, hits: Counter[str], method: str = "consensus") -> int:
    """One session, in which processes are killed, alone and together, and started again at once; how many."""
    n = rng.choice([5, 6, 7]) if TORTURE else 5
    values = np.array([rng.uniform(0, 100) for _ in range(n)])
    slow: dict[str, Any] = LONG_SEARCH
    if method == "consensus":
        slow = {"c": 1e-4} if rng.random() < 0.6 else {"objective": "mean", "c": 50.0, "tolerance": 1e-9}
    slow = slow | {"session": f"s{rng.getrandbits(32)}"}
    slow |= {"deadlines": {"start": 120, "wait": 90, "total": 900}}  # a start may take long where much else runs
    killed, openings = 0, {}
    with network(folder, ring(n), values, weights=weights(n, method), **slow) as net, Shelf(net) as shelf:
        running = {one.name: one for one in net.start_all("--log", "json")}
        while killed < kills and any(one.alive for one in running.values()):
            pause(net, rng, running)
            alive = [one for one in running.values() if one.alive]
            victims = rng.sample(alive, min(len(alive), rng.choice([1, 1, 1, 2, 3]), kills - killed))
            for one in victims:
                one.process.kill()
            for one in victims:
                end = one.wait()
                note(folder, one, end)
                if end.code == -signal.SIGKILL:
                    killed += 1
                    hits[whereabouts(net, one.name)] += 1
                    remember(net, one.name, openings)
                    running[one.name] = net.start(one.name, "--log", "json")
        outcomes = {name: one.wait(150) for name, one in running.items()}
    for name, end in outcomes.items():
        note(folder, running[name], end)
    for name, known in openings.items():
        assert set(shelf.openings(name)) == {known}
    assert check_journals(net, shelf) > 0
    check_answers(net, list(outcomes.values()))
    return killed


def note(folder: Path, one: Running, end: Outcome) -> None:
    """For whoever wants to know what happened."""
    with open(folder / "what-happened.txt", "a") as file:
        file.write(f"{end.err}{datetime.now(UTC).isoformat()} {one.name} {one.process.pid} ended: {end.code}\n")


def pause(net: Network, rng: Random, running: dict[str, Running]) -> None:
    """A moment, by the clock or by somebody's progress; so that kills fall into beginnings, and in between."""
    if rng.random() < 0.3:
        time.sleep(rng.choice([0.05, 1.0]) * rng.random())
        return
    name = rng.choice(list(running))
    size, more = length(net, name), rng.choice([1, 300, 8000]) * rng.random()
    until(lambda: length(net, name) > size + more or not running[name].alive, 60)


def length(net: Network, name: str) -> int:
    """Of a journal, in bytes."""
    return net.journal(name).stat().st_size if net.journal(name).exists() else 0


def whereabouts(net: Network, name: str) -> str:
    """How far a killed process had come, by its journal."""
    records = read_journal(net.journal(name)) if net.journal(name).exists() else []
    if records and isinstance(records[0], Ended):
        return "after the answer"
    return "under way" if rounds_done(net.journal(name)) else "before round 0"


def remember(net: Network, name: str, openings: dict[str, Any]) -> None:
    """What a killed process had drawn: the same at every death."""
    records = read_journal(net.journal(name)) if net.journal(name).exists() else []
    if records and isinstance(records[0], Began):
        assert openings.setdefault(name, records[0].opening) == records[0].opening


def check_answers(net: Network, outcomes: list[Outcome]) -> None:
    """The right answer, or an abort that names somebody; nothing else."""
    problem = midst.Problem(
        net.charter.graph,
        net.values,
        weights=[one.weight for one in net.charter.participants],
        objective=net.charter.goal,
    )
    found = [one.answer for one in outcomes if one.code == 0]
    assert len({(one["value"], one["rounds"]) for one in found}) <= 1
    for one in found:
        assert problem.distance(np.array(one["value"])) <= one["bound"] + 1e-14 * abs(one["value"])
    for one in outcomes:
        assert one.code in (0, 4), one.err
        if one.code == 4:
            last = one.err.splitlines()[-1]
            assert last.startswith("midst: aborted: ")
            assert any(name in last for name in net.charter.names)
            assert "waited" in last, "only a wait that was too long may end it; nobody did anything wrong"
    assert found, "restarts were quick, so somebody must have the answer"


# Killed on purpose


def under_way(net: Network, rounds: int = 10) -> dict[str, Running]:
    """Everybody, running, and so many rounds on."""
    running = {one.name: one for one in net.start_all()}
    until(lambda: all(rounds_done(net.journal(name)) >= rounds for name in running), 120)
    return running


def long_run(folder: Path, n: int = 3, method: str = "consensus", **settings: Any) -> Any:
    """Hundreds of rounds, or tens of steps of a search."""
    slow = LONG_SEARCH if method == "search" else {"c": 1e-4}
    linger = {"deadlines": {"linger": 5}}
    return network(folder, ring(n), draw(n), weights=weights(n, method), **slow | linger | settings)


def endless(folder: Path, n: int = 3, **settings: Any) -> Any:
    """A mean to a tolerance that is never reached."""
    return long_run(folder, n, objective="mean", tolerance=1e-300, **settings)


def answer_of(net: Network) -> float:
    """The value at the wanted rank, by sorting."""
    weighed = zip(net.values, net.charter.participants, strict=True)
    counted = [value for value, one in weighed for _ in range(one.weight)]
    return float(sorted(counted)[(len(counted) - 1) // 2])


@pytest.mark.parametrize("method", METHODS)
def test_power_failure(tmp_path: Path, method: str) -> None:
    with long_run(tmp_path, method=method) as net, Shelf(net) as shelf:
        for one in under_way(net).values():
            one.process.kill()
        before = {name: net.journal(name).read_bytes() for name in net.charter.names}
        assert the_only(net.run()) == answer_of(net)
    for name, data in before.items():
        assert any(data in path.read_bytes() for path in (tmp_path / "shelf").glob(f"{name}.*")), (
            "it went on from there"
        )
    check_journals(net, shelf)


@pytest.mark.parametrize("method", METHODS)
def test_a_write_cut_short_is_taken_back(tmp_path: Path, method: str) -> None:
    with long_run(tmp_path, method=method) as net, Shelf(net) as shelf:
        running = under_way(net)
        running["p1"].kill()
        path = net.journal("p1")
        with path.open("ab") as file:
            file.write(struct.pack("<I8s", 350, bytes(8)) + bytes(200))
        running["p1"] = net.start("p1")
        assert the_only([one.wait() for one in running.values()]) == answer_of(net)
    check_journals(net, shelf)


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    with endless(tmp_path, 2) as net:
        for one in under_way(net).values():
            one.kill()
        whole = net.journal("p1").read_bytes()
        for place in (len(MAGIC), len(whole) // 2):  # the first length, and somewhere
            data = bytearray(whole)
            data[place] ^= 1
            net.journal("p1").write_bytes(data)
            with nobody_calls(port_of(net.charter, 0)):
                end = net.start("p1").wait()
            assert (end.code, end.out) == (2, "")
            assert "damaged; the session cannot be resumed, start a new one" in end.err
            assert len(end.err.splitlines()) == 1
            assert net.journal("p1").read_bytes() == data, "nothing was drawn anew"


@pytest.mark.parametrize("met", [True, False])
def test_a_lost_journal_is_refused(tmp_path: Path, met: bool) -> None:
    """Whether the node that has forgotten everything is welcomed first, or says hello first."""
    wait = 60 if met else 4
    with endless(tmp_path, deadlines={"wait": wait, "linger": 1}) as net:
        running = under_way(net)
        running["p1"].kill()
        first = read_journal(net.journal("p1"))[0]
        assert isinstance(first, Began)
        if not met:  # nobody is there who remembers it but in a journal
            running["p0"].kill()
            running["p2"].kill()
        net.journal("p1").unlink()
        running["p1"] = net.start("p1")
        if not met:
            until(lambda: length(net, "p1") > 0)
            running |= {name: net.start(name) for name in ("p0", "p2")}
        ends = {name: one.wait() for name, one in running.items()}
        drawn = read_journal(net.journal("p1"))[0]
        assert isinstance(drawn, Began)
        assert drawn.opening.z != first.opening.z
        for name, end in ends.items():
            assert (end.code, end.out) == (4, "")
            lost = "p1 has lost its journal of this session and drew anew; start a new session" in end.err
            assert lost or (not met and f"{name} waited {wait} s for p" in end.err), "who met p1 too late waits in vain"
        for name in ("p0", "p2"):
            kept = net.journal(name).read_bytes()
            assert not any(drawn.opening.z[k : k + 8] in kept for k in range(0, len(drawn.opening.z), 8))
        blamed = [name for name in ("p0", "p2") if any(isinstance(r, Broken) for r in read_journal(net.journal(name)))]
        assert blamed
        again = net.start(blamed[0]).wait()
        assert again.code == 4
        assert "this session is over, start a new one" in again.err


def test_stopped_by_its_operator(tmp_path: Path) -> None:
    """Who types Ctrl-C withdraws: the others need not wait."""
    with long_run(tmp_path, 2) as net, Shelf(net) as shelf:
        running = under_way(net)
        running["p1"].signal(signal.SIGINT)
        for name, end in ((name, one.wait()) for name, one in running.items()):
            assert (end.code, end.out) == (4, "")
            said = "p1 was stopped by its operator"
            told = said if name == "p1" else f"p1 withdrew (stopped), and says: {said}"
            assert end.err.splitlines()[-1] == f"midst: aborted: {told}"
        assert the_only(net.run()) == min(net.values), "the same command goes on"
    check_journals(net, shelf)


def test_a_reboot_is_a_pause(tmp_path: Path) -> None:
    """SIGTERM: the others wait, and it goes on where it was."""
    with long_run(tmp_path, 2) as net, Shelf(net) as shelf:
        running = under_way(net)
        running["p1"].signal(signal.SIGTERM)
        end = running["p1"].wait()
        assert (end.code, end.out) == (143, "")
        assert re.search(r"midst: paused: p1 was stopped in round \d+; the same command goes on", end.err)
        running["p1"] = net.start("p1")
        assert the_only([one.wait() for one in running.values()]) == min(net.values)
    check_journals(net, shelf)


def test_nobody_comes(tmp_path: Path) -> None:
    with network(tmp_path, ring(3), draw(3), deadlines={"start": 3.5}) as net:
        end = net.start("p0").wait()
    assert (end.code, end.out) == (4, "")
    assert re.search(r"aborted: p0 waited \d s for p1, p2 in round 0 \(p\d: connection refused at 127.0.0.1:", end.err)


@pytest.mark.parametrize(
    "settings", [{"objective": "mean", "tolerance": 1e-300}, {"n": 5, "method": "search"}], ids=METHODS
)
def test_somebody_does_not_come_back(tmp_path: Path, settings: dict[str, Any]) -> None:
    """In a search everybody waits for it, neighbour or not, and says so."""
    with long_run(tmp_path, deadlines={"wait": 4, "linger": 1}, **settings) as net:
        running = under_way(net)
        running.pop("p1").kill()
        ends = {name: one.wait() for name, one in running.items()}
    for end in ends.values():
        assert (end.code, end.out) == (4, "")
        waited = re.search(r"waited (\d+) s for p1 in round ", end.err)
        assert waited, end.err
        assert int(waited[1]) >= 4  # more where the machine is busy: a clock is looked at now and then


# The disk


def test_full_from_the_start(tmp_path: Path) -> None:
    with network(tmp_path, ring(2), draw(2)) as net:
        with nobody_calls(port_of(net.charter, 1)):
            end = net.start("p0", within=["sh", "-c", 'ulimit -f 0; exec "$@"', "sh"]).wait()
        assert (end.code, end.out) == (1, "")
        assert end.err == "midst: error: File too large\n"
        assert length(net, "p0") == 0
        assert the_only(net.run()) == min(net.values)


def test_full_under_way(tmp_path: Path) -> None:
    with long_run(tmp_path, 2) as net, Shelf(net) as shelf:
        running = under_way(net)
        limit = length(net, "p1") + 2000
        resource.prlimit(running["p1"].process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        for end in (one.wait() for one in running.values()):
            assert (end.code, end.out) == (4, "")
            assert "p1 cannot write its journal (" in end.err
        assert length(net, "p1") <= limit
        check_journals(net, shelf)  # nothing was sent that is not on disk
        assert the_only(net.run()) == min(net.values)
    check_journals(net, shelf)


# Run again


@pytest.mark.parametrize("method", METHODS)
def test_after_the_end_the_answer_is_there_at_once(tmp_path: Path, method: str) -> None:
    with network(tmp_path, ring(3), draw(3), method=method) as net:
        first = [one.answer for one in net.run()]
        for name in net.charter.names:
            (record,) = read_journal(net.journal(name))
            assert isinstance(record, Ended), "the session's secrets are gone"
        with nobody_calls(*(port_of(net.charter, i) for i in range(3))):
            again = net.start("p1").wait().answer
    assert again["sent"] == again["received"] == 0
    known = ("name", "session", "objective", "value", "counts", "rounds", "probes", "exposed")
    assert [again[key] for key in known] == [first[1][key] for key in known]


def test_a_second_process_of_the_same_participant_is_refused(tmp_path: Path) -> None:
    with endless(tmp_path, 2) as net:
        running = under_way(net)
        end = net.start("p0").wait()
        assert (end.code, end.out) == (2, "")
        assert "another midst node is running this session" in end.err
        before = rounds_done(net.journal("p0"))
        until(lambda: rounds_done(net.journal("p0")) > before)
        assert all(one.alive for one in running.values())


@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_has_changed_is_refused(tmp_path: Path, method: str) -> None:
    """Under the same masks it would show by how much it has changed."""
    with endless(tmp_path, 3) if method == "consensus" else long_run(tmp_path, 3, method) as net:
        for one in under_way(net).values():
            one.kill()
        before = read_journal(net.journal("p0"))
        with nobody_calls(port_of(net.charter, 1)):
            end = net.start("p0", given=[], stdin="31.25\n").wait()
        assert (end.code, end.out) == (2, "")
        assert end.err == (
            "midst: error: the value of p0 is not the one this session began with; start a new session\n"
        )
        assert read_journal(net.journal("p0")) == before  # whose last record may have a mark now


@pytest.mark.parametrize("method", METHODS)
def test_killed_and_started_again(tmp_path: Path, method: str) -> None:
    with long_run(tmp_path, method=method) as net, Shelf(net) as shelf:
        running = {one.name: one for one in net.start_all()}
        until(lambda: all(rounds_done(net.journal(name)) >= 10 for name in running), 60)
        running["p1"].kill()
        drawn = read_journal(net.journal("p1"))
        assert isinstance(drawn[0], Began)
        met = sum(isinstance(record, Met) for record in drawn)
        assert met == (0 if method == "search" else 2)  # of a search, announcements carry the instance numbers
        running["p1"] = net.start("p1")
        assert the_only([one.wait() for one in running.values()]) == answer_of(net)
    check_journals(net, shelf)

"""What the network costs on this machine: against a bare ping loop, to start, and with a hundred nodes.

    python -m bench.network [--quick] [--only PART …] [--out bench/results]

Prints Markdown, and writes it to network.md and the rows to network.json. Everything is real processes on loopback.
What is compared is measured in turn, several times, and the medians are compared: on a machine that others use too,
look at the ratios.

- `rounds`: rounds a second, and CPU time a round, of nodes that find nothing and so go on (consensus for a mean, over
  TLS), against `bench.ping` with the same graph, number of processes and bytes a frame. The journal is in memory
  (/dev/shm) or on the disk that holds the temporary files. A second bare loop puts as many bytes on that disk every
  round, and waits for them: what no node that keeps a journal can do without.
- `start`: `midst up`, the whole command, with its files where the system has temporary ones: in all, and CPU time of
  all processes. *Before*: the interpreter, imports, keys, charter, and leaving. *Connect*: from a node's first line of
  code to the first round of the slowest. *Rounds*: until the last has the answer. *End*: forking, and until all are
  gone.
- `hundred`: `midst up` with a hundred nodes, by both methods, and the memory of all its processes (proportional: shared
  pages once).
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import product
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Timer
from typing import Any

import bench.ping
import msgspec
import numpy as np
from bench.mpyc import CHARTER, put_down
from bench.tables import run_parts

from midst import graphs
from midst.graphs import Graph
from midst.net.charter_files import read_charter
from midst.net.driver import Driver
from midst.net.identity.keys import load_identity
from midst.net.journal import DiskFile, Journal
from midst.net.local import make_party
from midst.net.notary import CertifiedNotary
from midst.net.peer import Peer
from midst.net.session import Session, resume
from midst.net.setup import make_setup
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import Endpoint

Row = dict[str, Any]
Pace = tuple[float, float]  # seconds, and CPU seconds, a round
MIDST = [sys.executable, "-m", "midst"]
PATIENCE = 240  # seconds
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
LENGTH_BYTES = 4  # before every frame on midst's TLS stream
RECORD_BYTES, MARK_BYTES = 30, 8  # of a record of the journal besides what it holds, and of the mark behind it
REPEATS = 7
WARM = 200  # rounds
LEFT = 50  # rounds: who comes to the last one first ends the run for all


# Rounds a second


def against_ping(quick: bool) -> Iterator[Row]:
    """One row a graph and a loop."""
    repeats, rounds, nodes = (1, 400, 2) if quick else (REPEATS, 1_500, 5)
    disk, few = Path(tempfile.gettempdir()), WARM + rounds // 4
    loops: dict[str, Callable[[Graph], Row]] = {
        "bare ping": lambda graph: pace(graph, rounds, ping, None),
        "midst, journal in memory": lambda graph: pace(graph, rounds, go_on, MEMORY),
        "midst, journal on disk": lambda graph: pace(graph, few, go_on, disk),
        "bare ping, a record on disk": lambda graph: pace(graph, few, ping_and_keep, disk),
    }
    for kind in ("complete",) if quick else ("ring", "complete"):
        runs: dict[str, list[Row]] = {name: [] for name in loops}
        for _ in range(repeats):
            for name, loop in loops.items():
                runs[name].append(loop(graphs.make(kind, nodes)))
        usual = {name: median_row(several) for name, several in runs.items()}
        yardstick = usual["bare ping"]
        for name, row in usual.items():
            yield {
                "graph": f"{kind} of {nodes}",
                "method": "consensus, mean" if name.startswith("midst") else "",
                "loop": name,
                "rounds/s": row["rate"],
                "of bare ping": row["rate"] / yardstick["rate"],
                "CPU, µs a round and node": row["cpu"],
                "of bare ping's": row["cpu"] / yardstick["cpu"],
                "repetitions": repeats,
            }


def median_row(rows: Sequence[Row]) -> Row:
    """The median of every figure by itself."""
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def pace(graph: Graph, rounds: int, live: Callable[..., Pace], place: Path | None) -> Row:
    """Rounds a second by the slowest node, and the microseconds of CPU time that a round takes a node.

    Args:
        graph: who talks to whom.
        rounds: how many.
        live: a node's life; it has a process of its own, started anew, so that no two share more than programs.
        place: where journals go.
    """
    spawn = multiprocessing.get_context("spawn")
    results, together = spawn.SimpleQueue(), spawn.Barrier(graph.n)
    never_proved = {"method": "consensus", "objective": "mean", "tolerance": 1e-300, "rounds": rounds}
    with (
        make_party(graph, bounds=[-5.0, 5.0], **never_proved) as party,
        tempfile.TemporaryDirectory(dir=place) as journals,
    ):
        put_down(party)
        shared = (live, results, party.folder, Path(journals), together)
        processes = [spawn.Process(target=_process, args=(i, *shared), daemon=True) for i in range(graph.n)]
        for process in processes:
            process.start()
        try:
            for process in processes:
                process.join(PATIENCE)
        finally:
            for process in processes:
                process.kill()
        if any(process.exitcode != 0 for process in processes):
            raise RuntimeError("a node ended before its time")
        seconds, cpu = zip(*(results.get() for _ in processes), strict=True)
    return {"rate": 1 / max(seconds), "cpu": 1e6 * statistics.mean(cpu)}


def _process(i: int, live: Callable[..., Pace], results: Any, *shared: Any) -> None:
    results.put(live(i, *shared))


def go_on(i: int, folder: Path, journals: Path, together: Barrier) -> Pace:
    """A node of midst, from its first to its last round but for a few at both ends."""
    charter = read_charter(folder / CHARTER)
    name = charter.names[i]
    first, last = WARM, charter.rounds - LEFT
    times: dict[int, Pace] = {}  # when it first was in these rounds; a round may have several events

    def watch(peer: Peer) -> None:
        if peer.exchange.round in (first, last):
            times.setdefault(peer.exchange.round, (time.perf_counter(), time.process_time()))

    async def take_part() -> None:
        identity = load_identity(folder / name / f"{name}.key")
        value = float(np.random.default_rng(i).standard_normal())
        setup = make_setup(charter, name, value, CertifiedNotary(charter, identity))
        transport = TlsTransport(Endpoint(charter, identity, i, setup.codec.largest()))
        journal = Journal(DiskFile(journals / f"{name}.journal"), name)
        session = resume(setup, journal, os.urandom)
        assert isinstance(session, Session)
        await Driver(session, transport, watch=watch).run()

    asyncio.run(take_part())
    (began, cpu_began), (ended, cpu_ended) = times[first], times[last]
    return (ended - began) / (last - first), (cpu_ended - cpu_began) / (last - first)


def ping(i: int, folder: Path, journals: Path, together: Barrier) -> Pace:
    """A node of the bare loop, which waits for the others before its first round and after its last."""
    return _ping(i, folder, together, None)


def ping_and_keep(i: int, folder: Path, journals: Path, together: Barrier) -> Pace:
    """The same, with a record of everybody's frames put on disk every round, and a mark behind it."""
    return _ping(i, folder, together, journals)


def _ping(i: int, folder: Path, together: Barrier, journals: Path | None) -> Pace:
    charter = read_charter(folder / CHARTER)
    cpu: list[float] = []

    def gate(timeout: float) -> None:
        cpu.append(time.process_time())
        together.wait(timeout)
        cpu.append(time.process_time())

    name = charter.names[i]
    notary = CertifiedNotary(charter, load_identity(folder / name / f"{name}.key"))
    size = make_setup(charter, name, 0.0, notary).codec.step_bytes + LENGTH_BYTES
    plain, rounds = msgspec.to_builtins(charter), charter.rounds
    with ExitStack() as opened:
        file = None
        if journals is not None:
            file = opened.enter_context(open(journals / name, "wb", buffering=0))
        record = bytes(len(charter.neighbours(name)) * size + RECORD_BYTES)

        def keep() -> None:
            if file is not None:
                file.write(record)
                os.fdatasync(file.fileno())
                file.write(bytes(MARK_BYTES))

        seconds = asyncio.run(bench.ping.take_part(i, gate, plain, folder, size, rounds, False, keep))
    return seconds / rounds, (cpu[2] - cpu[1]) / rounds


# `midst up`


def starting(quick: bool) -> Iterator[Row]:
    """One row a command."""
    sizes, repeats = ((3,), 1) if quick else ((5, 15, 50), REPEATS)
    methods = (["--method", "search", "--no-verify"], ["--method", "search"], ["--method", "consensus"])
    commands = [["up", "--graph", "rgg", "--nodes", str(n), *method] for n in sizes for method in methods]
    runs: list[list[Row]] = [[] for _ in commands]
    for repeat in range(repeats):
        for command, several in zip(commands, runs, strict=True):
            several.append(whole_command([*command, "--seed-values", str(repeat), "--json"]))
    for command, several in zip(commands, runs, strict=True):
        row = median_row(several)
        names = ("whole command", "CPU, all processes", "before", "connect", "rounds", "end", "steps")
        yield {"command": " ".join(["midst", *command]), **{name: row[name] for name in names}, "repetitions": repeats}


def whole_command(arguments: Sequence[str]) -> Row:
    """A `midst up`: seconds from the call to its end, CPU time of all its processes, and where it went."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        one = subprocess.Popen([*MIDST, *arguments], stdout=said, start_new_session=True)
        watchdog = Timer(PATIENCE, os.killpg, (one.pid, signal.SIGKILL))
        watchdog.start()
        _, status, used = os.wait4(one.pid, 0)  # which sleeps, and does not look every few milliseconds
        seconds = time.monotonic() - began
        watchdog.cancel()
        one.returncode = os.waitstatus_to_exitcode(status)
        if one.returncode != 0:
            raise RuntimeError(f"midst {' '.join(arguments)} ended with code {one.returncode}")
        said.seek(0)
        told = json.loads(said.read())
    return {
        "whole command": seconds,
        "CPU, all processes": used.ru_utime + used.ru_stime,
        "before": seconds - told["seconds"],
        "connect": told["first_round"],
        "rounds": told["answered"] - told["first_round"],
        "end": told["seconds"] - told["answered"],
        "steps": told["rounds"],
    }


def hundred(quick: bool) -> Iterator[Row]:
    """One row a graph and a method."""
    for kind, method in product(("ring",) if quick else ("ring", "rgg"), ("search", "consensus")):
        row = up(kind, 4 if quick else 100, 1, method)
        yield {
            "graph": kind,
            "method": method,
            "nodes": row["nodes"],
            "seconds": row["seconds"],
            "rounds": row["rounds"],
            "bytes a node": row["bytes_per_node"],
            "GiB together": row["memory"] / 2**30,
        }


def up(kind: str, nodes: int, seed: int, method: str = "consensus") -> Row:
    """`midst up`, the seconds of the whole command, and the most memory seen of all its processes."""
    command = [*MIDST, "up", "--graph", kind, "--nodes", str(nodes), "--seed-values", str(seed), "--json"]
    command += ["--method", method]
    began, most = time.monotonic(), 0
    environment = {**os.environ, "TMPDIR": str(MEMORY)}
    one = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        while one.poll() is None:
            most = max(most, memory_of(one.pid))
            with suppress(subprocess.TimeoutExpired):
                one.wait(1.0)
            if time.monotonic() - began > PATIENCE:
                raise RuntimeError(f"midst up with {nodes} nodes takes more than {PATIENCE} s")
        seconds = time.monotonic() - began
    finally:
        with suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
        said, log = one.communicate()
    if one.returncode != 0:
        raise RuntimeError(f"midst up ended with code {one.returncode}: {log[-500:]}")
    numbers = {name: part for name, part in json.loads(said).items() if isinstance(part, int | float)}
    return {**numbers, "command": seconds, "memory": most}


def memory_of(pid: int) -> int:
    """Bytes of a process and its children, what they share counted once; 0 where the system does not tell."""
    total = 0
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    for one in [str(pid), *children]:
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:  # it has just ended
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


PARTS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "rounds": against_ping,
    "start": starting,
    "hundred": hundred,
}


if __name__ == "__main__":
    run_parts("network", PARTS)

"""The median of one number a party on this machine: midst's search against MPyC.

    python -m bench.mpyc [--quick] [--parties N …] [--python PYTHON] [--out bench/results]

Prints Markdown, and writes it to mpyc.md and the rows to mpyc.json. Real processes on loopback, started as the
documentation of each says (`midst node` with its journal on disk; `python FILE -P … -I …`), both with mutual TLS
(MPyC's --ssl), on the same numbers: N(50, 15) with two decimals, public bounds 0:100. Every answer is asserted.

- MPyC has the median of its own `statistics` module, over secure integers of 16 bits (a hundred times the number: the
  fewest that hold it) and of 32 (its default), and over fixed point numbers of 32 bits. It draws pivots at random, so
  its runs differ.
- Seconds: from the moment the last party is connected to all it talks to until the last one has the answer; midst's is
  then signed by all, and on disk. "Whole" is from before the first process is started until the last one prints it:
  interpreters, imports, handshakes, and midst's goodbyes too.
- CPU: seconds of all parties together in that time; on a machine that others use too, look at these ratios.
- Bytes: that a party sends and receives, on average, from the first to the last, handshakes and TLS included; counted
  at the sockets by `bench/counted.py` for both.
- What is compared runs in turn, several times; medians.

MPyC is slower without gmpy2. Where both are not here, they are installed into a virtual environment in a temporary
folder; --python names an interpreter to use instead. Where MPyC cannot be had, this says so and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import trustme
from bench.tables import table

from midst import graphs
from midst.graphs import Graph
from midst.net.local import Party, hold_ports, make_party

Row = dict[str, Any]

HERE = Path(__file__).parent
CHARTER = "charter.toml"
VERSION = "0.11"
PATIENCE = 100  # seconds
TRIES = 3
BOUNDS = (0.0, 100.0)
NUMBERS = {"16 bits": ("integers", 16), "32 bits": ("integers", 32), "fixed point": ("fixed", 32)}


def compare(python: str, parties: int, repeats: int) -> Iterator[Row]:
    """One row a way to do it."""
    ways: dict[str, Callable[[Sequence[float]], Row]] = {
        **{f"MPyC, {name}": partial(run_mpyc, python, numbers) for name, numbers in NUMBERS.items()},
        "midst, complete graph": partial(run_midst, graphs.complete(parties)),
        "midst, ring": partial(run_midst, graphs.ring(parties)),
    }
    runs: dict[str, list[Row]] = {name: [] for name in ways}
    for repeat in range(repeats):
        values = draw(parties, repeat)
        for name, work in ways.items():
            run = until_done(work, values)
            assert run["value"] == np.median(values), name
            runs[name].append(run)
    usual = {
        name: {key: statistics.median(run[key] for run in several) for key in several[0]}
        for name, several in runs.items()
    }
    for name, row in usual.items():
        seconds = [run["seconds"] for run in runs[name]]
        ratios = {
            f"{what} / MPyC's, {bits}": row[key] / usual[f"MPyC, {bits}"][key]
            for bits in ("16 bits", "32 bits")
            for what, key in (("seconds", "seconds"), ("CPU", "cpu"), ("bytes", "bytes"))
        }
        yield {
            "parties": parties,
            "by": name,
            "seconds": row["seconds"],
            "least, most": f"{min(seconds):.2f}, {max(seconds):.2f}",
            "whole": row["whole"],
            "CPU s, all": row["cpu"],
            "bytes sent": round(row["sent"]),
            "received": round(row["received"]),
            **ratios,
            "repetitions": repeats,
        }


def until_done(work: Callable[[Sequence[float]], Row], values: Sequence[float]) -> Row:
    """A run; another one where somebody else has taken a port in the meantime, for which MPyC waits for ever."""
    for _ in range(TRIES - 1):
        try:
            return work(values)
        except RuntimeError as error:
            print(f"once more: {error}", flush=True)
    return work(values)


def draw(parties: int, repeat: int) -> list[float]:
    """Different numbers: with ties MPyC's selection would tell more than the median."""
    rng = np.random.default_rng([parties, repeat])
    while True:
        values = np.clip(np.round(rng.normal(50, 15, parties), 2), *BOUNDS)
        if len(set(values)) == parties:
            return [float(value) for value in values]


# MPyC


@contextmanager
def an_interpreter(given: str | None) -> Iterator[str | None]:
    """A Python that has MPyC, with gmpy2 if possible; None where it cannot be had."""
    here = [find_spec(name) is not None for name in ("mpyc", "gmpy2")]
    if given is not None or all(here):
        yield given or sys.executable
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        wanted = [f"mpyc=={VERSION}", "gmpy2", "numpy"]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
        done = subprocess.run(install, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        yield python if done else sys.executable if here[0] else None


def run_mpyc(python: str, numbers: tuple[str, int], values: Sequence[float]) -> Row:
    """A median by MPyC with mutual TLS, every party a process."""
    kind, bits = numbers
    with tempfile.TemporaryDirectory() as folder, hold_ports(len(values)) as ports:
        addresses = [word for port in ports for word in ("-P", f"127.0.0.1:{port}")]
        make_certificates(Path(folder) / ".config", len(values))
        options = [str(HERE / "parties.py"), kind, str(bits), "--no-log", "--ssl", *addresses]
        commands = [[*options, "-I", str(i)] for i in range(len(values))]
        return ask_all(python, commands, values, folder)


def make_certificates(folder: Path, parties: int) -> None:
    """What MPyC's --ssl looks for."""
    folder.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "mpyc_ca.crt")
    for i in range(parties):
        one = authority.issue_cert(common_name=f"MPyC party {i}")
        one.private_key_pem.write_to_path(folder / f"party_{i}.key")
        one.cert_chain_pems[0].write_to_path(folder / f"party_{i}.crt")


# midst


def run_midst(graph: Graph, values: Sequence[float]) -> Row:
    """A median by `midst node`, every participant a process."""
    with make_party(graph, method="search", bounds=list(BOUNDS)) as party:
        put_down(party)
        commands = []
        for one in party.identities:
            files = ["--charter", party.folder / CHARTER, "--key", one.key_file, "--state", party.folder]
            commands.append([str(HERE / "participant.py"), "--name", one.name, *map(str, files)])
        return ask_all(sys.executable, commands, values, str(party.folder))


def put_down(party: Party) -> None:
    """The charter, and the certificates that each trusts beside its key, for processes that read them from files."""
    (party.folder / CHARTER).write_text(party.charter.to_toml())
    for one in party.identities:
        trusted = one.key_file.parent / "trusted"
        trusted.mkdir()
        for certificate in one.trusted:
            shutil.copy(certificate, trusted)


# Both


def ask_all(python: str, commands: Sequence[Sequence[str]], values: Sequence[float], folder: str) -> Row:
    """Start all, give each its value; the figures of the run, from the JSON objects that each prints.

    They say the value, when the party was connected to all others, when it had the answer, and the CPU time between.
    """
    started: list[subprocess.Popen[str]] = []
    counts, log = [Path(folder) / f"counts-{i}.json" for i in range(len(values))], Path(folder) / "log"

    def end_all() -> None:
        for process in started:
            process.kill()

    def listen(process: subprocess.Popen[str]) -> tuple[float, Row]:
        assert process.stdout is not None
        said, when = json.loads(process.stdout.readline() or "{}"), time.time()
        for line in process.stdout:
            said |= json.loads(line)
        if process.wait() != 0 or not said:
            raise RuntimeError(f"a party ended with code {process.returncode}: {log.read_text()[-500:]}")
        return when, said

    too_long = threading.Timer(PATIENCE, end_all)
    too_long.start()
    began = time.time()
    try:
        for command, value, file in zip(commands, values, counts, strict=True):
            full = [python, str(HERE / "counted.py"), str(file), *command]
            with log.open("a") as errors:
                process = subprocess.Popen(
                    full, cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
                )
            started.append(process)
            assert process.stdin is not None
            process.stdin.write(f"{value}\n")
            process.stdin.close()
        with ThreadPoolExecutor(len(started)) as pool:
            answers = list(pool.map(listen, started))
    finally:
        too_long.cancel()
        end_all()
    carried = [json.loads(file.read_text()) for file in counts]
    (value,) = {said["value"] for _, said in answers}
    sent, received = (statistics.mean(each[way] for each in carried) for way in ("sent", "received"))
    return {
        "value": value,
        "seconds": max(said["answered"] for _, said in answers) - max(said["up"] for _, said in answers),
        "whole": max(when for when, _ in answers) - began,
        "cpu": sum(said["cpu"] for _, said in answers),
        "sent": sent,
        "received": received,
        "bytes": sent + received,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="three parties, once, to see whether everything runs")
    parser.add_argument("--python", help="an interpreter that has MPyC; else it is installed into a temporary folder")
    parser.add_argument("--parties", type=int, nargs="*", default=[5, 7, 9, 11])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that no process is left
    options.out.mkdir(parents=True, exist_ok=True)
    about = {"cores": len(os.sched_getaffinity(0)), "load_before": os.getloadavg()[0], "python": sys.version.split()[0]}
    print(about, flush=True)
    sizes, repeats = ([3], 1) if options.quick else (options.parties, options.repeats)
    with an_interpreter(options.python) as python:
        if python is None:
            print("MPyC is neither here nor can it be installed: nothing to compare with")
            return
        rows: list[Row] = []
        for parties in sizes:
            rows += compare(python, parties, repeats)
            print(f"\n{table(rows)}\n", flush=True)
            (options.out / "mpyc.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1))
            (options.out / "mpyc.md").write_text(table(rows) + "\n")


if __name__ == "__main__":
    main()

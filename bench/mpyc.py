"""The median of one number a party on this machine: midst's search against MPyC.

    python -m bench.mpyc [--quick] [--parties N …] [--python PYTHON] [--out bench/results]

Prints Markdown, and writes it to mpyc.md and the rows to mpyc.json. Real processes on loopback, started as the
documentation of each says (`midst node` with its journal on disk; `python FILE -P … -I …`), both with mutual TLS
(MPyC's --ssl), on the same numbers: N(50, 15) with two decimals, one of them whole, public bounds 0:100. Every answer
is asserted.

- MPyC has the median of its own `statistics` module, over secure integers of 16 bits (a hundred times the number: the
  fewest that hold it) and of 32 (its default), and over fixed point numbers of 32 bits. It draws pivots at random, so
  its runs differ.
- Seconds: from the moment the last party is connected to all it talks to until the last one has the answer; midst's is
  then signed by all, and on disk. "Whole" is from before the first process is started until the last one prints it:
  interpreters, imports, handshakes, and midst's goodbyes too.
- CPU: seconds of all parties together in that time; on a machine that others use too, look at these ratios.
- Bytes: that a party sends and receives, on average, from the first to the last, handshakes and TLS included; counted
  at the sockets by `peers/counted.py` for both.
- What is compared runs in turn, several times; medians.

MPyC is slower without gmpy2. Where both are not here, they are installed into a virtual environment in a temporary
folder; --python names an interpreter to use instead. Where MPyC cannot be had, this says so and ends.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import trustme
from bench.peers.processes import Row, ask_all, until_done
from bench.tables import make_parser, parse, run_parts

from midst import graphs
from midst.graphs import Graph
from midst.net.local import Party, hold_ports, make_party

HERE = Path(__file__).parent
CHARTER = "charter.toml"
VERSION = "0.11"
PER_UNIT = 100.0  # numbers have two decimals
BOUNDS = (0.0, 100.0)
NUMBERS = {"16 bits": ("integers", 16), "32 bits": ("integers", 32), "fixed point": ("fixed", 32)}


def compare(python: str, parties: int, repeats: int, quick: bool) -> Iterator[Row]:
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


def draw(parties: int, repeat: int) -> list[float]:
    """Different numbers, since with ties MPyC's selection would tell more than the median; one of them is whole."""
    rng = np.random.default_rng([parties, repeat])
    while True:
        values = np.clip(np.round(rng.normal(50, 15, parties), 2), *BOUNDS)
        values[0] = round(values[0])
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
    with tempfile.TemporaryDirectory() as name, hold_ports(len(values)) as ports:
        folder = Path(name)
        make_certificates(folder, len(values))
        addresses = [word for port in ports for word in ("-P", f"127.0.0.1:{port}")]
        program = [str(HERE / "peers" / "party.py"), kind, str(bits), repr(PER_UNIT)]
        commands = [[*program, "--no-log", "--ssl", *addresses, "-I", str(i)] for i in range(len(values))]
        return ask_all(python, commands, values, folder)


def make_certificates(folder: Path, parties: int) -> None:
    """What MPyC's --ssl looks for."""
    folder /= ".config"
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
        return ask_all(sys.executable, commands, values, party.folder)


def put_down(party: Party) -> None:
    """The charter, and the certificates that each trusts beside its key, for processes that read them from files."""
    (party.folder / CHARTER).write_text(party.charter.to_toml())
    for one in party.identities:
        trusted = one.key_file.parent / "trusted"
        trusted.mkdir()
        for certificate in one.trusted:
            shutil.copy(certificate, trusted)


def main() -> None:
    parser = make_parser()
    parser.add_argument("--python", help="an interpreter that has MPyC; else it is installed into a temporary folder")
    parser.add_argument("--parties", type=int, nargs="*", default=[5, 7, 9, 11])
    parser.add_argument("--repeats", type=int, default=5)
    options = parse(parser)
    sizes, repeats = ([3], 1) if options.quick else (options.parties, options.repeats)
    with an_interpreter(options.python) as python:
        if python is None:
            print("MPyC is neither here nor can it be installed: nothing to compare with")
            return
        run_parts("mpyc", {f"{n} parties": partial(compare, python, n, repeats) for n in sizes}, options)


if __name__ == "__main__":
    main()

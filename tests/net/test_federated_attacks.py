"""Clients of a session about arrays as real processes over TLS: one that lies, and who looks into everybody's files.

A ring of five: 0 is the root of the tree, 1 and 4 its children, 2 the child of 1 and 3 that of 4.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from liar import WISHES
from processes import Network, Running, Shelf, network, until

from midst import graphs
from midst.protocol.vectors.formats import Format

pytestmark = pytest.mark.timeout(120)

SIZE, LIAR = 3000, 1
WITHIN = {"deadlines": {"start": 20, "wait": 12, "total": 60, "linger": 2}}  # notes are asked for after three seconds
ARRAYS = [{"name": "w", "shape": [SIZE], "dtype": "float32"}]
UPDATES = np.random.default_rng(6).standard_normal((5, SIZE)).astype(np.float32)


@contextmanager
def clients(folder: Path, **settings: object) -> Iterator[Network]:
    how = {"method": "search", "bounds": None, "arrays": ARRAYS, "aggregates": 1} | settings
    with network(folder, graphs.ring(5), [0.0] * 5, **how) as net:
        for name, update in zip(net.charter.names, UPDATES, strict=True):
            file = folder / f"{name}.npz"
            file.touch(mode=0o600)
            np.savez(file, w=update)
        yield net


def start(net: Network, i: int, *within: str) -> Running:
    name = net.charter.names[i]
    given = ["--value-file", str(net.folder / f"{name}.npz")]
    return net.start(name, "--out", str(net.folder / f"{name}-found.npz"), given=given, within=within)


@pytest.mark.parametrize(
    ("strategy", "named"),
    [
        ("altered sum", "p0 and p1 do not agree"),
        ("owned sum", "p1 sent up another sum"),
        ("two updates", "p1 and p2 hold different totals"),
    ],
)
def test_who_lies_in_the_tree_is_named_and_nobody_accepts_the_round(strategy: str, named: str, tmp_path: Path) -> None:
    """Also where it falls silent as soon as its own node finds out: what it should have told on comes by others."""
    script = str(Path(__file__).parent / "liar.py")
    with clients(tmp_path, **WITHIN) as net:
        started = [start(net, i, *([sys.executable, script, strategy] if i == LIAR else [])) for i in range(5)]
        ends = [one.wait(90) for i, one in enumerate(started) if i != LIAR]
    assert [end.code for end in ends] == [4] * 4
    assert all(named in end.err for end in ends), [end.err for end in ends]
    assert not list(tmp_path.glob("*-found.npz"))


def test_one_client_that_lies_about_its_counts_puts_coordinates_anywhere_and_nothing_names_it(tmp_path: Path) -> None:
    """What docs/federated.md says of it: contributions are not proved, and all signatures and sums are in order."""
    script = str(Path(__file__).parent / "liar.py")
    with clients(tmp_path) as net:
        started = [start(net, i, *([sys.executable, script, "false counts"] if i == 0 else [])) for i in range(5)]
        ends = [one.wait(90) for one in started]
    assert [end.code for end in ends] == [0] * 5, [end.err for end in ends]
    right = np.median(UPDATES, axis=0)
    right[list(WISHES)] = list(WISHES.values())
    for name in net.charter.names:
        with np.load(tmp_path / f"{name}-found.npz") as found:
            assert np.array_equal(found["w"], right)


def test_nobody_s_numbers_are_anywhere_but_in_its_own_journal(tmp_path: Path) -> None:
    """Eight coordinates in a row, as numbers and as offsets, of every client, in all that was ever written."""
    public = b""
    with clients(tmp_path) as net, Shelf(net) as shelf:
        running = [start(net, i) for i in range(5)]

        def over() -> bool:
            nonlocal public
            for one in running:
                for part in ("cmdline", "environ"):
                    with suppress(OSError):  # it has ended
                        public += Path(f"/proc/{one.process.pid}/{part}").read_bytes()
            return not any(one.alive for one in running)

        until(over)
        ends = [one.wait() for one in running]
        journals = {name: shelf.bytes_of(name) for name in net.charter.names}
        last = {name: net.journal(name).read_bytes() for name in net.charter.names}
    assert [end.code for end in ends] == [0] * 5, [end.err for end in ends]
    public += "".join(end.out + end.err for end in ends).encode()
    for name in net.charter.names:
        with np.load(tmp_path / f"{name}-found.npz") as found:
            assert np.array_equal(found["w"], np.median(UPDATES, axis=0))
    for i, name in enumerate(net.charter.names):
        offsets = Format("float32").offsets(UPDATES[i])
        looked_for = [row.tobytes() for each in (UPDATES[i], offsets) for row in each.reshape(-1, 8)]
        assert all(part in journals[name] for part in looked_for[SIZE // 8 :]), "offsets are found where they must be"
        elsewhere = {other: data for other, data in journals.items() if other != name} | {"all can see": public}
        for where, data in (elsewhere | {"its own, after the end": last[name]}).items():
            assert not any(part in data for part in looked_for), f"{name}'s numbers are in what {where} has"

"""`midst node` on a system without fcntl, resource and signals of a loop, among others."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import Network, network, until

from midst.graphs import ring

SYSTEM = Path(__file__).parents[1] / "foreign_system.py"
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path, ring(3), [1.0, 5.0, 2.0], method="search") as made:
        yield made


@pytest.fixture
def foreign(tmp_path: Path) -> dict[str, str]:
    place = tmp_path / "system"
    place.mkdir()
    shutil.copy(SYSTEM, place / "sitecustomize.py")
    return {"PYTHONPATH": os.pathsep.join([str(place), str(SOURCE)])}


def test_it_takes_part(net: Network, foreign: dict[str, str]) -> None:
    path = net.value_file("p0")
    path.chmod(0o644)
    running = [net.start("p0", env=foreign), net.start("p1"), net.start("p2")]
    outcomes = [one.wait() for one in running]
    assert [one.answer["value"] for one in outcomes] == [2.0] * 3
    unchecked = "cannot be checked on this system; see to it that nobody may"
    said = [line for line in outcomes[0].err.splitlines() if "warning" in line]
    assert [line.split(": ")[2] for line in said] == [str(net.key("p0")), str(path)]
    assert all(line.endswith(unchecked) for line in said)
    assert not any(unchecked in one.err for one in outcomes[1:])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 4)])
def test_it_heeds_signals(net: Network, foreign: dict[str, str], number: signal.Signals, code: int) -> None:
    node = net.start("p0", env=foreign)
    until(lambda: net.journal("p0").exists())
    assert node.process.stderr is not None
    while "warning" in node.process.stderr.readline():  # the line after those is about p1, who is not there: it runs
        pass
    node.signal(number)
    assert node.wait(20).code == code


def test_one_at_a_time(net: Network, foreign: dict[str, str]) -> None:
    first = net.start("p0", env=foreign)
    until(lambda: net.journal("p0").exists())
    second = net.start("p0", env=foreign).wait()
    assert second.code == 2
    assert "another midst node is running this session" in second.err
    first.kill()
    again = net.start("p0", env=foreign)
    others = [net.start("p1"), net.start("p2")]
    assert [one.wait().answer["value"] for one in (again, *others)] == [2.0] * 3

"""Five organisations in five folders, over two months: one round a month, by the commands that the pages tell.

Nothing is shared but files that somebody sends: certificates to who writes the charter, and the charter to all. In the
first month a host is rebooted while others wait for a late one. In the second a sixth joins, one has renewed its key,
and a host loses its power in the middle.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from parties import free_port
from processes import until

pytestmark = pytest.mark.timeout(180)

NOVEMBER = {"acme": 52_300.0, "brio": 48_100.0, "cogs": 61_750.0, "dune": 45_000.0, "echo": 57_500.0}
AT_LENGTH = ("acme", "flux")  # those whose books are looked at
DECEMBER = {name: value + 250.0 for name, value in NOVEMBER.items()} | {"flux": 39_900.0}


@dataclass
class Organisation:
    """A folder with its own keys and state, in which the command is typed."""

    name: str
    folder: Path
    address: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")

    def __post_init__(self) -> None:
        self.folder.mkdir()

    def line(self, *words: str) -> dict[str, Any]:
        env = {**os.environ, "XDG_STATE_HOME": str(self.folder / "state")}
        return {"args": [sys.executable, "-m", "midst", *words], "cwd": self.folder, "env": env, "text": True}

    def types(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(**self.line(*words), capture_output=True, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == code, f"{self.name}: midst {' '.join(words)}\n{done.stderr}"
        return done

    def gets(self, file: Path) -> None:
        """By mail, say."""
        shutil.copy(file, self.folder / file.name)

    def node(self, month: str, value: float) -> subprocess.Popen[str]:
        """What is typed, or scheduled, once a month."""
        own = self.folder / "salary.txt"
        own.touch(mode=0o600)
        own.write_text(f"{value}\n")
        files = ["--value-file", "salary.txt", "--out", f"{month}.json"]
        if self.name in AT_LENGTH:
            files += ["--save", f"{month}.npz", "--ledger", f"{month}.ledger"]
        agreed = ["--charter", f"{month}.toml", "--name", self.name, "--key", f"keys/{self.name}.key"]
        line = self.line("node", *agreed, *files, "--json")
        return subprocess.Popen(**line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    @property
    def journal(self) -> bytes:
        """The newest one, as it is now."""
        found = sorted((self.folder / "state" / "midst").glob("*.journal"), key=lambda path: path.stat().st_mtime)
        return found[-1].read_bytes() if found else b""


def end(process: subprocess.Popen[str], code: int = 0) -> dict[str, Any]:
    """How a node ended, which must come by itself."""
    out, err = process.communicate(timeout=90)
    assert process.returncode == code, err
    found: dict[str, Any] = json.loads(out) if code == 0 else {}
    return found


def agree(people: dict[str, Organisation], charter: str) -> None:
    """Everybody has the file, reads it and prepares."""
    assert "What the run tells whom" in people["acme"].types("charter", "show", charter).stdout
    for one in people.values():
        if one.name != "acme":
            one.gets(people["acme"].folder / charter)
        one.types("keys", "trust", charter, "--replace")
        if one.name in AT_LENGTH:
            one.types("charter", "check", charter, "--name", one.name, "--key", f"keys/{one.name}.key")
            one.types("ledger", "new", charter.replace(".toml", ".ledger"))


def test_two_months(tmp_path: Path) -> None:
    people = {name: Organisation(name, tmp_path / name) for name in NOVEMBER}
    acme = people["acme"]
    november(people)
    again = acme.node("november", 1.0)
    out, err = again.communicate(timeout=60)
    assert (json.loads(out)["value"], json.loads(out)["over_before"]) == (52_300.0, True)
    assert "is over, and this is its answer; your value was not read; for another run: midst charter new" in err

    people["flux"] = flux = Organisation("flux", tmp_path / "flux")
    flux.types("keys", "init", "flux")
    people["cogs"].types("keys", "renew", "keys/cogs.key")
    for name in ("flux", "cogs"):
        acme.gets(people[name].folder / "keys" / f"{name}.crt")
    changes = ["--add", f"flux.crt@{flux.address}", "--add-edge", "echo-flux", "--add-edge", "flux-acme"]
    new = ["--session", "december", "--out", "december.toml", *changes, "--renew", "cogs.crt"]
    told = acme.types("charter", "new", "--from", "november.toml", *new)
    assert "those of november but for flux" in told.stderr, "which two answers together are about"
    december(people)


def november(people: dict[str, Organisation]) -> None:
    """The first round, from nothing; brio's host is rebooted while echo is late."""
    acme = people["acme"]
    for one in people.values():
        one.types("keys", "init", one.name)
        if one is not acme:
            acme.gets(one.folder / "keys" / f"{one.name}.crt")
    shutil.copy(acme.folder / "keys/acme.crt", acme.folder)
    known = [f"{one.name}.crt@{one.address}" for one in people.values()]
    settings = ["--session", "november", "--method", "search", "--graph", "ring", "--bounds", "0:500000"]
    acme.types("charter", "new", *settings, "--resolution", "0.01", "--out", "november.toml", *known)
    agree(people, "november.toml")
    early = {name: people[name].node("november", NOVEMBER[name]) for name in ("acme", "brio", "cogs", "dune")}
    brio = people["brio"]
    until(lambda: brio.journal, 60)
    looked = people["echo"].types("doctor", *"--charter november.toml --name echo --key keys/echo.key --wait 2".split())
    assert "problem" not in looked.stdout
    until(lambda: early["brio"].poll() is None and brio.journal, 30)
    early["brio"].send_signal(signal.SIGTERM)
    assert end(early["brio"], 143) == {}, "a pause"
    early["brio"] = brio.node("november", NOVEMBER["brio"])
    running = early | {"echo": people["echo"].node("november", NOVEMBER["echo"])}
    check(people, running, "november", sorted(NOVEMBER.values())[2])


def december(people: dict[str, Organisation]) -> None:
    """The second: six of them, one with a new key; dune's power fails as soon as it has something to lose."""
    agree(people, "december.toml")
    running = {name: people[name].node("december", DECEMBER[name]) for name in people if name != "brio"}
    dune = people["dune"]
    until(lambda: b"midst journal" in dune.journal, 60)
    running["brio"] = people["brio"].node("december", DECEMBER["brio"])
    grown = len(dune.journal)
    until(lambda: len(dune.journal) != grown, 60)
    running["dune"].kill()
    running["dune"].communicate()
    running["dune"] = dune.node("december", DECEMBER["dune"])
    check(people, running, "december", sorted(DECEMBER.values())[2])
    refused = people["acme"].types(
        "ledger", "check", "november.ledger", "--value-file", "salary.txt", "--charter", "december.toml", code=2
    )
    assert "another value than the one this ledger is kept for" in refused.stderr


def check(
    people: dict[str, Organisation], running: dict[str, subprocess.Popen[str]], month: str, answer: float
) -> None:
    """Everybody has the same right answer, nobody is exposed, and the books are kept."""
    ends = {name: end(process) for name, process in running.items()}
    assert {found["value"] for found in ends.values()} == {answer}
    assert not any(found["exposed"] for found in ends.values())
    for one in (people[name] for name in AT_LENGTH if name in people):
        one.types("verify", f"{month}.json", "--charter", f"{month}.toml")
        told = json.loads(one.types("ledger", "show", f"{month}.ledger", "--json").stdout)
        assert [session["state"] for session in told["sessions"]] == ["over"]
        seen = json.loads(one.types("audit", f"{month}.npz", "--json", "--prior", "uniform:0,500000").stdout)
        [node] = seen["nodes"]
        assert node["node"] == one.name
        assert node["exposed"] is False
        assert node["bits"] == pytest.approx(told["bits"])

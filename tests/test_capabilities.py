"""Every ability that midst documents: `capabilities.toml` lists it with its exit code and its answer.

Rules:
- A command's lines run in order, in a folder that has the examples and the files of the register. A line that needs a
  shell has one, as has `midst up`, which must not fork a process that has other tests' threads; every other runs in
  this process. All lines but the last must end with exit code 0.
- `exit` is the exit code of the last line. `answer` is part of the JSON that it prints: nothing in it may differ, and
  the line may print more. `prints` is part of its text, and `writes` names files that must exist afterwards.
- The register has every command with every option, and every public name. `[elsewhere]` names the options that another
  test tries, and that test.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import midst
from midst.cli import main

HERE = Path(__file__).parent
REGISTER = tomllib.loads((HERE / "capabilities.toml").read_text(encoding="utf-8"))
COMMANDS: list[dict[str, Any]] = REGISTER["command"]
TOLERANCE = 1e-9
PATIENCE = 120  # seconds for a line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(HERE.parent / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in REGISTER["files"].items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def free_ports(count: int) -> dict[str, int]:
    with ExitStack() as held:
        sockets = [held.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return {f"port{k + 1}": one.getsockname()[1] for k, one in enumerate(sockets)}


def run_line(line: str) -> tuple[int, str, str]:
    """Run a line; give its exit code, what it prints, and what it prints with its errors."""
    if line.startswith("midst ") and not (line.startswith("midst up") or set("|&<>;$") & set(line)):
        done = CliRunner().invoke(main, shlex.split(line)[1:])
        return done.exit_code, done.stdout, done.output
    shell = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=PATIENCE)
    return shell.returncode, shell.stdout, shell.stdout + shell.stderr


def run_command(entry: dict[str, Any]) -> tuple[int, str, str]:
    ports = free_ports(3)
    lines = [*REGISTER["before"].get(entry.get("before"), ()), *entry["run"]]
    *before, last = (re.sub(r"\{(port\d)\}", lambda found: str(ports[found[1]]), line) for line in lines)
    for line in before:
        code, _, said = run_line(line)
        assert code == 0, f"$ {line}\nends with {code}:\n{said}"
    return run_line(last)


def lacks(found: Any, part: Any, place: str = "answer") -> list[str]:
    """Name the places where a part is not found, numbers to the tolerance."""
    if isinstance(part, dict) and isinstance(found, dict):
        return [each for name in part for each in lacks(found.get(name), part[name], f"{place}.{name}")]
    if isinstance(part, list) and isinstance(found, list) and len(part) == len(found):
        pairs = enumerate(zip(found, part, strict=True))
        return [each for k, (one, other) in pairs for each in lacks(one, other, f"{place}[{k}]")]
    if isinstance(part, float) and isinstance(found, float | int):
        return [] if abs(found - part) <= TOLERANCE * max(1.0, abs(part)) else [f"{place}: {found}, not {part}"]
    return [] if found == part else [f"{place}: {found!r}, not {part!r}"]


@pytest.mark.parametrize("entry", COMMANDS, ids=[entry["about"] for entry in COMMANDS])
def test_command(entry: dict[str, Any], folder: Path) -> None:
    code, printed, said = run_command(entry)
    assert code == entry.get("exit", 0), said
    if code == 2:
        assert len(said.strip().splitlines()) == 1, "a refusal is one line"
    if "answer" in entry:
        assert lacks(json.loads(printed), entry["answer"]) == []
    assert [text for text in entry.get("prints", ()) if text not in said] == [], said
    assert [name for name in entry.get("writes", ()) if not (folder / name).exists()] == []


@pytest.mark.parametrize("entry", REGISTER["call"], ids=lambda entry: entry["call"])
def test_call(entry: dict[str, Any]) -> None:
    def call() -> Any:
        return eval(entry["call"], {"midst": midst, "np": np, "isinstance": isinstance})

    if "raises" in entry:
        with pytest.raises(getattr(midst, entry["raises"])):
            call()
        return
    found = json.loads(json.dumps(call()))
    assert lacks({"found": found}, {"found": entry["answer"]}) == []


# Whether the register is whole


def walk(command: click.Command = main, path: str = "midst") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            yield from walk(below, f"{path} {name}")


def test_every_command_and_option_is_registered() -> None:
    lines = [line for entry in COMMANDS for line in entry["run"]]
    lines += [line for before in REGISTER["before"].values() for line in before]
    missing = []
    for path, command in walk():
        if isinstance(command, click.Group) and path != "midst":
            continue
        own = [line for line in lines if f"{path} " in f"{line} "]
        if not own:
            missing.append(path)
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                used = any(re.search(rf"{re.escape(name)}\b", line) for name in option.opts for line in own)
                if not used and f"{path} {option.opts[0]}" not in REGISTER["elsewhere"]:
                    missing.append(f"{path} {option.opts[0]}")
    assert missing == []


def test_what_is_tried_elsewhere_is_an_option() -> None:
    options = {f"{path} {name}" for path, command in walk() for option in command.params for name in option.opts}
    assert set(REGISTER["elsewhere"]) <= options
    for text in REGISTER["elsewhere"].values():
        assert (HERE.parent / text.rpartition("; ")[2]).is_file(), text


def test_every_public_name_is_registered() -> None:
    calls = " ".join(entry["call"] for entry in REGISTER["call"]) + " ".join(
        entry.get("raises", "") for entry in REGISTER["call"]
    )
    unused = [name for name in midst.__all__ if not re.search(rf"\b{name}\b", calls)]
    assert unused == ["Aborted", "MidstError"]  # what a session raises, and what all errors are

"""The first hour: what a newcomer copies from README.md and docs/ works, literally and in order.

Rules:
- Every line of a ```sh block, and every line after `$ ` of a ```console block, is run by a shell, in a folder that has
  what a clone has, with the installed command: MIDST_BIN, or the one beside this Python. It must end with exit code 0.
- What a console block shows is what is printed; a line of dots stands for anything.
- A page is read from its top in a folder of its own; where it needs what another page did, `AFTER` says so.
- `EXCEPTIONS` are the lines that are not run as they stand, each with its reason and with what is run instead. Every
  word of theirs must exist all the same, and an exception that no page needs is an error.
- Where several take part, a page has the lines of one. The others do the same, each in a folder of its own; of the
  page's line only host names are changed, to free ports of this machine.
- What a page leaves behind, git does not see: a key must not be committed by mistake.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from pages import DOTS, MADE, ROOT, WRITTEN, blocks, pages_with, prose

from midst.cli import COMMANDS, main

MIDST = Path(os.environ.get("MIDST_BIN", Path(sys.executable).with_name("midst"))).absolute()
MAKEFILE = (ROOT / "Makefile").read_text()
PATIENCE = 120  # seconds for a line
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Instead(NamedTuple):
    line: str | None
    reason: str


EXCEPTIONS = {
    "make demo": Instead(None, "makes an environment; `make first-hour` does that"),
    "make test": Instead(None, "is what runs this"),
    "make bench": Instead(None, "takes an hour"),
    "python -m bench.run --quick": Instead(None, "tests/test_bench.py runs it"),
    "python -m bench.gpu": Instead(None, "needs a GPU"),
    "midst paper --out figures": Instead("midst paper fig1 --out figures --runs 2 --workers 1", "takes minutes"),
    "midst paper fig3 fig4 --runs 400 --seed 7 --json": Instead(
        "midst paper fig1 --runs 2 --seed 7 --workers 1 --json", "takes minutes"
    ),
    "midst compare --out compare.csv --out compare.png": Instead(
        "midst compare --quick --methods search-3,consensus,async-admm --out compare.csv --out compare.png",
        "takes minutes",
    ),
    "midst compare --out compare.png": Instead(
        "midst compare --quick --methods search-3,kll --out compare.png", "takes minutes"
    ),
    "midst compare --quick": Instead("midst compare --quick --methods search-3", "runs MPyC, where it is"),
    "make simnet": Instead(None, "tests/simnet runs more seeds"),
}
AFTER = {  # its lines, as far as they begin so
    "docs/dp.md": ("docs/network.md", ("midst keys init", "midst charter new --session", "midst keys trust pay.toml")),
}
ELSEWHERE = {  # pages whose lines are not run here, but must exist
    "docs/deploy.md": "needs root, systemd, podman or a cluster; tests/net/test_deploy.py starts nodes from its files",
    "docs/federated.md": "is about an update that a reader has; tests/net/test_federated_clients.py runs its commands",
    "docs/flower.md": "needs Flower, in an environment of its own: make flower runs the example",
}
THEIRS = {  # what the others have where the page's own participant has that file: a line each
    "examples/salary.txt": "examples/salaries.txt",
    "examples/stays.txt": "examples/lists.txt",
}


class Line(NamedTuple):
    text: str
    expected: str | None = None


def lines_of(path: str) -> Iterator[Line]:
    for block in blocks(path):
        if block.kind == "sh":
            for text in block.text.replace("\\\n", " ").splitlines():
                if stripped := re.sub(r"(^|\s+)#.*", "", text).strip():
                    yield Line(re.sub(r"\s+", " ", stripped))
        elif block.kind == "console":
            assert block.text.startswith("$ "), path
            for step in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                yield Line(*step.split("\n", 1))


class Person:
    """Somebody with a clone, a shell and a home."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "clone"
        shutil.copytree(ROOT / "examples", self.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        for path in self.folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)  # git keeps no other modes
        if (MIDST.parent / "activate").exists():
            (self.folder / ".venv").symlink_to(MIDST.parents[1])
        else:  # midst is in no virtual environment
            venv.create(self.folder / ".venv")
        self.brought = {path.name for path in self.folder.iterdir()}
        self.environment = os.environ | {
            "PATH": f"{MIDST.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "BROWSER": "true",  # which opens nothing
        }

    def start(self, line: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", line], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, line: str) -> str:
        """What a line prints."""
        return self.finish(self.start(line), line)

    @staticmethod
    def finish(process: subprocess.Popen[str], line: str) -> str:
        try:
            printed, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            printed = f"{process.communicate()[0]}\nand took more than {PATIENCE} s"
        assert process.returncode == 0, f"$ {line}\nends with {process.returncode}:\n{printed}"
        return printed

    def serve(self, line: str) -> None:
        """Starts a line that serves a page, asks for that page, and ends it as Ctrl-C does."""
        with self.start(f"exec {line}") as process:
            try:
                assert process.stdout is not None
                address = process.stdout.readline().strip()
                assert address.startswith("http://127.0.0.1:"), f"$ {line}\n{address}\n{process.stdout.read()}"
                with NO_PROXY.open(address, timeout=PATIENCE) as page:
                    assert b"midst explorer" in page.read()
            finally:
                process.send_signal(signal.SIGINT)
            self.finish(process, line)

    def give(self, name: str, other: Person) -> None:
        shutil.copy(self.folder / name, other.folder / Path(name).name)


class Reader(Person):
    """Copies the lines of a page, and knows the people that the page's walk-through needs."""

    def __init__(self, home: Path) -> None:
        super().__init__(home / "reader")
        self.home = home
        self.name = ""  # of the participant whose lines the page has
        self.others: dict[str, dict[str, Person]] = {}  # by that name
        self.nodes: list[tuple[str, subprocess.Popen[str]]] = []

    def read(self, lines: list[Line]) -> None:
        try:
            for k, line in enumerate(lines):
                self.copy(line, [each.text for each in lines[k:]])
            for text, process in self.nodes:
                self.finish(process, text)
        finally:
            for _, process in self.nodes:
                with process:
                    process.kill()

    def copy(self, line: Line, rest: list[str]) -> None:
        text = line.text
        if text in EXCEPTIONS:
            parse(text)
            text = EXCEPTIONS[text].line or "true"
        match shlex.split(text):
            case ["midst", "explore", *words] if "--page" not in words:
                self.serve(text)
                return
            case ["midst", "keys", "init", name]:
                self.name = name
            case ["midst", "charter", "new", *_]:
                self.meet(re.findall(r" (\w+)\.crt\b", text), joins="--from" in text)
                text = re.sub(r"\w+\.example\.org:\d+", lambda _: f"127.0.0.1:{free_port()}", text)
            case ["midst", "doctor" | "node", *_]:
                self.start_others(next(each for each in rest if each.startswith("midst node ")))
        printed = self.run(text)
        if line.expected is not None and not doctest.OutputChecker().check_output(line.expected, printed, DOTS):
            pytest.fail(f"$ {text}\nprints\n{printed}\nand not\n{line.expected}")
        if charter := re.search(r"^midst charter new .*--out (\S+)", text):
            for person in self.others[self.name].values():
                self.give(charter[1], person)
                person.run(f"midst keys trust {charter[1]}")

    def meet(self, names: list[str], joins: bool) -> None:
        """Those whose certificate is not here yet make their keys, and give it; who only joins starts no node here."""
        others = {name: Person(self.home / name) for name in names if not (self.folder / f"{name}.crt").exists()}
        for name, person in others.items():
            person.run(f"midst keys init {name}")
            person.give(f"keys/{name}.crt", self)
        if not joins:
            self.others[self.name] = others

    def start_others(self, text: str) -> None:
        """The nodes of the others, by the line of the page's own: with their own name, their own data."""
        [mine] = re.findall(r"--name (\S+)", text)
        for k, (name, person) in enumerate(self.others[mine].items()):
            line = re.sub(rf"\b{mine}\b", name, re.sub(r" --ledger \S+", "", text))
            [data] = re.findall(r"--value-file (\S+)", line)
            if data in THEIRS:
                rows = (person.folder / THEIRS[data]).read_text().splitlines()
                (person.folder / data).write_text([row for row in rows if not row.startswith("#")][k])
            (person.folder / data).chmod(0o600)
            self.nodes.append((line, person.start(f"exec {line}")))
        self.others[mine] = {}  # they have started


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.mark.parametrize("path", [path for path in pages_with("sh", "console") if path in WRITTEN.keys() - ELSEWHERE])
def test_every_line_works(path: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    lines = list(lines_of(path))
    if path in AFTER:
        page, steps = AFTER[path]
        lines = [line for line in lines_of(page) if line.text.startswith(steps)] + lines
    reader.read(lines)
    ignored = [row.strip("/") for row in (ROOT / ".gitignore").read_text().splitlines() if not row.startswith("#")]
    left = {entry.name for entry in reader.folder.iterdir()} - reader.brought
    assert {name for name in left if not any(fnmatch(name, row) for row in ignored)} == set()


def test_every_exception_is_needed() -> None:
    copied = {line.text for path in WRITTEN for line in lines_of(path)}
    assert set(EXCEPTIONS) <= copied
    assert {*AFTER, *ELSEWHERE} <= set(pages_with("sh"))
    for name in THEIRS:
        assert any(f"--value-file {name}" in text for text in copied), name


def test_the_demo_points_to_what_comes_next() -> None:
    first, second, activate, then, *_ = (line.text for line in lines_of("README.md"))
    assert (first, second) == ("make demo", "make test")
    assert f"Next: {activate}, then: {then}" in MAKEFILE.replace("$(BIN)", ".venv/bin")


@pytest.mark.parametrize("path", WRITTEN)
def test_no_command_is_elsewhere(path: str) -> None:
    """An indented command would be copied, and not be run here."""
    assert re.findall(r"^ {4,}(?:\$ )?(?:midst|make|python|pip|source) .*", prose(path), re.MULTILINE) == []


@pytest.mark.parametrize("path", [path for path in pages_with("sh") if path in MADE or path in ELSEWHERE])
def test_lines_that_are_not_run_exist(path: str) -> None:
    for line in lines_of(path):
        for part in re.findall(rf"\b(midst (?:{'|'.join(COMMANDS)}) .*?)(?= && | \| | >+ |\)|$)", line.text):
            parse(part)


def parse(text: str) -> None:
    """Check that the words of a line exist, without running it."""
    match shlex.split(text):
        case ["midst", *arguments]:
            command: click.Command | None = main
            while isinstance(command, click.Group):
                group, name, *arguments = command, *arguments
                command = group.get_command(click.Context(group), name)
                assert command is not None, f"there is no command {name!r}"
            assert command is not None
            command.make_context(command.name, arguments)
        case ["make", *targets]:
            assert set(targets) <= set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE)), text
        case ["python", "-m", module, *_]:
            assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file(), text
        case _:
            pytest.fail(f"{text}: an exception that nothing here can check")


def test_words_that_do_not_exist_are_found() -> None:
    with pytest.raises(click.NoSuchOption):
        parse("midst run --grahp ring")
    with pytest.raises(AssertionError, match="no command 'rnu'"):
        parse("midst rnu")
    with pytest.raises(AssertionError, match="make dome"):
        parse("make dome")
    with pytest.raises(AssertionError, match=r"bench\.none"):
        parse("python -m bench.none")

"""`midst node` and `midst up`: what they refuse, before a byte is sent or written."""

from __future__ import annotations

import multiprocessing
import os
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np
import pytest
from certificates_made import make_dated
from click.testing import CliRunner, Result
from processes import Network, network, nobody_calls, port_of

from midst import graphs
from midst.cli import main
from midst.net import local
from midst.net.charter import make_charter
from midst.net.identity import keys
from midst.net.journal import MAGIC, DiskFile, Journal
from midst.net.notary import CertifiedNotary
from midst.net.records import Began, encode_record
from midst.net.setup import make_setup

pytestmark = pytest.mark.timeout(60)

VALUE = "31.337424242"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Three in a row, p0 - p1 - p2, of whom p1 is the one that is asked to run."""
    graph = graphs.make("path", 3, rng=np.random.default_rng(0))
    deadlines = {"start": 1, "wait": 1, "total": 2, "linger": 1}  # whoever runs all the same, not for long
    with network(tmp_path_factory.mktemp("net"), graph, [1.0, 2.0, 3.0], deadlines=deadlines) as whole:
        yield whole


@dataclass
class Try:
    """A command line that is all right, until a case has changed something."""

    net: Network
    folder: Path
    stdin: str | bytes | None = None
    options: dict[str, Any] = field(default_factory=dict)
    more: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(self.net.folder / "keys", self.folder / "keys")
        charter = self.folder / "charter.toml"
        charter.write_text(self.net.charter.to_toml())
        (self.folder / "value.txt").write_text(VALUE)
        (self.folder / "value.txt").chmod(0o600)
        self.options = {
            "--charter": charter,
            "--name": "p1",
            "--key": self.key,
            "--value-file": self.folder / "value.txt",
            "--state": self.folder / "state",
        }

    @property
    def key(self) -> Path:
        return self.folder / "keys" / "p1" / "p1.key"

    @property
    def journal(self) -> Path:
        return self.folder / "state" / self.net.journal("p1").name

    def charter(self, **others: Any) -> None:
        """Change some keys of the charter, so that it can still be one; None takes a key out."""
        plain = msgspec.to_builtins(self.net.charter) | others
        text = make_charter({k: v for k, v in plain.items() if v is not None}, "charter").to_toml()
        self.options["--charter"].write_text(text)

    def edit(self, old: str, new: str) -> None:
        """Change the text of the charter."""
        path = self.options["--charter"]
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    def value(self, text: str | bytes) -> None:
        path = self.folder / "value.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def pipe(self, text: str | bytes) -> None:
        del self.options["--value-file"]
        self.stdin = text

    def ask(self, command: str) -> None:
        del self.options["--value-file"]
        self.options["--value-command"] = command

    def line(self) -> list[str]:
        return ["node", *(str(part) for pair in self.options.items() for part in pair), *self.more]

    def run(self) -> Result:
        return CliRunner().invoke(main, self.line(), input=self.stdin)


Case = tuple[str, Callable[[Try], object], str]


def give(**options: Any) -> Callable[[Try], None]:
    """Options given otherwise; None leaves one out."""

    def change(one: Try) -> None:
        for name, setting in options.items():
            one.options[f"--{name.replace('_', '-')}"] = setting
        one.options = {name: setting for name, setting in one.options.items() if setting is not None}

    return change


def add(*words: str) -> Callable[[Try], None]:
    return lambda one: one.more.extend(words)


def edit(old: str, new: str) -> Callable[[Try], None]:
    return lambda one: one.edit(old, new)


def both(*changes: Callable[[Try], object]) -> Callable[[Try], object]:
    return lambda one: [change(one) for change in changes]


def search(**others: Any) -> Callable[[Try], None]:
    """The charter of a search."""
    return lambda one: one.charter(method="search", **others)


def value(text: str | bytes) -> Callable[[Try], None]:
    return lambda one: one.value(text)


def let_others(mode: int) -> Callable[[Try], None]:
    return lambda one: (one.folder / "value.txt").chmod(mode)


def pipe(text: str | bytes) -> Callable[[Try], None]:
    return lambda one: one.pipe(text)


def ask(command: str) -> Callable[[Try], None]:
    return lambda one: one.ask(command)


def overwrite(place: str, data: bytes) -> Callable[[Try], None]:
    return lambda one: (one.folder / place).write_bytes(data)


def of_a_stranger(one: Try) -> None:
    """A new key of the same name."""
    keys.make_identity("p1", one.folder / "new")
    one.options["--key"] = one.folder / "new" / "p1.key"


def journal_of(name: str, session: str) -> Callable[[Try], None]:
    """Another's journal, in the place of one's own."""

    def change(one: Try) -> None:
        other = make_charter(msgspec.to_builtins(one.net.charter) | {"session": session}, "charter")
        file = DiskFile(one.journal)
        identity = keys.load_identity(one.folder / "keys" / name / f"{name}.key")
        setup = make_setup(other, name, float(VALUE), CertifiedNotary(other, identity))
        Journal(file, "journal").append(encode_record(Began(setup.draw(os.urandom))))
        file.close()

    return change


def journal(data: bytes) -> Callable[[Try], None]:
    def change(one: Try) -> None:
        one.journal.parent.mkdir()
        one.journal.write_bytes(data)

    return change


MEAN = edit('objective = "median"', 'objective = "mean"')
CASES: list[Case] = [
    # the charter
    ("no such charter", give(charter="nowhere.toml"), "nowhere.toml: No such file"),
    ("a folder for a charter", give(charter="."), "Is a directory"),
    ("an empty charter", overwrite("charter.toml", b""), "missing required field"),
    ("a charter in Latin 1", overwrite("charter.toml", b'session = "\xe9"'), "not a text in UTF-8"),
    ("a charter in JSON", overwrite("charter.toml", b'{"session": "s1"}'), "not TOML"),
    ("a key nobody knows", edit("midst = 2", "midst = 2\nsecret = 3"), "secret"),
    ("another format", edit("midst = 2", "midst = 1"), "format 1"),
    ("no method", edit('method = "consensus"', ""), "missing required field method"),
    ("an unknown method", edit('method = "consensus"', 'method = "guess"'), "method"),
    ("sigma of a search", both(search(), edit("rounds", "sigma = 1.0\nrounds")), 'sigma is for method = "consensus"'),
    ("a mean by search", both(search(), MEAN), "a mean by search needs both"),
    ("lists in an iteration", edit("pooled = false", "pooled = true"), 'pooled is for method = "search"'),
    (
        "a midpoint of floats",
        both(search(), edit('definition = "inverted_cdf"', 'definition = "averaged_inverted_cdf"')),
        "a public resolution",
    ),
    (
        "a midpoint by iteration",
        edit('definition = "inverted_cdf"', 'definition = "averaged_inverted_cdf"'),
        "definition: the midpoint",
    ),
    ("a resolution too fine", edit("rounds", "resolution = 1e-30\nrounds"), "resolution"),
    ("a histogram", edit("arity = 3", "arity = 9"), "arity"),
    ("no session", edit('session = "s1"', ""), "session"),
    ("a session with a slash", edit('session = "s1"', 'session = "../s1"'), "session must be"),
    ("an edge to nobody", edit('["p0", "p1"]', '["p0", "p9"]'), "p9 is no participant"),
    ("an edge to oneself", edit('["p0", "p1"]', '["p0", "p0"]'), "to itself"),
    ("an edge twice", edit('["p0", "p1"]', '["p0", "p1"], ["p1", "p0"]'), "given twice"),
    ("a network in two parts", edit('["p0", "p1"],', ""), "components"),
    ("an address without a port", edit("127.0.0.1:", "localhost-"), "host:port"),
    ("reversed bounds", edit("bounds = [0.0, 100.0]", "bounds = [100.0, 0.0]"), "bounds"),
    ("infinite bounds", edit("bounds = [0.0, 100.0]", "bounds = [0.0, inf]"), "bounds"),
    ("bounds and a scale", edit("bounds", "scale = 1.0\nbounds"), "give one of the two"),
    ("neither bounds nor a scale", edit("bounds = [0.0, 100.0]", ""), "exactly one"),
    ("theta of 1", edit("theta = 0.5", "theta = 1.0"), "theta"),
    ("a negative c", edit("theta", "c = -1.0\ntheta"), "c must be positive"),
    ("a negative sigma", edit("theta", "sigma = -1.0\ntheta"), "sigma"),
    ("a quantile without the objective", edit("theta", "quantile = 0.5\ntheta"), "quantile"),
    ("an unknown objective", edit('objective = "median"', 'objective = "mode"'), "objective"),
    ("no time", edit("total = 2.0", "total = 0.0"), "total"),
    # who
    ("no such participant", give(name="mallory"), "mallory is no participant"),
    ("no name", give(name=""), "is no participant"),
    ("the name of another", give(name="p0"), "is the key of p1, not of p0"),
    ("no such key", give(key="nowhere.key"), "nowhere.key"),
    ("the certificate for the key", lambda one: give(key=one.key.with_suffix(".crt"))(one), "ends in .key"),
    ("a key that others may read", lambda one: one.key.chmod(0o644), "chmod 600"),
    ("a damaged key", overwrite("keys/p1/p1.key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"), "p1.key"),
    ("no certificate", lambda one: one.key.with_suffix(".crt").unlink(), "p1.crt"),
    ("a damaged certificate", overwrite("keys/p1/p1.crt", b"junk"), "p1.crt"),
    (
        "the certificate of another",
        lambda one: shutil.copy(one.folder / "keys/p0/p0.crt", one.key.with_suffix(".crt")),
        "is not the certificate of",
    ),
    ("a key the charter does not know", of_a_stranger, "but the charter has sha256:"),
    ("a damaged certificate in trusted", overwrite("keys/p1/trusted/p0.crt", b"junk"), "p0.crt"),
    # the value
    (
        "a value that others can read",
        let_others(0o644),
        "value.txt: others may read or write this value; try: chmod",
    ),
    ("a value that others can write", let_others(0o602), "others may read or write this value; try: chmod 600"),
    ("no such value file", give(value_file="nowhere.txt"), "nowhere.txt: No such file"),
    ("a folder for a value", give(value_file="."), "directory"),
    ("an empty file", value(""), "no numbers"),
    ("only a comment", value(f"# {VALUE}\n"), "no numbers"),
    ("a word", value("thirty-one"), "line 1: not a number"),
    ("a mistyped number", value(VALUE + "O"), "line 1: not a number"),
    ("a comma for a point", value("31,337"), "line 1: the comma may be a decimal comma"),
    ("a point for a comma", both(value("31.337"), give(csv="semicolon")), "line 1: not written with a decimal comma"),
    ("no form of a file", give(csv="comma"), "--csv: give semicolon, or such words"),
    ("two numbers", value("31\n32\n"), "2 numbers for p1"),
    ("not a number", value("nan"), "not a finite number"),
    ("infinity", value("-inf"), "not a finite number"),
    ("beyond the bounds", value("100.00001"), "between the charter's bounds, 0 and 100"),
    ("below the bounds", value("-0.001"), "between the charter's bounds, 0 and 100"),
    ("a huge number", value("1e400"), "not a finite number"),
    ("no numbers in a list", both(search(pooled=True), value("# none\n")), "no numbers"),
    ("not a number in a list", both(search(pooled=True), value(f"1 2 {VALUE}\n4 nan 5\n")), "finite"),
    ("a word in a list", both(search(pooled=True), value(f"1 2 {VALUE}x\n")), "line 1: not a number"),
    ("one of a list beyond the bounds", both(search(pooled=True), value(f"1\n-{VALUE}\n5\n")), "bounds, 0 and 100"),
    ("a list that is not pooled", both(search(), value("1 2 3")), "lists of values need pooled = true"),
    ("beyond the bounds of a search", both(search(), value(f"1{VALUE}")), "between the charter's bounds, 0 and 100"),
    ("beyond what a resolution reaches", both(search(bounds=None, resolution=1e-9), value("1e12")), "finite"),
    ("bytes", value(b"\xff\xfe3\x001\x00"), "not a text in UTF-8"),
    ("nothing on standard input", pipe(""), "standard input: no numbers"),
    ("a word on standard input", pipe("31.x\n"), "standard input, line 1: not a number"),
    ("bytes on standard input", pipe(b"\xff31\n"), "standard input: not a text in UTF-8"),
    ("a file and a command", give(value_command="cat value.txt"), "not both"),
    ("no such command", ask("midst-no-such-program"), "--value-command: cannot be run"),
    ("an empty command", ask(""), "--value-command: cannot be run"),
    ("an open quote", ask("cat 'value"), "--value-command: quotes do not match"),
    ("a command that fails", ask("false"), "--value-command: ended with code 1"),
    ("a command that says nothing", ask("true"), "--value-command: no numbers"),
    ("a command that says a word", ask("echo 31.x"), "--value-command, line 1: not a number"),
    ("a command that says bytes", ask(r"printf '\377'"), "--value-command: "),
    ("a command through a shell", ask("echo 31 | cat"), "--value-command, line 1: not a number"),
    # the options
    ("no charter", give(charter=None), "Missing option '--charter'"),
    ("no name given", give(name=None), "Missing option '--name'"),
    ("no key", give(key=None), "Missing option '--key'"),
    ("a seed", add("--seed", "7"), "No such option '--seed'"),
    ("a seed for values", add("--seed-values", "7"), "No such option '--seed-values'"),
    ("the value as an option", add("--value", VALUE), "No such option '--value'"),
    ("the value as an option, joined", add(f"--value={VALUE}"), "No such option '--value'"),
    ("the value as an argument", add(VALUE), "unexpected extra argument"),
    ("a result of a mean", both(MEAN, add("--out", "result.json")), "--out: a mean is proved by residuals"),
    ("a result into nowhere", add("--out", "nowhere/result.json"), "nowhere"),
    ("a folder for a result", add("--out", "."), "."),
    ("nowhere to listen", add("--listen", "here"), "address must be host:port"),
    ("everywhere for an address", add("--metrics", "127.0.0.1:0"), "address must be host:port"),
    ("an unknown log", add("--log", "xml"), "--log"),
    # the journal
    ("a file for a folder", lambda one: give(state=one.folder / "value.txt")(one), "value.txt"),
    ("a folder in a file", lambda one: give(state=one.folder / "value.txt" / "state")(one), "give --state a folder"),
    ("something else in its place", journal(b"a shopping list\n"), "not a midst journal"),
    ("a journal of another version", journal(b"midst journal 1\n" + bytes(30)), "a journal of another version"),
    ("a damaged journal", journal(MAGIC + bytes([9, 0, 0, 0, *range(8)]) + bytes(30)), "damaged"),
    ("an empty journal", journal(b""), "damaged: it is empty"),
    ("a journal of another session", journal_of("p1", "s2"), "another session"),
    ("a journal of somebody else", journal_of("p0", "s1"), "another session or participant"),
]


def table(cases: Sequence[tuple[str, Any, str]]) -> list[Any]:
    return [pytest.param(*rest, id=name) for name, *rest in cases]


@pytest.mark.parametrize(("change", "words"), table(CASES))
def test_bad_input(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Try], object], words: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    one = Try(net, tmp_path)
    change(one)
    before, threads = snapshot(tmp_path), threading.enumerate()
    refused(one, words)
    assert snapshot(tmp_path) == before
    assert threading.enumerate() == threads


def refused(one: Try, words: str) -> None:
    """Exit code 2, one line, and not a byte to a neighbour."""
    with nobody_calls(port_of(one.net.charter, 0), port_of(one.net.charter, 2)):
        done = one.run()
    assert_refused(done, words)


def assert_refused(done: Result, words: str) -> None:
    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("midst: error: ")
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr
    assert VALUE not in done.stderr


def snapshot(folder: Path) -> dict[Path, bytes | None]:
    """Everything in a folder; but a lock, which is empty and says nothing."""
    found = (path for path in sorted(folder.rglob("*")) if path.suffix != ".lock" or path.read_bytes())
    return {path: path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize("option", ["its own address", "--listen", "--metrics"])
def test_an_address_in_use(net: Network, tmp_path: Path, option: str) -> None:
    """Nothing is sent. A journal may have been begun; it is gone on with, and no second one is."""
    one = Try(net, tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0 if option.startswith("--") else port_of(net.charter, 1)))
        taken.listen()
        port = taken.getsockname()[1]
        one.more = [option, f"127.0.0.1:{port}"] if option.startswith("--") else []
        refused(one, "in use")
        kept = [path.read_bytes() for path in tmp_path.glob("state/*.journal")]
        refused(one, "in use")
    assert [path.read_bytes() for path in tmp_path.glob("state/*.journal")] == kept


def issue(one: Try, **dates: datetime) -> None:
    """Another certificate for p1, of these dates, and a charter that has it."""
    make_dated(one.key.parent, "p1", **dates)
    plain = msgspec.to_builtins(one.net.charter)
    plain["participants"][1]["fingerprint"] = keys.load_identity(one.key).fingerprint
    one.charter(participants=plain["participants"])


@pytest.mark.parametrize(
    ("begins", "ends", "words"), [(-9, -1, "certificate of p1 expired on"), (1, 9, "certificate of p1 is valid from")]
)
def test_its_own_certificate_is_of_another_time(
    net: Network, tmp_path: Path, begins: int, ends: int, words: str
) -> None:
    one = Try(net, tmp_path)
    now = datetime.now(UTC)
    issue(one, begins=now + timedelta(days=begins), expires=now + timedelta(days=ends))
    refused(one, words)
    assert not (tmp_path / "state").exists()


def test_at_a_terminal_it_does_not_wait_for_a_value(net: Network, tmp_path: Path) -> None:
    one = Try(net, tmp_path)
    del one.options["--value-file"]
    ours, theirs = pty.openpty()
    with nobody_calls(port_of(net.charter, 0), port_of(net.charter, 2)):
        line = [sys.executable, "-m", "midst", *one.line()]
        done = subprocess.run(line, stdin=theirs, capture_output=True, text=True, timeout=30)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("midst: error: no value: give --value-file or --value-command, or pipe it in")


def test_the_environment_gives_no_value(net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for prefix in ("", "MIDST_", "MIDST_NODE_"):
        for name in ("VALUE", "VALUE_FILE", "VALUE_COMMAND", "SEED"):
            monkeypatch.setenv(prefix + name, "31")
    one = Try(net, tmp_path)
    one.pipe("")
    refused(one, "standard input: no numbers")


def test_no_option_takes_a_value_or_a_seed() -> None:
    command = main.get_command(main.make_context("midst", ["node"], resilient_parsing=True), "node")
    assert command is not None
    names = {option for parameter in command.params for option in parameter.opts}
    assert names == {
        "--charter", "--name", "--key", "--value-file", "--value-command", "--state",
        "--listen", "--metrics", "--explore", "--out", "--ledger", "--despite-ledger", "--prior", "--log", "--json",
        "--column", "--missing", "--csv", "--dp", "--save",
    }  # fmt: skip
    assert not any(isinstance(parameter, click.Argument) or parameter.envvar for parameter in command.params)


# The other two


UP: list[tuple[str, list[str], str]] = [
    ("no graph", [], "Missing option '--graph'"),
    ("an unknown graph", ["--graph", "moebius", "--nodes", "5"], "moebius"),
    ("no number of nodes", ["--graph", "ring"], "how many nodes"),
    ("no nodes", ["--graph", "ring", "--nodes", "0"], "at least 3"),
    ("one node", ["--graph", "complete", "--nodes", "1"], "at least 2"),
    ("a negative number of nodes", ["--graph", "ring", "--nodes", "-3"], "at least 3"),
    ("half a node", ["--graph", "ring", "--nodes", "2.5"], "--nodes"),
    ("an unknown option of a graph", ["--graph", "ring:k=3", "--nodes", "5"], "k"),
    ("a graph in two parts", ["--graph", "parts.txt"], "components"),
    ("no such graph file", ["--graph", "nowhere.txt"], "nowhere.txt"),
    ("no such values", ["--graph", "ring", "--values", "nowhere.txt"], "nowhere.txt"),
    ("a word for a value", ["--graph", "ring", "--values", "word.txt"], "word.txt, line 2: not a number"),
    ("rows of two lengths", ["--graph", "ring", "--values", "ragged.txt"], "ragged.txt, line 2"),
    ("too few values", ["--graph", "ring", "--nodes", "5", "--values", "three.txt"], "3"),
    ("no values at all", ["--graph", "ring", "--values", "empty.txt"], "no numbers"),
    ("values beyond the bounds", ["--graph", "ring", "--values", "three.txt", "--bounds", "0:2"], "bounds"),
    ("bounds reversed", ["--graph", "ring", "--nodes", "3", "--bounds", "2:0"], "bounds"),
    ("one bound", ["--graph", "ring", "--nodes", "3", "--bounds", "2"], "--bounds"),
    ("a quantile beyond 1", ["--graph", "ring", "--nodes", "3", "--quantile", "1.5"], "quantile"),
    ("two objectives", ["--graph", "ring", "--nodes", "3", "--quantile", "0.5", "--objective", "median"], "not both"),
    ("an unknown objective", ["--graph", "ring", "--nodes", "3", "--objective", "mode"], "--objective"),
    ("a mode", ["--graph", "ring", "--nodes", "3", "--mode", "lossy"], "No such option '--mode'"),
    ("an unknown method", ["--graph", "ring", "--nodes", "3", "--method", "guess"], "--method"),
    ("a mean by search", ["--graph", "ring", "--nodes", "3", "--objective", "mean"], "needs --bounds and --resolution"),
    ("two of a search", ["--graph", "path", "--nodes", "2", "--method", "search"], "at least three"),
    ("a histogram", ["--graph", "ring", "--nodes", "3", "--method", "search", "--arity", "8"], "arity"),
    ("resolution zero", ["--graph", "ring", "--nodes", "3", "--resolution", "0"], "resolution must be a positive"),
    (
        "lists in an iteration",
        ["--graph", "ring", "--values", "lists.txt", "--method", "consensus", "--pooled"],
        "is for --method search",
    ),
    ("lists from nowhere", ["--graph", "ring", "--nodes", "3", "--method", "search", "--pooled"], "needs --values"),
    ("a word in a list", ["--graph", "ring", "--values", "word.txt", "--method", "search", "--pooled"], "line 2: not"),
    ("NaN in a list", ["--graph", "ring", "--values", "nan.txt", "--method", "search", "--pooled"], "finite"),
    ("no lists", ["--graph", "ring", "--values", "empty.txt", "--method", "search", "--pooled"], "no numbers"),
    (
        "one of a list beyond the bounds",
        ["--graph", "ring", "--values", "lists.txt", "--method", "search", "--pooled", "--bounds", "0:30"],
        "the value of node1 is not a number between the charter's bounds, 0 and 30",
    ),
    (
        "a result of a mean",
        ["--graph", "ring", "--nodes", "3", "--method", "consensus", "--objective", "mean", "--out", "r.json"],
        "residuals",
    ),
    ("a result into nowhere", ["--graph", "ring", "--nodes", "3", "--out", "nowhere/r.json"], "nowhere"),
    ("no time", ["--graph", "ring", "--nodes", "3", "--deadline", "0"], "--deadline"),
    ("a deadline that is no number", ["--graph", "ring", "--nodes", "3", "--deadline", "nan"], "deadlines"),
    ("a quantile that is no number", ["--graph", "ring", "--nodes", "3", "--quantile", "nan"], "quantile"),
    ("bounds that are no numbers", ["--graph", "ring", "--nodes", "3", "--bounds", "nan:1"], "bounds"),
    ("a negative seed", ["--graph", "ring", "--nodes", "3", "--seed-values", "-1"], "--seed-values"),
    ("a seed for z(0)", ["--graph", "ring", "--nodes", "3", "--seed", "1"], "No such option '--seed'"),
]


@pytest.mark.parametrize(("words", "text"), table(UP))
def test_up_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], text: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    Path("parts.txt").write_text("0 1\n2 3\n")
    Path("word.txt").write_text(f"1\n{VALUE}x\n3\n")
    Path("ragged.txt").write_text(f"1 2\n{VALUE}\n")
    Path("three.txt").write_text(f"1\n{VALUE}\n3\n")
    Path("empty.txt").write_text("\n# none\n")
    Path("lists.txt").write_text(f"1 2\n3 {VALUE}\n4\n")
    Path("nan.txt").write_text("1 2\nnan\n4\n")
    before = snapshot(tmp_path)
    monkeypatch.setattr(local.multiprocessing, "get_context", lambda *_: pytest.fail("it went on"))
    assert_refused(CliRunner().invoke(main, ["up", *words, "--json"]), text)
    assert snapshot(tmp_path) == before
    assert multiprocessing.active_children() == []

"""The command itself: what it loads, what it says when something goes wrong, and with which exit code."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import midst
from midst import cli
from midst.cli import main
from midst.errors import InputError, MissingExtra

SECRET = "31337.4242"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def python(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=30, **options)  # type: ignore[call-overload, no-any-return]


def failing(error: BaseException) -> click.Command:
    @click.command
    def command() -> None:
        raise error

    return command


@pytest.fixture
def fail_with(monkeypatch: pytest.MonkeyPatch) -> object:
    """Runs a command that raises the error given."""

    def run(error: BaseException) -> Result:
        monkeypatch.setitem(cli.COMMANDS, "fail", ("midst.cli.fail", "Fails."))
        module = type(sys)("midst.cli.fail")
        module.command = failing(error)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "midst.cli.fail", module)
        return invoke("fail")

    return run


HEAVY = {"numpy", "scipy", "pandas", "networkx", "cryptography", "matplotlib", "rich", "jax", "pyarrow"}
SHOW_HELP = """
import sys
import click
from midst.cli import main

def show(command, path):
    print(*path)
    try:
        main([*path, "--help"])
    except SystemExit as done:
        assert done.code == 0
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            show(command.get_command(context, name), [*path, name])
"""
AND_TELL = """
print(sorted({name.partition(".")[0] for name in sys.modules}))
print(sorted(name for name in sys.modules if name.startswith("midst")))
"""


def test_help_of_midst_imports_no_command() -> None:
    done = python("-c", f"{SHOW_HELP}show(None, []){AND_TELL}")
    every, own = map(literal_eval, done.stdout.splitlines()[-2:])
    assert not HEAVY & set(every)
    assert own == ["midst", "midst.cli", "midst.errors"]


def test_help_of_every_command_imports_nothing_heavy() -> None:
    # All in one process: what any of them imports is there in the end.
    done = python("-c", f"{SHOW_HELP}show(main, []){AND_TELL}")
    shown = done.stdout.splitlines()
    assert not HEAVY & set(literal_eval(shown[-2])), done.stdout
    assert {*cli.COMMANDS, "keys init", "charter new", "ledger show"} <= set(shown)


def test_help_names_every_command_and_exit_code() -> None:
    text = invoke("--help").stdout
    for name, (_, summary) in cli.COMMANDS.items():
        assert f"{name}  " in text
        assert summary in text
    for code in (0, 1, 2, 3, 130):
        assert f"\n    {code} " in text


def test_without_arguments_it_shows_the_help() -> None:
    assert invoke().stdout == invoke("--help").stdout
    assert invoke().exit_code == 0


def test_every_command_in_the_table_has_its_help() -> None:
    for name in cli.COMMANDS:
        done = invoke(name, "--help")
        assert done.exit_code == 0
        assert done.stdout.startswith(f"Usage: midst {name}")


def test_python_m_midst() -> None:
    done = python("-m", "midst", "--version")
    assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, f"midst {midst.__version__}", "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["walk"], "midst: error: No such command 'walk' (see midst --help)"),
        (["--walk"], "midst: error: No such option '--walk' (see midst --help)"),
        (["run"], "midst: error: Missing option '--graph' (see midst run --help)"),
        (["run", "--walk"], "midst: error: No such option '--walk'. Did you mean '--scale'? (see midst run --help)"),
    ],
)
def test_usage_errors_are_one_line(arguments: list[str], line: str) -> None:
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"{line}\n"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("no\nnewline"), 2, "midst: error: no newline"),
        (MissingExtra("matplotlib", "plot"), 2, str(MissingExtra("matplotlib", "plot"))),
        (OSError(28, "No space left on device", "run.npz"), 1, "midst: error: run.npz: No space left on device"),
        (OSError(28, "No space left on device"), 1, "midst: error: No space left on device"),
        (MemoryError(SECRET), 1, "midst: error: out of memory; try fewer nodes, or --record audit"),
        (OSError(SECRET), 1, "midst: error: unexpected OSError at midst/cli/__init__.py:"),
        (ValueError(SECRET), 1, "midst: error: unexpected ValueError at midst/cli/__init__.py:"),
        (KeyboardInterrupt(), 130, "midst: interrupted"),
    ],
)
def test_errors_become_a_line_and_a_code(fail_with: object, error: BaseException, code: int, line: str) -> None:
    done = fail_with(error)  # type: ignore[operator]
    assert done.exit_code == code
    assert line in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert SECRET not in done.output


def test_debugging_shows_everything(fail_with: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDST_DEBUG", "1")
    assert isinstance(fail_with(ValueError(SECRET)).exception, ValueError)  # type: ignore[operator]


def test_an_error_from_nowhere_has_no_place() -> None:
    message, code = cli.explain(RuntimeError(SECRET))
    assert code == 1
    assert "unexpected RuntimeError at an unknown place" in message


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m midst run --graph ring --nodes 5 --save run.npz | true"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    assert (tmp_path / "run.npz").exists()

"""What people see: a bar on a terminal, tables everywhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress

import pytest
from click.testing import CliRunner

from midst.cli import main
from midst.cli.terminal import show_table
from midst.progress import phases, task_bar


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with task_bar("fig1", of="cells") as progress:
        assert progress is not None
        progress(123, 456)
    shown = capsys.readouterr().err
    assert "123/456" in shown
    assert "cells" in shown


def test_no_bar_elsewhere(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with task_bar("fig1") as progress:
        assert progress is None


def test_a_table_in_a_pipe_is_not_cut(capsys):
    show_table("title", ("a" * 40, "b" * 40), [["1", "x"], ["2", "y"]], [True, False], words=("b" * 40,))
    assert "a" * 40 in capsys.readouterr().out


# Phases, on a pseudo-terminal

SLOW = """
import sys, time
from midst.cli import main
{patch}
main(sys.argv[1:])
"""


def on_a_terminal(folder, patch: str, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command of which only stderr is a terminal."""
    ours, theirs = pty.openpty()
    with open(folder / "out", "w+b") as out:
        line = [sys.executable, "-c", SLOW.format(patch=patch), *words]
        process = subprocess.Popen(line, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs)
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the other end is closed
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
        code = process.wait()
        out.seek(0)
        return code, out.read().decode(), shown.decode()


def slow(where: str, name: str) -> str:
    """Lines that make a function take a while."""
    return (
        f"import {where} as module\nreal = module.{name}\n"
        f"module.{name} = lambda *a, **k: (time.sleep(0.6), real(*a, **k))[1]\n"
    )


RUN = ("run", "--graph", "rgg", "--nodes", "9", "--seed", "3")
ITERATED = (*RUN, "--method", "consensus")


@pytest.mark.parametrize(
    ("patch", "words", "phase"),
    [
        (slow("midst.graphs.generators", "_near"), RUN, "making the graph"),
        (slow("midst.solving", "_by_search"), RUN, "searching"),
        (slow("midst.solving", "_search"), ITERATED, "searching"),
        (
            "import midst.solving\nmidst.solving._BETWEEN_REPORTS = 0.0",
            (*ITERATED, "--iterations", "300"),
            "iteration ",
        ),
        (slow("midst.privacy.audit", "audit"), ("audit", "run.npz"), "auditing"),
        (slow("midst.privacy.attack", "reconstruct"), ("attack", "run.npz"), "estimating every value"),
        (slow("midst.studies.plan", "make_plan"), ("plan", *RUN[1:5], "--runs", "2"), "2 runs of each method"),
        (slow("midst.cli.account", "entry_of"), (*RUN, "--record", "audit", "--ledger", "l"), "keeping account"),
    ],
    ids=["graph", "search", "finish", "iteration", "audit", "attack", "plan", "ledger"],
)
def test_what_lasts_is_named(tmp_path, monkeypatch, patch, words, phase):
    monkeypatch.chdir(tmp_path)
    for first in ((*RUN, "--save", "run.npz", "--record", "audit"), ("ledger", "new", "l")):
        assert CliRunner().invoke(main, list(first)).exit_code == 0
    code, out, shown = on_a_terminal(tmp_path, patch, *words)
    assert code == 0, shown
    assert phase in shown
    assert re.search(r"\d:\d\d:\d\d", shown)
    assert shown.rstrip().endswith("\x1b[2K") or "\x1b[2K" in shown.rsplit(phase, 1)[1]
    assert "midst:" not in shown
    assert phase not in out


def test_nothing_is_named_elsewhere(tmp_path):
    line = [sys.executable, "-m", "midst", *RUN]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_shown_to_who_types(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with phases(show=False) as say:
        say("reading")
    assert capsys.readouterr().err == ""


def test_a_name_in_a_table_is_no_markup(capsys):
    show_table("of x[/red]", ("node",), [["x[/red]:cat:"], ["[bold]y"]], [True, False])
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("of x[/red]", "x[/red]:cat:", "[bold]y"))

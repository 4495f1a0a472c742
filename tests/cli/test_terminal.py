"""What people see: a bar on a terminal, tables everywhere."""

from __future__ import annotations

import sys

from midst.cli.terminal import show_table, task_bar


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

"""What commands show to people: what they do while they work, tables when they are done.

Rules:
- On a terminal nothing is done in silence for longer than a second or two: what lasts names its phases (`phases`), or
  counts its tasks (`task_bar`). Nothing is left of either, and nothing is said where stderr is no terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midst.workers import TaskProgress

_WIDTH = 120  # of a table that goes to a file or a pipe


@contextmanager
def phases(show: bool = True) -> Iterator[Callable[[str], None]]:
    """Gives what says on stderr which phase work is in, beside the time that it has taken, on a terminal.

    Args:
        show: whether to say anything at all; not where somebody may be typing.
    """
    if not (show and sys.stderr.isatty()):
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import Progress as Display
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=None)
        yield lambda text: display.update(task, description=text, refresh=True)


@contextmanager
def task_bar(name: str, of: str = "runs") -> Iterator[TaskProgress | None]:
    """A bar on stderr for tasks of a known number, on a terminal; nothing is left of it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TextColumn(of), TimeRemainingColumn())
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("")
        yield lambda done, total: display.update(task, completed=done, total=total)


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[bool], words: Sequence[str] = ()
) -> None:
    """A table on stdout, some rows in colour; columns of words are aligned left, those of numbers right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="left" if column in words else "right", no_wrap=True)
    for row, mark in zip(rows, marked, strict=True):
        table.add_row(*row, style="yellow" if mark else None)
    Console(width=None if sys.stdout.isatty() else _WIDTH).print(table)

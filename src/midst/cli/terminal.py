"""Tables that commands show to people."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_WIDTH, _WIDEST = 120, 10_000  # of a table that goes to a file or a pipe: as it is usually, and where it needs more


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[bool], words: Sequence[str] = ()
) -> None:
    """A table on stdout, some rows in colour; columns of words are aligned left, those of numbers right."""
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="left" if column in words else "right", no_wrap=True)
    for row, mark in zip(rows, marked, strict=True):
        table.add_row(*row, style="yellow" if mark else None)
    console = Console(width=None if sys.stdout.isatty() else _WIDEST, markup=False, emoji=False)
    if not sys.stdout.isatty():  # nothing is cut where nobody could make the window wider
        console.width = max(_WIDTH, Measurement.get(console, console.options, table).maximum)
    console.print(table)

"""What is shown while work goes on: on a terminal, and in a notebook.

Rules:
- Where somebody looks, nothing is done in silence for longer than a second or two: what lasts names its phases
  (`phases`), or counts its tasks (`task_bar`). Nothing is left of either.
- On a terminal that is on stderr; in a notebook, in the output of the cell. Elsewhere nothing is said.
- In a notebook a line is replaced in place (IPython's `display`), so that no widgets have to be installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from midst.workers import TaskProgress

if TYPE_CHECKING:
    from rich.progress import Progress as Display

Progress = Callable[[int, float | None], None]  # an iteration, and the spread of x; None when a search goes on

_BETWEEN = 0.2  # seconds, from one picture in a notebook to the next


@contextmanager
def phases(show: bool = True) -> Iterator[Callable[[str], None]]:
    """Gives what says which phase work is in, beside the time that it has taken.

    Args:
        show: whether to say anything at all; not where somebody may be typing.
    """
    if not (show and _is_watched()):
        yield lambda text: None
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _display(SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()) as update:
        yield lambda text: update(description=text)


@contextmanager
def task_bar(name: str, of: str = "runs") -> Iterator[TaskProgress | None]:
    """A bar for tasks of a known number."""
    if not _is_watched():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TextColumn(of), TimeRemainingColumn())
    with _display(*columns) as update:
        yield lambda done, total: update(completed=done, total=total)


def watch_tasks(
    progress: TaskProgress | bool | None, name: str, of: str
) -> AbstractContextManager[TaskProgress | None]:
    """What tasks are told to, as people ask for it: a function of theirs; True for a bar; or nothing."""
    return task_bar(name, of) if progress is True else nullcontext(progress or None)


@contextmanager
def watch_run(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """What a run is told to: a function of the caller's; True for a line that says where it stands; or nothing."""
    if progress is True:
        with phases() as say:
            say("solving")
            yield partial(tell, say)
    else:
        yield progress or None


def tell(say: Callable[[str], None], t: int, spread: float | None) -> None:
    """Say where an iteration stands."""
    say("searching" if spread is None else f"iteration {t + 1:,}, spread {spread:.1e} of the scale")


def _is_watched() -> bool:
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    """Whether this is the process behind a notebook, as IPython says if anybody has loaded it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


@contextmanager
def _display(*columns: Any) -> Iterator[Callable[..., None]]:
    """One line of rich's, and what changes it."""
    from rich.progress import Progress as Display

    if _in_notebook():
        display = Display(*columns, auto_refresh=False, disable=True)
        with _in_output(display) as update:
            yield update
        return
    with on_terminal(*columns) as update:
        yield update


@contextmanager
def on_terminal(*columns: Any, total: int | None = None, **facts: Any) -> Iterator[Callable[..., None]]:
    """One line of rich's on stderr, and what changes it; nothing is left of it."""
    from rich.console import Console
    from rich.progress import Progress as Display

    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=total, **facts)
        yield lambda **facts: display.update(task, refresh="description" in facts, **facts)


@contextmanager
def _in_output(display: Display) -> Iterator[Callable[..., None]]:
    """The line in the output of a cell, from its first change on; replaced no more often than eyes follow."""
    from IPython import display as notebook

    html: Any = notebook.HTML
    show: Any = notebook.display
    task, handle, due = display.add_task("", total=None), None, 0.0

    def update(**facts: Any) -> None:
        nonlocal handle, due
        display.update(task, **facts)
        if monotonic() < due:
            return
        due, line = monotonic() + _BETWEEN, display.make_tasks_table(display.tasks)
        if handle is None:
            handle = show(line, display_id=True)
        else:
            handle.update(line)

    try:
        yield update
    finally:
        if handle is not None:
            handle.update(html(""))

"""`midst sweep`: the same experiment over a grid of settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from midst.cli.options import WIDTH_HELP, WIDTH_NAMES, check_plot, refuse_given
from midst.cli.terminal import show_table
from midst.progress import phases, task_bar

if TYPE_CHECKING:
    from midst.plots.style import Width
    from midst.studies.sweep import CellSummary

_TITLE = "rounds: median, and what nine runs in ten took at most; error: the largest"
_MOST_SHOWN = 60  # cells, on the terminal
_PLOT = "Draw rounds, exposed nodes and bits of every cell (.png, .pdf, .svg)."
_OUT = "A folder for the tables; made if it is not there."
_WORKERS = "Processes on this machine. The numbers do not depend on it."
_EXAMPLES = """\b
Example:
  midst sweep spec.toml --out results --workers 2
\b
with spec.toml:
  runs = 100
  [grid]
  graph = ["ring", "complete", {kind = "rgg", radius = 0.4}]
  n = [15, 51]
  c = [1.0, 10.0]"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.argument("spec", type=click.Path(path_type=Path), metavar="SPEC.toml")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help=_OUT)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help=_WORKERS)
@click.option("--cluster", metavar="ADDRESS", help="Compute on the Dask cluster of this scheduler instead.")
@click.option("--resume", is_flag=True, help="Go on with a sweep that was begun in this folder.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.png", help=_PLOT)
@click.option("--width", type=click.Choice(WIDTH_NAMES), help=WIDTH_HELP)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of the summary.")
def command(
    spec: Path,
    out: Path,
    workers: int,
    cluster: str | None,
    resume: bool,
    plot: Path | None,
    width: Width | None,
    as_json: bool,
) -> None:
    """Run the same experiment over a grid of settings.

    Writes a table with a row a run, and ends with a summary, a line a cell. A sweep that was killed goes on where it
    was with --resume; of one that is done, that shows the summary again.
    """
    from midst.studies.sweep import read_spec, run_sweep

    check_plot(plot, width)

    if cluster is not None:
        refuse_given(("workers",), "is of this machine; the workers of --cluster are its own")
    with phases() as say:
        say("checking every cell")
        read = read_spec(spec)
    with task_bar("sweep", of="cells") as progress:
        done = run_sweep(read, out, workers=workers, cluster=cluster, resume=resume, progress=progress)
    if plot is not None:
        from midst.plots.results import save_figure

        save_figure(done.plot(width=width), plot)
    if as_json:
        click.echo(json.dumps(done.to_dict() | {"out": str(out)}))
        return
    before = done.cells - done.computed
    known = f" ({before:,} done before)" if before else ""
    click.echo(
        f"{done.cells:,} cells{known}, {done.runs:,} runs, {done.certified:,} of them proved: "
        + ", ".join(str(out / table) for table in done.tables)
    )
    _show(done.summary)


def _show(cells: Sequence[CellSummary]) -> None:
    """A line a cell: what was set, as far as that is not the same everywhere, and what came of it."""
    from midst.studies.sweep.spec import WORDS

    names = list(dict.fromkeys(name for cell in cells for name in cell.settings))
    listened = any(cell.bits is not None for cell in cells)
    columns = (*names, "proved", "rounds", "9 in 10", "exposed", "error", *(["bits"] * listened))
    shown = cells[:_MOST_SHOWN]
    rows = [
        [
            *(cell.settings.get(name, "") for name in names),
            f"{cell.certified:,} of {cell.runs:,}",
            f"{cell.rounds:,.6g}",
            f"{cell.most_rounds:,.6g}",
            f"{cell.exposed:.0%}",
            f"{cell.error:.2g}",
            *(["" if cell.bits is None else f"{cell.bits:.2f}"] * listened),
        ]
        for cell in shown
    ]
    show_table(_TITLE, columns, rows, [cell.certified < cell.runs for cell in shown], WORDS)
    if len(cells) > _MOST_SHOWN:
        click.echo(f"and {len(cells) - _MOST_SHOWN:,} more cells; --json has all of them")

"""`midst paper`: the paper's figures, and which of its claims hold.

Rules:
- Everything is checked before the first run; each figure is written when it is finished, whole or not at all.
- A claim that fails is a result, not an error: the exit code is 0.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from midst.errors import InputError, closest
from midst.progress import task_bar

if TYPE_CHECKING:
    from midst.studies.paper.gallery import Plate

FIGURES = ("fig1", "fig2", "fig3", "fig4", "beyond")  # of the gallery, which takes time to load
_A_FOLDER = click.Path(path_type=Path, readable=False)  # whether it can be written is for midst to say
_EXAMPLES = """\b
Examples:
  midst paper --out figures
  midst paper fig3 fig4 --runs 400 --seed 7 --json"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.argument("figures", nargs=-1, metavar="[" + "|".join(FIGURES) + "]...")
@click.option("--out", type=_A_FOLDER, default="figures", show_default=True, help="A folder.")
@click.option("--runs", type=int, default=100, show_default=True, help="Of each experiment.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything random.")
@click.option("--workers", type=int, metavar="N", help="Processes; of no effect on the numbers. Default: all cores.")
@click.option("--json", "as_json", is_flag=True, help="Write the claims to stdout as one JSON object.")
def command(figures: tuple[str, ...], out: Path, runs: int, seed: int, workers: int | None, as_json: bool) -> None:
    """Reproduce the paper's figures, and say which of its claims hold.

    Writes for each figure a picture (PNG, PDF), its data (CSV) and its claims (claims.json, and a table as text).
    """
    from midst.studies.paper.gallery import check_folder, make, publish
    from midst.studies.paper.runs import StudySettings

    names = _names(figures)
    settings = StudySettings(runs, seed, (os.cpu_count() or 1) if workers is None else workers)
    check_folder(out)
    entries = {}
    for name in names:
        with task_bar(name, of="tasks") as progress:
            plate = make(name, replace(settings, progress=progress))
        publish(plate, out)
        entries[name] = plate.entry()
        if not as_json:
            click.echo(_report(plate))
    if as_json:
        click.echo(json.dumps(entries))
    else:
        click.echo(f"written to {out}")


def _names(asked: tuple[str, ...]) -> list[str]:
    """The figures asked for, each once; all if none was."""
    for name in asked:
        if name not in FIGURES:
            raise InputError(f"unknown figure {name!r}; the figures are {', '.join(FIGURES)}{closest(name, FIGURES)}")
    return list(dict.fromkeys(asked or FIGURES))


def _report(plate: Plate) -> str:
    """A line a claim, and one for where in its range it fails."""
    from midst.studies.paper.gallery import show_measured

    lines = [f"{plate.name}: {plate.entry()['title']}"]
    for claim in plate.claims:
        value, interval = show_measured(claim)
        measured = f"{value} ({interval})" if interval else value
        lines.append(f"  {'holds' if claim.holds else 'FAILS'}  {claim.text} {measured}")
        if claim.failing:
            where = "; ".join(claim.failing)
            lines.append(f"         fails at {len(claim.failing)} of {len(claim.cases)} points of its range: {where}")
    return "\n".join(lines) + "\n"

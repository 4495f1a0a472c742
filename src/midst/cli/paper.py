"""`midst paper`: the paper's figures, which of its claims hold, and what we add.

Rules:
- Everything is checked before the first run; each figure is written when it is finished, whole or not at all.
- A claim that fails is a result, not an error: the exit code is 0.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.cli.options import GRAPH_HELP, KINDS, is_given, offer_graphs, read_graph, refuse_given
from midst.errors import InputError, closest
from midst.progress import task_bar

if TYPE_CHECKING:
    from midst.studies.paper.gallery import Plate

FIGURES = ("fig1", "fig2", "fig3", "fig4", "beyond")  # of the gallery, which takes time to load
_OWN = ("c", "theta", "nodes", "graph", "values", "mu", "sigma")
_VARIED = {"fig3": ("graph", "own_graph"), "fig4": ("c",), "beyond": _OWN}  # by the figure itself
_A_FOLDER = click.Path(path_type=Path, readable=False)  # whether it can be written is for midst to say
_EXAMPLES = """\b
Examples:
  midst paper --out figures
  midst paper fig3 fig4 --runs 400 --seed 7 --json
  midst paper fig1 fig2 --values numbers.txt --graph complete --c 3"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.argument("figures", nargs=-1, metavar="[" + "|".join(FIGURES) + "]...")
@click.option("--out", type=_A_FOLDER, default="figures", show_default=True, help="A folder.")
@click.option("--c", type=float, help="Convergence parameter. Default: 1. Not for fig4, which varies it.")
@click.option("--theta", type=float, help="Averaging constant, in (0, 1). Default: ½, as Algorithm 1 has it.")
@click.option(
    "--nodes",
    type=click.IntRange(min=2),
    metavar="N",
    help="How many. Default: 5 in fig1 and fig2, 15 in fig3 and fig4.",
)
@click.option("--graph", shell_complete=offer_graphs, metavar="KIND|FILE", help=f"{GRAPH_HELP} Not for fig3.")
@click.option("--values", type=click.Path(), metavar="FILE|-", help="The data: a number a line, for each node one.")
@click.option("--mu", type=float, help="Mean of z(0). Default: 0; in fig2 -10.")
@click.option("--sigma", type=float, help="Standard deviation of z(0). Default: 0.1; in fig2 1.")
@click.option("--runs", type=int, default=100, show_default=True, help="Of each draw of the data.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything random.")
@click.option("--workers", type=int, metavar="N", help="Processes; of no effect on the numbers. Default: all cores.")
@click.option("--json", "as_json", is_flag=True, help="Write the claims to stdout as one JSON object.")
def command(
    figures: tuple[str, ...], out: Path, runs: int, seed: int, workers: int | None, as_json: bool, **own: Any
) -> None:
    """Reproduce the paper's figures, and say which of its claims hold.

    Writes for each figure a picture (PNG, PDF), its data (CSV) and its claims (claims.json, and a table as text). As in
    the paper, all runs of a figure have the same data and graph, and z(0) is new in each; beside that stands what other
    draws of data and graph give.

    With a setting of your own (--c to --sigma) no range around it is followed. Where no figure is named, fig1 to fig4
    are made then; fig3 keeps its three graphs, and fig4 its values of c. A named figure refuses what it varies itself,
    and `beyond`, which has settings of its own, all of these options.
    """
    from midst.studies.paper.gallery import check_figure, check_folder, make, publish
    from midst.studies.paper.runs import StudySettings

    names = _names(figures)
    settings = StudySettings(runs, seed, (os.cpu_count() or 1) if workers is None else workers)
    fields = _fields(seed=seed, **own)
    owned = {name: {key: fields[key] for key in fields if key not in _VARIED.get(name, ())} for name in names}
    wanted = {name: replace(settings, own=owned[name]) for name in names}
    for name, each in wanted.items():
        check_figure(name, each)
    check_folder(out)
    entries = {}
    for name, each in wanted.items():
        with task_bar(name, of="tasks") as progress:
            plate = make(name, replace(each, progress=progress))
        publish(plate, out)
        entries[name] = plate.entry()
        if not as_json:
            click.echo(_report(plate))
    if as_json:
        click.echo(json.dumps(entries))
    else:
        click.echo(f"written to {out}")


def _names(asked: tuple[str, ...]) -> list[str]:
    """The figures asked for, each once; if none was, all that the options are for."""
    for name in asked:
        if name not in FIGURES:
            raise InputError(f"unknown figure {name!r}; the figures are {', '.join(FIGURES)}{closest(name, FIGURES)}")
        refuse_given(_VARIED.get(name, ()), f"is not for {name}, which varies it itself; leave one of them out")
    return list(dict.fromkeys(asked or [name for name in FIGURES if name != "beyond" or not any(map(is_given, _OWN))]))


def _fields(nodes: int | None, graph: str | None, values: str | None, seed: int, **found: Any) -> dict[str, Any]:
    """Turn the options that were given into fields of an experiment."""
    from midst.cli.values import read_values
    from midst.system import streams

    found |= {"n": nodes, "graph": graph}
    if values is not None:
        data: Any = read_values(values, False, nodes)
        if data.ndim > 1:
            raise InputError(f"{values} has rows of several numbers; a figure needs one number a line")
        found |= {"n": len(data), "values": tuple(data)}
    if graph is not None:
        found["own_graph"] = partial(read_graph, graph)
        if graph.partition(":")[0] not in KINDS:
            found["own_graph"] = own = read_graph(graph, found["n"], streams(seed).graph)
            found["n"] = own.n
    return {name: value for name, value in found.items() if value is not None}


def _report(plate: Plate) -> str:
    """Under two headings a line a claim, one for other draws, and one for where in its range it fails."""
    from midst.studies.paper.gallery import show_measured, sort_claims

    lines = [f"{plate.name}: {plate.entry()['title']}", f"  {plate.entry()['caption']}"]
    for heading, claims in sort_claims(plate.claims).items():
        lines.append(f"  {heading}")
        for claim in claims:
            verdict, value, interval, spread, held = show_measured(claim)
            verdict = {"yes": "holds", "no": "FAILS"}.get(verdict, verdict)
            text = f"{claim.place}: {claim.text}" if claim.place else claim.text
            lines.append(f"    {verdict:6}  {text} {value}{f' ({interval})' if interval else ''}")
            if spread:
                lines.append(f"            other draws: {spread}{f'; holds in {held}' if held else ''}")
            if claim.failing:
                where = f"{len(claim.failing)} of {len(claim.cases)} other settings of ours"
                lines.append(f"            not so at {where}: {'; '.join(claim.failing)}")
    return "\n".join(lines) + "\n"

"""`midst compare`: what consensus, search, secret sharing, noise and sketches cost and give away, in one table.

Rules:
- Everything is checked before the first run; what is written is written when all is done, whole or not at all.
- A method whose package is not installed has its rows, empty, and they say which extra brings it.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from midst.cli.options import is_given, read_graph
from midst.cli.terminal import show_table
from midst.errors import InputError
from midst.progress import task_bar

if TYPE_CHECKING:
    from midst.problems import Problem
    from midst.studies.compare import Comparison

BOUNDS, RESOLUTION, PRIOR = (0.0, 100.0), "0.01", (50.0, 15.0)
_GRAPHS, _NODES, _RUNS = "ring,rgg,complete", "5,15,101,1001", 3
_QUICK_GRAPHS, _QUICK_NODES, _QUICK_RUNS = "ring,complete", "5,9", 1
_TABLES, _PICTURES = ("csv", "json", "md"), ("png", "pdf", "svg")
_WORDS = ("method", "trust")  # columns
_EXAMPLES = """\b
Examples:
  midst compare --quick
  midst compare --graphs rgg,ws:k=4,p=0.1 --nodes 15,51 --methods search-3,consensus,kll
  midst compare --out compare.csv --out compare.png"""
_OUT = "Write the table (.csv, .json, .md) or a picture of bits against rounds (.png, .pdf, .svg); may be repeated."
_METHODS = "Names, with commas. Default: all. What each is: docs/compare.md, and the column method of the table."
_WORKERS = "Processes; no figure but seconds depends on them. Default: all cores."


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--graphs", default=_GRAPHS, show_default=True, metavar="KIND,…", help="Kinds, as for midst run.")
@click.option("--nodes", default=_NODES, show_default=True, metavar="N,…", help="How many take part.")
@click.option("--methods", metavar="NAME,…", help=_METHODS)
@click.option("--runs", type=click.IntRange(min=1), default=_RUNS, show_default=True, help="Of each, on other values.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of values, graphs and methods.")
@click.option("--workers", "--jobs", "workers", type=click.IntRange(min=1), metavar="N", help=_WORKERS)
@click.option("--quick", is_flag=True, help="Two kinds of graphs, two sizes, one run: seconds instead of minutes.")
@click.option("--out", type=click.Path(path_type=Path), multiple=True, metavar="FILE", help=_OUT)
@click.option("--json", "as_json", is_flag=True, help="Write the rows to stdout as one JSON list instead of a table.")
def command(
    graphs: str,
    nodes: str,
    methods: str | None,
    runs: int,
    seed: int,
    workers: int | None,
    quick: bool,
    out: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Compare ways to a median: error, rounds, bytes, exposed, bits, floor, excess, and whom one has to trust.

    All methods find the median of the same values: drawn from N(50, 15), two decimals, public bounds 0:100. Who listens
    hears every message that is not encrypted for one receiver, and has that prior. What could not be measured is left
    empty, and the column why says why.
    """
    from midst.privacy.priors import Normal
    from midst.studies.compare import compare
    from midst.studies.contenders import check_methods
    from midst.workers import cores

    if quick:
        graphs = graphs if is_given("graphs") else _QUICK_GRAPHS
        nodes = nodes if is_given("nodes") else _QUICK_NODES
        runs = runs if is_given("runs") else _QUICK_RUNS
    names = check_methods(None if methods is None else _split(methods))
    _check_files(out)
    problems = _draw_problems(graphs, nodes, runs, seed)
    with task_bar("compare", of="problems") as progress:
        found = compare(problems, names, prior=Normal(*PRIOR), rng=seed, workers=workers or cores(), progress=progress)
    for path in out:
        _write(found, path)
    if as_json:
        click.echo(found.to_json())
    else:
        _show(found)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _draw_problems(graphs: str, nodes: str, runs: int, seed: int) -> list[Problem]:
    """A problem a kind, size and run; values depend on size and run only, so that all graphs have the same."""
    import numpy as np

    from midst.privacy.priors import Normal, Within
    from midst.problems import Problem

    # a comma also parts the options of a graph: what begins with a name and =, is one
    kinds = [part for part in re.split(r",(?!\w+=)", graphs) if part.strip()]
    try:
        sizes = [int(size) for size in _split(nodes)]
    except ValueError:
        raise InputError("--nodes must be whole numbers with commas, such as 5,15") from None
    if not kinds or not sizes:
        raise InputError("--graphs and --nodes must name at least one kind and one size")
    prior = Within(Normal(*PRIOR), *BOUNDS)
    problems = []
    for size, kind, run in product(sizes, kinds, range(runs)):
        rng = np.random.default_rng([seed, size, run])
        graph = read_graph(kind.strip(), size, rng.spawn(1)[0])
        values = [prior.quantile(level) for level in rng.uniform(1e-12, 1, graph.n)]
        problems.append(Problem(graph, values, bounds=BOUNDS, resolution=RESOLUTION))
    return problems


def _check_files(paths: tuple[Path, ...]) -> None:
    """Refuse what cannot be written, before anything is run."""
    from midst.files import check_writable

    for path in paths:
        ending = path.suffix.lower().lstrip(".")
        if ending in _PICTURES:
            from midst.plots.results import check_picture

            check_picture(path)
        elif ending in _TABLES:
            check_writable(path)
        else:
            known = ", ".join(f".{name}" for name in (*_TABLES, *_PICTURES))
            raise InputError(f"{path}: a table or a picture ends in {known}")


def _write(found: Comparison, path: Path) -> None:
    from midst.files import write_bytes

    ending = path.suffix.lower().lstrip(".")
    if ending in _PICTURES:
        from midst.plots.results import save_figure

        save_figure(found.plot(), path)
    else:
        text = {"csv": found.to_csv, "json": found.to_json, "md": found.to_markdown}[ending]()
        write_bytes(path, text.encode())


def _show(found: Comparison) -> None:
    """A table a graph and size, why some figures are missing, and what to make of it."""
    from midst.studies.compare import COLUMNS, show_row

    kinds = dict.fromkeys((row.graph, row.nodes) for row in found.rows)
    left_out = {"graph", "nodes", "floor", "why"}  # in the title, or below
    heads = ["bytes" if name == "bytes_per_node" else name for name in COLUMNS if name not in left_out]
    for graph, nodes in kinds:
        rows = [row for row in found.rows if (row.graph, row.nodes) == (graph, nodes)]
        floor = next((row.floor for row in rows if row.floor is not None), None)
        told = "" if floor is None else f"; the answer alone gives {floor:.3f} bits"
        shown = [[text for name, text in show_row(row).items() if name not in left_out] for row in rows]
        show_table(f"{graph}, {nodes:,} participants{told}", heads, shown, [False] * len(rows), _WORDS)
    reasons: dict[str, list[str]] = {}
    for row in found.rows:
        if row.why is not None:
            reasons.setdefault(f"{row.method}: {row.why}", []).append(f"{row.nodes:,}")
    for reason, sizes in reasons.items():
        click.echo(f"{reason} ({', '.join(dict.fromkeys(sizes))} participants)")
    click.echo(found.in_words())

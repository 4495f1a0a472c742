"""`midst audit`: what a saved run gave away to an adversary."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.cli.options import WIDTH_HELP, WIDTH_NAMES, check_plot
from midst.cli.terminal import show_table
from midst.progress import phases

if TYPE_CHECKING:
    from midst.plots.style import Width
    from midst.privacy.adversaries import Adversary, Init
    from midst.privacy.audit import Leakage
    from midst.privacy.priors import Prior

_ADVERSARY = "eavesdropper hears every channel; passive:3,7 are corrupt nodes, by name; both:3,7 do both."
_INIT = "Whether z(0) travels where an eavesdropper hears it, or encrypted; the rounding of floats can undo that."
_PRIOR = "What it believed before: normal:MEAN,STD, uniform:LOW,HIGH or laplace:MEAN,SCALE."
_EXAMPLES = """\b
Examples:
  midst run --graph rgg --nodes 15 --seed 7 --save run.npz --record audit
  midst audit run.npz --init sealed
  midst audit run.npz --adversary both:3,7 --prior uniform:0,100 --resolution 0.01 --json"""


def looks_at_a_trace(function: Callable[..., None]) -> Callable[..., None]:
    """The options of a command that looks at a saved run with an adversary's eyes; who and what it believed, parsed."""

    @wraps(function)
    def command(adversary: str, init: Init, prior: str, **others: Any) -> None:
        from midst.privacy.adversaries import parse_adversary
        from midst.privacy.priors import parse_prior

        function(who=parse_adversary(adversary, init), believed=parse_prior(prior), **others)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of a table."),
        click.option("--coordinate", type=int, metavar="K", help="Which coordinate, where values are vectors."),
        click.option("--prior", default="normal:0,1", show_default=True, metavar="KIND:A,B", help=_PRIOR),
        click.option("--init", type=click.Choice(["clear", "sealed"]), default="clear", show_default=True, help=_INIT),
        click.option("--adversary", default="eavesdropper", show_default=True, metavar="WHO", help=_ADVERSARY),
        click.argument("trace", type=click.Path(path_type=Path), metavar="RUN.npz"),
    ):
        command = option(command)
    return command


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@looks_at_a_trace
@click.option("--resolution", type=float, help="To what values are told apart. Default: a thousandth of the prior.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.png", help="Draw bounds, bits and exposure.")
@click.option("--width", type=click.Choice(WIDTH_NAMES), help=WIDTH_HELP)
def command(
    trace: Path,
    who: Adversary,
    believed: Prior,
    coordinate: int | None,
    as_json: bool,
    resolution: float | None,
    plot: Path | None,
    width: Width | None,
) -> None:
    """Tell what a saved run gave away: exposed or not, bounds, bits; how many of them the answer alone gives away.

    The report shows what the adversary knows, so an exposed value stands in it.
    """
    from midst.privacy.audit import audit
    from midst.trace import load

    check_plot(plot, width)
    with phases() as say:
        say("reading the run")
        record = load(trace)
        say("auditing")
        leakage = audit(record, who, believed, resolution, coordinate=coordinate)
        if plot is not None:
            from midst.plots.results import save_figure

            say("drawing the picture")
            save_figure(leakage.plot(width=width), plot)
    if as_json:
        click.echo(json.dumps(leakage.to_dict(), allow_nan=False))
    else:
        _show(leakage)


def _show(leakage: Leakage) -> None:
    rows, exposed = [], []
    between = leakage.kind == "upper bound"
    columns = (*_COLUMNS, "at least") if between else _COLUMNS
    for node in leakage.to_dict()["nodes"]:
        exposed.append(node["exposed"])
        if node["corrupt"]:
            rows.append([str(node["node"]), "corrupt", *[""] * (len(columns) - 2)])
            continue
        seen = "yes" if node["exposed_at"] is None else f"at t = {node['exposed_at']}"
        error = f" ± {node['bits_error']:.2f}" if node["bits_error"] else ""
        rows.append(
            [
                str(node["node"]),
                seen if node["exposed"] else "",
                node["side"],
                f"{node['side_probability']:.1%}",
                "−∞" if node["lower"] is None else f"{node['lower']:.6g}",
                "∞" if node["upper"] is None else f"{node['upper']:.6g}",
                f"{node['bits']:.2f}{error}",
                *("?" if node[part] is None else f"{node[part]:.2f}" for part in ("floor", "excess")),
                *([f"{node['bits_at_least']:.2f}"] if between else []),
            ]
        )
    show_table(f"what was given away to {leakage.audience}", columns, rows, exposed, words=("exposed", "value lies"))
    resolution = leakage.resolution
    width = f"{resolution[0]:g}" if (resolution == resolution[0]).all() else "one a node"
    click.echo(
        f"{leakage.exposed_count} of {leakage.honest} honest nodes exposed; {leakage.total_bits:.2f} bits in all, "
        f"{leakage.mean_bits:.2f} a node ({leakage.kind}), at resolution {width}"
    )
    if between:
        click.echo(
            f"what was learnt lies between {leakage.mean_at_least:.2f} bits a node, which the best attack here "
            f"achieves, and {leakage.mean_bits:.2f}, on average over runs"
        )
    if isfinite(leakage.mean_floor):
        click.echo(
            f"of these {leakage.mean_floor:.2f} a node are the floor, which the answer alone gives away, and "
            f"{leakage.mean_excess:.2f} the excess, by how it was found"
        )
    for note in leakage.notes:
        click.echo(f"note: {note}")


_COLUMNS = ("node", "exposed", "value lies", "chance", "lower", "upper", "bits", "floor", "excess")

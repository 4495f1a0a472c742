"""`midst plan`: which c and sigma to choose, by simulation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.cli.audit import who_listens
from midst.cli.terminal import show_table, task_bar

if TYPE_CHECKING:
    from midst.privacy.adversaries import Init
    from midst.privacy.planner import Plan

_EXAMPLES = """\b
Examples:
  midst plan --graph rgg --nodes 15 --rounds-budget 100
  midst plan --graph ring --nodes 9 --prior uniform:0,100 --init sealed --rounds-budget 500 --plot plan.png"""
_COLUMNS = ("c · scale", "sigma", "bits a node", "exposed", "rounds", "9 runs of 10", "")


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--graph", required=True, metavar="KIND|FILE", help="A kind of graph, or a file, as for midst run.")
@click.option("--nodes", type=int, metavar="N", help="How many; not needed for a file.")
@click.option("--rounds-budget", type=float, required=True, help="How many rounds nine runs of ten may take.")
@who_listens
@click.option("--runs", type=int, default=20, show_default=True, help="Of each choice of c and sigma.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.png", help="Draw bits against rounds.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of a table.")
def command(
    graph: str,
    nodes: int | None,
    rounds_budget: float,
    adversary: str,
    init: Init,
    prior: str,
    plot: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Compare choices of c and sigma: bits given away, nodes exposed, rounds.

    Every choice is simulated on the same data, drawn from the prior, until the median is proved by a count.
    """
    from midst.cli.options import read_graph
    from midst.privacy.adversaries import parse_adversary
    from midst.privacy.planner import Setting, make_plan
    from midst.privacy.priors import parse_prior
    from midst.system import streams

    who, believed = parse_adversary(adversary, init), parse_prior(prior)
    if plot is not None:
        from midst.plots import check_picture

        check_picture(plot)
    network = read_graph(graph, nodes, streams(how["seed"]).graph)
    who.check(network)
    with task_bar("plan") as progress:
        plan = make_plan(Setting(network, believed, who), rounds_budget, progress=progress, **how)
    if plot is not None:
        from midst.plots import save_figure
        from midst.privacy.plots import draw_plan

        save_figure(draw_plan(plan), plot)
    if as_json:
        click.echo(json.dumps(_to_dict(plan)))
    else:
        _show(plan)


def _to_dict(plan: Plan) -> dict[str, Any]:
    chosen = plan.recommended
    return {
        "outcomes": [asdict(outcome) for outcome in plan.outcomes],
        "frontier": [asdict(outcome) for outcome in plan.frontier],
        "budget": plan.budget,
        "recommended": None if chosen is None else asdict(chosen),
        "reason": plan.reason,
    }


def _show(plan: Plan) -> None:
    rows = [
        [
            f"{outcome.c:g}",
            f"{outcome.sigma:g}",
            f"{outcome.bits:.2f} ± {outcome.bits_error:.2f}",
            f"{outcome.exposed:.0%}",
            f"{outcome.rounds:g}",
            f"{outcome.most_rounds:.0f}",
            "recommended" if outcome == plan.recommended else "frontier" if outcome in plan.frontier else "",
        ]
        for outcome in plan.outcomes
    ]
    show_table("what each choice costs and gives away", _COLUMNS, rows, [row[-1] == "recommended" for row in rows])
    click.echo(plan.reason)

"""`midst plan`: the search, or the iteration by which c? What each costs and gives away, by simulation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.cli.options import offer_graphs, parse_bounds, read_graph
from midst.cli.terminal import show_table
from midst.errors import InputError
from midst.progress import phases

if TYPE_CHECKING:
    from midst.graphs import Graph
    from midst.privacy.priors import Prior
    from midst.studies.expectation import Expectation
    from midst.studies.plan import Plan

_EXAMPLES = """\b
Examples:
  midst plan --charter pay.toml --spread 12000
  midst plan --graph ring --nodes 5 --bounds 0:60 --repeats 4
  midst plan --graph rgg --nodes 15 --prior normal:0,1 --adversary eavesdropper"""
_COLUMNS = ("method", "rounds", "9 in 10", "exposed", "bits a node", "floor", "excess", "kB a node", "")
_PRIOR = "What values are like: normal:MEAN,STD, uniform:LOW,HIGH or laplace:MEAN,SCALE. Default: from the bounds."
_GRAPH = "In place of a charter: as for midst run."
_REPEATS = "How many runs on the same values are planned: also tells what these give away together."
_UPPER = "≤: an upper bound, on average over runs, of an adversary that knows more, such as z(0)"
_WHO = "As for midst audit, z(0) in the clear. Default: one curious participant."


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--charter", "charter_file", type=click.Path(path_type=Path), metavar="FILE", help="What all agreed on.")
@click.option("--graph", shell_complete=offer_graphs, metavar="KIND|FILE", help=_GRAPH)
@click.option("--nodes", type=int, metavar="N", help="How many; not needed for a file.")
@click.option("--bounds", metavar="LO:HI", help="Public: where all values lie.")
@click.option("--spread", type=float, help="The values' own standard deviation. Default: a tenth of the bounds.")
@click.option("--prior", metavar="KIND:A,B", help=_PRIOR)
@click.option("--adversary", metavar="WHO", help=_WHO)
@click.option("--runs", type=int, default=20, show_default=True, help="Of the search, and of each c.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help=_REPEATS)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of a table.")
def command(adversary: str | None, runs: int, repeats: int, seed: int, as_json: bool, **planned: Any) -> None:
    """Compare the search with consensus by several c before anybody takes part: rounds, exposed, bits, floor, bytes.

    All are simulated on the same values, drawn from a prior within the public bounds, until the median is proved, and
    audited. One row is recommended: the quickest of those that give away least. c is in the units of the data.
    """
    from midst.privacy.adversaries import parse_adversary
    from midst.studies.plan import make_plan

    with phases() as say:
        say("making the graph")
        network, known, believed = _what_is_planned(seed=seed, **planned)
        who = None if adversary is None else parse_adversary(adversary)
        if who is not None:
            who.check(network)
        say(f"{runs} runs of each method")
        plan = make_plan(network, known, believed, adversary=who, runs=runs, repeats=repeats, seed=seed)
    if as_json:
        rows = [asdict(each) for each in plan.methods]
        click.echo(json.dumps({"methods": rows, "recommended": asdict(plan.recommended), "reason": plan.reason}))
    else:
        _show(plan)


def _what_is_planned(
    charter_file: Path | None,
    graph: str | None,
    nodes: int | None,
    bounds: str | None,
    spread: float | None,
    prior: str | None,
    seed: int,
) -> tuple[Graph, tuple[float, float] | None, Prior]:
    """The graph, the public bounds and what values are like."""
    from midst.net.charter_files import read_charter
    from midst.privacy.priors import Normal, Within, parse_prior
    from midst.studies.expectation import assumed_prior
    from midst.system import streams

    if (charter_file is None) == (graph is None):
        raise InputError("give --charter or --graph, and not both")
    if spread is not None and (prior is not None or not 0 < spread < float("inf")):
        raise InputError("--spread must be a positive number, and without --prior")
    known = parse_bounds(bounds)
    if charter_file is not None:
        charter = read_charter(charter_file)
        if nodes is not None or known is not None:
            raise InputError("the charter says how many take part and between which bounds; leave those options out")
        network, known = charter.graph, charter.bounds
    else:
        assert graph is not None
        network = read_graph(graph, nodes, streams(seed).graph)
    if known is not None and not known[0] < known[1]:
        raise InputError("--bounds must be two numbers, the lower first")
    if prior is not None:
        believed = parse_prior(prior)
        return network, known, believed if known is None else Within(believed, *known)
    if known is None:
        return network, None, Normal(0, spread or 1)
    return network, known, assumed_prior(known, spread)


def _show(plan: Plan) -> None:
    from midst.studies.expectation import with_sign

    def together(one: Expectation) -> str:
        exposed = "" if one.joint_exposed is None else f", {one.joint_exposed / one.honest:.0%}"
        return with_sign(one.joint_bits, one.joint_kind) + exposed

    several = plan.methods[0].repeats > 1
    rows = [
        [
            one.method if one.c is None else f"c = {one.c:.3g}",
            f"{one.rounds:g}",
            f"{one.most_rounds:.0f}",
            f"{one.exposed / one.honest:.0%}",
            with_sign(one.bits, one.kind) + ("" if one.bits_error is None else f" ± {one.bits_error:.2f}"),
            with_sign(one.floor, "exact"),
            with_sign(one.excess, one.kind),
            *[together(one)] * several,
            f"{one.bytes_per_node / 1000:.0f}",
            "recommended" if one == plan.recommended else "",
        ]
        for one in plan.methods
    ]
    columns = [*_COLUMNS[:7], *[f"by {plan.methods[0].repeats} runs"] * several, *_COLUMNS[7:]]
    show_table("what each choice costs and gives away", columns, rows, [bool(row[-1]) for row in rows])
    if any("upper bound" in (one.kind, one.joint_kind) for one in plan.methods):
        click.echo(_UPPER)
    click.echo(plan.reason)

"""`midst plan`: what to expect of both methods, and which c and sigma to choose, by simulation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.cli.options import offer_graphs, parse_bounds, read_graph
from midst.cli.terminal import show_table
from midst.errors import InputError
from midst.progress import phases, task_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midst.graphs import Graph
    from midst.privacy.adversaries import Init
    from midst.privacy.priors import Prior
    from midst.studies.expectation import Expectation
    from midst.studies.plan import Plan

_EXAMPLES = """\b
Examples:
  midst plan --charter pay.toml --spread 12000
  midst plan --graph ring --nodes 5 --bounds 0:60 --repeats 4
  midst plan --graph rgg --nodes 15 --prior normal:0,1 --rounds-budget 100 --plot plan.png"""
_COLUMNS = ("c", "sigma", "bits a node", "exposed", "rounds", "9 runs of 10", "")
_METHODS = ("method", "rounds", "exposed", "bits a node", "floor", "excess", "kB a node")
_BUDGET = "How many rounds nine runs of ten may take: also compares choices of c and sigma for consensus."
_PRIOR = "What values are like: normal:MEAN,STD, uniform:LOW,HIGH or laplace:MEAN,SCALE. Default: from the bounds."
_GRAPH = "In place of a charter: as for midst run."
_REPEATS = "How many runs on the same values are planned: also tells what these give away together."
_UPPER = "≤: an upper bound, on average over runs, of an adversary that knows more, such as z(0)"
_WHO = "As for midst audit. Default: one curious participant; with --rounds-budget, eavesdropper."


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--charter", "charter_file", type=click.Path(path_type=Path), metavar="FILE", help="What all agreed on.")
@click.option("--graph", shell_complete=offer_graphs, metavar="KIND|FILE", help=_GRAPH)
@click.option("--nodes", type=int, metavar="N", help="How many; not needed for a file.")
@click.option("--bounds", metavar="LO:HI", help="Public: where all values lie.")
@click.option("--spread", type=float, help="The values' own standard deviation. Default: a tenth of the bounds.")
@click.option("--prior", metavar="KIND:A,B", help=_PRIOR)
@click.option("--adversary", metavar="WHO", help=_WHO)
@click.option("--init", type=click.Choice(["clear", "sealed"]), default="clear", show_default=True, help="Of z(0).")
@click.option("--rounds-budget", type=float, help=_BUDGET)
@click.option("--runs", type=int, default=20, show_default=True, help="Of each method, and each choice.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help=_REPEATS)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.png", help="Draw bits against rounds.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of a table.")
def command(
    adversary: str | None,
    init: Init,
    rounds_budget: float | None,
    runs: int,
    repeats: int,
    seed: int,
    workers: int,
    plot: Path | None,
    as_json: bool,
    **planned: Any,
) -> None:
    """Compare search and consensus before anybody takes part: rounds, exposed, bits, floor, bytes.

    Both are simulated on the same values, drawn from a prior within the public bounds, until the median is proved, and
    audited. With --rounds-budget, choices of c and sigma for consensus are compared too, in the units of the data.
    """
    from midst.cli.options import refuse_given
    from midst.privacy.adversaries import parse_adversary
    from midst.studies.expectation import expect
    from midst.studies.plan import Setting, make_plan

    if runs < 2:
        raise InputError("at least 2 runs are needed to tell an average from chance")
    if plot is not None:
        from midst.plots.results import check_picture

        check_picture(plot)
        if rounds_budget is None:
            raise InputError("--plot draws the choices of c and sigma; give --rounds-budget too")
    if rounds_budget is None:
        refuse_given(("workers",), "is for the choices that --rounds-budget compares; give that too")
        if adversary is None:
            refuse_given(("init",), "is about an adversary that is named; give --adversary or --rounds-budget")
    with phases() as say:
        say("making the graph")
        network, known, believed = _what_is_planned(seed=seed, **planned)
        who = None if adversary is None else parse_adversary(adversary, init)
        if who is not None:
            who.check(network)
        say(f"{runs} runs of each method")
        expected = expect(network, known, believed, adversary=who, runs=runs, repeats=repeats, seed=seed)
    plan = None
    if rounds_budget is not None:
        setting = Setting(network, believed, parse_adversary("eavesdropper", init) if who is None else who)
        with task_bar("plan") as progress:
            plan = make_plan(
                setting, rounds_budget, runs=runs, repeats=repeats, seed=seed, workers=workers, progress=progress
            )
    if plot is not None and plan is not None:
        from midst.plots.leakage import draw_plan
        from midst.plots.results import save_figure

        save_figure(draw_plan(plan), plot)
    _report(expected, plan, as_json)


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


def _report(expected: Sequence[Expectation], plan: Plan | None, as_json: bool) -> None:
    if as_json:
        methods = [asdict(each) for each in expected]
        click.echo(json.dumps({"methods": methods} | ({} if plan is None else _to_dict(plan))))
        return
    _show_methods(expected)
    if plan is not None:
        _show(plan)


def _show_methods(expected: Sequence[Expectation]) -> None:
    from midst.studies.expectation import with_sign

    def together(one: Expectation) -> list[str]:
        if one.repeats == 1:
            return []
        bits = with_sign(one.joint_bits, one.joint_kind)
        return [bits and f"{bits}, {one.joint_exposed:.1f} exposed"]

    rows = [
        [
            one.method,
            f"{one.rounds:g}",
            f"{one.exposed:.1f} of {one.honest}",
            with_sign(one.bits, one.kind),
            with_sign(one.floor, "exact"),
            with_sign(one.excess, one.kind),
            *together(one),
            f"{one.bytes_per_node / 1000:.0f}",
        ]
        for one in expected
    ]
    repeats = expected[0].repeats
    columns = [*_METHODS[:-1], *([f"by {repeats} runs"] if repeats > 1 else []), _METHODS[-1]]
    show_table("what each method costs and gives away", columns, rows, [False] * len(rows))
    if any("upper bound" in (one.kind, one.joint_kind) for one in expected):
        click.echo(_UPPER)


def _to_dict(plan: Plan) -> dict[str, Any]:
    chosen = plan.recommended
    return {
        "outcomes": [asdict(outcome) for outcome in plan.outcomes],
        "frontier": [asdict(outcome) for outcome in plan.frontier],
        "budget": plan.budget,
        "repeats": plan.repeats,
        "recommended": None if chosen is None else asdict(chosen),
        "reason": plan.reason,
    }


def _show(plan: Plan) -> None:
    from midst.studies.expectation import with_sign

    several = plan.repeats > 1
    rows = [
        [
            f"{outcome.c:.3g}",
            f"{outcome.sigma:g}",
            f"{with_sign(outcome.bits, outcome.kind)} ± {outcome.bits_error:.2f}",
            f"{outcome.exposed:.0%}",
            *[f"{with_sign(outcome.joint_bits, outcome.joint_kind)}, {outcome.joint_exposed:.0%}"] * several,
            f"{outcome.rounds:g}",
            f"{outcome.most_rounds:.0f}",
            "recommended" if outcome == plan.recommended else "frontier" if outcome in plan.frontier else "",
        ]
        for outcome in plan.outcomes
    ]
    columns = [*_COLUMNS[:4], *[f"by {plan.repeats} runs"] * several, *_COLUMNS[4:]]
    title = "what each choice costs and gives away by consensus, c in the units of the data"
    show_table(title, columns, rows, [row[-1] == "recommended" for row in rows])
    click.echo(plan.reason)

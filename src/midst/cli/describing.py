"""`midst run --statistics`: what is found of all participants' values together."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from pathlib import Path

import click

from midst.cli.options import is_given, parse_bounds, read_graph, refuse_given
from midst.columns import Columns
from midst.describing import Description, describe_columns
from midst.errors import InputError
from midst.files import check_writable
from midst.methods import Consensus, Search
from midst.privacy.priors import parse_prior
from midst.privacy.statistics import SessionLeakage
from midst.progress import phases
from midst.statistics import parse_statistics, split_names
from midst.system import streams

_OWN = {
    *("graph", "nodes", "seed", "values", "pooled", "values_dir", "columns", "missing", "dialect", "statistics"),
    *("bounds", "resolution", "method", "arity", "spacing", "plot", "as_json", "prior"),
}


def describe_parties(
    parties: Sequence[Columns],
    names: str,
    graph: str,
    seed: int | None,
    bounds: str | None,
    resolution: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find statistics, report them, and draw them where that is asked for.

    Raises:
        InputError: an option is of a single answer, or the data is refused.
    """
    context = click.get_current_context()
    refuse_given(
        (name for name in context.params if name not in _OWN), "is of a single answer, and no option of --statistics"
    )
    if plot is not None:
        from midst.plots.results import check_picture

        check_picture(plot)
        check_writable(plot)
    seed = secrets.randbits(32) if seed is None else seed
    with phases() as say:
        say("making the graph")
        network = read_graph(graph, len(parties), streams(seed).graph)
        say("finding the statistics")
        found = describe_columns(
            parties,
            network,
            parse_statistics(split_names(names)),
            _method(context.params),
            bounds=parse_bounds(bounds),
            resolution=resolution,
            rng=seed,
        )
        if plot is not None:
            from midst.plots.results import save_figure

            say("drawing the picture")
            save_figure(found.plot(), plot)
        say("measuring what it gave away")
        leaks = _leakage(found, context)
    if as_json:
        told = {name: {"bits": each.bits, "floor": each.floor, "kind": each.kind} for name, each in leaks.items()}
        click.echo(json.dumps(found.to_dict() | {"seed": seed, "leakage": told or None}))
        return
    click.echo(f"{found!r}")
    for name, each in leaks.items():
        click.echo(f"{name}: {each}" if len(leaks) > 1 else str(each))
        for note in each.notes:
            click.echo(f"  {note}")


def _leakage(found: Description, context: click.Context) -> dict[str, SessionLeakage]:
    """What it gave away, where there are public bounds or a prior to measure it by."""
    given = is_given("prior")
    if not given and context.params["bounds"] is None:
        return {}
    return found.leakage(parse_prior(context.params["prior"]) if given else None)


def _method(given: dict[str, object]) -> Search | Consensus:
    """The search, unless the iteration is asked for."""
    if given["method"] == "both":
        raise InputError("--method both is of a single answer; choose search or consensus")
    if given["method"] == "consensus":
        refuse_given(("arity", "spacing"), "is an option of --method search; choose that method, or leave it out")
        return Consensus()
    arity, spacing = given["arity"], given["spacing"]
    return Search(3 if arity is None else arity, "rank" if spacing is None else spacing)  # type: ignore[arg-type]

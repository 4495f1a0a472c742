"""`midst run --statistics`: what is found of all participants' values together."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any

import click

from midst.cli.options import check_plot, is_given, parse_bounds, read_graph, refuse_given
from midst.columns import Columns
from midst.describing import Description, describe_columns
from midst.errors import InputError
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


def describe_parties(parties: Sequence[Columns]) -> None:
    """Find the statistics that the command asks for, report them, and draw them where that is asked for.

    Raises:
        InputError: an option is of a single answer, or the data is refused.
    """
    given: dict[str, Any] = click.get_current_context().params
    refuse_given((name for name in given if name not in _OWN), "is of a single answer, and no option of --statistics")
    plot, seed = given["plot"], secrets.randbits(32) if given["seed"] is None else given["seed"]
    check_plot(plot)
    with phases() as say:
        say("making the graph")
        network = read_graph(given["graph"], len(parties), streams(seed).graph)
        say("finding the statistics")
        found = describe_columns(
            parties,
            network,
            parse_statistics(split_names(given["statistics"])),
            _method(given),
            bounds=parse_bounds(given["bounds"]),
            resolution=given["resolution"],
            rng=seed,
        )
        if plot is not None:
            from midst.plots.results import save_figure

            say("drawing the picture")
            save_figure(found.plot(), plot)
        say("measuring what it gave away")
        leaks = _leakage(found, given)
    if given["as_json"]:
        told = {name: {"bits": each.bits, "floor": each.floor, "kind": each.kind} for name, each in leaks.items()}
        click.echo(json.dumps(found.to_dict() | {"seed": seed, "leakage": told or None}))
        return
    click.echo(f"{found!r}")
    for name, each in leaks.items():
        click.echo(f"{name}: {each}" if len(leaks) > 1 else str(each))
        for note in each.notes:
            click.echo(f"  {note}")


def _leakage(found: Description, given: dict[str, Any]) -> dict[str, SessionLeakage]:
    """What it gave away, where there are public bounds or a prior to measure it by."""
    if is_given("prior"):
        return found.leakage(parse_prior(given["prior"]))
    return {} if given["bounds"] is None else found.leakage()


def _method(given: dict[str, Any]) -> Search | Consensus:
    """The search, unless the iteration is asked for."""
    if given["method"] == "both":
        raise InputError("--method both is of a single answer; choose search or consensus")
    if given["method"] == "consensus":
        refuse_given(("arity", "spacing"), "is an option of --method search; choose that method, or leave it out")
        return Consensus()
    return Search(**{name: given[name] for name in ("arity", "spacing") if given[name] is not None})

"""`midst attack`: an adversary's best estimates of the values of a saved run, beside the truth if the file has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.cli.audit import looks_at_a_trace
from midst.cli.terminal import show_table
from midst.progress import phases

if TYPE_CHECKING:
    from midst.privacy.adversaries import Adversary
    from midst.privacy.priors import Prior

_EXAMPLES = """\b
Examples:
  midst run --graph rgg --nodes 15 --seed 7 --save run.npz --keep-values
  midst attack run.npz
  midst attack run.npz --init sealed --json"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@looks_at_a_trace
@click.option("--tolerance", type=float, help="How close is certain. Default: a tenth of the prior's scale.")
def command(
    trace: Path,
    who: Adversary,
    believed: Prior,
    coordinate: int | None,
    as_json: bool,
    tolerance: float | None,
) -> None:
    """Estimate every value from what an adversary saw of a saved run.

    Estimates are compared with the truth where the file has the values (midst run --keep-values).
    """
    from midst.privacy.attack import reconstruct
    from midst.privacy.views import view
    from midst.trace import load

    with phases() as say:
        say("reading the run")
        record = load(trace)
        say("estimating every value")
        found = reconstruct(view(record, who, coordinate), believed, tolerance)
    compared = record.values is not None and record.owners is None
    truth = record.values.reshape(record.graph.n, -1)[:, coordinate or 0] if compared else None  # type: ignore[union-attr]
    nodes: list[dict[str, Any]] = []
    colluding = who.check(record.graph)
    for i, name in enumerate(record.graph.names(range(record.graph.n))):
        corrupt = i in colluding
        node = {
            "node": name,
            "corrupt": corrupt,
            "estimate": None if corrupt else float(found.estimate[i]),
            "known": bool(found.known[i]),
            "certainty": None if corrupt else float(found.certainty[i]),
            "how": str(found.how[i]) or None,
        }
        if truth is not None:
            error = None if corrupt else float(abs(found.estimate[i] - truth[i]))
            node |= {"truth": float(truth[i]), "error": error}
        nodes.append(node)
    totals = {"honest": sum(not node["corrupt"] for node in nodes), "known": int(found.known.sum())}
    if as_json:
        tolerances = {"tolerance": float(found.tolerance[0])}
        click.echo(json.dumps({"adversary": str(who), "nodes": nodes, "totals": totals | tolerances}, allow_nan=False))
        return
    _show(f"estimates by {who}", nodes, compared=truth is not None)
    click.echo(f"{totals['known']} of {totals['honest']} values known; certain means within {found.tolerance[0]:g}")


def _show(title: str, nodes: list[dict[str, Any]], compared: bool) -> None:
    columns = ("node", "estimate", "known", "certainty", "how", *(("truth", "error") if compared else ()))
    rows = []
    for node in nodes:
        row = [str(node["node"]), "", "", "", "corrupt"]
        if not node["corrupt"]:
            known = "known" if node["known"] else ""
            row = [row[0], f"{node['estimate']:.6g}", known, f"{node['certainty']:.1%}", node["how"]]
        if compared:
            row += [f"{node['truth']:.6g}", "" if node["corrupt"] else f"{node['error']:.2g}"]
        rows.append(row)
    show_table(title, columns, rows, [node["known"] for node in nodes], words=("known", "how"))

"""`midst ledger`: make, show and ask the ledger of a datum.

Rules:
- The datum is only ever read from a file, never from the command line, and never shown.
- `check` writes nothing: a ledger not yet used stays so.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from midst.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from midst.dp.ledger import Ledger

_VALUE_FILE = "The datum: one number, or one row of numbers, readable by you alone; - for standard input."
_KINDS = {
    "exact": "what all runs told together",
    "upper bound": "no less than what all runs told together, on average",
    "lower bound": "no more than what all runs told together, since the datum is a list",
    "indication": "an indication, no bound: runs that cannot be joined are added up",
}
_CHARTER = "The planned session; refused also where it is too near an earlier one."
_DP = "The planned run's noise, such as gaussian:eps=1,delta=1e-5,bounds=0:100 or joint:eps=1,delta=1e-6."


@click.group()
def command() -> None:
    """Keep account of what repeated runs give away about one datum.

    A ledger file holds what runs told about the datum, never the datum itself; keep it as private.
    """


@command.command()
@click.argument("file", type=click.Path())
@click.option("--max-runs", type=int, metavar="N", help="Refuse further runs after so many.")
@click.option("--max-bits", type=float, metavar="B", help="Refuse further runs past so many bits.")
@click.option("--max-epsilon", type=float, metavar="E", help="Refuse runs past this epsilon, and runs without any.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="The delta at which epsilon is added up.")
@click.option(
    "--value-file", type=click.Path(), metavar="FILE", help=f"{_VALUE_FILE} Default: the first one it is used with."
)
def new(file: str, value_file: str | None, **budget: Any) -> None:
    """Make an empty ledger with a budget; FILE must not exist."""
    from midst.dp.ledger import Budget, Ledger

    Ledger.new(file, Budget(**budget), None if value_file is None else _read_datum(value_file))
    click.echo(f"{file}: empty ledger, readable by you alone", err=True)


@command.command()
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="As JSON; null stands for no bound.")
def show(file: str, as_json: bool) -> None:
    """Show what all runs gave away together, beside the budget."""
    from midst.dp.ledger import Ledger

    ledger = Ledger.open(file)
    if as_json:
        click.echo(json.dumps(_as_dict(ledger), indent=2, allow_nan=False))
        return
    for name, text in _rows(ledger):
        click.echo(f"{name:>8}  {text}")


@command.command()
@click.argument("file", type=click.Path())
@click.option("--value-file", type=click.Path(), required=True, metavar="FILE", help=_VALUE_FILE)
@click.option("--dp", "mechanism", metavar="SPEC", help=_DP)
@click.option("--charter", "charter_file", type=click.Path(), metavar="FILE", help=_CHARTER)
def check(file: str, value_file: str, mechanism: str | None, charter_file: str | None) -> None:
    """Ask whether one more run on this datum is within the budget: exit code 0, or 2."""
    from midst.dp.joint import parse_claim
    from midst.dp.ledger import Entry, Ledger

    ledger, datum = Ledger.open(file), _read_datum(value_file)
    if charter_file is not None:
        from midst.cli.node_account import planned_entry, session_of
        from midst.net.charter_files import read_charter

        if mechanism is not None:
            raise InputError("--dp is about midst run, --charter about midst node; give one of them")
        charter = read_charter(charter_file)
        ledger.require_session(session_of(charter), datum, planned_entry(charter, datum.size))
    else:
        ledger.require_datum(datum)
        ledger.require(entry=Entry(mechanism=None if mechanism is None else parse_claim(mechanism)))
    click.echo(f"{file}: one more run is within the budget", err=True)


def _read_datum(path: str) -> NDArray[Any]:
    from midst.cli.values import read_numbers

    numbers = read_numbers(path, alone=True)
    if len(numbers) != 1:
        raise InputError(f"{path}: {len(numbers)} lines of numbers; a ledger is of one datum, on one line")
    return numbers


def _as_dict(ledger: Ledger) -> dict[str, Any]:
    totals = vars(ledger.totals()) | {"excess": ledger.totals().excess}
    totals |= {end: [x if isfinite(x) else None for x in totals[end]] for end in ("lower", "upper")}
    totals |= {"epsilon": totals["epsilon"] if isfinite(totals["epsilon"]) else None}
    sessions = [
        {"name": one.name, "charter": one.digest, "participants": len(one.members), "state": one.state}
        for one in ledger.sessions
    ]
    about = {"file": str(ledger.path), "sealed": ledger.sealed, **totals, "budget": vars(ledger.budget)}
    return {**about, "sessions": sessions}


def _rows(ledger: Ledger) -> list[tuple[str, str]]:
    """The totals as lines for people: (what, how much)."""
    totals, budget = ledger.totals(), ledger.budget

    def of(most: float | None) -> str:
        return "" if most is None else f" of {most:g}"

    ends = zip(totals.lower, totals.upper, strict=True)
    if isfinite(totals.epsilon):
        epsilon = f"{totals.epsilon:.4g}{of(budget.max_epsilon)} at delta {totals.delta:g}"
    else:
        plain = totals.runs - totals.dp_runs
        why = (
            f"{plain} runs were not differentially private"
            if plain
            else f"the deltas of the runs come to more than {totals.delta:g}"
        )
        epsilon = f"no bound{of(budget.max_epsilon)}: {why}"
    return [
        ("runs", f"{totals.runs}{of(budget.max_runs)}"),
        ("exposed", f"in {totals.exposed_runs} runs"),
        ("bounds", ", ".join(f"({low:.10g}, {high:.10g})" for low, high in ends)),
        ("bits", f"{totals.bits:.4g}{of(budget.max_bits)}: {_KINDS[totals.kind]}"),
        ("floor", "not known" if totals.floor is None else f"{totals.floor:.4g}: what the answers alone tell"),
        ("excess", "not known" if totals.excess is None else f"{totals.excess:.4g}: what the ways to them told more"),
        ("epsilon", epsilon),
        *(("session", f"{one.name} of {len(one.members)}: {one.state_in_words}") for one in ledger.sessions),
        ("datum", "sealed in" if ledger.sealed else "none yet; the first it is opened with"),
    ]

"""Run the network's own code under faults that a seed decides, and can repeat byte for byte: `make simnet` does."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import click

from midst.cli import explain
from midst.errors import InputError
from midst.methods import MethodName
from midst.progress import task_bar
from midst.workers import run_in_parallel

from .faults import Faults
from .trial import run_trial, summarise

_EXAMPLES = """\b
Examples:
  python -m tests.simnet --seeds 17
  python -m tests.simnet --seeds 0:1000 --workers 2 --method consensus
  python -m tests.simnet --seeds 0:200 --liars 1 --verify --json
  python -m tests.simnet --seeds 17 --loss 0.6 --crashes 10"""
_LARGEST_SEED = 2**62


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--seeds", required=True, metavar="N|A:B", help="One seed, or those from A to before B.")
@click.option("--method", type=click.Choice(["consensus", "search"]), default="search", show_default=True)
@click.option("--verify", is_flag=True, help="Everybody proves its votes in a search; slower.")
@click.option("--liars", type=click.IntRange(0, 2), default=0, show_default=True, help="How many of them lie, somehow.")
@click.option("--loss", type=click.FloatRange(0, 0.95), default=0.3, show_default=True, help="Share of frames lost.")
@click.option("--duplicates", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Share sent twice.")
@click.option("--delay", type=click.FloatRange(0.001, 10), default=0.3, show_default=True, help="Longest, in seconds.")
@click.option("--crashes", type=click.IntRange(0, 1000), default=3, show_default=True)
@click.option("--partitions", type=click.IntRange(0, 1000), default=2, show_default=True)
@click.option("--full-disks", type=click.IntRange(0, 1000), default=0, show_default=True)
@click.option("--bit-flips", type=click.IntRange(0, 1000), default=0, show_default=True, help="Of a journal at rest.")
@click.option("--truncations", type=click.IntRange(0, 1000), default=0, show_default=True, help="Likewise.")
@click.option("--lost-syncs", type=click.IntRange(0, 1000), default=0, show_default=True, help="And power cuts after.")
@click.option("--forgetful", is_flag=True, help="A crash takes the journal with it; try --crashes 1.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object: counts, and what went wrong.")
def command(
    seeds: str, method: MethodName, verify: bool, liars: int, workers: int, as_json: bool, **faults: Any
) -> None:
    """Run participants on a simulated network that loses, doubles, delays and cuts, with crashes, bad disks and liars.

    Every seed is a random charter on a bad network; without liars it is compared with the same on a perfect one. Exit
    code 0 if every run ended with the right answer, or with an abort that names somebody, and liars brought about
    nothing that the protocol rules out; 1 if anything else happened.
    """
    chosen = _parse_seeds(seeds)
    if any(number != number for number in faults.values()):
        raise InputError("a rate or a delay is not a number")
    plan = Faults(**faults)
    with task_bar("simnet", of="seeds") as bar:
        run = partial(run_trial, faults=plan, method=method, verify=verify, liars=liars)
        trials = run_in_parallel(run, chosen, workers, bar)
    counts, shown = summarise(trials), [trial for trial in trials if trial.wrong or len(trials) == 1]
    if as_json:
        click.echo(json.dumps({**counts, "trials": [trial.to_dict() for trial in shown]}))
    else:
        for trial in shown:
            click.echo("\n".join(f"{name:>10}  {_shown(part)}" for name, part in trial.to_dict().items()))
        told = f"{counts['answers']} ended with the answer, {counts['ended']} with an abort"
        click.echo(f"{counts['runs']} seeds: {told}, {counts['wrong']} went wrong")
    if counts["wrong"]:
        wrong = next(trial for trial in trials if trial.wrong)
        click.echo(
            f"midst: replay one with: python -m tests.simnet --seeds {wrong.seed}, and the same options", err=True
        )
        raise click.exceptions.Exit(1)


def _parse_seeds(text: str) -> range:
    first, colon, last = text.partition(":")
    try:
        chosen = range(int(first), int(last) if colon else int(first) + 1)
    except ValueError:
        chosen = range(0)
    if not chosen or chosen.start < 0 or chosen.stop > _LARGEST_SEED:
        raise InputError("--seeds is neither a whole number nor two with a colon between; try 17, or 0:200")
    return chosen


def _shown(part: object) -> str:
    if isinstance(part, dict):
        return "; ".join(f"{name} {what}" for name, what in part.items()) or "none"
    return ", ".join(map(str, part)) or "none" if isinstance(part, tuple) else str(part)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit as `midst` does: an error is one line, and bad input has exit code 2."""
    try:
        code = command.main(arguments, prog_name="python -m tests.simnet", standalone_mode=False)
    except Exception as error:
        message, code = explain(error)
        click.echo(f"midst: {' '.join(message.split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()

"""`midst simnet`: the network's own code under faults that a seed decides, and can repeat byte for byte."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from midst.errors import InputError

if TYPE_CHECKING:
    from midst.methods import MethodName

_EXAMPLES = """\b
Examples:
  midst simnet --seed 17
  midst simnet --seed 0 --runs 1000 --workers 2 --method search
  midst simnet --seed 17 --loss 0.6 --crashes 10 --json"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--seed", type=click.IntRange(min=0), required=True, metavar="N", help="Which faults; the first of many.")
@click.option("--runs", type=click.IntRange(min=1), default=1, show_default=True, help="So many seeds, from --seed on.")
@click.option("--method", type=click.Choice(["consensus", "search"]), default="consensus", show_default=True)
@click.option("--verify", is_flag=True, help="Everybody proves its votes in a search; slower.")
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
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object a line.")
def command(seed: int, runs: int, method: MethodName, verify: bool, workers: int, as_json: bool, **faults: Any) -> None:
    """Run participants on a simulated network that loses, doubles, delays and cuts, with crashes and bad disks.

    Every seed is a random charter, run once on a perfect network and once on the bad one. Exit code 0 if every run
    ended with the right answer, or with an abort that names somebody; 1 if anything else happened.
    """
    from midst.cli.terminal import task_bar
    from midst.simnet.faults import Faults
    from midst.simnet.trial import run_trial
    from midst.workers import run_in_parallel

    if seed + runs > 2**63:
        raise InputError("--seed is too large; try a number below 2^62")
    if any(number != number for number in faults.values()):
        raise InputError("a rate or a delay is not a number")
    plan = Faults(**faults)
    with task_bar("simnet", of="seeds") as bar:
        run = partial(run_trial, faults=plan, method=method, verify=verify)
        trials = run_in_parallel(run, range(seed, seed + runs), workers, bar)
    wrong = [trial for trial in trials if trial.wrong]
    if as_json:
        for trial in trials:
            click.echo(json.dumps(trial.to_dict()))
    else:
        for trial in trials if runs == 1 else wrong:
            click.echo("\n".join(f"{name:>10}  {_shown(part)}" for name, part in trial.to_dict().items()))
        ended = sum(not trial.aborted for trial in trials)
        click.echo(
            f"{runs} seeds: {ended} ended with the answer, {runs - ended} with an abort, {len(wrong)} went wrong"
        )
    if wrong:
        click.echo(f"midst: replay one with: midst simnet --seed {wrong[0].seed}", err=True)
        raise click.exceptions.Exit(1)


def _shown(part: object) -> str:
    return ", ".join(map(str, part)) or "none" if isinstance(part, tuple) else str(part)

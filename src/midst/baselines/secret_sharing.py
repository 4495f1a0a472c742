"""MPyC (Schoenmakers): the median of secret-shared numbers, every party a process of its own, on this machine.

What that gives away: a minority of the parties sees shares, which are random, and what is opened on the way. MPyC's
quickselect opens how pivots, drawn at random, compare, which tells nothing where all numbers differ (its own docstring
says so, and that ties tell something). So of different numbers the answer is all that is told, and bits are the floor.

A round is a message each way on every link, however many are under way at once.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from midst.baselines.outcome import Outcome
from midst.baselines.processes import ask_all, until_done
from midst.errors import MissingExtra
from midst.net.local import hold_ports
from midst.problems import Problem
from midst.types import Row

PARTY = Path(__file__).with_name("party.py")
MOST_PARTIES = 15  # whose processes two cores bear in seconds
_MOST_GROUPED = 9  # parties of whom all large enough groups have secrets in common; of more there would be thousands
_SPARE = 2  # bits: a sign, and one for comparisons


def run_parties(
    python: str,
    numbers: tuple[str, int],
    per_unit: float,
    options: Sequence[str],
    prepare: Callable[[Path], object],
    values: Sequence[float],
) -> Row:
    """A median by MPyC, every party a process; see `ask_all` for what comes back.

    Args:
        python: an interpreter that has MPyC.
        numbers: "integers" or "fixed", and of how many bits.
        per_unit: what values are multiplied by to be whole numbers.
        options: of MPyC.
        prepare: called with the folder in which all run, before they do.
        values: one a party.

    Raises:
        PartyFailed: one of them failed, or took too long.
    """
    kind, bits = numbers
    with tempfile.TemporaryDirectory() as name, hold_ports(len(values)) as ports:
        folder = Path(name)
        prepare(folder)
        addresses = [word for port in ports for word in ("-P", f"127.0.0.1:{port}")]
        command = [str(PARTY), kind, str(bits), repr(per_unit), "--no-log", *options, *addresses]
        commands = [[*command, "-I", str(i)] for i in range(len(values))]
        return ask_all(python, commands, values, folder)


def run_secret_sharing(problem: Problem, resolution: Fraction, floor: float) -> Outcome:
    """The median by MPyC.

    Args:
        problem: whose values, multiples of the resolution within public bounds.
        resolution: public.
        floor: bits that the answer alone gives away.

    Raises:
        MissingExtra: MPyC is not installed.
        PartyFailed: one of them failed, or took too long.
    """
    if find_spec("mpyc") is None:
        raise MissingExtra("mpyc", "compare")
    assert problem.bounds is not None
    per_unit = float(1 / resolution)
    largest = max(abs(float(end)) for end in problem.bounds) * per_unit
    bits = int(np.ceil(np.log2(largest + 1))) + _SPARE
    options = () if problem.graph.n <= _MOST_GROUPED else ("--no-prss",)
    work = partial(run_parties, sys.executable, ("integers", bits), per_unit, options, lambda folder: None)
    run = until_done(work, problem.values.tolist())
    told = run["value"], run["messages"], run["sent"], run["seconds"], 0
    if len(np.unique(problem.values)) == len(problem.values):
        return Outcome(*told, floor)
    return Outcome(*told, None, "not derived: what MPyC's choice of pivots tells where values are equal")

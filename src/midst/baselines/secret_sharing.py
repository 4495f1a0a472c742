"""MPyC (Schoenmakers): the median of secret-shared numbers, every party a process of its own, on this machine.

What that gives away: a minority of the parties sees shares, which are random, and what is opened on the way. MPyC's
quickselect opens how pivots, drawn at random, compare, which tells nothing where all numbers differ (its own docstring
says so, and that ties tell something). So of different numbers the answer is all that is told, and bits are the floor.

A round is a message each way on every link, however many are under way at once. Bytes are those of MPyC's messages.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from statistics import mean

import numpy as np

from midst.baselines.outcome import Outcome
from midst.errors import MissingExtra
from midst.net.local import hold_ports
from midst.problems import Problem
from midst.types import Row

PARTY = Path(__file__).with_name("party.py")
MOST_PARTIES = 15  # whose processes two cores bear in seconds
_MOST_GROUPED = 9  # parties of whom all large enough groups have secrets in common; of more there would be thousands
_SPARE = 2  # bits: a sign, and one for comparisons
_PATIENCE = 100  # seconds


class PartyFailed(Exception):  # noqa: N818
    """A party's process failed, or took too long."""


def run_secret_sharing(problem: Problem, resolution: Fraction, floor: float) -> Outcome:
    """The median by MPyC of values that are multiples of the resolution, within public bounds.

    The floor, in bits, is what the answer alone gives away.

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
    said = _ask_parties([str(bits), repr(per_unit), "--no-log", *options], problem.values.tolist())
    (value,) = {each["value"] for each in said}
    messages, size = (mean(each[what] for each in said) for what in ("messages", "bytes"))
    told = value, messages, size, max(each["answered"] for each in said) - max(each["up"] for each in said), 0
    if len(np.unique(problem.values)) == len(problem.values):
        return Outcome(*told, floor)
    return Outcome(*told, None, "not derived: what MPyC's choice of pivots tells where values are equal")


def _ask_parties(arguments: Sequence[str], values: Sequence[float]) -> list[Row]:
    """Start a party for each value, which gets it by standard input alone, and read what each prints."""
    with tempfile.TemporaryDirectory() as folder, hold_ports(len(values)) as ports:
        addresses = [word for port in ports for word in ("-P", f"127.0.0.1:{port}")]
        command = [sys.executable, "-P", str(PARTY), *arguments, *addresses]  # -P: this folder has modules of its own

        def ask(party: int, value: float) -> Row:
            done = subprocess.run(
                [*command, "-I", str(party)], input=f"{value}\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd=folder, text=True, timeout=_PATIENCE, check=True,
            )  # fmt: skip
            said: Row = json.loads(done.stdout)
            return said

        try:
            with ThreadPoolExecutor(len(values)) as pool:
                return list(pool.map(ask, range(len(values)), values))
        except (subprocess.SubprocessError, ValueError):
            raise PartyFailed("a party's process failed, or took too long") from None

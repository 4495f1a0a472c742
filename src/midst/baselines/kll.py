"""KLL sketches (Karnin, Lang and Liberty 2016; Apache DataSketches), merged on the way to everybody.

What that gives away: the items of a sketch are values, as they were. Up to k of them (and somewhat more) none is left
out: then what a node sends is what its children sent and its own value, and whoever hears both knows that. Beyond, a
merge keeps one of two neighbours in order, by a coin: a value that is an item of what its owner sent, and of nothing
that this one was sent, is exposed all the same. Of one that was left out its neighbours in order are known; what that
is worth depends on how the sketch is built inside, and is not derived here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from midst.algorithms import Message
from midst.baselines.grid import PublicGrid
from midst.baselines.outcome import Outcome, Stopwatch
from midst.baselines.tree import Gather, Upward, gather
from midst.errors import load_extra
from midst.problems import Problem
from midst.types import Array, Bools

K = 200  # of the sketch: an error of 1.3% of the ranks


def _sketches() -> Any:
    return load_extra("datasketches", "compare").kll_doubles_sketch


def run_kll(problem: Problem, grid: PublicGrid, k: int = K) -> Outcome:
    """The median of a merged sketch: the larger its k, the longer and the more exact.

    Raises:
        MissingExtra: datasketches is not installed.
    """
    kind, watch = _sketches(), Stopwatch()

    def start(value: float) -> bytes:
        sketch = kind(k)
        sketch.update(value)
        return bytes(sketch.serialize())

    def merge(parts: Sequence[Message]) -> bytes:
        merged = kind(k)
        for part in parts:
            merged.merge(kind.deserialize(part))
        return bytes(merged.serialize())

    def read(whole: Message) -> float:
        return float(kind.deserialize(whole).get_quantile(0.5, True))

    told = gather(problem, Gather("kll", start, merge, read))
    seconds = watch.read()
    shown = is_shown(told, problem.values)
    known = float(grid.bits_of_values(problem.values[shown]).sum()) / len(shown)
    bits = known if shown.all() else None
    why = None if shown.all() else f"not derived: what a sketch tells of a value it left out; at least {known:.1f} bits"
    return Outcome(told.answer, told.rounds, told.bytes_per_node, seconds, int(shown.sum()), bits, why)


def is_shown(told: Upward, values: Array) -> Bools:
    """Whether each value is an item of what its owner sent, more often than of what this one was sent."""
    kind = _sketches()

    def items(messages: Sequence[Message]) -> Counter[float]:
        return Counter(item for message in messages for item, _ in kind.deserialize(message))

    pairs = zip(values.tolist(), told.sent, told.received, strict=True)
    return np.array([items([sent])[value] > items(received)[value] for value, sent, received in pairs])

"""t-digests (Dunning and Ertl 2019; fastdigest), merged on the way to everybody.

What that gives away: a digest has weighted means of values, and merging keeps their sum. So the sum of what a node
sends, less the sums of what its children sent, is its own value, however many values were merged: `read_values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from midst.algorithms import Message
from midst.baselines.grid import PublicGrid
from midst.baselines.outcome import Outcome, Stopwatch
from midst.baselines.tree import Gather, Upward, gather
from midst.errors import load_extra
from midst.problems import Problem
from midst.types import Array

CENTROIDS = 100


def _digests() -> Any:
    return load_extra("fastdigest", "compare").TDigest


def run_tdigest(problem: Problem, grid: PublicGrid, centroids: int = CENTROIDS) -> Outcome:
    """The median of a merged digest: the more centroids it may have, the longer and the more exact.

    Raises:
        MissingExtra: fastdigest is not installed.
    """
    kind, watch = _digests(), Stopwatch()

    def start(value: float) -> bytes:
        return bytes(kind.from_values([value], max_centroids=centroids).to_bytes())

    def merge(parts: Sequence[Message]) -> bytes:
        merged = kind.from_bytes(parts[0])
        for part in parts[1:]:
            merged = merged.merge(kind.from_bytes(part))
        return bytes(merged.to_bytes())

    def read(whole: Message) -> float:
        return float(kind.from_bytes(whole).quantile(0.5))

    told = gather(problem, Gather("t-digest", start, merge, read))
    seconds = watch.read()
    known = np.abs(read_values(told) - problem.values) < grid.resolution / 2
    unread = int(np.sum(~known))
    why = f"not derived: what digests tell of a value that their sums do not ({unread} of them)" if unread else None
    bits = float(grid.bits_of_values(problem.values).mean()) if known.all() else None
    return Outcome(told.answer, told.rounds, told.bytes_per_node, seconds, int(known.sum()), bits, why)


def read_values(told: Upward) -> Array:
    """Every value, from what was sent alone."""
    kind = _digests()

    def total(message: Message) -> float:
        centroids = kind.from_bytes(message).to_dict()["centroids"]
        return float(sum(each["m"] * each["c"] for each in centroids))

    pairs = zip(told.sent, told.received, strict=True)
    return np.array([total(sent) - sum(map(total, received)) for sent, received in pairs])

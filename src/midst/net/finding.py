"""What a participant has found when its part in a session is over."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from midst.net.seat import Seat
from midst.node import Node, State


class Distrust(Exception):  # noqa: N818
    """A neighbour did what nobody who keeps to the protocol does.

    Attributes:
        kind: "equivocation", "diverged" or "broken protocol".
        about: the neighbour's number.
    """

    def __init__(self, kind: str, about: int, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.about = about


class Found(msgspec.Struct, frozen=True, array_like=True):
    """The answer and its proof.

    Attributes:
        value: in the units of the data, one number a coordinate.
        counts: weight below and above the value, and the total weight, one a coordinate; empty where the residuals
            proved it.
        bound: proved bound on the distance from a right answer; 0 for a count.
        rounds: iterations it took.
        exposed: whether this participant sent its own value, in any coordinate.
    """

    value: tuple[float, ...]
    counts: tuple[tuple[int, int, int], ...]
    bound: float
    rounds: int
    exposed: bool

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        counts = [dict(zip(("below", "above", "total"), count, strict=True)) for count in self.counts]
        value = self.value[0] if len(self.value) == 1 else list(self.value)
        rest = {"bound": self.bound, "counts": counts, "rounds": self.rounds, "exposed": self.exposed}
        return {"value": value, "certified": True, **rest}


def is_inside(state: State) -> bool:
    """Whether the node has just sent its own value, in any coordinate; whoever proposes it has done so before."""
    assert state.branch is not None
    return bool(np.any(state.branch == 0))


def last_round(node: Node, state: State) -> int | None:
    """The iteration in which all nodes know every answer, the same for all of them; None while one is not known.

    The root decides in iteration `decided`, and no node is further from it than the bound on the diameter.
    """
    ends = [
        count.word.verdict.decided + counter.rules.ready - 1
        for count, counter in zip(state.counts, node.counters, strict=True)
        if count.answer is not None and count.word.verdict is not None
    ]
    return max(ends) if len(ends) == len(node.counters) > 0 else None


def found_by_count(seat: Seat, state: State, iterations: int, exposed: bool) -> Found:
    """What a count has proved, once every coordinate's answer is known."""
    value = np.array([count.answer for count in state.counts], np.float64)
    verdicts = [verdict for count in state.counts if (verdict := count.word.verdict) is not None]
    rules = [counter.rules for counter in seat.node.counters]
    counts = tuple((v.below, v.above, rule.total) for v, rule in zip(verdicts, rules, strict=True))
    return Found(tuple(seat.in_data_units(value).tolist()), counts, 0.0, iterations, exposed)

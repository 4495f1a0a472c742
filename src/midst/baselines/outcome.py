"""What a run on one problem cost and gave away."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from midst.types import Array


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """What came of one run.

    Attributes:
        answers: what the participants end with: one number each, or one for all.
        rounds: of messages.
        bytes_per_node: that a node sends, in the mean.
        seconds: that the run took, without what it took to tell what it gave away.
        exposed: how many participants' very values were sent, or follow from what was.
        bits: learnt of a value, in the mean over all participants; None where that is not known.
        why: it is not; None where it is.
    """

    answers: Array | float
    rounds: float
    bytes_per_node: float
    seconds: float
    exposed: int
    bits: float | None
    why: str | None = None


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = perf_counter()

    def read(self) -> float:
        """How many."""
        return perf_counter() - self._began


def first_settled(errors: Array, tolerance: float) -> int:
    """The number of the first entry from which on all are within a tolerance; the last one where none is.

    Nobody in the network can tell that moment: it is the best that somebody could have chosen to stop at.
    """
    far = (errors > tolerance).nonzero()[0]
    return min(int(far[-1]) + 1, len(errors) - 1) if len(far) else 0

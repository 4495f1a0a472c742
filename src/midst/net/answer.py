"""What a participant has in hand when a session is over: the answer and its proof."""

from __future__ import annotations

from typing import Any

import msgspec

from midst.protocol.participant import Transcript


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The answer and its proof.

    Attributes:
        value: in the units of the data, one number a coordinate.
        proof: weight below and above the value, and the total weight, one a coordinate; empty where residuals proved
            it.
        bound: proved bound on the distance from a right answer; 0 where the totals of a search prove it.
        rounds: message rounds it took; of a search, a diameter for each of its steps.
        exposed: whether this participant sent its own value, in any coordinate.
        probes: questions of the search; 0 where there was none.
        contradicted: whether the totals leave no room for this participant's own values, so that somebody lied; for its
            owner alone.
        transcript: what the search made public, with everybody's signature.
    """

    value: tuple[float, ...]
    proof: tuple[tuple[int, int, int], ...]
    bound: float
    rounds: int
    exposed: bool
    probes: int = 0
    contradicted: bool = False
    transcript: Transcript | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values, but for the transcript."""
        proof = [dict(zip(("below", "above", "total"), count, strict=True)) for count in self.proof]
        value = self.value[0] if len(self.value) == 1 else list(self.value)
        rest = {"bound": self.bound, "counts": proof, "rounds": self.rounds, "probes": self.probes}
        return {"value": value, "certified": True, **rest, "exposed": self.exposed}

"""What nodes of the iteration tell each other."""

from __future__ import annotations

import msgspec

from midst.types import Array


class Message(msgspec.Struct, frozen=True, eq=False):
    """What travels along an edge in one round.

    Attributes:
        round: which.
        number: z_{i|j}(0) in round 0, x_i(t) in round t + 1.
    """

    round: int
    number: Array

    def __repr__(self) -> str:
        return f"<Message of round {self.round}>"

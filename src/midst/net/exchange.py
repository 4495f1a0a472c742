"""How a session goes on, round by round, whichever way the charter says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from midst.net.answer import Answer
from midst.net.gossip import Gossip
from midst.net.setup import Opening, Setup
from midst.net.wire import Want
from midst.protocol.noisy_search import AnySearch
from midst.protocol.statements import Statement

if TYPE_CHECKING:
    from midst.net.tree_sums import TreeSums
    from midst.protocol.node import State


class Exchange(Protocol):
    """How a session goes on: `LockStep`, `Gossip`, `ExactFinish` or `TreeSums`.

    What a step is made from goes to the journal.
    """

    @property
    def exposed(self) -> bool:
        """Whether this participant has sent its own value."""

    @property
    def answer(self) -> Answer | None:
        """The answer, once it is proved."""

    @property
    def round(self) -> int:
        """The round whose frames are awaited."""

    @property
    def awaits_everybody(self) -> bool:
        """Whether all participants are waited for, and not only the neighbours."""

    @property
    def vectors(self) -> TreeSums | None:
        """Where rounds about vectors stand; None where values are numbers."""

    @property
    def state(self) -> State | None:
        """Where the iteration stands; None where there is none."""

    @property
    def search(self) -> AnySearch | None:
        """Where the search stands; None before it has begun."""

    def own(self, step: int) -> Statement | None:
        """Our own statement of a step of the search, if there is one."""

    def newest_of(self, j: int) -> Statement | None:
        """The newest statement that we have of somebody."""

    def heard(self) -> Sequence[Statement]:
        """All statements of this step of the search that are here."""

    def forget(self, j: int) -> None:
        """A neighbour has greeted anew: nothing is known of what it has."""

    def begin(self) -> None:
        """Every neighbour has greeted: what was held back may be told."""

    def outbox(self) -> list[tuple[int, bytes]]:
        """What is to be sent now; it is not given a second time."""

    def frames(self, j: int, want: Want) -> list[bytes]:
        """Our frames for a neighbour from a round on, as far as they are kept; or what it lacks of that round."""

    def ask(self, j: int) -> Want | None:
        """What to ask a neighbour for, if anything."""

    def asked(self) -> None:
        """All neighbours have been asked for what is missing."""

    def missing(self) -> list[int]:
        """The participants that are waited for."""

    def take(self, j: int, said: Any) -> bool:
        """Hold a neighbour's frame; whether it was news."""

    def inputs(self, now: float) -> Any | None:
        """What the next step is made from, if it can be made now."""

    def pack(self, inputs: Any) -> bytes:
        """The same as bytes."""

    def unpack(self, record: bytes) -> Any:
        """And back."""

    def step(self, inputs: Any) -> None:
        """The next step."""


def make_exchange(setup: Setup, opening: Opening, settled: bytes = b"") -> Exchange:
    """The exchange of a charter, before its first round; or after rounds that are over, by what was kept of them."""
    if setup.charter.arrays:
        from midst.net.tree_sums import TreeSums

        return TreeSums(setup, opening, settled)
    if setup.iteration is None:
        return Gossip(setup, opening)
    from midst.net.exact_finish import ExactFinish
    from midst.net.lockstep import LockStep

    kind = ExactFinish if setup.charter.stop == "exact" else LockStep
    return kind(setup, setup.iteration, opening)

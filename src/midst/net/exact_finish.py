"""The iteration until all x are close, then a search of the public bounds that begins where they are: an exact finish.

Rules:
- The first frames are `LockStep`'s, the later ones `Gossip`'s; rounds are counted through. All participants turn from
  one to the other after the same round, with the same thresholds, since all have heard the same maxima.
- A neighbour may have turned before us: what it says about the search is kept until we do.
- Nothing is proved by the iteration: the totals of the search are the proof.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from midst.methods import opening_thresholds
from midst.net.answer import Answer
from midst.net.gossip import Gossip
from midst.net.iteration import Iteration
from midst.net.lockstep import LockStep
from midst.net.setup import Opening, Setup
from midst.net.wire import Statements, StepFrame, Want
from midst.protocol.maxima import Range
from midst.protocol.node import State
from midst.protocol.noisy_search import AnySearch
from midst.protocol.statements import Malformed, Statement, check_form


class ExactFinish:
    """One participant's part: the iteration, and then the search."""

    vectors = None

    def __init__(self, setup: Setup, iteration: Iteration, opening: Opening) -> None:
        """Round 0, not yet sent."""
        self._setup, self._opening = setup, opening
        self._in_data_units, self._scale = iteration.in_data_units, iteration.parameters.scale
        self._iteration = LockStep(setup, iteration, opening)
        self._search: Gossip | None = None
        self._early: dict[tuple[int, int], Statements] = {}
        self._begun = False

    @property
    def state(self) -> State:
        """Where the iteration stands."""
        return self._iteration.state

    @property
    def search(self) -> AnySearch | None:
        """Where the search stands; None before it has begun."""
        return None if self._search is None else self._search.search

    @property
    def awaits_everybody(self) -> bool:
        """Whether all participants are waited for, and not only the neighbours."""
        return self._search is not None

    def own(self, step: int) -> Statement | None:
        """Our own statement of a step of the search, if there is one."""
        return None if self._search is None else self._search.own(step)

    @property
    def round(self) -> int:
        """The round whose frames are awaited."""
        return self._now.round

    @property
    def exposed(self) -> bool:
        """Whether this participant has sent its own value."""
        return self._iteration.exposed

    @property
    def answer(self) -> Answer | None:
        """The answer, once everybody has signed it."""
        return None if self._search is None else self._search.answer

    @property
    def _now(self) -> LockStep | Gossip:
        return self._iteration if self._search is None else self._search

    def begin(self) -> None:
        """Every neighbour has said what it knows of us."""
        self._begun = True
        if self._search is not None:
            self._search.begin()

    def outbox(self) -> list[tuple[int, bytes]]:
        """What is to be sent now; it is not given a second time."""
        return self._iteration.outbox() + ([] if self._search is None else self._search.outbox())

    def frames(self, j: int, want: Want) -> list[bytes]:
        """What a neighbour asks for."""
        later = [] if self._search is None else self._search.frames(j, want)
        return later if want.lacks else self._iteration.frames(j, want) + later

    def ask(self, j: int) -> Want | None:
        """What to ask a neighbour for."""
        return self._now.ask(j)

    def asked(self) -> None:
        """Everybody has been asked."""
        self._now.asked()

    def newest_of(self, j: int) -> Statement | None:
        """The newest statement that we have of somebody."""
        return None if self._search is None else self._search.newest_of(j)

    def heard(self) -> list[Statement]:
        """All statements of this step of the search that are here."""
        return [] if self._search is None else self._search.heard()

    def forget(self, j: int) -> None:
        """A neighbour has greeted anew."""
        if self._search is not None:
            self._search.forget(j)

    def missing(self) -> list[int]:
        """Who is waited for."""
        return self._now.missing()

    def take(self, j: int, said: StepFrame | Statements) -> bool:
        """Hold what a neighbour says; whether it was news.

        Raises:
            Malformed: it tells what no participant could have signed.
            Distrust: it, or somebody, has said what it must not.
        """
        if isinstance(said, StepFrame):
            return self._iteration.take(j, said)
        if self._search is not None:
            return self._search.take(j, said)
        for statement in said.statements:
            check_form(statement.body, len(self._setup.charter.names))
            if statement.step == 0:
                self._early[j, statement.signer] = Statements((statement,))
        return False

    def inputs(self, now: float) -> Any:
        """What the next step is made from, if it can be made now."""
        return self._now.inputs(now)

    def pack(self, inputs: Any) -> bytes:
        """The same as bytes."""
        return self._now.pack(inputs)

    def unpack(self, record: bytes) -> Any:
        """And back."""
        return self._now.unpack(record)

    def step(self, inputs: Any) -> None:
        """The next step."""
        self._now.step(inputs)
        if self._search is None and self._iteration.range is not None:
            self._turn(self._iteration.range)

    def _turn(self, within: Range) -> None:
        """From the iteration to the search."""
        low, high = (np.atleast_1d(self._in_data_units(end)) for end in (within.low, within.high))
        scale = np.broadcast_to(self._scale, low.shape)
        ends = zip(low.tolist(), high.tolist(), scale.tolist(), strict=True)
        thresholds = tuple(opening_thresholds(self._setup.charter.keys, *each) for each in ends)
        self._search = Gossip(self._setup, self._opening, self._iteration.round, thresholds)
        self._search.exposed = self._iteration.exposed
        if self._begun:
            self._search.begin()
        early, self._early = self._early, {}
        for (j, _), said in early.items():
            with suppress(Malformed):  # only now can signatures be checked; the right one will be asked for
                self._search.take(j, said)

"""`midst node --save`: a participant's own record of a session, for `midst audit`.

Rules:
- It holds what the audit of this participant's part needs: of an iteration its own x and branches; of a search what it
  made public. Nothing that another participant has said in an iteration is in it, and no value: but an x that was sent
  from inside the interval is the value itself, and so the file is readable by its owner alone.
- A session that is taken up again is recorded from its beginning, since the journal is played again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from midst.errors import Aborted, InputError
from midst.net.answer import Answer
from midst.net.charter import Charter
from midst.net.exchange import Exchange
from midst.net.iteration import Iteration
from midst.net.session import Session
from midst.net.setup import Opening, Setup
from midst.objectives import Mean
from midst.protocol.course import play
from midst.protocol.search import SearchState
from midst.protocol.statements import Statement
from midst.recorder import Recorder
from midst.trace import Probe, Trace
from midst.types import Array, Branch


class OwnRecord:
    """Watches one participant's session."""

    def __init__(self, setup: Setup) -> None:
        """Start with nothing seen."""
        self._setup = setup
        self._shape = (1, *(() if setup.iteration is None else setup.iteration.node.shape))
        self._recorder = Recorder("audit", self._shape)
        self._last: tuple[int, Array, Branch] | None = None

    def see(self, exchange: Exchange) -> None:
        """Take note of where a session stands, after each of its steps; it may be looked at more often."""
        state = exchange.state
        # the x of an iteration that is over was not sent
        if state is None or state.x is None or exchange.awaits_everybody or exchange.answer is not None:
            return
        if self._last is not None and self._last[0] == state.round - 1:
            return
        self._last = state.round - 1, np.reshape(state.x, self._shape), np.reshape(state.branch, self._shape)  # type: ignore[arg-type]
        self._recorder.see(*self._last)

    def trace(self, session: Session, ending: Answer | Aborted) -> Trace:
        """What there is to be audited of a session that has ended."""
        setup = self._setup
        search, sizes = told_by(setup.charter, ending, session.exchange)
        trace = replace(trace_of(setup.charter, search, sizes), own=setup.number)
        if setup.iteration is None or self._last is None:
            return trace
        return replace(trace, **self._iterated(setup.iteration, session.opening))

    def _iterated(self, iteration: Iteration, opening: Opening) -> dict[str, Any]:
        """What was seen of the iteration, in arrays that have room for everybody."""
        assert self._last is not None
        charter, number, unit = self._setup.charter, self._setup.number, iteration.parameters.unit
        t, own, branches = self._recorder.frames(*self._last)
        x = np.full((len(t), len(charter.names), *own.shape[2:]), np.nan)
        branch = np.zeros(x.shape, np.int8)
        x[:, number], branch[:, number] = own[:, 0] * unit, branches[:, 0]
        count = self._last[0] + 1
        segments = self._recorder.segments(count, unit)
        assert segments is not None
        segments.node[:] = number
        found = {"parameters": iteration.parameters.to_dict(), "iterations": count, "t": t, "x": x, "branch": branch}
        if isinstance(charter.goal, Mean):
            z0 = np.full((len(charter.graph.source), *own.shape[2:]), np.nan)
            z0[charter.graph.source == number] = np.array(iteration.z_of(opening)) * unit
            found["z0"] = z0
        return found | {"segments": segments}


def trace_of(charter: Charter, search: SearchState | None, sizes: list[int]) -> Trace:
    """Collect what a search, if there was one, has made public so far, as the audit reads it.

    `sizes` are how many values each participant has.
    """
    n, probes, answer = len(sizes), [], None
    if search is not None:
        for coordinate, known in enumerate(search.known):
            totals = tuple(above - below for (_, below), (_, above) in pairwise(known))
            edges = tuple(edge for edge, _ in known)
            probes.append(Probe(0, coordinate, search.rules.keys, edges, totals))
        if search.question is None:
            answer = tuple(map(search.value, range(len(search.rules.goals))))
    shape = (0, n) if charter.coordinates == 1 else (0, n, charter.coordinates)
    return Trace(
        graph=charter.graph,
        objective=charter.goal,
        whole_weights=np.array([one.weight for one in charter.participants], np.int64),
        unit_weight=1.0,
        parameters={},
        iterations=0,
        t=np.zeros(0, np.int64),
        x=np.zeros(shape),
        branch=np.zeros(shape, np.int8),
        probes=tuple(probes),
        answer=answer,
        owners=np.repeat(np.arange(n), sizes) if charter.has_lists else None,
    )


def record_of_answer(charter: Charter, number: int, answer: Answer) -> Trace:
    """A participant's record of a session of which only the answer is left.

    Raises:
        InputError: there was an iteration, of which nothing is left.
    """
    if charter.method != "search":
        raise InputError("--save: the session is over, and nothing is left of its iteration; leave it out")
    return replace(trace_of(charter, *told_by(charter, answer)), own=number)


def told_by(
    charter: Charter, ending: Answer | Aborted, exchange: Exchange | None = None
) -> tuple[SearchState | None, list[int]]:
    """What a search without noise had told at its end, and how many values each participant has; None for nothing.

    There is no exchange where the session was over already.
    """
    search, sizes = None if exchange is None else exchange.search, [1] * len(charter.names)
    if isinstance(ending, Answer):
        search = None  # residuals proved it, unless there is a transcript
        if (told := ending.transcript) is not None:
            said = [Statement(body, b"") for body in told.announcements]
            tags, sizes = [each.tag for each in said], [each.announced()[2] for each in said]
            search = play(charter.agreement(told.opening), tags, told.opening, told.totals, told.seals)[-1].search
    elif charter.has_lists and not charter.statistics:
        search = None  # how many values the others have is in their announcements, and not told here
    return search if isinstance(search, SearchState) and search.steps else None, sizes

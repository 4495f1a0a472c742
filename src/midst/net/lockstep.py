"""The iteration in lock-step: a round is one frame from every neighbour, and the next begins when all are there.

Rules:
- No I/O, no clock. `take` holds a frame, `inputs` gives a round's frames once all are there, `step` turns them into the
  next round's. What `step` was given is all a journal has to keep.
- A neighbour can be one round ahead, never two: its next frame needs ours. So two rounds of frames are held, and two
  rounds of our own are kept for whoever has missed one.
- The same frame twice is harmless. Another frame for the same round is equivocation, and names the neighbour.
- Both ends of an edge compare a digest of both z's in every round: mirrors that have come apart stop the run.
- It ends, in the same round for all, with the range in which all x lie (`maxima.py`): proved to hold the answer, or
  close enough for a search to begin there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from midst.net.answer import Answer
from midst.net.iteration import Iteration
from midst.net.setup import Opening, Setup
from midst.net.wire import DIGEST_BYTES, StepFrame, Want, edge_digest
from midst.protocol.certificate import residual_bound
from midst.protocol.maxima import Range
from midst.protocol.message import Message
from midst.protocol.node import State
from midst.protocol.participant import Distrust
from midst.protocol.step import Terms
from midst.types import Array

_NO_DIGEST = bytes(DIGEST_BYTES)


class LockStep:
    """One participant's rounds."""

    def __init__(self, setup: Setup, iteration: Iteration, opening: Opening) -> None:
        """Round 0, not yet sent."""
        self._setup, self._iteration = setup, iteration
        self._neighbours = setup.neighbours
        self._maxima = iteration.stop_rule.empty()
        self._held: dict[int, dict[int, StepFrame]] = {0: {}, 1: {}}
        self._frames: dict[int, dict[int, bytes]] = {}
        self._digests: dict[int, bytes] = {}
        self._outbox: list[tuple[int, bytes]] = []
        self.exposed = False
        self.range: Range | None = None
        self.round = 0  # whose frames are awaited: the one this participant has sent
        self.state, outbox = iteration.node.begin(iteration.z_of(opening))
        self._publish(outbox)

    @property
    def answer(self) -> Answer | None:
        """The answer, where residuals prove it."""
        if self.range is None or self._iteration.stop_rule.residuals is None:
            return None
        low, high, bound = map(self._iteration.in_data_units, (self.range.low, self.range.high, self.range.bound))
        value = np.atleast_1d(low + 0.5 * (high - low))
        return Answer(tuple(value.tolist()), (), float(np.max(bound)), self.round, self.exposed)

    awaits_everybody = False
    vectors = None
    search = None  # there is none: residuals prove the answer, or `ExactFinish` has one

    def own(self, step: int) -> None:
        """Nothing is signed in an iteration."""

    def newest_of(self, j: int) -> None:
        """Nothing is signed in an iteration."""

    def heard(self) -> tuple[()]:
        """Nothing is signed in an iteration."""
        return ()

    def forget(self, j: int) -> None:
        """Frames are sent to each neighbour as it asks for them."""

    def begin(self) -> None:
        """Nothing was held back: z(0) was sent to each neighbour when it had greeted."""

    def outbox(self) -> list[tuple[int, bytes]]:
        """What is to be sent now; it is not given a second time."""
        told, self._outbox = self._outbox, []
        return told

    def frames(self, j: int, want: Want) -> list[bytes]:
        """Our frames for a neighbour from a round on, as far as they are kept."""
        return [frames[j] for round, frames in self._frames.items() if round >= want.round]

    def ask(self, j: int) -> Want | None:
        """What to ask a neighbour for."""
        return Want(self.round) if j in self.missing() else None

    def asked(self) -> None:
        """Nothing else is to be done about it."""

    def missing(self) -> list[int]:
        """The neighbours whose frame of this round is not there."""
        here = self._held[self.round]
        return [j for j in self._neighbours if j not in here]

    def take(self, j: int, step: StepFrame) -> bool:
        """Hold a neighbour's frame; whether it was news.

        Raises:
            Distrust: it cannot be, beside what this neighbour has sent before.
        """
        round = step.message.round
        if round > self.round + 1:
            rounds = f"{round}, {self.round}"
            text = f"are more than a round apart ({rounds}): a journal was put back, or one of the two lies"
            raise Distrust("diverged", self._both(j), text)
        held = self._held.get(round)
        if held is not None and j in held and held[j].frame != step.frame:
            raise Distrust("equivocation", (j,), f"sent two different frames for round {round}")
        if held is None or j in held or round < self.round:
            return False
        held[j] = step
        return True

    def inputs(self, now: float) -> Mapping[int, StepFrame] | None:
        """The frames of this round, in the order of the neighbours, once all are there.

        Raises:
            Distrust: a neighbour's z's are not ours.
        """
        here = self._held[self.round]
        if len(here) < len(self._neighbours) or self.range is not None:
            return None
        for j, step in here.items():
            if step.digest != self._digests[j]:
                raise Distrust("diverged", self._both(j), f"have not the same z for their edge in round {self.round}")
        return {j: here[j] for j in self._neighbours}

    def pack(self, inputs: Mapping[int, StepFrame]) -> bytes:
        """A round's inputs for the journal."""
        return b"".join([step.frame for step in inputs.values()])

    def unpack(self, record: bytes) -> dict[int, StepFrame]:
        """And back."""
        codec, size = self._setup.codec, self._setup.codec.step_bytes
        frames = [record[start : start + size] for start in range(0, len(record), size)]
        steps = [step for frame in frames if isinstance(step := codec.decode(frame), StepFrame)]
        return dict(zip(self._neighbours, steps, strict=True))

    def step(self, inputs: Mapping[int, StepFrame]) -> None:
        """The next round."""
        before, ended, heard = self.state, self.round, list(inputs.values())
        self.state, outbox = self._iteration.node.step(before, {j: step.message for j, step in inputs.items()})
        self.round = self.state.round
        self._held = {ended: dict(inputs), self.round: self._held[self.round], self.round + 1: {}}
        stop_rule = self._iteration.stop_rule
        if before.x is not None:
            own = self._own(before, heard) if stop_rule.begins(ended) else []
            self._maxima = stop_rule.merge(self._maxima, own, [step.maxima for step in heard])
        self.range = stop_rule.judge(self._maxima, ended)
        if self.range is None:  # nobody needs the x of a round that is not made, and nobody is to have it
            branch = self.state.branch
            self.exposed = self.exposed or (branch == 0 if isinstance(branch, int) else bool(np.any(branch == 0)))
            self._publish(outbox)

    def _both(self, j: int) -> tuple[int, int]:
        """The two ends of an edge; nothing shows which of them is to blame."""
        return min(self._setup.number, j), max(self._setup.number, j)

    def _own(self, before: State, inputs: Sequence[StepFrame]) -> list[Array]:
        """What this node puts down in an epoch's first round."""
        assert before.x is not None
        assert before.mirror is not None
        x = before.x
        if self._iteration.stop_rule.residuals is None:
            return [x, -x]
        node = self._iteration.node
        assert isinstance(node.terms, Terms), "a charter names an objective of midst's"
        share = node.terms.weight / len(inputs)
        far = [step.message.number for step in inputs]
        edges = zip(before.z, before.mirror, node.sign, far, strict=True)
        bounds = [residual_bound(z, mirror, A, x, their_x, node.c, share) for z, mirror, A, their_x in edges]
        return [x, -x, np.max(bounds, axis=0) if node.shape else max(bounds)]

    def _publish(self, outbox: Mapping[int, Message]) -> None:
        """Our frames of this round, with the digests that the neighbours' must carry too."""
        state, own, session, codec = self.state, self._setup.number, self._setup.session, self._setup.codec
        if state.mirror is None:
            self._digests = dict.fromkeys(self._neighbours, _NO_DIGEST)
        else:
            edges = zip(self._neighbours, state.z, state.mirror, strict=True)
            self._digests = {
                j: edge_digest(session, state.round, *((z, mirror) if own < j else (mirror, z)))
                for j, z, mirror in edges
            }
        fresh = {j: codec.encode_step(message, self._digests[j], self._maxima) for j, message in outbox.items()}
        kept = {round: frames for round, frames in self._frames.items() if round == self.round - 1}
        self._frames = kept | {self.round: fresh}
        self._outbox = [] if self.round == 0 else list(fresh.items())

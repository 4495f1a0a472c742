"""The iteration in lock-step: a round is one frame from every neighbour, and the next begins when all are there.

Rules:
- No I/O, no clock. `take` holds a frame, `inputs` gives a round's frames once all are there, `step` turns them into the
  next round's. What `step` was given is all a journal has to keep.
- A neighbour can be one round ahead, never two: its next frame needs ours. So two rounds of frames are held, and two
  rounds of our own are kept for whoever has missed one.
- The same frame twice is harmless. Another frame for the same round is equivocation, and names the neighbour.
- Both ends of an edge compare a digest of both z's in every round: mirrors that have come apart stop the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from midst.certificate import residual_bounds
from midst.net.finding import Distrust, Found, found_by_count, is_inside, last_round
from midst.net.seat import Opening, Seat
from midst.net.tide import still
from midst.net.wire import DIGEST_BYTES, Step, edge_digest, pack_numbers
from midst.node import Message, State

_NO_DIGEST = bytes(DIGEST_BYTES)


class LockStep:
    """One participant's rounds."""

    def __init__(self, seat: Seat, opening: Opening) -> None:
        """Round 0, not yet sent."""
        self._seat = seat
        self._level = still(seat.tide) if seat.tide else np.zeros((*seat.node.shape, 3))
        self._held: dict[int, dict[int, Step]] = {0: {}, 1: {}}
        self._frames: dict[int, dict[int, bytes]] = {}
        self._digests: dict[int, bytes] = {}
        self.exposed = False
        self.found: Found | None = None
        self.state, outbox = seat.node.begin(seat.z_of(opening), opening.shares)
        self._publish(outbox)

    @property
    def round(self) -> int:
        """The round whose frames are awaited: the one this participant has sent."""
        return self.state.round

    def frames(self, j: int, since: int) -> list[bytes]:
        """Our frames for a neighbour from a round on, as far as they are kept."""
        return [frames[j] for round, frames in self._frames.items() if round >= since]

    def newest(self) -> Mapping[int, bytes]:
        """The frames of the present round, one a neighbour."""
        return self._frames[self.round]

    def missing(self) -> list[int]:
        """The neighbours whose frame of this round is not there."""
        here = self._held[self.round]
        return [j for j in self._seat.node.neighbours if j not in here]

    def take(self, j: int, step: Step) -> bool:
        """Hold a neighbour's frame; whether it was news.

        Raises:
            Distrust: it cannot be, beside what this neighbour has sent before.
        """
        round = step.message.round
        if round > self.round + 1:
            raise Distrust("broken protocol", j, f"sent round {round} while we are in round {self.round}")
        held = self._held.get(round)
        if held is None:
            return False
        if j in held:
            if held[j].frame != step.frame:
                raise Distrust("equivocation", j, f"sent two different frames for round {round}")
            return False
        if round < self.round:
            return False
        held[j] = step
        return True

    def inputs(self, now: float) -> Mapping[int, Step] | None:
        """The frames of this round, in the order of the neighbours, once all are there.

        Raises:
            Distrust: a neighbour's z's are not ours.
        """
        here = self._held[self.round]
        if self.found is not None or len(here) < len(self._seat.node.neighbours):
            return None
        for j, step in here.items():
            if step.digest != self._digests[j]:
                raise Distrust("diverged", j, f"has other z than we have for our common edge in round {self.round}")
        return {j: here[j] for j in self._seat.node.neighbours}

    def due(self) -> float:
        """When something happens without a frame: never."""
        return math.inf

    def pack(self, inputs: Mapping[int, Step]) -> bytes:
        """A round's inputs for the journal."""
        return b"".join(step.frame for step in inputs.values())

    def unpack(self, record: bytes) -> dict[int, Step]:
        """And back."""
        codec, size = self._seat.codec, self._seat.codec.step_bytes
        frames = [record[start : start + size] for start in range(0, len(record), size)]
        steps = [step for frame in frames if isinstance(step := codec.decode(frame), Step)]
        return dict(zip(self._seat.node.neighbours, steps, strict=True))

    def step(self, inputs: Mapping[int, Step]) -> None:
        """The next round."""
        node, before = self._seat.node, self.state
        self.state, outbox = node.step(before, {j: step.message for j, step in inputs.items()})
        self.exposed = self.exposed or is_inside(self.state)
        self._held = {before.round: dict(inputs), self.round: self._held[self.round], self.round + 1: {}}
        self._rise(before, inputs)
        self.found = self._judge(before.round)
        self._publish(outbox)

    def _publish(self, outbox: Mapping[int, Message]) -> None:
        """Our frames of this round, with the digests that the neighbours' must carry too."""
        state, node = self.state, self._seat.node
        self._digests = dict.fromkeys(node.neighbours, _NO_DIGEST)
        if state.mirror is not None:
            for j, z, mirror in zip(node.neighbours, state.z, state.mirror, strict=True):
                ends = (pack_numbers(z), pack_numbers(mirror))
                self._digests[j] = edge_digest(self._seat.session, state.round, ends if node.id < j else ends[::-1])
        encode = self._seat.codec.encode_step
        fresh = {j: encode(message, self._digests[j], self._level) for j, message in outbox.items()}
        kept = {round: frames for round, frames in self._frames.items() if round == self.round - 1}
        self._frames = {**kept, self.round: fresh}

    def _rise(self, before: State, inputs: Mapping[int, Step]) -> None:
        tide = self._seat.tide
        if tide is None or before.mirror is None or before.x is None:
            return
        node = self._seat.node
        z, mirror, far = map(np.array, (before.z, before.mirror, [step.message.number for step in inputs.values()]))
        edges = residual_bounds(z, mirror, node.signs, before.x, far, node.c, node.terms.weight)
        largest = edges.max(axis=0)
        heard = [step.level for step in inputs.values()]
        self._level = tide.rise(self._level, before.round, before.x, largest, heard)

    def _judge(self, heard: int) -> Found | None:
        seat, state = self._seat, self.state
        iterations = state.round
        if seat.tide is not None:
            proved = seat.tide.judge(self._level, heard)
            if proved is None:
                return None
            bound = float(np.max(seat.in_data_units(proved.spread)))
            value = np.atleast_1d(seat.in_data_units(proved.value))
            return Found(tuple(value.tolist()), (), bound, iterations, self.exposed)
        last = last_round(seat.node, state)
        if last is None or iterations - 1 < last:
            return None
        return found_by_count(seat, state, iterations, self.exposed)

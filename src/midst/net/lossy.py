"""The iteration where messages get lost for good: every participant wakes when it likes, with what it has heard.

Rules:
- No I/O; the clock is an argument. A participant wakes every `period` seconds, averages with the newest offer of each
  neighbour it has heard since, and makes an offer to each. A lost offer leaves z as it was; nothing is sent again.
- Offers are numbered. One that comes twice or late is left aside; two different ones of one number are equivocation.
- The count cannot lose anything, so it has rounds of its own: every frame repeats the words of its sender's round and
  of the one before, and a participant goes on to the next round when it has heard the present one from all.
- What woke it is all a journal has to keep: the frames that came since the last time.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import msgspec

from midst.counting import Word
from midst.net.finding import Distrust, Found, found_by_count, is_inside, last_round
from midst.net.seat import Opening, Seat
from midst.net.wire import Loose

_HEAD = struct.Struct("<H")


class Lossy:
    """One participant's activations."""

    def __init__(self, seat: Seat, opening: Opening) -> None:
        """Before the first activation."""
        self._seat = seat
        self._opening = opening
        self._latest: dict[int, Loose] = {}
        self._fresh: dict[int, Loose] = {}
        self._frames: dict[int, bytes] = {}
        self.round = 0
        self._due = 0.0
        self.exposed = False
        self.found: Found | None = None
        self.state, _ = seat.node.begin(seat.z_of(opening), opening.shares)
        self._previous = self.state.counts

    def frames(self, j: int, since: int) -> list[bytes]:
        """Our newest frame for a neighbour; there is one after the first activation."""
        return [self._frames[j]] if j in self._frames else []

    def newest(self) -> Mapping[int, bytes]:
        """The frames of the last activation, one a neighbour."""
        return self._frames

    def missing(self) -> list[int]:
        """The neighbours whose words of this round of the count are not there."""
        return [j for j in self._seat.node.neighbours if self._said(j) is None]

    def take(self, j: int, loose: Loose) -> bool:
        """Hold a neighbour's frame until the next activation; whether it was news.

        Raises:
            Distrust: it cannot be, beside what this neighbour has sent before.
        """
        known = self._fresh.get(j) or self._latest.get(j)
        if known is not None:
            if loose.sequence < known.sequence:
                return False
            if loose.sequence == known.sequence:
                if loose.frame != known.frame:
                    raise Distrust("equivocation", j, f"sent two different frames of number {loose.sequence}")
                return False
            self._check_words(j, known, loose)
        if loose.round > self.round + 1:
            raise Distrust("broken protocol", j, f"counts round {loose.round} while we are in round {self.round}")
        self._fresh[j] = loose
        return True

    def inputs(self, now: float) -> Mapping[int, Loose] | None:
        """What has come since the last activation, if it is time for another."""
        if self.found is not None or now < self._due:
            return None
        self._due = now + self._seat.charter.period
        return dict(sorted(self._fresh.items()))

    def due(self) -> float:
        """When the next activation is."""
        return self._due

    def pack(self, inputs: Mapping[int, Loose]) -> bytes:
        """An activation's inputs for the journal."""
        places = {j: k for k, j in enumerate(self._seat.node.neighbours)}
        return b"".join(_HEAD.pack(places[j]) + loose.frame for j, loose in inputs.items())

    def unpack(self, record: bytes) -> dict[int, Loose]:
        """And back."""
        codec, neighbours = self._seat.codec, self._seat.node.neighbours
        size = _HEAD.size + codec.loose_bytes
        inputs: dict[int, Loose] = {}
        for start in range(0, len(record), size):
            (k,) = _HEAD.unpack_from(record, start)
            loose = codec.decode(record[start + _HEAD.size : start + size])
            assert isinstance(loose, Loose)
            inputs[neighbours[k]] = loose
        return inputs

    def step(self, inputs: Mapping[int, Loose]) -> None:
        """One activation."""
        node, before = self._seat.node, self.state
        self._latest |= inputs
        self._fresh = {}
        self.state, offers = node.wake(before, {j: loose.number for j, loose in inputs.items()})
        self._count()
        self.exposed = self.exposed or is_inside(self.state)
        last = last_round(node, self.state)
        if last is not None and self.round - 1 >= last:
            self.found = found_by_count(self._seat, self.state, self.round, self.exposed)
        codec = self._seat.codec
        self._frames = {
            j: codec.encode_loose(
                self.state.round,
                self._opening.shares[k],
                offers[j],
                self.round,
                tuple(count.word_to(j) for count in self.state.counts),
                tuple(count.word_to(j) for count in self._previous),
            )
            for k, j in enumerate(node.neighbours)
        }

    def _count(self) -> None:
        """The next round of the count, if all neighbours have been heard in this one."""
        node, state = self._seat.node, self.state
        words = {j: said for j in node.neighbours if (said := self._said(j)) is not None}
        if len(words) < len(node.neighbours):
            return
        keys = state.keys or node.agree_on_keys(state.shares, {j: self._latest[j].share for j in node.neighbours})
        assert state.branch is not None
        self._previous = state.counts
        counts = node.count(state.counts, self.round, state.branch, words, keys)
        self.state = msgspec.structs.replace(state, keys=keys, counts=counts)
        self.round += 1

    def _said(self, j: int) -> tuple[Word, ...] | None:
        """A neighbour's words of the present round of the count, if they have been heard."""
        loose = self._latest.get(j)
        if loose is None or loose.round not in (self.round, self.round + 1):
            return None
        return loose.words if loose.round == self.round else loose.previous

    def _check_words(self, j: int, known: Loose, loose: Loose) -> None:
        """A neighbour's words of one round must be the same in every frame."""
        ahead = loose.round - known.round
        again = loose.words if ahead == 0 else loose.previous if ahead == 1 else known.words
        if ahead < 0 or again != known.words:
            raise Distrust("equivocation", j, f"sent two different words for round {known.round} of the count")

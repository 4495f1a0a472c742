"""A client of a session about arrays is killed at every disk operation, and offers another update at every start.

The others must be told of one update a round, whatever it has trained since: everybody gets the aggregate with that
one, and nobody is named. The disk is simulated under the real journal, the network in memory; a sample runs as real
processes over TLS.
"""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from memory_network import MemoryNetwork, charter_of
from power_cuts import MortalDisk
from simnet.disk import Crash

from midst.net.answer import Answer
from midst.net.journal import DiskFile
from midst.net.notes import about
from midst.protocol.vectors import layout

TORTURE = int(os.environ.get("MIDST_RUNS", 0))
N, SIZE, ROUNDS = 3, 4, 2
LINE = [(0, 1), (1, 2)]  # the root of the tree, a relay and a leaf


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(layout, "CHUNK", 3)


def update(k, i, life=0):
    return np.random.default_rng([k, i, life]).integers(-7, 8, SIZE).astype(np.int8)


class Rounds(MemoryNetwork):
    """Two rounds, in which one client dies again and again; at every start it has other updates."""

    def __init__(self, victim, disk, path, deaths, rng):
        arrays = [{"name": "w", "shape": [SIZE], "dtype": "int8"}]
        plain = {"method": "search", "bounds": [-7, 7], "resolution": 1, "arrays": arrays, "aggregates": ROUNDS}
        self.victim, self.disk, self.path, self.rng = victim, disk, path, rng
        self.deaths, self.power = iter(deaths), False
        self.lives, self.read, self.found = 0, 0, {}
        self.offered, self.begun = {}, {}  # by round: what the victim has last handed over, and what others know of
        self.foresee()
        super().__init__(charter_of(N, LINE, **plain), [0.0] * N)

    def start(self, i, setup=None, entropy=None):
        if i != self.victim:
            return super().start(i, setup, entropy)
        while True:
            self.lives += 1
            try:
                self.files[i] = DiskFile(self.path)
                return super().start(i, entropy=Random(self.lives).randbytes)
            except Crash:
                self.end()

    def end(self):
        """The victim is gone, with some of what is under way."""
        self.peers[self.victim] = None
        self.disk.end(power=self.power)
        self.foresee()
        lost = {end for end in (0, 1) if self.rng.random() < 0.5}
        kept = [mail for mail in self.mail if not any(mail[end] == self.victim for end in lost)]
        self.mail.clear()
        self.mail.extend(kept)

    def foresee(self):
        self.disk.fatal, self.power = next(self.deaths, (None, False))

    def pass_time(self, seconds=0.6):
        self.note()
        for i, peer in enumerate(self.peers):
            if peer is not None:
                self.offer(i, peer.exchange.vectors)
        super().pass_time(seconds)

    def offer(self, i, vectors):
        k = vectors.rounds_done
        if vectors.finished is not None:
            self.found[i, k - 1] = vectors.finished
        if k == ROUNDS:
            return
        mine = update(k, i, self.lives if i == self.victim else 0)
        try:
            vectors.offer([mine])
        except ValueError:
            assert i == self.victim
        else:
            if i == self.victim:
                self.offered[k] = mine

    def note(self):
        """Which updates others know of."""
        for i, _, frame in self.sent[self.read :]:
            said = self.setups[i].codec.decode_all(frame) if i == self.victim and frame[:1] == b"G" else ()
            for k in (about(each).round for each in said if each.kind == b"B" and each.signer == i):
                self.begun.setdefault(k, self.offered[k])
        self.read = len(self.sent)

    def play(self):
        for _ in range(300):
            try:
                self.pass_time()
                self.deliver()
            except Crash:
                self.note()
                self.end()
                self.start(self.victim)
            if all(peer is None or peer.over for peer in self.peers):
                break
        self.note()
        for i, peer in enumerate(self.peers):
            if peer is not None:
                self.offer(i, peer.exchange.vectors)
        return [self.known.get(i) if peer is None else peer.ending for i, peer in enumerate(self.peers)]

    def check(self):
        ends = self.play()
        assert all(isinstance(end, Answer) for end in ends), ends
        assert len({(end.update, end.digest) for end in ends}) == 1
        right = []
        for k in range(ROUNDS):
            given = [self.begun[k] if i == self.victim else update(k, i) for i in range(N)]
            right.append(np.sort(given, axis=0)[(N - 1) // 2])
        assert ends[0].update == right[-1].tobytes()
        for (_, k), one in self.found.items():
            assert np.array_equal(one.arrays[0], right[k])


def rounds(folder, victim, deaths, seed=0):
    with pytest.MonkeyPatch.context() as patch:
        disk = MortalDisk(patch, Random(seed))
        network = Rounds(victim, disk, folder / f"{victim} {seed} {deaths}" / "a.journal", deaths, Random(seed))
        network.check()
    return network


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("victim", range(N))
def test_killed_at_every_disk_operation(victim, power, tmp_path):
    """And once more somewhere behind it, since one death may only prepare what the next one loses."""
    operations = rounds(tmp_path, victim, []).disk.done
    assert operations > 50
    for first in range(operations):
        second = Random(first).randrange(operations)
        assert rounds(tmp_path, victim, [(first, power), (second, True)], first).lives > 1


@pytest.mark.torture
@pytest.mark.skipif(not TORTURE, reason="make torture")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("victim", range(N))
def test_killed_at_every_two_disk_operations(victim, power, tmp_path):
    operations = rounds(tmp_path, victim, []).disk.done
    for first in range(operations):
        for second in range(operations):
            rounds(tmp_path, victim, [(first, power), (second, second % 2 == 0), (first, True)], second)

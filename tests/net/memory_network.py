"""A network in one memory: peers joined by a link that delivers at once, for tests that want to interfere."""

from __future__ import annotations

from collections import deque
from random import Random

from simnet.disk import SimFile
from simnet.notary import SimNotary

from midst.net.answer import Answer
from midst.net.charter import make_charter
from midst.net.journal import Journal
from midst.net.peer import Peer
from midst.net.session import resume
from midst.net.setup import make_setup

NAMES = ("ann", "ben", "cat", "dan", "eve", "fay", "gus")


def charter_of(n=3, edges=None, **settings):
    names = NAMES[:n]
    people = [
        {"name": name, "fingerprint": f"sha256:{i:064x}", "address": f"h:{i + 1}"} for i, name in enumerate(names)
    ]
    pairs = edges or [(i, (i + 1) % n) for i in range(n if n > 2 else 1)]
    plain = {"session": "s", "participants": people, "edges": [[names[i], names[j]] for i, j in pairs]}
    return make_charter(plain | {"method": "consensus", "bounds": [-10, 10]} | settings, "charter")


def setup_of(charter, name, value):
    """A setup whose signatures are simulated."""
    number = charter.names.index(name) if name in charter.names else 0
    return make_setup(charter, name, value, SimNotary(number))


class MemoryNetwork:
    """Everybody, the mail that is under way, and what has been sent so far."""

    def __init__(self, charter, values, seed=0, setups=None):
        self.charter = charter
        people = zip(charter.names, values, strict=True)
        self.setups = setups or [setup_of(charter, name, value) for name, value in people]
        self.files = [SimFile(Random(0)) for _ in self.setups]
        self.mail = deque()
        self.sent = []
        self.now = 0.0
        self.seed = seed
        self.peers = [None] * len(self.setups)
        self.known = {}  # the answers of those for whom it was over when they started again
        for i in range(len(self.setups)):
            self.start(i)

    def start(self, i, setup=None, entropy=None):
        """Participant i starts, or starts again; its peer, or the answer where it is over for everybody."""

        def send(j, frame):
            self.sent.append((i, j, frame))
            self.mail.append((i, j, frame))

        entropy = entropy or Random(f"{self.seed} {i}").randbytes
        begun = resume(setup or self.setups[i], Journal(self.files[i], "journal"), entropy)
        if isinstance(begun, Answer):
            self.peers[i], self.known[i] = None, begun
            return begun
        self.peers[i] = Peer(begun, send, self.now)
        return self.peers[i]

    def deliver(self, most=10**6, change=lambda i, j, frame: frame):
        """All mail, and what it gives rise to; `change` may alter a frame, or lose it by None."""
        while self.mail and most:
            i, j, frame = self.mail.popleft()
            frame = change(i, j, frame)
            if frame is not None and self.peers[j] is not None:
                self.peers[j].hear(i, frame, self.now)
            most -= 1

    def pass_time(self, seconds=0.6):
        self.now += seconds
        for peer in self.peers:
            if peer is not None:
                peer.tick(self.now)

    def run(self, change=lambda i, j, frame: frame, most=400):
        """Until everybody has ended."""
        while most and any(peer is not None and not peer.over for peer in self.peers):
            self.pass_time()
            self.deliver(change=change)
            most -= 1
        return [self.known.get(i) if peer is None else peer.ending for i, peer in enumerate(self.peers)]

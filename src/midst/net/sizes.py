"""How many bytes a node sends, reckoned from the frames of `wire.py` before there is any traffic.

Rules:
- Journals and what is asked for again are left out. `sent_in_…` are means over all nodes, without handshakes.
- A statement crosses n − 1 links, as `gossip.py` tells it on, each time in a frame of its own.
- A step frame crosses every link, both ways, in every iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import csgraph

from midst.graphs import Graph
from midst.net.wire import DIGEST_BYTES, Codec, Limits
from midst.protocol.statements import HASH_BYTES, Statement
from midst.types import Array

NUMBER = 8  # bytes
SIGNATURE = 64  # Ed25519's
ANNOUNCEMENT = 480  # bytes, with signature and certificate
_BODY = 5  # bytes of a statement's kind, signer and step
_RECORD = 26  # bytes that TLS and the frame's length add
_CERTIFICATE = 362  # bytes of one with an Ed25519 key, but for three times its name
_LINK = 2500  # bytes both ways over TLS of handshake, HELLO, WELCOME and DONE, but for two certificates


def _codec(maxima_each: int) -> Codec:
    return Codec(bytes(DIGEST_BYTES), None, maxima_each, Limits((0.0, 0.0), (0.0, 0.0)), 1)


FRAME_HEAD = _codec(1).step_bytes - 2 * NUMBER  # what a step frame has before its numbers


def step_bytes(maxima_each: int, coordinates: int = 1) -> int:
    """Of a step frame with one number and so many maxima a coordinate."""
    return FRAME_HEAD + NUMBER * coordinates * (1 + maxima_each)


def contribution_bytes(numbers: int) -> int:
    """Of a frame with one contribution of so many numbers; with none, of a participant's last statement."""
    statement = Statement(bytes(_BODY + HASH_BYTES + NUMBER * numbers), bytes(SIGNATURE))
    return len(_codec(0).encode([statement])[0])


def sent_in_search(graph: Graph, numbers: Iterable[int]) -> float:
    """What a node sends in a search, each of whose questions asks for so many numbers."""
    frames = [ANNOUNCEMENT, *map(contribution_bytes, numbers), contribution_bytes(0)]
    return (graph.n - 1.0) * sum(frames)


def sent_in_iteration(graph: Graph, iterations: int, maxima_each: int) -> float:
    """What a node sends in an iteration, with so many maxima beside every x; see `wire.py`."""
    return iterations * 2 * graph.edges / graph.n * step_bytes(maxima_each)


def carried_by_each(graph: Graph, name: float, contributions: Sequence[float], iterations: int, step: int) -> Array:
    """What each node sends and receives over TLS in a session, from the handshakes to the goodbyes.

    Args:
        graph: who talks to whom.
        name: letters of a participant's, on average.
        contributions: bytes of what a participant says in each step of a search; none where there is no search.
        iterations: how many; z(0) crosses every link besides.
        step: bytes of a step frame.
    """
    certificate, signed = _CERTIFICATE + 3 * name, contribution_bytes(0) + _RECORD
    search = sum(contributions) + (len(contributions) + 2) * signed + 20 + certificate if contributions else 0.0
    link = _LINK + 2 * certificate + 2 * (iterations + bool(iterations)) * (step + _RECORD)
    told, distance = np.zeros(graph.n), csgraph.dijkstra(graph.adjacency(), unweighted=True)
    for k in range(graph.n):  # hears of each other signer once, as `gossip.py` has it
        near = graph.neighbours(k)
        by = near[np.argmin(distance[near], axis=0)]
        told += np.bincount(np.delete(by, k), minlength=graph.n)
    return np.asarray(graph.degree * link + (told + graph.n - 1) * search)

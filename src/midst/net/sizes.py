"""How many bytes a node sends, reckoned from the frames of `wire.py` before there is any traffic.

Rules:
- Means over all nodes. Handshakes, journals and what is asked for again are left out, and votes are not verified.
- A statement crosses n − 1 links, as `gossip.py` tells it on, each time in a frame of its own.
- A step frame crosses every link, both ways, in every iteration.
"""

from __future__ import annotations

from collections.abc import Iterable

from midst.graphs import Graph
from midst.net.wire import DIGEST_BYTES, Codec, Limits
from midst.protocol.statements import HASH_BYTES, Statement

NUMBER = 8  # bytes
SIGNATURE = 64  # Ed25519's
ANNOUNCEMENT = 480  # bytes, with signature and certificate
_BODY = 5  # bytes of a statement's kind, signer and step


def _codec(maxima_each: int) -> Codec:
    return Codec(bytes(DIGEST_BYTES), None, maxima_each, Limits((0.0, 0.0), (0.0, 0.0)), 1)


FRAME_HEAD = _codec(1).step_bytes - 2 * NUMBER  # what a step frame has before its numbers


def step_bytes(maxima_each: int) -> int:
    """Of a step frame with one number and so many maxima."""
    return _codec(maxima_each).step_bytes


def contribution_bytes(numbers: int) -> int:
    """Of a frame with one contribution of so many numbers; with none, of a participant's last statement."""
    statement = Statement(bytes(_BODY + HASH_BYTES + NUMBER * numbers), bytes(SIGNATURE))
    return len(_codec(0).encode([statement])[0])


def sent_in_search(graph: Graph, numbers: Iterable[int], around: int = 0) -> float:
    """What a node sends in a search.

    Args:
        graph: who talks to whom.
        numbers: how many each question asks for.
        around: bytes that a transport adds to a frame.
    """
    frames = [ANNOUNCEMENT, *map(contribution_bytes, numbers), contribution_bytes(0)]
    return (graph.n - 1.0) * sum(frame + around for frame in frames)


def sent_in_iteration(graph: Graph, iterations: int, maxima_each: int, around: int = 0) -> float:
    """What a node sends in an iteration.

    Args:
        graph: who talks to whom.
        iterations: how many.
        maxima_each: that travel with every x: two where a search follows, three where residuals prove the answer.
        around: bytes that a transport adds to a frame.
    """
    return iterations * 2 * graph.edges / graph.n * (step_bytes(maxima_each) + around)

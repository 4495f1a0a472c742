"""What a running participant tells whoever watches it: one class a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from midst.net.answer import Answer
from midst.protocol.noisy_search import AnySearch, NoisySearchState

if TYPE_CHECKING:
    from midst.net.peer import Peer


class Start(msgspec.Struct, frozen=True):
    """What is watched: a whole network, or (`all` is False) one real node of it; and whether votes are proved."""

    names: tuple[str, ...]
    edges: list[list[int]]
    objective: str
    method: str
    all: bool
    own: int | None = msgspec.field(name="self")
    verified: bool = False


class Searching(msgspec.Struct, frozen=True):
    """Where a search stands: its step, each bracket with the weight inside (unknown with noise), and who is awaited."""

    step: int
    brackets: list[tuple[float, float, int | None]]
    waiting: list[int]


class Round(msgspec.Struct, frozen=True):
    """What a node broadcast in iteration t, on which branch, and what its search knows."""

    node: int
    t: int
    x: list[float]
    branch: list[int]
    search: Searching | None = None

    def __repr__(self) -> str:
        return f"<Round {self.t} of node {self.node}>"


class Link(msgspec.Struct, frozen=True):
    """Whether there is a link to a neighbour."""

    node: int
    neighbour: int
    up: bool


class End(msgspec.Struct, frozen=True):
    """How it ended: an answer, or an error in words; bytes sent and received, seconds to the first round, and to it."""

    node: int
    answer: Answer | None
    error: str = ""
    sent: int = 0
    received: int = 0
    first: float = 0.0
    answered: float = 0.0


Event = Start | Round | Link | End


def moment(peer: Peer) -> Round:
    """Where a participant stands: what it broadcast, on which branch it was, and what a search knows."""
    exchange, iteration, number = peer.exchange, peer.setup.iteration, peer.setup.number
    t, x, branch = exchange.round - 1, [], []
    state = exchange.state
    if iteration is not None and state is not None and state.x is not None:
        t = state.round - 1
        x = iteration.in_data_units(state.x).reshape(-1).tolist()
        branch = np.asarray(state.branch).reshape(-1).tolist()
    search = exchange.search
    searching = None if search is None else Searching(search.steps, _brackets(search), exchange.missing())
    return Round(number, t, x, branch, searching)


def _brackets(search: AnySearch) -> list[tuple[float, float, int | None]]:
    value = search.rules.keys.value
    if isinstance(search, NoisySearchState):
        return [(value(a), value(b), None) for a, b in search.brackets]
    brackets = (search.bracket(track) for track in search.tracks)
    return [(value(max(each.a, 0)), value(each.b), each.inside) for each in brackets]

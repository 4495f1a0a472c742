"""What a running participant tells whoever watches it."""

from __future__ import annotations

from typing import Any

import numpy as np

from midst.net.exact_finish import ExactFinish
from midst.net.lockstep import LockStep
from midst.net.peer import Peer

Event = dict[str, Any]


def moment(peer: Peer) -> Event:
    """Where a participant stands, as an event: what it broadcast, on which branch it was, and what a search knows."""
    exchange, iteration = peer.exchange, peer.setup.iteration
    event: Event = {"kind": "round", "node": peer.setup.number, "t": exchange.round - 1, "x": [], "branch": []}
    if iteration is not None and isinstance(exchange, LockStep | ExactFinish) and exchange.state.x is not None:
        event["t"] = exchange.state.round - 1
        event["x"] = iteration.in_data_units(exchange.state.x).reshape(-1).tolist()
        event["branch"] = np.asarray(exchange.state.branch).reshape(-1).tolist()
    search = exchange.search
    if search is not None:
        brackets = [search.bracket(track) for track in search.tracks]
        value = search.rules.keys.value
        event["search"] = {
            "step": search.steps,
            "brackets": [[value(max(each.a, 0)), value(each.b), each.inside] for each in brackets],
            "waiting": [k for k in exchange.missing() if k != peer.setup.number],
        }
    return event

"""Nodes joined by an in-memory link: reads like Algorithm 1, and runs the very `Node` that runs on a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from midst.protocol.message import Message
from midst.protocol.node import rows
from midst.system import System, make_node
from midst.types import Array, Branch

Overhear = Callable[[int, int, Message], None]  # called with every message: from whom, to whom, what


def deliver(outboxes: list[dict[int, Message]], overhear: Overhear | None = None) -> list[Mapping[int, Message]]:
    """The link: what i addressed to j lies in j's inbox, from i."""
    inboxes: list[dict[int, Message]] = [{} for _ in outboxes]
    for i, outbox in enumerate(outboxes):
        for j, message in outbox.items():
            inboxes[j][i] = message
            if overhear is not None:
                overhear(i, j, message)
    return list(inboxes)


def iterate(system: System, overhear: Overhear | None = None) -> Iterator[tuple[Array, Branch]]:
    """Algorithm 1, node by node and message by message; x is yielded before it is sent."""
    graph = system.graph
    nodes = [make_node(i, graph, system.terms[i], system.c, system.theta) for i in range(graph.n)]
    drawn = [rows(z) for z in np.split(system.z0, graph.first_edges[1:-1])]
    begun = [node.begin(z) for node, z in zip(nodes, drawn, strict=True)]
    states = [state for state, _ in begun]
    outboxes = [outbox for _, outbox in begun]
    while True:
        inboxes = deliver(outboxes, overhear)
        for i, node in enumerate(nodes):
            states[i], outboxes[i] = node.step(states[i], inboxes[i])
        yield np.array([state.x for state in states]), np.array([state.branch for state in states], np.int8)

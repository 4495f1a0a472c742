"""Nodes joined by an in-memory link: reads like Algorithm 1, and runs the very `Node` that runs on a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from midst.node import Message, Node
from midst.system import System
from midst.update import Array, Branch


def make_nodes(system: System) -> list[Node]:
    """One `Node` a participant, each with its own value and nothing of the others'."""
    graph = system.graph
    return [
        Node(i, tuple(graph.neighbours(i).tolist()), system.terms[i], system.c, system.theta) for i in range(graph.n)
    ]


def deliver(outboxes: list[dict[int, Message]]) -> list[Mapping[int, Message]]:
    """The link: what i addressed to j lies in j's inbox, from i."""
    inboxes: list[dict[int, Message]] = [{} for _ in outboxes]
    for i, outbox in enumerate(outboxes):
        for j, message in outbox.items():
            inboxes[j][i] = message
    return list(inboxes)


def iterate(system: System) -> Iterator[tuple[Array, Branch]]:
    """Algorithm 1, node by node and message by message."""
    nodes = make_nodes(system)
    rows = np.split(system.z0, system.graph.offsets[1:-1])
    begun = [node.begin(z) for node, z in zip(nodes, rows, strict=True)]
    states = [state for state, _ in begun]
    outboxes = [outbox for _, outbox in begun]
    while True:
        inboxes = deliver(outboxes)
        for i, node in enumerate(nodes):
            states[i], outboxes[i] = node.step(states[i], inboxes[i])
        yield np.array([state.x for state in states]), np.array([state.branch for state in states], np.int8)

"""Nodes joined by an in-memory link: reads like Algorithm 1, and runs the very `Node` that runs on a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from secrets import token_bytes

import numpy as np

from midst.counting import Proof, all_or_none
from midst.masks import SHARE_BYTES
from midst.node import Message, Node, State, make_node, rows
from midst.system import System
from midst.update import Array, Branch


def deliver(outboxes: list[dict[int, Message]]) -> list[Mapping[int, Message]]:
    """The link: what i addressed to j lies in j's inbox, from i."""
    inboxes: list[dict[int, Message]] = [{} for _ in outboxes]
    for i, outbox in enumerate(outboxes):
        for j, message in outbox.items():
            inboxes[j][i] = message
    return list(inboxes)


def iterate(system: System) -> Iterator[tuple[Array, Branch, tuple[Proof, ...] | None]]:
    """Algorithm 1, node by node and message by message."""
    nodes = [make_node(system, i) for i in range(system.graph.n)]
    drawn = [rows(z) for z in np.split(system.z0, system.graph.offsets[1:-1])]
    begun = [node.begin(z, [token_bytes(SHARE_BYTES) for _ in z]) for node, z in zip(nodes, drawn, strict=True)]
    states = [state for state, _ in begun]
    outboxes = [outbox for _, outbox in begun]
    proofs: list[Proof | None] = [None] * len(nodes[0].counters)
    while True:
        inboxes = deliver(outboxes)
        for i, node in enumerate(nodes):
            states[i], outboxes[i] = node.step(states[i], inboxes[i])
        proofs = [proof or _common_proof(states, nodes[0], k) for k, proof in enumerate(proofs)]
        x, branch = np.array([state.x for state in states]), np.array([state.branch for state in states], np.int8)
        yield x, branch, all_or_none(proofs) if proofs else None


def _common_proof(states: list[State], node: Node, k: int) -> Proof | None:
    """The proof of coordinate k, once every node holds it."""
    if any(state.counts[k].answer is None for state in states):
        return None
    return states[node.id].counts[k].proof(node.counters[k].rules, states[node.id].round - 1)

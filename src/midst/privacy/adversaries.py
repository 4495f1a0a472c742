"""Who listens.

Two kinds of adversary, as in the paper, which may work together:

- corrupt nodes follow the protocol and pool what they see: their own values and z, and what their neighbours send them;
- an eavesdropper hears every message that is not encrypted: all x, and z(0) too where it travels in the clear.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from midst.errors import InputError, closest
from midst.graphs import Graph

Init = Literal["clear", "sealed"]


@dataclass(frozen=True)
class Adversary:
    """Which messages are seen.

    Attributes:
        corrupt: the corrupt nodes, in ascending order.
        eavesdrops: whether all broadcasts are heard, not only those sent to corrupt nodes.
        init: "clear" if z(0) travels where an eavesdropper hears it, "sealed" if it is encrypted between the two ends
            of each edge. What a sealed one hides, the rounding of floats may yet tell.
    """

    corrupt: tuple[int, ...] = ()
    eavesdrops: bool = True
    init: Init = "clear"

    def __init__(self, corrupt: Iterable[int] = (), eavesdrops: bool = True, init: Init = "clear") -> None:
        try:
            nodes = tuple(sorted(set(corrupt)))
        except TypeError:
            raise InputError("corrupt must be node numbers, such as (3, 7)") from None
        if not all(isinstance(node, Integral) and not isinstance(node, bool) for node in nodes):
            raise InputError("corrupt must be node numbers, such as (3, 7)")
        if init not in ("clear", "sealed"):
            raise InputError(f"init must be 'clear' or 'sealed', not {init!r}")
        if not nodes and not eavesdrops:
            raise InputError("an adversary without corrupt nodes that does not eavesdrop sees nothing; give it either")
        object.__setattr__(self, "corrupt", tuple(int(node) for node in nodes))
        object.__setattr__(self, "eavesdrops", bool(eavesdrops))
        object.__setattr__(self, "init", init)

    def __str__(self) -> str:
        coalition = "corrupt " + ", ".join(map(str, self.corrupt)) if self.corrupt else ""
        heard = f"eavesdropper, z(0) {self.init}" if self.eavesdrops else ""
        return " with ".join(part for part in (coalition, heard) if part)

    def check(self, graph: Graph) -> None:
        """Refuse an adversary that makes no sense on this graph.

        Raises:
            InputError: a corrupt node does not exist, or no node is honest.
        """
        strange = [node for node in self.corrupt if not 0 <= node < graph.n]
        if strange:
            raise InputError(f"corrupt node {strange[0]} does not exist; the nodes are 0 to {graph.n - 1}")
        if len(self.corrupt) == graph.n:
            raise InputError("all nodes are corrupt; nothing is left to find out")


_KINDS = ("eavesdropper", "passive", "both")


def parse_adversary(text: str, init: Init = "clear") -> Adversary:
    """An adversary as the shell writes it: "eavesdropper", "passive:3,7" or "both:3,7".

    Raises:
        InputError: it is none of these.
    """
    kind, _, listed = text.strip().partition(":")
    if kind == "eavesdropper" and not listed:
        return Adversary(init=init)
    if kind in ("passive", "both") and listed:
        try:
            corrupt = [int(node) for node in listed.split(",")]
        except ValueError:
            raise InputError(f"adversary {text!r}: corrupt nodes must be numbers, such as {kind}:3,7") from None
        return Adversary(corrupt, kind == "both", init)
    near = "" if kind in _KINDS else closest(kind, _KINDS)
    raise InputError(f"adversary must be eavesdropper, passive:3,7 or both:3,7, not {text!r}{near}")

"""Who listens.

Two kinds of adversary, as in the paper, which may work together:

- corrupt nodes follow the protocol and pool what they see: their own values and z, and what their neighbours send them;
- an eavesdropper hears every message that is not encrypted: all x, and z(0) too where it travels in the clear.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

from midst.errors import InputError, closest
from midst.graphs import Graph

Init = Literal["clear", "sealed"]

_NUMBER = re.compile("0|[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Adversary:
    """Which messages are seen.

    Attributes:
        corrupt: the corrupt nodes, by their names: labels, or numbers where the graph has no labels.
        eavesdrops: whether all broadcasts are heard, not only those sent to corrupt nodes.
        init: "clear" if z(0) travels where an eavesdropper hears it, "sealed" if it is encrypted between the two ends
            of each edge. What a sealed one hides, the rounding of floats may yet tell.
    """

    corrupt: tuple[int | str, ...] = ()
    eavesdrops: bool = True
    init: Init = "clear"

    def __init__(self, corrupt: Iterable[int | str] = (), eavesdrops: bool = True, init: Init = "clear") -> None:
        given: tuple[Any, ...] = (None,)
        if isinstance(corrupt, Iterable) and not isinstance(corrupt, str):
            given = tuple(corrupt)
        if any(isinstance(node, bool) or not isinstance(node, Integral | str) for node in given):
            raise InputError('corrupt must be names of nodes, such as (3, 7) or ("anna", "bob")')
        nodes: set[Any] = {int(node) if _NUMBER.fullmatch(str(node)) else str(node) for node in given}
        if init not in ("clear", "sealed"):
            raise InputError(f"init must be 'clear' or 'sealed', not {init!r}")
        if not nodes and not eavesdrops:
            raise InputError("an adversary without corrupt nodes that does not eavesdrop sees nothing; give it either")
        object.__setattr__(self, "corrupt", tuple(sorted(nodes, key=lambda node: (isinstance(node, str), node))))
        object.__setattr__(self, "eavesdrops", bool(eavesdrops))
        object.__setattr__(self, "init", init)

    def __str__(self) -> str:
        coalition = "corrupt " + ", ".join(map(str, self.corrupt)) if self.corrupt else ""
        heard = f"eavesdropper, z(0) {self.init}" if self.eavesdrops else ""
        return " with ".join(part for part in (coalition, heard) if part)

    def check(self, graph: Graph) -> list[int]:
        """The numbers of the corrupt nodes in a graph.

        Raises:
            InputError: a corrupt node does not exist, or no node is honest.
        """
        nodes = sorted(graph.index(name, "corrupt node") for name in self.corrupt)
        if len(nodes) == graph.n:
            raise InputError("all nodes are corrupt; nothing is left to find out")
        return nodes


_KINDS = ("eavesdropper", "passive", "both")


def split_names(text: str) -> list[str]:
    """The names in a list with commas; one that has a comma itself stands in double quotes."""
    names = next(csv.reader([" ".join(text.splitlines())], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()]


def parse_adversary(text: str, init: Init = "clear") -> Adversary:
    """An adversary as the shell writes it: "eavesdropper", "passive:3,7" or "both:anna,bob".

    Raises:
        InputError: it is none of these.
    """
    kind, _, listed = text.strip().partition(":")
    if kind == "eavesdropper" and not listed:
        return Adversary(init=init)
    corrupt = split_names(listed)
    if kind in ("passive", "both") and corrupt:
        return Adversary(corrupt, kind == "both", init)
    near = "" if kind in _KINDS else closest(kind, _KINDS)
    raise InputError(f"adversary must be eavesdropper, passive:3,7 or both:3,7, not {text!r}{near}")

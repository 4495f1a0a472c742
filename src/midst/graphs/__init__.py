"""Graphs: who talks to whom.

Rules:
- A graph is simple and undirected: no self-loop, no edge twice. It may fall apart; `require_connected` refuses that.
- Each undirected edge is kept as its two directed edges, sorted by (source, target); a message travels along one. A
  large complete graph has its edges listed only when they are asked for, and refuses where that would be absurd.
- Nodes are 0..n-1 in every array. Everywhere else, from options to drawings, a node has one name: its label, or its
  number where the graph has no labels. `Graph.index` and `Graph.names` turn one into the other.
- A graph never changes: its arrays, and those derived from them, are read-only.
- Whatever its origin, every graph is checked and put in order in one place, `graph.build`.
- The same seed gives the same graph.
"""

from midst.graphs.generators import (
    KINDS,
    Seed,
    barabasi_albert,
    complete,
    erdos_renyi,
    grid,
    make,
    path,
    regular,
    rgg,
    ring,
    star,
    tree,
    watts_strogatz,
)
from midst.graphs.graph import Graph, from_edges
from midst.graphs.reading import from_networkx, from_sparse, load

__all__ = [
    "KINDS",
    "Graph",
    "Seed",
    "barabasi_albert",
    "complete",
    "erdos_renyi",
    "from_edges",
    "from_networkx",
    "from_sparse",
    "grid",
    "load",
    "make",
    "path",
    "regular",
    "rgg",
    "ring",
    "star",
    "tree",
    "watts_strogatz",
]

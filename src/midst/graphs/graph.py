"""The graph: who talks to whom, as arrays of directed edges, which a large complete graph has only when asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from numbers import Integral
from operator import or_
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from midst.errors import InputError, MissingExtra, closest
from midst.machine import memory_of
from midst.types import Array, Bools, Ints

if TYPE_CHECKING:
    import networkx as nx
    from scipy import sparse


_SMALL = 256  # up to this many nodes no scipy is needed, which takes a node of a network longer to load than all else
_EXACT = 2000  # up to this many nodes the diameter is exact
_BYTES_AN_EDGE = 40  # a directed edge, at the peak of putting them in order
_UNASKED = 0.25  # of the memory, that edges may take which were not listed from the start


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A simple undirected graph, made by the functions of this module.

    Attributes:
        n: the number of nodes.
        ends: where each directed edge starts and where it ends (`source` and `target`). None: every node is joined to
            every other, and no edge is in memory before it is asked for.
        name: what the graph is called, such as "ring", "rgg" or the stem of its file.
        labels: the names of the nodes, where they are other than 0..n-1.
        positions: x and y of each node, where the graph is geometric.
        known_diameter: where whoever made the graph knows it, and with it that the graph is connected.
    """

    n: int
    ends: tuple[Ints, Ints] | None
    name: str = "graph"
    labels: tuple[str, ...] | None = None
    positions: Array | None = None
    known_diameter: int | None = None

    def __post_init__(self) -> None:
        for array in (*(self.ends or ()), self.positions):
            if array is not None:
                array.setflags(write=False)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {self.n} nodes, {self.edges} edges>"

    @property
    def edges(self) -> int:
        """The number of undirected edges."""
        return self.n * (self.n - 1) // 2 if self.ends is None else self.ends[0].size // 2

    @property
    def is_complete(self) -> bool:
        """Whether every node is joined to every other."""
        return self.edges == self.n * (self.n - 1) // 2

    @property
    def source(self) -> Ints:
        """Where each directed edge starts; both directions are present, sorted by (source, target).

        Raises:
            InputError: they would not fit into memory.
        """
        return self._listed[0]

    @property
    def target(self) -> Ints:
        """Where each directed edge ends.

        Raises:
            InputError: they would not fit into memory.
        """
        return self._listed[1]

    @cached_property
    def _listed(self) -> tuple[Ints, Ints]:
        if self.ends is not None:
            return self.ends
        refuse_absurd(f"to list the {self.edges:,} edges of a complete graph", self.n, self.edges, _UNASKED)
        node = np.arange(self.n)
        away = np.tile(np.arange(self.n - 1), self.n)
        source = np.repeat(node, self.n - 1)
        return _frozen(source), _frozen(away + (away >= source))

    @cached_property
    def reverse(self) -> Ints:
        """The index of each directed edge's opposite."""
        # The k-th edge by (source, target) is (a, b); the k-th by (target, source) is then (b, a).
        return _frozen(np.argsort(self.target, kind="stable"))

    @cached_property
    def sign(self) -> NDArray[np.int8]:
        """+1 on directed edges from the lower to the higher node, −1 on their opposites."""
        return _frozen(np.where(self.source < self.target, np.int8(1), np.int8(-1)))

    @cached_property
    def degree(self) -> Ints:
        """The number of neighbours of each node."""
        if self.ends is None:
            return _frozen(np.full(self.n, self.n - 1))
        return _frozen(np.bincount(self.source, minlength=self.n))

    @cached_property
    def first_edges(self) -> Ints:
        """The edges out of node i are offsets[i] up to offsets[i + 1]."""
        first = np.zeros(self.n + 1, np.int64)
        np.cumsum(self.degree, out=first[1:])
        return _frozen(first)

    @cached_property
    def is_connected(self) -> bool:
        """Whether every node reaches every other."""
        if self.is_complete or self.known_diameter is not None:
            return True
        return self._reach[0] == self.n if self.n > _SMALL else bool((self._component_of_each() == 0).all())

    @cached_property
    def _reach(self) -> tuple[int, int]:
        """How many nodes one of highest degree reaches, itself included, and over how many edges at most."""
        from scipy.sparse import csgraph

        hub = int(self.degree.argmax())
        order, before = csgraph.breadth_first_order(self._matrix(np.broadcast_to(1.0, self.target.size)), hub)
        node, hops, towards = int(order[-1]), 0, before.data  # the last that is reached is the farthest
        while node != hub:
            node, hops = towards[node], hops + 1
        return len(order), hops

    def _component_of_each(self) -> Ints:
        """The component of each node, by number."""
        if self.ends is None:
            return np.zeros(self.n, np.int64)
        if self.n <= _SMALL:
            _, heard = self._gossip
            numbers = {everybody: number for number, everybody in enumerate(dict.fromkeys(heard))}
            return np.array([numbers[everybody] for everybody in heard])
        from scipy.sparse import csgraph

        return np.asarray(csgraph.connected_components(self.adjacency(), directed=False)[1])

    @cached_property
    def _gossip(self) -> tuple[int, list[int]]:
        """If all tell their neighbours of whom they have heard: rounds until there is no news, and of whom by then."""
        near = [row.tolist() for row in np.split(self.target, self.first_edges[1:-1])]
        heard, rounds = [1 << i for i in range(self.n)], 0  # bit i for node i
        while True:
            after = [reduce(or_, map(heard.__getitem__, row), own) for own, row in zip(heard, near, strict=True)]
            if after == heard:
                return rounds, heard
            heard, rounds = after, rounds + 1

    def label(self, i: int) -> str:
        """The name of node i, for people."""
        return self.labels[i] if self.labels and i < self.n else str(i)

    def names(self, nodes: Iterable[int]) -> tuple[int | str, ...]:
        """The names of some nodes, as results and JSON have them: labels, or numbers where the graph has no labels."""
        return tuple(int(i) if self.labels is None else self.labels[i] for i in nodes)

    def index(self, name: int | str, what: str = "node") -> int:
        """The number of a node, by its name; 3 and "3" are the same name, and an error calls the node `what`.

        Raises:
            InputError: no node has this name.
        """
        text = str(name)
        if text not in self._numbers:
            shown = text if text.isprintable() else ascii(text)
            known = self.labels and (
                closest(text, self.labels) or f"; the nodes are {', '.join(_shorten(self.labels, 6, str))}"
            )
            raise InputError(f"{what} {shown} does not exist{known or f'; the nodes are 0 to {self.n - 1}'}")
        return self._numbers[text]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.label(i): i for i in range(self.n)}

    def with_labels(self, labels: Sequence[str]) -> Graph:
        """The same graph with other names for its nodes.

        Raises:
            InputError: they are not n distinct names.
        """
        return replace(self, labels=_distinct_labels(self.n, labels))

    def in_order(self, given: Mapping[Any, Any], what: str) -> list[Any]:
        """What is given by the names of the nodes, in the order of the nodes.

        Args:
            given: something for every node, by its name, or its number where the graph has no names.
            what: it is, such as "value".

        Raises:
            InputError: a node is left out, or a name is no node's; it names the node, and never what it was given.
        """
        names = [self.label(i) for i in range(self.n)]
        by_name = {str(name): each for name, each in given.items()}
        if len(by_name) < len(given):
            raise InputError(f"a node has more than one {what}: two of the names given read the same")
        known = set(names)
        unknown = [name for name in given if str(name) not in known]
        if unknown:
            word = isinstance(unknown[0], str)  # anything else may be a value where its name should be
            near = closest(unknown[0], names) if word else ""
            near = near or f"; its nodes are {', '.join(_shorten(names, 6, str))}"
            who = repr(unknown[0]) if word else "what is no name"
            raise InputError(f"a {what} is given for {who}: the graph has no such node{near}")
        missing = [name for name in names if name not in by_name]
        if missing:
            raise InputError(f"no {what} is given for {', '.join(_shorten(missing, 6, str))}; give one a node")
        return [by_name[name] for name in names]

    def neighbours(self, i: int) -> Ints:
        """The neighbours of node i, in ascending order."""
        i = whole("node", i, 0, self.n - 1)
        if self.ends is None:
            return np.delete(np.arange(self.n), i)
        return self.target[self.first_edges[i] : self.first_edges[i + 1]]

    def components(self) -> list[Ints]:
        """The connected components, each as its nodes in ascending order."""
        component = self._component_of_each()
        return np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])

    def require_connected(self) -> None:
        """Refuses a graph that falls apart.

        Raises:
            InputError: naming the components.
        """
        if self.is_connected:
            return
        parts = self.components()
        shown = _shorten(parts, 3, lambda part: "{" + ", ".join(_shorten(part, 6, self.label)) + "}")
        listed = (" and " if len(parts) == 2 else ", ").join(shown)
        raise InputError(f"graph has {len(parts)} components ({listed}); the median needs a connected graph")

    def diameter(self) -> int:
        """The longest shortest path, in edges: exact up to 2000 nodes and where it is known, else an upper bound.

        The bound is twice the eccentricity of a node of highest degree, and so at most twice the diameter. Of rings,
        paths, stars, grids and complete graphs as `graphs` makes them the diameter is known.

        Raises:
            InputError: if the graph is not connected.
        """
        if self.is_complete:
            return min(self.n - 1, 1)
        if self.known_diameter is not None:
            return self.known_diameter
        self.require_connected()
        if self.n <= _SMALL:
            return self._gossip[0]
        if self.n > _EXACT:
            return 2 * self._reach[1]
        from scipy.sparse import csgraph

        return int(csgraph.dijkstra(self.adjacency(), unweighted=True).max())

    def adjacency(self) -> sparse.csr_array:
        """The adjacency matrix of zeros and ones."""
        return self._matrix(np.ones(self.target.size))

    def _matrix(self, ones: Array) -> sparse.csr_array:
        from scipy import sparse

        # Copies, since scipy may reorder what it is given in place; of half the size where that is enough.
        index = np.int32 if self.target.size < 2**31 else np.int64
        where = self.target.astype(index), self.first_edges.astype(index)
        return sparse.csr_array((ones, *where), shape=(self.n, self.n))

    def to_networkx(self) -> nx.Graph[Any]:
        """The same graph for networkx; its nodes are the labels, or 0..n-1. Positions are left behind."""
        graph: nx.Graph[Any] = import_networkx().Graph(name=self.name)
        nodes = self.labels or range(self.n)
        once = self.source < self.target
        graph.add_nodes_from(nodes)
        graph.add_edges_from(
            (nodes[a], nodes[b]) for a, b in zip(self.source[once].tolist(), self.target[once].tolist(), strict=True)
        )
        return graph


def from_edges(
    n: int,
    pairs: ArrayLike,
    *,
    name: str = "graph",
    labels: Sequence[str] | None = None,
    positions: ArrayLike | None = None,
) -> Graph:
    """A graph from its undirected edges.

    Args:
        n: the number of nodes.
        pairs: two node numbers a row; each edge once, in either direction.
        name: what to call the graph.
        labels: n distinct names of nodes.
        positions: x and y of each node.

    Raises:
        InputError: if a pair leaves 0..n-1, joins a node to itself or repeats an earlier one.
    """
    return build(n, pairs, name, labels, positions, place=lambda k: f"pairs[{k}]")


def build(
    n: int,
    pairs: ArrayLike,
    name: str,
    labels: Sequence[str] | None,
    positions: ArrayLike | None,
    place: Callable[[int], str],
) -> Graph:
    """Checks everything and puts the edges in order; `place(k)` says where pair k came from."""
    n = whole("n", n, 1)
    ends = _integer_pairs(pairs)
    names = None if labels is None else _distinct_labels(n, labels)

    def refuse(fault: Bools, reason: str) -> None:
        if fault.any():
            k = int(fault.argmax())
            a, b = (names[i] if names and 0 <= i < n else i for i in ends[k].tolist())
            raise InputError(f"{place(k)}: edge ({a}, {b}) {reason}")

    outside = (ends < 0) | (ends >= n)
    refuse(outside[:, 0] | outside[:, 1], f"leaves the nodes 0..{n - 1}")
    refuse(ends[:, 0] == ends[:, 1], "joins a node to itself; leave self-loops out")
    key = np.sort(np.concatenate([ends @ (n, 1), ends @ (1, n)]))
    if (key[1:] == key[:-1]).any():
        repeats = repeats_in(n, ends)
        alike = key_of(n, ends) == key_of(n, ends)[repeats.argmax()]
        refuse(repeats, f"is given before, at {place(int(alike.argmax()))}; give each undirected edge once")
    return Graph(n, np.divmod(key, n), name, names, None if positions is None else _plane(n, positions))


def _integer_pairs(pairs: ArrayLike) -> Ints:
    """An (m, 2) array of node numbers."""
    ends = as_array(pairs)
    if ends.size == 0:
        return np.empty((0, 2), np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InputError("pairs must be rows of two node numbers (integers), such as [(0, 1), (1, 2)]")
    return ends.astype(np.int64)


def _distinct_labels(n: int, labels: Sequence[str]) -> tuple[str, ...]:
    names = tuple(str(label) for label in labels)
    if len(names) != n:
        raise InputError(f"{len(names)} labels for {n} nodes; give one label a node")
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if not name or not name.isprintable():
            raise InputError(f"the label of node {i} must be printable text on one line, and not empty")
        if first.setdefault(name, i) != i:
            raise InputError(f"nodes {first[name]} and {i} have the same label {name!r}; labels must differ")
    return names


def _plane(n: int, positions: ArrayLike) -> Array:
    points = as_array(positions)
    if points.shape != (n, 2) or points.dtype.kind not in "iuf" or not np.isfinite(points).all():
        raise InputError(f"positions must be {n} rows of finite x and y")
    return points.astype(np.float64)


def key_of(n: int, ends: Ints) -> Ints:
    """One number for each pair, the same in either direction."""
    return np.minimum(ends[:, 0], ends[:, 1]) * n + np.maximum(ends[:, 0], ends[:, 1])


def repeats_in(n: int, ends: Ints) -> Bools:
    """Which pairs were given in an earlier row."""
    repeats = np.ones(len(ends), np.bool_)
    repeats[np.unique(key_of(n, ends), return_index=True)[1]] = False
    return repeats


def whole(what: str, value: int, low: int, high: int | None = None) -> int:
    """The value as an int, if it is a whole number in its range."""
    if not isinstance(value, Integral):
        raise InputError(f"{what} must be a whole number, not {type(value).__name__}")
    if value < low or (high is not None and value > high):
        raise InputError(
            f"{what} must be {f'at least {low}' if high is None else f'from {low} to {high}'}; got {value}"
        )
    return int(value)


def refuse_absurd(what: str, nodes: float, edges: float, share: float = 1.0) -> None:
    """Refuses what would not fit into a share of this machine's memory, with its undirected edges listed.

    Raises:
        InputError: with the estimate.
    """
    needed, there = 2 * edges * _BYTES_AN_EDGE + 8 * nodes, physical_memory()
    if needed > share * there:
        raise InputError(
            f"{what}: about {show_bytes(needed)} of memory, and this machine has {show_bytes(there)}; try fewer nodes"
        )


def physical_memory() -> float:
    """Bytes of this machine's memory; infinite where nobody says."""
    return memory_of("SC_PHYS_PAGES") or math.inf


def show_bytes(number: float) -> str:
    """A number of bytes, for people."""
    power = min(int(math.log2(number)) // 10, 6)
    return f"{number / 2 ** (10 * power):.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')[power]}"


def as_array(given: ArrayLike) -> NDArray[Any]:
    """What NumPy makes of it; of no shape where that is nothing."""
    try:
        return np.asarray(given)
    except ValueError:  # ragged rows: of no shape, which every caller refuses
        return np.array(None)


def import_networkx() -> ModuleType:
    """The module, or an error that says what brings it."""
    try:
        import networkx
    except ImportError:
        raise MissingExtra("networkx", "networkx") from None
    return networkx


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _shorten(items: Sequence[Any] | NDArray[Any], most: int, show: Callable[[Any], str]) -> list[str]:
    return [*map(show, items[:most]), *(["…"] if len(items) > most else [])]

"""Graphs: who talks to whom.

Rules:
- A graph is simple and undirected: no self-loop, no edge twice. It may fall apart; `require_connected` refuses that.
- Each undirected edge is kept as its two directed edges, sorted by (source, target); a message travels along one.
- Nodes are 0..n-1 in every array. `labels` are names for people and only appear in messages and drawings.
- A graph never changes: its arrays, and those derived from them, are read-only.
- Whatever its origin, every graph is checked and put in order in one place, `_build`.
- The same seed gives the same graph.
"""

from __future__ import annotations

import difflib
import heapq
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.spatial import cKDTree

from midst.errors import InputError, MissingExtra

if TYPE_CHECKING:
    import networkx as nx

Ints = NDArray[np.int64]
Seed = int | np.random.Generator | None

_DRAWS = 100  # how often a random graph is drawn before giving up on a connected one
_EXACT = 2000  # up to this many nodes the diameter is exact
_INTEGER = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A simple undirected graph, made by the functions of this module.

    Attributes:
        n: the number of nodes.
        source: where each directed edge starts; both directions are present, sorted by (source, target).
        target: where each directed edge ends.
        name: what the graph is called, such as "ring", "rgg" or the stem of its file.
        labels: the names of the nodes, where they are other than 0..n-1.
        positions: x and y of each node, where the graph is geometric.
    """

    n: int
    source: Ints
    target: Ints
    name: str = "graph"
    labels: tuple[str, ...] | None = None
    positions: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for array in (self.source, self.target, self.positions):
            if array is not None:
                array.setflags(write=False)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {self.n} nodes, {self.edges} edges>"

    @property
    def edges(self) -> int:
        """The number of undirected edges."""
        return self.source.size // 2

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
        return _frozen(np.bincount(self.source, minlength=self.n))

    @cached_property
    def offsets(self) -> Ints:
        """The edges out of node i are offsets[i] up to offsets[i + 1]."""
        return _frozen(np.concatenate([[0], np.cumsum(self.degree)]))

    @cached_property
    def is_connected(self) -> bool:
        """Whether every node reaches every other."""
        count, _ = csgraph.connected_components(self.adjacency(), directed=False)
        return count == 1

    def label(self, i: int) -> str:
        """The name of node i, for people."""
        return self.labels[i] if self.labels else str(i)

    def neighbours(self, i: int) -> Ints:
        """The neighbours of node i, in ascending order."""
        i = _whole("node", i, 0, self.n - 1)
        return self.target[self.offsets[i] : self.offsets[i + 1]]

    def components(self) -> list[Ints]:
        """The connected components, each as its nodes in ascending order."""
        count, component = csgraph.connected_components(self.adjacency(), directed=False)
        sizes = np.bincount(component, minlength=count)
        return np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])

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
        """The longest shortest path, in edges: exact up to 2000 nodes, an upper bound above.

        The bound is twice the eccentricity of a node of highest degree, and so at most twice the diameter.

        Raises:
            InputError: if the graph is not connected.
        """
        self.require_connected()
        exact = self.n <= _EXACT
        starts = None if exact else [int(self.degree.argmax())]
        hops = int(csgraph.dijkstra(self.adjacency(), unweighted=True, indices=starts).max())
        return hops if exact else 2 * hops

    def adjacency(self) -> sparse.csr_array:
        """The adjacency matrix of zeros and ones."""
        # Copies: scipy may reorder what it is given in place.
        return sparse.csr_array(
            (np.ones(self.target.size), self.target.copy(), self.offsets.copy()), shape=(self.n, self.n)
        )

    def to_networkx(self) -> nx.Graph[Any]:
        """The same graph for networkx; its nodes are the labels, or 0..n-1. Positions are left behind."""
        graph: nx.Graph[Any] = _networkx().Graph(name=self.name)
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
    return _build(n, pairs, name, labels, positions, place=lambda k: f"pairs[{k}]")


def from_networkx(graph: nx.Graph[Any]) -> Graph:
    """A graph from networkx, nodes in its order; labels are kept unless the nodes are exactly 0..n-1 in order.

    Raises:
        InputError: if it is directed, has self-loops or has parallel edges.
        MissingExtra: if networkx is not installed.
    """
    if not isinstance(graph, _networkx().Graph):
        raise InputError(f"expected a networkx graph, not {type(graph).__name__}; try from_edges or from_sparse")
    nodes = list(graph)
    labels = None if nodes == list(range(len(nodes))) else [str(node) for node in nodes]
    return _from_networkx(graph, nodes, labels, graph.name or "graph", where="networkx graph")


def from_sparse(matrix: Any) -> Graph:
    """A graph from an adjacency matrix, sparse (of any scipy format) or dense; weights count only as zero or not.

    Raises:
        InputError: if it is not square, finite, of symmetric pattern and zero on the diagonal.
    """
    return _from_matrix(matrix, "graph", where="matrix")


def load(path: str | PathLike[str]) -> Graph:
    """A graph from a file, named after it.

    By extension: `.graphml` (with networkx), `.npz` (an adjacency matrix, as scipy.sparse.save_npz writes it), and for
    all others a text of edges: two names a line between blanks or a comma, one name for a node without edges, `#`
    before comments. Names that are all plain integers are put in numerical order, and are labels only if they are not
    exactly 0..n-1; other names stay in the order of their first appearance.

    Raises:
        InputError: naming the file, and for a text the line.
        MissingExtra: for GraphML without networkx.
    """
    path = Path(path)
    readers = {".graphml": _read_graphml, ".npz": _read_npz}
    return readers.get(path.suffix.lower(), _read_text)(path)


def ring(n: int) -> Graph:
    """A cycle through all nodes in order."""
    n = _whole("n", n, 3)
    return from_edges(n, _chords(n, np.arange(n)), name="ring")


def complete(n: int) -> Graph:
    """Every node joined to every other."""
    n = _whole("n", n, 2)
    return from_edges(n, _chords(n, np.arange(n * (n - 1) // 2)), name="complete")


def path(n: int) -> Graph:
    """A line through all nodes in order."""
    n = _whole("n", n, 2)
    return from_edges(n, _chords(n, np.arange(n - 1)), name="path")


def star(n: int) -> Graph:
    """Node 0 joined to every other."""
    n = _whole("n", n, 2)
    return from_edges(n, np.column_stack([np.zeros(n - 1, np.int64), np.arange(1, n)]), name="star")


def tree(n: int, rng: Seed = None) -> Graph:
    """A tree drawn uniformly from all labelled trees, through its Prüfer sequence."""
    n = _whole("n", n, 2)
    sequence = _generator(rng).integers(n, size=n - 2)
    children = np.bincount(sequence, minlength=n).tolist()
    leaves = [node for node, count in enumerate(children) if count == 0]  # ascending, and so a heap
    pairs = []
    for node in sequence.tolist():
        pairs.append((heapq.heappop(leaves), node))
        children[node] -= 1
        if children[node] == 0:
            heapq.heappush(leaves, node)
    pairs.append((leaves[0], leaves[1]))
    return from_edges(n, pairs, name="tree")


def grid(rows: int, columns: int) -> Graph:
    """A rectangular lattice, numbered row by row; positions are (column, row)."""
    rows, columns = _whole("rows", rows, 1), _whole("columns", columns, 1)
    n = _whole("rows × columns", rows * columns, 2)
    node = np.arange(n).reshape(rows, columns)
    along = np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()])
    down = np.column_stack([node[:-1].ravel(), node[1:].ravel()])
    positions = np.column_stack([node.ravel() % columns, node.ravel() // columns])
    return from_edges(n, np.concatenate([along, down]), name="grid", positions=positions)


def rgg(n: int, radius: float | None = None, rng: Seed = None, *, connected: bool = True) -> Graph:
    """A random geometric graph: points in the unit square, joined when at most `radius` apart.

    Args:
        n: the number of nodes.
        radius: by default √(2 ln n / n), above which a draw is connected with high probability.
        rng: a seed or a generator.
        connected: draw again, up to 100 times, until the graph is connected; otherwise the first draw is returned.
    """
    n, rng = _whole("n", n, 2), _generator(rng)
    threshold = min(math.sqrt(2 * math.log(n) / n), math.sqrt(2))
    reach = threshold if radius is None else radius
    if not (isinstance(reach, Real) and reach > 0):
        raise InputError(f"radius must be a number above 0; try {threshold:.3g}")

    def draw() -> Graph:
        points = rng.random((n, 2))
        return from_edges(n, cKDTree(points).query_pairs(reach, output_type="ndarray"), name="rgg", positions=points)

    return _redraw(draw, connected, f"radius={threshold:.3g} or connected=False")


def erdos_renyi(n: int, p: float | None = None, rng: Seed = None, *, connected: bool = True) -> Graph:
    """A random graph: each pair of nodes is joined with probability p, independently.

    Args:
        n: the number of nodes.
        p: by default 2 ln n / n, above which a draw is connected with high probability.
        rng: a seed or a generator.
        connected: draw again, up to 100 times, until the graph is connected; otherwise the first draw is returned.
    """
    n, rng = _whole("n", n, 2), _generator(rng)
    threshold = min(2 * math.log(n) / n, 1.0)
    chance = threshold if p is None else _probability(p)
    pairs = n * (n - 1) // 2

    def draw() -> Graph:
        chosen = rng.choice(pairs, rng.binomial(pairs, chance), replace=False, shuffle=False)
        return from_edges(n, _chords(n, chosen), name="er")

    return _redraw(draw, connected, f"p={threshold:.3g} or connected=False")


def watts_strogatz(n: int, k: int = 4, p: float = 0.1, rng: Seed = None, *, connected: bool = True) -> Graph:
    """A small world: a ring joined to the k nearest, each edge's far end moved elsewhere with probability p.

    All edges are moved at once. An edge that would land on its own start, on a place of the ring lattice, or where
    another one has just landed keeps its old end.

    Args:
        n: the number of nodes.
        k: the neighbours of each node before rewiring, an even number.
        p: the probability of rewiring.
        rng: a seed or a generator.
        connected: draw again, up to 100 times, until the graph is connected; otherwise the first draw is returned.
    """
    n, rng, p = _whole("n", n, 3), _generator(rng), _probability(p)
    k = _whole("k", k, 2, n - 1)
    if k % 2:
        raise InputError(f"k must be even, half on each side of the ring; got {k}, try {k - 1}")
    start, end = _chords(n, np.arange(n * k // 2)).T

    def draw() -> Graph:
        moved = np.where(rng.random(end.size) < p, rng.integers(n, size=end.size), end)
        gap = (moved - start) % n
        landed = (np.minimum(gap, n - gap) > k // 2) & ~_repeats(n, np.column_stack([start, moved]))
        return from_edges(n, np.column_stack([start, np.where(landed, moved, end)]), name="ws")

    return _redraw(draw, connected, "a larger k or a smaller p")


def barabasi_albert(n: int, m: int = 2, rng: Seed = None) -> Graph:
    """A scale-free graph: after a star of m + 1 nodes, each new node joins m others in proportion to their degree."""
    n, rng = _whole("n", n, 2), _generator(rng)
    m = _whole("m", m, 1, n - 1)
    uniform = _uniforms(rng)
    ends = [end for leaf in range(1, m + 1) for end in (0, leaf)]  # the edges, flat: each node as often as its degree
    for new in range(m + 1, n):
        chosen: set[int] = set()
        while len(chosen) < m:
            chosen.add(ends[int(next(uniform) * len(ends))])
        ends += [end for old in chosen for end in (old, new)]
    return from_edges(n, np.array(ends).reshape(-1, 2), name="ba")


def regular(n: int, k: int = 4, rng: Seed = None) -> Graph:
    """A random connected graph in which every node has k neighbours.

    Loops and repeated edges of a random pairing are mended by shuffling their ends with those of other edges, which is
    close to uniform for k much below n. For k = 2 it is a uniformly drawn cycle.
    """
    n, rng = _whole("n", n, 3), _generator(rng)
    k = _whole("k", k, 2, n - 1)
    if n * k % 2:
        raise InputError(f"n × k must be even for every node to have k neighbours; got {n} × {k}, try n={n + 1}")
    if k == 2:
        return from_edges(n, rng.permutation(n)[_chords(n, np.arange(n))], name="regular")
    return _redraw(lambda: from_edges(n, _regular_pairs(n, k, rng), name="regular"), True, "a larger k")


def make(kind: str, n: int, *, rng: Seed = None, **options: Any) -> Graph:
    """A graph of a named kind, with n nodes.

    Args:
        kind: one of `KINDS`.
        n: the number of nodes.
        rng: a seed or a generator; of no effect where nothing is random.
        options: further arguments of that kind, such as radius, p, k or m.
    """
    if kind not in KINDS:
        near = difflib.get_close_matches(str(kind), KINDS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"unknown kind of graph {kind!r}; {hint}the kinds are {', '.join(KINDS)}")
    known = [name for name in inspect.signature(KINDS[kind]).parameters if name != "n"]
    for option in options:
        if option not in known:
            listed = ", ".join(name for name in known if name != "rng") or "none"
            raise InputError(f"{kind} has no option {option!r}; its options: {listed}")
    return KINDS[kind](n, **options, **({"rng": rng} if "rng" in known else {}))


def _square_grid(n: int) -> Graph:
    """The grid of n nodes that is nearest to a square."""
    n = _whole("n", n, 2)
    rows = next(rows for rows in range(math.isqrt(n), 0, -1) if n % rows == 0)
    if rows == 1 and n > 3:
        raise InputError(f"{n} nodes make no grid, as {n} is prime; try n={n + 1}")
    return grid(rows, n // rows)


KINDS: dict[str, Callable[..., Graph]] = {
    "ring": ring,
    "complete": complete,
    "path": path,
    "star": star,
    "tree": tree,
    "grid": _square_grid,
    "rgg": rgg,
    "er": erdos_renyi,
    "ws": watts_strogatz,
    "ba": barabasi_albert,
    "regular": regular,
}


# Building


def _build(
    n: int,
    pairs: ArrayLike,
    name: str,
    labels: Sequence[str] | None,
    positions: ArrayLike | None,
    place: Callable[[int], str],
) -> Graph:
    """Checks everything and puts the edges in order; `place(k)` says where pair k came from."""
    n = _whole("n", n, 1)
    ends = _integer_pairs(pairs)
    names = None if labels is None else _distinct_labels(n, labels)

    def refuse(fault: NDArray[np.bool_], reason: str) -> None:
        if fault.any():
            k = int(fault.argmax())
            a, b = (names[i] if names and 0 <= i < n else i for i in ends[k].tolist())
            raise InputError(f"{place(k)}: edge ({a}, {b}) {reason}")

    outside = (ends < 0) | (ends >= n)
    refuse(outside[:, 0] | outside[:, 1], f"leaves the nodes 0..{n - 1}")
    refuse(ends[:, 0] == ends[:, 1], "joins a node to itself; leave self-loops out")
    key = np.sort(np.concatenate([ends @ (n, 1), ends @ (1, n)]))
    if (key[1:] == key[:-1]).any():
        repeats = _repeats(n, ends)
        alike = _key(n, ends) == _key(n, ends)[repeats.argmax()]
        refuse(repeats, f"is given before, at {place(int(alike.argmax()))}; give each undirected edge once")
    source, target = np.divmod(key, n)
    return Graph(n, source, target, name, names, None if positions is None else _plane(n, positions))


def _integer_pairs(pairs: ArrayLike) -> Ints:
    """An (m, 2) array of node numbers."""
    ends = _array(pairs)
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


def _plane(n: int, positions: ArrayLike) -> NDArray[np.float64]:
    points = _array(positions)
    if points.shape != (n, 2) or points.dtype.kind not in "iuf" or not np.isfinite(points).all():
        raise InputError(f"positions must be {n} rows of finite x and y")
    return points.astype(np.float64)


def _from_networkx(
    graph: nx.Graph[Any], nodes: list[Any], labels: Sequence[str] | None, name: str, where: str
) -> Graph:
    if graph.is_directed():
        raise InputError(f"{where} is directed; try its to_undirected()")
    index = {node: i for i, node in enumerate(nodes)}
    pairs = [(index[a], index[b]) for a, b in graph.edges()]
    return _build(len(nodes), pairs, name, labels, None, place=lambda k: f"{where}, edge {k + 1}")


def _from_matrix(matrix: Any, name: str, where: str) -> Graph:
    given: Any = matrix if sparse.issparse(matrix) else _array(matrix)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.dtype.kind not in "biuf":
        raise InputError(f"{where} must be square and of real numbers, one row and one column a node")
    weights: Any = sparse.csr_array(given, dtype=np.float64, copy=True)
    weights.sum_duplicates()
    weights.eliminate_zeros()
    if not np.isfinite(weights.data).all():
        raise InputError(f"{where} has entries that are not finite; use 0 for no edge and 1 for an edge")
    joined = weights.astype(np.bool_)
    one_way = (joined != joined.T).tocoo()
    if one_way.nnz:
        a, b = sorted((int(one_way.row[0]), int(one_way.col[0])))
        raise InputError(f"{where} is directed input: nodes {a} and {b} are joined one way only; try A + A.T")
    upper = sparse.triu(joined, format="coo")  # with the diagonal, whose entries are refused as self-loops
    pairs = np.column_stack([upper.row, upper.col])
    return _build(joined.shape[0], pairs, name, None, None, place=lambda k: where)


# Reading files


def _read_text(path: Path) -> Graph:
    with _reading(path, "a text of edges in UTF-8"):
        text = path.read_text(encoding="utf-8-sig")
        if "\0" in text:
            raise ValueError("binary")
    names: list[str] = []
    pairs: list[list[str]] = []
    lines: list[int] = []
    for line, content in enumerate(text.split("\n"), start=1):
        words = content.partition("#")[0].replace(",", " ").split()
        if len(words) > 2:
            raise InputError(f"{path.name}, line {line}: {len(words)} names; an edge has two, a node without edges one")
        names += words
        if len(words) == 2:
            pairs.append(words)
            lines.append(line)
    if not names:
        raise InputError(f"{path.name}: no edges; write two node names a line")
    nodes, labels = _arrange(names)
    index = {node: i for i, node in enumerate(nodes)}
    ends = [(index[a], index[b]) for a, b in pairs]
    return _build(len(nodes), ends, path.stem, labels, None, place=lambda k: f"{path.name}, line {lines[k]}")


def _read_graphml(path: Path) -> Graph:
    networkx = _networkx()
    with _reading(path, "GraphML"):
        graph = networkx.read_graphml(path)
    return _from_networkx(graph, *_arrange(graph), path.stem, where=path.name)


def _read_npz(path: Path) -> Graph:
    with _reading(path, "a matrix of scipy.sparse.save_npz"):
        matrix = sparse.load_npz(path)
    return _from_matrix(matrix, path.stem, where=path.name)


@contextmanager
def _reading(path: Path, form: str) -> Iterator[None]:
    """Turns whatever a reader raises into one line; foreign parsers raise anything on a damaged file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or f'not {form}'}; try another path") from error
    except Exception as error:
        raise InputError(f"{path}: not {form}; the extension says how a file is read") from error


def _arrange(names: Iterable[str]) -> tuple[list[str], list[str] | None]:
    """The distinct names in the order of their nodes, and the labels they make, as `load` documents."""
    nodes = list(dict.fromkeys(names))
    if all(_INTEGER.fullmatch(node) for node in nodes):
        nodes.sort(key=int)
        return nodes, None if nodes == [str(i) for i in range(len(nodes))] else nodes
    return nodes, nodes


# Drawing at random


def _redraw(draw: Callable[[], Graph], connected: bool, advice: str) -> Graph:
    """The first connected draw, or simply the first one."""
    for _ in range(_DRAWS):
        graph = draw()
        if not connected or graph.is_connected:
            return graph
    raise InputError(f"none of {_DRAWS} draws of {graph.name} with {graph.n} nodes was connected; try {advice}")


def _chords(n: int, k: NDArray[np.integer[Any]]) -> Ints:
    """The k-th of all n(n−1)/2 pairs of nodes: first the n edges of the ring, then its chords, short before long."""
    length, start = np.divmod(k, n)
    return np.column_stack([start, (start + length + 1) % n])


def _key(n: int, ends: Ints) -> Ints:
    """One number for each pair, the same in either direction."""
    return np.minimum(ends[:, 0], ends[:, 1]) * n + np.maximum(ends[:, 0], ends[:, 1])


def _repeats(n: int, ends: Ints) -> NDArray[np.bool_]:
    """Which pairs were given in an earlier row."""
    repeats = np.ones(len(ends), np.bool_)
    repeats[np.unique(_key(n, ends), return_index=True)[1]] = False
    return repeats


def _regular_pairs(n: int, k: int, rng: np.random.Generator) -> Ints:
    """The edges of a random simple graph of degree k, connected or not."""
    if 2 * k >= n:  # mending needs room: draw what is left out instead
        everything = _chords(n, np.arange(n * (n - 1) // 2))
        return everything[~np.isin(_key(n, everything), _key(n, _regular_pairs(n, n - 1 - k, rng)))]
    ends = rng.permutation(np.repeat(np.arange(n), k)).reshape(-1, 2)
    while (bad := np.flatnonzero(_repeats(n, ends) | (ends[:, 0] == ends[:, 1]))).size:
        # Few others, so that in a dense graph fewer edges are spoilt than mended.
        others = rng.integers(len(ends), size=2 + bad.size // 4)
        pool = np.union1d(bad, others)
        ends[pool] = rng.permutation(ends[pool].ravel()).reshape(-1, 2)
    return ends


def _uniforms(rng: np.random.Generator) -> Iterator[float]:
    """Uniform numbers one by one, drawn in blocks for speed."""
    while True:
        yield from rng.random(4096).tolist()


# Arguments


def _whole(what: str, value: int, low: int, high: int | None = None) -> int:
    if not isinstance(value, Integral):
        raise InputError(f"{what} must be a whole number, not {type(value).__name__}")
    if value < low or (high is not None and value > high):
        raise InputError(
            f"{what} must be {f'at least {low}' if high is None else f'from {low} to {high}'}; got {value}"
        )
    return int(value)


def _probability(p: float) -> float:
    if not (isinstance(p, Real) and 0 <= p <= 1):
        raise InputError("p must be a probability, from 0 to 1")
    return float(p)


def _generator(rng: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError("rng must be a seed (a whole number of at least 0), a numpy Generator or None") from None


# Small things


def _array(given: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(given)
    except ValueError:  # ragged rows: of no shape, which every caller refuses
        return np.array(None)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _shorten(items: Sequence[Any] | NDArray[Any], most: int, show: Callable[[Any], str]) -> list[str]:
    return [*map(show, items[:most]), *(["…"] if len(items) > most else [])]


def _networkx() -> ModuleType:
    try:
        import networkx
    except ImportError:
        raise MissingExtra("networkx", "networkx") from None
    return networkx

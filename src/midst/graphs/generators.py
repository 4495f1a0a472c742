"""Kinds of graphs, fixed and random. The same seed gives the same graph.

networkx, an extra, draws trees, small worlds and scale-free graphs; another version of it may draw others.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError, closest
from midst.graphs.graph import Graph, from_edges, import_networkx, key_of, refuse_absurd, repeats_in, whole
from midst.types import Array, Ints

Seed = int | np.random.Generator | None

_LISTED = 5_000  # nodes up to which the edges of a complete graph are listed unless asked otherwise
_FEW = 1_000  # points, of which all pairs are looked at
_DRAWS = 100  # how often a random graph is drawn before giving up on a connected one


def ring(n: int) -> Graph:
    """A cycle through all nodes in order."""
    n = _room("ring", whole("n", n, 3))
    # Edges in order, with no array made that is not kept: of node i, to i − 1 and to i + 1.
    target = np.arange(2 * n)
    source = target >> 1
    target &= 1
    target <<= 1
    target += source
    target -= 1
    target[:2], target[-2:] = (1, n - 1), (0, n - 2)
    return Graph(n, (source, target), "ring", known_diameter=n // 2)


def complete(n: int, *, listed: bool | None = None) -> Graph:
    """Every node joined to every other.

    Args:
        n: the number of nodes.
        listed: whether its edges are in memory, as those of any other graph. A run without them takes time and memory
            in proportion to n, and draws z(0) as the sums that its nodes need (`system.draw_z0`), of the same law but
            not the same numbers. If not given: up to 5,000 nodes.
    """
    n = whole("n", n, 2)
    if not isinstance(listed, bool | None):
        raise InputError("listed must be True, False or None")
    if not (n <= _LISTED if listed is None else listed):
        return Graph(n, None, "complete")
    _room("complete", n, listed=True)
    return from_edges(n, _chords(n, np.arange(n * (n - 1) // 2)), name="complete")


def path(n: int) -> Graph:
    """A line through all nodes in order."""
    n = _room("path", whole("n", n, 2))
    return Graph(n, _lattice(1, n), "path", known_diameter=n - 1)


def star(n: int) -> Graph:
    """Node 0 joined to every other."""
    n = _room("star", whole("n", n, 2))
    return from_edges(n, np.column_stack([np.zeros(n - 1, np.int64), np.arange(1, n)]), name="star")


def tree(n: int, rng: Seed = None) -> Graph:
    """A tree drawn uniformly from all labelled trees, by networkx."""
    n = _room("tree", whole("n", n, 2))
    return _drawn("tree", "random_labeled_tree", _generator(rng), n)


def grid(rows: int, columns: int) -> Graph:
    """A rectangular lattice, numbered row by row; positions are (column, row)."""
    rows, columns = whole("rows", rows, 1), whole("columns", columns, 1)
    n = _room("grid", whole("rows × columns", rows * columns, 2))
    place = np.empty((rows, columns, 2))
    place[:, :, 0], place[:, :, 1] = np.arange(columns), np.arange(rows)[:, None]
    far = rows + columns - 2
    return Graph(n, _lattice(rows, columns), "grid", positions=place.reshape(n, 2), known_diameter=far)


def _lattice(rows: int, columns: int) -> tuple[Ints, Ints]:
    """The edges of a lattice in order: of each node, to the one above, before, after and below it, if there is one."""
    n = rows * columns
    near = np.arange(n)[:, None] + np.array([-columns, -1, 1, columns])
    there = np.ones((rows, columns, 4), np.bool_)
    there[0, :, 0] = there[:, 0, 1] = there[:, -1, 2] = there[-1, :, 3] = False
    return np.repeat(np.arange(n), there.reshape(n, 4).sum(axis=1)), near[there.reshape(n, 4)]


def rgg(n: int, radius: float | None = None, rng: Seed = None, *, connected: bool = True) -> Graph:
    """A random geometric graph: points in the unit square, joined when at most `radius` apart.

    Args:
        n: the number of nodes.
        radius: by default √(2 ln n / n), above which a draw is connected with high probability.
        rng: a seed or a generator.
        connected: draw again, up to 100 times, until the graph is connected; otherwise the first draw is returned.
    """
    n, rng = whole("n", n, 2), _generator(rng)
    threshold = min(math.sqrt(2 * math.log(n) / n), math.sqrt(2))
    reach = threshold if radius is None else radius
    if not (isinstance(reach, Real) and reach > 0):
        raise InputError(f"radius must be a number above 0; try {threshold:.3g}")
    _room("rgg", n, radius=reach)

    def draw() -> Graph:
        points = rng.random((n, 2))
        return from_edges(n, _near(points, float(reach)), name="rgg", positions=points)

    return _redraw(draw, connected, f"radius={threshold:.3g} or connected=false")


def _near(points: Array, reach: float) -> Ints:
    """The pairs of points that are at most so far apart."""
    if len(points) <= _FEW:  # without a library that takes half a second to load
        apart = ((points[:, None] - points) ** 2).sum(axis=2)
        return np.argwhere(np.triu(apart <= reach * reach, 1))
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(points).query_pairs(reach, output_type="ndarray"))


def erdos_renyi(n: int, p: float | None = None, rng: Seed = None, *, connected: bool = True) -> Graph:
    """A random graph: each pair of nodes is joined with probability p, independently.

    Args:
        n: the number of nodes.
        p: by default 2 ln n / n, above which a draw is connected with high probability.
        rng: a seed or a generator.
        connected: draw again, up to 100 times, until the graph is connected; otherwise the first draw is returned.
    """
    n, rng = whole("n", n, 2), _generator(rng)
    threshold = min(2 * math.log(n) / n, 1.0)
    chance = threshold if p is None else _probability(p)
    _room("er", n, p=chance)
    pairs = n * (n - 1) // 2

    def draw() -> Graph:
        chosen = rng.choice(pairs, rng.binomial(pairs, chance), replace=False, shuffle=False)
        return from_edges(n, _chords(n, chosen), name="er")

    return _redraw(draw, connected, f"p={threshold:.3g} or connected=false")


def watts_strogatz(n: int, k: int = 4, p: float = 0.1, rng: Seed = None, *, connected: bool = True) -> Graph:
    """A small world, drawn by networkx: a ring joined to the k nearest, each edge's far end moved with probability p.

    Args:
        n: the number of nodes.
        k: the neighbours of each node before rewiring, an even number.
        p: the probability of rewiring.
        rng: a seed or a generator.
        connected: draw again, up to 100 times, until the graph is connected; otherwise the first draw is returned.
    """
    n, rng, p = whole("n", n, 3), _generator(rng), _probability(p)
    k = whole("k", k, 2, n - 1)
    if k % 2:
        raise InputError(f"k must be even, half on each side of the ring; got {k}, try {k - 1}")
    _room("ws", n, k=k)
    return _redraw(lambda: _drawn("ws", "watts_strogatz_graph", rng, n, k, p), connected, "a larger k or a smaller p")


def barabasi_albert(n: int, m: int = 2, rng: Seed = None) -> Graph:
    """A scale-free graph, drawn by networkx: after a star of m + 1 nodes, each new one joins m others by degree."""
    n, rng = whole("n", n, 2), _generator(rng)
    m = whole("m", m, 1, n - 1)
    _room("ba", n, m=m)
    return _drawn("ba", "barabasi_albert_graph", rng, n, m)


def regular(n: int, k: int = 4, rng: Seed = None) -> Graph:
    """A random connected graph in which every node has k neighbours.

    Loops and repeated edges of a random pairing are mended by shuffling their ends with those of other edges, which is
    close to uniform for k much below n. For k = 2 it is a uniformly drawn cycle.
    """
    n, rng = whole("n", n, 3), _generator(rng)
    k = whole("k", k, 2, n - 1)
    if n * k % 2:
        raise InputError(f"n × k must be even for every node to have k neighbours; got {n} × {k}, try {n + 1} nodes")
    _room("regular", n, k=k)
    if k == 2:
        return from_edges(n, rng.permutation(n)[_chords(n, np.arange(n))], name="regular")
    return _redraw(lambda: from_edges(n, _regular_pairs(n, k, rng), name="regular"), True, "a larger k")


def make(kind: str, n: int, *, rng: Seed = None, **options: float | None) -> Graph:
    """A graph of a named kind, with n nodes.

    Args:
        kind: one of `KINDS`.
        n: the number of nodes.
        rng: a seed or a generator; of no effect where nothing is random.
        **options: further arguments of that kind, such as radius, p, k or m.
    """
    if kind not in KINDS:
        raise InputError(f"unknown kind of graph {kind!r}; the kinds are {', '.join(KINDS)}{closest(kind, KINDS)}")
    known = [name for name in inspect.signature(KINDS[kind]).parameters if name != "n"]
    for option in options:
        if option not in known:
            listed = ", ".join(name for name in known if name != "rng") or "none"
            raise InputError(f"{kind} has no option {option!r}; its options: {listed}{closest(option, known)}")
    return KINDS[kind](n, **options, **({"rng": rng} if "rng" in known else {}))


def _square_grid(n: int) -> Graph:
    """The grid of n nodes that is nearest to a square."""
    n = whole("n", n, 2)
    rows = next(rows for rows in range(math.isqrt(n), 0, -1) if n % rows == 0)
    if rows == 1 and n > 3:
        raise InputError(f"{n} nodes make no grid, as {n} is prime; try {n + 1}")
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


def expected_edges(kind: str, n: int, **options: float | None) -> float:
    """About how many undirected edges a graph has in memory, options as for `make`."""
    pairs, given = n * (n - 1) / 2, {name: number for name, number in options.items() if number is not None}
    threshold = 2 * math.log(max(n, 2)) / n
    match kind:
        case "complete":
            return pairs if given.get("listed", n <= _LISTED) else 0.0
        case "grid":
            return 2.0 * n
        case "rgg":
            return pairs * min(math.pi * min(given.get("radius", math.sqrt(threshold)), 1.0) ** 2, 1.0)
        case "er":
            return pairs * float(given.get("p", min(threshold, 1.0)))
        case "ws" | "regular":
            return n * int(given.get("k", 4)) / 2
        case "ba":
            return float(n * int(given.get("m", 2)))
    return float(n)


def _room(kind: str, n: int, **options: float | None) -> int:
    """The number of nodes, if such a graph is not absurdly large."""
    refuse_absurd(f"{kind} of {n:,} nodes", n, expected_edges(kind, n, **options))
    return n


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


def _regular_pairs(n: int, k: int, rng: np.random.Generator) -> Ints:
    """The edges of a random simple graph of degree k, connected or not."""
    if 2 * k >= n:  # mending needs room: draw what is left out instead
        everything = _chords(n, np.arange(n * (n - 1) // 2))
        return everything[~np.isin(key_of(n, everything), key_of(n, _regular_pairs(n, n - 1 - k, rng)))]
    ends = rng.permutation(np.repeat(np.arange(n), k)).reshape(-1, 2)
    while (bad := np.flatnonzero(repeats_in(n, ends) | (ends[:, 0] == ends[:, 1]))).size:
        # Few others, so that in a dense graph fewer edges are spoilt than mended.
        others = rng.integers(len(ends), size=2 + bad.size // 4)
        pool = np.union1d(bad, others)
        ends[pool] = rng.permutation(ends[pool].ravel()).reshape(-1, 2)
    return ends


def _drawn(name: str, function: str, rng: np.random.Generator, n: int, *arguments: float) -> Graph:
    """A graph that a function of networkx draws.

    Raises:
        MissingExtra: networkx is not installed.
    """
    graph = getattr(import_networkx(), function)(n, *arguments, seed=int(rng.integers(2**63)))
    return from_edges(n, list(graph.edges), name=name)


def _probability(p: float) -> float:
    if not (isinstance(p, Real) and 0 <= p <= 1):
        raise InputError("p must be a probability, from 0 to 1")
    return float(p)


def _generator(rng: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError("rng must be a seed (a whole number of at least 0), a numpy Generator or None") from None

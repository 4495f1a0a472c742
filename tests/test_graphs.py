"""Graphs: the invariants of every kind, the round trips, and every refusal."""

from __future__ import annotations

import math
import sys
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

from midst import graphs
from midst.errors import InputError, MissingExtra
from midst.graphs import Graph, from_edges, from_networkx, from_sparse, load, make
from midst.graphs import graph as graph_module

SEEDS = st.integers(0, 2**32 - 1)
RANDOM = ("tree", "rgg", "er", "ws", "ba", "regular")
TWO_PARTS = [(0, 1), (1, 2), (3, 4)]


def check_structure(graph: Graph) -> None:
    """What holds for every graph, connected or not."""
    source, target, reverse = graph.source, graph.target, graph.reverse
    assert source.dtype == target.dtype == reverse.dtype == graph.degree.dtype == graph.first_edges.dtype == np.int64
    assert (np.diff(source * graph.n + target) > 0).all(), "sorted, and no edge twice"
    assert (source != target).all()
    assert np.array_equal(source[reverse], target)
    assert np.array_equal(target[reverse], source)
    assert np.array_equal(reverse[reverse], np.arange(source.size))
    assert graph.sign.dtype == np.int8
    assert np.array_equal(graph.sign, np.sign(target - source))
    assert np.array_equal(graph.sign[reverse], -graph.sign)
    assert graph.degree.sum() == source.size == 2 * graph.edges
    assert graph.degree.size == graph.n == graph.first_edges.size - 1
    assert np.array_equal(np.repeat(np.arange(graph.n), np.diff(graph.first_edges)), source)
    adjacency = graph.adjacency().toarray()
    assert adjacency.dtype == np.float64
    assert np.array_equal(adjacency.nonzero(), (source, target))
    assert graph.is_connected == (len(graph.components()) == 1)
    for array in (source, target, reverse, graph.sign, graph.degree, graph.first_edges, graph.positions):
        assert array is None or not array.flags.writeable


def same(a: Graph, b: Graph) -> bool:
    return a.n == b.n and np.array_equal(a.source, b.source) and np.array_equal(a.target, b.target)


@st.composite
def pair_lists(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """A number of nodes and distinct undirected edges among them, in any order and direction."""
    n = draw(st.integers(1, 12))
    pairs = [(a, b) for a in range(n) for b in range(a)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return n, [pair[::-1] if draw(st.booleans()) else pair for pair in chosen]


def refused(match: str) -> pytest.RaisesExc[InputError]:
    """Refused in one line that matches."""
    return pytest.RaisesExc(InputError, match=match, check=lambda error: "\n" not in str(error))


# The graph


@pytest.mark.parametrize("small", [256, 0], ids=["by gossip", "by scipy"])
@given(case=pair_lists())
def test_from_edges(small, case):
    n, pairs = case
    with mock.patch.object(graph_module, "_SMALL", small):
        check_against_networkx(n, pairs)


def check_against_networkx(n, pairs):
    graph = from_edges(n, pairs)
    check_structure(graph)
    assert graph.edges == len(pairs)
    want = nx.Graph(pairs)
    want.add_nodes_from(range(n))
    for i in range(n):
        assert graph.neighbours(i).tolist() == sorted(want[i])
    assert [part.tolist() for part in graph.components()] == sorted(
        sorted(part) for part in nx.connected_components(want)
    )
    if graph.is_connected:
        graph.require_connected()
        assert graph.diameter() == nx.diameter(want)


def test_graph_says_what_it_is():
    assert repr(graphs.ring(15)) == "<Graph ring: 15 nodes, 15 edges>"
    assert repr(from_edges(2, [])) == "<Graph graph: 2 nodes, 0 edges>"
    named = from_edges(2, [(0, 1)], name="pair", labels=["ann", "bob"], positions=[(0, 0), (1, 1)])
    assert (named.label(1), graphs.ring(3).label(1)) == ("bob", "1")
    assert named.positions is not None
    assert named.positions.dtype == np.float64


def test_graph_does_not_touch_the_caller_arrays():
    pairs, positions = np.array([[0, 1]]), np.zeros((2, 2))
    from_edges(2, pairs, positions=positions)
    assert pairs.flags.writeable
    assert positions.flags.writeable


def test_diameter_of_a_large_graph_is_a_bound():
    ring = graphs.ring(2501)
    assert 1250 <= from_edges(2501, np.column_stack([ring.source, ring.target])[ring.sign > 0]).diameter() <= 2500
    assert graphs.star(3000).diameter() == 2


def test_a_known_diameter_is_that_of_the_edges():
    for graph in (
        *map(graphs.ring, range(3, 12)),
        *map(graphs.path, range(2, 9)),
        graphs.grid(1, 6),
        graphs.grid(5, 3),
    ):
        pairs = np.column_stack([graph.source, graph.target])[graph.sign > 0]
        assert graph.known_diameter == graph.diameter() == from_edges(graph.n, pairs).diameter()
        assert graph.is_connected
    assert (graphs.ring(10**5).diameter(), graphs.grid(300, 200).diameter()) == (50_000, 498)


@pytest.mark.parametrize(
    ("n", "pairs", "labels", "message"),
    [
        (
            5,
            TWO_PARTS,
            None,
            r"graph has 2 components \(\{0, 1, 2\} and \{3, 4\}\); the median needs a connected graph",
        ),
        (3, [(0, 2)], ["a", "b", "c"], r"\(\{a, c\} and \{b\}\)"),
        (5, [], None, r"graph has 5 components \(\{0\}, \{1\}, \{2\}, …\)"),
        (9, [(i, i + 1) for i in range(7)], None, r"\(\{0, 1, 2, 3, 4, 5, …\} and \{8\}\)"),
    ],
)
def test_unconnected(n, pairs, labels, message):
    graph = from_edges(n, pairs, labels=labels)
    with refused(message):
        graph.require_connected()
    with refused("the median needs a connected graph"):
        graph.diameter()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, []), "n must be at least 1; got 0"),
        ((2.0, []), "n must be a whole number, not float"),
        ((3, [(0, 1), (1, 3)]), r"pairs\[1\]: edge \(1, 3\) leaves the nodes 0\.\.2"),
        ((3, [(0, 1), (-1, 2)]), r"pairs\[1\]: edge \(-1, 2\) leaves the nodes"),
        ((3, [(0, 1), (2, 2)]), r"pairs\[1\]: edge \(2, 2\) joins a node to itself"),
        ((3, [(1, 2), (0, 1), (0, 1)]), r"pairs\[2\]: edge \(0, 1\) is given before, at pairs\[1\]"),
        ((3, [(1, 2), (0, 1), (2, 1)]), r"pairs\[2\]: edge \(2, 1\) is given before, at pairs\[0\]"),
        ((3, [(0, 1, 2)]), "pairs must be rows of two node numbers"),
        ((3, [0, 1]), "pairs must be rows of two node numbers"),
        ((3, [(0.0, 1.0)]), "pairs must be rows of two node numbers"),
        ((3, [(0, 1), (1,)]), "pairs must be rows of two node numbers"),
    ],
)
def test_from_edges_refuses(arguments, message):
    with refused(message):
        from_edges(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a"]}, "1 labels for 2 nodes"),
        ({"labels": ["a", "a"]}, "nodes 0 and 1 have the same label 'a'"),
        ({"labels": ["a", ""]}, "label of node 1 must be printable"),
        ({"labels": ["a\nb", "c"]}, "label of node 0 must be printable"),
        ({"positions": [(0, 0)]}, "positions must be 2 rows"),
        ({"positions": [(0, 0), (0,)]}, "positions must be 2 rows"),
        ({"positions": [("a", "b"), ("c", "d")]}, "positions must be 2 rows"),
        ({"positions": [(0, 0), (0, math.nan)]}, "positions must be 2 rows"),
    ],
)
def test_from_edges_refuses_labels_and_positions(options, message):
    with refused(message):
        from_edges(2, [(0, 1)], **options)


@pytest.mark.parametrize(("i", "message"), [(-1, "node must be from 0 to 2; got -1"), (3, "got 3"), ("a", "not str")])
def test_neighbours_refuses(i, message):
    with refused(message):
        graphs.ring(3).neighbours(i)


# The complete graph without its edges


@pytest.mark.parametrize("n", [2, 3, 8])
def test_unlisted(n):
    """Whatever is asked of it, it answers as the graph with its edges."""
    graph, listed = graphs.complete(n, listed=False), graphs.complete(n)
    assert graph.ends is None
    assert (repr(graph), graph.edges, graph.diameter()) == (repr(listed), listed.edges, listed.diameter())
    assert np.array_equal(graph.degree, listed.degree)
    assert np.array_equal(graph.first_edges, listed.first_edges)
    assert [part.tolist() for part in graph.components()] == [list(range(n))]
    assert [graph.neighbours(i).tolist() for i in range(n)] == [listed.neighbours(i).tolist() for i in range(n)]
    assert graph.is_complete
    assert "_listed" not in vars(graph), "no edge has been made so far"
    check_structure(graph)
    assert same(graph, listed)


def test_where_edges_are_listed(monkeypatch):
    assert [graphs.complete(n).ends is None for n in (2, 500, 5_001, 10**12)] == [False, False, True, True]
    monkeypatch.setattr(graphs.generators, "_LISTED", 50)
    assert [graphs.complete(n).ends is None for n in (50, 51)] == [False, True]
    assert graphs.complete(51, listed=True).ends is not None
    assert make("complete", 9, listed=False).ends is None
    assert not graphs.ring(4).is_complete
    assert graphs.ring(3).is_complete


def test_unlisted_is_small():
    graph = graphs.complete(10**6)
    graph.require_connected()
    assert (graph.edges, graph.diameter(), graph.degree[7]) == (10**6 * (10**6 - 1) // 2, 1, 10**6 - 1)
    for ask in (lambda: graph.source, lambda: graph.target, graph.adjacency, lambda: graph.sign, graph.to_networkx):
        with refused(
            r"to list the 499,999,500,000 edges of a complete graph: about \S+ TiB of memory, and this machine has"
        ):
            ask()


# networkx


@given(pair_lists())
def test_networkx_round_trip(case):
    n, pairs = case
    graph = from_edges(n, pairs, name="mine")
    back = from_networkx(graph.to_networkx())
    assert same(graph, back)
    assert (back.labels, back.name) == (None, "mine")


def test_networkx_labels():
    graph = from_networkx(nx.Graph([("b", "a"), ("a", ("c", 1))]))
    assert graph.labels == ("b", "a", "('c', 1)")
    assert graph.name == "graph"
    assert from_networkx(graph.to_networkx()).labels == graph.labels
    assert from_networkx(nx.Graph([(0, 2), (2, 1)])).labels == ("0", "2", "1"), "the order of networkx is kept"
    assert from_networkx(nx.MultiGraph([(0, 1)])).edges == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(0, 1)], "expected a networkx graph, not list"),
        (nx.DiGraph([(0, 1)]), "networkx graph is directed; try"),
        (
            nx.MultiGraph([("a", "b"), ("b", "a")]),
            r"networkx graph, edge 2: edge \(a, b\) is given before, at .* edge 1",
        ),
        (nx.Graph([("a", "b"), ("b", "b")]), r"networkx graph, edge 2: edge \(b, b\) joins a node to itself"),
        (nx.Graph([(1, "1")]), "nodes 0 and 1 have the same label '1'"),
        (nx.Graph(), "n must be at least 1; got 0"),
    ],
)
def test_from_networkx_refuses(given, message):
    with refused(message):
        from_networkx(given)


def test_missing_networkx(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "networkx", None)
    drawn = [lambda kind=kind: make(kind, 9) for kind in ("tree", "ws", "ba")]
    read = lambda: load(tmp_path / "a.graphml")  # noqa: E731
    for call in (graphs.ring(3).to_networkx, lambda: from_networkx(nx.Graph()), read, *drawn):
        with pytest.raises(MissingExtra, match=r"pip install .*\[networkx\]'$"):
            call()


# Matrices


@given(pair_lists(), st.sampled_from(["coo", "csr", "csc", "lil", "dok", "dense", "matrix"]))
def test_sparse_round_trip(case, form):
    graph = from_edges(*case)
    matrix = graph.adjacency()
    given = {"dense": matrix.toarray, "matrix": lambda: sparse.csr_matrix(matrix)}.get(
        form, lambda: matrix.asformat(form)
    )()
    assert same(from_sparse(given), graph)


def test_sparse_entries_count_as_zero_or_not():
    matrix = sparse.csr_array(([0.0, 2.0, -3.0], ([0, 0, 1], [2, 1, 0])), shape=(3, 3))
    graph = from_sparse(matrix)
    assert (graph.n, graph.source.tolist()) == (3, [0, 1])
    assert matrix.nnz == 3, "the caller's matrix is left as it was"
    assert from_sparse([[False, True], [True, False]]).edges == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((2, 3)), "matrix must be square"),
        (np.zeros(3), "matrix must be square"),
        ([[0, 1], [1]], "matrix must be square"),
        (np.zeros((2, 2), dtype=complex), "matrix must be square and of real numbers"),
        (
            sparse.csr_array([[0, 0, 1], [0, 0, 0], [0, 0, 0]]),
            "matrix is directed input: nodes 0 and 2 are joined one way only",
        ),
        (np.eye(2), r"matrix: edge \(0, 0\) joins a node to itself"),
        ([[0, math.nan], [math.nan, 0]], "matrix has entries that are not finite"),
        (np.zeros((0, 0)), "n must be at least 1"),
    ],
)
def test_from_sparse_refuses(given, message):
    with refused(message):
        from_sparse(given)


# Files


def write(folder, content, name="edges.txt"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@settings(max_examples=30)
@given(pair_lists())
def test_file_round_trips(tmp_path_factory, case):
    graph, folder = from_edges(*case), tmp_path_factory.mktemp("graphs")
    lines = [*map(str, range(graph.n)), *(f"{a} {b}" for a, b in case[1])]
    write(folder, "\n".join(lines), "text.txt")
    sparse.save_npz(folder / "matrix.npz", graph.adjacency())
    nx.write_graphml(graph.to_networkx(), folder / "xml.graphml")
    for name in ("text.txt", "matrix.npz", "xml.graphml"):
        back = load(folder / name)
        assert same(graph, back)
        assert (back.labels, back.name) == (None, name.split(".")[0])


def test_text_is_read_leniently(tmp_path):
    graph = load(str(write(tmp_path, "\ufeff# friends\r\nann, bob\n\n  bob\teve # close\ndan\ncat,ann")))
    assert graph.labels == ("ann", "bob", "eve", "dan", "cat")
    assert [graph.neighbours(i).tolist() for i in range(5)] == [[1, 4], [0, 2], [1], [], [0]]


@pytest.mark.parametrize(
    ("content", "labels"),
    [
        ("10 2\n2 0\n", ("0", "2", "10")),
        ("1 0\n2 1\n", None),
        ("10 x\nx 2\n", ("10", "x", "2")),
        ("02 1\n", ("02", "1")),
        ("-1 0\n", ("-1", "0")),
    ],
)
def test_names_of_nodes_in_files(tmp_path, content, labels):
    assert load(write(tmp_path, content)).labels == labels


def test_graphml_names(tmp_path):
    nx.write_graphml(nx.Graph([("b", "a")]), tmp_path / "g.graphml")
    assert load(tmp_path / "g.graphml").labels == ("b", "a")
    nx.write_graphml(nx.Graph([(5, 3)]), tmp_path / "g.GraphML")
    assert load(tmp_path / "g.GraphML").labels == ("3", "5")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("edges.txt", "0 1\n# three\n\n1 2 3\n", "edges.txt, line 4: 3 names; an edge has two"),
        ("edges.txt", "0 1\n2\n1 1\n", r"edges.txt, line 3: edge \(1, 1\) joins a node to itself"),
        ("edges.csv", "a,b\nc\nb,a\n", r"edges.csv, line 3: edge \(b, a\) is given before, at edges.csv, line 1"),
        ("edges.txt", "10 12\n12 10\n", r"edges.txt, line 2: edge \(12, 10\) is given before"),
        ("edges.txt", "# nothing\n", "edges.txt: no edges; write two node names a line"),
        ("edges.txt", b"\xff\xfe0\x00", "edges.txt: not a text of edges in UTF-8"),
        ("edges.txt", b"0 1\x00", "edges.txt: not a text of edges in UTF-8"),
        ("edges.graphml", "<graphml>", "edges.graphml: not GraphML"),
        ("edges.npz", "0 1\n", "edges.npz: not a matrix of scipy"),
        ("edges.npz", "", "edges.npz: not a matrix of scipy"),
    ],
)
def test_load_refuses(tmp_path, name, content, message):
    with refused(message):
        load(write(tmp_path, content, name))


@pytest.mark.parametrize("name", ["a.txt", "a.graphml", "a.npz"])
def test_load_refuses_a_missing_file(tmp_path, name):
    with refused(f"{name}: No such file or directory"):
        load(tmp_path / name)


def test_load_refuses_a_folder(tmp_path):
    with refused("Is a directory"):
        load(tmp_path)


def test_load_names_the_file_of_a_wrong_graph(tmp_path):
    nx.write_graphml(nx.DiGraph([(0, 1)]), tmp_path / "one.graphml")
    with refused("^one.graphml is directed"):
        load(tmp_path / "one.graphml")
    sparse.save_npz(tmp_path / "two.npz", sparse.csr_array(np.triu(np.ones((2, 2)))))
    with refused("^two.npz is directed input"):
        load(tmp_path / "two.npz")


# Generators


@given(st.sampled_from(list(graphs.KINDS)), st.integers(3, 30).map(lambda half: 2 * half), SEEDS)
def test_every_kind(kind, n, seed):
    graph = make(kind, n, rng=seed)
    check_structure(graph)
    assert (graph.n, graph.name, graph.is_connected) == (n, kind, True)


@given(st.sampled_from(RANDOM), st.integers(6, 40), SEEDS)
def test_same_seed_same_graph(kind, n, seed):
    first = make(kind, n, rng=seed)
    assert same(first, make(kind, n, rng=seed))
    assert same(first, make(kind, n, rng=np.random.default_rng(seed)))


@pytest.mark.parametrize("kind", RANDOM)
def test_other_seed_other_graph(kind):
    assert not same(make(kind, 50, rng=1), make(kind, 50, rng=2))
    assert make(kind, 50).is_connected


def test_fixed_shapes_are_those_of_networkx():
    for graph, want in [
        (graphs.ring(3), nx.cycle_graph(3)),
        (graphs.ring(8), nx.cycle_graph(8)),
        (graphs.complete(2), nx.complete_graph(2)),
        (graphs.complete(7), nx.complete_graph(7)),
        (graphs.complete(8), nx.complete_graph(8)),
        (graphs.path(2), nx.path_graph(2)),
        (graphs.path(9), nx.path_graph(9)),
        (graphs.star(2), nx.star_graph(1)),
        (graphs.star(9), nx.star_graph(8)),
        (graphs.grid(3, 4), nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))),
        (graphs.watts_strogatz(10, 4, 0), nx.circulant_graph(10, [1, 2])),
        (graphs.watts_strogatz(5, 4, 1), nx.complete_graph(5)),
        (graphs.erdos_renyi(6, 1), nx.complete_graph(6)),
        (graphs.rgg(6, math.inf), nx.complete_graph(6)),
        (graphs.barabasi_albert(5, 4), nx.star_graph(4)),
    ]:
        assert same(graph, from_networkx(want))


def test_grid_positions():
    graph = graphs.grid(2, 3)
    assert graph.positions is not None
    assert graph.positions.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
    assert [make("grid", n).degree.max() for n in (2, 3, 4, 12)] == [1, 2, 2, 4]


@given(st.integers(2, 40), SEEDS)
def test_tree(n, seed):
    graph = graphs.tree(n, seed)
    assert graph.is_connected
    assert graph.edges == n - 1


def test_trees_are_uniform():
    rng = np.random.default_rng(5)
    drawn = [graphs.tree(4, rng) for _ in range(1600)]
    _, counts = np.unique([graph.source * 4 + graph.target for graph in drawn], axis=0, return_counts=True)
    assert counts.size == 4 ** (4 - 2)
    assert ((counts - 100) ** 2 / 100).sum() < 40, "chi-square with 15 degrees of freedom"


@given(st.integers(2, 40), st.floats(0.05, 1.5), SEEDS)
def test_rgg_joins_what_is_near(n, radius, seed):
    graph = graphs.rgg(n, radius, seed, connected=False)
    check_structure(graph)
    assert graph.positions is not None
    distance = np.linalg.norm(graph.positions[:, None] - graph.positions, axis=2)
    assert np.array_equal(graph.adjacency().toarray(), (distance <= radius) & ~np.eye(n, dtype=bool))


def test_erdos_renyi_joins_each_pair_alike():
    rng = np.random.default_rng(1)
    total = sum(graphs.erdos_renyi(7, 0.3, rng, connected=False).adjacency().toarray() for _ in range(1000))
    off = total[~np.eye(7, dtype=bool)] / 1000
    assert abs(off.mean() - 0.3) < 0.02
    assert np.abs(off - 0.3).max() < 0.06


@given(st.integers(3, 40), st.data())
def test_watts_strogatz(n, data):
    k = data.draw(st.integers(1, (n - 1) // 2).map(lambda half: 2 * half))
    graph = graphs.watts_strogatz(n, k, data.draw(st.floats(0, 1)), data.draw(SEEDS), connected=False)
    check_structure(graph)
    assert graph.edges == n * k // 2
    assert graph.degree.min() >= k // 2


def test_watts_strogatz_rewires_as_often_as_asked():
    lattice = graphs.watts_strogatz(2000, 6, 0).adjacency()
    kept = graphs.watts_strogatz(2000, 6, 0.25, rng=3).adjacency().multiply(lattice).sum() / lattice.sum()
    assert abs(kept - 0.75) < 0.03


@given(st.integers(2, 40), st.data())
def test_barabasi_albert(n, data):
    m = data.draw(st.integers(1, n - 1))
    graph = graphs.barabasi_albert(n, m, data.draw(SEEDS))
    check_structure(graph)
    assert graph.is_connected
    assert graph.edges == m + m * (n - m - 1)


def test_barabasi_albert_prefers_the_rich():
    assert graphs.barabasi_albert(2000, 2, rng=1).degree.max() > 40


@given(st.integers(3, 24), st.data())
def test_regular(n, data):
    k = data.draw(st.integers(2, n - 1).filter(lambda k: n * k % 2 == 0))
    graph = graphs.regular(n, k, data.draw(SEEDS))
    check_structure(graph)
    assert graph.is_connected
    assert (graph.degree == k).all()


def test_speed_of_large_graphs():
    """Sizes at which anything quadratic, or a Python loop over edges, would be felt."""
    graph = graphs.rgg(100_000, math.sqrt(10 / (math.pi * 1e5)), rng=1, connected=False)
    assert graph.reverse.size == graph.degree.sum()
    assert graphs.erdos_renyi(100_000, 1e-4, rng=1, connected=False).edges > 400_000
    assert graphs.regular(50_000, 8, rng=1).is_connected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: graphs.ring(2), "n must be at least 3; got 2"),
        (lambda: graphs.ring("9"), "n must be a whole number, not str"),
        (lambda: graphs.complete(1), "n must be at least 2"),
        (lambda: graphs.path(1), "n must be at least 2"),
        (lambda: graphs.star(1), "n must be at least 2"),
        (lambda: graphs.tree(1), "n must be at least 2"),
        (lambda: graphs.tree(5, rng=-1), "rng must be a seed"),
        (lambda: graphs.tree(5, rng="x"), "rng must be a seed"),
        (lambda: graphs.grid(0, 3), "rows must be at least 1; got 0"),
        (lambda: graphs.grid(3, 0), "columns must be at least 1; got 0"),
        (lambda: graphs.grid(1, 1), "rows × columns must be at least 2; got 1"),
        (lambda: graphs.rgg(1), "n must be at least 2"),
        (lambda: graphs.rgg(100, 0), r"radius must be a number above 0; try 0\.303"),
        (lambda: graphs.rgg(100, math.nan), "radius must be a number above 0"),
        (lambda: graphs.rgg(100, "1"), "radius must be a number above 0"),
        (lambda: graphs.rgg(100, 0.01, rng=1), r"none of 100 draws of rgg with 100 nodes .*; try radius=0\.303"),
        (lambda: graphs.erdos_renyi(1), "n must be at least 2"),
        (lambda: graphs.erdos_renyi(9, 1.5), "p must be a probability, from 0 to 1"),
        (lambda: graphs.erdos_renyi(9, "1"), "p must be a probability"),
        (lambda: graphs.erdos_renyi(50, 0.01, rng=1), r"none of 100 draws of er with 50 nodes .*; try p=0\.156"),
        (lambda: graphs.watts_strogatz(2, 2), "n must be at least 3"),
        (lambda: graphs.watts_strogatz(9, 3), "k must be even, half on each side of the ring; got 3, try 2"),
        (lambda: graphs.watts_strogatz(4, 4), "k must be from 2 to 3; got 4"),
        (lambda: graphs.watts_strogatz(9, 4, -0.1), "p must be a probability"),
        (lambda: graphs.barabasi_albert(1), "n must be at least 2"),
        (lambda: graphs.barabasi_albert(5, 0), "m must be from 1 to 4; got 0"),
        (lambda: graphs.barabasi_albert(5, 5), "m must be from 1 to 4; got 5"),
        (lambda: graphs.regular(2, 1), "n must be at least 3"),
        (lambda: graphs.regular(9, 1), "k must be from 2 to 8; got 1"),
        (lambda: graphs.regular(9, 9), "k must be from 2 to 8; got 9"),
        (lambda: graphs.regular(9, 3), r"n × k must be even .*; got 9 × 3, try 10 nodes"),
        (lambda: make("grid", 1), "n must be at least 2"),
        (lambda: make("grid", 13), "13 nodes make no grid, as 13 is prime; try 14"),
        (
            lambda: make("rign", 5),
            "unknown kind of graph 'rign'; the kinds are ring, complete, .*regular; did you mean ring[?]",
        ),
        (lambda: make("zzz", 5), "unknown kind of graph 'zzz'; the kinds are ring"),
        (lambda: make("ring", 5, radius=1), "ring has no option 'radius'; its options: none"),
        (lambda: make("ws", 5, radius=1), "ws has no option 'radius'; its options: k, p, connected"),
    ],
)
def test_generators_refuse(call, message):
    with refused(message):
        call()


@pytest.mark.parametrize("kind", [*graphs.KINDS, "listed"])
def test_absurd_sizes(kind):
    """Refused with the estimate, before anything of that size is made."""
    n = 10**13 if kind != "regular" else 10**13 + 1
    options = {"listed": True} if kind == "listed" else {}
    if kind == "complete":
        assert make(kind, n).edges == n * (n - 1) // 2
        return
    with refused(r" nodes: about \S+ [TPE]iB of memory, and this machine has .*; try fewer nodes"):
        make("complete" if kind == "listed" else kind, n, rng=1, **options)


@pytest.mark.parametrize("listed", [1, "yes"])
def test_listed_is_yes_or_no(listed):
    with refused("listed must be True, False or None"):
        graphs.complete(5, listed=listed)


def test_redrawing_ends(monkeypatch):
    monkeypatch.setattr(graphs.generators, "_DRAWS", 2)
    with refused("none of 2 draws of ws with 2000 nodes was connected; try a larger k or a smaller p"):
        graphs.watts_strogatz(2000, 2, 1, rng=1)


def test_make_passes_options():
    assert make("regular", 10, rng=1).degree.max() == 4
    assert make("ba", 10, rng=1, m=3).edges == 3 + 3 * 6
    assert same(make("er", 30, rng=1, p=0.05, connected=False), graphs.erdos_renyi(30, 0.05, 1, connected=False))
    assert same(make("ring", np.int32(5), rng=1), graphs.ring(5))


@pytest.mark.parametrize("n", [3, 4, 5, 17])
def test_a_ring_is_that_of_its_edges(n):
    assert_same(graphs.ring(n), graphs.from_edges(n, [(i, (i + 1) % n) for i in range(n)]))


@pytest.mark.parametrize("n", [2, 3, 17])
def test_a_path_is_that_of_its_edges(n):
    assert_same(graphs.path(n), graphs.from_edges(n, [(i, i + 1) for i in range(n - 1)]))


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (2, 1), (2, 2), (1, 7), (7, 1), (3, 5), (6, 4)])
def test_a_grid_is_that_of_its_edges(rows, columns):
    node = np.arange(rows * columns).reshape(rows, columns)
    pairs = [*zip(node[:, :-1].flat, node[:, 1:].flat, strict=True), *zip(node[:-1].flat, node[1:].flat, strict=True)]
    positions = [(column, row) for row in range(rows) for column in range(columns)]
    assert_same(graphs.grid(rows, columns), graphs.from_edges(rows * columns, np.array(pairs), positions=positions))


def assert_same(graph, other):
    assert (graph.n, graph.edges) == (other.n, other.edges)
    for name in ("source", "target", "reverse", "sign", "degree", "positions"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(other, name))
        assert getattr(graph, name) is None or getattr(graph, name).dtype == getattr(other, name).dtype
    assert not graph.source.flags.writeable


@pytest.mark.parametrize("seed", range(6))
def test_the_diameter_of_a_large_graph_is_twice_the_way_from_a_node_of_highest_degree(seed):
    rng = np.random.default_rng(seed)
    graph = graphs.barabasi_albert(2_100, int(rng.integers(1, 3)), rng=rng) if seed % 2 else graphs.tree(2_100, rng=rng)
    hops = csgraph.dijkstra(graph.adjacency(), unweighted=True, indices=int(graph.degree.argmax()))
    assert graph.is_connected
    assert graph.diameter() == 2 * hops.max()


def test_a_large_graph_that_falls_apart():
    graph = graphs.from_edges(301, [(i, i + 1) for i in range(299)])
    assert not graph.is_connected
    assert [len(part) for part in graph.components()] == [300, 1]
    with pytest.raises(InputError, match="2 components"):
        graph.diameter()

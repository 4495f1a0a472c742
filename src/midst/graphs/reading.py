"""Graphs read from networkx, matrices and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from midst.errors import InputError
from midst.graphs.graph import Graph, as_array, build, import_networkx

if TYPE_CHECKING:
    import networkx as nx

_INTEGER = re.compile(r"0|[1-9][0-9]{0,17}")


def from_networkx(graph: nx.Graph[Any]) -> Graph:
    """A graph from networkx, nodes in its order; labels are kept unless the nodes are exactly 0..n-1 in order.

    Raises:
        InputError: if it is directed, has self-loops or has parallel edges.
        MissingExtra: if networkx is not installed.
    """
    if not isinstance(graph, import_networkx().Graph):
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


def _from_networkx(
    graph: nx.Graph[Any], nodes: list[Any], labels: Sequence[str] | None, name: str, where: str
) -> Graph:
    if graph.is_directed():
        raise InputError(f"{where} is directed; try its to_undirected()")
    index = {node: i for i, node in enumerate(nodes)}
    pairs = [(index[a], index[b]) for a, b in graph.edges()]
    return build(len(nodes), pairs, name, labels, None, place=lambda k: f"{where}, edge {k + 1}")


def _from_matrix(matrix: Any, name: str, where: str) -> Graph:
    from scipy import sparse

    given: Any = matrix if sparse.issparse(matrix) else as_array(matrix)
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
    return build(joined.shape[0], pairs, name, None, None, place=lambda k: where)


def _read_text(path: Path) -> Graph:
    with _reading(path, "a text of edges in UTF-8"):
        text = path.read_text(encoding="utf-8-sig")
        if "\0" in text:
            raise ValueError("binary")
    return replace(parse_edges(text, path.name), name=path.stem)


def parse_edges(text: str, where: str) -> Graph:
    """A graph from a text of edges, as `load` documents.

    Args:
        text: two names a line.
        where: what an error calls the text.

    Raises:
        InputError: naming the line.
    """
    names: list[str] = []
    pairs: list[list[str]] = []
    lines: list[int] = []
    for line, content in enumerate(text.split("\n"), start=1):
        words = content.partition("#")[0].replace(",", " ").split()
        if len(words) > 2:
            raise InputError(f"{where}, line {line}: {len(words)} names; an edge has two, a node without edges one")
        names += words
        if len(words) == 2:
            pairs.append(words)
            lines.append(line)
    if not names:
        raise InputError(f"{where}: no edges; write two node names a line")
    nodes, labels = _arrange(names)
    index = {node: i for i, node in enumerate(nodes)}
    ends = [(index[a], index[b]) for a, b in pairs]
    return build(len(nodes), ends, where, labels, None, place=lambda k: f"{where}, line {lines[k]}")


def _read_graphml(path: Path) -> Graph:
    networkx = import_networkx()
    with _reading(path, "GraphML"):
        graph = networkx.read_graphml(path)
    return _from_networkx(graph, *_arrange(graph), path.stem, where=path.name)


def _read_npz(path: Path) -> Graph:
    from scipy import sparse

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

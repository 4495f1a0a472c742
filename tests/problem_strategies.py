"""Random problems for property tests: any kind of graph, any objective, and data of every nasty shape."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from midst import Mean, Problem, Quantile, graphs

KINDS = tuple(graphs.KINDS)


@st.composite
def graph_of(draw, min_nodes=2, max_nodes=60):
    kind = draw(st.sampled_from(KINDS))
    n = draw(st.integers(min_nodes, max_nodes))
    seed = draw(st.integers(0, 2**32 - 1))
    if kind in ("ring", "ws", "ba", "regular"):
        n = max(n, 6)
    if kind == "grid":
        n = max(4, n - n % 2)
    return graphs.make(kind, n, rng=seed)


@st.composite
def data_for(draw, n):
    """Normal, heavy-tailed, tied, constant, shifted, and with outliers of 1e6."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(("normal", "cauchy", "ties", "constant", "shifted", "outliers", "integers")))
    normal = rng.normal(size=n)
    return {
        "normal": normal,
        "cauchy": rng.standard_cauchy(n),
        "ties": rng.integers(0, 3, n).astype(float),
        "constant": np.full(n, normal[0]),
        "shifted": normal + 1000,
        "outliers": np.where(rng.random(n) < 0.2, rng.choice([-1e6, 1e6], n), normal),
        "integers": rng.integers(-5, 6, n).astype(float),
    }[kind]


@st.composite
def objective_of(draw):
    kind = draw(st.sampled_from(("median", "quantile", "maximum", "minimum", "mean")))
    definition = draw(st.sampled_from(("any", "inverted_cdf", "inverted_cdf_high")))
    if kind == "mean":
        return Mean()
    q = {"median": 0.5, "maximum": 1, "minimum": 0}.get(kind)
    return Quantile(draw(st.sampled_from((0.1, 0.25, 1 / 3, 0.75, 0.9))) if q is None else q, definition)


@st.composite
def weights_for(draw, n):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(("none", "whole", "tenths", "zeros", "reals")))
    whole = rng.integers(1, 6, n).astype(float)
    zeros = np.where(rng.random(n) < 0.3, 0.0, whole)
    zeros[rng.integers(n)] = 1.0
    return {"none": None, "whole": whole, "tenths": whole / 10, "zeros": zeros, "reals": rng.random(n) + 0.1}[kind]


@st.composite
def problems(draw, max_nodes=60, objectives=None, min_nodes=2):
    graph = draw(graph_of(min_nodes, max_nodes))
    return Problem(
        graph,
        draw(data_for(graph.n)),
        objective=draw(objective_of() if objectives is None else objectives),
        weights=draw(weights_for(graph.n)),
    )

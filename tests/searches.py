"""Traces of searches, made by asking every participant directly."""

from __future__ import annotations

import numpy as np

from midst import graphs
from midst.objectives import Quantile
from midst.protocol.keys import first_bracket, make_keys
from midst.protocol.search import Cells, Goal, OwnValues, Rules, SearchState, contribution
from midst.trace import Probe, Trace


def search_trace(
    values,
    *,
    q=0.5,
    definition="inverted_cdf",
    resolution=None,
    bounds=None,
    weights=None,
    owners=None,
    arity=3,
    spacing="rank",
    keep_values=False,
    quantiles=(),
    opening=(),
):
    """The trace of a search over values of any shape (n,) or, with owners, of lists."""
    values = np.asarray(values, np.float64)
    whose = np.arange(len(values)) if owners is None else np.asarray(owners)
    n = int(whose.max()) + 1
    whole_weights = np.ones(n, np.int64) if weights is None else np.asarray(weights, np.int64)
    weight = whole_weights[whose]
    objective, total = Quantile(q, definition), int(weight.sum())
    keys = make_keys(resolution)
    units = set(weight[weight > 0].tolist())
    rules = Rules(
        keys,
        (first_bracket(keys, bounds),),
        total,
        units.pop() if len(units) == 1 else None,
        (Goal(0, objective.ranks(total)),),
        arity,
        spacing,
        tuple(quantiles),
        (tuple(keys.key(float(end)) for end in opening),) if len(opening) else (),
    )
    own = [OwnValues((np.sort(keys.keys(values[whose == i])),)) for i in range(n)]
    search, probes = SearchState.begin(rules), []
    while (question := search.question) is not None:
        told = np.sum([contribution(question, own[i], int(whole_weights[i])) for i in range(n)], axis=0).tolist()
        start = 0
        for part in question:
            if isinstance(part, Cells):
                probes.append(Probe(search.steps, 0, keys, part.edges, tuple(told[start : start + part.numbers])))
            start += part.numbers
        search = search.fold(told)
    answer = search.value(0)
    edges = {edge for probe in probes for edge in probe.edges} | {keys.key(answer) - 1, keys.key(answer)}
    places = [sum(edge < key for edge in edges) for key in keys.keys(values).tolist()]
    return Trace(
        graph=graphs.complete(n),
        objective=objective,
        whole_weights=whole_weights,
        unit_weight=1.0,
        parameters={},
        iterations=0,
        t=np.zeros(0, np.int64),
        x=np.zeros((0, n)),
        branch=np.zeros((0, n), np.int8),
        probes=tuple(probes),
        answer=(answer,),
        places=np.array(places, np.int64),
        owners=None if owners is None else whose,
        values=values if keep_values else None,
    )

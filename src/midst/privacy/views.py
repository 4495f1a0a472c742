"""What an adversary sees of a run.

Rules:
- Whatever is said about a node is computed from the `View`: two traces that look the same to an adversary give the same
  view, and so the same report. What is read of a trace is read here, by `trace_reader.py` and by `published.py`; the
  audit itself asks it only of what kind the run was.
- A view holds messages and what anybody could compute from them and from public facts. Weights are public facts.
- Of each honest node it has one observation (`observations.py`).
- What a search told, and the answer, is the same for all who listen, but for what they brought: `published.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from midst.errors import InputError
from midst.graphs import Graph
from midst.objectives import built_in
from midst.privacy.adversaries import Adversary
from midst.privacy.observations import Branches, Observation, Public, Unseen, shifted_subgradients
from midst.privacy.published import Published, is_search, read_published
from midst.privacy.trace_reader import TraceReader
from midst.trace import Trace
from midst.types import Array, Bools, Ints

SHORTEST = 4  # iterations of which `sealed.py` knows what they tell


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """What one adversary sees.

    Attributes:
        adversary: who.
        public: what everybody knows.
        observations: one for every honest node, in ascending order of nodes.
        messages: x(t) of every t, where the trace has them; NaN of nodes that are not heard.
        sums: S_i(0) and R_i(0) as far as the adversary knows their terms, where the trace has them.
        published: what a search made public, and the answer; None where there was neither.
    """

    adversary: Adversary
    public: Public
    observations: tuple[Observation, ...]
    messages: Array | None = None
    sums: tuple[Array, Array] | None = None
    published: Published | None = None

    def __repr__(self) -> str:
        return f"<View of {self.adversary}: {len(self.observations)} honest nodes, {self.public.iterations} iterations>"

    @property
    def honest(self) -> Ints:
        """The honest nodes."""
        return np.array([observation.node for observation in self.observations], np.int64)


def view(trace: Trace, adversary: Adversary, coordinate: int | None = None) -> View:
    """What an adversary sees of a run.

    Args:
        trace: the record of the run.
        adversary: who looks.
        coordinate: which coordinate, where the values are vectors; coordinates run independently of each other.

    Raises:
        InputError: the adversary does not fit the graph, the trace lacks what is needed (the message says which
            `record` brings it), or there is no theory for what is asked.
    """
    adversary.check(trace.graph)
    coordinate = _coordinate(trace, coordinate)
    public = read_published(trace, adversary, coordinate)
    if is_search(trace):
        return view_of_search(trace, adversary, public)
    return replace(_messages(trace, adversary, TraceReader(trace, coordinate)), published=public)


def view_of_search(trace: Trace, adversary: Adversary, public: Published | None) -> View:
    """What is seen where no node has sent anything about its value but what was published."""
    if public is None:
        raise InputError("nothing was run: this trace has no iterations, no search and no answer")
    weights = trace.whole_weights if trace.owners is None else trace.whole_weights[trace.owners]
    objective = built_in(trace.objective)
    title = objective.title(int(weights.sum()))
    slopes = objective.slopes(trace.whole_weights, trace.unit_weight)
    no = math.nan  # an iteration's parameters
    about = Public(trace.graph, title, False, *slopes, trace.whole_weights, no, no, no, no, no, iterations=0)
    honest = np.flatnonzero(~_is_corrupt(trace.graph, adversary)).tolist()
    return View(adversary, about, tuple(map(Unseen, honest)), published=public)


def _messages(trace: Trace, adversary: Adversary, reader: TraceReader) -> View:
    """What the messages of the iteration tell."""
    corrupt = _is_corrupt(trace.graph, adversary)
    honest = np.flatnonzero(~corrupt)
    surrounded = _count_neighbours(trace.graph, ~corrupt) == 0
    near = _count_neighbours(trace.graph, corrupt) > 0
    everybody = hears_everybody(trace, adversary)
    known = corrupt[trace.graph.source] | corrupt[trace.graph.target] | (reader.public.sigma == 0)
    clear = adversary.eavesdrops and adversary.init == "clear"
    if reader.smooth and not clear:
        title = reader.public.title
        raise InputError(f"the {title} is audited with z(0) in the clear only (init clear, eavesdropping)")
    if clear or (everybody and reader.public.sigma == 0):
        sums = None if reader.z0 is None else reader.sums(np.ones(len(trace.graph.source), np.bool_))
        observations: list[Observation] = [reader.clearly(i, sums) for i in honest.tolist()]
        return View(adversary, reader.public, tuple(observations), reader.frames, sums)
    if not everybody:
        if reader.public.sigma == 0:  # z(0) is no secret, and hides nothing of whoever is heard with all its neighbours
            surrounded = near & (_count_neighbours(trace.graph, ~(near | corrupt)) == 0)
        observations = [
            reader.branches(i) if surrounded[i] else reader.heard(i) if near[i] else Unseen(i) for i in honest.tolist()
        ]
        if not reader.has_messages:
            return View(adversary, reader.public, tuple(observations))
        heard = np.where(near | corrupt, reader.messages(), np.nan)
        return View(adversary, reader.public, tuple(observations), heard, reader.sums(known))
    if trace.parameters["theta"] != 0.5:
        raise InputError("sealed z(0) is audited for theta = 0.5 only; this trace has another theta")
    if trace.iterations < SHORTEST:
        raise InputError(f"sealed z(0) is audited from {SHORTEST} iterations on; run longer")
    sums, x = reader.sums(known), reader.messages()
    q = shifted_subgradients(reader.public, x, *sums)
    observations = [
        reader.branches(i) if surrounded[i] else reader.shifted(i, x[:, i], q[:, i]) for i in honest.tolist()
    ]
    return View(adversary, reader.public, tuple(observations), x, sums)


def hears_everybody(trace: Trace, adversary: Adversary) -> bool:
    """Whether the adversary hears every x, and what that tells is known: see `sealed.py`.

    A coalition that every honest node has a neighbour in hears as much as one that eavesdrops.
    """
    if adversary.eavesdrops:
        return True
    corrupt = _is_corrupt(trace.graph, adversary)
    beside = corrupt | (_count_neighbours(trace.graph, corrupt) > 0)
    return bool(beside.all()) and trace.parameters["theta"] == 0.5 and trace.iterations >= SHORTEST


def has_totals(view: View) -> bool:
    """Whether a search told any totals."""
    return view.published is not None and bool(view.published.cells)


def are_apart(view: View) -> bool:
    """Whether the iteration told of each node by itself, whatever the others are."""
    return all(isinstance(observation, Branches) for observation in view.observations)


def _is_corrupt(graph: Graph, adversary: Adversary) -> Bools:
    return np.isin(np.arange(graph.n), adversary.check(graph))


def _count_neighbours(graph: Graph, among: Bools) -> Ints:
    return np.bincount(graph.source[among[graph.target]], minlength=graph.n)


def _coordinate(trace: Trace, coordinate: int | None) -> int:
    count = int(np.prod(trace.x.shape[2:]))
    if coordinate is None:
        if trace.x.ndim > 2:
            raise InputError(f"the values have {count} coordinates; audit one of them: coordinate 0 to {count - 1}")
        return 0
    if not 0 <= coordinate < count:
        raise InputError(f"coordinate {coordinate} does not exist; there are {count}, from 0")
    return int(coordinate)

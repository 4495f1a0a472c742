"""Aggregation with all clients in one process: what a network would find, what it would cost, and what it gives away.

Rules:
- A median is one of the clients' numbers, so it comes back in their own type, to the last bit. An even number of
  clients has two medians, and the **low** one is found unless told otherwise; `numpy.median` gives the mean of the two.
- What is averaged is rounded to a public resolution first: floats cannot be added up behind masks. Totals are exact.
- Everything is checked before the first coordinate is searched.
- Who computes which chunk changes no result.
- A client may attack by what it submits. How it takes part is another matter: all follow the protocol. Between real
  clients, one that does not can put any coordinate anywhere (docs/federated.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from midst import graphs
from midst.engines.vectors import Found, drive, search_sorted
from midst.errors import InputError
from midst.federated.updates import Update, align, count_clients, rebuild
from midst.graphs import Graph
from midst.graphs.spanning import Tree, spanning_tree
from midst.objectives import ENDS, Quantile
from midst.privacy.priors import Prior
from midst.privacy.vectors import LeakageCount, VectorLeakage, add_up_leakage, check_leakage
from midst.problems import names_of
from midst.progress import watch_tasks
from midst.protocol.vectors.lanes import packed_bytes
from midst.protocol.vectors.layout import Chunk
from midst.protocol.vectors.search import Goal
from midst.rows import Report
from midst.system import RNG, streams
from midst.workers import TaskProgress, cores


@dataclass(frozen=True, eq=False)
class Aggregate(Report):
    """The aggregated update, and what it cost.

    Attributes:
        value: the answer, in the structure of one client's update.
        objective: what it is: "median", "low median", "quantile 0.9", "trimmed mean" …
        clients: how many there are.
        coordinates: how many numbers each of them submitted.
        steps: questions that the longest search of a chunk took.
        rounds: message rounds: up the tree and down again for each step, were all chunks searched side by side.
        vector_bytes: what a link carries each way.
        sent: bytes that a client sends, mean and most: one vector to its parent, and one to each of its children.
        leakage: what it gave away, where a prior was given.
    """

    value: Update = field(repr=False)
    objective: str
    clients: int
    coordinates: int
    steps: int
    rounds: int
    vector_bytes: int
    sent: tuple[float, int]
    leakage: VectorLeakage | None = None

    def rows(self) -> list[tuple[str, str]]:
        """As lines for people, (what, how much); nothing of the update itself."""
        found = f"the {self.objective} of {self.coordinates:,} coordinates, over {self.clients:,} clients"
        sent = f"{self.sent[0] / 1e6:,.3g} MB a client, {self.sent[1] / 1e6:,.3g} MB at most"
        rows = [("found", found), ("questions", f"{self.steps:,}, in {self.rounds:,} rounds"), ("sent", sent)]
        if self.leakage is not None:
            leak = self.leakage
            told = f"{leak.bits:.3g} bits a coordinate; floor {leak.floor:.3g}, excess {leak.excess:.3g}"
            rows.append(("gave away", told))
        return rows


class AggregateOptions(TypedDict, total=False):
    """What is public, and how it is computed; none has to be given.

    Attributes:
        bounds: public: a lower and an upper bound of all numbers, to which clients clip theirs.
        resolution: public: numbers are told apart to this, and the answer is a multiple of it; fewer probes.
        graph: who talks to whom: a `Graph` with a node a client, or the name of a kind; all with all if not given.
        rng: a seed or a generator, from which the graph is drawn where only its kind is given.
        prior: what is known of a number beforehand, for the leakage in bits; see `midst.priors`.
        workers: threads; all cores if not given.
        progress: told after every chunk how many coordinates of how many are done; True for a bar.
    """

    bounds: tuple[float, float] | None
    resolution: float | None
    graph: Graph | str | None
    rng: RNG
    prior: Prior | None
    workers: int | None
    progress: TaskProgress | bool | None


def coordinate_median(
    updates: Sequence[Update],
    *,
    definition: Literal["inverted_cdf", "inverted_cdf_high"] = "inverted_cdf",
    weights: ArrayLike | None = None,
    **options: Unpack[AggregateOptions],
) -> Aggregate:
    """The median of every coordinate of the clients' updates.

    While fewer than half of the clients submit bad updates, each median lies between two honest ones. On a network this
    holds if all follow the protocol: a client that lies about its counts can put any coordinate anywhere.

    Args:
        updates: one a client: an array, or dictionaries, lists or tuples of arrays; all of one structure.
        definition: the low or the high of the two medians of an even number of clients. NumPy's is their mean.
        weights: one a client, public whole numbers, such as how many examples it trained on; 1 each if not given.
        **options: bounds, resolution, graph, prior, progress …: see `AggregateOptions`.

    >>> import numpy as np
    >>> from midst.federated import coordinate_median
    >>> updates = [{"w": np.array([0.1, 0.2])}, {"w": np.array([0.3, 0.1])}, {"w": np.array([900.0, -900.0])}]
    >>> found = coordinate_median(updates)
    >>> found.value
    {'w': array([0.3, 0.1])}
    >>> found.clients, found.coordinates
    (3, 2)
    """
    return coordinate_quantile(updates, 0.5, definition=definition, weights=weights, **options)


def coordinate_quantile(
    updates: Sequence[Update],
    q: float | Fraction,
    *,
    definition: Literal["inverted_cdf", "inverted_cdf_high"] = "inverted_cdf",
    weights: ArrayLike | None = None,
    **options: Unpack[AggregateOptions],
) -> Aggregate:
    """The q-quantile of every coordinate of the clients' updates; see `coordinate_median`.

    Args:
        updates: one a client.
        q: which quantile.
        definition: the low or the high of two answers, where q times the total weight is a whole number.
        weights: one a client, public whole numbers.
        **options: see `AggregateOptions`.

    Raises:
        InputError: the updates do not fit each other, the graph or the bounds, or are no finite numbers.
    """
    if definition not in ENDS:
        raise InputError(f"definition must be {' or '.join(ENDS)}, not {definition!r}")
    counted = _whole(weights, count_clients(updates))
    wanted, total = Quantile(q, definition), sum(counted)
    goal = Goal("quantile", total, wanted.ranks(total)[0], alike=set(counted) == {1})
    return _aggregate(updates, goal, wanted.title(total), counted, options)


def trimmed_mean(updates: Sequence[Update], trim: int, **options: Unpack[AggregateOptions]) -> Aggregate:
    """Of every coordinate, the mean of what is left without its smallest and its largest values.

    It lies between two honest values if no more than `trim` clients are bad, and all follow the protocol.

    Args:
        updates: one a client; see `coordinate_median`.
        trim: how many are left out at each end.
        **options: see `AggregateOptions`; bounds and a resolution are needed.
    """
    return _mean("trimmed mean", updates, trim, options)


def mean_around_median(updates: Sequence[Update], trim: int, **options: Unpack[AggregateOptions]) -> Aggregate:
    """Of every coordinate, the mean of the values nearest to the (low) median; known as MeaMed.

    Args:
        updates: one a client; see `coordinate_median`.
        trim: how many are left out, those farthest from the median; of two that are equally far the upper one.
        **options: see `AggregateOptions`; bounds and a resolution are needed.
    """
    return _mean("mean around median", updates, trim, options)


def mean(
    updates: Sequence[Update], *, weights: ArrayLike | None = None, **options: Unpack[AggregateOptions]
) -> Aggregate:
    """The mean of every coordinate: nothing but a sum is asked, and one bad client can put it anywhere in the bounds.

    Args:
        updates: one a client; see `coordinate_median`.
        weights: one a client, public whole numbers.
        **options: see `AggregateOptions`; bounds and a resolution are needed.
    """
    counted = _whole(weights, count_clients(updates))
    goal = Goal("mean", sum(counted), alike=set(counted) == {1})
    return _aggregate(updates, goal, "mean", counted, options)


def _mean(
    statistic: Literal["trimmed mean", "mean around median"],
    updates: Sequence[Update],
    trim: int,
    options: AggregateOptions,
) -> Aggregate:
    n = count_clients(updates)
    if not isinstance(trim, int | np.integer) or isinstance(trim, bool):
        raise InputError("trim must be a whole number of clients")
    return _aggregate(updates, Goal(statistic, n, (n + 1) // 2, int(trim)), statistic, (1,) * n, options)


def _aggregate(
    updates: Sequence[Update], goal: Goal, title: str, weights: tuple[int, ...], options: AggregateOptions
) -> Aggregate:
    if unknown := options.keys() - AggregateOptions.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    layout, clients = align(updates, options.get("bounds"), options.get("resolution"))
    layout.check_goal(goal)
    prior = options.get("prior")
    if prior is not None:
        check_leakage(goal)
    tree = _tree(options.get("graph"), len(updates), options.get("rng"))
    answer = layout.empty()
    finished, results = 0, []

    def search(chunk: Chunk) -> tuple[Found, VectorLeakage | None]:
        """As clients go about it where that is needed, else what is as good and faster."""
        of = layout.formats[chunk.segment]
        offsets = np.stack([of.offsets(layout.gather(arrays, chunk)) for arrays in clients])
        if prior is not None:
            count = LeakageCount(prior, of, goal, offsets.shape[1])
            found = drive(offsets, of.bits, of.most, goal, weights, count.see)
            return found, count.result(found.answer)
        if goal.alike:
            return search_sorted(offsets, of.bits, of.most, goal), None
        return drive(offsets, of.bits, of.most, goal, weights), None

    watching = watch_tasks(options.get("progress"), "aggregate", "coordinates")
    with watching as progress, ThreadPoolExecutor(options.get("workers") or cores()) as pool:
        for chunk, (found, leakage) in zip(layout.chunks, pool.map(search, layout.chunks), strict=True):
            layout.scatter(answer, chunk, layout.read(chunk, found.answer, goal))
            results.append((found.questions, leakage))
            finished += chunk.stop - chunk.start
            if progress is not None:
                progress(finished, layout.coordinates)
    steps = max(len(questions) for questions, _ in results)
    each = sum(packed_bytes(question) for questions, _ in results for question in questions)
    return Aggregate(
        value=rebuild(updates[0], iter(answer)),
        objective=title,
        clients=len(updates),
        coordinates=layout.coordinates,
        steps=steps,
        rounds=steps * 2 * tree.depth,
        vector_bytes=each,
        sent=(each * float(np.mean(tree.vectors_sent)), each * max(tree.vectors_sent)),
        leakage=add_up_leakage([leakage for _, leakage in results if leakage is not None]),
    )


def _tree(graph: Graph | str | None, clients: int, rng: RNG) -> Tree:
    """Along which sums travel."""
    if graph is None or isinstance(graph, str):
        graph = graphs.make(graph or "complete", clients, rng=streams(rng).graph)
    if not isinstance(graph, Graph):
        raise InputError("graph must be a midst.Graph or the name of a kind; try midst.graphs.from_networkx(G)")
    if graph.n != clients:
        raise InputError(f"{clients} updates for a graph of {graph.n} nodes; one update a node is needed")
    return spanning_tree(graph)


def _whole(weights: ArrayLike | None, clients: int) -> tuple[int, ...]:
    """Weights as whole numbers."""
    if weights is None:
        return (1,) * clients
    given = np.asarray(weights)
    odd = np.ma.is_masked(weights) or names_of(weights) not in (None, [*range(clients)])
    if odd or given.shape != (clients,) or given.dtype.kind not in "iuf" or not (given == np.rint(given)).all():
        raise InputError("weights must be one whole number a client, in their order, without a mask or names")
    whole = tuple(map(int, np.array(weights, object)))  # a list of whole numbers and floats is no array of floats here
    if min(whole, default=0) < 0 or not 0 < sum(whole) < 2**62:
        raise InputError("weights must be whole numbers from 0 on, and not all of them 0")
    return whole

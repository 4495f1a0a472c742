"""Robust aggregation for federated learning: the median of every coordinate of the clients' updates, over a graph.

Rules:
- A client's update is an array, or dictionaries, lists and tuples of arrays, nested as they come: a state_dict, a list
  of weights, a tree of parameters. Whatever NumPy can read will do (torch, JAX, TensorFlow); none of them is imported.
- Every coordinate is a run of its own and ends with its own proof: coordinate k is
  `solve(problem_k, method, rng=child_k)`. Neither the values nor who was exposed depend on how coordinates are cut into
  chunks. The method is the paper's consensus unless told otherwise; by `midst.Search` nobody is exposed.
- A median is one of the clients' numbers, so it comes back in their own dtype, to the last bit. An even number of
  clients has two medians, and the **low** one is found unless told otherwise; `numpy.median` gives the mean of the two.
  With an odd number they are the same.
- Everything is checked before the first run.
- This simulates all clients in one process. Without a public scale or public bounds, both are read off the updates, as
  real clients could not, and the result says `public: "estimated"`.
- A client may attack by what it submits. How it takes part is another matter: all follow the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from midst import graphs
from midst.engines.ensemble import solve_ensemble
from midst.errors import InputError, NotCertified
from midst.graphs import Graph
from midst.methods import Consensus, Exact, Method, MethodName, Search, make_method
from midst.objectives import Quantile
from midst.problems import Problem
from midst.system import RNG, streams
from midst.types import Array, Bools, Ints
from midst.workers import TaskProgress

Update = Any  # an array, or a Mapping, list or tuple of updates
Leaf = NDArray[Any]
Route = tuple[Any, ...]  # the keys that lead to a leaf

_MEMORY = 256 * 2**20  # bytes of working memory
_MOST = 10**9  # (client, coordinate) pairs
_WHOLE = 2**53  # beyond it a float64 leaves out whole numbers


class _Cost(NamedTuple):
    """What a method takes on one core.

    Attributes:
        seconds: for a (client, coordinate) pair.
        longest: coordinates in a chunk: with more it is no faster, and a chunk is a step of the progress.
        each: bytes of working memory a coordinate,
        client: and for each of its clients,
        edge: and for each of its edges, which count twice.
    """

    seconds: float
    longest: int
    each: int
    client: int
    edge: int


_CONSENSUS = _Cost(5e-6, 4_000, 2_000, 400, 28)  # measured: 4 to 12 microseconds, on graphs of 10 to 200 clients
_SEARCH = _Cost(4e-7, 50_000, 1_000, 80, 0)  # measured: 0.1 to 0.6 microseconds


@dataclass(frozen=True)
class Chunk:
    """What became of some of the coordinates, counted through all parameters in order.

    Attributes:
        start: the first.
        stop: one past the last.
        certified: whether every one of them is proved.
        rounds: how many rounds of messages the longest of their runs took.
        exposed: (client, coordinate) pairs in which the client sent its own number.
    """

    start: int
    stop: int
    certified: bool
    rounds: int
    exposed: int


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The aggregated update, whether it is proved, and how much was given away on the way.

    Attributes:
        value: the answer, in the structure of one client's update.
        objective: what it is: "median", "low median", "quantile 0.9" …
        clients: how many there are.
        coordinates: how many numbers each of them submitted.
        chunks: what became of the coordinates, some at a time.
        exposed_by_client: for each client, how many of its numbers it sent as they are. What its messages tell besides
            (bounds and bits) is for `midst.audit` to say, of a run of one coordinate.
        public: "given", or "estimated" where the scale was read off the updates, as only a simulation can.
    """

    value: Update = field(repr=False)
    objective: str
    clients: int
    coordinates: int
    chunks: tuple[Chunk, ...] = field(repr=False)
    exposed_by_client: Ints = field(repr=False)
    public: str

    @property
    def certified(self) -> bool:
        """Whether every coordinate is proved."""
        return all(chunk.certified for chunk in self.chunks)

    @property
    def rounds(self) -> int:
        """Of messages, in the longest run of a coordinate; of all of them, if they run side by side."""
        return max(chunk.rounds for chunk in self.chunks)

    @property
    def exposed(self) -> int:
        """How many (client, coordinate) pairs were exposed, of clients times coordinates."""
        return sum(chunk.exposed for chunk in self.chunks)

    @property
    def exposed_share(self) -> float:
        """The same as a share; 0 by a search."""
        return self.exposed / (self.clients * self.coordinates)


class AggregateOptions(TypedDict, total=False):
    """What is public, and how a run goes; none has to be given.

    Attributes:
        weights: one a client, public, such as how many examples it trained on; 1 each if not given.
        scale: public: about how far the clients' numbers lie from each other. One number for all coordinates, or the
            structure of an update with a number or an array for each parameter.
        bounds: public: a lower and an upper bound, each like `scale`.
        rng: a seed or a generator from which z(0) is drawn, and the graph, where only its kind is given.
        throw: raise `NotCertified` if a coordinate ends without its proof; False returns a result that says so.
        memory: bytes of working memory at most, beside the updates and the answer: it decides how many coordinates are
            solved at a time.
        most: refuse more (client, coordinate) pairs than this.
        progress: told after every chunk how many coordinates of how many are done.
    """

    weights: ArrayLike | None
    scale: Update | None
    bounds: tuple[Update, Update] | None
    rng: RNG
    throw: bool
    memory: int
    most: int
    progress: TaskProgress | None


def coordinate_median(
    updates: Sequence[Update],
    graph: Graph | str,
    method: Method | MethodName | None = None,
    *,
    side: Literal["low", "high"] = "low",
    **options: Unpack[AggregateOptions],
) -> Aggregate:
    """The median of every coordinate of the clients' updates.

    Args:
        updates: one a client: an array, or dictionaries, lists or tuples of arrays; all of one structure.
        graph: who talks to whom: a `Graph` with a node a client, or the name of a kind ("ring", "complete", "rgg" …).
        method: how it is found: `midst.Consensus(…)`, the paper's iteration, by which many are exposed, or
            `midst.Search()`, by which nobody is; consensus if not given.
        side: which of the two medians of an even number of clients. NumPy's is the mean of the two.
        **options: weights, scale, bounds, rng, progress …: see `AggregateOptions`.

    >>> import numpy as np
    >>> from midst.federated import coordinate_median
    >>> updates = [{"w": np.array([0.1, 0.2])}, {"w": np.array([0.3, 0.1])}, {"w": np.array([900.0, -900.0])}]
    >>> found = coordinate_median(updates, "complete", rng=7)
    >>> found.value
    {'w': array([0.3, 0.1])}
    >>> found.certified, found.clients, found.coordinates
    (True, 3, 2)
    """
    return coordinate_quantile(updates, 0.5, graph, method, side=side, **options)


def coordinate_quantile(
    updates: Sequence[Update],
    tau: float,
    graph: Graph | str,
    method: Method | MethodName | None = None,
    *,
    side: Literal["low", "high"] = "low",
    **options: Unpack[AggregateOptions],
) -> Aggregate:
    """The τ-quantile of every coordinate of the clients' updates; see `coordinate_median`.

    Args:
        updates: one a client.
        tau: which quantile.
        graph: who talks to whom.
        method: as in `midst.solve`, the same for every coordinate; its stop is exact.
        side: which of two answers, where τ times the total weight is a whole number.
        **options: see `AggregateOptions`.

    Returns:
        The answer as NumPy arrays in the structure of an update, each of the dtype that NumPy would give to the
        clients' arrays together.

    Raises:
        InputError: the updates do not fit each other, the graph or the bounds, are no finite numbers, or are too many;
            nothing was run.
        NotCertified: a coordinate was not proved within the limit; the error's `result` is the `Aggregate`.
    """
    if unknown := options.keys() - AggregateOptions.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    if side not in ("low", "high"):
        raise InputError(f"side must be 'low' or 'high', not {side!r}")
    method = make_method(method)
    if isinstance(method, Consensus) and not isinstance(method.stop, Exact | None):
        raise InputError("an aggregate is one of the clients' numbers; leave stop out, or give midst.Exact()")
    plan = _plan(updates, Quantile(tau, side), graph, _SEARCH if isinstance(method, Search) else _CONSENSUS, options)
    aggregate = _run(plan, updates[0], method, _seed(options.get("rng")), options.get("progress"))
    if options.get("throw", True) and not aggregate.certified:
        unproved = sum(not chunk.certified for chunk in aggregate.chunks)
        where = f"{unproved} of {len(aggregate.chunks)} chunks have a coordinate that was not proved within the limit"
        raise NotCertified(f"{where}; try a larger one, a scale closer to the data, or a search", cast(Any, aggregate))
    return aggregate


@dataclass(frozen=True, eq=False, repr=False)
class _Plan:
    """What is to be found, checked; and which coordinates are solved at a time."""

    parameters: list[_Parameter]
    objective: Quantile
    graph: Graph
    weights: ArrayLike | None
    scales: list[Leaf] | None
    ends: list[list[Leaf]] | None
    cuts: list[tuple[int, int]]

    def problem(self, places: list[_Place]) -> Problem:
        """The problem of some coordinates, with everything about them checked."""
        clients = zip(*(parameter.leaves for parameter in self.parameters), strict=True)
        values = np.stack([_gather(leaves, places) for leaves in clients])
        scale = None if self.scales is None else _gather(self.scales, places)
        known = None if self.ends is None else (_gather(self.ends[0], places), _gather(self.ends[1], places))
        for place in places:
            part = None if known is None else (known[0][place.here], known[1][place.here])
            _check(values[:, place.here], self.parameters[place.parameter], part)
        return Problem(self.graph, values, weights=self.weights, objective=self.objective, scale=scale, bounds=known)


def _plan(
    updates: Sequence[Update], objective: Quantile, graph: Graph | str, cost: _Cost, options: AggregateOptions
) -> _Plan:
    """Everything checked, each coordinate too: nothing is refused once the first run has begun."""
    parameters = _align(updates)
    clients, total = len(updates), sum(parameter.size for parameter in parameters)
    most, scale, bounds = options.get("most", _MOST), options.get("scale"), options.get("bounds")
    if clients * total > most:
        raise InputError(_too_many(clients, total, parameters, most, cost))
    if isinstance(graph, str):
        graph = graphs.make(graph, clients, rng=streams(options.get("rng")).graph)
    if not isinstance(graph, Graph):
        raise InputError("graph must be a midst.Graph or the name of a kind; try midst.graphs.from_networkx(G)")
    step = _coordinates_at_once(graph, options.get("memory", _MEMORY), cost)
    scales = None if scale is None else _one_a_leaf(scale, parameters, "scale")
    ends = None if bounds is None else [_one_a_leaf(end, parameters, "bounds", in_dtype=True) for end in _pair(bounds)]
    cuts = [(start, min(start + step, total)) for start in range(0, total, step)]
    plan = _Plan(parameters, objective, graph, options.get("weights"), scales, ends, cuts)
    for start, stop in cuts:
        plan.problem(_places(parameters, start, stop))
    return plan


def _run(plan: _Plan, update: Update, method: Method, seed: int, progress: TaskProgress | None) -> Aggregate:
    """Every chunk after the other, and the answers in the structure of an update; coordinate k is run k of the seed."""
    answers = [np.empty(parameter.shape, parameter.dtype) for parameter in plan.parameters]
    exposed, chunks = np.zeros(plan.graph.n, np.int64), []
    for start, stop in plan.cuts:
        places = _places(plan.parameters, start, stop)
        problem = plan.problem(places)
        found = solve_ensemble(problem, method, rng=seed, first=start, bounds=False)
        for place in places:
            answers[place.parameter].flat[place.there] = found.value[place.here]
        sent = found.exposed.sum(axis=0)
        exposed += sent
        chunks.append(Chunk(start, stop, bool(found.certified.all()), int(found.rounds.max()), int(sent.sum())))
        if progress is not None:
            progress(stop, plan.cuts[-1][1])
    value = _rebuild(update, iter(answers))
    return Aggregate(value, problem.title, plan.graph.n, stop, tuple(chunks), exposed, problem.public)


def _seed(rng: RNG) -> int:
    """A seed as it is; of a generator its next one."""
    try:
        drawn = np.random.default_rng(rng)
        return int(rng) if isinstance(rng, int | np.integer) else int(drawn.integers(2**63))
    except (TypeError, ValueError):
        raise InputError("rng must be a non-negative whole number, a numpy Generator, or None") from None


# What the clients submitted


@dataclass(frozen=True, eq=False, repr=False)
class _Parameter:
    """One array of the model, as every client has it."""

    route: Route
    leaves: list[Leaf]
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.leaves[0].shape

    @property
    def size(self) -> int:
        return self.leaves[0].size

    @property
    def name(self) -> str:
        return _name(self.route)


def _align(updates: Sequence[Update]) -> list[_Parameter]:
    """Every client's array of every parameter, checked to be of one structure, shape and kind."""
    if isinstance(updates, Mapping) or not hasattr(updates, "__len__"):
        raise InputError("updates must be a list with one entry a client; try list(updates.values())")
    if len(updates) < 2:
        raise InputError("one update alone has nobody to hide it from; at least two clients are needed")
    routed = [dict(_leaves(update)) for update in updates]
    expected = routed[0].keys()
    for i, leaves in enumerate(routed):
        for route in sorted(expected ^ leaves.keys(), key=_name):
            has, lacks = (0, i) if route in expected else (i, 0)
            raise InputError(f"client {has} has a parameter {_name(route)}, client {lacks} has none")
    parameters = []
    for route in expected:
        arrays = [_array(leaves[route], f"client {i}: {_name(route)}") for i, leaves in enumerate(routed)]
        for i, array in enumerate(arrays):
            if array.shape != arrays[0].shape:
                raise InputError(f"client {i}: {_name(route)} has shape {array.shape}, client 0's {arrays[0].shape}")
        parameters.append(_Parameter(route, arrays, np.result_type(*{array.dtype for array in arrays})))
    if not any(parameter.size for parameter in parameters):
        raise InputError("the updates are empty; each client must submit at least one number")
    return parameters


def _leaves(update: Update, route: Route = ()) -> Iterator[tuple[Route, Any]]:
    """Every array of an update, with the keys that lead to it."""
    if isinstance(update, Mapping | list | tuple):
        for key, part in update.items() if isinstance(update, Mapping) else enumerate(update):
            yield from _leaves(part, (*route, key))
    else:
        yield route, update


def _rebuild(update: Update, answers: Iterator[Leaf]) -> Update:
    """The structure of an update, with other arrays in it, in the order of `_leaves`."""
    if isinstance(update, Mapping):
        return {key: _rebuild(part, answers) for key, part in update.items()}
    if isinstance(update, list | tuple):
        parts = [_rebuild(part, answers) for part in update]
        return parts if isinstance(update, list) else tuple(parts)
    return next(answers)


def _array(leaf: Any, where: str) -> Leaf:
    for name in ("detach", "cpu"):  # a torch tensor may be part of a computation, and on a device
        method = getattr(leaf, name, None)
        leaf = method() if callable(method) else leaf
    try:
        array = np.asarray(leaf)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{where} cannot be read as a NumPy array; convert it first") from None
    if array.dtype == np.bool_ or not np.can_cast(array.dtype, np.float64):
        raise InputError(f"{where} has dtype {array.dtype}; only real numbers of up to 64 bits have a median here")
    return array


def _name(route: Route) -> str:
    return f"'{'.'.join(map(str, route))}'" if route else "the array"


def _too_many(clients: int, coordinates: int, parameters: list[_Parameter], most: int, cost: _Cost) -> str:
    pairs = clients * coordinates
    hours = pairs * cost.seconds / 3600
    answer = sum(parameter.size * parameter.dtype.itemsize for parameter in parameters) / 2**30
    return (
        f"{clients:,} clients with {coordinates:,} coordinates are {pairs:.3g} pairs, more than most={most:,}: about "
        f"{hours:,.1f} hours on one core, {answer:,.1f} GiB for the answer; aggregate fewer parameters, or raise most"
    )


def _coordinates_at_once(graph: Graph, memory: int, cost: _Cost) -> int:
    """How many coordinates are solved at a time within the memory."""
    each = cost.each + cost.client * graph.n + cost.edge * 2 * graph.edges
    if memory < each:
        raise InputError(
            f"one coordinate over {graph!r} takes about {each / 2**10:,.1f} KiB of memory, and {memory / 2**10:,.1f} "
            "are allowed; try a graph with fewer edges, or raise memory"
        )
    return min(cost.longest, int(memory // each))


# What is public


def _one_a_leaf(given: Update, parameters: list[_Parameter], what: str, *, in_dtype: bool = False) -> list[Leaf]:
    """A public figure for every coordinate, without copies: from one number, or from a structure like an update's.

    Bounds are taken in the clients' dtype: who clips a float32 to 0.3 gets a number that is a little more than 0.3.
    """
    routed = {route: _array(leaf, what) for route, leaf in _leaves(given)}
    if routed.keys() == {()} and routed[()].ndim == 0:
        routed = {parameter.route: routed[()] for parameter in parameters}
    if routed.keys() != {parameter.route for parameter in parameters}:
        raise InputError(f"{what} must be one number, or have the structure of an update")
    figures = []
    for parameter in parameters:
        figure = routed[parameter.route]
        if in_dtype and not np.issubdtype(parameter.dtype, np.integer):
            figure = figure.astype(parameter.dtype)
        try:
            figures.append(np.broadcast_to(figure, parameter.shape))
        except ValueError:
            raise InputError(f"{what} must have a number, or an array of its shape, for each parameter") from None
    return figures


def _pair(bounds: tuple[Update, Update]) -> tuple[Update, Update]:
    if not (isinstance(bounds, tuple) and len(bounds) == 2):
        raise InputError("bounds must be a tuple (lower, upper)")
    return bounds


# Coordinates, counted through all parameters


class _Place(NamedTuple):
    """Some coordinates of a chunk: of which parameter, where in it, and where in the chunk."""

    parameter: int
    there: slice
    here: slice


def _places(parameters: list[_Parameter], start: int, stop: int) -> list[_Place]:
    places, before = [], 0
    for k, parameter in enumerate(parameters):
        first, last = max(start - before, 0), min(stop - before, parameter.size)
        if first < last:
            places.append(_Place(k, slice(first, last), slice(first + before - start, last + before - start)))
        before += parameter.size
    return places


def _gather(leaves: Sequence[Leaf], places: list[_Place]) -> Array:
    return np.concatenate([leaves[place.parameter].flat[place.there].astype(np.float64) for place in places])


def _check(values: Array, parameter: _Parameter, bounds: tuple[Array, Array] | None) -> None:
    """Refuse what is not a number, or not within the bounds, by the client's number and the parameter's name."""
    _refuse(~np.isfinite(values), parameter, "has an entry that is not finite; leave the client out, or mend it")
    if np.issubdtype(parameter.dtype, np.integer):
        _refuse(np.abs(values) >= _WHOLE, parameter, "has an entry of 2^53 or more, which float64 cannot tell apart")
    if bounds is not None:
        outside = (values < bounds[0]) | (values > bounds[1])
        _refuse(outside, parameter, "has an entry outside the public bounds; clip it first")


def _refuse(bad: Bools, parameter: _Parameter, why: str) -> None:
    if bad.any():
        raise InputError(f"client {int(np.argmax(bad.any(axis=1)))}: {parameter.name} {why}")

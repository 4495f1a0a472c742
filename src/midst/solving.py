"""Problem in, result out, by one of two methods.

`solve` is the whole of it; `median`, `quantile`, `mean`, `maximum` and `minimum` make a `Problem` and call it.

Rules:
- `_by_search`: a search from the start. Nothing is drawn at random that the result depends on.
- `_with_noise`: a search with noise, which is drawn; nothing proves its answer, and the result says what it keeps to.
- `_by_consensus`: the one loop that drives every engine of the iteration, watches for its stop, and records. Where the
  stop is `Exact()`, a search follows, with its first thresholds about the x that all nodes know.
- Whatever was searched goes into the trace the same way: probes, answer, places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from inspect import Parameter, signature
from secrets import token_bytes
from time import monotonic
from typing import Any, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from midst import graphs
from midst.engines import ENGINES, SEARCHES
from midst.engines.batches import settle_method
from midst.engines.searching import Searched
from midst.errors import InputError, NotCertified, closest
from midst.methods import (
    CLOSE,
    After,
    Certified,
    Consensus,
    Exact,
    Method,
    MethodName,
    Paper,
    Search,
    Stop,
    answers_of,
    choose_method,
    choose_stop,
    noisy_rules,
    opening_thresholds,
    require_participants,
    rules_of,
)
from midst.normals import EdgeNormals
from midst.objectives import Definition, Mean, Objective, Quantile, built_in
from midst.problems import Problem, Values, check_lists, check_values, names_of
from midst.progress import Progress, watch_run
from midst.protocol.certificate import Certificate, Closeness, OwnProver, Prover
from midst.protocol.noise import JointNoise, rank_error, size_refusal
from midst.protocol.noisy_search import NoisyRules, count_probes
from midst.protocol.search import Rules, SearchState
from midst.recorder import Record, Recorder, check_record
from midst.result import NoiseKept, Result, Standing
from midst.system import RNG, Parameters, Sums, assemble, check_rng, check_z0, draw_z0, streams
from midst.trace import Trace, places_of, probes_of
from midst.types import Array, Branch

MethodLike = Method | MethodName

_BETWEEN_REPORTS = 0.1  # seconds


def solve(
    problem: Problem,
    method: MethodLike | None = None,
    *,
    engine: str = "arrays",
    rng: RNG = None,
    run: int = 0,
    record: Record = "auto",
    keep_values: bool = False,
    throw: bool = True,
    progress: Progress | bool | None = None,
) -> Result:
    """Find the answer to a problem, proved.

    Args:
        problem: what is to be found, by whom.
        method: `Search(…)`, by which nobody is exposed, `Consensus(…)`, the paper's iteration, or `Paper(…)`, that
            iteration as the paper has it; or the name of one. If not given, the search, or the iteration where a
            search finds no answer.
        engine: of the iteration "arrays" (node form), "edges" (z on every edge), "reference" (nodes and messages) or
            "gpu" (for large graphs; no iteration is recorded); of a search "arrays" or "reference" (participants, with
            masks).
        rng: a seed or a generator from which z(0) is drawn, or noise. A search without noise draws nothing.
        run: which run of an ensemble (`solve_ensemble`) with this rng has this z(0).
        record: of the iteration: "all", every k-th, "auto", "audit" or "none"; see `recorder.py`.
        keep_values: put the private values into the trace.
        throw: raise `NotCertified` for a run that ends without its proof; False returns it as a result that says so.
        progress: True to see where the run stands, in a notebook or on a terminal; or a function, called now and then
            with the iteration and the spread of x in units of the scale, and with None for that, when the iteration is
            over and a search goes on.

    Raises:
        InputError: the input is refused; nothing was run.
        NotCertified: the iteration did not come to its stop within `limit` iterations. A search always does.
    """
    chosen, record = choose_method(method, [problem]), check_record(record)
    _check_engine(engine, chosen)
    name = chosen.name
    if isinstance(chosen, Paper):
        problem, chosen = chosen.of(problem), chosen.iteration
    if isinstance(chosen, Search):
        require_participants(problem.graph.n)
        check_rng(rng)  # although a search draws nothing from it
        if record not in ("auto", "audit", "none"):  # a search always keeps what an audit needs
            raise InputError(f"record {record} keeps iterations; leave it out, or choose method consensus")
    if engine == "gpu":
        built_in(problem.objective)
    with watch_run(progress) as told:
        if isinstance(chosen, Search):
            if chosen.noise is not None:
                return _with_noise(problem, chosen.arity, chosen.noise, engine, rng, keep_values)
            return _by_search(problem, chosen, engine, keep_values)
        if engine == "gpu":
            result, missed = _by_device(problem, chosen, rng, run, record, keep_values)
        else:
            result, missed = _by_consensus(problem, chosen, engine, rng, run, record, keep_values, told)
        result = replace(result, method=name)
    if throw and missed is not None:
        raise NotCertified(missed, result)
    return result


def _check_engine(engine: str, method: Method) -> None:
    """Refuse an engine that the method does not have."""
    of_iteration = (*ENGINES, "gpu")
    known = tuple(SEARCHES) if isinstance(method, Search) else of_iteration
    if engine in known:
        return
    near = closest(engine, known)
    other = f", or choose method consensus, which has {engine}" if engine in of_iteration else near
    raise InputError(f"there is no engine {engine!r} for {method.name}; try {' or '.join(known)}{other}")


# By search


def _by_search(problem: Problem, method: Search, engine: str, keep_values: bool) -> Result:
    found = _search(problem, rules_of(problem, method), engine)
    trace = _trace(problem, found, keep_values, parameters={"arity": method.arity, "spacing": method.spacing})
    return _result(problem, trace, found.value, found, rounds=0)


def _with_noise(problem: Problem, arity: int, promise: JointNoise, engine: str, rng: RNG, keep_values: bool) -> Result:
    rules = noisy_rules_of(problem, arity, promise)
    drawn = streams(rng).shares
    searched = SEARCHES[engine](problem, rules, drawn.bytes)
    found = _SearchOutcome(searched, (searched.search.value(0),), None, ())
    trace = _trace(
        problem,
        None,  # totals with noise on them are no probes
        keep_values,
        parameters={"arity": arity, "spacing": "key", "noise": str(promise), "variance": str(rules.variance)},
        answer=found.values,
        owners=problem.owners,
        seed=_seed(rng),
    )
    result = _result(problem, trace, found.value, found, rounds=0)
    error = rank_error(rules.added, rules.most_numbers, rules.total)
    return replace(result, certified=False, noise=NoiseKept(promise, rules.variance, rules.probes, error))


def noisy_rules_of(problem: Problem, arity: int, promise: JointNoise) -> NoisyRules:
    """The rules of a search with as much noise as keeps a promise.

    Raises:
        InputError: a search with noise cannot find this, or there are too few values.
    """
    from midst.dp.joint import least_variance  # a second, with all that accounts for noise

    if problem.bounds is None or problem.values.ndim > 1 or not (problem.whole_weights == 1).all():
        raise InputError("noise needs public bounds and a resolution, and single numbers that all count alike")
    bracket, n = problem.brackets[0], problem.graph.n
    probes = count_probes(bracket, arity)
    variance = least_variance(promise, probes, arity)
    rules = noisy_rules(arity, problem.objective, problem.keys, bracket, problem.total, variance, n, promise.colluders)
    refused = size_refusal(promise.delta, rules.added, rules.most_numbers, rules.total)
    if refused is not None:
        raise InputError(refused)
    return rules


@dataclass(frozen=True, eq=False, repr=False)
class _SearchOutcome:
    """What a search has found."""

    searched: Searched
    values: tuple[float, ...]
    standing: tuple[Standing, ...] | None
    shape: tuple[int, ...]

    @property
    def value(self) -> float | Array:
        return np.array(self.values).reshape(self.shape) if self.shape else self.values[0]


def _search(problem: Problem, rules: Rules, engine: str) -> _SearchOutcome:
    """Search for the answer, from the public bounds or from all floats."""
    searched = SEARCHES.get(engine, SEARCHES["arrays"])(problem, rules, token_bytes)
    search = searched.search
    assert isinstance(search, SearchState)
    proofs = [search.proof(goal) for goal in range(len(rules.goals))]
    standing = tuple(Standing(below, total - below - above, above) for below, above, total in proofs)
    return _SearchOutcome(searched, answers_of(search), standing or None, problem.values.shape[1:])


# By consensus


def _by_consensus(
    problem: Problem,
    method: Consensus,
    engine: str,
    rng: RNG,
    run: int,
    record: Record,
    keep_values: bool,
    progress: Progress | None,
) -> tuple[Result, str | None]:
    """The result; and what it lacks, where the iteration did not come to its stop."""
    stop = choose_stop(problem, method.stop)
    rules = rules_of(problem, Search()) if isinstance(stop, Exact) else None
    parameters = settle_method(problem, method, stop)
    start = _start(problem, method, parameters, rng, run, record)
    system = assemble(problem, parameters, start)
    unit, tolerance = parameters.unit, _greatest_spread(stop, parameters)
    close = None if rules is None else Closeness(problem.graph.diameter(), tolerance)
    prover = _prover(problem, parameters, tolerance) if isinstance(stop, Certified) else None
    recorder = Recorder(record, (problem.graph.n, *problem.values.shape[1:]))
    t, x, branch, ended = _drive(
        ENGINES[engine](system),
        ends=close.see if close else lambda t, x: prover is not None and prover.holds(x),
        last=stop.iterations if isinstance(stop, After) else method.limit,
        recorder=recorder,
        report=_reporter(progress, parameters.scale / unit),
    )
    found = None
    if rules is not None and close is not None and ended:
        if progress is not None:
            progress(t, None)
        found = _search(problem, replace(rules, opening=_opening(problem, close, parameters)), engine)
    kept, frames, branches = recorder.frames(t, x, branch)
    trace = _trace(
        problem,
        found,
        keep_values,
        parameters=parameters.to_dict(),
        iterations=t + 1,
        t=kept,
        x=np.multiply(frames, unit, out=frames),
        branch=branches,
        segments=recorder.segments(t + 1, unit),
        seed=_seed(rng) if method.z0 is None and run == 0 else None,
        z0=None if isinstance(start, Sums) or record not in ("all", "audit") else start,
    )
    exposed = tuple(np.unique(np.nonzero(recorder.seen_inside)[0]).tolist())
    return _conclude(problem, stop, parameters, trace, found, exposed, x)


def _by_device(
    problem: Problem, method: Consensus, rng: RNG, run: int, record: Record, keep_values: bool
) -> tuple[Result, str | None]:
    """The same on a device, where no iteration is recorded."""
    from midst.engines.gpu import run_large

    if record not in ("auto", "none"):
        raise InputError("engine gpu records no iteration; leave record out, or try engine arrays")
    stop = choose_stop(problem, method.stop)
    rules = rules_of(problem, Search()) if isinstance(stop, Exact) else None
    parameters = settle_method(problem, method, stop)
    end = run_large(problem, method, stop, EdgeNormals.drawn(streams(rng).z0, run, (1,)))
    found = None
    if rules is not None and end.close:
        opening = opening_thresholds(problem.keys, end.low, end.high, float(parameters.scale))
        found = _search(problem, replace(rules, opening=(opening,)), "arrays")
    seed = _seed(rng) if run == 0 else None
    run_of = {"parameters": parameters.to_dict(), "iterations": end.iterations, "seed": seed}
    trace = _trace(problem, found, keep_values, **run_of)
    exposed = tuple(np.flatnonzero(end.inside).tolist())
    return _conclude(problem, stop, parameters, trace, found, exposed, end.x)


def _conclude(
    problem: Problem,
    stop: Stop,
    parameters: Parameters,
    trace: Trace,
    found: _SearchOutcome | None,
    exposed: tuple[int, ...],
    x: Array,
) -> tuple[Result, str | None]:
    """The result of an iteration that is over; and what it lacks, where it did not come to its stop.

    The last x is in working units; `exposed` are the nodes that sent their own value.
    """
    if found is not None:
        return _result(problem, trace, found.value, found, trace.iterations + 1, None, exposed), None  # z(0) takes one
    unit, tolerance = parameters.unit, _greatest_spread(stop, parameters)
    certificate = None if isinstance(stop, Exact) else _prover(problem, parameters, tolerance).certificate(x, unit)
    result = _result(problem, trace, _middle(x, unit), None, trace.iterations, certificate, exposed)
    if result.certified or isinstance(stop, After):
        return result, None
    wanted = "x close enough for a search" if isinstance(stop, Exact) else "a certificate"
    spread, needed = (float(np.max(each * unit)) for each in (x.max(axis=0) - x.min(axis=0), tolerance))
    return result, (
        f"{wanted} was not reached in {trace.iterations:,} iterations (spread {spread:.3g}, tolerance {needed:.3g});"
        " try a larger limit, another c, or public bounds closer to the data"
    )


def _greatest_spread(stop: Stop, parameters: Parameters) -> Array:
    """Of the x with which a run ends, in working units: for a search, or for a certificate."""
    tolerance = (
        CLOSE if isinstance(stop, Exact) else stop.tolerance if isinstance(stop, Certified) else Certified().tolerance
    )
    return np.asarray(tolerance * (parameters.scale / parameters.unit))


def _prover(problem: Problem, parameters: Parameters, tolerance: Array) -> Prover | OwnProver:
    if isinstance(problem.objective, Quantile | Mean):
        return Prover(problem.objective, problem.whole_weights, problem.values / parameters.unit, tolerance)
    return OwnProver(problem.objective, *problem.held(), tolerance, problem.total)


def _start(
    problem: Problem, method: Consensus, parameters: Parameters, rng: RNG, run: int, record: Record
) -> Array | Sums:
    """z(0), as given or drawn."""
    if method.z0 is not None:
        return check_z0(problem, method.z0)
    start = draw_z0(problem.graph, parameters, EdgeNormals.drawn(streams(rng).z0, run, problem.values.shape[1:]))
    if isinstance(start, Sums) and record in ("all", "audit"):
        raise InputError(
            f"record {record} keeps z(0) of every edge, and a complete graph of {problem.graph.n:,} nodes has none "
            "listed; try record auto, or list its edges (complete:listed=true)"
        )
    return start


def _middle(x: Array, unit: Array) -> float | Array:
    """The middle of the last x, in the units of the data: the answer where nothing was searched."""
    middle = np.asarray((x.min(axis=0) / 2 + x.max(axis=0) / 2) * unit, np.float64)
    return middle if middle.ndim else float(middle)


Reporter = Callable[[int, Array], None]


def _drive(
    steps: Iterator[tuple[Array, Branch]],
    ends: Callable[[int, Array], bool],
    last: int,
    recorder: Recorder,
    report: Reporter,
) -> tuple[int, Array, Branch, bool]:
    """Iterate to the end: the last iteration, its x and branches, and whether it ended by itself."""
    for t, (x, branch) in enumerate(steps):
        recorder.see(t, x, branch)
        ended = ends(t, x)
        if ended or t + 1 >= last:
            return t, x, branch, ended
        report(t, x)
    raise AssertionError("engines go on for ever")


def _reporter(progress: Progress | None, scale: Array) -> Reporter:
    """Tells of an iteration now and then."""
    due = monotonic() + _BETWEEN_REPORTS

    def report(t: int, x: Array) -> None:
        nonlocal due
        if progress is not None and monotonic() >= due:
            progress(t, float(np.max(np.ptp(x, axis=0) / scale)))
            due = monotonic() + _BETWEEN_REPORTS

    return report


def _opening(problem: Problem, close: Closeness, parameters: Parameters) -> tuple[tuple[int, ...], ...]:
    """The first thresholds of the search: about the range of x that all nodes know."""
    ends = [np.atleast_1d(np.asarray(end, np.float64) * parameters.unit) for end in (close.low, close.high)]
    scale = np.broadcast_to(parameters.scale, ends[0].shape)
    each = zip(ends[0].tolist(), ends[1].tolist(), scale.tolist(), strict=True)
    return tuple(opening_thresholds(problem.keys, *one) for one in each)


# What both leave


def _seed(rng: RNG) -> int | None:
    return int(rng) if isinstance(rng, int | np.integer) else None


def _trace(problem: Problem, found: _SearchOutcome | None, keep_values: bool, **run: Any) -> Trace:
    """The record of a run: what is public of the problem, what the iteration did, and what a search asked.

    Args:
        problem: what was to be found.
        found: what a search found.
        keep_values: whether the private values are in it.
        **run: what else a `Trace` has; without iterations, or where none was recorded, no x.
    """
    shape = (0, problem.graph.n, *problem.values.shape[1:])
    nothing: dict[str, Any] = {
        "iterations": 0,
        "t": np.empty(0, np.int64),
        "x": np.empty(shape),
        "branch": np.empty(shape, np.int8),
    }
    searched: dict[str, Any] = {}
    if found is not None:
        probes = probes_of(problem.keys, found.searched.steps)
        places = None
        if isinstance(problem.objective, Quantile):
            answers = [problem.keys.key(value) for value in found.values]
            places = places_of(probes, answers, problem.value_keys)
        searched = {"probes": probes, "answer": found.values, "places": places, "owners": problem.owners}
    return Trace(
        graph=problem.graph,
        objective=problem.objective,
        whole_weights=problem.whole_weights,
        unit_weight=problem.unit_weight,
        values=problem.values if keep_values else None,
        **(nothing | searched | run),
    )


def _result(
    problem: Problem,
    trace: Trace,
    value: float | Array,
    found: _SearchOutcome | None,
    rounds: int,
    certificate: Certificate | None = None,
    exposed: tuple[int, ...] = (),
) -> Result:
    """What people see of a run, of which the iteration took so many rounds."""
    return Result(
        value=value,
        objective=problem.title,
        method="consensus" if trace.iterations else "search",
        iterations=trace.iterations,
        rounds=rounds + (0 if found is None else found.searched.rounds),
        probes=0 if found is None else len(found.searched.steps),
        certified=found is not None or (certificate is not None and certificate.holds),
        certificate=certificate,
        standing=None if found is None else found.standing,
        _exposed=exposed,
        error=float(np.max(problem.distance(value))),
        trace=trace,
        _public=problem.public,
        _bounds=problem.bounds,
        _values=problem.values,
    )


# For one line


class ProblemOptions(TypedDict, total=False):
    """What `Problem` takes besides graph, values and objective."""

    weights: ArrayLike | Mapping[Any, float] | None
    weight_unit: float | None
    scale: ArrayLike | None
    bounds: tuple[ArrayLike, ArrayLike] | None
    resolution: float | str | Fraction | None
    pooled: bool


class SolveOptions(TypedDict, total=False):
    """What `solve` takes besides the problem."""

    method: MethodLike | None
    engine: str
    rng: RNG
    run: int
    record: Record
    keep_values: bool
    throw: bool
    progress: Progress | bool | None


class Options(ProblemOptions, SolveOptions, total=False):
    """What `median` and the others take besides values and graph."""


Finder = TypeVar("Finder", bound=Callable[..., Result])


def _with_options(function: Finder) -> Finder:
    """Shows the options in the signature, where help() and the completion of notebooks look."""
    shown, known = signature(function), {**signature(Problem).parameters, **signature(solve).parameters}
    named = [each for each in shown.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    options = [known[name].replace(kind=Parameter.KEYWORD_ONLY) for name in Options.__annotations__]
    function.__signature__ = shown.replace(parameters=[*named, *options])  # type: ignore[attr-defined]
    return function


@_with_options
def median(
    values: Values, graph: Any = "ring", *, definition: Definition = "inverted_cdf", **options: Unpack[Options]
) -> Result:
    """The median of values held by the nodes of a graph.

    Args:
        values: one number, or one row of numbers, a node; or a list a node, with `pooled=True`. In the order of the
            nodes, or by their names: {"anna": 3.0, …}, or a pandas Series with the names as its index.
        graph: a `Graph`, the name of a kind ("ring", "complete", "rgg" …), a networkx graph or a SciPy sparse matrix.
        definition: the answer that is meant where there are two, as for an even number of values; see `Quantile`.
        **options: of `Problem` (weights, weight_unit, scale, bounds, resolution, pooled) and of `solve` (method, rng,
            engine, record …).

    >>> import midst
    >>> midst.median([3.0, 1.0, 2.0], graph="complete").value
    2.0
    """
    return _find(values, graph, Quantile(0.5, definition), options)


@_with_options
def quantile(
    values: Values,
    q: float,
    graph: Any = "ring",
    *,
    definition: Definition = "inverted_cdf",
    **options: Unpack[Options],
) -> Result:
    """The q-quantile of values held by the nodes of a graph; see `median`."""
    return _find(values, graph, Quantile(q, definition), options)


@_with_options
def maximum(values: Values, graph: Any = "ring", **options: Unpack[Options]) -> Result:
    """The maximum of values held by the nodes of a graph; see `median`."""
    return _find(values, graph, Quantile(1), options)


@_with_options
def minimum(values: Values, graph: Any = "ring", **options: Unpack[Options]) -> Result:
    """The minimum of values held by the nodes of a graph; see `median`."""
    return _find(values, graph, Quantile(0), options)


@_with_options
def mean(values: Values, graph: Any = "ring", **options: Unpack[Options]) -> Result:
    """The mean of values held by the nodes of a graph, by one masked sum; see `median`.

    It is the float nearest to the exact mean: of the values as given, or as rounded to the public resolution.

    >>> import midst
    >>> midst.mean([0.1, 0.2, 0.3], graph="complete").value
    0.2
    """
    return _find(values, graph, Mean(), options)


def _find(values: Values, graph: Any, objective: Objective, options: Options) -> Result:
    of_problem: dict[str, Any] = {}
    of_solve: dict[str, Any] = {}
    for name, option in options.items():
        (of_problem if name in ProblemOptions.__annotations__ else of_solve)[name] = option
    for kind in (Consensus, Search):
        for name in of_solve.keys() & {each.name for each in fields(kind)}:
            raise InputError(f"{name} is an option of a method; give method=midst.{kind.__name__}({name}=…)")
    if isinstance(graph, str):
        held = list(values.values()) if isinstance(values, Mapping) else values
        names = names_of(values)
        label = str if names is None else [str(each) for each in names].__getitem__
        pooled = options.get("pooled")
        nodes = int(check_lists(held, name=label)[1][-1]) + 1 if pooled else len(check_values(held, name=label))
        graph = make_graph(graph, nodes, names, options.get("rng"))
    return solve(Problem(as_graph(graph), values, objective=objective, **of_problem), **of_solve)


def make_graph(kind: str, nodes: int, names: list[Any] | None, rng: RNG) -> graphs.Graph:
    """A graph of a kind with a node a value; where these have names, so have the nodes."""
    graph = graphs.make(kind, nodes, rng=streams(rng).graph)
    return graph if names is None or names == [*range(nodes)] else graph.with_labels([*map(str, names)])


def as_graph(graph: Any) -> graphs.Graph:
    """A graph from whatever people have.

    Raises:
        InputError: it is none.
    """
    if isinstance(graph, graphs.Graph):
        return graph
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return graphs.from_networkx(graph)
    if hasattr(graph, "tocoo") or isinstance(graph, np.ndarray):
        return graphs.from_sparse(graph)
    raise InputError("graph must be a midst.Graph, the name of a kind, a networkx graph or a sparse matrix")

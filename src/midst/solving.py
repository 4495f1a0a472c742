"""Problem in, result out: the one loop that drives every engine, watches for the proof, and records.

`solve` is the whole of it; `median`, `quantile`, `mean`, `maximum` and `minimum` make a `Problem` and call it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from midst import graphs
from midst.certificate import Prover
from midst.engines import ENGINES
from midst.errors import InputError, NotCertified
from midst.objectives import Mean, Objective, Quantile, Side
from midst.problems import Problem, check_values
from midst.recorder import Record, Recorder, check_record
from midst.result import Result
from midst.system import RNG, Parameters, Sums, assemble, check_z0, count_rules, draw_z0, settle, streams, whole_number
from midst.trace import Candidates, Trace
from midst.update import Array

Stop = Literal["count", "certified", "error"]
Progress = Callable[[int, float], None]

_BETWEEN_REPORTS = 0.1  # seconds


def solve(
    problem: Problem,
    *,
    c: ArrayLike | None = None,
    theta: float = 0.5,
    mu: ArrayLike | None = None,
    sigma: ArrayLike | None = None,
    z0: ArrayLike | None = None,
    rng: RNG = None,
    engine: str = "arrays",
    stop: Stop | None = None,
    patience: int | None = None,
    root: int = 0,
    tolerance: float = 1e-6,
    iterations: int | None = None,
    limit: int = 1_000_000,
    record: Record = "auto",
    keep_values: bool = False,
    throw: bool = True,
    force: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Run the iteration on a problem until its answer is proved.

    With `stop="count"` the value of the result is the answer itself, to the last bit.

    Args:
        problem: what is to be found, by whom.
        c: the paper's convergence parameter on the data as given; chosen from the public scale if not given.
        theta: averaging constant in (0, 1).
        mu: z_{i|j}(0) ~ N(μ A_ij, σ²); μ is chosen from the public centre if not given.
        sigma: its standard deviation (the paper quotes σ²); 0.1 if not given.
        z0: z(0) itself, aligned with graph.source and graph.target, instead of drawing it.
        rng: a seed or a generator from which z(0) is drawn.
        engine: "arrays" (node form), "float32" (the same in single precision), "edges" (z on every edge) or "reference"
            (nodes and messages).
        stop: "count" (the exact finish of `counting.py`), "certified" (within the tolerance, by `certificate.py`), or,
            in simulation only, "error": every x_i within the tolerance of a right answer. Not given: "count" for a
            quantile that is one value, else "certified".
        patience: how many iterations in a row a node is inside before it proposes its value; chosen if not given.
        root: the node at which a count's sums meet.
        tolerance: relative to the public scale (absolute where c is given and no scale is).
        iterations: run exactly so many instead; the result says whether its last x happens to be proved.
        limit: give up after so many.
        record: "all", every k-th, "auto", "audit" or "none"; see `recorder.py`.
        keep_values: put the private values into the trace.
        throw: raise `NotCertified` for a run that ends without its proof; False returns it as a result that says so.
        force: accept θ = 1 for a quantile, which does not converge.
        progress: called now and then with the iteration and the spread of x in units of the scale.

    Raises:
        InputError: the input is refused; nothing was run.
        NotCertified: no proof within `limit` iterations.
    """
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}; try one of {', '.join(ENGINES)}")
    rules = count_rules(problem, patience, root) if stop in (None, "count") and iterations is None else None
    if stop is None:
        stop = "certified" if rules is None else "count"
    if stop not in ("count", "certified", "error"):
        raise InputError(f"stop must be 'count', 'certified' or 'error', not {stop!r}")
    if stop == "count" and rules is None and iterations is None:
        raise InputError(f"a {problem.title} is no one value to propose; try side='low', or stop='certified'")
    if not (isinstance(tolerance, int | float) and 0 < tolerance < np.inf):
        raise InputError("tolerance must be a positive number")
    last = whole_number("limit", limit) if iterations is None else whole_number("iterations", iterations)
    record = check_record(record)
    parameters = settle(problem, c=c, theta=theta, mu=mu, sigma=sigma, force=force)
    drawn = streams(rng)
    start = draw_z0(problem, parameters, drawn.z0) if z0 is None else check_z0(problem, z0)
    if isinstance(start, Sums) and record in ("all", "audit"):
        raise InputError(
            f"record={record!r} keeps z(0) of every edge, and a complete graph of {problem.graph.n:,} nodes has none "
            "listed; try record='auto', or graphs.complete(n, listed=True)"
        )
    system = assemble(problem, parameters, start, rules)

    unit = parameters.unit
    scale = parameters.scale / unit
    prover = Prover(problem, system.terms.s, tolerance * scale)
    close_enough = _closeness(problem, parameters, prover, stop, tolerance) if iterations is None else _never
    recorder = Recorder(record, problem.values.shape)
    due = monotonic() + _BETWEEN_REPORTS
    for t, (x, branch, proofs) in enumerate(ENGINES[engine](system)):
        recorder.see(t, x, branch)
        if t + 1 >= last or proofs is not None or close_enough(x):
            break
        if progress is not None and monotonic() >= due:
            progress(t, float(np.max(np.ptp(x, axis=0) / scale)))
            due = monotonic() + _BETWEEN_REPORTS

    if proofs is None:
        value = (x.min(axis=0) / 2 + x.max(axis=0) / 2) * unit
    else:
        proofs = tuple(proof.scaled(u) for proof, u in zip(proofs, np.atleast_1d(unit).tolist(), strict=True))
        value = np.array([proof.value for proof in proofs]).reshape(unit.shape)
    kept, frames, branches = recorder.frames(t, x, branch)
    trace = Trace(
        graph=problem.graph,
        objective=problem.objective,
        counts=problem.counts,
        unit_weight=problem.unit_weight,
        parameters=parameters.to_dict(),
        iterations=t + 1,
        t=kept,
        x=np.multiply(frames, unit, out=frames),
        branch=branches,
        segments=recorder.segments(t + 1, unit),
        seed=int(rng) if isinstance(rng, int | np.integer) and z0 is None else None,
        candidates=Candidates.of(proofs or ()),
        z0=None if isinstance(start, Sums) or record not in ("all", "audit") else start,
        values=problem.values if keep_values else None,
    )
    certificate = prover.certificate(x, unit)
    result = Result(
        value=float(value) if value.ndim == 0 else value,
        objective=problem.title,
        iterations=t + 1,
        certified=certificate.holds or proofs is not None,
        certificate=certificate,
        proofs=proofs,
        exposed=tuple(np.unique(np.nonzero(recorder.seen_inside)[0]).tolist()),
        error=float(np.max(problem.distance(value))),
        trace=trace,
        _problem=problem,
    )
    if throw and iterations is None and proofs is None and not close_enough(x):
        wanted = {"count": "a proof", "certified": "a certificate", "error": "the error tolerance"}[stop]
        reached = f"spread {certificate.spread:.3g}, tolerance {certificate.tolerance:.3g}"
        advice = "try a larger limit, another c, or public bounds closer to the data"
        raise NotCertified(f"{wanted} was not reached in {t + 1:,} iterations ({reached}); {advice}", result)
    return result


def median(values: ArrayLike, graph: Any = "ring", *, side: Side = "low", **options: Any) -> Result:
    """The median of values held by the nodes of a graph.

    Args:
        values: one number, or one row of numbers, a node.
        graph: a `Graph`, the name of a kind ("ring", "complete", "rgg" …), a networkx graph or a SciPy sparse matrix.
        side: an even number of values has two medians: "low", "high", or "any" point between them, as in the paper.
        **options: of `Problem` (weights, weight_unit, scale, bounds) and of `solve` (rng, c, tolerance …).

    >>> import midst
    >>> midst.median([3.0, 1.0, 2.0], graph="complete", rng=7).certified
    True
    """
    return _find(values, graph, Quantile(0.5, side), options)


def quantile(values: ArrayLike, tau: float, graph: Any = "ring", *, side: Side = "low", **options: Any) -> Result:
    """The τ-quantile of values held by the nodes of a graph; see `median`."""
    return _find(values, graph, Quantile(tau, side), options)


def maximum(values: ArrayLike, graph: Any = "ring", **options: Any) -> Result:
    """The maximum of values held by the nodes of a graph; see `median`."""
    return _find(values, graph, Quantile(1), options)


def minimum(values: ArrayLike, graph: Any = "ring", **options: Any) -> Result:
    """The minimum of values held by the nodes of a graph; see `median`."""
    return _find(values, graph, Quantile(0), options)


def mean(values: ArrayLike, graph: Any = "ring", **options: Any) -> Result:
    """The mean of values held by the nodes of a graph; see `median`."""
    return _find(values, graph, Mean(), options)


def _find(values: ArrayLike, graph: Any, objective: Objective, options: dict[str, Any]) -> Result:
    of_problem = {name: options.pop(name) for name in list(options) if name in _OF_PROBLEM}
    array = check_values(values)
    if isinstance(graph, str):
        graph = graphs.make(graph, len(array), rng=streams(options.get("rng")).graph)
    return solve(Problem(_as_graph(graph), array, objective=objective, **of_problem), **options)


_OF_PROBLEM = ("weights", "weight_unit", "scale", "bounds")


def _as_graph(graph: Any) -> graphs.Graph:
    if isinstance(graph, graphs.Graph):
        return graph
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return graphs.from_networkx(graph)
    if hasattr(graph, "tocoo") or isinstance(graph, np.ndarray):
        return graphs.from_sparse(graph)
    raise InputError("graph must be a midst.Graph, the name of a kind, a networkx graph or a sparse matrix")


def _closeness(
    problem: Problem, parameters: Parameters, prover: Prover, stop: Stop, tolerance: float
) -> Callable[[Array], bool]:
    if stop == "count":
        return _never
    if stop == "certified":
        return prover.holds
    within = tolerance * parameters.scale

    def close_enough(x: Array) -> bool:
        return bool((problem.distance(x * parameters.unit) <= within).all())

    return close_enough


def _never(x: Array) -> bool:
    return False
